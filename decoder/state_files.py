"""Where the bytes of a state handle are, for a checkpoint that may have been moved or copied.

A handle names its file as it was when Flink wrote it. A checkpoint copied elsewhere still holds
the old absolute URIs, so the places are tried in this order: relative to ``_metadata``; beside it
under the file's last name; the path's tail below the job id, under the job's directory of today;
the absolute URI last.

Whoever made a checkpoint could name any file in it. What lies outside of the checkpoint, links
followed, is not opened unless that is allowed: a savepoint owns its directory, a ``chk-<n>`` also
``shared/`` and ``taskowned/`` beside it, and each of them under S3's entropy as well.
No two handles may share bytes of a file.

Source: AbstractFsCheckpointStorageAccess, FsCheckpointStorageLocation, EntropyInjector @ Flink
2.2.0.
"""

from __future__ import annotations

import math
import posixpath
import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from decoder.errors import DecodeError, ErrorKind
from decoder.metadata.model import (
    EmptySegment,
    FileState,
    InlineState,
    RelativeFileState,
    SegmentState,
    StreamState,
)
from decoder.storage import ByteSource, checkpoint_number, join, normalise_path

# A job id, the directory that holds a job's chk-<n>, shared/ and taskowned/: 32 hex digits.
_JOB_ID = re.compile(r"[0-9a-f]{32}")
_BESIDE_A_CHECKPOINT = ("shared", "taskowned")
# What an object store is named by; a place in one is not looked for without leave.
_BUCKET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*/")
# s3.entropy.length random characters stand where the path has s3.entropy.key.
_ENTROPY = re.compile(r"[0-9A-Za-z]+/?")

# The most that is read of one subtask's state at a time. A file may claim any size, and be sparse;
# a thousand splits of a Kafka source take some 100 KB, other sources' may take megabytes.
MAX_STATE_BYTES = 256 * 1024 * 1024

_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

_Stream = FileState | RelativeFileState | SegmentState


class _Claim(NamedTuple):
    start: int
    end: float
    stream: _Stream


