"""Fixed value lengths of Flink's serializers, type by type.

``getLength`` of a serializer decides whether a key is followed by its length
(CompositeKeySerializationUtils @ Flink 2.2.0). A few bytes can represent any number of zero-byte
values, so such values are detected.
"""

from __future__ import annotations

import pytest

from decoder.avro.types import (
    AvroArray,
    AvroFixed,
    AvroKind,
    AvroRecord,
    AvroReference,
    AvroScalar,
)
from decoder.keyed_state.types import (
    Avro,
    Field,
    JavaEnum,
    Kind,
    List,
    Nullable,
    Row,
    Scalar,
    Sql,
    SqlKind,
    SqlScalar,
    SqlTimestamp,
    Struct,
    Ttl,
    Type,
)
from decoder.keyed_state.value_sizes import can_be_empty, has_fixed_length

_LONG, _TEXT = Scalar(Kind.LONG), Scalar(Kind.STRING)
_NULL, _VOID = Scalar(Kind.NULL_VALUE), Scalar(Kind.VOID_NAMESPACE)
_VARIABLE = ("STRING", "STRING_VALUE", "BIG_INTEGER", "BIG_DECIMAL")
_AVRO_INT, _AVRO_NULL = AvroScalar(AvroKind.INT), AvroScalar(AvroKind.NULL)


def _of(*parts: Type) -> Struct:
    return Struct("T", tuple(Field(f"f{n}", part) for n, part in enumerate(parts)))


@pytest.mark.parametrize(
    ("type_", "fixed"),
    [
        *((Scalar(kind), kind.name not in _VARIABLE) for kind in Kind),
        (_of(), True),
        (_of(_LONG, _LONG), True),
        (_of(_LONG, _TEXT), False),
        (_of(_TEXT, _LONG), False),
        (_of(_LONG, _NULL), False),
        (_of(_VOID, _LONG), False),
        (Ttl(_LONG), True),
        (Ttl(_TEXT), False),
        (Nullable(_LONG, 0), False),
        (Nullable(_LONG, 1), True),
        (JavaEnum("E", ("A",)), True),
        (Sql(SqlTimestamp(3, local_zone=False)), True),
        (Sql(SqlScalar(SqlKind.INT)), False),
        (List(_LONG), False),
    ],
)
def test_fixed_length_of_each_type_matches_flink_serializer(type_: Type, fixed: bool) -> None:
    assert has_fixed_length(type_) is fixed


def _avro(schema: object) -> Avro:
    return Avro("shop.Order", schema)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "nothing"),
    [
        *((Scalar(kind), kind is Kind.NULL_VALUE) for kind in Kind),
        (_of(), False),  # a Tuple0 writes a byte
        (_of(_NULL), True),
        (_of(_NULL, _NULL), True),
        (_of(_NULL, _LONG), False),
        (Row((), has_kind=False), True),
        (Row((), has_kind=True), False),
        (Row((_NULL,), has_kind=False), False),
        (List(_NULL), False),
        (_avro(_AVRO_NULL), True),
        (_avro(_AVRO_INT), False),
        (_avro(AvroFixed("F", 0)), True),
        (_avro(AvroFixed("F", 1)), False),
        (_avro(AvroRecord("R", ())), True),
        (_avro(AvroRecord("R", (("a", _AVRO_NULL), ("b", _AVRO_NULL)))), True),
        (_avro(AvroRecord("R", (("a", _AVRO_NULL), ("b", _AVRO_INT)))), False),
        (_avro(AvroReference("R")), True),
        (_avro(AvroArray(_AVRO_NULL)), False),
    ],
)
def test_value_can_be_empty_only_if_serializer_writes_zero_bytes(
    type_: Type, nothing: bool
) -> None:
    assert can_be_empty(type_) is nothing
