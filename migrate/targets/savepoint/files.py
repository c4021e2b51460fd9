"""The files that a savepoint's handles name, as files of a new one.

A copy must not share a file with what it was made from: Flink deletes what a checkpoint owned. So
each file is copied beside ``_metadata``, and named relative to it, as a savepoint's own are. A file
that was there already keeps its name, and its handle its bytes. A segment of a merged file becomes
a file of its own.

Source: RelativeFileStateHandle, MetadataV2V3SerializerBase.deserializeStreamStateHandle @ Flink
1.15.4 to 2.2.0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from decoder.cursor import ParsedSpan
from decoder.metadata.model import FileState, RelativeFileState, SegmentState
from decoder.state_files import StateFiles
from decoder.storage import METADATA_FILE
from migrate.model.errors import Refused
from migrate.targets.savepoint.layouts import relative_file

# The metadata version from which on files may be named relative to it.
_FIRST_RELATIVE = 3
_PLAIN_PATH = re.compile(r"(?:[^/\0]+/)*[^/\0]+")


class Copy(NamedTuple):
    """Bytes of a file that go to a file of the new savepoint; ``size`` None: to its end."""

    path: str
    start: int
    size: int | None
    name: str


class Copies(NamedTuple):
    """What is copied, and the stream handles that name it otherwise, by where they stand in
    ``_metadata``."""

    copies: tuple[Copy, ...]
    handles: Mapping[int, bytes]


def copies_of(streams: Iterable[ParsedSpan], version: int, files: StateFiles) -> Copies:
    """Where the files of these stream handles go.

    Args:
        streams: each with its place in ``_metadata``.

    Raises:
        Refused: a handle could not name its copy.
        DecodeError: a file is not there, or not the savepoint's.
    """
    names: dict[tuple[str, int, int | None], str] = {}
    taken = {METADATA_FILE}
    handles: dict[int, bytes] = {}

    def copied(stream: FileState | RelativeFileState | SegmentState, wanted: str) -> str:
        start = stream.start if isinstance(stream, SegmentState) else 0
        size = stream.size if isinstance(stream, SegmentState) else stream.stored_size
        source = files.find(stream, f"the handle {wanted}"), start, size
        if source not in names:
            names[source] = _free(wanted, taken)
            taken.add(names[source])
        return names[source]

    # Those that keep their names first, so that no other takes one of them.
    for span in sorted(streams, key=lambda span: not isinstance(span.value, RelativeFileState)):
        match span.value:
            case RelativeFileState(path=path):
                if _PLAIN_PATH.fullmatch(path) is None or ".." in path.split("/"):
                    raise Refused(f"a handle names the file {path!r}, outside of the savepoint")
                if copied(span.value, path) != path:
                    raise Refused(f"the file {path!r} goes by two names")
            case FileState(uri=uri) as stream:
                _check_version(version)
                name = copied(stream, posixpath.basename(uri))
                size = -1 if stream.stored_size is None else stream.stored_size
                handles[span.start] = relative_file(name, size)
            case SegmentState(uri=uri) as stream:
                name = copied(stream, f"{posixpath.basename(uri)}-{stream.start}")
                handles[span.start] = relative_file(name, stream.size)
            case _:
                pass
    copies = tuple(Copy(*source, name) for source, name in names.items())
    return Copies(copies, handles)


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _check_version(version: int) -> None:
    if version < _FIRST_RELATIVE:
        raise Refused(
            f"metadata version {version} names its files by whole paths alone, so that a copy "
            "would share them; restore the job with Flink 1.11 or later, take a savepoint, and "
            "name that"
        )
