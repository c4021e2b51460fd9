"""Positions beside what a broker holds: how many records are left, and what is no longer there."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from migrate.snapshot import ClusterSnapshot

EXPIRED, BEYOND_END = "expired", "beyond-end"
TOPIC_GONE, PARTITION_GONE = "topic-gone", "partition-gone"
# What keeps a position from being read on, and what is said of so many positions.
OBSTACLES = {
    EXPIRED: "below the log start: records are already gone",
    BEYOND_END: "beyond the log end: the topic was recreated, or this is another cluster",
    TOPIC_GONE: "of topics that the broker does not have",
    PARTITION_GONE: "of partitions that the broker does not have",
}


def topics_to_ask(positions: DataFrame) -> Set[str]:
    """The topics of positions whose cluster the state does not name: the broker's, that is."""
    rows = positions.where("cluster IS NULL AND topic IS NOT NULL").select("topic").distinct()
    return {row.topic for row in rows.collect()}


def with_lag(spark: SparkSession, positions: DataFrame, snapshot: ClusterSnapshot) -> DataFrame:
    """The positions view and four columns more.

    ``log_start`` and ``log_end`` are the partition's; ``lag`` is the log end minus the next offset,
    an upper bound of the records left, as transaction markers and compaction leave gaps, and null
    where no next offset is known; ``obstacle`` says what keeps it from being read on, as a code.
    All are null of a cluster that the state names: which of them this broker is, it does not tell.
    """
    logs = spark.createDataFrame(
        [
            (topic, partition, log.start, log.end)
            for topic, partitions in snapshot.topics.items()
            for partition, log in partitions.items()
        ],
        "topic STRING, partition INT, log_start LONG, log_end LONG",
    )
    topics = spark.createDataFrame(
        [(topic, True) for topic in snapshot.topics], "topic STRING, topic_is_there BOOLEAN"
    )
    here = F.col("cluster").isNull() & F.col("topic").isNotNull()
    known = {name: F.when(here, F.col(name)).alias(name) for name in ("log_start", "log_end")}
    joined = positions.join(logs, ["topic", "partition"], "left").join(topics, "topic", "left")
    return (
        joined.withColumns(known)
        .withColumns({"lag": _lag(), "obstacle": F.when(here, _obstacle())})
        .select(*positions.columns, "log_start", "log_end", "lag", "obstacle")
    )


def _lag() -> Column:
    at_log_start = F.when(F.col("state") == "earliest", F.col("log_start"))
    lag = F.col("log_end") - F.coalesce("next_offset", at_log_start)
    return F.when(lag >= 0, lag)


def _obstacle() -> Column:
    return (
        F.when(F.col("topic_is_there").isNull(), TOPIC_GONE)
        .when(F.col("log_end").isNull(), PARTITION_GONE)
        .when(F.col("next_offset") < F.col("log_start"), EXPIRED)
        .when(F.col("next_offset") > F.col("log_end"), BEYOND_END)
    )
