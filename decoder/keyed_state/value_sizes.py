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

# DecimalData.MAX_COMPACT_PRECISION, TimestampData.isCompact @ 2.2.0
MAX_COMPACT_DECIMAL = 18
MAX_COMPACT_TIMESTAMP = 3

_VARIABLE = {Kind.STRING, Kind.STRING_VALUE, Kind.BIG_INTEGER, Kind.BIG_DECIMAL}
# Of the length 0, though a VoidNamespace writes a byte.
_NO_LENGTH = {Kind.NULL_VALUE, Kind.VOID_NAMESPACE}


def has_fixed_length(type_: Type) -> bool:
    """Whether ``getLength`` of the serializer is no -1: all its values are of one length."""
    match type_:
        case Scalar(kind):
            return kind not in _VARIABLE
        case Struct(_, fields):
            # TupleSerializerBase: one of no length makes it variable too.
            return all(
                has_fixed_length(part)
                and not (isinstance(part, Scalar) and part.kind in _NO_LENGTH)
                for _, part in fields
            )
        case Ttl(inner):
            return has_fixed_length(inner)
        case Nullable(_, padding):
            return padding > 0
        case JavaEnum() | Sql(SqlTimestamp()):
            return True
        case _:
            return False


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
