"""Strings in Flink's own encoding, which is not UTF-8.

A string is a varint with the number of UTF-16 units plus one (0 for null), followed by each unit as
a varint of 1 to 3 bytes. A varint has 7 bits per byte, lowest first, and the high bit is set in all
bytes except the last. A StringValue is never null, so it starts with the number of units itself,
without one added.

Source: org.apache.flink.types.StringValue @ Flink 2.2.0.
"""

from __future__ import annotations

import re

from decoder.errors import DecodeError, ErrorKind

_MAX_LENGTH_BYTES = 5
# A unit: up to two bytes with the high bit set, then one byte without the high bit.
_UNIT = re.compile(rb"[\x80-\xff]{0,2}[\x00-\x7f]")


class ReplacedText(str):
    """Text in which U+FFFD replaces invalid characters; different texts can become equal."""

    __slots__ = ()


def decode_text(data: bytes | bytearray, encoding: str) -> str:
    """Decode a string; return it as ReplacedText if it has invalid characters."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return ReplacedText(data.decode(encoding, "replace"))


def read_string(data: bytes, position: int) -> tuple[str | None, int]:
    """Read the string at ``position``, or None for null; return the string and its end.

    Raises:
        DecodeError: the length or a UTF-16 unit is corrupt.
        IndexError: the string continues past the end of ``data``.
    """
    count = data[position]
    position += 1
    if count == 0:
        return None, position
    if count >= 0x80:
        count, position = _rest_of_count(data, position, count & 0x7F)
    end = position + count - 1
    text = data[position:end]
    if text.isascii():
        if len(text) != count - 1:
            raise IndexError
        return text.decode("ascii"), end
    return _units(data, position, count - 1)


def read_string_value(data: bytes, position: int) -> tuple[str, int]:
    """Read the StringValue at ``position``; return the value and its end.

    Raises:
        DecodeError, IndexError: as in ``read_string``.
    """
    count = data[position]
    position += 1
    if count >= 0x80:
        count, position = _rest_of_count(data, position, count & 0x7F)
    return _units(data, position, count)


def _rest_of_count(data: bytes, position: int, count: int) -> tuple[int, int]:
    """Read the rest of a varint of up to 31 bits; refuse a varint with unnecessary bytes."""
    for shift in range(7, 7 * _MAX_LENGTH_BYTES, 7):
        byte = data[position]
        position += 1
        count |= (byte & 0x7F) << shift
        if byte < 0x80:
            if count >= 1 << 31 or byte == 0:
                break
            return count, position
    raise DecodeError(ErrorKind.CORRUPT, "the length of a string is not one that Flink writes")


def _units(data: bytes, position: int, count: int) -> tuple[str, int]:
    if count > len(data) - position:
        raise IndexError
    units = bytearray()
    match = _UNIT.match
    for _ in range(count):
        unit_match = match(data, position)
        if unit_match is None:
            if len(data) - position < 3:
                raise IndexError
            raise DecodeError(ErrorKind.CORRUPT, "a character of a string takes more than 16 bits")
        encoded = unit_match[0]
        position += len(encoded)
        unit = encoded[0] & 0x7F
        if len(encoded) > 1:
            unit |= (encoded[1] & 0x7F) << 7
            if len(encoded) > 2:
                unit |= encoded[2] << 14
        if unit > 0xFFFF or (len(encoded) > 1 and encoded[-1] == 0):
            raise DecodeError(
                ErrorKind.CORRUPT, "a character of a string is not one that Flink writes"
            )
        units += unit.to_bytes(2, "big")
    return decode_text(units, "utf-16-be"), position
