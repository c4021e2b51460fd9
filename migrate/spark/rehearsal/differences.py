"""The keys that differ between Flink and Spark, and the records of these keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from migrate.model.wording import join_some
from migrate.spark.transfer.proof import describe_keys
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_MOST_KEYS = 10
_MOST_RECORDS = 100
# The columns of Spark's Kafka source that say which record an event is.
RECORD_COLUMNS = ("topic", "partition", "offset")
_WINDOW = "window"


def describe_differences(
    differences: DataFrame, events: Sequence[DataFrame], time: str | None
) -> Iterator[str]:
    """Yield lines about the first keys that are not right, each with the key's records.

    Args:
        differences: as in ``Comparison``.
        events: the files of each stream: rows made from state, and the events between the
            checkpoints.
        time: the events' column of event time; None if the key has no window.
    """
    number = F.row_number().over(Window.orderBy("key")).alias("number")
    first = differences.orderBy("key").limit(_MOST_KEYS).select(number, "key").localCheckpoint()
    records = _records_by_key(first, time, events)
    for key_number, line in enumerate(describe_keys(differences, _MOST_KEYS), start=1):
        yield line
        if records is not None:
            yield f"  {_describe_records(records.get(key_number, []), time)}"
    if records is None:
        yield (
            "the records of these keys are not shown: let the function stream keep the columns "
            f"{', '.join(RECORD_COLUMNS)}, and those of the key"
        )


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
