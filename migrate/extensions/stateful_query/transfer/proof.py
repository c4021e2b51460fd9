"""Compare the Spark state with the Flink state, key by key."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, LongType, StructType

from migrate.extensions.stateful_query.catalog import (
    EXPECTED_STATE_AMBIGUOUS,
    EXPECTED_STATE_UNKNOWN,
    FIELDS_DIFFER,
    KEY_NAMES_DIFFER,
    KEY_TYPES_DIFFER,
    WINDOW_ONLY_IN_QUERY,
    WINDOW_ONLY_IN_ROWS,
)
from migrate.extensions.stateful_query.state_proof import StateProof
from migrate.extensions.stateful_query.transfer.exact_cast import cast_exactly
from migrate.extensions.stateful_query.transfer.flat_state import (
    DEDUPLICATE,
    OPERATORS_WITH_COMPUTED_EXPECTATION,
    Field,
    SparkState,
)
from migrate.extensions.stateful_query.transfer.origin import LAST_ACCESS
from migrate.extensions.stateful_query.transfer.rounding import Rounding
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.extensions.stateful_query.transfer.spread import AggregateValue
from migrate.model.column_types import quoted
from migrate.model.errors import Refused, UsageError
from migrate.model.option_names import option
from migrate.model.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MAX_EXAMPLES = 3
# If a key or value has no fields, messages show this text instead of the field names.
_NO_FIELDS = ("none",)
# An optional column of ``SparkState.frame``, which ``compare`` uses to bound rounding errors.
_MAGNITUDE = "magnitude"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of the Spark state with the Flink state.

    Attributes:
        flink: the Flink entries, in the columns of ``SparkState``.
        differences: a row for each differing entry. ``key``, ``flink``, and ``spark`` are structs;
            ``flink`` or ``spark`` is null if the key is missing on that side. ``verdict`` is
            ``wrong``, ``missing`` (only Flink has the key), or ``unexpected`` (only Spark has it).
    """

    proof: StateProof
    flink: DataFrame
    differences: DataFrame


def compare_with_expected(
    state: SparkState,
    rows: Sequence[StateRows | DataFrame],
    expected: DataFrame | None,
    rounding: Rounding | None = None,
) -> Comparison:
    """Compare the Spark state with ``expected`` or, if it is None, with the rows' expected state.

    ``rounding`` is the same as in ``compare``.

    Raises:
        Refused: ``expected`` is None, and the expected state cannot be computed from the rows; or
            the rows cannot be matched with the fields of the Spark state.
        UsageError: as in ``to_spark_columns``; or the type of a value cannot be cast exactly to the
            type of its field.
    """
    if expected is not None:
        return compare(state, to_spark_columns(expected, state), rounding=rounding)
    state_rows = [stream for stream in rows if isinstance(stream, StateRows)]
    if len(state_rows) != 1:
        raise Refused(EXPECTED_STATE_AMBIGUOUS(streams=len(state_rows)))
    if state.operator not in OPERATORS_WITH_COMPUTED_EXPECTATION:
        raise Refused(EXPECTED_STATE_UNKNOWN(operator=state.description))
    (stream,) = state_rows
    keys = [stream.keys[number] for number in key_order(stream.keys, state)]
    comparisons = []
    for order in value_orders(stream.values):
        flink = _expected(stream, state, order)
        if rounding is not None:
            rounding = replace(rounding, singles=_singles(stream, state, order))
        comparisons.append(compare(state, flink, keys=keys, rounding=rounding))
        if comparisons[-1].proof.is_right:
            break
    best = max(comparisons, key=lambda comparison: comparison.proof.right)
    return replace(best, proof=stream.counted_in(best.proof))


# -- the expected state --------------------------------------------------------------------------


def value_orders(values: Sequence[AggregateValue]) -> Iterator[Sequence[int]]:
    """Yield the possible orders of the query's values, each as indexes into ``values``.

    Except for ``count(*)``, ``values`` are in the order of the query. The position of ``count(*)``
    among the counts is unknown, because Spark uses the field name ``count`` for every count.
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

    ``order`` is an element of ``value_orders``.
    """
    keys = key_order(rows.keys, state)
    types = [rows.expected.schema[f"k{number}"].dataType for number in keys]
    if types != [field.type for field in state.keys]:
        names = [type_.simpleString() for type_ in types]
        raise Refused(KEY_TYPES_DIFFER(spark_key=_names(state.keys), row_key=names or _NO_FIELDS))
    if ("window" in rows.expected.columns) != state.has_window:
        raise Refused(WINDOW_ONLY_IN_QUERY() if state.has_window else WINDOW_ONLY_IN_ROWS())
    columns = [F.col(f"k{number}").alias(f"k{index}") for index, number in enumerate(keys)]
    columns += [F.col("window")] * state.has_window
    matches = match_values([rows.values[number] for number in order], state.values)
    for index, (field, match) in enumerate(zip(state.values, matches, strict=True)):
        name = f"v{order[match]}"
        column, flink_type = F.col(name), rows.expected.schema[name].dataType
        if field.in_average:
            # If an average has no values, Spark stores 0, not null, as its sum and its count.
            column = F.coalesce(column, F.lit(0).cast(flink_type))
        column = to_spark_sum(column, flink_type, field)
        if isinstance(field.type, DoubleType) and (
            field.in_average or isinstance(flink_type, FloatType)
        ):
            column = column.cast(field.type)  # as Spark casts each value that it adds
        columns.append(column.alias(f"v{index}"))
    expected = rows.expected.select(*columns)
    for index, field in enumerate(state.values):
        expected = cast_exactly(expected, f"v{index}", field.type, field.name)
    return expected


