"""Handles of ``_metadata``, written; all that is not replaced stays byte for byte.

The layouts are those of ``decoder.metadata.handles``.

Source: MetadataV2V3SerializerBase @ Flink 2.2.0, which reads these kinds of handles in metadata of
every version (a relative file since Flink 1.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from decoder.metadata.model import NamedState
from migrate.savepoint.data_output import blob, i32, i64, i64s, u8, utf

_INLINE, _PARTITIONABLE, _RELATIVE = 1, 4, 6
_PRESENT, _ABSENT = 1, 0


class Splice(NamedTuple):
    """Bytes that stand in the place of others, from ``start`` to ``end``."""

    start: int
    end: int
    data: bytes


def spliced(data: bytes, splices: Iterable[Splice]) -> bytes:
    """The data with these splices, of which no two overlap."""
    out = bytearray()
    end = 0
    for splice in sorted(splices):
        assert splice.start >= end, "two splices overlap"
        out += data[end : splice.start] + splice.data
        end = splice.end
    return bytes(out + data[end:])


def inline_state(name: str, data: bytes) -> bytes:
    """BYTE_STREAM: ``u8 1, UTF name, i32 n``, n bytes."""
    return u8(_INLINE) + utf(name) + blob(data)


def relative_file(path: str, size: int) -> bytes:
    """RELATIVE: ``u8 6, UTF path, i64 size``."""
    return u8(_RELATIVE) + utf(path) + i64(size)


def operator_state(states: tuple[NamedState, ...], stream: bytes) -> bytes:
    """An OperatorStateHandle with the ``i32`` before it: partitionable, over a stream handle."""
    named = b"".join(
        utf(state.name)
        + u8(state.mode.value)
        + i32(len(state.byte_offsets))
        + i64s(state.byte_offsets)
        for state in states
    )
    return i32(_PRESENT) + u8(_PARTITIONABLE) + i32(len(states)) + named + stream


def no_operator_state() -> bytes:
    """That there is none."""
    return i32(_ABSENT)
