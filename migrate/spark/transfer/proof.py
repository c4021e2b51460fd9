"""Spark's own state, compared with Flink's key by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, LongType

from migrate.model.errors import Refused
from migrate.model.wording import counted
from migrate.planning.state_proof import StateProof
from migrate.spark.transfer.rows import StateRows, ToldValue
from migrate.spark.transfer.spark_state import SEEN, TOLD_BY_ROWS, Field, SparkState

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SHOWN = 3


def prove(
    found: SparkState, rows: Sequence[StateRows | DataFrame], expected: DataFrame | None
) -> StateProof:
    """Compare what a primed checkpoint location holds with what it must.

    Raises:
        Refused: what it must hold is not said, or cannot be told from the state's fields.
    """
    known = [one for one in rows if isinstance(one, StateRows)]
    if expected is not None:
        return compare(found, named(expected, found))
    if len(known) != 1:
        raise Refused(
            f"{counted(len(known), 'stream')} with rows of Flink's state: say what Spark's state "
            "must hold (expected)"
        )
    if found.operator not in TOLD_BY_ROWS:
        raise Refused(
            f"the query keeps the state of {found.told}, which these rows do not tell: make rows "
            "of your own, and say what is expected"
        )
    proofs: list[StateProof] = []
    for order in value_orders(known[0].values):
        proof = compare(found, _expected(known[0], found, order))
        if proof.is_right:
            return proof
        proofs.append(proof)
    return max(proofs, key=lambda proof: proof.right)


# -- what it must hold ---------------------------------------------------------------------------


def value_orders(values: Sequence[ToldValue]) -> Iterator[Sequence[int]]:
    """Yield the orders that the values may have in the query, as their numbers.

    A query may have ``count(*)`` anywhere among its counts of columns, and Spark calls all of them
    ``count``. The other values of a kind have the order of the query.
    """
    numbers = range(len(values))
    yield numbers
    if ToldValue("count") not in values:
        return
    records = values.index(ToldValue("count"))
    others = [number for number in numbers if number != records]
    for place, number in enumerate(others, start=1):
        value = values[number]
        if value.kind == "count" and not value.of_an_average:
            yield [*others[:place], records, *others[place:]]


def _expected(rows: StateRows, found: SparkState, order: Sequence[int]) -> DataFrame:
    """Return what the rows say, in the order of the state's fields.

    Args:
        rows: Flink's state.
        found: Spark's state.
        order: the numbers of the values, in the order of the query.
    """
    keys = key_order(rows.keys, found)
    types = [field.dataType for field in rows.expected.schema.fields]
    _check_keys([types[n] for n in keys], found)
    if ("window" in rows.expected.columns) != found.window:
        raise Refused("the query groups by a window, and the rows have none; or the other way")
    columns = [F.col(f"k{n}").alias(f"k{place}") for place, n in enumerate(keys)]
    columns += [F.col("window")] * found.window
    values = [rows.values[number] for number in order]
    places = [order[place] for place in told_by(values, found.values)]
    for number, (field, place) in enumerate(zip(found.values, places, strict=True)):
        column, own = F.col(f"v{place}"), rows.expected.schema[f"v{place}"].dataType
        if rows.values[place].of_an_average:
            column = F.coalesce(column, F.lit(0).cast(own))  # it adds up from 0
            if isinstance(field.type, DoubleType) and isinstance(own, DecimalType):
                column = column * F.lit(10**own.scale)  # a decimal's units
        column = in_units(column, own, field)
        columns.append(column.cast(field.type).alias(f"v{number}"))
    return rows.expected.select(*columns)


def in_units(column: Column, own: DataType, field: Field) -> Column:
    """The sum of a DECIMAL in units of its last digit, where Spark keeps it so: where the stream's
    has at most 8 digits, it adds up BIGINTs (DecimalAggregates @ Spark 4.0.0)."""
    is_long_sum = field.name == "sum" and isinstance(field.type, LongType)
    if is_long_sum and isinstance(own, DecimalType) and 0 < own.scale <= 8:
        return column * F.lit(10**own.scale)
    return column


def told_by(told: Sequence[ToldValue], fields: Sequence[Field]) -> list[int]:
    """Return for each field the number of its value: of a kind in their order.

    Raises:
        Refused: there are not as many of a kind as fields of it, so that one would stand for two.
    """
    kinds = [(field.name, field.of_an_average) for field in fields]
    own = [(value.kind, value.of_an_average) for value in told]
    if Counter(kinds) != Counter(own):
        raise Refused(
            f"the state of the query has the fields {_listed(fields)}, and the rows tell "
            f"{', '.join(map(str, told)) or 'none'}: tell a value for each field (counts and "
            "averages are told apart), or say what the state must hold (expected)"
        )
    of_kind = {kind: iter([n for n, one in enumerate(own) if one == kind]) for kind in kinds}
    return [next(of_kind[kind]) for kind in kinds]


def key_order(names: Sequence[str], found: SparkState) -> list[int]:
    """Return for each part of Spark's key which of some columns it is.

    They are matched by name: ``dropDuplicates`` keeps several columns in an order of its own. Where
    a query groups by other names, by their order.

    Raises:
        Refused: of ``dropDuplicates``, the names are others.
    """
    own = [field.name for field in found.keys]
    if len(set(names)) == len(names) and sorted(names) == sorted(own):
        return [names.index(name) for name in own]
    if found.operator == SEEN and len(own) > 1:
        raise Refused(
            f"dropDuplicates keeps its key as {_listed(found.keys)}, and Flink's is told as "
            f"{', '.join(names) or 'nothing'}: name the same columns, or say what the state must "
            "hold in this order (expected, --expect)"
        )
    return list(range(len(names)))


def _check_keys(own: Sequence[DataType], found: SparkState) -> None:
    if list(own) != [field.type for field in found.keys]:
        raise Refused(
            f"the key of Spark's state is {_listed(found.keys)}, and the rows' {_types(own)}: name "
            "keys in the order of the query's groupBy, and no others"
        )


def named(expected: DataFrame, found: SparkState) -> DataFrame:
    """The user's, by their order."""
    names = found.key_columns + found.value_columns
    if len(names) != len(expected.columns):
        raise Refused(
            f"expected has {counted(len(expected.columns), 'column')}, and the state "
            f"{len(names)}: {_listed(found.keys)}{', a window' * found.window}, "
            f"{_listed(found.values)}"
        )
    _check_keys([one.dataType for one in expected.schema.fields[: len(found.keys)]], found)
    return expected.toDF(*names)


