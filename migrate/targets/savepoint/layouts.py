"""What a savepoint is written with: Java's ``DataOutput`` primitives (java.io @ JDK 17), handles
of ``_metadata``, and the stream that an operator-state handle points at.

The layouts are those of ``decoder.metadata.handles`` and ``decoder.operator_state.stream``. All
that is not replaced stays byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from decoder.metadata.model import NamedState, OperatorStateHandle
from migrate.model.errors import Refused

_LONGEST_UTF = 0xFFFF


def u8(value: int) -> bytes:
    return bytes((value,))


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def i64s(values: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(values)}q", *values)


def blob(data: bytes) -> bytes:
    """``i32 n`` and n bytes."""
    return i32(len(data)) + data


def utf(text: str) -> bytes:
    """``UTF``: u16 length, modified UTF-8 (NUL as two bytes, each UTF-16 unit by itself).

    Raises:
        Refused: more than 65,535 bytes.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    data = b"".join(
        chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80"
        for (unit,) in struct.iter_unpack(">H", units)
    )
    if len(data) > _LONGEST_UTF:
        raise Refused(f"a name of {len(data)} bytes: Flink's formats take {_LONGEST_UTF}")
    return struct.pack(">H", len(data)) + data


# -- handles of _metadata --------------------------------------------------------------------------
#
# Source: MetadataV2V3SerializerBase @ Flink 2.2.0, which reads these kinds of handles in metadata
# of every version (a relative file since Flink 1.11).

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


# -- an operator-state handle's stream, with other elements of one of its list states --------------
#
# What follows an element that has grown moves, and its offsets with it. Of a compressed stream,
# Snappy's header stands before the first state; Flink 1.18.0 and 1.18.1 put one before each, which
# then lies between two elements.
#
# Source: DefaultOperatorStateBackendSnapshotStrategy, CompressibleFSDataInputStream @ Flink 1.18.1,
# 1.18.2, 1.19.3, 1.20.3, 2.2.0; snappy's framing_format.txt.

_FIRST_COMPRESSIBLE_VERSION = 6
_UNCOMPRESSED_CHUNK = 0x01
_HEADER_CHUNK = 0xFF
# The most that one chunk of a framed stream may hold.
_CHUNK_BYTES = 65_536
_CRC32C = 0x82F63B78  # Castagnoli's polynomial, reversed


class Kept(NamedTuple):
    """The element of this number, as it is."""

    number: int


# An element: kept, or its bytes as they stand in a stream that is not compressed.
Element = Kept | bytes


def with_elements(
    data: bytes, handle: OperatorStateHandle, name: str, elements: Sequence[Element]
) -> tuple[bytes, tuple[NamedState, ...]]:
    """A handle's stream with these elements of the state ``name``, and its states' offsets in it.

    Args:
        data: the whole stream, which the decoder has read.
    """
    placed = sorted(
        (start, number, index)
        for number, state in enumerate(handle.states)
        for index, start in enumerate(state.byte_offsets)
    )
    starts = [start for start, _, _ in placed]
    ends = [*starts[1:], len(data)]
    old = {
        (number, index): data[start:end]
        for (start, number, index), end in zip(placed, ends, strict=False)
    }
    changed = next(n for n, state in enumerate(handle.states) if state.name == name)
    compressed = int.from_bytes(data[:4], "big") >= _FIRST_COMPRESSIBLE_VERSION and data[4] == 1
    # What follows the state, before the next one begins.
    headers = b""
    if compressed:
        for index in range(len(handle.states[changed].byte_offsets)):
            chunks, after = _without_headers(old[changed, index])
            old[changed, index] = chunks
            headers += after
    parts = [
        old[changed, element.number]
        if isinstance(element, Kept)
        else _chunks(element)
        if compressed
        else element
        for element in elements
    ]
    out = bytearray(data[: starts[0]] if starts else data)
    offsets: list[list[int]] = [[] for _ in handle.states]

    def put(number: int, part: bytes) -> None:
        offsets[number].append(len(out))
        out.extend(part)

    for _, number, index in placed:
        if number != changed:
            put(number, old[number, index])
        elif index == 0:
            for part in parts:
                put(changed, part)
            out.extend(headers)
    if not handle.states[changed].byte_offsets:
        for part in parts:
            put(changed, part)
    states = tuple(
        state._replace(byte_offsets=tuple(new))
        for state, new in zip(handle.states, offsets, strict=True)
    )
    return bytes(out), states


def _without_headers(chunks: bytes) -> tuple[bytes, bytes]:
    """Chunks (``u8 kind, u24 length`` little-endian, data), and the headers after them."""
    at = 0
    while at < len(chunks) and chunks[at] != _HEADER_CHUNK:
        at += 4 + int.from_bytes(chunks[at + 1 : at + 4], "little")
    return chunks[:at], chunks[at:]


def _chunks(element: bytes) -> bytes:
    """An element in chunks that are not compressed: ``01``, ``u24 length`` (little-endian), masked
    CRC-32C, data."""
    pieces = (element[at : at + _CHUNK_BYTES] for at in range(0, len(element), _CHUNK_BYTES))
    return b"".join(
        u8(_UNCOMPRESSED_CHUNK)
        + (4 + len(piece)).to_bytes(3, "little")
        + _masked(_crc32c(piece)).to_bytes(4, "little")
        + piece
        for piece in pieces
    )


def _masked(checksum: int) -> int:
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _crc32c(data: bytes) -> int:
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            checksum = (checksum >> 1) ^ (_CRC32C if checksum & 1 else 0)
    return checksum ^ 0xFFFFFFFF
