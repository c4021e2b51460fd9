"""Where the bytes of a state handle are, for a checkpoint that may have been moved or copied.

A handle names its file as it was when Flink wrote it. A checkpoint copied elsewhere still holds
the old absolute URIs, so the places are tried in this order: relative to ``_metadata``; beside it
under the file's last name; the path's tail below the job id, under the job's directory of today;
the absolute URI last.

Source: AbstractFsCheckpointStorageAccess, FsCheckpointStorageLocation @ Flink 2.2.0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from decoder.errors import DecodeError, ErrorKind
from decoder.metadata.model import (
    EmptySegment,
    FileState,
    InlineState,
    RelativeFileState,
    SegmentState,
    StreamState,
)
from decoder.storage import ByteSource, join

# A job id, the directory that holds a job's chk-<n>, shared/ and taskowned/: 32 hex digits.
_JOB_ID = re.compile(r"[0-9a-f]{32}")


def read_stream(stream: StreamState, directory: str, source: ByteSource, what: str) -> bytes:
    """The bytes of a state stream; ``directory`` is the checkpoint's, which holds ``_metadata``.

    Raises:
        DecodeError: no such file in any of the places (all are named), or shorter than its handle
            says.
    """
    match stream:
        case InlineState():
            return stream.data
        case EmptySegment():
            return b""
        case RelativeFileState():
            return _read(_relative(stream.path, directory), 0, stream.stored_size, source, what)
        case FileState():
            places = list(_absolute(stream.uri, directory, source))
            return _read(places, 0, stream.stored_size, source, what)
        case SegmentState():
            places = list(_absolute(stream.uri, directory, source))
            return _read(places, stream.start, stream.size, source, what)


def _relative(path: str, directory: str) -> list[str]:
    return [join(directory, path), join(directory, posixpath.basename(path))]


def _absolute(uri: str, directory: str, source: ByteSource) -> Iterator[str]:
    yield join(directory, posixpath.basename(uri))
    parts = uri.split("/")
    for index in range(len(parts) - 1, -1, -1):
        if _JOB_ID.fullmatch(parts[index]):
            yield join(posixpath.dirname(directory), *parts[index + 1 :])
            break
    path = source.from_uri(uri)
    if path is not None:
        yield path


def _read(places: list[str], start: int, size: int | None, source: ByteSource, what: str) -> bytes:
    tried = list(dict.fromkeys(posixpath.normpath(place) for place in places))
    found = next((place for place in tried if "\0" not in place and source.is_file(place)), None)
    if found is None:
        raise DecodeError(
            ErrorKind.NOT_FOUND,
            f"the file of {what} is missing; tried {', '.join(map(repr, tried))}",
        )
    if size is None:
        return source.read(found)
    data = source.read_range(found, start, size)
    if len(data) != size:
        raise DecodeError(
            ErrorKind.TRUNCATED,
            f"the file of {what} ends early: {size} bytes wanted from byte {start}, "
            f"{len(data)} there",
            file=found,
            byte_offset=start,
        )
    return data
