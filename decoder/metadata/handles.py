"""Functions that read the state handles in ``_metadata``, one for each kind of handle.

Streams and operator state are read into the classes in ``model``. Keyed state and channel state are
skipped; only their sizes are stored, as counted by Flink's ``getStateSize()``.

Source: MetadataV2V3SerializerBase and ChannelStateHandleSerializerV{1,2} @ Flink 2.2.0.
"""

from __future__ import annotations

from typing import NoReturn

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.metadata.incremental import skip_incremental_fast
from decoder.metadata.model import (
    DistributionMode,
    EmptySegment,
    FileState,
    InlineState,
    NamedState,
    OperatorStateHandle,
    RelativeFileState,
    SegmentState,
    StreamState,
)

# The maximum nesting depth of handles, to protect the Python stack from hostile input. Flink nests
# two levels.
MAX_NESTING = 8

# The number of values in CheckpointedStateScope.
_SEGMENT_SCOPES = 2

_MODES = tuple(DistributionMode)  # the value of each mode is its index

MIN_STREAM_HANDLE_BYTES = 1  # a NULL handle is one type byte


def _unknown(cursor: Cursor, label: str, kind: int, field: str) -> NoReturn:
    cursor.fail(f"unknown kind of {label}: {kind}", field, ErrorKind.UNSUPPORTED, back=1)


def _check_depth(cursor: Cursor, depth: int, field: str) -> None:
    if depth > MAX_NESTING:
        cursor.fail(f"handles nested more than {MAX_NESTING} deep", field)


# -- streams of state -------------------------------------------------------------------------


def read_stream(cursor: Cursor, field: str, depth: int = 0) -> StreamState | None:
    """Read a StreamStateHandle.

    ``u8 type``: 0 null; 1 BYTE_STREAM ``UTF name, i32 n, bytes``; 2 FILE ``i64 size, UTF uri``;
    3 KEY_GROUPS ``i32 start, i32 n, n x i64, handle``; 6 RELATIVE ``UTF path, i64 size``;
    15 SEGMENT_FILE ``i64 start, i64 size, i32 scope, UTF uri, UTF logicalFileId``;
    16 EMPTY_SEGMENT.
    """
    _check_depth(cursor, depth, field)
    start = cursor.byte_offset
    kind = cursor.u8(f"{field} type")
    stream: StreamState
    match kind:
        case 0:
            return None
        case 1:
            stream = InlineState(cursor.utf(f"{field} name"), cursor.blob(f"{field} bytes"))
        case 2:
            size = _file_size(cursor, field)
            stream = FileState(cursor.utf(f"{field} URI"), size)
        case 3:
            _skip_key_groups(cursor, field)
            return read_stream(cursor, field, depth + 1)
        case 6:
            path = cursor.utf(f"{field} relative path")
            stream = RelativeFileState(path, _file_size(cursor, field))
        case 15:
            stream = _read_segment(cursor, field)
        case 16:
            stream = EmptySegment()
        case _:
            _unknown(cursor, "stream state handle", kind, field)
    cursor.record(start, stream)
    return stream


def _file_size(cursor: Cursor, field: str) -> int | None:
    """Read a file size as an i64; -1 means that the size is unknown."""
    size = cursor.i64(f"{field} size")
    if size < -1:
        cursor.fail(f"a size cannot be negative: {size}", f"{field} size", back=8)
    return None if size == -1 else size


def _read_segment(cursor: Cursor, field: str) -> SegmentState:
    start = cursor.size(f"{field} segment start")
    size = cursor.size(f"{field} segment size")
    scope = cursor.i32(f"{field} segment scope")
    if not 0 <= scope < _SEGMENT_SCOPES:
        cursor.fail(f"unknown scope of a merged file: {scope}", field, back=4)
    uri = cursor.utf(f"{field} URI")
    cursor.skip_utf(f"{field} logical file id")
    return SegmentState(uri, start, size)


def _stream_size(cursor: Cursor, field: str) -> int:
    stream = read_stream(cursor, field)
    return 0 if stream is None else stream.size


# -- operator state ------------------------------------------------------------------------------


