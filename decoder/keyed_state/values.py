"""Readers of values.

A reader is a function for one type, which is created once and called for each value.

``reader(type)`` returns a function that takes (data, position) and returns (value, position after
the value). "Read" in the docstrings of functions that return a ``Read`` describes the returned
function.

A negative length raises DecodeError or, in Avro's encoding, IndexError. A value that continues past
the end of ``data`` raises IndexError or struct.error. The caller turns this error into a
DecodeError. The number of elements is checked against the remaining bytes, or against a limit if
elements may be empty (zero bytes).

The docstrings here and in ``types`` describe the layouts. Numbers are big-endian, except in SQL
binary rows and Kryo objects (see ``kryo``).

Source: the serializers of the snapshots listed in ``snapshots`` @ Flink 1.15.4, 1.20.3, 2.2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from struct import Struct
from typing import Any

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import avro, binary_row, types
from decoder.keyed_state.java_values import (
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Pairs,
    SqlDate,
    SqlTime,
)
from decoder.keyed_state.kryo import read_kryo
from decoder.keyed_state.numbers import big_integer, scaled
from decoder.keyed_state.strings import ReplacedText, decode_text, read_string, read_string_value
from decoder.keyed_state.value_sizes import (
    MAX_COMPACT_DECIMAL,
    MAX_COMPACT_TIMESTAMP,
    can_be_empty,
)

Read = Callable[[bytes, int], tuple[Any, int]]

_i32 = Struct(">i").unpack_from
_i64 = Struct(">q").unpack_from
_u16 = Struct(">H").unpack_from
_time_window = Struct(">qq").unpack_from
_i64_i32 = Struct(">qi").unpack_from
_year_month_day = Struct(">ibb").unpack_from
_hour_minute_second_nano = Struct(">bbbi").unpack_from

_MIN_I32, _MIN_I64 = -(1 << 31), -(1 << 63)
_SIGN = 1 << 63
# The maximum number of elements if each element may be empty (such as NullValue).
_MAX_EMPTY_ITEMS = 1 << 16


def reader(type_: types.Type) -> Read:
    """Return the function that reads values of ``type_``; for Unreadable, it raises DecodeError."""
    match type_:
        case types.Scalar(kind):
            return _SCALARS[kind]
        case types.PrimitiveArray(element):
            return (
                _bytes if element is types.Kind.BYTE else _list(types.List(types.Scalar(element)))
            )
        case types.JavaEnum():
            return _enum(type_)
        case types.Struct():
            return _struct(type_)
        case types.Row():
            return _row(type_)
        case types.Either(left, right):
            return _either(("left", "right"), reader(left), reader(right), (1, 0))
        case types.TaggedUnion(one, two):
            return _either(("one", "two"), reader(one), reader(two), (1, 2))
        case types.StreamRecord(value):
            return _stream_record(reader(value))
        case types.List():
            return _list(type_)
        case types.NullableList():
            return _nullable_list(type_)
        case types.LinkedList():
            return _linked_list(type_)
        case types.Map():
            return _map(type_)
        case types.Nullable():
            return _nullable(type_)
        case types.Pojo():
            return _pojo(type_)
        case types.Ttl():
            return _ttl(type_)
        case types.Timer():
            return _timer(type_)
        case types.Avro(_, schema):
            return avro.reader(schema)
        case types.Sql(sql):
            return _sql(sql)
        case types.Kryo():
            return lambda data, position: read_kryo(type_, data, position)
        case types.Unreadable(name, reason):
            return _refusing_reader(name, reason)


def _corrupt(problem: str) -> DecodeError:
    return DecodeError(ErrorKind.CORRUPT, problem)


def _refusing_reader(name: str, reason: str) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        raise DecodeError(ErrorKind.UNSUPPORTED, f"{name}: {reason}" if name else reason)

    return read


def _boolean(data: bytes, position: int) -> tuple[bool, int]:
    value = data[position]
    if value > 1:
        raise _corrupt(f"a boolean is 0 or 1, not {value}")
    return value == 1, position + 1


def _checked_count(data: bytes, position: int, may_have_no_bytes: bool = False) -> int:
    """Read the number of elements, ``i32 n``, and check it."""
    count: int = _i32(data, position)[0]
    if count < 0:
        raise _corrupt(f"a count cannot be negative: {count}")
    if may_have_no_bytes:
        if count > _MAX_EMPTY_ITEMS:
            raise _corrupt(f"more than {_MAX_EMPTY_ITEMS} values without bytes")
    elif count > len(data) - position - 4:
        raise IndexError
    return count


# -- values without parts ------------------------------------------------------------------------


def _number(layout: str) -> Read:
    packed = Struct(layout)
    unpack, size = packed.unpack_from, packed.size

    def read(data: bytes, position: int) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return read


def _char(data: bytes, position: int) -> tuple[str, int]:
    unit = _u16(data, position)[0]
    text = ReplacedText("\ufffd") if 0xD800 <= unit < 0xE000 else chr(unit)
    return text, position + 2


def _bytes(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 4
    end = start + _checked_count(data, position)
    return data[start:end], end


def _big_integer(data: bytes, position: int) -> tuple[Decimal | None, int]:
    value, position = _unscaled(data, position)
    return None if value is None else Decimal(value), position


def _unscaled(data: bytes, position: int) -> tuple[int | None, int]:
    """Read ``i32 n`` and, if n is above 3, n - 4 bytes of two's complement.

    n = 0 means null, and n = 1, 2, and 3 mean the values 0, 1, and 10.
    """
    size = _i32(data, position)[0]
    position += 4
    if size < 0:
        raise _corrupt(f"a length cannot be negative: {size}")
    if size < 4:
        return (None, 0, 1, 10)[size], position
    end = position + size - 4
    if end > len(data):
        raise IndexError
    return big_integer(data[position:end]), end


def _big_decimal(data: bytes, position: int) -> tuple[Any, int]:
    """Read the unscaled value and, unless it is null, ``i32 scale``."""
    unscaled, position = _unscaled(data, position)
    if unscaled is None:
        return None, position
    return scaled(unscaled, _i32(data, position)[0]), position + 4


def _date(of: type[Instant]) -> Read:
    """Read ``i64`` epoch milliseconds; MIN_VALUE means null."""

    def read(data: bytes, position: int) -> tuple[Instant | None, int]:
        millis = _i64(data, position)[0]
        return None if millis == _MIN_I64 else of.of_millis(millis), position + 8

    return read


def _check_exists(value: Any) -> Any:
    if not value.exists:
        raise _corrupt(f"an invalid date or time: {tuple(value)}")
    return value


def _sql_timestamp(data: bytes, position: int) -> tuple[Instant | None, int]:
    """Read ``i64`` epoch milliseconds, ``i32`` nanoseconds of the second.

    If the milliseconds are MIN_VALUE, the value is null.
    """
    millis, nanos = _i64_i32(data, position)
    value = None if millis == _MIN_I64 else _check_exists(Instant(millis // 1000, nanos))
    return value, position + 12


def _instant(data: bytes, position: int) -> tuple[Instant | None, int]:
    """Read ``i64`` epoch seconds, ``i32`` nanoseconds; null if both are MIN_VALUE."""
    seconds, nanos = _i64_i32(data, position)
    if (seconds, nanos) == (_MIN_I64, _MIN_I32):
        return None, position + 12
    return _check_exists(Instant(seconds, nanos)), position + 12


def _local_date(data: bytes, position: int) -> tuple[LocalDate | None, int]:
    """Read ``i32 year, i8 month, i8 day``; null if the year is MIN_VALUE."""
    parts = _year_month_day(data, position)
    value = None if parts[0] == _MIN_I32 else _check_exists(LocalDate(*parts))
    return value, position + 6


def _local_time(data: bytes, position: int) -> tuple[LocalTime | None, int]:
    """Read ``i8 hour, i8 minute, i8 second, i32 nano``; null if the hour is -128."""
    parts = _hour_minute_second_nano(data, position)
    value = None if parts[0] == -128 else _check_exists(LocalTime(*parts))
    return value, position + 7


def _local_date_time(data: bytes, position: int) -> tuple[LocalDateTime | None, int]:
    date, position = _local_date(data, position)
    time, position = _local_time(data, position)
    if date is None and time is None:
        return None, position
    if date is None or time is None:
        raise _corrupt("a date without a time, or a time without a date")
    return LocalDateTime(date, time), position


def _skip_byte(data: bytes, position: int) -> tuple[None, int]:
    if position >= len(data):
        raise IndexError
    return None, position + 1


def _nothing(data: bytes, position: int) -> tuple[None, int]:
    return None, position


def _window(data: bytes, position: int) -> tuple[dict[str, int], int]:
    """Read ``i64 start, i64 end``."""
    start, end = _time_window(data, position)
    return {"start": start, "end": end}, position + 16


def _count_window(data: bytes, position: int) -> tuple[dict[str, int], int]:
    return {"id": _i64(data, position)[0]}, position + 8


_SCALARS: dict[types.Kind, Read] = {
    types.Kind.BOOLEAN: _boolean,
    types.Kind.BYTE: _number(">b"),
    types.Kind.SHORT: _number(">h"),
    types.Kind.INT: _number(">i"),
    types.Kind.LONG: _number(">q"),
    types.Kind.FLOAT: _number(">f"),
    types.Kind.DOUBLE: _number(">d"),
    types.Kind.CHAR: _char,
    types.Kind.STRING: read_string,
    types.Kind.STRING_VALUE: read_string_value,
    types.Kind.BIG_INTEGER: _big_integer,
    types.Kind.BIG_DECIMAL: _big_decimal,
    types.Kind.DATE: _date(Instant),
    types.Kind.SQL_DATE: _date(SqlDate),
    types.Kind.SQL_TIME: _date(SqlTime),
    types.Kind.SQL_TIMESTAMP: _sql_timestamp,
    types.Kind.INSTANT: _instant,
    types.Kind.LOCAL_DATE: _local_date,
    types.Kind.LOCAL_TIME: _local_time,
    types.Kind.LOCAL_DATE_TIME: _local_date_time,
    types.Kind.VOID: _skip_byte,
    types.Kind.NULL_VALUE: _nothing,
    types.Kind.VOID_NAMESPACE: _skip_byte,
    types.Kind.GLOBAL_WINDOW: _skip_byte,
    types.Kind.TIME_WINDOW: _window,
    types.Kind.COUNT_WINDOW: _count_window,
}


def _enum(type_: types.JavaEnum) -> Read:
    constants = type_.constants

    def read(data: bytes, position: int) -> tuple[str, int]:
        ordinal = _i32(data, position)[0]
        if not 0 <= ordinal < len(constants):
            raise _corrupt(f"constant {ordinal} of an enum with {len(constants)} constants")
        return constants[ordinal], position + 4

    return read


# -- values with parts ---------------------------------------------------------------------------


def _struct(type_: types.Struct) -> Read:
    if not type_.fields:  # a Tuple0 is written as the byte 42
        return lambda data, position: ({}, _skip_byte(data, position)[1])
    fields = [(name, reader(part)) for name, part in type_.fields]

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        value = {}
        for name, read_field in fields:
            value[name], position = read_field(data, position)
        return value, position

    return read


def _row(type_: types.Row) -> Read:
    """Read a mask and the non-null fields.

    The mask has two bits for the RowKind if ``has_kind``, then one bit per field (1 means null).
    The highest bit comes first, and the mask is padded to full bytes.
    """
    skipped = 2 * type_.has_kind
    size = (skipped + len(type_.fields) + 7) // 8
    fields = [
        (f"f{index}", *divmod(skipped + index, 8), reader(part))
        for index, part in enumerate(type_.fields)
    ]

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        mask = data[position : position + size]
        if len(mask) != size:
            raise IndexError
        position += size
        row: dict[str, Any] = {}
        for name, byte, bit, read_field in fields:
            if mask[byte] << bit & 0x80:
                row[name] = None
            else:
                row[name], position = read_field(data, position)
        return row, position

    return read


def _either(names: tuple[str, str], first: Read, second: Read, tags: tuple[int, int]) -> Read:
    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        tag = data[position]
        if tag not in tags:
            raise _corrupt(f"a tag must be {tags[0]} or {tags[1]}, not {tag}")
        is_first = tag == tags[0]
        value, position = (first if is_first else second)(data, position + 1)
        return dict(zip(names, (value, None) if is_first else (None, value), strict=True)), position

    return read


def _stream_record(read_value: Read) -> Read:
    """Read a record; StreamElementSerializer has higher tags for watermarks and other elements."""

    def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
        tag = data[position]
        if tag > 1:
            raise _corrupt(f"not a record: {tag}")
        position += 1
        timestamp = None
        if tag == 0:
            timestamp = _i64(data, position)[0]
            position += 8
        value, position = read_value(data, position)
        return {"timestamp": timestamp, "value": value}, position

    return read


def _list(type_: types.List) -> Read:
    read_element, may_have_no_bytes = reader(type_.element), can_be_empty(type_.element)

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        count = _checked_count(data, position, may_have_no_bytes)
        position += 4
        elements = []
        for _ in range(count):
            element, position = read_element(data, position)
            elements.append(element)
        return elements, position

    return read


def _nullable_list(type_: types.NullableList) -> Read:
    read_element, null = reader(type_.element), type_.null

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        count = _checked_count(data, position)
        position += 4
        elements: list[Any] = []
        for _ in range(count):
            flag = data[position]
            position += 1
            if flag == null:
                elements.append(None)
                continue
            if flag > 1:
                raise _corrupt(f"a boolean is 0 or 1, not {flag}")
            element, position = read_element(data, position)
            elements.append(element)
        return elements, position

    return read


def _linked_list(type_: types.LinkedList) -> Read:
    """Read ``i32 n``, a null mask, and the non-null elements.

    The mask has one bit per element; the highest bit comes first. Without ``has_nulls``, the layout
    is the same as for a List.
    """
    if not type_.has_nulls:
        return _list(types.List(type_.element))
    read_element = reader(type_.element)

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        count = _i32(data, position)[0]
        if count < 0:
            raise _corrupt(f"a count cannot be negative: {count}")
        position += 4
        size = (count + 7) // 8
        mask = data[position : position + size]
        if len(mask) != size:
            raise IndexError
        position += size
        elements: list[Any] = []
        for index in range(count):
            if mask[index >> 3] << (index & 7) & 0x80:
                elements.append(None)
                continue
            element, position = read_element(data, position)
            elements.append(element)
        return elements, position

    return read


def _map(type_: types.Map) -> Read:
    read_key, read_value, null_keys = reader(type_.key), reader(type_.value), type_.null_keys

    def read(data: bytes, position: int) -> tuple[Pairs, int]:
        count = _checked_count(data, position)
        position += 4
        pairs = Pairs()
        for _ in range(count):
            key = value = None
            absent = False
            if null_keys:
                absent, position = _boolean(data, position)
            if not absent:
                key, position = read_key(data, position)
            absent, position = _boolean(data, position)
            if not absent:
                value, position = read_value(data, position)
            pairs.append((key, value))
        return pairs, position

    return read


def _nullable(type_: types.Nullable) -> Read:
    read_value, padding = reader(type_.type), type_.padding

    def read(data: bytes, position: int) -> tuple[Any, int]:
        null, position = _boolean(data, position)
        if not null:
            return read_value(data, position)
        if position + padding > len(data):
            raise IndexError
        return None, position + padding

    return read


def _ttl(type_: types.Ttl) -> Read:
    """Read a value with TTL as (last access, value)."""
    read_value = reader(type_.type)

    def read(data: bytes, position: int) -> tuple[tuple[int, Any], int]:
        last_access = _i64(data, position)[0]
        value, position = read_value(data, position + 8)
        return (last_access, value), position

    return read


def _timer(type_: types.Timer) -> Read:
    """Read a timer as (timestamp, key, namespace)."""
    read_key, read_namespace = reader(type_.key), reader(type_.namespace)

    def read(data: bytes, position: int) -> tuple[tuple[int, Any, Any], int]:
        timestamp = _i64(data, position)[0]
        timestamp += -_SIGN if timestamp >= 0 else _SIGN
        key, position = read_key(data, position + 8)
        namespace, position = read_namespace(data, position)
        return (timestamp, key, namespace), position

    return read


# -- POJOs ---------------------------------------------------------------------------------------

_IS_NULL, _OWN_CLASS, _SUBCLASS, _REGISTERED = 1, 2, 4, 8


def _pojo(type_: types.Pojo) -> Read:
    """Read ``u8 flags`` and a value.

    Flags: 1 means null. 2 means an object of the class itself; each field is ``bool null`` and, if
    false, the value. 4 means an object of a subclass: ``UTF class`` and the subclass's value. 8
    means an object of a registered subclass: ``u8 tag`` and the subclass's value.
    """
    fields = [(name, reader(part)) for name, part in type_.fields]
    registered = [(name, reader(part)) for name, part in type_.registered]
    subclasses = {name: reader(part) for name, part in type_.subclasses}
    class_name = type_.class_name
    missing = [name for name, _ in type_.fields if name.startswith(types.MISSING_FIELD)]

    def read(data: bytes, position: int) -> tuple[dict[str, Any] | None, int]:
        flags = data[position]
        position += 1
        if flags == _OWN_CLASS:
            value: dict[str, Any] = {}
            for name, read_field in fields:
                null = data[position]
                position += 1
                if null == 1:
                    value[name] = None
                elif null:
                    raise _corrupt(f"a boolean is 0 or 1, not {null}")
                else:
                    value[name], position = read_field(data, position)
            for name in missing:
                del value[name]
            return value, position
        if flags == _IS_NULL:
            return None, position
        if flags == _SUBCLASS:
            cursor = Cursor(data, "", position)
            name = cursor.utf(f"subclass of {class_name}")
            read_subclass = subclasses.get(name)
            if read_subclass is None:
                raise DecodeError(
                    ErrorKind.UNSUPPORTED,
                    f"{name} is a subclass of {class_name} that is missing in the snapshot",
                )
            return read_subclass(data, cursor.byte_offset)
        if flags == _REGISTERED:
            tag = data[position]
            if tag >= len(registered):
                raise _corrupt(f"subclass {tag} of {len(registered)} registered ones")
            return registered[tag][1](data, position + 1)
        raise _corrupt(f"unknown flags of a POJO: {flags}")

    return read


# -- SQL -----------------------------------------------------------------------------------------


def _sql(type_: types.SqlType) -> Read:
    """Read a value of a SQL type.

    Rows, arrays, maps, text, and RAW: ``i32 n``, n bytes. A DECIMAL: the unscaled value as ``i64``,
    or as ``i32 n``, n bytes for a precision above 18. A TIMESTAMP: ``i64`` milliseconds; for a
    precision above 3, ``i32`` nanoseconds of the millisecond follow.
    """
    match type_:
        case types.SqlRow() | types.SqlArray() | types.SqlMap():
            return _sized_reader(binary_row.reader(type_))
        case types.SqlScalar(types.SqlKind.STRING):
            return _sized_reader(lambda part: decode_text(part, "utf-8"))
        case types.SqlScalar():  # only RAW, because no other SqlScalar occurs outside a row
            return _bytes
        case types.SqlDecimal(precision, scale) if precision <= MAX_COMPACT_DECIMAL:
            return lambda data, position: (scaled(_i64(data, position)[0], scale), position + 8)
        case types.SqlDecimal(_, scale):
            return _sized_reader(lambda part: scaled(big_integer(part), scale))
        case types.SqlTimestamp(precision, local_zone) if precision <= MAX_COMPACT_TIMESTAMP:
            return lambda data, position: (
                binary_row.timestamp(_i64(data, position)[0], 0, local_zone),
                position + 8,
            )
        case types.SqlTimestamp(_, local_zone):
            return _long_timestamp(local_zone)


def _long_timestamp(local_zone: bool) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        millis, nanos = _i64_i32(data, position)
        return binary_row.timestamp(millis, nanos, local_zone), position + 12

    return read


def _sized_reader(read_part: Callable[[bytes], Any]) -> Read:
    def read(data: bytes, position: int) -> tuple[Any, int]:
        part, position = _bytes(data, position)
        return read_part(part), position

    return read
