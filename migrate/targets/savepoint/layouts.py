"""The formats that a savepoint is written in.

Java's ``DataOutput`` primitives (java.io @ JDK 17), handles of ``_metadata``, and the stream of an
operator-state handle. The layouts are those of ``decoder.metadata.handles`` and
``decoder.operator_state.stream``. What is not replaced stays byte for byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from decoder.metadata.model import NamedState, OperatorStateHandle
from decoder.snappy import compress_chunks
from migrate.model.errors import Refused

_LONGEST_UTF = 0xFFFF


def u8(value: int) -> bytes:
    return bytes((value,))


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def blob(data: bytes) -> bytes:
    """Return ``i32 n`` and n bytes."""
    return i32(len(data)) + data


def utf(text: str) -> bytes:
    """Return ``UTF``: u16 length, modified UTF-8 (NUL as two bytes, each UTF-16 unit by itself).

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
    """Bytes that replace those from ``start`` to ``end``."""

    start: int
    end: int
    data: bytes


def spliced(data: bytes, splices: Iterable[Splice]) -> bytes:
    """Return the data with these splices, of which no two overlap."""
    out = bytearray()
    end = 0
    for splice in sorted(splices):
        assert splice.start >= end, "two splices overlap"
        out += data[end : splice.start] + splice.data
        end = splice.end
    return bytes(out + data[end:])


def inline_state(name: str, data: bytes) -> bytes:
    """Return BYTE_STREAM: ``u8 1, UTF name, i32 n``, n bytes."""
    return u8(_INLINE) + utf(name) + blob(data)


def relative_file(path: str, size: int) -> bytes:
    """Return RELATIVE: ``u8 6, UTF path, i64 size``."""
    return u8(_RELATIVE) + utf(path) + i64(size)


def operator_state(states: tuple[NamedState, ...], stream: bytes) -> bytes:
    """Return an OperatorStateHandle and the ``i32`` before it: partitionable, over a stream."""
    named = b"".join(
        utf(state.name)
        + u8(state.mode.value)
        + i32(len(state.byte_offsets))
        + b"".join(map(i64, state.byte_offsets))
        for state in states
    )
    return i32(_PRESENT) + u8(_PARTITIONABLE) + i32(len(states)) + named + stream


def no_operator_state() -> bytes:
    """Return the ``i32`` of a missing handle."""
    return i32(_ABSENT)


# -- an operator-state handle's stream, with other elements of one of its list states --------------
#
# Bytes after an element that has grown move, and their offsets with them. In a compressed stream
# Snappy's header is before the first state; Flink 1.18.0 and 1.18.1 write one before each state,
# between two elements.
#
# Source: DefaultOperatorStateBackendSnapshotStrategy, CompressibleFSDataInputStream @ Flink 1.18.1,
# 1.18.2, 1.19.3, 1.20.3, 2.2.0; snappy's framing_format.txt.

_FIRST_COMPRESSIBLE_VERSION = 6
_HEADER_CHUNK = 0xFF


class Kept(NamedTuple):
    """The element of this number, unchanged."""

    number: int


# An element: unchanged, or its bytes before compression.
Element = Kept | bytes


def with_elements(
    data: bytes, handle: OperatorStateHandle, name: str, elements: Sequence[Element]
) -> tuple[bytes, tuple[NamedState, ...]]:
    """Return a handle's stream with other elements of one state, and the states' new offsets.

    Args:
        data: the whole stream, which the decoder has read.
        handle: the handle of the stream.
        name: the state.
        elements: all of its elements.
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
    headers = b""  # after the state, before the next one begins
    if compressed:
        for index in range(len(handle.states[changed].byte_offsets)):
            old[changed, index], after = _without_headers(old[changed, index])
            headers += after
    parts = [
        old[changed, element.number]
        if isinstance(element, Kept)
        else compress_chunks(element)
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
    """Split chunks (``u8 kind, u24 length`` little-endian, data) from the headers after them."""
    at = 0
    while at < len(chunks) and chunks[at] != _HEADER_CHUNK:
        at += 4 + int.from_bytes(chunks[at + 1 : at + 4], "little")
    return chunks[:at], chunks[at:]
