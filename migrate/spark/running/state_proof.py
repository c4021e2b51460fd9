"""Spark's own state, read back and compared with Flink's key by key.

Source: the state data source (``statestore``, ``state-metadata``) @ Spark 4.0.0:
StateDataSource, StatePartitionReader; SessionWindowStateStoreSaveExec
(StreamingSessionWindowStateManagerImplV1), StreamingAggregationStateManagerImplV2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, StructType, TimestampType

from migrate.errors import Refused
from migrate.spark.running.state_rows import StateRows, ToldValue
from migrate.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SHOWN = 3
# The operators whose values rows can tell; of others the user says what is expected.
_TOLD_BY_ROWS = {"stateStoreSave", "sessionWindowStateStoreSaveExec", "dedupe"}
_OPERATORS = {
    "symmetricHashJoin": "a join of two streams",
    "dedupeWithinWatermark": "dropDuplicatesWithinWatermark, which keeps until when it keeps",
    "globalLimit": "a limit",
}
# Of a value's fields those that hold none of its own.
_NO_VALUE, _EMPTY = "__dummy__", "isEmpty"


class NotProven(Refused):
    """Spark's state cannot be compared with Flink's."""

    def __init__(self, problem: str) -> None:
        super().__init__([problem])


@dataclass(frozen=True, slots=True)
class StateProof:
    """Spark's state beside Flink's, in keys (of windows: a key and its window).

    Attributes:
        right: alike in both.
        wrong: in both, with other values.
        missing: in Flink's alone.
        unexpected: in Spark's alone.
        examples: some that are not right, in words.
    """

    right: int
    wrong: int
    missing: int
    unexpected: int
    examples: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return not (self.wrong or self.missing or self.unexpected)

    def __str__(self) -> str:
        return (
            f"{counted(self.right, 'key')} right, {self.wrong} wrong, {self.missing} missing, "
            f"{self.unexpected} that Flink does not have"
        )

    def problems(self) -> list[str]:
        return [f"Spark's state is not Flink's: {self}", *self.examples]


def prove(
    spark: SparkSession,
    checkpoint: Path,
    rows: Sequence[StateRows | DataFrame],
    expected: DataFrame | None,
) -> StateProof:
    """Compare what a primed checkpoint location holds with what it must.

    Raises:
        NotProven: what it must hold is not said, or cannot be told from the state's fields.
    """
    known = [one for one in rows if isinstance(one, StateRows)]
    if expected is None and len(known) != 1:
        raise NotProven(
            f"{counted(len(known), 'stream')} with rows of Flink's state: say what Spark's state "
            "must hold (expected)"
        )
    operators = [
        (row["operatorId"], row["operatorName"])
        for row in spark.read.format("state-metadata").load(str(checkpoint)).collect()
    ]
    told = ", ".join(sorted({_OPERATORS.get(name, name) for _, name in operators})) or "none"
    if len(operators) != 1:
        raise NotProven(
            f"the query keeps state in {counted(len(operators), 'store')} ({told}); one can be "
            "primed"
        )
    if expected is None and operators[0][1] not in _TOLD_BY_ROWS:
        raise NotProven(
            f"the query keeps the state of {told}, which these rows do not tell: make rows of your "
            "own, and say what is expected"
        )
    state = spark.read.format("statestore").load(str(checkpoint))
    found = _Found.of(state)
    if expected is not None:
        return _compare(found.frame, _named(expected, found), found)
    (one,) = known
    return _compare(found.frame, _expected(one, found), found)


class Field(NamedTuple):
    """A field of a value: the name that Spark gives it, its type, and whether it is a sum that may
    be empty."""

    name: str
    type: DataType
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """Spark's state, flat: ``k0``…, ``window`` where it has one, ``v0``…"""

    frame: DataFrame
    keys: tuple[DataType, ...]
    window: bool
    values: tuple[Field, ...]

    @classmethod
    def of(cls, state: DataFrame) -> _Found:
        key, value = (state.schema[name].dataType for name in ("key", "value"))
        assert isinstance(key, StructType) and isinstance(value, StructType)
        parts = [(f"key.{n}", one.name, one.dataType) for n, one in enumerate(key.fields)]
        rest = [(f"value.{n}", one.name, one.dataType) for n, one in enumerate(value.fields)]
        # Of a DECIMAL sum that has added nothing up, 0 is kept, and that it is empty.
        empty = {f"value.{n - 1}" for n, (_, name, _) in enumerate(rest) if name == _EMPTY}
        if parts and parts[-1][1] == "sessionStartTime":
            # The whole group stands in the value, the window among it.
            parts, rest = rest[: len(parts)], rest[len(parts) :]
        windows = [part for part in parts if _is_window(part[2])]
        keys = [part for part in parts if part not in windows]
        values = [part for part in rest if part[1] not in (_NO_VALUE, _EMPTY)]
        if len(windows) > 1:
            raise NotProven("the query groups by several windows")
        flat = state.select(_numbered("key", key), _numbered("value", value))
        columns = [F.col(_at(place)).alias(f"k{n}") for n, (place, _, _) in enumerate(keys)]
        columns += [
            F.struct(
                F.col(f"{_at(place)}.start").alias("start"), F.col(f"{_at(place)}.end").alias("end")
            ).alias("window")
            for place, _, _ in windows
        ]
        columns += [
            _or_null(place, place in empty).alias(f"v{n}") for n, (place, _, _) in enumerate(values)
        ]
        return cls(
            flat.select(*columns),
            tuple(type_ for _, _, type_ in keys),
            bool(windows),
            tuple(Field(name, type_, may_be_empty=place in empty) for place, name, type_ in values),
        )


