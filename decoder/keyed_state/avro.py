"""Avro values in Flink's encoding, which is not Avro's own binary encoding.

int and enum: ``i32``. long: ``i64``. float, double, boolean: the format of Java's DataOutput.
string and bytes: ``i32 n``, n bytes (text is UTF-8). fixed: its bytes. union: ``i32`` branch, then
the branch's value. record: its fields. array and map: blocks of an unsigned varint n (7 bits per
byte, lowest first) and n items; the last block has n = 0. An item in a map is a string and a value.

Source: org.apache.flink.formats.avro.utils.{DataOutputEncoder, DataInputDecoder} @ Flink 2.2.0;
logical types: Apache Avro 1.11 specification.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from decoder.avro import types as avro_types
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime, LocalTime, Pairs
from decoder.keyed_state.numbers import big_integer, scaled
from decoder.keyed_state.strings import decode_text

_i32 = Struct(">i").unpack_from

# The maximum nesting depth of a value of a recursive type, so that hostile input cannot overflow
# the Python stack.
_MAX_DEPTH = 64
# The largest number of zero-byte items (null, an empty record) in one array. Without a limit, a few
# hostile bytes could claim billions.
_MAX_EMPTY_ITEMS = 1 << 16
_NANOS = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}
_NANOS_PER_SECOND = 1_000_000_000
_NANOS_PER_DAY = 86_400 * _NANOS_PER_SECOND

# A function that maps (data, position, depth) to the value and its end.
_Read = Callable[[bytes, int, int], tuple[Any, int]]


def reader(schema: avro_types.AvroType) -> Callable[[bytes, int], tuple[Any, int]]:
    """Return a function that maps (data, position) to the value at this position and its end.

    The function raises DecodeError for bytes that Flink never writes and for values that are too
    large or too deep. It raises IndexError or struct.error if a value continues past the end of
    ``data`` or if a length is negative.
    """
    read = _Compiler().read(schema)
    return lambda data, position: read(data, position, 0)


def _corrupt(problem: str) -> DecodeError:
    return DecodeError(ErrorKind.CORRUPT, f"Avro: {problem}")


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, _Read] = {}

    def read(self, type_: avro_types.AvroType) -> _Read:
        match type_:
            case avro_types.AvroScalar(kind, logical, scale):
                return _logical(logical, scale) if logical else _SCALARS[kind]
            case avro_types.AvroFixed(name, size, scale):
                return self._define(name, _fixed(size, scale))
            case avro_types.AvroEnum(name, symbols):
                return self._define(name, _enum(symbols))
            case avro_types.AvroRecord():
                return self._record(type_)
            case avro_types.AvroReference(name):
                return self._reference(name)
            case avro_types.AvroUnion(branches):
                return _union([self.read(branch) for branch in branches])
            case avro_types.AvroArray(element):
                return _read_blocks(self.read(element), list)
            case avro_types.AvroMap(value):
                item = _item(self.read(value))
                return _read_blocks(item, Pairs)

    def _define(self, name: str, read: _Read) -> _Read:
        self._named[name] = read
        return read

    def _reference(self, name: str) -> _Read:
        named = self._named

        def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
            if depth > _MAX_DEPTH:
                raise _corrupt(f"records nested more than {_MAX_DEPTH} deep")
            return named[name](data, position, depth + 1)

        return read

    def _record(self, type_: avro_types.AvroRecord) -> _Read:
        fields: list[tuple[str, _Read]] = []

        def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
            record = {}
            for name, read_field in fields:
                record[name], position = read_field(data, position, depth)
            return record, position

        self._define(type_.name, read)
        fields += [(name, self.read(field)) for name, field in type_.fields]
        return read


def _fixed(size: int, scale: int | None) -> _Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        end = position + size
        if end > len(data):
            raise IndexError
        value = data[position:end]
        return (value if scale is None else scaled(big_integer(value), scale)), end

    return read


def _enum(symbols: tuple[str, ...]) -> _Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        index = _i32(data, position)[0]
        if not 0 <= index < len(symbols):
            raise _corrupt(f"symbol {index} of an enum with {len(symbols)} symbols")
        return symbols[index], position + 4

    return read


def _union(branches: list[_Read]) -> _Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        index: int = _i32(data, position)[0]
        if not 0 <= index < len(branches):
            raise _corrupt(f"branch {index} of a union with {len(branches)} branches")
        return branches[index](data, position + 4, depth)

    return read


def _item(read_value: _Read) -> _Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        key, position = _text(data, position, depth)
        value, position = read_value(data, position, depth)
        return (key, value), position

    return read


def _read_blocks(read_item: _Read, make: type[list[Any]]) -> _Read:
    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        items = make()
        empty_items = 0
        while True:
            count, position = _count(data, position)
            if count == 0:
                return items, position
            for _ in range(count):
                start = position
                value, position = read_item(data, start, depth)
                if position == start:
                    empty_items += 1
                    if empty_items > _MAX_EMPTY_ITEMS:
                        raise _corrupt(f"more than {_MAX_EMPTY_ITEMS} items without bytes")
                items.append(value)

    return read


def _count(data: bytes, position: int) -> tuple[int, int]:
    """Read the item count of a block, a varint.

    Calling a shared function would be slower.
    """
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 62:
            raise _corrupt("a count is longer than 63 bits")


# -- primitives and logical types ----------------------------------------------------------------


def _null(data: bytes, position: int, depth: int) -> tuple[Any, int]:
    return None, position


def _boolean(data: bytes, position: int, depth: int) -> tuple[Any, int]:
    value = data[position]
    if value > 1:
        raise _corrupt(f"a boolean is 0 or 1, not {value}")
    return value == 1, position + 1


def _number(layout: str) -> _Read:
    packed = Struct(layout)
    unpack, size = packed.unpack_from, packed.size

    def read(data: bytes, position: int, depth: int) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return read


_int, _long = _number(">i"), _number(">q")


def _bytes(data: bytes, position: int, depth: int) -> tuple[bytes, int]:
    size = _i32(data, position)[0]
    position += 4
    if not 0 <= size <= len(data) - position:
        raise IndexError
    return data[position : position + size], position + size


def _text(data: bytes, position: int, depth: int) -> tuple[str, int]:
    value, position = _bytes(data, position, depth)
    return decode_text(value, "utf-8"), position


_SCALARS: dict[avro_types.AvroKind, _Read] = {
    avro_types.AvroKind.NULL: _null,
    avro_types.AvroKind.BOOLEAN: _boolean,
    avro_types.AvroKind.INT: _int,
    avro_types.AvroKind.LONG: _long,
    avro_types.AvroKind.FLOAT: _number(">f"),
    avro_types.AvroKind.DOUBLE: _number(">d"),
    avro_types.AvroKind.BYTES: _bytes,
    avro_types.AvroKind.STRING: _text,
}


def _logical(logical: str, scale: int) -> _Read:
    """Return the reader of a logical type that ``avro_schema`` accepts."""
    if logical == "decimal":
        return lambda data, position, depth: _convert_result(
            _bytes(data, position, depth), lambda value: scaled(big_integer(value), scale)
        )
    if logical == "date":
        return lambda data, position, depth: _convert_result(
            _int(data, position, depth), LocalDate.of_epoch_day
        )
    name, _, unit = logical.rpartition("-")
    read = _int if logical == "time-millis" else _long
    convert = {"time": _time, "timestamp": _instant, "local-timestamp": _date_time}[name]
    nanos = _NANOS[unit]
    return lambda data, position, depth: _convert_result(
        read(data, position, depth), lambda value: convert(value * nanos)
    )


def _convert_result(result: tuple[Any, int], convert: Callable[[Any], Any]) -> tuple[Any, int]:
    value, position = result
    return convert(value), position


def _time(nanos: int) -> LocalTime:
    if not 0 <= nanos < _NANOS_PER_DAY:
        raise _corrupt(f"a time of day cannot be {nanos} ns")
    return LocalTime.of_nano_of_day(nanos)


def _instant(nanos: int) -> Instant:
    return Instant(*divmod(nanos, _NANOS_PER_SECOND))


def _date_time(nanos: int) -> LocalDateTime:
    return LocalDateTime.of_epoch(*divmod(nanos, _NANOS_PER_SECOND))
