"""Write a savepoint with different positions to a new directory.

A local savepoint is written under a temporary name, read back by the decoder, and then renamed. In
an object store, a savepoint is written under its final name, and then read back. ``_metadata`` is
written last, because Flink rejects a directory without this file.
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
from migrate.extensions.savepoints.files import Copy, copies_of
from migrate.extensions.savepoints.layouts import (
    NewState,
    Splice,
    inline_state,
    no_operator_state,
    operator_state,
    spliced,
)
from migrate.extensions.savepoints.positions import (
    OffsetChanges,
    entries,
    entries_after,
    next_offsets,
)
from migrate.extensions.savepoints.source import changed_source
from migrate.storage.files import Files
from migrate.storage.new_file import write_directory


def write_savepoint(
    checkpoint: Checkpoint,
    changes: Mapping[str, OffsetChanges],
    out: str | os.PathLike[str],
    *,
    allow_external_files: bool = False,
) -> None:
    """Write a copy of a savepoint, with different positions; the original does not change.

    Args:
        checkpoint: the decoded original savepoint.
        changes: the changed partitions, by operator ID.
        out: a directory, which must be missing or empty. It is a local path or an object store URL.
            For a URL, the caller has checked that the directory is missing or empty.
        allow_external_files: as in ``read_checkpoint``.

    Raises:
        Refused: the original savepoint's state cannot store these positions, or its files cannot be
            copied.
        DecodeError: a file in the original savepoint cannot be read.
        OSError: the directory cannot be written.
    """
    files = Files()
    file = read_metadata(checkpoint.pointer, files)
    state_files = StateFiles(file.directory, files, allow_external_files)
    cursor = RecordingCursor(file.data, file.path)
    metadata = read_all(cursor)
    new_states: dict[int, NewState] = {}
    new_coordinators: dict[int, bytes] = {}
    for operator in metadata.operators:
        operator_changes = changes.get(operator.operator_id)
        if not operator_changes:
            continue
        source = checkpoint.sources[operator.operator_id]
        states, coordinator = changed_source(operator, source, state_files, operator_changes)
        new_states |= states
        if coordinator is not None:
            new_coordinators[id(operator.coordinator_state)] = coordinator
    replaced = {
        id(span.value.stream)
        for span in cursor.spans
        if isinstance(span.value, OperatorStateHandle) and id(span.value) in new_states
    }
    kept_streams = [
        span
        for span in cursor.spans
        if not isinstance(span.value, OperatorStateHandle) and id(span.value) not in replaced
    ]
    copies, renamed = copies_of(kept_streams, metadata.version, state_files)
    splices = [
        *_operator_states(cursor.spans, file.data, new_states, renamed),
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
    replaced_ranges = [(splice.start, splice.end) for splice in splices]
    splices += [
        Splice(span.start, span.end, renamed[span.start])
        for span in kept_streams
        if span.start in renamed
        and not any(start <= span.start < end for start, end in replaced_ranges)
    ]
    with write_directory(os.fspath(out), files) as (directory, write):
        for copy in copies:
            write(copy.name, _pieces(copy, files))
        write(METADATA_FILE, [spliced(file.data, splices)])
        _check(read_checkpoint(directory, files), checkpoint, changes)


def _operator_states(
    spans: Iterable[ParsedSpan],
    data: bytes,
    new: Mapping[int, NewState],
    renamed: Mapping[int, bytes],
) -> Iterator[Splice]:
    """Yield splices that replace operator-state handles.

    The handles of changed readers are replaced. File-merging handles are also replaced, because
    they refer to directories that Flink deletes together with the original checkpoint.
    """
    streams: dict[int, ParsedSpan] = {}
    for span in spans:
        handle = span.value
        if not isinstance(handle, OperatorStateHandle):
            streams[id(handle)] = span
            continue
        if state := new.get(id(handle)):
            inline = inline_state(_stream_name(handle.stream), state.data)
            yield Splice(span.start, span.end, operator_state(state.states, inline))
        elif handle.of_file_merging and isinstance(handle.stream, EmptySegment):
            yield Splice(span.start, span.end, no_operator_state())
        elif handle.of_file_merging:
            stream = streams[id(handle.stream)]
            inner = renamed.get(stream.start, data[stream.start : stream.end])
            yield Splice(span.start, span.end, operator_state(handle.states, inner))


def _stream_name(stream: StreamState) -> str:
    """Return the name for the inline handle that replaces a stream."""
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
    """Yield the bytes of a range of a file.

    Raises:
        DecodeError: the file ends before the end of the range.
    """
    done = 0
    for piece in files.pieces(copy.path, copy.start, copy.size):
        done += len(piece)
        yield piece
    if copy.size is not None and done != copy.size:
        raise DecodeError(
            ErrorKind.TRUNCATED,
            f"the file ends early; {copy.size} bytes were expected from byte {copy.start}, but "
            f"only {done} exist",
            file=copy.path,
        )


def _check(new: Checkpoint, old: Checkpoint, changes: Mapping[str, OffsetChanges]) -> None:
    """Raise AssertionError if the new savepoint does not contain the planned positions."""
    for operator_id, source in old.sources.items():
        operator_changes = changes.get(operator_id, {})
        expected = {
            key: next_offset
            for key, next_offset in {**next_offsets(source), **operator_changes}.items()
            if next_offset is not None
        }
        if next_offsets(new.sources[operator_id]) != expected:
            raise AssertionError(
                f"operator {operator_id}: the new savepoint has unexpected positions"
            )
        if entries(new.sources[operator_id]) != entries_after(source, operator_changes):
            raise AssertionError(
                f"operator {operator_id}: the new savepoint's enumerator has unexpected partitions"
            )
