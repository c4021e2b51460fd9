"""Find patterns in the differing keys, such as the same difference or the same hour.

If a key is coarse, such as a day, it has so many records that their offsets do not reveal the
error, but the hours of the records may. For example, if the query counts all records of one hour
under a different day than the job does, then the query and the job use different times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructType, TimestampType

from migrate.model.column_types import quoted
from migrate.model.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_DIFFERENCES = 5


def describe_differences(groups: Sequence[tuple[Mapping[str, object], int]]) -> str:
    """Describe the groups of keys that have the same differences.

    Args:
        groups: a (differences by field, number of keys) pair for each group. A difference is
            Spark's value minus Flink's value.
    """
    parts = []
    for differences, keys in groups:
        fields = [
            f"{name} {difference:+}"
            for name, difference in differences.items()
            if difference is not None
        ]
        parts.append(f"{', '.join(fields) or 'null in one of them'} in {counted(keys, 'key')}")
    return "; ".join(parts)


def describe_hours(counts: Mapping[int, int], difference: int | None) -> str:
    """Describe how a key's records are distributed over the hours of the day.

    Args:
        counts: the number of records for each hour, 0 to 23.
        difference: Spark's count for the key minus Flink's; None if the state has no count.
    """
    hours = ", ".join(f"{hour:02}h {number}" for hour, number in sorted(counts.items()))
    same = [
        f"{hour:02}h" for hour, number in sorted(counts.items()) if number == abs(difference or 0)
    ]
    if difference and same:
        return (
            f"{hours}; hours with as many records as the difference of the count "
            f"({difference:+}): {', '.join(same)}"
        )
    return hours


def differences_by_group(differences: DataFrame) -> list[tuple[dict[str, object], int]]:
    """Group the keys with different values in Flink and Spark by their numeric differences.

    Return the largest groups as (differences by field, number of keys) pairs.
    """
    type_ = differences.schema["flink"].dataType
    assert isinstance(type_, StructType)
    numbers = [field.name for field in type_.fields if isinstance(field.dataType, NumericType)]
    if not numbers:
        return []
    columns = [
        (F.col(f"spark.{quoted(name)}") - F.col(f"flink.{quoted(name)}")).alias(f"d{number}")
        for number, name in enumerate(numbers)
    ]
    names = [f"d{number}" for number in range(len(numbers))]
    rows = (
        differences.where("verdict = 'wrong'")
        .select(*columns)
        .groupBy(*names)
        .count()
        .orderBy(F.desc("count"), *names)
        .limit(_MOST_DIFFERENCES)
        .collect()
    )
    return [
        ({name: row[f"d{number}"] for number, name in enumerate(numbers)}, row["count"])
        for row in rows
    ]


def time_column(events: Sequence[DataFrame], time: str | None) -> str | None:
    """Return the event-time column of the records, or None if it is unknown.

    This is ``time`` or, if ``time`` is None, the only timestamp column of the records.
    """
    if time is not None:
        return time
    columns = {
        field.name
        for frame in events
        for field in frame.schema.fields
        if isinstance(field.dataType, TimestampType)
    }
    return columns.pop() if len(columns) == 1 else None


def records_by_hour(records: DataFrame, number: str, time: str) -> dict[int, dict[int, int]]:
    """Count each key's records in each hour of the day (UTC).

    The result is a mapping from the key's number to the counts by hour.

    Args:
        records: the records.
        number: the column that contains the number of the record's key (see the result).
        time: the event-time column, a TIMESTAMP.
    """
    hour = F.expr(f"CAST(pmod(floor(unix_millis({quoted(time)}) / 3600000), 24) AS INT)")
    counts = records.groupBy(number, hour.alias("hour")).count().where("hour IS NOT NULL")
    by_key: dict[int, dict[int, int]] = {}
    for row in counts.collect():
        by_key.setdefault(row[number], {})[row["hour"]] = row["count"]
    return by_key
