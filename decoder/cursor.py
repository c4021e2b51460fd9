"""Bounds-checked reading of Java's ``DataOutput`` primitives and of varints.

Layouts (``java.io.DataOutputStream`` @ JDK 17): integers are big-endian two's complement. A
boolean is one byte. ``UTF`` is a u16 length in bytes, followed by *modified* UTF-8. In modified
UTF-8, NUL is ``C0 80``, and a supplementary character is a surrogate pair with three bytes per
surrogate.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection
from typing import NamedTuple, NoReturn, TypeVar

from decoder.errors import DecodeError, ErrorKind

_T = TypeVar("_T")

_u16 = struct.Struct(">H").unpack_from
_i16 = struct.Struct(">h").unpack_from
_i32 = struct.Struct(">i").unpack_from
_i64 = struct.Struct(">q").unpack_from

# Bytes that modified UTF-8 never contains: F0 to F4 start a four-byte sequence of standard UTF-8,
# and F5 to FF do not occur in standard UTF-8 either.
_FOUR_BYTE_LEADS = bytes(range(0xF0, 0x100))


class Cursor:
    """A read position in a byte string; the position only moves forward, and never past the end.

    Every method that reads a field takes the field's name for error messages.
    """

    __slots__ = ("_data", "_end", "_origin", "_pos", "file")

    def __init__(
        self, data: bytes, file: str, start: int = 0, end: int | None = None, origin: int = 0
    ) -> None:
        """Read ``data`` from ``start`` to ``end``; ``origin`` is the file offset of ``data[0]``."""
        self._data = data
        self._origin = origin
        self._pos = start
        self._end = len(data) if end is None else end
        self.file = file

    # -- position and refusals ------------------------------------------------------------------

    @property
    def byte_offset(self) -> int:
        """The start of the next read, in bytes from the start of the file."""
        return self._origin + self._pos

    @property
    def remaining(self) -> int:
        """The number of remaining bytes."""
        return self._end - self._pos

    def fail(
        self, problem: str, field: str, kind: ErrorKind = ErrorKind.CORRUPT, back: int = 0
    ) -> NoReturn:
        """Raise DecodeError for the field that starts ``back`` bytes before this position."""
        raise DecodeError(
            kind, problem, file=self.file, field=field, byte_offset=self.byte_offset - back
        )

    def finish(self, label: str) -> None:
        """Refuse leftover bytes; ``label`` is the name of the part that was read."""
        if self._pos != self._end:
            self.fail(f"{self._end - self._pos} bytes are left over after the {label}", label)

    def attempt(self, read: Callable[[bytes, int, int], tuple[int, _T] | None]) -> _T | None:
        """Try a fast reader; return its value, or None if the bytes must be read field by field.

        Args:
            read: a function that takes (data, start, end) and returns (position, value). If it
                cannot read the bytes, it returns None, and the cursor does not move.
        """
        result = read(self._data, self._pos, self._end)
        if result is None:
            return None
        self._pos, value = result
        return value

    def skip_if(self, expected: bytes) -> bool:
        """Step over these bytes if they come next, and return True; otherwise, return False."""
        if not self._data.startswith(expected, self._pos, self._end):
            return False
        self._pos += len(expected)
        return True

    def check_version(
        self, version: int, label: str, known: Collection[int], *, back: int = 4
    ) -> None:
        """Refuse a version that is not ``known``; ``label`` is the name of the versioned part."""
        if version not in known:
            self.fail(
                f"{label} version {version} is not supported (supported: "
                f"{', '.join(map(str, known))})",
                f"{label} version",
                ErrorKind.UNSUPPORTED,
                back,
            )

    def record(self, start: int, value: object) -> None:
        """Record that ``value`` was read from ``start`` to here; only RecordingCursor stores it."""

    # -- primitives -----------------------------------------------------------------------------

    def _take(self, size: int, field: str) -> int:
        """Step over ``size`` bytes and return their start."""
        if size < 0:
            self.fail(f"a length cannot be negative: {size}", field)
        start = self._pos
        end = start + size
        if end > self._end:
            self._fail_short(size, field)
        self._pos = end
        return start

    def _fail_short(self, size: int, field: str) -> NoReturn:
        self.fail(
            f"the bytes end inside a field: {size} expected, {self._end - self._pos} left",
            field,
            ErrorKind.TRUNCATED,
        )

    # The most frequently called methods do not call _take, because the call would double their
    # time.

    def u8(self, field: str) -> int:
        start = self._pos
        if start >= self._end:
            self._fail_short(1, field)
        self._pos = start + 1
        return self._data[start]

    def i32(self, field: str) -> int:
        start = self._pos
        end = start + 4
        if end > self._end:
            self._fail_short(4, field)
        self._pos = end
        value: int = _i32(self._data, start)[0]
        return value

    def i64(self, field: str) -> int:
        start = self._pos
        end = start + 8
        if end > self._end:
            self._fail_short(8, field)
        self._pos = end
        value: int = _i64(self._data, start)[0]
        return value

    def i16(self, field: str) -> int:
        value: int = _i16(self._data, self._take(2, field))[0]
        return value

    def peek(self, field: str) -> int:
        """Return the next byte without stepping over it."""
        value = self.u8(field)
        self._pos -= 1
        return value

    def boolean(self, field: str) -> bool:
        value = self.u8(field)
        if value > 1:
            self.fail(f"a boolean is 0 or 1, not {value}", field, back=1)
        return value == 1

    def size(self, field: str) -> int:
        """Read an i64 that counts bytes of state; refuse a negative number."""
        value = self.i64(field)
        if value < 0:
            self.fail(f"a size cannot be negative: {value}", field, back=8)
        return value

    def count(self, field: str, item_bytes: int = 1) -> int:
        """Read an i32 that counts items of at least ``item_bytes`` (>= 1) each.

        The count is checked against the number of remaining bytes, so that the size of the input
        limits loops and allocations.
        """
        value = self.i32(field)
        if value < 0:
            self.fail(f"a count cannot be negative: {value}", field, back=4)
        if value * item_bytes > self._end - self._pos:
            self.fail(
                f"{value} items of at least {item_bytes} bytes cannot fit into "
                f"the {self._end - self._pos} bytes left",
                field,
                ErrorKind.TRUNCATED,
                back=4,
            )
        return value

    def version(self, label: str, known: Collection[int]) -> int:
        """Read an i32 version, and check it as ``check_version`` does."""
        value = self.i32(f"{label} version")
        if value not in known:
            self.check_version(value, label, known)
        return value

    def varint(self, field: str, bits: int = 32) -> int:
        """Read an unsigned varint of at most ``bits`` bits.

        Each byte contains 7 bits, lowest first; the high bit is set in all bytes except the last.
        """
        return self.rest_of_varint(field, 0, 0, bits)

    def rest_of_varint(self, field: str, value: int, shift: int, bits: int = 32) -> int:
        """Read the rest of a varint; ``value`` contains its lowest ``shift`` bits."""
        for _ in range(-(-bits // 7)):
            byte = self.u8(field)
            value |= (byte & 0x7F) << shift
            shift += 7
            if value >> bits:
                break
            if byte < 0x80:
                return value
        self.fail(f"a varint is longer than {bits} bits", field)

    def zigzag(self, field: str, bits: int = 32) -> int:
        """Read a signed integer of at most ``bits`` bits, written as a zig-zag varint."""
        value = self.varint(field, bits)
        return (value >> 1) ^ -(value & 1)

    # -- runs of bytes --------------------------------------------------------------------------

    def raw(self, size: int, field: str) -> bytes:
        start = self._take(size, field)
        return self._data[start : start + size]

    def skip(self, size: int, field: str) -> None:
        self._take(size, field)

    def blob(self, field: str) -> bytes:
        """Read ``i32 n`` and n bytes."""
        return self.raw(self.i32(field), field)

    def skip_blob(self, field: str) -> int:
        """Step over ``i32 n`` and n bytes; return n."""
        size = self.i32(field)
        self.skip(size, field)
        return size

    def frame(self, size: int, field: str) -> Cursor:
        """Step over ``size`` bytes; return a cursor over them."""
        start = self._take(size, field)
        return Cursor(self._data, self.file, start, start + size, self._origin)

    def rest(self, file: str) -> Cursor:
        """Return a cursor over the remaining bytes; its byte offsets start at 0."""
        return Cursor(self._data, file, self._pos, self._end, -self._pos)

    def i64s(self, count: int, field: str) -> tuple[int, ...]:
        """Read ``count`` i64s."""
        start = self._take(8 * count, field)
        return struct.unpack_from(f">{count}q", self._data, start)

    def utf(self, field: str) -> str:
        """Read a ``UTF``: u16 length, modified UTF-8.

        An unpaired surrogate in a Java string becomes U+FFFD.
        """
        size: int = _u16(self._data, self._take(2, field))[0]
        start = self._pos
        end = start + size
        if end > self._end:
            self._fail_short(size, field)
        self._pos = end
        data = self._data[start:end]
        if data.isascii():
            return data.decode("ascii")
        if data.translate(None, _FOUR_BYTE_LEADS) != data:
            self.fail("not modified UTF-8, because of a four-byte sequence", field, back=size)
        try:
            text = data.replace(b"\xc0\x80", b"\x00").decode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            self.fail(f"not modified UTF-8: {error.reason}", field, back=size)
        return text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")

    def skip_utf(self, field: str) -> None:
        """Step over a ``UTF`` without decoding it."""
        size: int = _u16(self._data, self._take(2, field))[0]
        self._take(size, field)


class ParsedSpan(NamedTuple):
    """A value, and the range of bytes from which it was read."""

    start: int
    end: int
    value: object


class RecordingCursor(Cursor):
    """A cursor that stores the values passed to ``record``, with their positions.

    Fast readers are not used, because they record nothing.
    """

    __slots__ = ("spans",)

    def __init__(self, data: bytes, file: str) -> None:
        super().__init__(data, file)
        self.spans: list[ParsedSpan] = []

    def attempt(self, read: Callable[[bytes, int, int], tuple[int, _T] | None]) -> _T | None:
        return None

    def record(self, start: int, value: object) -> None:
        self.spans.append(ParsedSpan(start, self.byte_offset, value))
