"""Copy the files to which a savepoint's handles refer, for a new savepoint.

Flink deletes the files that a checkpoint owns, so two savepoints must not share a file. Each file
is copied to the directory of the new ``_metadata``, and its handle gets a name relative to this
directory. If the old handle already has a relative name, the file keeps this name. A segment of a
merged file becomes a separate file.

Source: RelativeFileStateHandle, MetadataV2V3SerializerBase.deserializeStreamStateHandle @ Flink
1.15.4 to 2.2.0.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import NamedTuple

from decoder.cursor import ParsedSpan
from decoder.metadata.model import FileState, RelativeFileState, SegmentState
from decoder.state_files import StateFiles
from decoder.storage import METADATA_FILE
from migrate.extensions.savepoints.catalog import (
    SAVEPOINT_FILE_NAMED_TWICE,
    SAVEPOINT_FORMAT_TOO_OLD,
    SAVEPOINT_HANDLE_OUTSIDE,
)
from migrate.extensions.savepoints.layouts import relative_file
from migrate.model.errors import Refused

# The first metadata version that supports file names relative to ``_metadata``.
_FIRST_RELATIVE = 3
_PLAIN_PATH = re.compile(r"(?:[^/\0]+/)*[^/\0]+")


class Copy(NamedTuple):
    """A range of a file to copy, and the name of the copy in the new savepoint.

    ``size`` is in bytes. If ``size`` is None, the range ends at the end of the file.
    """

    path: str
    start: int
    size: int | None
    name: str


def copies_of(
    streams: Iterable[ParsedSpan], version: int, files: StateFiles
) -> tuple[list[Copy], dict[int, bytes]]:
    """Return which files to copy for these stream handles, and the handles for the copies.

    Returns:
        The copies; and the new bytes of each changed handle, by the handle's byte offset in
        ``_metadata``.

    Raises:
        Refused: a handle points to a file outside the savepoint, two handles use different names
            for the same file, or the metadata version does not support relative names.
        DecodeError: a file is missing, or does not belong to the savepoint.
    """
    names: dict[tuple[str, int, int | None], str] = {}
    used_names = {METADATA_FILE}
    handles: dict[int, bytes] = {}

    def add_copy(stream: FileState | RelativeFileState | SegmentState, name: str) -> str:
        start = stream.start if isinstance(stream, SegmentState) else 0
        size = stream.size if isinstance(stream, SegmentState) else stream.stored_size
        source = files.find(stream, f"the handle {name}"), start, size
        if source not in names:
            names[source] = _free_name(name, used_names)
            used_names.add(names[source])
        return names[source]

    # Start with the files that keep their names, so that no other copy gets one of these names.
    for span in sorted(streams, key=lambda span: not isinstance(span.value, RelativeFileState)):
        match span.value:
            case RelativeFileState(path=path):
                if _PLAIN_PATH.fullmatch(path) is None or ".." in path.split("/"):
                    raise Refused(SAVEPOINT_HANDLE_OUTSIDE(path=path))
                if add_copy(span.value, path) != path:
                    raise Refused(SAVEPOINT_FILE_NAMED_TWICE(path=path))
            case FileState(uri=uri) as stream:
                if version < _FIRST_RELATIVE:
                    raise Refused(SAVEPOINT_FORMAT_TOO_OLD(version=version))
                name = add_copy(stream, posixpath.basename(uri))
                size = -1 if stream.stored_size is None else stream.stored_size
                handles[span.start] = relative_file(name, size)
            case SegmentState(uri=uri) as stream:
                name = add_copy(stream, f"{posixpath.basename(uri)}-{stream.start}")
                handles[span.start] = relative_file(name, stream.size)
            case _:
                pass
    return [Copy(*source, name) for source, name in names.items()], handles


def _free_name(name: str, used_names: set[str]) -> str:
    """Return ``name`` or, if it is taken, ``name-2``, ``name-3``, and so on."""
    free, number = name, 1
    while free in used_names:
        number += 1
        free = f"{name}-{number}"
    return free