def _singles(rows: StateRows, state: SparkState, order: Sequence[int]) -> frozenset[int]:
    """Return the indexes of the Spark fields whose values are FLOAT in Flink."""
    matches = match_values([rows.values[number] for number in order], state.values)
    return frozenset(
        index
        for index, match in enumerate(matches)
        if isinstance(rows.expected.schema[f"v{order[match]}"].dataType, FloatType)
    )


def to_spark_sum(column: Column, flink_type: DataType, field: Field) -> Column:
    """Return a column of Flink's values in the format in which Spark stores the field.

    The format differs from Flink's only for sums of short DECIMALs. For such a sum, Spark stores
    the sum of the unscaled values. The stored sum is a BIGINT if the DECIMAL has at most 8 digits.
    In an average, the stored sum is a DOUBLE if the DECIMAL has at most 11 digits
    (DecimalAggregates @ Spark 4.0.0).
    """
    if field.name != "sum" or not isinstance(flink_type, DecimalType):
        return column
    is_long = isinstance(field.type, LongType) and flink_type.scale <= 8
    is_unscaled = is_long or (field.in_average and isinstance(field.type, DoubleType))
    return column * F.lit(10**flink_type.scale) if is_unscaled and flink_type.scale else column


def match_values(values: Sequence[AggregateValue], fields: Sequence[Field]) -> list[int]:
    """Return, for each field, the index of its value.

    Fields and values of the same kind are matched by order.

    Raises:
        Refused: the number of values of a kind differs from the number of fields of that kind.
    """
    field_kinds = [(field.name, field.in_average) for field in fields]
    value_kinds = [(value.kind, value.in_average) for value in values]
    if Counter(field_kinds) != Counter(value_kinds):
        raise Refused(FIELDS_DIFFER(fields=_names(fields), values=_names(values)))
    indexes = {
        kind: iter([index for index, value_kind in enumerate(value_kinds) if value_kind == kind])
        for kind in field_kinds
    }
    return [next(indexes[kind]) for kind in field_kinds]


def key_order(names: Sequence[str], state: SparkState) -> list[int]:
    """Return, for each field of the Spark key, the index of its column in ``names``.

    Fields and columns are matched by name, because ``dropDuplicates`` does not keep the user's
    order of columns. If the names differ, fields and columns are matched by position.

    Raises:
        Refused: the names differ, and the query uses ``dropDuplicates`` on several columns.
    """
    spark_names = [field.name for field in state.keys]
    if len(set(names)) == len(names) and sorted(names) == sorted(spark_names):
        return [names.index(name) for name in spark_names]
    if state.operator == DEDUPLICATE and len(spark_names) > 1:
        raise Refused(KEY_NAMES_DIFFER(spark_key=_names(state.keys), flink_key=names or _NO_FIELDS))
    return list(range(len(names)))


def to_spark_columns(
    expected: DataFrame, state: SparkState, *, in_spark_units: bool = True
) -> DataFrame:
    """Return the user's expected state in the columns and types of the Spark state.

    Columns are matched by position. The key columns come first, then the window if the state has
    windows, and then the value columns. If a ``last_access`` column follows, it remains in the
    result but is not compared.

    ``in_spark_units`` is True if the values are in Spark's stored format (see ``to_spark_sum``).

    Raises:
        UsageError: the expected state and the Spark state have different numbers of columns, the
            window is not a struct of start and end, or a type cannot be cast exactly.
    """
    names = state.key_columns + state.value_columns
    if len(expected.columns) == len(names) + 1 and expected.columns[-1] == LAST_ACCESS:
        names = [*names, LAST_ACCESS]
    if len(names) != len(expected.columns):
        raise UsageError(
            f"`expected` has {counted(len(expected.columns), 'column')}, but Spark's state has "
            f"{len(names)} (the key {', '.join(_names(state.keys))}"
            f"{', a window' * state.has_window}, and the value "
            f"{', '.join(_names(state.values))}); pass an expression for each column with "
            f"{option('expect')}"
        )
    expected = expected.toDF(*names)
    if state.has_window:
        expected = _with_timestamps(expected)
    for name, field in zip(state.value_columns, state.values, strict=True):
        if not in_spark_units:
            flink_type = expected.schema[name].dataType
            expected = expected.withColumn(name, to_spark_sum(F.col(name), flink_type, field))
        expected = cast_exactly(expected, name, field.type, field.name)
    for number, field in enumerate(state.keys):
        expected = cast_exactly(expected, f"k{number}", field.type, field.name)
    return expected