def _types(types: Sequence[DataType]) -> str:
    return ", ".join(one.simpleString() for one in types) or "empty"


def _listed(fields: Sequence[Field]) -> str:
    return ", ".join(map(str, fields)) or "none"


# -- side by side --------------------------------------------------------------------------------


def compare(found: SparkState, flink: DataFrame, *, of_flink_alone: bool = False) -> StateProof:
    """Spark's state beside rows in its form.

    Args:
        of_flink_alone: whether the rows are a sample, and keys that they lack are nothing. A sample
            of nothing is Flink's whole state: then all of Spark's are looked at.
    """
    how = "left_outer" if of_flink_alone else "full_outer"
    key, values = found.key_columns, found.value_columns
    one = flink.select(F.struct(*key).alias("key"), F.struct(F.lit(1), *values).alias("flink"))
    other = found.frame.select(
        F.struct(*key).alias("its"), F.struct(F.lit(1), *values).alias("spark")
    )
    joined = one.join(other, F.col("key").eqNullSafe(F.col("its")), how).select(
        F.coalesce("key", "its").alias("key"),
        "flink",
        "spark",
        F.when(F.col("spark").isNull(), "missing")
        .when(F.col("flink").isNull(), "unexpected")
        .when(F.col("flink").eqNullSafe(F.col("spark")), "right")
        .otherwise("wrong")
        .alias("verdict"),
    )
    # Flink may have several rows for a key, as an expression may make two keys one: then "wrong",
    # which is greater than "right", is the key's verdict.
    by_key = joined.groupBy("key").agg(F.max("verdict").alias("verdict"))
    counts = {row["verdict"]: row["count"] for row in by_key.groupBy("verdict").count().collect()}
    if of_flink_alone and not counts:
        return compare(found, flink)
    examples: list[str] = []
    if counts.keys() - {"right"}:
        told = joined.where("verdict <> 'right'").select(
            *(F.col(name).cast("STRING").alias(name) for name in ("key", "flink", "spark")),
            "verdict",
        )
        examples = [
            f"{row['verdict']}: key {row['key']}: Flink {row['flink']}, Spark {row['spark']}"
            for row in told.take(_SHOWN)
        ]
    verdicts = ("right", "wrong", "missing", "unexpected")
    right, wrong, missing, unexpected = (counts.get(name, 0) for name in verdicts)
    looked_for = None if of_flink_alone else unexpected
    return StateProof(right, wrong, missing, looked_for, tuple(examples))
