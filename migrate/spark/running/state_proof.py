"""Spark's own state, read back and compared with Flink's key by key.

Source: the state data source (``statestore``, ``state-metadata``) @ Spark 4.0.0:
StateDataSource, StatePartitionReader; SessionWindowStateStoreSaveExec
(StreamingSessionWindowStateManagerImplV1), StreamingAggregationStateManagerImplV2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, StructType, TimestampType

from migrate.errors import Refused
from migrate.spark.running.state_rows import StateRows
from migrate.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_SHOWN = 3
# Which operators' state is read: the fields of their values that are Spark's alone.
_OWN_FIELDS = ("__dummy__", "expiresAtMicros", "isEmpty")


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
    if len(operators) != 1:
        told = ", ".join(sorted({name for _, name in operators})) or "none"
        raise NotProven(
            f"the query keeps state in {counted(len(operators), 'store')} ({told}); one can be "
            "primed"
        )
    state = spark.read.format("statestore").load(str(checkpoint))
    found = _Found.of(state)
    if expected is not None:
        return _compare(found.frame, _named(expected, found), found)
    (one,) = known
    return _compare(found.frame, _expected(one, found), found)


@dataclass(frozen=True, slots=True)
class _Found:
    """Spark's state, flat: ``k0``…, ``window`` where it has one, ``v0``…"""

    frame: DataFrame
    keys: tuple[DataType, ...]
    window: bool
    # The name that Spark gives a value's field, and its type.
    values: tuple[tuple[str, DataType], ...]

    @classmethod
    def of(cls, state: DataFrame) -> _Found:
        key, value = (state.schema[name].dataType for name in ("key", "value"))
        assert isinstance(key, StructType) and isinstance(value, StructType)
        parts = [(f"key.{n}", one.name, one.dataType) for n, one in enumerate(key.fields)]
        rest = [(f"value.{n}", one.name, one.dataType) for n, one in enumerate(value.fields)]
        if parts[-1][1] == "sessionStartTime":
            # The whole group stands in the value, the window among it.
            parts, rest = rest[: len(parts)], rest[len(parts) :]
        windows = [part for part in parts if _is_window(part[2])]
        keys = [part for part in parts if part not in windows]
        values = [part for part in rest if part[1] not in _OWN_FIELDS]
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
        columns += [F.col(_at(place)).alias(f"v{n}") for n, (place, _, _) in enumerate(values)]
        return cls(
            flat.select(*columns),
            tuple(type_ for _, _, type_ in keys),
            bool(windows),
            tuple((name, type_) for _, name, type_ in values),
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


# -- what it must hold ---------------------------------------------------------------------------


def _expected(rows: StateRows, found: _Found) -> DataFrame:
    """The rows' own, in the order of the state's fields."""
    own = [one.dataType for one in rows.expected.schema.fields[: rows.keys]]
    if own != list(found.keys):
        raise NotProven(
            f"the key of Spark's state is {_told(found.keys)}, and the rows' {_told(own)}: name "
            "keys in the order of the query's groupBy, and no others"
        )
    if ("window" in rows.expected.columns) != found.window:
        raise NotProven("the query groups by a window, and the rows have none; or the other way")
    columns = [F.col(f"k{n}") for n in range(rows.keys)]
    columns += [F.col("window")] * found.window
    for number, (_, type_) in enumerate(found.values):
        name = f"v{_which(rows.values, found.values, number)}"
        column, own_type = F.col(name), rows.expected.schema[name].dataType
        if isinstance(type_, DoubleType) and isinstance(own_type, DecimalType):
            column = column * F.lit(10**own_type.scale)  # an average adds up a decimal's units
        columns.append(column.cast(type_).alias(f"v{number}"))
    return rows.expected.select(*columns)


def _which(told: Sequence[str], fields: Sequence[tuple[str, DataType]], number: int) -> int:
    """Which of the values that are told stands in a field."""
    kind = fields[number][0]
    candidates = [place for place, one in enumerate(told) if one == kind]
    alike = [place for place, (name, _) in enumerate(fields) if name == kind]
    if len(candidates) == 1:
        return candidates[0]
    if candidates and len(candidates) == len(alike):
        return candidates[alike.index(number)]
    raise NotProven(
        f"the state of the query has the fields {', '.join(name for name, _ in fields)}, and the "
        f"rows tell {', '.join(told) or 'none'}: say what the state must hold (expected), a column "
        "for each field"
    )


def _named(expected: DataFrame, found: _Found) -> DataFrame:
    """The user's, by their order."""
    names = [f"k{n}" for n in range(len(found.keys))]
    names += ["window"] * found.window
    names += [f"v{n}" for n in range(len(found.values))]
    if len(names) != len(expected.columns):
        raise NotProven(
            f"expected has {counted(len(expected.columns), 'column')}, and the state "
            f"{len(names)}: {_told(found.keys)}{', a window' * found.window}, "
            f"{', '.join(name for name, _ in found.values)}"
        )
    return expected.toDF(*names)


def _told(types: Sequence[DataType]) -> str:
    return ", ".join(one.simpleString() for one in types) or "empty"


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
