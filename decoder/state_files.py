"""The files that state handles refer to, in a checkpoint that may have been moved or copied.

The handles of a copied checkpoint contain the old absolute URIs. For each file, these paths are
tried in this order: the handle's relative path, from the directory of ``_metadata``; the file's
base name in that directory; the part of the path after the job ID, in the job's current directory;
and the absolute URI.

A handle could refer to any file on the machine or in the object store. A file outside the
checkpoint (after links are resolved) is opened only if ``allow_external`` is True. A ``chk-<n>``
can also have files in ``shared/`` and ``taskowned/`` next to it, and the path of each directory can
contain Flink's random S3 entropy. Two handles must not share bytes of a file.

Source: AbstractFsCheckpointStorageAccess, FsCheckpointStorageLocation, EntropyInjector @ Flink
2.2.0.
"""

from __future__ import annotations

import math
import posixpath
import re
from bisect import bisect
from collections.abc import Iterator
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

# A job ID: the name of the directory that contains a job's chk-<n>, shared/, and taskowned/.
_JOB_ID = re.compile(r"[0-9a-f]{32}")
_SHARED_DIRECTORIES = ("shared", "taskowned")
# The root of an object store.
_BUCKET = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*/")
# Flink replaces s3.entropy.key with s3.entropy.length random characters.
_ENTROPY = re.compile(r"[0-9A-Za-z]+/?")

# The limit for one read of a subtask's state. Without this limit, a hostile sparse file could
# exhaust the memory. A thousand Kafka splits take about 100 KB; the splits of other sources may
# take megabytes.
MAX_STATE_BYTES = 256 * 1024 * 1024

# The start of the error text if a state file does not exist.
MISSING_STATE_FILE = "the file of"

_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, IsADirectoryError)

_Stream = FileState | RelativeFileState | SegmentState


class _Claim(NamedTuple):
    start: int
    end: float
    stream: _Stream


class _Claims:
    """The file ranges of the handles read so far, by path; several threads may add to them.

    Flink writes each subtask's operator state to a separate file or segment. In a hostile
    checkpoint, many handles could refer to one large file, which would then be read for each
    handle.

    Source: DefaultOperatorStateBackendSnapshotStrategy, FileMergingSnapshotManagerBase @ Flink
    2.2.0.
    """

    def __init__(self) -> None:
        self._by_path: dict[str, list[_Claim]] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[_Claims], tuple[()]]:
        return _Claims, ()  # each process has its own claims

    def record(self, path: str, stream: _Stream, label: str) -> None:
        """Claim the bytes of ``stream`` in the file at ``path``.

        Raises:
            DecodeError: another handle has claimed some of the same bytes.
        """
        # The range of a whole file, possibly of unknown size.
        start, end = 0, math.inf
        if isinstance(stream, SegmentState):
            start, end = stream.start, stream.start + stream.size
            if start == end:
                return
        with self._lock:
            claims = self._by_path.setdefault(path, [])
            index = bisect(claims, start, key=lambda claim: claim.start)
            # Recorded claims do not overlap each other, so the new claim can overlap only with its
            # neighbors.
            for other in claims[max(0, index - 1) : index + 1]:
                if other.stream is stream:
                    return
                if other.start < end and start < other.end:
                    raise DecodeError(
                        ErrorKind.CORRUPT,
                        f"the state of {label} shares bytes with another handle's",
                        file=path,
                        byte_offset=max(start, other.start),
                    )
            claims.insert(index, _Claim(start, end, stream))


