"""Java's `DataOutput`: big-endian primitives and modified UTF-8."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TypeVar

_Item = TypeVar("_Item")

# `writeUTF` stores the length in an unsigned short.
_LONGEST_UTF = 0xFFFF


class DataOutput:
    """A growing byte string, in the format of `java.io.DataOutputStream`."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    @property
    def position(self) -> int:
        return len(self._bytes)

    def to_bytes(self) -> bytes:
        return bytes(self._bytes)

    def boolean(self, value: bool) -> None:
        self.i8(1 if value else 0)

    def i8(self, value: int) -> None:
        self._bytes += struct.pack(">b", value)

    def i16(self, value: int) -> None:
        self._bytes += struct.pack(">h", value)

    def i32(self, value: int) -> None:
        self._bytes += struct.pack(">i", value)

    def i64(self, value: int) -> None:
        self._bytes += struct.pack(">q", value)

    def utf(self, value: str) -> None:
        encoded = modified_utf8(value)
        if len(encoded) > _LONGEST_UTF:
            raise ValueError(f"writeUTF takes {_LONGEST_UTF} bytes, not {len(encoded)}")
        self._bytes += struct.pack(">H", len(encoded)) + encoded

    def raw(self, value: bytes) -> None:
        self._bytes += value

    def sized(self, value: bytes) -> None:
        """Write an `i32` length and that many bytes."""
        self.i32(len(value))
        self.raw(value)

    def counted(self, items: Sequence[_Item], write: Callable[[_Item], None]) -> None:
        """Write an `i32` count and that many items."""
        self.i32(len(items))
        for item in items:
            write(item)


def modified_utf8(value: str) -> bytes:
    """Return the bytes of `DataOutput.writeUTF` after its length.

    The bytes differ from UTF-8 in two cases: NUL has two bytes, and a character beyond U+FFFF is
    written as its two UTF-16 surrogates, of three bytes each.
    """
    encoded = bytearray()
    units = struct.iter_unpack(">H", value.encode("utf-16-be", errors="surrogatepass"))
    for (unit,) in units:
        if 0 < unit < 0x80:
            encoded.append(unit)
        elif unit < 0x800:
            encoded += bytes((0xC0 | unit >> 6, 0x80 | unit & 0x3F))
        else:
            encoded += bytes((0xE0 | unit >> 12, 0x80 | unit >> 6 & 0x3F, 0x80 | unit & 0x3F))
    return bytes(encoded)
