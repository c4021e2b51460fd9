"""The keyed state handles in ``_metadata``.

The docstrings of the ``skip`` functions in ``handles`` describe the layouts.

Source: MetadataV2V3SerializerBase @ Flink 2.2.0.
"""

from __future__ import annotations

from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.metadata.handles import MIN_STREAM_HANDLE_BYTES, read_stream
from decoder.metadata.model import StreamState

# KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM @ 2.2.0
_MAX_KEY_GROUPS = 1 << 15
# KeyedStateCheckpointOutputStream.NO_OFFSET_SET @ 2.2.0
_NO_OFFSET = -1


class KeyGroupsState(NamedTuple):
    """KeyGroupsStateHandle, or KeyGroupsSavepointStateHandle if ``savepoint`` is True.

    ``byte_offsets`` are positions in the stream, one for each key group, starting with the key
    group ``first``. In raw state, -1 means that the key group is empty.
    """

    savepoint: bool
    first: int
    byte_offsets: tuple[int, ...]
    stream: StreamState


class IncrementalState(NamedTuple):
    """IncrementalRemoteKeyedStateHandle: RocksDB files by name, and ``meta``.

    ``meta`` is the stream that describes the states. The handle has ``key_groups`` key groups,
    starting with the key group ``first``.
    """

    first: int
    key_groups: int
    meta: StreamState
    files: tuple[tuple[str, StreamState], ...]


class ChangelogState(NamedTuple):
    """ChangelogStateBackendHandle, or a handle that contains only changes.

    ``base`` contains the handles of the materialized state, and ``change_count`` is the number of
    handles of later changes.
    """

    base: tuple[KeyGroupsState | IncrementalState, ...]
    change_count: int


KeyedHandle = KeyGroupsState | IncrementalState | ChangelogState


def read_keyed_handle(cursor: Cursor, field: str) -> KeyedHandle | None:
    """Read a KeyedStateHandle; return None for a null handle.

    Handles of changes are counted but not read, so the cursor may stop before the end of the
    handle.

    Raises:
        DecodeError: the handle is truncated or corrupt, or it has an unknown kind.
    """
    kind = cursor.u8(f"{field} type")
    match kind:
        case 0:
            return None
        case 8 | 14:
            return _read_changelog(cursor, field)
        case 9 | 10 | 13:
            return ChangelogState((), 1)
        case _:
            return _read_backends(cursor, field, kind)


def _read_backends(cursor: Cursor, field: str, kind: int) -> KeyGroupsState | IncrementalState:
    match kind:
        case 3 | 7 | 12:
            return _read_key_groups(cursor, field, kind)
        case 5 | 11:
            return _read_incremental(cursor, field, version2=kind == 11)
        case _:
            cursor.fail(
                f"unknown kind of keyed state handle: {kind}", field, ErrorKind.UNSUPPORTED, back=1
            )


def _stream(cursor: Cursor, field: str) -> StreamState:
    stream = read_stream(cursor, field)
    if stream is None:
        cursor.fail("keyed state without a stream", field)
    return stream


def _check_range(cursor: Cursor, field: str, first: int, count: int) -> None:
    if first < 0 or not 0 <= count <= _MAX_KEY_GROUPS - first:
        problem = f"{count} key groups from {first} on exceed the limit of {_MAX_KEY_GROUPS}"
        cursor.fail(problem, field)


def _read_key_groups(cursor: Cursor, field: str, kind: int) -> KeyGroupsState:
    first = cursor.i32(f"{field} first key group")
    count = cursor.count(f"{field} key groups", 8)
    _check_range(cursor, field, first, count)
    byte_offsets = cursor.i64s(count, f"{field} key group offsets")
    if min(byte_offsets, default=0) < _NO_OFFSET:
        cursor.fail("a key group cannot be at a negative position", field)
    stream = _stream(cursor, field)
    if kind == 12:
        cursor.skip_utf(f"{field} handle id")
    return KeyGroupsState(kind == 7, first, byte_offsets, stream)


def _read_changelog(cursor: Cursor, field: str) -> ChangelogState:
    first, count = cursor.i32(f"{field} first key group"), cursor.i32(f"{field} key groups")
    cursor.i64(f"{field} checkpointed size")
    base: list[KeyGroupsState | IncrementalState] = []
    part = f"{field} materialized"
    for _ in range(cursor.count(f"{part} handles", 1)):
        handle = _read_backends(cursor, part, cursor.u8(f"{part} type"))
        if isinstance(handle, IncrementalState):
            # After a restore with a different parallelism, the files may contain key groups of
            # other subtasks.
            start = max(first, handle.first)
            end = min(first + count, handle.first + handle.key_groups)
            handle = handle._replace(first=start, key_groups=max(0, end - start))
        base.append(handle)
    return ChangelogState(tuple(base), cursor.count(f"{field} handles of a log", 1))


def _read_incremental(cursor: Cursor, field: str, version2: bool) -> IncrementalState:
    cursor.i64(f"{field} checkpoint id")
    cursor.skip_utf(f"{field} backend id")
    first = cursor.i32(f"{field} first key group")
    count = cursor.i32(f"{field} key groups")
    _check_range(cursor, field, first, count)
    if version2:
        cursor.i64(f"{field} checkpointed size")
    meta = _stream(cursor, f"{field} meta")
    files = tuple(
        (cursor.utf(f"{part} local path"), _stream(cursor, part))
        for part in (f"{field} shared", f"{field} private")
        for _ in range(cursor.count(f"{part} files", 2 + MIN_STREAM_HANDLE_BYTES))
    )
    if version2:
        cursor.skip_utf(f"{field} handle id")
    return IncrementalState(first, count, meta, files)
