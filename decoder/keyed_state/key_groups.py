"""Compute the key group of a key, to check that the key was read correctly.

The key group is ``murmur(key.hashCode()) mod maxParallelism``. The hash is implemented for
booleans, numbers, text, dates, times, UUIDs, and Flink's tuples, Either, and SQL rows. The hash is
not implemented for other keys, such as an enum, a POJO, an Avro record, or a Value or Row of
org.apache.flink.types.

Source: KeyGroupRangeAssignment, MathUtils.murmurHash, Tuple2, Either, BinaryRowData,
MurmurHashUtils @ Flink 2.2.0; java.lang.*, java.math.*, java.time.* @ JDK 17.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from decoder.java import string_hash
from decoder.keyed_state.types import Either, Kind, Kryo, Scalar, Sql, SqlRow, Type
from decoder.keyed_state.types import Struct as StructType

_MASK = 0xFFFFFFFF
_SEED = 42  # MurmurHashUtils.DEFAULT_SEED
_TUPLE = "org.apache.flink.api.java.tuple.Tuple"
_REPLACEMENT = "\ufffd"

_F64 = Struct(">d")
_F32 = Struct(">f")

# A function that returns a value's hash as an unsigned 32-bit number, or None for an unknown hash.
_Hash = Callable[[Any], "int | None"]
# A function that takes (data, start of the key in ``data``, key) and returns the key group, or None
# for a key with an unknown hash.
KeyGroupOf = Callable[[bytes, int, Any], "int | None"]


def key_group_of(type_: Type, max_parallelism: int) -> KeyGroupOf | None:
    """Return a function that returns a key's key group, or None if this type's hash is unknown."""
    if isinstance(type_, Sql):
        if not isinstance(type_.type, SqlRow):
            return None
        return lambda data, start, key: _murmur(_row_hash(data, start)) % max_parallelism
    hash_ = _hash_of(type_)
    if hash_ is None:
        return None

    def group(data: bytes, start: int, key: Any) -> int | None:
        code = hash_(key)
        return None if code is None else _murmur(code) % max_parallelism

    return group


def _murmur(code: int) -> int:
    code = code * 0xCC9E2D51 & _MASK
    code = (code << 15 | code >> 17) * 0x1B873593 & _MASK
    code = ((code << 13 | code >> 19) * 5 + 0xE6546B64) & _MASK ^ 4
    code = (code ^ code >> 16) * 0x85EBCA6B & _MASK
    code = (code ^ code >> 13) * 0xC2B2AE35 & _MASK
    code ^= code >> 16
    return code if code < 1 << 31 else -code & 0x7FFFFFFF


def _row_hash(data: bytes, start: int) -> int:
    """Return the BinaryRowData hash, computed from the little-endian words after the row's size."""
    size = int.from_bytes(data[start : start + 4], "big")
    row = data[start + 4 : start + 4 + size]
    code = _SEED
    for position in range(0, size, 4):
        word = int.from_bytes(row[position : position + 4], "little") * 0xCC9E2D51 & _MASK
        code ^= (word << 15 | word >> 17) * 0x1B873593 & _MASK
        code = ((code << 13 | code >> 19) & _MASK) * 5 + 0xE6546B64 & _MASK
    code ^= size
    code = (code ^ code >> 16) * 0x85EBCA6B & _MASK
    code = (code ^ code >> 13) * 0xC2B2AE35 & _MASK
    return code ^ code >> 16


def _hash_of(type_: Type) -> _Hash | None:
    match type_:
        case Scalar(kind, mutable=False):
            return _SCALARS.get(kind)
        case StructType(name, fields) if name.startswith(_TUPLE):
            hashes = [_hash_of(field.type) for field in fields]
            known = [hash_ for hash_ in hashes if hash_ is not None]
            return _tuple(known) if len(known) == len(fields) else None
        case Either(left, right):
            left_hash, right_hash = _hash_of(left), _hash_of(right)
            if left_hash is None or right_hash is None:
                return None
            return _either(left_hash, right_hash)
        case Kryo("java.util.UUID"):
            return _uuid
        case _:
            return None


