"""Map types of keyed state to columns, for types that no golden snapshot contains."""

from __future__ import annotations

import sys
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

import migrate
from decoder.avro import schema as avro_schema
from decoder.avro import types as avro_types
from decoder.avro.types import AvroKind
from decoder.keyed_state import types
from decoder.keyed_state.java_values import MAX_SECOND, Instant, LocalDate, LocalTime, Pairs
from decoder.keyed_state.types import Field, Kind, Scalar, SqlKind
from migrate.extensions.keyed_state.arrow import DoesNotFit, batch_of_rows
from migrate.extensions.keyed_state.type_mapping import column_type
from migrate.model.column_types import Column
from migrate.model.errors import UsageError

_LONG, _STRING = Scalar(Kind.LONG), Scalar(Kind.STRING)
_INT = avro_types.AvroScalar(AvroKind.INT)
_TEXT = avro_types.AvroScalar(AvroKind.STRING)
_NULL = avro_types.AvroScalar(AvroKind.NULL)


def _ddl(type_: types.Type) -> str | None:
    found = column_type(type_)
    return found.ddl if found is not None else None


def _told(type_: types.Type, value: Any) -> Any:
    """Return the content of a column of this type for a value."""
    found = column_type(type_)
    assert found is not None
    return batch_of_rows((Column("value", found),), [(value,)]).column("value").to_pylist()[0]


def _avro(schema: avro_types.AvroType) -> types.Avro:
    return types.Avro("shop.Order", schema)


def test_every_kind_of_value_has_spark_column_type() -> None:
    """Arrow also has a type for each kind. The test writes a null value."""
    every: list[types.Type] = [
        *map(Scalar, Kind),
        *(types.Sql(types.SqlScalar(kind)) for kind in SqlKind),
        *(_avro(avro_types.AvroScalar(kind)) for kind in AvroKind),
        *(
            _avro(avro_types.AvroScalar(AvroKind(kind), logical))
            for kind, logical in avro_schema._LOGICAL
        ),
    ]
    assert {_told(type_, None) for type_ in every} == {None}


def test_invalid_ddl_names_are_quoted() -> None:
    of = types.Pojo("A", (Field("plain_1", _LONG), Field("a b", _LONG), Field("x`y", _STRING)))
    assert _ddl(of) == "STRUCT<plain_1: BIGINT, `a b`: BIGINT, `x``y`: STRING>"


def test_union_of_several_types_is_json() -> None:
    assert _ddl(_avro(avro_types.AvroUnion((_NULL, _INT)))) == "INT"
    assert _ddl(_avro(avro_types.AvroUnion((_NULL,)))) == "VOID"
    several = _avro(avro_types.AvroUnion((_NULL, _INT, _TEXT)))
    assert _ddl(several) == "STRING"
    assert [_told(several, value) for value in (5, "5", None)] == ["5", '"5"', None]


def test_recursive_record_is_represented_as_json() -> None:
    node = avro_types.AvroRecord(
        "Node",
        (("id", _INT), ("next", avro_types.AvroUnion((_NULL, avro_types.AvroReference("Node"))))),
    )
    assert _ddl(_avro(node)) == "STRUCT<id: INT, next: STRING>"
    told = _told(_avro(node), {"id": 1, "next": {"id": 2, "next": None}})
    assert told == {"id": 1, "next": '{"id": 2, "next": null}'}
    twice = avro_types.AvroRecord(
        "Two", (("a", avro_types.AvroFixed("F", 2)), ("b", avro_types.AvroReference("F")))
    )
    assert _ddl(_avro(twice)) == "STRUCT<a: BINARY, b: BINARY>"


@pytest.mark.parametrize(
    ("precision", "scale", "ddl"),
    [(10, 2, "DECIMAL(10,2)"), (38, 38, "DECIMAL(38,38)"), (39, 2, "STRING"), (None, 2, "STRING")],
)
def test_avro_decimals_with_up_to_38_digits_have_decimal_columns(
    precision: int | None, scale: int, ddl: str
) -> None:
    decimal = _avro(avro_types.AvroScalar(AvroKind.BYTES, "decimal", scale, precision))
    assert _ddl(decimal) == ddl
    assert str(_told(decimal, Decimal("0.25"))) in ("0.25", f"{Decimal('0.25'):.{scale}f}")


def test_field_with_different_types_in_subclasses_is_string() -> None:
    cat = types.Pojo("Cat", (Field("name", _STRING), Field("lives", _LONG)))
    dog = types.Pojo("Dog", (Field("name", _STRING), Field("lives", _STRING)))
    animal = types.Pojo(
        "Animal", (Field("name", _STRING),), (Field("Cat", cat),), (Field("Dog", dog),)
    )
    assert _ddl(animal) == "STRUCT<name: STRING, lives: STRING>"
    assert _told(animal, {"name": "Tom", "lives": 9}) == {"name": "Tom", "lives": "9"}
    assert _told(animal, {"name": "Rex"}) == {"name": "Rex", "lives": None}


def test_field_removed_from_class_has_no_column() -> None:
    """Flink replaces the name of such a field, and the values do not contain the field.

    PojoSerializerSnapshotData.getDummyNameForMissingField of Flink 2.2.0 defines the name.
    """
    order = types.Pojo("Order", (Field("id", _LONG), Field("missing-field-at-1", _STRING)))
    assert _ddl(order) == "STRUCT<id: BIGINT>"
    assert _told(order, {"id": 5}) == {"id": 5}


_MAP = types.Map(_STRING, _LONG)


