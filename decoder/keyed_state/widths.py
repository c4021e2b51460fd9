"""How long values are: what Flink says of a serializer, and whether one may take no bytes.

Source: TypeSerializer.getLength of the classes that ``snapshots`` names @ Flink 2.2.0.
"""

from __future__ import annotations

from decoder.keyed_state.types import (
    Avro,
    AvroFixed,
    AvroKind,
    AvroRecord,
    AvroReference,
    AvroScalar,
    AvroType,
    JavaEnum,
    Kind,
    Nullable,
    Row,
    Scalar,
    Sql,
    SqlTimestamp,
    Struct,
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
        case Sql(SqlTimestamp(precision)):
            return 8 if precision <= MAX_COMPACT_TIMESTAMP else 12
        case _:
            return VARIABLE


def may_be_nothing(type_: Type) -> bool:
    """Whether a value may take no bytes, so that nothing bounds how many of them there are."""
    match type_:
        case Scalar(kind):
            return kind is Kind.NULL_VALUE
        case Struct(_, fields):
            return bool(fields) and all(may_be_nothing(field.type) for field in fields)
        case Row(fields, has_kind):
            return not fields and not has_kind
        case Avro(_, schema):
            return avro_may_be_nothing(schema)
        case _:
            return False


def avro_may_be_nothing(type_: AvroType) -> bool:
    """A reference may be to anything."""
    match type_:
        case AvroScalar(kind):
            return kind is AvroKind.NULL
        case AvroFixed(_, size):
            return size == 0
        case AvroRecord(_, fields):
            return all(avro_may_be_nothing(field) for _, field in fields)
        case AvroReference():
            return True
        case _:
            return False
