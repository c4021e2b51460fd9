"""The files that a savepoint's handles name, as files of a new one.

A copy must not share a file with the original: Flink deletes what a checkpoint owned. So each file
is copied beside ``_metadata`` and named relative to it, as a savepoint's own are. A file that was
there already keeps its name, and its handle its bytes. A segment of a merged file becomes a file of
its own.

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

# The first metadata version whose files may be named relative to it.
_FIRST_RELATIVE = 3
_PLAIN_PATH = re.compile(r"(?:[^/\0]+/)*[^/\0]+")


class Copy(NamedTuple):
    """Bytes of a file that go to a file of the new savepoint; ``size`` None: to its end."""

    path: str
    start: int
    size: int | None
    name: str


class Copies(NamedTuple):
    """The copies, and the handles with another name, by their byte offset in ``_metadata``."""

    copies: tuple[Copy, ...]
    handles: Mapping[int, bytes]


def copies_of(streams: Iterable[ParsedSpan], version: int, files: StateFiles) -> Copies:
    """Return where the files of these stream handles go.

    Args:
        streams: the handles in ``_metadata``.
        version: the version of the metadata.
        files: finds their files.

    Raises:
        Refused: a handle could not name its copy.
        DecodeError: a file is not there, or not the savepoint's.
    """
    names: dict[tuple[str, int, int | None], str] = {}
    taken = {METADATA_FILE}
    handles: dict[int, bytes] = {}

    def copied(stream: FileState | RelativeFileState | SegmentState, name: str) -> str:
        start = stream.start if isinstance(stream, SegmentState) else 0
        size = stream.size if isinstance(stream, SegmentState) else stream.stored_size
        source = files.find(stream, f"the handle {name}"), start, size
        if source not in names:
            names[source] = _free(name, taken)
            taken.add(names[source])
        return names[source]

    # Files that keep their names first, so that no other takes one of them.
    for span in sorted(streams, key=lambda span: not isinstance(span.value, RelativeFileState)):
        match span.value:
            case RelativeFileState(path=path):
                if _PLAIN_PATH.fullmatch(path) is None or ".." in path.split("/"):
                    raise Refused(f"a handle names the file {path!r}, outside of the savepoint")
                if copied(span.value, path) != path:
                    raise Refused(f"the file {path!r} goes by two names")
            case FileState(uri=uri) as stream:
                if version < _FIRST_RELATIVE:
                    raise Refused(
                        f"metadata version {version} names its files by whole paths alone, so "
                        "that a copy would share them; restore the job with Flink 1.11 or later, "
                        "take a savepoint, and name that"
                    )
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


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken: ``name``, or ``name-2`` and so on."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
