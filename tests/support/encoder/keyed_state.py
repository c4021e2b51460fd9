"""Encode streams of keyed state for canonical savepoints, and for the heap backend's checkpoints.

The layouts follow `KeyedBackendSerializationProxy`, `FullSnapshotAsyncWriter`,
`HeapSnapshotStrategy` and `CopyOnWriteStateMapSnapshot` (flink-runtime 1.20.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_values import ListOf, MapOf, Serializer

_PROXY_VERSION = 6
_SNAPSHOT_VERSION = 2
_KEY_VALUE = 0
# With this bit in the first byte of a key, two bytes follow the entry. They contain the id of the
# next state, or the end of the key group.
_META_DATA_FOLLOWS = 0x80
_END_OF_KEY_GROUP = 0xFFFF
_SEPARATOR = b","
_UNSIGNED = 0xFFFFFFFF

Kind: TypeAlias = Literal["VALUE", "LIST", "MAP", "REDUCING", "AGGREGATING"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The value of a state for a key and a namespace. A list or a map is one value."""

    key_group: int
    key: Any
    namespace: Any
    value: Any


@dataclass(frozen=True, slots=True)
class KeyedState:
    """A state; `value` is the serializer of a complete value, such as `ListOf` for a list state."""

    name: str
    kind: Kind
    namespace: Serializer
    value: Serializer
    entries: tuple[Entry, ...]


def encode_head(key: Serializer, states: Sequence[KeyedState], compressed: bool = False) -> bytes:
    """Encode the head of a stream of keyed state."""
    out = DataOutput()
    out.i32(_PROXY_VERSION)
    out.boolean(compressed)
    _serializer(out, key)
    out.i16(len(states))
    for state in states:
        out.utf(state.name)
        out.i32(_KEY_VALUE)
        out.i32(1)
        out.utf("KEYED_STATE_TYPE")
        out.utf(state.kind)
        out.i32(2)
        for role, serializer in (
            ("NAMESPACE_SERIALIZER", state.namespace),
            ("VALUE_SERIALIZER", state.value),
        ):
            out.utf(role)
            _serializer(out, serializer)
    return out.to_bytes()


def _serializer(out: DataOutput, serializer: Serializer) -> None:
    out.i32(_SNAPSHOT_VERSION)
    serializer.write_snapshot(out)


def encode_canonical(
    key: Serializer, states: Sequence[KeyedState], key_groups: range, max_parallelism: int
) -> tuple[bytes, tuple[int, ...]]:
    """Encode a canonical savepoint's stream; return it with each key group's offset (0: empty)."""
    out = DataOutput()
    out.raw(encode_head(key, states))
    offsets = []
    for key_group in key_groups:
        pairs = [
            (number, pair)
            for number, state in enumerate(states)
            for entry in _entries(state, key_group)
            for pair in _pairs(key, state, entry, wide=max_parallelism > 128)
        ]
        offsets.append(out.position if pairs else 0)
        if pairs:
            out.raw(pairs[0][0].to_bytes(2, "big"))
        following_states = [number for number, _ in pairs[1:]] + [_END_OF_KEY_GROUP]
        # Not strict, because `following_states` has one item even if there are no pairs.
        for (number, (name, value)), following in zip(pairs, following_states, strict=False):
            last = following != number
            out.sized(bytes((name[0] | _META_DATA_FOLLOWS,)) + name[1:] if last else name)
            out.sized(value)
            if last:
                out.raw(following.to_bytes(2, "big"))
    return out.to_bytes(), tuple(offsets)


def _pairs(
    key: Serializer, state: KeyedState, entry: Entry, wide: bool
) -> Iterator[tuple[bytes, bytes]]:
    """Yield keys and values as RocksDB stores them; a map state has a pair for each map key."""
    head = DataOutput()
    head.raw(entry.key_group.to_bytes(2 if wide else 1, "big"))
    both_vary = key.length < 0 and state.namespace.length < 0
    for serializer, item in ((key, entry.key), (state.namespace, entry.namespace)):
        start = head.position
        serializer.write(head, item)
        if both_vary:
            head.raw(_length(head.position - start))
    if isinstance(state.value, MapOf) and state.kind == "MAP":
        for map_key, item in entry.value.items():
            name, value = DataOutput(), DataOutput()
            name.raw(head.to_bytes())
            state.value.key.write(name, map_key)
            state.value.write_value(value, item)
            yield name.to_bytes(), value.to_bytes()
        return
    value = DataOutput()
    if isinstance(state.value, ListOf) and state.kind == "LIST":
        for index, item in enumerate(entry.value):
            value.raw(_SEPARATOR if index else b"")
            state.value.element.write(value, item)
    else:
        state.value.write(value, entry.value)
    yield head.to_bytes(), value.to_bytes()


def _length(length: int) -> bytes:
    """Encode a length in as few bytes as possible, low byte first."""
    return length.to_bytes(max(1, (length.bit_length() + 7) // 8), "little")


def encode_heap(
    key: Serializer, states: Sequence[KeyedState], key_groups: range
) -> tuple[bytes, tuple[int, ...]]:
    """Encode a stream of the heap backend; return it with the offset of each key group."""
    out = DataOutput()
    out.raw(encode_head(key, states))
    offsets = []
    for key_group in key_groups:
        offsets.append(out.position)
        out.i32(key_group)
        for number, state in enumerate(states):
            entries = list(_entries(state, key_group))
            out.i16(number)
            out.i32(len(entries))
            for entry in entries:
                state.namespace.write(out, entry.namespace)
                key.write(out, entry.key)
                state.value.write(out, entry.value)
    return out.to_bytes(), tuple(offsets)


def _entries(state: KeyedState, key_group: int) -> Iterable[Entry]:
    return (entry for entry in state.entries if entry.key_group == key_group)


def key_group_of(key: int | str, max_parallelism: int) -> int:
    """Return `KeyGroupRangeAssignment.assignToKeyGroup` for a Long or a String."""
    if isinstance(key, int):
        code = (key ^ key >> 32) & _UNSIGNED
    else:
        code = 0
        for unit in key.encode("utf-16-be", "surrogatepass").hex(" ", 2).split():
            code = (31 * code + int(unit, 16)) & _UNSIGNED
    return _murmur(code) % max_parallelism


def _murmur(code: int) -> int:
    """Return `MathUtils.murmurHash` of one block of four bytes; it is never negative."""
    code = _rotated(code * 0xCC9E2D51 & _UNSIGNED, 15) * 0x1B873593 & _UNSIGNED
    code = (_rotated(code, 13) * 5 + 0xE6546B64 & _UNSIGNED) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        code = (code ^ code >> shift) * factor & _UNSIGNED
    code ^= code >> 16
    signed = code - (1 << 32) if code >> 31 else code
    return abs(signed) if signed != -(1 << 31) else 0


def _rotated(code: int, bits: int) -> int:
    return (code << bits | code >> 32 - bits) & _UNSIGNED