def _with_timestamps(expected: DataFrame) -> DataFrame:
    """Return the expected state with its window as a struct of timestamps."""
    type_ = expected.schema["window"].dataType
    if not isinstance(type_, StructType) or type_.names != ["start", "end"]:
        raise UsageError(
            f"the window in `expected` has type {type_.simpleString()}, but must be a struct of "
            "start and end; use named_struct('start', …, 'end', …)"
        )
    if isinstance(type_.fields[0].dataType, LongType):
        bounds = (F.timestamp_millis(f"window.{bound}").alias(bound) for bound in type_.names)
        return expected.withColumn("window", F.struct(*bounds))
    return expected


def _names(fields: Sequence[Field] | Sequence[AggregateValue]) -> Sequence[str]:
    """Return the names of fields, or the values as strings, for a message."""
    return [str(field) for field in fields] or _NO_FIELDS


# -- the comparison ------------------------------------------------------------------------------


def compare(
    state: SparkState,
    flink: DataFrame,
    *,
    keys: Sequence[str] | None = None,
    is_sample: bool = False,
    rounding: Rounding | None = None,
) -> Comparison:
    """Compare the Spark state with the Flink entries.

    Args:
        state: the Spark state.
        flink: the Flink entries, with the columns of the Spark state.
        keys: the names to use for the key parts in the list of differences; by default, Spark's
            names.
        is_sample: True if ``flink`` is a sample. Keys that only Spark has are then not errors.
            However, an empty sample shows that the Flink state is empty, so the Spark state must
            also be empty.
        rounding: how to compare floating-point sums; None to compare them exactly. The allowed
            difference is relative to the larger absolute value of the two sums. If the frame of
            ``state`` has a ``magnitude`` column, its value is added to this absolute value.
    """
    names = [field.name for field in state.keys] if keys is None else keys
    joined = _join(state, flink, names, "left_outer" if is_sample else "full_outer", rounding)
    # A key may have several rows, because an expression may map two Flink keys to one key. If a row
    # is "wrong", the key is also "wrong". F.max returns this verdict, because "wrong" sorts after
    # "right" and "rounded".
    by_key = joined.groupBy("key", *_exact_texts(F.col("key"), state)).agg(
        F.max("verdict").alias("verdict")
    )
    counts = {row["verdict"]: row["count"] for row in by_key.groupBy("verdict").count().collect()}
    if is_sample and not counts:
        return compare(state, flink, keys=keys)
    differences = joined.where("verdict NOT IN ('right', 'rounded')")
    verdicts = ("right", "rounded", "wrong", "missing", "unexpected")
    right, rounded, wrong, missing, unexpected = (counts.get(verdict, 0) for verdict in verdicts)
    right += rounded
    entries = flink.count()
    proof = StateProof(
        *(right, wrong, missing, None if is_sample else unexpected),
        entries=entries,
        merged=entries - (right + wrong + missing),
        rounded=rounded,
    )
    if not proof.is_right:
        examples = describe_keys(differences, _MAX_EXAMPLES)
        if proof.merged:
            examples = [*_merged_keys(flink, state, names), *examples]
        proof = replace(proof, examples=tuple(examples))
    return Comparison(proof, flink, differences)


def _merged_keys(flink: DataFrame, state: SparkState, names: Sequence[str]) -> list[str]:
    """Describe the first merged keys, which are keys with several Flink entries."""
    key = _key_struct(state, names)
    by_key = flink.groupBy(key.alias("key"), *_exact_texts(key, state))
    several = by_key.count().where("count > 1").orderBy("key").limit(_MAX_EXAMPLES)
    rows = several.select(F.to_json("key", {"ignoreNullFields": "false"}), "count").collect()
    return [f"merged: {key}: {number} entries from Flink" for key, number in rows]


def first_differences(differences: DataFrame, most: int) -> DataFrame:
    """Return the first differences of each verdict, up to ``most`` differences in total.

    The first difference of each verdict comes first, then the second difference of each verdict,
    and so on. The ``rank`` column numbers the differences of each verdict in the order of the keys.
    """
    rank = F.row_number().over(Window.partitionBy("verdict").orderBy("key"))
    return differences.withColumn("rank", rank).orderBy("rank", "key").limit(most)


