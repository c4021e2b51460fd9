"""The proof of a primed state: a comparison of Spark's state with Flink's, key by key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, LongType

from migrate.model.errors import Refused
from migrate.model.wording import counted
from migrate.planning.state_proof import StateProof
from migrate.spark.transfer.flat_state import (
    DEDUPLICATE,
    OPERATORS_WITH_COMPUTED_EXPECTATION,
    Field,
    SparkState,
)
from migrate.spark.transfer.rows import StateRows
from migrate.spark.transfer.spread import AggregateValue

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MAX_EXAMPLES = 3


class Expectation(NamedTuple):
    """The state that Spark should have, in the columns of ``SparkState``, and the comparison."""

    frame: DataFrame
    proof: StateProof


def find_expected(
    state: SparkState, rows: Sequence[StateRows | DataFrame], expected: DataFrame | None
) -> Expectation:
    """Compare Spark's state with the expected state, which may be computed from the rows.

    Args:
        state: Spark's state.
        rows: the rows of each stream.
        expected: the expected state; None if it can be computed from the rows.

    Raises:
        Refused: the expected state is not given and cannot be computed from the rows, or its
            columns cannot be matched with the fields of Spark's state.
    """
    if expected is not None:
        frame = name_columns(expected, state)
        return Expectation(frame, compare(state, frame))
    state_rows = [stream for stream in rows if isinstance(stream, StateRows)]
    if len(state_rows) != 1:
        raise Refused(
            f"{counted(len(state_rows), 'stream')} with rows of Flink's state: say what Spark's "
            "state must hold (expected)"
        )
    if state.operator not in OPERATORS_WITH_COMPUTED_EXPECTATION:
        raise Refused(
            f"the query keeps the state of {state.description}, which these rows do not tell: make "
            "rows of your own, and say what is expected"
        )
    candidates: list[Expectation] = []
    for order in value_orders(state_rows[0].values):
        frame = _expected(state_rows[0], state, order)
        candidate = Expectation(frame, compare(state, frame))
        if candidate.proof.is_right:
            return candidate
        candidates.append(candidate)
    return max(candidates, key=lambda candidate: candidate.proof.right)


# -- the expected state --------------------------------------------------------------------------


def value_orders(values: Sequence[AggregateValue]) -> Iterator[Sequence[int]]:
    """Yield the possible orders of the values in the query, each as indexes of ``values``.

    The values are in the order of the query, except ``count(*)``. Its place among the counts is
    unknown, because Spark names the field of every count ``count``.
    """
    numbers = range(len(values))
    yield numbers
    if AggregateValue("count") not in values:
        return
    row_count = values.index(AggregateValue("count"))
    others = [number for number in numbers if number != row_count]
    for end, number in enumerate(others, start=1):
        value = values[number]
        if value.kind == "count" and not value.in_average:
            yield [*others[:end], row_count, *others[end:]]


def _expected(rows: StateRows, state: SparkState, order: Sequence[int]) -> DataFrame:
    """Return the expected state, with its columns in the order of Spark's fields.

    Args:
        rows: the rows of Flink's state.
        state: Spark's state.
        order: indexes of ``rows.values``; one of the orders that ``value_orders`` yields.
    """
    keys = key_order(rows.keys, state)
    types = [field.dataType for field in rows.expected.schema.fields]
    _check_keys([types[number] for number in keys], state)
    if ("window" in rows.expected.columns) != state.has_window:
        raise Refused("the query groups by a window, and the rows have none; or the other way")
    columns = [F.col(f"k{number}").alias(f"k{index}") for index, number in enumerate(keys)]
    columns += [F.col("window")] * state.has_window
    matches = match_values([rows.values[number] for number in order], state.values)
    for index, (field, match) in enumerate(zip(state.values, matches, strict=True)):
        name = f"v{order[match]}"
        column, flink_type = F.col(name), rows.expected.schema[name].dataType
        if field.in_average:
            column = F.coalesce(
                column, F.lit(0).cast(flink_type)
            )  # the sum and the count of an average start at 0
            if isinstance(field.type, DoubleType) and isinstance(flink_type, DecimalType):
                column = column * F.lit(10**flink_type.scale)  # Spark's sum is unscaled
        column = to_spark_sum(column, flink_type, field)
        columns.append(column.cast(field.type).alias(f"v{index}"))
    return rows.expected.select(*columns)


def to_spark_sum(column: Column, flink_type: DataType, field: Field) -> Column:
    """Return a value as Spark stores it.

    Only the sum of a DECIMAL of at most 8 digits differs: Spark adds up unscaled BIGINTs
    (DecimalAggregates @ Spark 4.0.0).
    """
    is_long_sum = field.name == "sum" and isinstance(field.type, LongType)
    if is_long_sum and isinstance(flink_type, DecimalType) and 0 < flink_type.scale <= 8:
        return column * F.lit(10**flink_type.scale)
    return column


def match_values(values: Sequence[AggregateValue], fields: Sequence[Field]) -> list[int]:
    """Return for each field the index of its value.

    Fields and values of the same kind are matched by their order.

    Raises:
        Refused: the number of values of a kind is not the number of its fields.
    """
    field_kinds = [(field.name, field.in_average) for field in fields]
    value_kinds = [(value.kind, value.in_average) for value in values]
    if Counter(field_kinds) != Counter(value_kinds):
        raise Refused(
            f"the state of the query has the fields {_list_fields(fields)}, and the rows tell "
            f"{', '.join(map(str, values)) or 'none'}: tell a value for each field (counts and "
            "averages are told apart), or say what the state must hold (expected)"
        )
    indexes = {
        kind: iter([index for index, value_kind in enumerate(value_kinds) if value_kind == kind])
        for kind in field_kinds
    }
    return [next(indexes[kind]) for kind in field_kinds]


def key_order(names: Sequence[str], state: SparkState) -> list[int]:
    """Return, for each field of Spark's key, the index of its column in ``names``.

    Fields and columns are matched by name, because ``dropDuplicates`` does not keep the user's
    order of columns. If the names differ, they are matched by position.

    Raises:
        Refused: the names differ, and the query is a ``dropDuplicates`` of several columns.
    """
    spark_names = [field.name for field in state.keys]
    if len(set(names)) == len(names) and sorted(names) == sorted(spark_names):
        return [names.index(name) for name in spark_names]
    if state.operator == DEDUPLICATE and len(spark_names) > 1:
        raise Refused(
            f"dropDuplicates keeps its key as {_list_fields(state.keys)}, and Flink's is told as "
            f"{', '.join(names) or 'nothing'}: name the same columns, or tell prime (expected) "
            "or verify (--expect) what the state must hold in this order"
        )
    return list(range(len(names)))


def _check_keys(types: Sequence[DataType], state: SparkState) -> None:
    if list(types) != [field.type for field in state.keys]:
        names = ", ".join(type_.simpleString() for type_ in types) or "empty"
        raise Refused(
            f"the key of Spark's state is {_list_fields(state.keys)}, and the rows' {names}: name "
            "keys in the order of the query's groupBy, and no others"
        )


def name_columns(expected: DataFrame, state: SparkState) -> DataFrame:
    """Rename the columns of the user's expected state to those of Spark's state, by position."""
    names = state.key_columns + state.value_columns
    if len(names) != len(expected.columns):
        raise Refused(
            f"expected has {counted(len(expected.columns), 'column')}, and the state "
            f"{len(names)}: {_list_fields(state.keys)}{', a window' * state.has_window}, "
            f"{_list_fields(state.values)}"
        )
    _check_keys([field.dataType for field in expected.schema.fields[: len(state.keys)]], state)
    return expected.toDF(*names)


def _list_fields(fields: Sequence[Field]) -> str:
    return ", ".join(map(str, fields)) or "none"


# -- the comparison ------------------------------------------------------------------------------


def compare(state: SparkState, flink: DataFrame, *, is_sample: bool = False) -> StateProof:
    """Compare Spark's state with Flink's entries.

    Args:
        state: Spark's state.
        flink: Flink's entries, with the columns of Spark's state.
        is_sample: whether ``flink`` is a sample. Then keys that only Spark has are no errors. If
            the sample is empty, Flink's state is empty too, and Spark's must be.
    """
    joined = join_states(state, flink, is_sample=is_sample)
    # Flink may have several rows for a key, because an expression may map two keys to one. If one
    # of these rows is "wrong", so is the key: F.max returns "wrong", which sorts after "right".
    by_key = joined.groupBy("key").agg(F.max("verdict").alias("verdict"))
    counts = {row["verdict"]: row["count"] for row in by_key.groupBy("verdict").count().collect()}
    if is_sample and not counts:
        return compare(state, flink)
    examples: list[str] = []
    if counts.keys() - {"right"}:
        wrong_rows = joined.where("verdict <> 'right'").select(
            *(F.col(name).cast("STRING").alias(name) for name in ("key", "flink", "spark")),
            "verdict",
        )
        examples = [
            f"{row['verdict']}: key {row['key']}: Flink {row['flink']}, Spark {row['spark']}"
            for row in wrong_rows.take(_MAX_EXAMPLES)
        ]
    verdicts = ("right", "wrong", "missing", "unexpected")
    right_keys, wrong, missing, unexpected = (counts.get(verdict, 0) for verdict in verdicts)
    return StateProof(
        right_keys, wrong, missing, None if is_sample else unexpected, tuple(examples)
    )


def join_states(state: SparkState, flink: DataFrame, *, is_sample: bool = False) -> DataFrame:
    """Return a row for each key of Spark's state and each of Flink's entries.

    The columns are ``key``, ``flink`` and ``spark`` (structs; null where the key is missing; a
    first field that is always 1 precedes the values), and ``verdict``: ``right``, ``wrong``,
    ``missing`` in Spark, or ``unexpected``.

    Args:
        state: Spark's state.
        flink: Flink's entries, with the columns of Spark's state.
        is_sample: whether to leave out the keys that only Spark has.
    """
    join_type = "left_outer" if is_sample else "full_outer"
    key, values = state.key_columns, state.value_columns
    flink_rows = flink.select(
        F.struct(*key).alias("flink_key"), F.struct(F.lit(1), *values).alias("flink")
    )
    spark_rows = state.frame.select(
        F.struct(*key).alias("spark_key"), F.struct(F.lit(1), *values).alias("spark")
    )
    same_key = F.col("flink_key").eqNullSafe(F.col("spark_key"))
    return flink_rows.join(spark_rows, same_key, join_type).select(
        F.coalesce("flink_key", "spark_key").alias("key"),
        "flink",
        "spark",
        F.when(F.col("spark").isNull(), "missing")
        .when(F.col("flink").isNull(), "unexpected")
        .when(F.col("flink").eqNullSafe(F.col("spark")), "right")
        .otherwise("wrong")
        .alias("verdict"),
    )
