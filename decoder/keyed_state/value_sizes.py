"""Determine whether a type's values have a fixed length, and whether a value can be empty.

Source: TypeSerializer.getLength of the classes listed in ``snapshots`` @ Flink 2.2.0.
"""

from __future__ import annotations

from decoder.avro import types as avro_types
from decoder.keyed_state import types

# The highest precisions of decimals and timestamps that are stored as a long:
# DecimalData.MAX_COMPACT_PRECISION, TimestampData.isCompact @ 2.2.0.
MAX_COMPACT_DECIMAL = 18
MAX_COMPACT_TIMESTAMP = 3

_VARIABLE = {
    types.Kind.STRING,
    types.Kind.STRING_VALUE,
    types.Kind.BIG_INTEGER,
    types.Kind.BIG_DECIMAL,
}
# The kinds for which ``getLength`` is 0, although a VoidNamespace writes a byte.
_NO_LENGTH = {types.Kind.NULL_VALUE, types.Kind.VOID_NAMESPACE}


def has_fixed_length(type_: types.Type) -> bool:
    """Return whether the serializer has a fixed length (its ``getLength`` is not -1)."""
    match type_:
        case types.Scalar(kind):
            return kind not in _VARIABLE
        case types.Struct(_, fields):
            # In TupleSerializerBase, a zero-length field makes the tuple's length variable.
            return all(
                has_fixed_length(part)
                and not (isinstance(part, types.Scalar) and part.kind in _NO_LENGTH)
                for _, part in fields
            )
        case types.Ttl(inner):
            return has_fixed_length(inner)
        case types.Nullable(_, padding):
            return padding > 0
        case types.JavaEnum() | types.Sql(types.SqlTimestamp()):
            return True
        case _:
            return False


def can_be_empty(type_: types.Type) -> bool:
    """Return whether a value can take up zero bytes, so that a few bytes represent many values."""
    match type_:
        case types.Scalar(kind):
            return kind is types.Kind.NULL_VALUE
        case types.Struct(_, fields):
            return bool(fields) and all(can_be_empty(field.type) for field in fields)
        case types.Row(fields, has_kind):
            return not fields and not has_kind
        case types.Avro(_, schema):
            return avro_can_be_empty(schema)
        case _:
            return False


def avro_can_be_empty(type_: avro_types.AvroType) -> bool:
    """Return whether an Avro value can be encoded in zero bytes; True for any reference."""
    match type_:
        case avro_types.AvroScalar(kind):
            return kind is avro_types.AvroKind.NULL
        case avro_types.AvroFixed(_, size):
            return size == 0
        case avro_types.AvroRecord(_, fields):
            return all(avro_can_be_empty(field) for _, field in fields)
        case avro_types.AvroReference():
            return True
        case _:
            return False