@dataclass(frozen=True, slots=True)
class Claims:
    """What has been read so far, by path; files are read by several threads at once.

    Flink writes each subtask's operator state to a file, or a segment of a merged file, of its own.
    A checkpoint whose handles share bytes is not Flink's, and could have one large file read as
    often as it has handles, and what is in it decoded as often.

    Source: DefaultOperatorStateBackendSnapshotStrategy, FileMergingSnapshotManagerBase @ Flink
    2.2.0.
    """

    _by_path: dict[str, list[_Claim]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def __reduce__(self) -> tuple[type[Claims], tuple[()]]:
        return Claims, ()  # another process has claims of its own

    def take(self, path: str, stream: _Stream, what: str) -> None:
        """Note that a handle's bytes are in the file at ``path``; the same handle may come again.

        Raises:
            DecodeError: they are another handle's too.
        """
        # A whole file has no end that could be relied on: its size may not be known.
        start, end = 0, math.inf
        if isinstance(stream, SegmentState):
            start, end = stream.start, stream.start + stream.size
            if start == end:
                return
        with self._lock:
            claims = self._by_path.setdefault(path, [])
            place = bisect(claims, start, key=lambda claim: claim.start)
            # Claims do not overlap: only the neighbours can.
            for other in claims[max(0, place - 1) : place + 1]:
                if other.stream is stream:
                    return
                if other.start < end and start < other.end:
                    raise DecodeError(
                        ErrorKind.CORRUPT,
                        f"the state of {what} lies where another handle's does",
                        file=path,
                        byte_offset=max(start, other.start),
                    )
            claims.insert(place, _Claim(start, end, stream))


@dataclass(frozen=True, slots=True)
class StateFiles:
    """The files that the handles of one checkpoint name.

    Attributes:
        directory: the one that holds ``_metadata``, as ``source.absolute`` tells it.
        source: where files are read.
        allow_external: whether files outside of the checkpoint may be opened too.
    """

    directory: str
    source: ByteSource
    allow_external: bool = False
    _claims: Claims = field(default_factory=Claims)
    _paths: dict[str, str | None] = field(default_factory=dict)

    def read(self, stream: StreamState, what: str) -> bytes:
        """The whole of a state stream, which ``what`` names in errors.

        Raises:
            DecodeError: no such file in any of the places (all are named), a file outside of the
                checkpoint, one that is shorter than its handle says, or another handle's too.
        """
        match stream:
            case InlineState():
                return stream.data
            case EmptySegment():
                return b""
            case FileState(stored_size=None) | RelativeFileState(stored_size=None):
                return self.read_range(stream, 0, None, what)
            case _:
                return self.read_range(stream, 0, stream.size, what)

    def read_range(
        self,
        stream: FileState | RelativeFileState | SegmentState,
        start: int,
        size: int | None,
        what: str,
    ) -> bytes:
        """``size`` bytes from ``start`` of a state stream that is in a file; None: to its end.

        Where the file is, is tried by reading, which asks a remote store only once.

        Raises:
            DecodeError: as for ``read``.
        """
        places = list(dict.fromkeys(map(normalise_path, self._places(stream))))
        outside: list[str] = []
        refused: OSError | None = None
        if isinstance(stream, SegmentState):
            start += stream.start
        _check_size(size or 0, what)
        for place in places:
            if "\0" in place:
                continue
            path = self._path(place)
            if path is None:
                outside.append(place)
                continue
            try:
                # Of a file whose size is not known, as much as tells that it is too much.
                wanted = MAX_STATE_BYTES + 1 if size is None else size
                data = self.source.read_range(path, start, wanted)
            except _NOT_THERE:
                continue
            except OSError as error:
                refused = refused or error  # a store may deny what is not there
                continue
            self._claims.take(path, stream, what)
            _check_size(len(data), what)
            if size is not None and len(data) != size:
                raise _ends_early(what, path, start, size, len(data))
            return data
        if refused is not None:
            raise refused
        raise self._not_found(what, places, outside)

    def find(self, stream: FileState | RelativeFileState | SegmentState, what: str) -> str:
        """Where the file of a state stream is, whole or with other state in it; it is not read.

        Raises:
            DecodeError: no such file in any of the places, or one outside of the checkpoint.
        """
        places = list(dict.fromkeys(map(normalise_path, self._places(stream))))
        outside: list[str] = []
        for place in places:
            if "\0" in place:
                continue
            path = self._path(place)
            if path is None:
                outside.append(place)
            elif self.source.is_file(path):
                return path
        raise self._not_found(what, places, outside)

    def _places(self, stream: FileState | RelativeFileState | SegmentState) -> Iterator[str]:
        if isinstance(stream, RelativeFileState):
            yield join(self.directory, stream.path)
            yield join(self.directory, posixpath.basename(stream.path))
            return
        yield join(self.directory, posixpath.basename(stream.uri))
        parts = stream.uri.split("/")
        for index in range(len(parts) - 1, -1, -1):
            if _JOB_ID.fullmatch(parts[index]):
                yield join(posixpath.dirname(self.directory), *parts[index + 1 :])
                break
        path = self.source.from_uri(stream.uri)
        if path is not None:
            yield path

    def _path(self, place: str) -> str | None:
        """Where a place is; None: outside of the checkpoint. Told once: a state is read by ranges,
        and to follow links takes as long as to read one."""
        if place not in self._paths:
            path = self.source.absolute(place)
            self._paths[place] = path if self.allow_external or self._owns(path) else None
        return self._paths[place]

    def _owns(self, path: str) -> bool:
        """Whether a path, as ``source.absolute`` tells it, is one of the checkpoint's own."""
        own = [self.directory]
        root = posixpath.dirname(self.directory)
        if checkpoint_number(self.directory) is not None:
            own += [join(root, name) for name in _BESIDE_A_CHECKPOINT]
            root = posixpath.dirname(root)
        return any(
            path.startswith(f"{directory}/")
            or _is_below_but_for_entropy(path, f"{directory}/", root)
            for directory in own
        )

    def _not_found(self, what: str, places: list[str], outside: list[str]) -> DecodeError:
        # Of a local file it is worth knowing whether leave would help; a store is not asked.
        for place in outside:
            if _BUCKET.match(place) or self.source.is_file(place):
                return DecodeError(
                    ErrorKind.EXTERNAL,
                    f"the file of {what} would be {place!r}, outside of the checkpoint: not "
                    f"opened (tried {', '.join(map(repr, places))})",
                    file=self.directory,
                )
        return DecodeError(
            ErrorKind.NOT_FOUND,
            f"the file of {what} is missing; tried {', '.join(map(repr, places))}",
        )


def _ends_early(what: str, path: str, start: int, size: int, there: int) -> DecodeError:
    return DecodeError(
        ErrorKind.TRUNCATED,
        f"the file of {what} ends early: {size} bytes wanted from byte {start}, {there} there",
        file=path,
        byte_offset=start,
    )


def _check_size(size: int, what: str) -> None:
    if size > MAX_STATE_BYTES:
        raise DecodeError(
            ErrorKind.TOO_LARGE,
            f"{what} takes more than {MAX_STATE_BYTES} bytes, the most that is read of one",
        )


def _is_below_but_for_entropy(path: str, directory: str, root: str) -> bool:
    """Whether an object is in the directory under the random name that Flink's S3 gave it.

    Of ``s3://b/_entropy_/flink/<job>/chk-1`` Flink writes ``_metadata`` without ``_entropy_/``, and
    the state with random characters in its stead. The key is in what the user configured,
    ``root``: the names below are Flink's own.
    """
    bucket = _BUCKET.match(directory)
    if bucket is None or not directory.startswith("s3"):
        return False
    for cut in range(bucket.end(), len(root) + 2):
        if not path.startswith(directory[:cut]):
            return False
        found = path.find(directory[cut:], cut + 1)
        if found < 0 or not _ENTROPY.fullmatch(path[cut:found]):
            continue
        if cut <= len(root) or path[found - 1] == "/":
            return True
    return False