def _is_window(type_: DataType) -> bool:
    return isinstance(type_, StructType) and [(one.name, one.dataType) for one in type_.fields] == [
        ("start", TimestampType()),
        ("end", TimestampType()),
    ]


def _numbered(name: str, type_: StructType) -> Column:
    """Fields by number: of values several may have one name."""
    fields = ", ".join(f"_{n}: {one.dataType.simpleString()}" for n, one in enumerate(type_.fields))
    return F.col(name).cast(f"struct<{fields}>").alias(name)


def _at(place: str) -> str:
    column, _, number = place.partition(".")
    return f"{column}._{number}"


def _or_null(place: str, may_be_empty: bool) -> Column:
    if not may_be_empty:
        return F.col(_at(place))
    column, _, number = place.partition(".")
    return F.when(~F.col(f"{column}._{int(number) + 1}"), F.col(_at(place)))


# -- what it must hold ---------------------------------------------------------------------------


def _expected(rows: StateRows, found: _Found) -> DataFrame:
    """The rows' own, in the order of the state's fields."""
    _check_keys([one.dataType for one in rows.expected.schema.fields[: rows.keys]], found)
    if ("window" in rows.expected.columns) != found.window:
        raise NotProven("the query groups by a window, and the rows have none; or the other way")
    columns = [F.col(f"k{n}") for n in range(rows.keys)]
    columns += [F.col("window")] * found.window
    places = told_by(rows.values, found.values)
    for number, (field, place) in enumerate(zip(found.values, places, strict=True)):
        column, own = F.col(f"v{place}"), rows.expected.schema[f"v{place}"].dataType
        if rows.values[place].of_an_average:
            column = F.coalesce(column, F.lit(0).cast(own))  # it adds up from 0
            if isinstance(field.type, DoubleType) and isinstance(own, DecimalType):
                column = column * F.lit(10**own.scale)  # a decimal's units
        columns.append(column.cast(field.type).alias(f"v{number}"))
    return rows.expected.select(*columns)


def told_by(told: Sequence[ToldValue], fields: Sequence[Field]) -> list[int]:
    """For each field the value that is told of it: each its own, of a kind in their order.

    Raises:
        NotProven: there are not as many of a kind as fields of it, so that one would stand for two.
    """
    kinds = [(field.name, False) for field in fields]
    if any(one.of_an_average for one in told):
        # A sum that is followed by a count is an average, or looks like one.
        for n, (field, after) in enumerate(pairwise(fields)):
            if (field.name, after.name, field.may_be_empty) == ("sum", "count", False):
                kinds[n : n + 2] = [("sum", True), ("count", True)]
    own = [(one.kind, one.of_an_average) for one in told]
    if Counter(kinds) != Counter(own):
        raise NotProven(
            f"the state of the query has the fields {_words(fields)}, and the rows tell "
            f"{', '.join(map(str, told)) or 'none'}: tell a value for each field (counts and "
            "averages are told apart), or say what the state must hold (expected)"
        )
    of_kind = {kind: iter([n for n, one in enumerate(own) if one == kind]) for kind in kinds}
    return [next(of_kind[kind]) for kind in kinds]


def _check_keys(own: Sequence[DataType], found: _Found) -> None:
    if list(own) != list(found.keys):
        raise NotProven(
            f"the key of Spark's state is {_types(found.keys)}, and the rows' {_types(own)}: name "
            "keys in the order of the query's groupBy, and no others"
        )


def _named(expected: DataFrame, found: _Found) -> DataFrame:
    """The user's, by their order."""
    names = [f"k{n}" for n in range(len(found.keys))]
    names += ["window"] * found.window
    names += [f"v{n}" for n in range(len(found.values))]
    if len(names) != len(expected.columns):
        raise NotProven(
            f"expected has {counted(len(expected.columns), 'column')}, and the state "
            f"{len(names)}: {_types(found.keys)}{', a window' * found.window}, "
            f"{_words(found.values)}"
        )
    _check_keys([one.dataType for one in expected.schema.fields[: len(found.keys)]], found)
    return expected.toDF(*names)


def _types(types: Sequence[DataType]) -> str:
    return ", ".join(one.simpleString() for one in types) or "empty"


def _words(fields: Sequence[Field]) -> str:
    return ", ".join(field.name for field in fields) or "none"


# -- side by side --------------------------------------------------------------------------------


def _compare(spark: DataFrame, flink: DataFrame, found: _Found) -> StateProof:
    key = [f"k{n}" for n in range(len(found.keys))] + ["window"] * found.window
    values = [f"v{n}" for n in range(len(found.values))]
    one = flink.select(F.struct(*key).alias("key"), F.struct(F.lit(1), *values).alias("flink"))
    other = spark.select(F.struct(*key).alias("its"), F.struct(F.lit(1), *values).alias("spark"))
    joined = one.join(other, F.col("key").eqNullSafe(F.col("its")), "full_outer").select(
        F.coalesce("key", "its").alias("key"),
        "flink",
        "spark",
        F.when(F.col("spark").isNull(), "missing")
        .when(F.col("flink").isNull(), "unexpected")
        .when(F.col("flink").eqNullSafe(F.col("spark")), "right")
        .otherwise("wrong")
        .alias("verdict"),
    )
    counts = {row["verdict"]: row["count"] for row in joined.groupBy("verdict").count().collect()}
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
    return StateProof(right, wrong, missing, unexpected, tuple(examples))
