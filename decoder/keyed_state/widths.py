"""How long values are: what Flink says of a serializer, and the least that one takes.

Source: TypeSerializer.getLength of the classes that ``snapshots`` names @ Flink 2.2.0.
"""

from __future__ import annotations

from decoder.keyed_state.types import (
    Avro,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroKind,
    AvroMap,
    AvroRecord,
    AvroReference,
    AvroScalar,
    AvroType,
    AvroUnion,
    JavaEnum,
    Kind,
    Nullable,
    Pojo,
    Row,
    Scalar,
    Sql,
    SqlDecimal,
    SqlKind,
    SqlScalar,
    SqlTimestamp,
    Struct,
    Timer,
    Ttl,
    Type,
)

VARIABLE = -1
# DecimalData.MAX_COMPACT_PRECISION, TimestampData.isCompact @ 2.2.0
MAX_COMPACT_DECIMAL = 18
MAX_COMPACT_TIMESTAMP = 3

_FIXED = {
    Kind.BOOLEAN: 1,
    Kind.BYTE: 1,
    Kind.SHORT: 2,
    Kind.INT: 4,
    Kind.LONG: 8,
    Kind.FLOAT: 4,
    Kind.DOUBLE: 8,
    Kind.CHAR: 2,
    Kind.DATE: 8,
    Kind.SQL_DATE: 8,
    Kind.SQL_TIME: 8,
    Kind.SQL_TIMESTAMP: 12,
    Kind.INSTANT: 12,
    Kind.LOCAL_DATE: 6,
    Kind.LOCAL_TIME: 7,
    Kind.LOCAL_DATE_TIME: 13,
    Kind.VOID: 1,
    Kind.NULL_VALUE: 0,
    Kind.VOID_NAMESPACE: 0,  # though it writes a byte
    Kind.GLOBAL_WINDOW: 1,
    Kind.TIME_WINDOW: 16,
    Kind.COUNT_WINDOW: 8,
}
_SQL_FIXED = {
    SqlKind.BOOLEAN: 1,
    SqlKind.TINYINT: 1,
    SqlKind.SMALLINT: 2,
    SqlKind.INT: 4,
    SqlKind.BIGINT: 8,
    SqlKind.FLOAT: 4,
    SqlKind.DOUBLE: 8,
    SqlKind.DATE: 4,
    SqlKind.TIME: 4,
    SqlKind.INTERVAL_MONTHS: 4,
    SqlKind.INTERVAL_MILLIS: 8,
}
_LEAST = {Kind.SQL_TIMESTAMP: 8, Kind.VOID_NAMESPACE: 1, Kind.STRING: 1, Kind.STRING_VALUE: 1}
_AVRO_LEAST = {
    AvroKind.NULL: 0,
    AvroKind.BOOLEAN: 1,
    AvroKind.INT: 4,
    AvroKind.LONG: 8,
    AvroKind.FLOAT: 4,
    AvroKind.DOUBLE: 8,
    AvroKind.BYTES: 4,
    AvroKind.STRING: 4,
}


def flink_length(type_: Type) -> int:
    """What ``getLength`` of the serializer says: bytes, or VARIABLE."""
    match type_:
        case Scalar(kind):
            return _FIXED.get(kind, VARIABLE)
        case JavaEnum():
            return 4
        case Struct(_, fields):
            # TupleSerializerBase: one of no length, or of none that is fixed, makes it variable.
            lengths = [flink_length(field.type) for field in fields]
            if not lengths:
                return 1
            return sum(lengths) if min(lengths) > 0 else VARIABLE
        case Ttl(inner):
            length = flink_length(inner)
            return 8 + length if length >= 0 else VARIABLE
        case Nullable(_, padding) if padding:
            return 1 + padding
        case Sql(SqlScalar(kind)):
            return _SQL_FIXED.get(kind, VARIABLE)
        case Sql(SqlTimestamp(precision)):
            return 8 if precision <= MAX_COMPACT_TIMESTAMP else 12
        case _:
            return VARIABLE


def least_bytes(type_: Type) -> int:
    """The least that a value takes, which bounds how many of them there can be."""
    match type_:
        case Scalar(kind):
            return _LEAST.get(kind, _FIXED.get(kind, 4))
        case Struct(_, fields):
            return sum(least_bytes(field.type) for field in fields) if fields else 1
        case Row(fields, has_kind):
            return (len(fields) + 2 * has_kind + 7) // 8
        case Ttl(inner):
            return 8 + least_bytes(inner)
        case Timer(key, namespace):
            return 8 + least_bytes(key) + least_bytes(namespace)
        case Pojo() | Nullable():
            return 1
        case Avro(_, schema):
            return least_avro_bytes(schema)
        case Sql(SqlScalar(sql)):
            return _SQL_FIXED.get(sql, 4)
        case Sql(SqlDecimal(precision)):
            return 8 if precision <= MAX_COMPACT_DECIMAL else 4
        case Sql(SqlTimestamp()):
            return 8
        case Sql():
            return 4
        case _:
            return 1


def least_avro_bytes(type_: AvroType) -> int:
    match type_:
        case AvroScalar(kind):
            return _AVRO_LEAST[kind]
        case AvroFixed(_, size):
            return size
        case AvroEnum() | AvroUnion():
            return 4
        case AvroRecord(_, fields):
            return sum(least_avro_bytes(field) for _, field in fields)
        case AvroReference():
            return 0
        case AvroArray() | AvroMap():
            return 1
