"""The columns of a keyed state, and the mapping from the decoder's types to column types.

The columns are ``key_group, key, namespace, map_key, value, last_access``. A state may lack some of
these columns.

Values that cannot be represented exactly by any Spark column type become strings:

- Java's BigInteger and BigDecimal, which can have any number of digits and (BigDecimal) any scale;
- an Avro decimal that does not fit into Spark's DECIMAL;
- a time of day, in the java.time format;
- as JSON, values whose type can differ from one value to the next (an Avro union of several types,
  a Kryo collection, or a field whose type differs between subclasses);
- as JSON, an Avro record inside a record of the same name.

Timestamps are truncated to microseconds. In a key, a namespace, or a map key, nanoseconds are an
error unless the user allows truncation, because two keys could become equal.

java.sql.Date and java.sql.Time become timestamps, because Flink stores epoch milliseconds but not
the time zone of the date or time of day. A map whose keys contain maps or may be null becomes a
list of (key, value) structs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from decoder.avro import types as avro_types
from decoder.avro.types import AvroKind
from decoder.keyed_state import KeyedState, StateKind, types
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime
from decoder.keyed_state.types import Kind, SqlKind, unreadable
from migrate.extensions.keyed_state.json_form import NO_NAMESPACE, value_json
from migrate.model.column_types import (
    BIGINT,
    BOOLEAN,
    INT,
    STRING,
    ArrayOf,
    Column,
    ColumnType,
    DecimalOf,
    Leaf,
    MapOf,
    PairsOf,
    StructOf,
)
from migrate.model.option_names import option

# The columns in which two different values must not become equal.
KEY_COLUMNS = ("key", "namespace", "map_key")
_MAX_DIGITS = 38  # the limit of DECIMAL in Spark and of decimal128 in Arrow
_MICROS = 1_000_000
_SECONDS_PER_DAY = 86_400


def column_type(type_: types.Type) -> ColumnType | None:
    """Return the column type for a serializer's type, or None if its values cannot be read."""
    return None if unreadable(type_) is not None else _column(type_)


def columns(state: KeyedState, *, truncate_keys: bool = False) -> tuple[Column, ...]:
    """Return the columns of a readable state, named like the fields of ``Entry``.

    With ``truncate_keys``, nanoseconds in keys are truncated. Otherwise, converting them raises an
    error.
    """
    by_name: dict[str, ColumnType | None] = {
        "key_group": INT,
        "key": column_type(state.key),
        "namespace": namespace_type(state),
        "map_key": column_type(state.map_key) if state.map_key is not None else None,
        "value": value_type(state),
    }
    if state.ttl:
        by_name["last_access"] = ArrayOf(BIGINT) if state.kind is StateKind.LIST else BIGINT
    if not truncate_keys:
        for name in KEY_COLUMNS:
            type_ = by_name[name]
            by_name[name] = None if type_ is None else _exactly(type_)
    return tuple(Column(name, type_) for name, type_ in by_name.items() if type_ is not None)


def namespace_type(state: KeyedState) -> ColumnType | None:
    """Return the namespace's column type; None if there is no namespace or it cannot be read."""
    return None if state.namespace in NO_NAMESPACE else column_type(state.namespace)


def value_type(state: KeyedState) -> ColumnType | None:
    """Return the type of the ``value`` column, or None if the values cannot be read."""
    value = column_type(state.value)
    return ArrayOf(value) if value is not None and state.kind is StateKind.LIST else value


def _as_json(value: Any) -> str:
    return json.dumps(value_json(value))


def _instant(value: Instant) -> int:
    return value.seconds * _MICROS + value.nano // 1000


def _exact_instant(value: Instant) -> int:
    return _whole_micros(value, value.nano, _instant(value))


def _exact_date_time(value: LocalDateTime) -> int:
    return _whole_micros(value, value.time.nano_of_day, _date_time(value))


def _whole_micros(value: Any, nanos: int, micros: int) -> int:
    if nanos % 1000:
        raise ValueError(
            f"{value_json(value)} has nanoseconds, but Arrow and Spark store microseconds, so "
            f"different keys could become equal; set truncateKeys ({option('truncate_keys')}) to "
            "truncate the nanoseconds"
        )
    return micros


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
_EXACT = {
    _TIMESTAMP: Leaf("TIMESTAMP", _exact_instant),
    _TIMESTAMP_NTZ: Leaf("TIMESTAMP_NTZ", _exact_date_time),
}
_TEXT = Leaf("STRING", value_json)
JSON = Leaf("STRING", _as_json)

