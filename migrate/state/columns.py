"""The columns of a keyed state: decoder's types as column types of Spark and Arrow.

``key_group, key, namespace, map_key, value, last_access``, each where the state has it. A column
type knows its DDL, as Spark's ``DataType.sql`` prints it, and how to turn a value that the decoder
gave into what Arrow takes for it. What no column type of Spark holds exactly is text:

- integers and decimals of Java's (BigInteger, BigDecimal), which have any number of digits, and a
  scale of their own each;
- a time of day, as java.time prints it;
- what is of one type here and of another there (an Avro union of several types, a recursive Avro
  record, a Kryo collection, a field that subclasses have with different types): its JSON.

Timestamps are cut to microseconds. java.sql.Date and Time are timestamps: the time zone in which
they were a date, or a time, is not kept. A map whose keys hold maps, or are null by design, is a
list of structs of key and value.

Source: DataType.sql, QuotingUtils.quoteIfNeeded @ Spark 4.0.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from decoder.keyed_state import KeyedState, StateKind, types
from decoder.keyed_state.java_values import Instant, LocalDate, LocalDateTime
from decoder.keyed_state.types import AvroKind, Kind, SqlKind, unreadable
from migrate.state.json_form import value_json

Convert = Callable[[Any], Any]

_MOST_DIGITS = 38  # of Spark's DECIMAL, and of Arrow's decimal128
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MICROS = 1_000_000
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Leaf:
    """A type without parts; ``convert``: None where Arrow takes the value as it is."""

    ddl: str
    convert: Convert | None = None


@dataclass(frozen=True, slots=True)
class DecimalOf:
    precision: int
    scale: int

    @property
    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def convert(self) -> Convert | None:
        return None


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: ColumnType

    @property
    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl}>"

    @property
    def convert(self) -> Convert | None:
        element = self.element.convert
        if element is None:
            return None
        return lambda value: [None if one is None else element(one) for one in value]


@dataclass(frozen=True, slots=True)
class MapOf:
    key: ColumnType
    value: ColumnType

    @property
    def ddl(self) -> str:
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"

    @property
    def convert(self) -> Convert | None:
        key, value = _or_as_it_is(self.key), _or_as_it_is(self.value)
        if key is value is _as_it_is:
            return None
        return lambda pairs: [(key(one), value(other)) for one, other in pairs]


@dataclass(frozen=True, slots=True)
class PairsOf:
    """A map whose keys may be what Spark's are not."""

    key: ColumnType
    value: ColumnType

    @property
    def ddl(self) -> str:
        return f"ARRAY<STRUCT<key: {self.key.ddl}, value: {self.value.ddl}>>"

    @property
    def convert(self) -> Convert | None:
        key, value = _or_as_it_is(self.key), _or_as_it_is(self.value)
        return lambda pairs: [{"key": key(one), "value": value(other)} for one, other in pairs]


@dataclass(frozen=True, slots=True)
class StructOf:
    fields: tuple[tuple[str, ColumnType], ...]

    @property
    def ddl(self) -> str:
        told = ", ".join(f"{quoted(name)}: {type_.ddl}" for name, type_ in self.fields)
        return f"STRUCT<{told}>"

    @property
    def convert(self) -> Convert | None:
        converts = {name: own for name, type_ in self.fields if (own := type_.convert)}
        if not converts:
            return None

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            found = dict(value)
            for name, own in converts.items():
                part = found.get(name)
                if part is not None:
                    found[name] = own(part)
            return found

        return convert


ColumnType = Leaf | DecimalOf | ArrayOf | MapOf | PairsOf | StructOf