@pytest.mark.parametrize(
    ("type_", "ddl"),
    [
        (types.PrimitiveArray(Kind.BYTE), "BINARY"),
        (types.PrimitiveArray(Kind.LONG), "ARRAY<BIGINT>"),
        (types.JavaEnum("E", ("A",)), "STRING"),
        (types.Row((_LONG, _STRING), has_kind=False), "STRUCT<f0: BIGINT, f1: STRING>"),
        (types.Either(_LONG, _STRING), "STRUCT<left: BIGINT, right: STRING>"),
        (types.TaggedUnion(_LONG, _STRING), "STRUCT<one: BIGINT, two: STRING>"),
        (types.LinkedList(_LONG, has_nulls=False), "ARRAY<BIGINT>"),
        (types.Nullable(_LONG, 0), "BIGINT"),
        (types.Ttl(_LONG), "BIGINT"),
        (types.Map(types.List(_MAP), _LONG), "ARRAY<STRUCT<key: ARRAY<{}>, value: BIGINT>>"),
        (types.Map(types.List(_LONG), _LONG), "MAP<ARRAY<BIGINT>, BIGINT>"),
        (
            types.Map(types.Row((_LONG, _MAP), has_kind=False), _LONG),
            "ARRAY<STRUCT<key: STRUCT<f0: BIGINT, f1: {}>, value: BIGINT>>",
        ),
        (types.Map(types.Row((_LONG,), has_kind=False), _LONG), "MAP<STRUCT<f0: BIGINT>, BIGINT>"),
        (
            types.Map(types.Map(_LONG, _MAP, null_keys=True), _LONG),
            "ARRAY<STRUCT<key: ARRAY<STRUCT<key: BIGINT, value: {}>>, value: BIGINT>>",
        ),
        (
            types.Map(types.Map(_LONG, _LONG, null_keys=True), _LONG),
            "MAP<ARRAY<STRUCT<key: BIGINT, value: BIGINT>>, BIGINT>",
        ),
        (types.Map(_LONG, _MAP), "MAP<BIGINT, {}>"),
    ],
)
def test_composite_type_has_matching_column(type_: types.Type, ddl: str) -> None:
    assert _ddl(type_) == ddl.format("MAP<STRING, BIGINT>")


_DATE, _DAY = Scalar(Kind.LOCAL_DATE), LocalDate(2024, 2, 29)


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        (types.List(_DATE), [_DAY, None], [date(2024, 2, 29), None]),
        (
            types.Map(_STRING, _DATE),
            Pairs([("a", _DAY), ("b", None)]),
            [("a", date(2024, 2, 29)), ("b", None)],
        ),
        (types.Map(_DATE, _LONG), Pairs([(_DAY, 5)]), [(date(2024, 2, 29), 5)]),
        (
            types.Map(_DATE, _DATE, null_keys=True),
            Pairs([(None, _DAY), (_DAY, None)]),
            [{"key": None, "value": date(2024, 2, 29)}, {"key": date(2024, 2, 29), "value": None}],
        ),
        (
            types.Either(_DATE, _LONG),
            {"left": _DAY, "right": None},
            {"left": date(2024, 2, 29), "right": None},
        ),
        (
            types.Either(_DATE, _LONG),
            {"left": None, "right": 5},
            {"left": None, "right": 5},
        ),
        (types.List(types.List(_DATE)), [[_DAY], None], [[date(2024, 2, 29)], None]),
    ],
)
def test_nested_values_are_converted(type_: types.Type, value: Any, told: Any) -> None:
    assert _told(type_, value) == told


def test_maps_with_keys_unsupported_by_spark_are_arrays() -> None:
    inner = types.Map(_STRING, _LONG)
    assert _ddl(inner) == "MAP<STRING, BIGINT>"
    assert _ddl(types.Map(inner, _LONG)) == (
        "ARRAY<STRUCT<key: MAP<STRING, BIGINT>, value: BIGINT>>"
    )
    nullable = types.Map(_STRING, _LONG, null_keys=True)
    assert _told(nullable, Pairs([(None, 1)])) == [{"key": None, "value": 1}]
    with pytest.raises(DoesNotFit, match="column value MAP<STRING, BIGINT>"):
        _told(inner, Pairs([(None, 1)]))


def test_value_outside_range_of_column_type_is_error() -> None:
    with pytest.raises(DoesNotFit, match="TIMESTAMP"):
        _told(Scalar(Kind.INSTANT), Instant(MAX_SECOND, 0))
    with pytest.raises(DoesNotFit, match="DATE"):
        _told(Scalar(Kind.LOCAL_DATE), LocalDate(999_999_999, 1, 1))
    with pytest.raises(DoesNotFit, match=r"DECIMAL\(3,1\)"):
        _told(types.Sql(types.SqlDecimal(3, 1)), Decimal("1000.5"))


def test_values_without_exact_spark_type_are_strings() -> None:
    assert _told(Scalar(Kind.BIG_DECIMAL), Decimal("1E+3")) == "1000"
    assert _told(Scalar(Kind.BIG_INTEGER), Decimal(2**200)) == str(2**200)
    assert _told(types.Sql(types.SqlScalar(SqlKind.TIME)), LocalTime(1, 2, 3, 0)) == "01:02:03"


def test_unreadable_nested_type_has_no_ddl() -> None:
    secret = types.Unreadable("shop.Secret", "Kryo writes it")
    assert _ddl(types.List(types.Struct("T", (Field("f0", _LONG), Field("f1", secret))))) is None


def test_read_state_without_pyarrow_reports_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError, match=r"'\.\[parquet\]'"):
        migrate.read_state("nothing", state="x")