# The value kinds of the decoder, and the Avro logical types, that each column type represents.
_KINDS_OF_COLUMN: dict[ColumnType, Sequence[Kind | SqlKind | AvroKind | str]] = {
    BOOLEAN: (Kind.BOOLEAN, SqlKind.BOOLEAN, AvroKind.BOOLEAN),
    _TINYINT: (Kind.BYTE, SqlKind.TINYINT),
    _SMALLINT: (Kind.SHORT, SqlKind.SMALLINT),
    INT: (Kind.INT, SqlKind.INT, SqlKind.INTERVAL_MONTHS, AvroKind.INT),
    BIGINT: (Kind.LONG, SqlKind.BIGINT, SqlKind.INTERVAL_MILLIS, AvroKind.LONG),
    _FLOAT: (Kind.FLOAT, SqlKind.FLOAT, AvroKind.FLOAT),
    _DOUBLE: (Kind.DOUBLE, SqlKind.DOUBLE, AvroKind.DOUBLE),
    STRING: (Kind.CHAR, Kind.STRING, Kind.STRING_VALUE, SqlKind.STRING, AvroKind.STRING),
    _BINARY: (SqlKind.BYTES, SqlKind.RAW, AvroKind.BYTES),
    _TEXT: (
        *(Kind.BIG_INTEGER, Kind.BIG_DECIMAL, Kind.LOCAL_TIME, SqlKind.TIME),
        *("time-millis", "time-micros"),
    ),
    _DATE: (Kind.LOCAL_DATE, SqlKind.DATE, "date"),
    _TIMESTAMP: (
        *(Kind.DATE, Kind.SQL_DATE, Kind.SQL_TIME, Kind.SQL_TIMESTAMP, Kind.INSTANT),
        *("timestamp-millis", "timestamp-micros", "timestamp-nanos"),
    ),
    _TIMESTAMP_NTZ: (
        Kind.LOCAL_DATE_TIME,
        *("local-timestamp-millis", "local-timestamp-micros", "local-timestamp-nanos"),
    ),
    _VOID: (
        *(Kind.VOID, Kind.NULL_VALUE, Kind.VOID_NAMESPACE, Kind.GLOBAL_WINDOW),
        *(SqlKind.NULL, AvroKind.NULL),
    ),
    StructOf((("start", BIGINT), ("end", BIGINT))): (Kind.TIME_WINDOW,),
    StructOf((("id", BIGINT),)): (Kind.COUNT_WINDOW,),
}
_COLUMN_OF_KIND = {kind: type_ for type_, kinds in _KINDS_OF_COLUMN.items() for kind in kinds}
# For each column type, the Kryo-serialized classes that it represents; other classes become JSON.
_CLASSES_OF_COLUMN: dict[ColumnType, Sequence[str]] = {
    BOOLEAN: ["java.lang.Boolean"],
    _TINYINT: ["java.lang.Byte"],
    _SMALLINT: ["java.lang.Short"],
    INT: ["java.lang.Integer"],
    BIGINT: ["java.lang.Long"],
    _FLOAT: ["java.lang.Float"],
    _DOUBLE: ["java.lang.Double"],
    STRING: [
        *("java.lang.Character", "java.lang.String", "java.lang.StringBuffer"),
        *("java.lang.StringBuilder", "java.time.DayOfWeek", "java.time.Duration"),
        *("java.time.Month", "java.time.OffsetDateTime", "java.time.OffsetTime"),
        *("java.time.ZoneOffset", "java.util.UUID", "java.util.concurrent.TimeUnit"),
    ],
    _TEXT: ["java.math.BigInteger", "java.math.BigDecimal", "java.time.LocalTime"],
    _DATE: ["java.time.LocalDate"],
    _TIMESTAMP: [
        *("java.sql.Date", "java.sql.Time", "java.sql.Timestamp"),
        *("java.time.Instant", "java.util.Date"),
    ],
    _TIMESTAMP_NTZ: ["java.time.LocalDateTime"],
}
_COLUMN_OF_CLASS = {name: type_ for type_, names in _CLASSES_OF_COLUMN.items() for name in names}


def _column(type_: types.Type) -> ColumnType:
    match type_:
        case types.Scalar(kind):
            return _COLUMN_OF_KIND[kind]
        case types.PrimitiveArray(element):
            return _BINARY if element is Kind.BYTE else ArrayOf(_COLUMN_OF_KIND[element])
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
            return _COLUMN_OF_CLASS.get(name, JSON)
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
    """Return a struct with the fields of a class, and with the additional fields of subclasses."""
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
            return _COLUMN_OF_KIND[kind]
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


def _avro(type_: avro_types.AvroType, named: dict[str, ColumnType]) -> ColumnType:
    """Return the column type for a part of a schema; add the part's named types to ``named``."""
    match type_:
        case avro_types.AvroScalar(kind, logical, scale, precision):
            if logical == "decimal":
                return _decimal(precision, scale)
            return _COLUMN_OF_KIND[kind if logical is None else logical]
        case avro_types.AvroFixed(name, _, scale, precision):
            named[name] = _BINARY if scale is None else _decimal(precision, scale)
        case avro_types.AvroEnum(name):
            named[name] = STRING
        case avro_types.AvroRecord(name, fields):
            named[name] = JSON  # for a reference to the record from inside the record itself
            named[name] = StructOf(tuple((field, _avro(part, named)) for field, part in fields))
        case avro_types.AvroReference(name):
            pass
        case avro_types.AvroUnion(branches):
            null = avro_types.AvroScalar(AvroKind.NULL)
            parts = [_avro(branch, named) for branch in branches if branch != null]
            return _VOID if not parts else parts[0] if len(parts) == 1 else JSON
        case avro_types.AvroArray(element):
            return ArrayOf(_avro(element, named))
        case avro_types.AvroMap(value):
            return MapOf(STRING, _avro(value, named))
    return named[name]


def _exactly(type_: ColumnType) -> ColumnType:
    """Return the type with timestamps that do not allow nanoseconds."""
    match type_:
        case Leaf():
            return _EXACT.get(type_, type_)
        case PairsOf(element):
            return PairsOf(_exactly(element))
        case ArrayOf(element):
            return ArrayOf(_exactly(element))
        case MapOf(key, value):
            return MapOf(_exactly(key), _exactly(value))
        case StructOf(fields):
            return StructOf(tuple((name, _exactly(part)) for name, part in fields))
        case DecimalOf():
            return type_


def _decimal(precision: int | None, scale: int) -> ColumnType:
    if precision is None or not 1 <= precision <= _MAX_DIGITS or scale > precision:
        return _TEXT
    return DecimalOf(precision, scale)
