"""Java's ``DataOutput`` primitives: big-endian integers, and ``UTF`` (java.io @ JDK 17)."""

from __future__ import annotations

import struct

from migrate.errors import Refused

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
        raise Refused([f"a name of {len(data)} bytes: Flink's formats take {_LONGEST_UTF}"])
    return struct.pack(">H", len(data)) + data