class StateFiles:
    """The files that one checkpoint's handles refer to.

    Attributes:
        directory: the directory of ``_metadata``, from ``source.absolute``.
        allow_external: whether files outside the checkpoint may also be opened.
    """

    def __init__(self, directory: str, source: ByteSource, allow_external: bool = False) -> None:
        self.directory = directory
        self.source = source
        self.allow_external = allow_external
        self._claims = _Claims()
        self._paths: dict[str, str | None] = {}

    def read(self, stream: StreamState, label: str) -> bytes:
        """Read a whole state stream; ``label`` is its name in error messages.

        Raises:
            DecodeError: the file is missing, outside the checkpoint, shorter than specified in its
                handle, or too large; or a different handle refers to some of the same bytes.
            OSError: access to the file is denied, or its object store failed.
        """
        match stream:
            case InlineState():
                return stream.data
            case EmptySegment():
                return b""
            case FileState(stored_size=None) | RelativeFileState(stored_size=None):
                return self.read_range(stream, 0, None, label)
            case _:
                return self.read_range(stream, 0, stream.size, label)

    def read_range(self, stream: _Stream, start: int, size: int | None, label: str) -> bytes:
        """Read ``size`` bytes of a stream from ``start``, or to its end if ``size`` is None.

        Each path is tried by reading from it, because a separate check would take one more request
        to an object store.

        Raises:
            DecodeError, OSError: as in ``read``.
        """
        candidates = self._candidates(stream)
        outside: list[str] = []
        refused: OSError | None = None
        if isinstance(stream, SegmentState):
            start += stream.start
        _check_size(size or 0, label)
        for path in self._allowed_paths(candidates, outside):
            try:
                # If the file size is unknown, read just enough to see whether the file is too
                # large.
                read_bytes = MAX_STATE_BYTES + 1 if size is None else size
                data = self.source.read_range(path, start, read_bytes)
            except _MISSING_FILE_ERRORS:
                continue
            except OSError as error:
                refused = refused or error  # object stores may deny access to a missing file
                continue
            self._claims.record(path, stream, label)
            _check_size(len(data), label)
            if size is not None and len(data) != size:
                raise DecodeError(
                    ErrorKind.TRUNCATED,
                    f"the file of {label} ends early: {size} bytes expected from byte "
                    f"{start}, {len(data)} found",
                    file=path,
                    byte_offset=start,
                )
            return data
        if refused is not None:
            raise refused
        raise self._not_found(label, candidates, outside)

    def find(self, stream: _Stream, label: str) -> str:
        """Return the path of a state stream's file without reading the file.

        Raises:
            DecodeError: the file is not at any of its paths, or it is outside the checkpoint.
        """
        candidates = self._candidates(stream)
        outside: list[str] = []
        for path in self._allowed_paths(candidates, outside):
            if self.source.is_file(path):
                return path
        raise self._not_found(label, candidates, outside)

    def _candidates(self, stream: _Stream) -> list[str]:
        """Return the distinct possible paths of the file, most likely first."""
        if isinstance(stream, RelativeFileState):
            names = (stream.path, posixpath.basename(stream.path))
            paths = [join(self.directory, name) for name in names]
        else:
            paths = [join(self.directory, posixpath.basename(stream.uri))]
            parts = stream.uri.split("/")
            for index in range(len(parts) - 1, -1, -1):
                if _JOB_ID.fullmatch(parts[index]):
                    paths.append(join(posixpath.dirname(self.directory), *parts[index + 1 :]))
                    break
            path = self.source.from_uri(stream.uri)
            if path is not None:
                paths.append(path)
        return list(dict.fromkeys(map(normalise_path, paths)))

    def _allowed_paths(self, candidates: list[str], outside: list[str]) -> Iterator[str]:
        """Yield the absolute paths of allowed candidates; append other paths to ``outside``."""
        for candidate in candidates:
            if "\0" in candidate:
                continue
            # Store the resolved paths, because resolving links takes as long as reading a range.
            if candidate not in self._paths:
                absolute = self.source.absolute(candidate)
                own = self.allow_external or self._is_inside(absolute)
                self._paths[candidate] = absolute if own else None
            path = self._paths[candidate]
            if path is None:
                outside.append(candidate)
            else:
                yield path

    def _is_inside(self, path: str) -> bool:
        """Return whether a path from ``source.absolute`` is in a directory of the checkpoint."""
        own = [self.directory]
        root = posixpath.dirname(self.directory)
        if checkpoint_number(self.directory) is not None:
            own += [join(root, name) for name in _SHARED_DIRECTORIES]
            root = posixpath.dirname(root)
        return any(
            path.startswith(f"{directory}/")
            or is_below_without_entropy(path, f"{directory}/", root)
            for directory in own
        )

    def _not_found(self, label: str, candidates: list[str], outside: list[str]) -> DecodeError:
        tried = ", ".join(map(repr, candidates))
        for path in outside:
            # An object store is not queried for files outside the checkpoint.
            if _BUCKET.match(path) or self.source.is_file(path):
                return DecodeError(
                    ErrorKind.EXTERNAL,
                    f"the file of {label} would be {path!r}; it is outside of the "
                    f"checkpoint, and was not opened (tried {tried})",
                    file=self.directory,
                )
        problem = f"{MISSING_STATE_FILE} {label} is missing; tried {tried}"
        return DecodeError(ErrorKind.NOT_FOUND, problem)


def _check_size(size: int, label: str) -> None:
    if size > MAX_STATE_BYTES:
        raise DecodeError(
            ErrorKind.TOO_LARGE,
            f"{label} is larger than {MAX_STATE_BYTES} bytes, the limit for one state",
        )


def is_below_without_entropy(path: str, directory: str, root: str) -> bool:
    """Return whether a path is under the directory if Flink's random S3 entropy is omitted.

    For ``s3://b/_entropy_/flink/<job>/chk-1``, Flink writes ``_metadata`` without ``_entropy_/``,
    and it writes the state files with random characters in its place. The user configures the
    ``root``, so only the root can contain ``_entropy_``.
    """
    bucket = _BUCKET.match(directory)
    if bucket is None or not directory.startswith("s3"):
        return False
    for cut in range(bucket.end(), len(root) + 2):
        if not path.startswith(directory[:cut]):
            return False
        entropy_end = path.find(directory[cut:], cut + 1)
        if entropy_end < 0 or not _ENTROPY.fullmatch(path[cut:entropy_end]):
            continue
        if cut <= len(root) or path[entropy_end - 1] == "/":
            return True
    return False
