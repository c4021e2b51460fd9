"""The formats in which a savepoint is written.

The formats are the primitives of Java's ``DataOutput`` (java.io @ JDK 17), the handles in
``_metadata``, and the stream of an operator-state handle. ``decoder.metadata.handles`` and
``decoder.operator_state.stream`` describe the layouts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from decoder.metadata.model import NamedState, OperatorStateHandle
from decoder.snappy import compress_chunks
from migrate.extensions.savepoints.catalog import NAME_TOO_LONG
from migrate.model.errors import Refused

_LONGEST_UTF = 0xFFFF


def u8(value: int) -> bytes:
    return bytes((value,))


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def blob(data: bytes) -> bytes:
    """Return the length of the data, and then the data: ``i32 n`` and ``n`` bytes."""
    return i32(len(data)) + data


def utf(text: str) -> bytes:
    """Return a string in Java's ``UTF`` format: the length in bytes (``u16``), then modified UTF-8.

    Modified UTF-8 encodes NUL in two bytes, and encodes each UTF-16 code unit separately.

    Raises:
        Refused: the encoded string is longer than 65,535 bytes.
    """
    units = text.encode("utf-16-be", "surrogatepass")
    data = b"".join(
        chr(unit).encode("utf-8", "surrogatepass") if unit else b"\xc0\x80"
        for (unit,) in struct.iter_unpack(">H", units)
    )
    if len(data) > _LONGEST_UTF:
        raise Refused(NAME_TOO_LONG(length=len(data), limit=_LONGEST_UTF))
    return struct.pack(">H", len(data)) + data


# -- handles in _metadata --------------------------------------------------------------------------
#
# Flink reads these kinds of handles in every metadata version. For RELATIVE handles, Flink 1.11 or
# later is required. Source: MetadataV2V3SerializerBase @ Flink 2.2.0.

_INLINE, _PARTITIONABLE, _RELATIVE = 1, 4, 6
_PRESENT, _ABSENT = 1, 0


class Splice(NamedTuple):
    """The replacement for the bytes from ``start`` to ``end`` (exclusive)."""

    start: int
    end: int
    data: bytes


def spliced(data: bytes, splices: Iterable[Splice]) -> bytes:
    """Return the data with the replacements ``splices``, which must not overlap."""
    out = bytearray()
    end = 0
    for splice in sorted(splices):
        assert splice.start >= end, "two splices overlap"
        out += data[end : splice.start] + splice.data
        end = splice.end
    return bytes(out + data[end:])


def inline_state(name: str, data: bytes) -> bytes:
    """Return a BYTE_STREAM handle: ``u8 1, UTF name, i32 n``, and ``n`` bytes."""
    return u8(_INLINE) + utf(name) + blob(data)


def relative_file(path: str, size: int) -> bytes:
    """Return a RELATIVE handle: ``u8 6, UTF path, i64 size``."""
    return u8(_RELATIVE) + utf(path) + i64(size)


def operator_state(states: tuple[NamedState, ...], stream_handle: bytes) -> bytes:
    """Return a partitionable OperatorStateHandle, after an ``i32`` of 1 (handle present)."""
    named = b"".join(
        utf(state.name)
        + u8(state.mode.value)
        + i32(len(state.byte_offsets))
        + b"".join(map(i64, state.byte_offsets))
        for state in states
    )
    return i32(_PRESENT) + u8(_PARTITIONABLE) + i32(len(states)) + named + stream_handle


def no_operator_state() -> bytes:
    """Return the ``i32`` value 0, which represents a missing handle."""
    return i32(_ABSENT)


# -- an operator-state handle's stream, with new elements in one of its list states ----------------
#
# A compressed stream has a Snappy header before the first state or, in Flink 1.18.0 and 1.18.1,
# before each state.
#
# Source: DefaultOperatorStateBackendSnapshotStrategy, CompressibleFSDataInputStream @ Flink 1.18.1,
# 1.18.2, 1.19.3, 1.20.3, 2.2.0; snappy's framing_format.txt.

_FIRST_COMPRESSIBLE_VERSION = 6
_HEADER_CHUNK = 0xFF


class Kept(NamedTuple):
    """An unchanged element, by its index in the old state."""

    old_index: int


# An element of the new stream: an unchanged element, or the uncompressed bytes of a new element.
Element = Kept | bytes


class NewState(NamedTuple):
    """The new stream of a handle, and the handle's states with the new offsets of the elements."""

    data: bytes
    states: tuple[NamedState, ...]


class _Part(NamedTuple):
    """Bytes of a stream.

    ``state`` is the index of the state that has these bytes as an element; None if the bytes are
    not an element.
    """

    state: int | None
    data: bytes


def with_elements(
    data: bytes, handle: OperatorStateHandle, name: str, elements: Sequence[Element]
) -> NewState:
    """Return a handle's stream and states with new elements for the state ``name``.

    ``data`` is the complete old stream, as the decoder read it. The new elements start at the
    offset of the state's first old element. If the state had no elements, they are at the end of
    the stream.
    """
    changed = next(number for number, state in enumerate(handle.states) if state.name == name)
    compressed = int.from_bytes(data[:4], "big") >= _FIRST_COMPRESSIBLE_VERSION and data[4] == 1
    placed = sorted(
        (start, number, index)
        for number, state in enumerate(handle.states)
        for index, start in enumerate(state.byte_offsets)
    )
    starts = [start for start, _, _ in placed]
    slices = {
        (number, index): data[start:end]
        for (start, number, index), end in zip(placed, [*starts[1:], len(data)], strict=False)
    }
    old = [slices[changed, index] for index in range(len(handle.states[changed].byte_offsets))]
    headers = b""  # the headers between the changed state and the next one
    if compressed:
        split = [_without_headers(chunks) for chunks in old]
        old = [chunks for chunks, _ in split]
        headers = b"".join(after for _, after in split)
    new = [
        _Part(
            changed,
            old[element.old_index]
            if isinstance(element, Kept)
            else compress_chunks(element)
            if compressed
            else element,
        )
        for element in elements
    ]
    new.append(_Part(None, headers))

    parts = [_Part(None, data[: starts[0]] if starts else data)]
    for (number, index), element in slices.items():
        if number != changed:
            parts.append(_Part(number, element))
        elif index == 0:
            parts += new
    if not old:
        parts += new
    return _joined(parts, handle.states)


def _joined(parts: Sequence[_Part], states: Sequence[NamedState]) -> NewState:
    """Return the stream of these parts, and the states with the offsets of their elements."""
    offsets: list[list[int]] = [[] for _ in states]
    at = 0
    for number, data in parts:
        if number is not None:
            offsets[number].append(at)
        at += len(data)
    moved = (
        state._replace(byte_offsets=tuple(new)) for state, new in zip(states, offsets, strict=True)
    )
    return NewState(b"".join(data for _, data in parts), tuple(moved))


def _without_headers(chunks: bytes) -> tuple[bytes, bytes]:
    """Return the chunks before the first header, and the headers.

    A chunk consists of ``u8 kind``, a little-endian ``u24 length``, and data.
    """
    at = 0
    while at < len(chunks) and chunks[at] != _HEADER_CHUNK:
        at += 4 + int.from_bytes(chunks[at + 1 : at + 4], "little")
    return chunks[:at], chunks[at:]