def read_operator_state(cursor: Cursor, field: str) -> OperatorStateHandle | None:
    """Read an OperatorStateHandle and the ``i32 present`` before it.

    ``i32 present``; then ``u8 type``: 0 null, 4 partitionable, 17 partitionable with file merging.
    Types 4 and 17: ``i32 n`` x {``UTF name``, ``u8 mode``, ``i32 n``, n x ``i64`` byte offset};
    only type 17: ``UTF taskOwnedDir``, ``UTF sharedDir``, ``bool empty``; then a stream handle.
    """
    start = cursor.byte_offset
    present = cursor.i32(f"{field} present")
    if present == 0:
        return None
    if present != 1:
        cursor.fail(f"the mark of a present state must be 0 or 1, not {present}", field, back=4)
    kind = cursor.u8(f"{field} type")
    if kind == 0:
        return None
    if kind not in (4, 17):
        _unknown(cursor, "operator state handle", kind, field)
    states = tuple(
        _read_named_state(cursor, field)
        # a state has at least the length of a name, a mode, and a count
        for _ in range(cursor.count(f"{field} number of states", 7))
    )
    if len(states) > 1 and len({state.name for state in states}) != len(states):
        cursor.fail("two states of a handle have the same name", field)
    if kind == 17:
        cursor.skip_utf(f"{field} task-owned directory")
        cursor.skip_utf(f"{field} shared directory")
        if cursor.boolean(f"{field} empty"):
            # Flink restores nothing from such a handle, even if it lists offsets.
            states = tuple(NamedState(state.name, state.mode, ()) for state in states)
    stream = read_stream(cursor, field)
    if stream is None:
        cursor.fail("operator state without a stream", field)
    handle = OperatorStateHandle(states, stream, of_file_merging=kind == 17)
    cursor.record(start, handle)
    return handle


def _read_named_state(cursor: Cursor, field: str) -> NamedState:
    name = cursor.utf(f"{field} state name")
    mode = cursor.u8(f"{field} mode of {name!r}")
    if mode >= len(_MODES):
        cursor.fail(f"unknown distribution mode: {mode}", field, back=1)
    offsets_field = f"{field} offsets of {name!r}"
    byte_offsets = cursor.i64s(cursor.count(offsets_field, 8), offsets_field)
    if min(byte_offsets, default=0) < 0:
        cursor.fail("an element cannot be at a negative position", offsets_field)
    return NamedState(name, _MODES[mode], byte_offsets)


# -- keyed state, which is skipped ---------------------------------------------------------------


def _skip_key_groups(cursor: Cursor, field: str) -> None:
    cursor.i32(f"{field} first key group")
    count = cursor.count(f"{field} key groups", 8)
    cursor.skip(8 * count, f"{field} key group offsets")


def _skip_key_group_range(cursor: Cursor, field: str) -> None:
    cursor.i32(f"{field} first key group")
    cursor.i32(f"{field} key groups")


def skip_keyed_state(cursor: Cursor, field: str, depth: int = 0) -> int:
    """Step over a KeyedStateHandle; return the size of its state in bytes.

    ``u8 type``:

    - 0: null
    - 3, 7, 12: key groups, with the fields that ``read_stream`` describes for type 3; type 12 ends
      with ``UTF handleId``
    - 5, 11: incremental
    - 8, 14: changelog
    - 9: changelog bytes
    - 10, 13: changelog files

    The functions below describe the other fields.
    """
    total = cursor.attempt(skip_incremental_fast)
    if total is not None:
        return total
    _check_depth(cursor, depth, field)
    kind = cursor.u8(f"{field} type")
    match kind:
        case 0:
            return 0
        case 3 | 7 | 12:
            _skip_key_groups(cursor, field)
            size = _stream_size(cursor, field)
            if kind == 12:
                cursor.skip_utf(f"{field} handle id")
            return size
        case 5 | 11:
            return skip_incremental(cursor, field, kind == 11)
        case 8 | 14:
            return _skip_changelog(cursor, field, depth, version2=kind == 14)
        case 9:
            return _skip_changelog_bytes(cursor, field)
        case 10 | 13:
            return _skip_changelog_files(cursor, field, version2=kind == 13)
        case _:
            _unknown(cursor, "keyed state handle", kind, field)


def skip_incremental(cursor: Cursor, field: str, version2: bool) -> int:
    """Step over an incremental handle, file by file; return the size of its state in bytes.

    ``i64 checkpointId, UTF backendId, i32 start, i32 n``, version 2: ``i64 checkpointedSize``; meta
    handle; twice (shared, private) ``i32 n`` x {``UTF localPath``, handle}; version 2: ``UTF
    handleId``.
    """
    cursor.i64(f"{field} checkpoint id")
    cursor.skip_utf(f"{field} backend id")
    _skip_key_group_range(cursor, field)
    if version2:
        cursor.i64(f"{field} checkpointed size")
    size = _stream_size(cursor, f"{field} meta")
    for part in (f"{field} shared", f"{field} private"):
        for _ in range(cursor.count(f"{part} files", 2 + MIN_STREAM_HANDLE_BYTES)):
            cursor.skip_utf(f"{part} local path")
            size += _stream_size(cursor, part)
    if version2:
        cursor.skip_utf(f"{field} handle id")
    return size


