"""Flink SQL's binary rows, arrays, and maps: BinaryRowData, BinaryArrayData, BinaryMapData.

Numbers are **little-endian**, but a DECIMAL with more than 18 digits is big-endian two's
complement. A row starts with ``u8 RowKind`` and the null bits of the fields (lowest bit first),
padded together to a multiple of 8 bytes. An 8-byte slot for each field follows. An array: ``i32
n``, null bits padded to a multiple of 4 bytes, n elements of 1, 2, 4, or 8 bytes. A map: ``i32``
size of the key array in bytes, the array of keys, the array of values.

A slot contains a number, a DECIMAL of up to 18 digits, a boolean, a date, a time, or a timestamp
with up to 3 fractional-second digits. The slot can also contain a string or bytes of at most 7
bytes; in that case, the last byte of the slot is 0x80 | length. For a timestamp with more
fractional-second digits, the slot contains the ``i32`` nanoseconds within the millisecond and the
``i32 offset`` of the ``i64`` milliseconds. For any other value, the slot contains the value's
``i32 length`` and ``i32 offset``. An offset counts from the first byte of the row or array.

The variable-length parts may be anywhere in the row. If the slots and parts of a row together are
longer than the row, the row is refused. Without this check, many slots in hostile input could point
to the same bytes.

Source: BinaryRowData, BinaryArrayData, BinaryMapData, BinarySegmentUtils @ Flink 1.15.4, 2.2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import types
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime, LocalTime, Pairs
from decoder.keyed_state.numbers import big_integer, scaled
from decoder.keyed_state.strings import decode_text
from decoder.keyed_state.value_sizes import MAX_COMPACT_DECIMAL, MAX_COMPACT_TIMESTAMP

_HEADER_BITS = 8
_IN_SLOT_FLAG = 0x80
_NANOS_PER_MILLI = 1_000_000
_MILLIS_PER_DAY = 86_400_000

_i32 = Struct("<i").unpack_from
_i64 = Struct("<q").unpack_from
_length_and_offset = Struct("<ii").unpack_from

# A function that takes (bytes of the row or array, position of the slot) and returns the value and
# the number of its bytes outside the slot.
_ReadSlot = Callable[[bytes, int], tuple[Any, int]]
# A function that takes the bytes of a row, array, or map and returns its value.
Read = Callable[[bytes], Any]


def reader(type_: types.SqlRow | types.SqlArray | types.SqlMap) -> Read:
    """Return a function that takes the bytes of a row, array, or map and returns its value.

    The function raises DecodeError for corrupt bytes. For too few bytes, it can raise struct.error
    or IndexError instead.
    """
    match type_:
        case types.SqlRow():
            return _row(type_)
        case types.SqlArray():
            return _array(type_)
        case types.SqlMap():
            return _map(type_)


def _corrupt(problem: str) -> DecodeError:
    return DecodeError(ErrorKind.CORRUPT, f"binary row: {problem}")


# -- rows, arrays, and maps ----------------------------------------------------------------------


def _row(type_: types.SqlRow) -> Read:
    arity = len(type_.fields)
    width = (arity + _HEADER_BITS + 63) // 64 * 8
    fixed = width + 8 * arity
    slots = [
        (name, *divmod(_HEADER_BITS + index, 8), width + 8 * index, _slot(inner))
        for index, (name, inner) in enumerate(type_.fields)
    ]

    def read(data: bytes) -> dict[str, Any]:
        if len(data) < fixed:
            raise IndexError
        used = fixed
        row: dict[str, Any] = {}
        for name, byte, bit, position, slot in slots:
            if data[byte] >> bit & 1:
                row[name] = None
            else:
                row[name], size = slot(data, position)
                used += size
        if used > len(data):
            raise _corrupt("its parts are longer than its bytes")
        return row

    return read


def _array(type_: types.SqlArray) -> Read:
    element, slot = type_.element, _slot(type_.element)
    size = _ELEMENT_BYTES.get(element.kind, 8) if isinstance(element, types.SqlScalar) else 8

    def read(data: bytes) -> list[Any]:
        count = _i32(data)[0]
        start = 4 + (count + 31) // 32 * 4
        used = start + count * size
        if not 0 <= count <= used <= len(data):
            raise _corrupt(f"{count} elements in an array of {len(data)} bytes")
        elements: list[Any] = []
        for index in range(count):
            if data[4 + (index >> 3)] >> (index & 7) & 1:
                elements.append(None)
                continue
            value, extra = slot(data, start + index * size)
            used += extra
            elements.append(value)
        if used > len(data):
            raise _corrupt("its parts are longer than its bytes")
        return elements

    return read


def _map(type_: types.SqlMap) -> Read:
    read_keys, read_values = _array(types.SqlArray(type_.key)), _array(types.SqlArray(type_.value))

    def read(data: bytes) -> Pairs:
        size = _i32(data)[0]
        if not 0 <= size <= len(data) - 4:
            raise _corrupt(f"keys of {size} bytes in a map of {len(data)}")
        keys, values = read_keys(data[4 : 4 + size]), read_values(data[4 + size :])
        if len(keys) != len(values):
            raise _corrupt(f"{len(keys)} keys and {len(values)} values in a map")
        return Pairs(zip(keys, values, strict=True))

    return read


# -- slots ---------------------------------------------------------------------------------------


# The size in bytes of an array element, by type; 8 for other types.
_ELEMENT_BYTES = {
    types.SqlKind.BOOLEAN: 1,
    types.SqlKind.TINYINT: 1,
    types.SqlKind.SMALLINT: 2,
    types.SqlKind.INT: 4,
    types.SqlKind.FLOAT: 4,
    types.SqlKind.DATE: 4,
    types.SqlKind.TIME: 4,
    types.SqlKind.INTERVAL_MONTHS: 4,
}


def _slot(type_: types.SqlType) -> _ReadSlot:
    match type_:
        case types.SqlScalar(kind):
            return _SCALARS[kind]
        case types.SqlDecimal(precision, scale):
            return _decimal(precision, scale)
        case types.SqlTimestamp(precision, local_zone):
            return _timestamp(precision, local_zone)
        case types.SqlRow() | types.SqlArray() | types.SqlMap():
            read = reader(type_)

            def slot(data: bytes, position: int) -> tuple[Any, int]:
                part = _part(data, position)
                return read(part), len(part)

            return slot


def _part(data: bytes, position: int) -> bytes:
    """Return the bytes to which a slot points."""
    length, offset = _length_and_offset(data, position)
    end = offset + length
    if not 0 <= offset <= end <= len(data):
        raise _corrupt(f"a part of {length} bytes at byte {offset} of {len(data)}")
    return data[offset:end]


def _number(layout: str) -> _ReadSlot:
    unpack = Struct(layout).unpack_from

    def slot(data: bytes, position: int) -> tuple[Any, int]:
        return unpack(data, position)[0], 0

    return slot


def _boolean(data: bytes, position: int) -> tuple[Any, int]:
    return data[position] != 0, 0


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    mark = data[position + 7]
    if mark & _IN_SLOT_FLAG:
        length = mark & 0x7F
        if length > 7:
            raise _corrupt(f"{length} bytes in a slot of 7")
        return data[position : position + length], 0
    part = _part(data, position)
    return part, len(part)


def _text(data: bytes, position: int) -> tuple[str, int]:
    part, size = _bytes(data, position)
    return decode_text(part, "utf-8"), size


def _date(data: bytes, position: int) -> tuple[LocalDate, int]:
    return LocalDate.of_epoch_day(_i32(data, position)[0]), 0


def local_time(millis: int) -> LocalTime:
    """Return a TIME, given the milliseconds since midnight."""
    if not 0 <= millis < _MILLIS_PER_DAY:
        raise DecodeError(ErrorKind.CORRUPT, f"a time of day cannot be {millis} ms")
    return LocalTime.of_nano_of_day(millis * _NANOS_PER_MILLI)


def _time(data: bytes, position: int) -> tuple[LocalTime, int]:
    return local_time(_i32(data, position)[0]), 0


def _null(data: bytes, position: int) -> tuple[None, int]:
    return None, 0


_SCALARS: dict[types.SqlKind, _ReadSlot] = {
    types.SqlKind.BOOLEAN: _boolean,
    types.SqlKind.TINYINT: _number("<b"),
    types.SqlKind.SMALLINT: _number("<h"),
    types.SqlKind.INT: _number("<i"),
    types.SqlKind.BIGINT: _number("<q"),
    types.SqlKind.FLOAT: _number("<f"),
    types.SqlKind.DOUBLE: _number("<d"),
    types.SqlKind.STRING: _text,
    types.SqlKind.BYTES: _bytes,
    types.SqlKind.DATE: _date,
    types.SqlKind.TIME: _time,
    types.SqlKind.INTERVAL_MONTHS: _number("<i"),
    types.SqlKind.INTERVAL_MILLIS: _number("<q"),
    types.SqlKind.RAW: _bytes,
    types.SqlKind.NULL: _null,
}


def _decimal(precision: int, scale: int) -> _ReadSlot:
    if precision <= MAX_COMPACT_DECIMAL:

        def compact(data: bytes, position: int) -> tuple[Any, int]:
            return scaled(_i64(data, position)[0], scale), 0

        return compact

    def slot(data: bytes, position: int) -> tuple[Any, int]:
        part = _part(data, position)
        return scaled(big_integer(part), scale), len(part)

    return slot


def timestamp(millis: int, nano_of_milli: int, local_zone: bool) -> Instant | LocalDateTime:
    """Return a TIMESTAMP (stored as if it were in UTC), or a TIMESTAMP_LTZ if ``local_zone``."""
    if not 0 <= nano_of_milli < _NANOS_PER_MILLI:
        raise DecodeError(
            ErrorKind.CORRUPT, f"a millisecond does not have {nano_of_milli} nanoseconds"
        )
    instant = Instant.of_millis(millis, nano_of_milli)
    return instant if local_zone else LocalDateTime.of_epoch(*instant)


def _timestamp(precision: int, local_zone: bool) -> _ReadSlot:
    if precision <= MAX_COMPACT_TIMESTAMP:

        def compact(data: bytes, position: int) -> tuple[Any, int]:
            return timestamp(_i64(data, position)[0], 0, local_zone), 0

        return compact

    def slot(data: bytes, position: int) -> tuple[Any, int]:
        nanos, offset = _length_and_offset(data, position)
        if not 0 <= offset <= len(data) - 8:
            raise _corrupt(f"a timestamp at byte {offset} of {len(data)}")
        return timestamp(_i64(data, offset)[0], nanos, local_zone), 8

    return slot
