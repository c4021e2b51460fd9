"""A savepoint with other positions, as a new directory.

It is staged beside its place, read whole by the strict decoder, and then renamed. In a store it is
written in place, ``_metadata`` last, and read back: what has no ``_metadata`` is no savepoint.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from decoder import Checkpoint, DecodeError, ErrorKind, read_checkpoint
from decoder.checkpoint import read_metadata
from decoder.cursor import ParsedSpan, RecordingCursor
from decoder.metadata.model import (
    EmptySegment,
    FileState,
    InlineState,
    OperatorStateHandle,
    RelativeFileState,
    SegmentState,
    StreamState,
)
from decoder.metadata.parse import read_all
from decoder.state_files import StateFiles
from decoder.storage import METADATA_FILE
from migrate.storage.files import Files
from migrate.storage.new_file import new_place
from migrate.targets.savepoint.files import Copy, copies_of
from migrate.targets.savepoint.layouts import (
    Splice,
    inline_state,
    no_operator_state,
    operator_state,
    spliced,
)
from migrate.targets.savepoint.source import (
    NewState,
    OffsetChanges,
    changed_source,
    entries,
    entries_after,
    next_offsets,
)


def write_savepoint(
    checkpoint: Checkpoint,
    wanted: Mapping[str, OffsetChanges],
    out: str | os.PathLike[str],
    *,
    allow_external_files: bool = False,
) -> None:
    """Write a savepoint with other positions; the one that it is made from is only read.

    Args:
        checkpoint: what was read of that one.
        wanted: by operator id, the partitions that are to change.
        out: a local path or a store's URL; nothing is there yet, or an empty directory.
        allow_external_files: as for ``read_checkpoint``.

    Raises:
        Refused: its state cannot hold these positions, or ``out`` holds something.
        DecodeError: a file of it cannot be read.
        OSError: the directory cannot be written.
    """
    files = Files()
    file = read_metadata(checkpoint.pointer, files)
    state_files = StateFiles(file.directory, files, allow_external_files)
    cursor = RecordingCursor(file.data, file.path)
    metadata = read_all(cursor)
    changes = {
        operator.operator_id: changed_source(
            operator, checkpoint.sources[operator.operator_id], state_files, changing
        )
        for operator in metadata.operators
        if (changing := wanted.get(operator.operator_id))
    }
    new_streams = {
        id(handle): changes[operator.operator_id].readers[subtask.index]
        for operator in metadata.operators
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        if operator.operator_id in changes
        and subtask.index in changes[operator.operator_id].readers
    }
    new_coordinators = {
        id(operator.coordinator_state): new
        for operator in metadata.operators
        if operator.operator_id in changes
        and (new := changes[operator.operator_id].coordinator) is not None
    }
    left_behind = {
        id(span.value.stream)
        for span in cursor.spans
        if isinstance(span.value, OperatorStateHandle) and id(span.value) in new_streams
    }
    streams = [span for span in cursor.spans if id(span.value) not in left_behind]
    copies, renamed = copies_of(streams, metadata.version, state_files)
    splices = [
        *_operator_states(cursor.spans, file.data, new_streams, renamed),
        *(
            Splice(
                span.start,
                span.end,
                inline_state(span.value.name, new_coordinators[id(span.value)]),
            )
            for span in cursor.spans
            if isinstance(span.value, InlineState) and id(span.value) in new_coordinators
        ),
    ]
    done = [(splice.start, splice.end) for splice in splices]
    splices += [
        Splice(span.start, span.end, renamed[span.start])
        for span in streams
        if span.start in renamed
        and not isinstance(span.value, OperatorStateHandle)
        and not any(start <= span.start < end for start, end in done)
    ]
    with new_place(os.fspath(out), files) as (place, write):
        for copy in copies:
            write(copy.name, _pieces(copy, files))
        write(METADATA_FILE, [spliced(file.data, splices)])
        _check(read_checkpoint(place, files), checkpoint, wanted)


def _operator_states(
    found: Iterable[ParsedSpan],
    data: bytes,
    new: Mapping[int, NewState],
    renamed: Mapping[int, bytes],
) -> Iterator[Splice]:
    """Handles of operator state that change: of readers, and those of file merging, which name
    directories that Flink deletes with what they are of."""
    streams: dict[int, ParsedSpan] = {}
    for span in found:
        if not isinstance(span.value, OperatorStateHandle):
            streams[id(span.value)] = span
            continue
        stream = span.value.stream
        if state := new.get(id(span.value)):
            inline = inline_state(_name(stream), state.data)
            yield Splice(span.start, span.end, operator_state(state.states, inline))
        elif span.value.of_file_merging and isinstance(stream, EmptySegment):
            yield Splice(span.start, span.end, no_operator_state())
        elif span.value.of_file_merging:
            place = streams[id(stream)]
            inner = renamed.get(place.start, data[place.start : place.end])
            yield Splice(span.start, span.end, operator_state(span.value.states, inner))


def _name(stream: StreamState) -> str:
    """What Flink calls the bytes of a handle: by the file that they would have been."""
    match stream:
        case InlineState(name=name) | RelativeFileState(path=name):
            return name
        case FileState(uri=uri):
            return uri
        case SegmentState(uri=uri, start=start):
            return f"{uri}-{start}"
        case EmptySegment():
            return ""


def _pieces(copy: Copy, files: Files) -> Iterator[bytes]:
    """The bytes of a copy.

    Raises:
        DecodeError: the file ends early.
    """
    done = 0
    for piece in files.pieces(copy.path, copy.start, copy.size):
        done += len(piece)
        yield piece
    if copy.size is not None and done != copy.size:
        raise DecodeError(
            ErrorKind.TRUNCATED,
            f"it ends early: {copy.size} bytes wanted from byte {copy.start}, {done} there",
            file=copy.path,
        )


def _check(new: Checkpoint, old: Checkpoint, wanted: Mapping[str, OffsetChanges]) -> None:
    """Raise where what was written is not what was wanted: that is a fault of ours."""
    for operator_id, source in old.sources.items():
        expected = dict(next_offsets(source))
        for place, next_offset in wanted.get(operator_id, {}).items():
            if next_offset is None:
                expected.pop(place, None)
            else:
                expected[place] = next_offset
        if next_offsets(new.sources[operator_id]) != expected:
            raise AssertionError(f"operator {operator_id}: the new savepoint has other positions")
        if entries(new.sources[operator_id]) != entries_after(source, wanted.get(operator_id, {})):
            raise AssertionError(
                f"operator {operator_id}: the new savepoint's enumerator knows other partitions"
            )
