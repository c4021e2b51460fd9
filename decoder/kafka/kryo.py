"""The few of Kryo's primitives that FlinkKafkaConsumer's state is written with.

A varint is 7 bits a byte, the lowest first, the high bit set on all but the last; a signed one is
zig-zag. A string has two forms. ASCII of 2 to 63 characters: its bytes, the high bit set on the
last. Any other: the number of characters plus one as a varint whose first byte holds 6 bits (80 is
always set, 40 says that more follow), then each UTF-16 unit in 1 to 3 bytes.

Objects are not built from a class that the bytes name: who reads knows what must stand there.

Source: com.esotericsoftware.kryo.io.{Output, Input} @ kryo 2.24.0, which Flink 1.x is built with.
"""

from __future__ import annotations

from decoder.cursor import Cursor

_MAX_VARINT_BYTES = 5
_MORE = 0x80
_LONGEST_ASCII = 63  # of the form that is ended by its last byte
_STRING_LENGTH = 0x80
_STRING_LENGTH_MORE = 0x40


def read_varint(cursor: Cursor, field: str) -> int:
    """An unsigned varint of at most 32 bits."""
    return _read_groups(cursor, field, 0, 0)


def read_signed_varint(cursor: Cursor, field: str) -> int:
    """A zig-zag varint: an i32."""
    value = read_varint(cursor, field)
    return (value >> 1) ^ -(value & 1)


def read_ascii_string(cursor: Cursor, field: str) -> str:
    """A string of either form; null and what is not ASCII are refused, as no topic is either."""
    first = cursor.peek(field)
    text = bytearray()
    if first & _STRING_LENGTH:
        cursor.u8(field)
        count = first & 0x3F
        if first & _STRING_LENGTH_MORE:
            count = _read_groups(cursor, field, count, 6)
        if count == 0:
            cursor.fail("a string is null", field, back=1)
        text += cursor.raw(count - 1, field)
        if not text.isascii():
            cursor.fail("a string is not ASCII", field, back=count - 1)
    else:
        while not (byte := cursor.u8(field)) & 0x80:
            text.append(byte)
            if len(text) == _LONGEST_ASCII:
                cursor.fail(f"a string of more than {_LONGEST_ASCII} characters", field)
        text.append(byte & 0x7F)
    return text.decode("ascii")


def _read_groups(cursor: Cursor, field: str, value: int, bits: int) -> int:
    for _ in range(_MAX_VARINT_BYTES):
        byte = cursor.u8(field)
        value |= (byte & 0x7F) << bits
        bits += 7
        if value >> 32:
            break
        if not byte & _MORE:
            return value
    cursor.fail("a varint is longer than 32 bits", field)
