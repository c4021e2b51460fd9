"""Key groups in the heap backend's own format: checkpoints and native savepoints.

A key group starts with its ``i32`` number, which is never compressed. Each state listed in the
stream's head follows, in any order, as ``i16`` state number, ``i32 n`` x entry. An entry of
key-value state consists of namespace, key, and value, each in its serializer's format (the value of
a LIST or a MAP starts with ``i32 n``). An entry of a priority queue is a timer. If the stream is
compressed, each state is a separate Snappy stream.

No length precedes an entry or a value, so the rest of a key group after an unreadable value is
unreadable as well.

Source: HeapSnapshotStrategy, CopyOnWriteStateMapSnapshot, HeapRestoreOperation @ Flink 2.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from struct import error as struct_error
from typing import Any

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.entries import (
    BATCH,
    BATCH_BYTES,
    Entry,
    Readers,
    fail_truncated,
    new_entry,
    split_ttl,
    too_large_entry,
    with_location,
)
from decoder.keyed_state.stream_head import StateInfo, StateKind

_i32 = Struct(">i").unpack_from
_u16 = Struct(">H").unpack_from

_KEY_GROUP_BYTES = 4
# The number of bytes before a state's entries: the state's number and the entry count.
_STATE_HEADER_BYTES = 6
_TIMESTAMP_BYTES = 8


def read_heap_batches(
    states: Sequence[Readers],
    number: int,
    head_error: DecodeError | None,
    data: bytes,
    key_group: int,
    label: str,
) -> Iterator[list[Entry]]:
    """Yield one state's entries in a key group, in batches.

    Args:
        states: the states in the head.
        number: the index of the state in ``states``.
        head_error: the reason that the head could not be read to its end, or None.
        data: the key group, decompressed and without its number.
        key_group: the key group's number.
        label: the key group's name in error messages.

    Raises:
        DecodeError: the bytes are corrupt, or a value of this or an earlier state cannot be read.
    """
    begun = False
    for state_number, entries in read_states(
        states, data, key_group, label, states[number].info, head_error
    ):
        if state_number != number:
            if begun:  # do not read the following states, which may be unreadable
                break
            continue
        begun = True
        if entries:
            yield entries


def read_states(
    states: Sequence[Readers],
    data: bytes,
    key_group: int,
    label: str,
    target: StateInfo | None,
    head_error: DecodeError | None,
) -> Iterator[tuple[int, list[Entry]]]:
    """Yield (state number, batch of entries) for all states of the key group.

    An empty batch marks the start of each state. ``target`` is the state that the caller reads, or
    None for all. If an earlier state is unreadable, the error reports that ``target`` is blocked.
    For the other arguments, see ``read_heap_batches``.
    """
    position = 0
    remaining = set(range(len(states)))
    readers: Readers | None = None
    start = 0
    try:
        while remaining:
            start = position
            number = _u16(data, position)[0]
            readers = None
            if number >= len(states) and head_error is not None:
                # The list of states at the start of the file was read up to the state with the
                # unknown serializer, which is the last item of ``states``.
                readers = states[-1]
                yield len(states) - 1, []
                raise DecodeError(ErrorKind.UNSUPPORTED, head_error.problem)
            if number not in remaining:
                raise DecodeError(
                    ErrorKind.CORRUPT, f"state {number} of {len(states)} is unknown or repeated"
                )
            remaining.remove(number)
            readers = states[number]
            count = _i32(data, position + 2)[0]
            position += 6
            if not 0 <= count <= len(data) - position:
                raise IndexError
            yield number, []
            read = _choose_reader(readers)
            entries: list[Entry] = []
            batch_start = position
            for _ in range(count):
                start = position
                position = read(readers, data, position, key_group, entries)
                if len(entries) >= BATCH or position - batch_start >= BATCH_BYTES:
                    yield number, entries
                    entries, batch_start = [], position
            yield number, entries
    except (IndexError, struct_error):
        fail_truncated(label, readers.info.name if readers else "?", start)
    except DecodeError as error:
        name = readers.info.name if readers else "?"
        if error.kind is ErrorKind.UNSUPPORTED and target is not None and target.name != name:
            raise DecodeError(
                error.kind, blocked_reason(name, error.problem), file=label
            ) from error
        raise with_location(error, label, name, start) from error
    if position != len(data):
        if head_error is not None:  # the rest belongs to unlisted states
            raise DecodeError(ErrorKind.UNSUPPORTED, head_error.problem, file=label)
        raise DecodeError(
            ErrorKind.CORRUPT,
            f"{len(data) - position} bytes are left over after the key group",
            file=label,
            byte_offset=position,
        )


def blocked_reason(name: str, problem: str) -> str:
    """Return the reason why a state that follows the unreadable state ``name`` cannot be read."""
    return (
        f"it is stored after the state {name!r}; that state cannot be read ({problem}), and "
        "its length is not stored; take a savepoint in canonical format"
    )


# Reads one stored entry, appends it to the list (a MAP as one ``Entry`` per pair), and returns the
# stored entry's end.
_Read = Callable[[Readers, bytes, int, int, list[Entry]], int]


def _choose_reader(readers: Readers) -> _Read:
    match readers.info.kind:
        case StateKind.TIMERS:
            return _read_timer
        case StateKind.MAP:
            return _read_map
        case StateKind.LIST:
            return _read_list
        case _:
            return _read_simple if readers.simple else _read_value


def _read_simple(
    readers: Readers, data: bytes, position: int, key_group: int, out: list[Entry]
) -> int:
    """Read an entry of a ``simple`` state, with a one-byte namespace."""
    start = position + 1
    key, position = readers.key(data, start)
    readers.check_key_group(key_group, data, start, key)
    value, position = readers.value(data, position)
    out.append(new_entry((key_group, key, None, None, value, None)))
    return position


def _read_key_value(
    readers: Readers, data: bytes, position: int, key_group: int
) -> tuple[Any, Any, Any, int]:
    """Read a namespace, a key, and the value."""
    namespace, position = readers.namespace(data, position)
    start = position
    key, position = readers.key(data, position)
    readers.check_key_group(key_group, data, start, key)
    value, position = readers.whole_value(data, position)
    return namespace, key, value, position


def _read_value(
    readers: Readers, data: bytes, position: int, key_group: int, out: list[Entry]
) -> int:
    namespace, key, value, position = _read_key_value(readers, data, position, key_group)
    out.append(Entry(key_group, key, namespace, None, *split_ttl(readers, value)))
    return position


def _read_list(
    readers: Readers, data: bytes, position: int, key_group: int, out: list[Entry]
) -> int:
    """Read a LIST; omit an empty LIST, because the canonical format does not store it."""
    namespace, key, value, position = _read_key_value(readers, data, position, key_group)
    if value:
        out.append(Entry(key_group, key, namespace, None, *split_ttl(readers, value)))
    return position


def _read_map(
    readers: Readers, data: bytes, position: int, key_group: int, out: list[Entry]
) -> int:
    namespace, key, pairs, position = _read_key_value(readers, data, position, key_group)
    for map_key, value in pairs:
        out.append(Entry(key_group, key, namespace, map_key, *split_ttl(readers, value)))
    return position


def _read_timer(
    readers: Readers, data: bytes, position: int, key_group: int, out: list[Entry]
) -> int:
    (timestamp, key, namespace), end = readers.whole_value(data, position)
    readers.check_key_group(key_group, data, position + _TIMESTAMP_BYTES, key)
    out.append(Entry(key_group, key, namespace, None, timestamp, None))
    return end


def split_heap_key_group(
    states: Sequence[Readers],
    blocks: Iterable[bytes],
    target: int,
    key_group: int,
    max_bytes: int,
    label: str,
) -> Iterator[bytes]:
    """Split a key group into smaller ones that contain only the entries of the state ``target``.

    The only way to find the end of an entry is to read the entry. If an entry or a state's header
    cannot be read, the split ends with a smaller key group that starts with this entry or header.
    Reading that key group raises the error.

    Args:
        states: the states in the head.
        blocks: the key group, decompressed and without its number.
        target: the index of the state in ``states``.
        key_group: the key group's number.
        max_bytes: the size of the largest entry to read.
        label: the key group's name in error messages.

    Raises:
        DecodeError: the bytes are corrupt, or an entry is larger than ``max_bytes``.
    """
    blocks = iter(blocks)
    others = b"".join(_state_header(number, 0) for number in range(len(states)) if number != target)
    remaining = set(range(len(states)))
    data = b""
    position = 0
    while remaining:
        while (
            len(data) - position < _STATE_HEADER_BYTES and (block := next(blocks, None)) is not None
        ):
            data, position = data[position:] + block, 0
        number = _u16(data, position)[0] if len(data) - position >= _STATE_HEADER_BYTES else -1
        if number in range(len(states)) and number not in remaining:
            raise DecodeError(
                ErrorKind.CORRUPT,
                f"state {number} of {len(states)} is unknown or repeated",
                file=label,
            )
        if target not in remaining and number >= 0:
            return  # do not read the following states, which may be unreadable
        count = _i32(data, position + 2)[0] if number in remaining else -1
        if count < 0:
            yield data[position:]
            return
        remaining.remove(number)
        position += _STATE_HEADER_BYTES
        read = _choose_reader(states[number])
        # The start of the entries that were read but not yet yielded, and their number.
        first, done = position, 0
        while done < count:
            try:
                end = read(states[number], data, position, key_group, [])
                if end == position:
                    raise IndexError  # an entry has at least one byte
            except (IndexError, struct_error, DecodeError) as error:
                if done and number == target:
                    yield b"".join(
                        (_state_header(number, done), memoryview(data)[first:position], others)
                    )
                count, done = count - done, 0
                data, first, position = data[position:], 0, 0
                kind = error.kind if isinstance(error, DecodeError) else None
                too_large = len(data) > max_bytes
                if too_large and kind is None:
                    raise too_large_entry(max_bytes, label) from error
                # Errors other than UNSUPPORTED are not final, because some readers raise them if
                # the bytes end too early.
                given_up = too_large or kind is ErrorKind.UNSUPPORTED
                more = [] if given_up else list(_take_blocks(blocks, len(data)))
                if not more:
                    yield _state_header(number, count) + data
                    return
                data = b"".join((data, *more))
                more = []  # free this copy of the bytes
            else:
                position = end
                done += 1
        if done and number == target:
            yield b"".join((_state_header(number, done), memoryview(data)[first:position], others))
    if position < len(data) or next(blocks, None):
        raise DecodeError(ErrorKind.CORRUPT, "bytes are left over after the key group", file=label)


def _take_blocks(blocks: Iterator[bytes], size: int) -> Iterator[bytes]:
    """Yield blocks until their total size exceeds ``size`` bytes, or until no block is left.

    ``size`` is the number of bytes that the caller already has. Each call therefore at least
    doubles this number, and a long entry is reread only a few times.
    """
    while size >= 0 and (block := next(blocks, None)) is not None:
        yield block
        size -= len(block)


def _state_header(number: int, count: int) -> bytes:
    """Return the bytes before a state's entries: the state's number and the entry count."""
    return number.to_bytes(2, "big") + count.to_bytes(4, "big", signed=True)


def has_key_group(data: bytes) -> bool:
    """Return whether the data is long enough for the key group's number."""
    return len(data) >= _KEY_GROUP_BYTES


def strip_key_group(data: bytes, key_group: int, label: str) -> bytes:
    """Return the bytes after the key group's number; refuse a different number."""
    if not has_key_group(data) or _i32(data)[0] != key_group:
        raise DecodeError(
            ErrorKind.CORRUPT, f"key group {key_group} does not start with its number", file=label
        )
    return data[_KEY_GROUP_BYTES:]
