"""Keys whose values differ between Flink and Spark, and the records of these keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from migrate.model.wording import join_some
from migrate.planning.state_proof import StateProof
from migrate.spark.transfer.flat_state import SparkState
from migrate.spark.transfer.proof import Expectation, join_states
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_MOST_KEYS = 10
_MOST_RECORDS = 100
# The columns of Spark's Kafka source that say which record an event is.
RECORD_COLUMNS = ("topic", "partition", "offset")
_WINDOW = "window"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of what Flink and Spark have by key.

    Attributes:
        proof: the numbers of keys.
        wrong: the keys that are not right: ``key``, ``flink`` and ``spark`` (structs; null where
            the key is missing) and ``verdict``. It does not depend on any file.
        time: the events' column of event time, if the key has a window.
    """

    proof: StateProof
    wrong: DataFrame
    time: str | None = None


def named_comparison(
    state: SparkState,
    expectation: Expectation,
    keys: Sequence[str],
    values: Sequence[str],
    time: str | None = None,
) -> Comparison:
    """Return a comparison with the user's names of the parts of keys and values.

    Args:
        state: Spark's state.
        expectation: Flink's state and the proof.
        keys: the name of each part of the key, without the window.
        values: the name of each part of the value.
        time: the events' column of event time.
    """
    key_names = [*_unique(keys), *([_WINDOW] if state.has_window else [])]
    value_names = _unique(values)

    def named(side: str) -> Column:
        fields = zip(state.value_columns, value_names, strict=True)
        parts = [F.col(f"{side}.{column}").alias(name) for column, name in fields]
        # A deduplication keeps no values.
        struct = F.struct(*(parts or [F.lit(True).alias("seen")]))
        return F.when(F.col(side).isNotNull(), struct).alias(side)

    parts = zip(state.key_columns, key_names, strict=True)
    wrong = (
        join_states(state, expectation.frame)
        .where("verdict <> 'right'")
        .select(
            F.struct(*(F.col(f"key.{column}").alias(name) for column, name in parts)).alias("key"),
            named("flink"),
            named("spark"),
            "verdict",
        )
    )
    if expectation.proof.is_right:
        wrong = wrong.sparkSession.createDataFrame([], wrong.schema)
    else:
        wrong = wrong.localCheckpoint()
    return Comparison(expectation.proof, wrong, time if state.has_window else None)


def _unique(names: Sequence[str]) -> list[str]:
    """Return names with a number after each that is repeated: sum, count, sum_2."""
    unique: list[str] = []
    for name in names:
        others = (f"{name}_{number}" for number in count(2))
        unique.append(name if name not in unique else next(n for n in others if n not in unique))
    return unique


def describe_wrong(comparison: Comparison, events: Sequence[DataFrame]) -> Iterator[str]:
    """Yield lines about the first keys that are not right, each with the key's records.

    Args:
        comparison: the comparison.
        events: the files of each stream: rows made from state, and the events between the
            checkpoints.
    """
    if comparison.proof.is_right:
        return
    first = _first_keys(comparison, _MOST_KEYS)
    records = _records_by_key(first, comparison.time, events)
    for number, line in _describe_keys(first):
        yield line
        if records is not None:
            yield f"  {_describe_records(records.get(number, []), comparison.time)}"
    if records is None:
        yield (
            "the records of these keys are not shown: let the function stream keep the columns "
            f"{', '.join(RECORD_COLUMNS)}, and those of the key"
        )


def describe_keys(comparison: Comparison, most: int) -> Iterator[str]:
    """Yield a text for each of the first keys that are not right."""
    return (line for _, line in _describe_keys(_first_keys(comparison, most)))


def _first_keys(comparison: Comparison, most: int) -> DataFrame:
    """Return the first rows of ``wrong``, numbered by the order of their keys."""
    number = F.row_number().over(Window.orderBy("key")).alias("number")
    return comparison.wrong.orderBy("key").limit(most).select(number, "*").localCheckpoint()


def _describe_keys(first: DataFrame) -> Iterator[tuple[int, str]]:
    sides = (
        F.to_json(side, {"ignoreNullFields": "false"}).alias(side)
        for side in ("key", "flink", "spark")
    )
    for row in first.select("number", "verdict", *sides).orderBy("number").collect():
        flink, spark = (value or "nothing" for value in (row["flink"], row["spark"]))
        yield row["number"], f"{row['verdict']}: {row['key']}: Flink {flink}, Spark {spark}"


def _records_by_key(
    first: DataFrame, time: str | None, events: Sequence[DataFrame]
) -> dict[int, list[Row]] | None:
    """Return the records of each numbered key, or None if no stream has the columns.

    Records within the key's window come first.
    """
    names = [name for name in first.schema["key"].dataType.names if name != _WINDOW]  # type: ignore[attr-defined]
    records: list[Row] = []
    searched = False
    for frame in events:
        if not names or not {*RECORD_COLUMNS, *names} <= set(frame.columns):
            continue
        searched = True
        same = frame["offset"].isNotNull()  # null in rows that were made from state
        for name in names:
            same &= frame[quoted(name)].eqNullSafe(F.col(f"`wrong key`.{quoted(name)}"))
        inside = F.lit(True)
        if time is not None and time in frame.columns:
            at = frame[quoted(time)]
            window = f"`wrong key`.{_WINDOW}"
            inside = (at >= F.col(f"{window}.start")) & (at < F.col(f"{window}.end"))
        # Names that no event has.
        numbered = first.select(
            F.col("number").alias("key number"), F.col("key").alias("wrong key")
        )
        matching = frame.join(F.broadcast(numbered), same).select(
            F.col("key number").alias("number"), inside.alias("inside"), *RECORD_COLUMNS
        )
        order = Window.partitionBy("number").orderBy(F.desc("inside"), *RECORD_COLUMNS)
        ranked = matching.select("*", F.row_number().over(order).alias("rank"))
        records += ranked.where(F.col("rank") <= _MOST_RECORDS).drop("rank").collect()
    by_key: dict[int, list[Row]] = {}
    for row in records:
        by_key.setdefault(row["number"], []).append(row)
    return by_key if searched else None


def _describe_records(records: Sequence[Row], time: str | None) -> str:
    inside = [row for row in records if row["inside"]]
    if not records:
        return "no record between the checkpoints was parsed with this key"
    shown = inside or records
    label = "records" if inside or time is None else "no record in the window; records of the key"
    ordered = sorted((row["topic"], row["partition"], row["offset"]) for row in shown)
    partitions = [
        f"{topic}-{partition} at {', '.join(str(offset) for _, _, offset in group)}"
        for (topic, partition), group in groupby(ordered, lambda record: record[:2])
    ]
    more = f" (the first {_MOST_RECORDS})" if len(records) == _MOST_RECORDS else ""
    return f"{label}: {join_some(partitions, _MOST_RECORDS, '; ')}{more}"