def quoted(name: str) -> str:
    """A name as DDL has it."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _as_it_is(value: Any) -> Any:
    return value


def _or_as_it_is(type_: ColumnType) -> Convert:
    """What turns a value of this type that may be None."""
    own = type_.convert
    if own is None:
        return _as_it_is
    return lambda value: None if value is None else own(value)


# -- the columns of a state ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """A column, by the name that its values have in ``Entry``."""

    name: str
    type: ColumnType


def columns(state: KeyedState) -> tuple[Column, ...]:
    """The columns of a state that can be read."""
    found: dict[str, ColumnType | None] = {
        "key_group": INT,
        "key": column_type(state.key),
        "namespace": namespace_type(state),
        "map_key": column_type(state.map_key) if state.map_key is not None else None,
        "value": value_type(state),
    }
    if state.ttl:
        found["last_access"] = ArrayOf(BIGINT) if state.kind is StateKind.LIST else BIGINT
    return tuple(Column(name, type_) for name, type_ in found.items() if type_ is not None)


def namespace_type(state: KeyedState) -> ColumnType | None:
    """None of a state that is kept under nothing but its key, or the one global window."""
    return None if state.namespace in _NO_NAMESPACE else column_type(state.namespace)


def value_type(state: KeyedState) -> ColumnType | None:
    value = column_type(state.value)
    return ArrayOf(value) if value is not None and state.kind is StateKind.LIST else value


def column_type(type_: types.Type) -> ColumnType | None:
    """None of a type whose values cannot be read."""
    return None if unreadable(type_) is not None else _column(type_)


_NO_NAMESPACE = (types.Scalar(Kind.VOID_NAMESPACE), types.Scalar(Kind.GLOBAL_WINDOW))


# -- leaves --------------------------------------------------------------------------------------


def _as_json(value: Any) -> str:
    return json.dumps(value_json(value))


def _instant(value: Instant) -> int:
    return value.seconds * _MICROS + value.nano // 1000


def _date(value: LocalDate) -> int:
    return value.epoch_day


def _date_time(value: LocalDateTime) -> int:
    seconds = value.date.epoch_day * _SECONDS_PER_DAY
    return seconds * _MICROS + value.time.nano_of_day // 1000


BOOLEAN, _TINYINT, _SMALLINT, INT, BIGINT = map(
    Leaf, ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT")
)
_FLOAT, _DOUBLE, STRING, _BINARY, _VOID = map(Leaf, ("FLOAT", "DOUBLE", "STRING", "BINARY", "VOID"))
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
# What Kryo writes of these classes is of the same Python type as what Flink's own serializer does.
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


# -- types with parts ----------------------------------------------------------------------------


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
        case types.TaggedUnion(one, two):
            return StructOf((("one", _column(one)), ("two", _column(two))))
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
            return _Avro().column(schema)
        case types.Sql(sql):
            return _sql(sql)
        case types.Kryo(name):
            return _KRYO.get(name, JSON)
        case types.Timer() | types.Unreadable():
            raise AssertionError(f"no value is of type {type_}")


def _map(key: ColumnType, value: ColumnType, null_keys: bool) -> ColumnType:
    no_key = null_keys or _holds_map(key) or key == _VOID
    return PairsOf(key, value) if no_key else MapOf(key, value)


def _holds_map(type_: ColumnType) -> bool:
    match type_:
        case MapOf():
            return True
        case ArrayOf(element):
            return _holds_map(element)
        case PairsOf(key, value):
            return _holds_map(key) or _holds_map(value)
        case StructOf(fields):
            return any(_holds_map(part) for _, part in fields)
        case _:
            return False


def _pojo(type_: types.Pojo) -> ColumnType:
    """Its fields, then those that only subclasses have, of which a value may be."""
    found: dict[str, ColumnType] = {}
    for own in _classes(type_):
        for name, part in own.fields:
            if name.startswith(types.MISSING_FIELD) or unreadable(part) is not None:
                continue
            column = _column(part)
            known = found.setdefault(name, column)
            if known != column:
                found[name] = JSON
    return StructOf(tuple(found.items()))


def _classes(type_: types.Pojo) -> list[types.Pojo]:
    found = [type_]
    for _, subclass in (*type_.registered, *type_.subclasses):
        if isinstance(subclass, types.Pojo):
            found += _classes(subclass)
    return found


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


class _Avro:
    """Column types of one schema."""

    def __init__(self) -> None:
        self._named: dict[str, ColumnType] = {}

    def column(self, type_: types.AvroType) -> ColumnType:
        match type_:
            case types.AvroScalar(kind, logical, scale, precision):
                if logical == "decimal":
                    return _decimal(precision, scale)
                return _AVRO[kind] if logical is None else _AVRO_LOGICAL[logical]
            case types.AvroFixed(name, _, scale, precision):
                found = _BINARY if scale is None else _decimal(precision, scale)
            case types.AvroEnum(name):
                found = STRING
            case types.AvroRecord(name, fields):
                self._named[name] = JSON  # of itself, inside of it
                found = StructOf(tuple((own, self.column(part)) for own, part in fields))
            case types.AvroReference(name):
                return self._named[name]
            case types.AvroUnion(branches):
                return self._union(branches)
            case types.AvroArray(element):
                return ArrayOf(self.column(element))
            case types.AvroMap(value):
                return MapOf(STRING, self.column(value))
        self._named[name] = found
        return found

    def _union(self, branches: tuple[types.AvroType, ...]) -> ColumnType:
        null = types.AvroScalar(AvroKind.NULL)
        found = [self.column(branch) for branch in branches if branch != null]
        return _VOID if not found else found[0] if len(found) == 1 else JSON


def _decimal(precision: int | None, scale: int) -> ColumnType:
    if precision is None or not 1 <= precision <= _MOST_DIGITS or scale > precision:
        return _TEXT
    return DecimalOf(precision, scale)
