"""Map the decoder's types to column types.

Values that no column type of Spark holds exactly become text:

- Java's BigInteger and BigDecimal, which have any number of digits and, for BigDecimal, any scale;
- an Avro decimal that does not fit into Spark's DECIMAL;
- a time of day, as java.time prints it;
- values whose type may differ from one value to the next (an Avro union of several types, a Kryo
  collection, a field that subclasses have with different types), and references to an Avro record
  inside itself: their JSON.

Timestamps are cut to microseconds. java.sql.Date and java.sql.Time become timestamps: Flink stores
epoch milliseconds, not the time zone needed to turn them into a date or a time of day. A map whose
keys contain maps, or may be null, becomes a list of structs of key and value.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from decoder.keyed_state import types
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime
from decoder.keyed_state.types import AvroKind, Kind, SqlKind, unreadable
from migrate.state.column_types import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    ArrayOf,
    ColumnType,
    DecimalOf,
    Leaf,
    MapOf,
    PairsOf,
    StructOf,
)
from migrate.state.json_form import value_json

_MAX_DIGITS = 38  # of Spark's DECIMAL, and of Arrow's decimal128
_MICROS = 1_000_000
_SECONDS_PER_DAY = 86_400


def column_type(type_: types.Type) -> ColumnType | None:
    """Return the column type of a type, or None if its values cannot be read."""
    return None if unreadable(type_) is not None else _column(type_)


def _as_json(value: Any) -> str:
    return json.dumps(value_json(value))


def _instant(value: Instant) -> int:
    return value.seconds * _MICROS + value.nano // 1000


def _date(value: LocalDate) -> int:
    return value.epoch_day


def _date_time(value: LocalDateTime) -> int:
    seconds = value.date.epoch_day * _SECONDS_PER_DAY
    return seconds * _MICROS + value.time.nano_of_day // 1000


_TINYINT, _SMALLINT, _FLOAT, _DOUBLE = map(Leaf, ("TINYINT", "SMALLINT", "FLOAT", "DOUBLE"))
_BINARY, _VOID = map(Leaf, ("BINARY", "VOID"))
_DATE = Leaf("DATE", _date)
_TIMESTAMP = Leaf("TIMESTAMP", _instant)
_TIMESTAMP_NTZ = Leaf("TIMESTAMP_NTZ", _date_time)
_TEXT = Leaf("STRING", value_json)
JSON = Leaf("STRING", _as_json)

_SCALARS: dict[Kind, ColumnType] = {
    Kind.BOOLEAN: BOOLEAN,
    Kind.BYTE: _TINYINT,
    Kind.SHORT: _SMALLINT,
    Kind.INT: INT,
    Kind.LONG: BIGINT,
    Kind.FLOAT: _FLOAT,
    Kind.DOUBLE: _DOUBLE,
    Kind.CHAR: STRING,
    Kind.STRING: STRING,
    Kind.STRING_VALUE: STRING,
    Kind.BIG_INTEGER: _TEXT,
    Kind.BIG_DECIMAL: _TEXT,
    Kind.DATE: _TIMESTAMP,
    Kind.SQL_DATE: _TIMESTAMP,
    Kind.SQL_TIME: _TIMESTAMP,
    Kind.SQL_TIMESTAMP: _TIMESTAMP,
    Kind.INSTANT: _TIMESTAMP,
    Kind.LOCAL_DATE: _DATE,
    Kind.LOCAL_TIME: _TEXT,
    Kind.LOCAL_DATE_TIME: _TIMESTAMP_NTZ,
    Kind.VOID: _VOID,
    Kind.NULL_VALUE: _VOID,
    Kind.VOID_NAMESPACE: _VOID,
    Kind.GLOBAL_WINDOW: _VOID,
    Kind.TIME_WINDOW: StructOf((("start", BIGINT), ("end", BIGINT))),
    Kind.COUNT_WINDOW: StructOf((("id", BIGINT),)),
}
_SQL: dict[SqlKind, ColumnType] = {
    SqlKind.BOOLEAN: BOOLEAN,
    SqlKind.TINYINT: _TINYINT,
    SqlKind.SMALLINT: _SMALLINT,
    SqlKind.INT: INT,
    SqlKind.BIGINT: BIGINT,
    SqlKind.FLOAT: _FLOAT,
    SqlKind.DOUBLE: _DOUBLE,
    SqlKind.STRING: STRING,
    SqlKind.BYTES: _BINARY,
    SqlKind.DATE: _DATE,
    SqlKind.TIME: _TEXT,
    SqlKind.INTERVAL_MONTHS: INT,
    SqlKind.INTERVAL_MILLIS: BIGINT,
    SqlKind.RAW: _BINARY,
    SqlKind.NULL: _VOID,
}
_AVRO: dict[AvroKind, ColumnType] = {
    AvroKind.NULL: _VOID,
    AvroKind.BOOLEAN: BOOLEAN,
    AvroKind.INT: INT,
    AvroKind.LONG: BIGINT,
    AvroKind.FLOAT: _FLOAT,
    AvroKind.DOUBLE: _DOUBLE,
    AvroKind.BYTES: _BINARY,
    AvroKind.STRING: STRING,
}
_AVRO_LOGICAL: dict[str, ColumnType] = {
    "date": _DATE,
    "time-millis": _TEXT,
    "time-micros": _TEXT,
    "timestamp-millis": _TIMESTAMP,
    "timestamp-micros": _TIMESTAMP,
    "timestamp-nanos": _TIMESTAMP,
    "local-timestamp-millis": _TIMESTAMP_NTZ,
    "local-timestamp-micros": _TIMESTAMP_NTZ,
    "local-timestamp-nanos": _TIMESTAMP_NTZ,
}
# The column types of classes that Kryo has written; values of other classes become JSON.
_KRYO: dict[str, ColumnType] = {
    "java.lang.Integer": INT,
    "java.lang.String": STRING,
    "java.lang.Float": _FLOAT,
    "java.lang.Boolean": BOOLEAN,
    "java.lang.Byte": _TINYINT,
    "java.lang.Character": STRING,
    "java.lang.Short": _SMALLINT,
    "java.lang.Long": BIGINT,
    "java.lang.Double": _DOUBLE,
    "java.lang.StringBuilder": STRING,
    "java.lang.StringBuffer": STRING,
    "java.math.BigInteger": _TEXT,
    "java.math.BigDecimal": _TEXT,
    "java.util.Date": _TIMESTAMP,
    "java.sql.Date": _TIMESTAMP,
    "java.sql.Time": _TIMESTAMP,
    "java.sql.Timestamp": _TIMESTAMP,
    "java.time.LocalDate": _DATE,
    "java.time.LocalTime": _TEXT,
    "java.time.LocalDateTime": _TIMESTAMP_NTZ,
    "java.time.Instant": _TIMESTAMP,
    "java.time.Duration": STRING,
    "java.time.OffsetDateTime": STRING,
    "java.time.OffsetTime": STRING,
    "java.time.ZoneOffset": STRING,
    "java.time.DayOfWeek": STRING,
    "java.time.Month": STRING,
    "java.util.concurrent.TimeUnit": STRING,
    "java.util.UUID": STRING,
}


def _column(type_: types.Type) -> ColumnType:
    match type_:
        case types.Scalar(kind):
            return _SCALARS[kind]
        case types.PrimitiveArray(element):
            return _BINARY if element is Kind.BYTE else ArrayOf(_SCALARS[element])
        case types.JavaEnum():
            return STRING
        case types.Struct(_, fields):
            return StructOf(tuple((name, _column(part)) for name, part in fields))
        case types.Row(parts):
            return StructOf(tuple((f"f{n}", _column(part)) for n, part in enumerate(parts)))
        case types.Either(left, right):
            return StructOf((("left", _column(left)), ("right", _column(right))))
        case types.TaggedUnion(first, second):
            return StructOf((("one", _column(first)), ("two", _column(second))))
        case types.StreamRecord(value):
            return StructOf((("timestamp", BIGINT), ("value", _column(value))))
        case types.List(element) | types.NullableList(element) | types.LinkedList(element):
            return ArrayOf(_column(element))
        case types.Map(key, value, null_keys):
            return _map(_column(key), _column(value), null_keys)
        case types.Nullable(inner) | types.Ttl(inner):
            return _column(inner)
        case types.Pojo():
            return _pojo(type_)
        case types.Avro(_, schema):
            return _avro(schema, {})
        case types.Sql(sql):
            return _sql(sql)
        case types.Kryo(name):
            return _KRYO.get(name, JSON)
        case types.Timer() | types.Unreadable():
            raise AssertionError(f"no value is of type {type_}")


def _map(key: ColumnType, value: ColumnType, null_keys: bool) -> ColumnType:
    needs_pairs = null_keys or _holds_map(key) or key == _VOID
    return PairsOf(StructOf((("key", key), ("value", value)))) if needs_pairs else MapOf(key, value)


def _holds_map(type_: ColumnType) -> bool:
    match type_:
        case MapOf():
            return True
        case ArrayOf(element):
            return _holds_map(element)
        case StructOf(fields):
            return any(_holds_map(part) for _, part in fields)
        case _:
            return False


def _pojo(type_: types.Pojo) -> ColumnType:
    """Return a struct of the fields of a class and of the fields that only its subclasses have."""
    fields: dict[str, ColumnType] = {}
    for class_ in _classes(type_):
        for name, part in class_.fields:
            if name.startswith(types.MISSING_FIELD) or unreadable(part) is not None:
                continue
            column = _column(part)
            if fields.setdefault(name, column) != column:
                fields[name] = JSON
    return StructOf(tuple(fields.items()))


def _classes(type_: types.Pojo) -> Iterator[types.Pojo]:
    yield type_
    for _, subclass in (*type_.registered, *type_.subclasses):
        if isinstance(subclass, types.Pojo):
            yield from _classes(subclass)


def _sql(type_: types.SqlType) -> ColumnType:
    match type_:
        case types.SqlScalar(kind):
            return _SQL[kind]
        case types.SqlDecimal(precision, scale):
            return DecimalOf(precision, scale)
        case types.SqlTimestamp(_, local_zone):
            return _TIMESTAMP if local_zone else _TIMESTAMP_NTZ
        case types.SqlArray(element):
            return ArrayOf(_sql(element))
        case types.SqlMap(key, value):
            return _map(_sql(key), _sql(value), null_keys=False)
        case types.SqlRow(fields):
            return StructOf(tuple((name, _sql(part)) for name, part in fields))


def _avro(type_: types.AvroType, named: dict[str, ColumnType]) -> ColumnType:
    """Return the column type of a part of a schema, and add the part's named types to ``named``."""
    match type_:
        case types.AvroScalar(kind, logical, scale, precision):
            if logical == "decimal":
                return _decimal(precision, scale)
            return _AVRO[kind] if logical is None else _AVRO_LOGICAL[logical]
        case types.AvroFixed(name, _, scale, precision):
            named[name] = _BINARY if scale is None else _decimal(precision, scale)
        case types.AvroEnum(name):
            named[name] = STRING
        case types.AvroRecord(name, fields):
            named[name] = JSON  # for a reference to the record inside itself
            named[name] = StructOf(tuple((field, _avro(part, named)) for field, part in fields))
        case types.AvroReference(name):
            pass
        case types.AvroUnion(branches):
            null = types.AvroScalar(AvroKind.NULL)
            parts = [_avro(branch, named) for branch in branches if branch != null]
            return _VOID if not parts else parts[0] if len(parts) == 1 else JSON
        case types.AvroArray(element):
            return ArrayOf(_avro(element, named))
        case types.AvroMap(value):
            return MapOf(STRING, _avro(value, named))
    return named[name]


def _decimal(precision: int | None, scale: int) -> ColumnType:
    if precision is None or not 1 <= precision <= _MAX_DIGITS or scale > precision:
        return _TEXT
    return DecimalOf(precision, scale)