def _tuple(hashes: list[_Hash]) -> _Hash:
    def hash_(key: Any) -> int | None:
        code = 0
        for part, value in zip(hashes, key.values(), strict=True):
            part_hash = part(value) if value is not None else 0
            if part_hash is None:
                return None
            code = (31 * code + part_hash) & _MASK
        return code

    return hash_


def _either(left: _Hash, right: _Hash) -> _Hash:
    def hash_(key: Any) -> int | None:
        if key["left"] is not None:
            return left(key["left"])
        return right(key["right"]) if key["right"] is not None else None

    return hash_


def _long(value: int) -> int:
    return (value ^ value >> 32) & _MASK


def _string(value: str | None) -> int | None:
    if value is None:
        return None
    # U+FFFD may replace an invalid character. Java computes the hash from the original character,
    # so the hash is then unknown.
    return None if _REPLACEMENT in value else string_hash(value)


def _uuid(value: str | None) -> int | None:
    if value is None:
        return None
    bits = int(value.replace("-", ""), 16)
    return _long(bits >> 64 ^ bits & (1 << 64) - 1)


def _double(value: float) -> int:
    bits = 0x7FF8 << 48 if value != value else int.from_bytes(_F64.pack(value), "big")
    return (bits ^ bits >> 32) & _MASK


def _float(value: float) -> int:
    return 0x7FC0 << 16 if value != value else int.from_bytes(_F32.pack(value), "big")


def _big_integer(value: Any) -> int | None:
    return None if value is None else _magnitude_hash(int(value))


def _magnitude_hash(value: int) -> int:
    """Return the BigInteger hash, computed from its 32-bit words, highest first."""
    size = (abs(value).bit_length() + 31) // 32 * 4
    magnitude = abs(value).to_bytes(size, "big")
    code = 0
    for position in range(0, size, 4):
        code = (31 * code + int.from_bytes(magnitude[position : position + 4], "big")) & _MASK
    return (code if value > 0 else -code) & _MASK


def _big_decimal(value: Any) -> int | None:
    if value is None:
        return None
    sign, digits, exponent = value.as_tuple()
    # Java computes the same hash whether it stores the unscaled value as a long or as a BigInteger.
    unscaled = int("".join(map(str, digits)))
    return (31 * _magnitude_hash(-unscaled if sign else unscaled) - int(exponent)) & _MASK


def _millis(value: Any) -> int | None:
    return None if value is None else _long(value.seconds * 1000 + value.nano // 1_000_000)


def _instant(value: Any) -> int | None:
    return None if value is None else int(_long(value.seconds) + 51 * value.nano) & _MASK


def _date(value: Any) -> int | None:
    if value is None:
        return None
    year, month, day = map(int, value)
    return ((year & 0xFFFFF800) ^ ((year << 11) + (month << 6) + day)) & _MASK


def _time(value: Any) -> int | None:
    return None if value is None else _long(int(value.nano_of_day))


def _date_time(value: Any) -> int | None:
    if value is None:
        return None
    date, time = _date(value.date), _time(value.time)
    return None if date is None or time is None else int(date) ^ int(time)


_SCALARS: dict[Kind, _Hash] = {
    Kind.BOOLEAN: lambda value: 1231 if value else 1237,
    Kind.BYTE: lambda value: value & _MASK,
    Kind.SHORT: lambda value: value & _MASK,
    Kind.INT: lambda value: value & _MASK,
    Kind.LONG: _long,
    Kind.FLOAT: _float,
    Kind.DOUBLE: _double,
    Kind.CHAR: lambda value: None if value == _REPLACEMENT else ord(value),
    Kind.STRING: _string,
    Kind.BIG_INTEGER: _big_integer,
    Kind.BIG_DECIMAL: _big_decimal,
    Kind.DATE: _millis,
    Kind.SQL_DATE: _millis,
    Kind.SQL_TIME: _millis,
    Kind.SQL_TIMESTAMP: _millis,
    Kind.INSTANT: _instant,
    Kind.LOCAL_DATE: _date,
    Kind.LOCAL_TIME: _time,
    Kind.LOCAL_DATE_TIME: _date_time,
}