def _skip_changelog(cursor: Cursor, field: str, depth: int, version2: bool) -> int:
    """Step over a changelog handle; return the size of its state in bytes.

    ``i32 start, i32 n, i64 size``; ``i32 n`` x keyed handle (materialized), ``i32 n`` x keyed
    handle (not materialized); ``i64 materializationId``; version 2: ``i64 checkpointId``; ``UTF
    handleId``.
    """
    _skip_key_group_range(cursor, field)
    cursor.i64(f"{field} checkpointed size")
    size = 0
    for part in (f"{field} materialized", f"{field} non-materialized"):
        for _ in range(cursor.count(f"{part} handles", 1)):
            size += skip_keyed_state(cursor, part, depth + 1)
    cursor.i64(f"{field} materialization id")
    if version2:
        cursor.i64(f"{field} checkpoint id")
    cursor.skip_utf(f"{field} handle id")
    return size


def _skip_changelog_bytes(cursor: Cursor, field: str) -> int:
    """Step over a handle of changelog bytes; return the number of these bytes.

    ``i32 start, i32 n, i64 from, i64 to``; ``i32 k`` x {``i32 keyGroup, i32 len``, bytes}; ``UTF
    handleId``.
    """
    _skip_key_group_range(cursor, field)
    cursor.i64(f"{field} from")
    cursor.i64(f"{field} to")
    size = 0
    for _ in range(cursor.count(f"{field} changes", 8)):
        cursor.i32(f"{field} key group of a change")
        size += cursor.skip_blob(f"{field} change")
    cursor.skip_utf(f"{field} handle id")
    return size


def _skip_changelog_files(cursor: Cursor, field: str, version2: bool) -> int:
    """Step over a handle of changelog files; return the size of its state in bytes.

    ``i32 start, i32 n``; ``i32 k`` x {``i64 offset``, handle}; ``i64 size, i64 checkpointedSize,
    UTF handleId``; version 2: ``UTF storageId``.
    """
    _skip_key_group_range(cursor, field)
    for _ in range(cursor.count(f"{field} files", 8 + MIN_STREAM_HANDLE_BYTES)):
        cursor.i64(f"{field} offset in a file")
        read_stream(cursor, field)
    size = cursor.size(f"{field} size")
    cursor.i64(f"{field} checkpointed size")
    cursor.skip_utf(f"{field} handle id")
    if version2:
        cursor.skip_utf(f"{field} storage id")
    return size


# -- channel state (in-flight records), which is skipped -----------------------------------------


def skip_channel_states(cursor: Cursor, field: str, typed: bool, kinds: tuple[int, int]) -> int:
    """Step over ``i32 n`` channel-state handles of one direction; return their size in bytes.

    From metadata version 6 on (``typed``), a type byte precedes each handle. A plain handle
    (type ``kinds[0]``): ``i32 subtask``, two ``i32`` (gate and channel, or partition and
    subpartition), ``i32 n``, n x ``i64``, ``i64 size``, handle. A merged handle (type
    ``kinds[1]``): ``i32 subtask, i64 size``, handle, ``i32 n``, n bytes.
    """
    plain, merged = kinds
    size = 0
    # The minimum size of a handle. The shorter kind is a merged handle: subtask, size, null handle,
    # and count.
    for _ in range(cursor.count(f"{field} handles", 17)):
        kind = cursor.u8(f"{field} type") if typed else plain
        if kind == plain:
            cursor.skip(12, f"{field} subtask and channel")
            offsets = cursor.count(f"{field} offsets", 8)
            cursor.skip(8 * offsets, f"{field} offsets")
            size += cursor.size(f"{field} size")
            read_stream(cursor, field)
        elif kind == merged:
            cursor.i32(f"{field} subtask")
            size += cursor.size(f"{field} size")
            read_stream(cursor, field)
            cursor.skip_blob(f"{field} merged offsets")
        else:
            _unknown(cursor, "channel state handle", kind, field)
    return size