def describe_keys(differences: DataFrame, most: int) -> list[str]:
    """Describe the differences that ``first_differences`` returns, in the same order."""
    sides = (
        F.to_json(side, {"ignoreNullFields": "false"}).alias(side)
        for side in ("key", "flink", "spark")
    )
    first = first_differences(differences, most).select("verdict", *sides)
    return [
        f"{'different' if verdict == 'wrong' else verdict}: {key}: Flink {flink or 'nothing'}, "
        f"Spark {spark or 'nothing'}"
        for verdict, key, flink, spark in first.collect()
    ]


def _join(
    state: SparkState,
    flink: DataFrame,
    keys: Sequence[str],
    join_type: str,
    rounding: Rounding | None,
) -> DataFrame:
    """Join the Flink entries with the Spark state by key.

    The columns are the same as in ``Comparison.differences``, but ``verdict`` has two more values:
    ``right``, and ``rounded``. ``rounded`` means that the values match except for the rounding
    errors of floating-point sums.
    """
    key = _key_struct(state, keys)
    value_names = _unique([field.name for field in state.values])
    value = [
        F.col(column).alias(name)
        for column, name in zip(state.value_columns, value_names, strict=True)
    ]
    value = value or [F.lit(True).alias("seen")]  # a deduplication stores no values
    has_magnitude = _MAGNITUDE in state.frame.columns
    magnitude = F.col(_MAGNITUDE) if has_magnitude else F.lit(0.0)
    flink_rows = flink.select(key.alias("flink_key"), F.struct(*value).alias("flink"))
    spark_rows = state.frame.select(
        key.alias("spark_key"), F.struct(*value).alias("spark"), magnitude.alias(_MAGNITUDE)
    )
    flink_key, spark_key = F.col("flink_key"), F.col("spark_key")
    same_key = flink_key.eqNullSafe(spark_key)
    for flink_text, spark_text in zip(
        _exact_texts(flink_key, state), _exact_texts(spark_key, state), strict=True
    ):
        same_key &= flink_text == spark_text
    return flink_rows.join(spark_rows, same_key, join_type).select(
        F.coalesce("flink_key", "spark_key").alias("key"),
        "flink",
        "spark",
        F.when(F.col("spark").isNull(), "missing")
        .when(F.col("flink").isNull(), "unexpected")
        .when(F.col("flink").eqNullSafe(F.col("spark")), "right")
        .when(F.expr(_rounded(state, value_names, rounding)), "rounded")
        .otherwise("wrong")
        .alias("verdict"),
    )


def _rounded(state: SparkState, names: Sequence[str], rounding: Rounding | None) -> str:
    """Return an SQL expression that is true if values differ by at most a rounding error.

    ``names`` are the names of the values in the structs ``flink`` and ``spark``.
    """
    sums = [] if rounding is None else rounding.fields(state.values)
    if rounding is None or not sums:
        return "false"
    sides = [
        (f"flink.{quoted(name)}", f"spark.{quoted(name)}", state.values[number])
        for number, name in enumerate(names)
    ]
    counts = [side for *pair, field in sides if field.name == "count" for side in pair]
    count = f"greatest(0L, {', '.join(counts)})" if counts else None
    conditions = []
    for number, (flink, spark, field) in enumerate(sides):
        if number in sums:
            size = f"(greatest(abs({flink}), abs({spark})) + {_MAGNITUDE})"
            near = f"abs({flink} - {spark}) <= {rounding.allowed(number, field, size, count)}"
            # Only finite sums may differ. If a sum is NaN or infinite, ``size`` is not less than
            # infinity, because Spark treats NaN as the greatest number.
            near = f"{size} < double('infinity') AND {near}"
            conditions.append(f"({flink} <=> {spark} OR coalesce({near}, false))")
        else:
            conditions.append(f"{flink} <=> {spark}")
    return " AND ".join(conditions)


def _key_struct(state: SparkState, names: Sequence[str]) -> Column:
    """Return a struct of the key's columns: ``names`` and, for windows, ``window``."""
    key_names = [*_unique(names), *["window"] * state.has_window]
    return F.struct(
        *(
            F.col(column).alias(name)
            for column, name in zip(state.key_columns, key_names, strict=True)
        )
    )


def _exact_texts(key: Column, state: SparkState) -> list[Column]:
    """Return the key as a string if the key contains a floating-point number, and otherwise [].

    The string distinguishes -0.0 from 0.0, which are the same key in Spark's joins and groupings.
    """
    types = " ".join(field.type.simpleString() for field in state.keys)
    return [key.cast("string")] if re.search("float|double", types) else []


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names, with a number added to each repeated name: sum, count, sum_2."""
    unique: list[str] = []
    for name in names:
        others = (f"{name}_{number}" for number in count(2))
        unique.append(name if name not in unique else next(n for n in others if n not in unique))
    return unique
