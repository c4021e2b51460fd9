"""Define the queries whose checkpoint locations are kept, and the Spark versions of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# The start offsets of each query, by topic and partition. No reader could guess them.
STARTS: Mapping[str, Mapping[str, int]] = {
    "orders": {"0": 3, "1": 0, "2": 11},
    "payments": {"0": 5},
}


@dataclass(frozen=True, slots=True)
class Job:
    """One query.

    Attributes:
        since: the first minor version of Spark that can run the query.
        but_not: a later minor version that cannot run the query.
        topics: the topics; each topic has its own Kafka source.
        conf: the settings of the session.
        options: the options of the stream's writer.
        file_source: True to add a file source before the Kafka sources.
        stateful: True to store each record's identity in a state store.
        names: True to name each source after its topic.
        names_sink: True to name the sink.
        fails_in: the batch in which the query fails after its offsets were logged.
        repartitions: True to repartition the state after the first run, with Spark's offline tool,
            which also skips a failed batch.
        records_per_batch: the number of records, low enough for several batches.
    """

    name: str
    since: tuple[int, int] = (3, 5)
    but_not: tuple[int, int] | None = None
    topics: tuple[str, ...] = ("orders",)
    conf: Mapping[str, str] | None = None
    options: Mapping[str, str] | None = None
    file_source: bool = False
    stateful: bool = False
    names: bool = False
    names_sink: bool = False
    fails_in: int | None = None
    repartitions: bool = False
    records_per_batch: int = 17


JOBS = (
    Job("stateless"),
    Job("several-sources", topics=("orders", "payments"), file_source=True),
    Job("stateful", stateful=True),
    # After a restart, Spark 4.1.1 fails when it reports on the batch that it has run a second time
    # (KafkaMicroBatchStream.metrics: None.get is null; fixed in 4.2.0).
    Job("failed-batch", fails_in=2, but_not=(4, 1)),
    Job(
        "async-progress",
        # A batch starts about every 200 ms, and the query logs about every fourth batch.
        options={
            "asyncProgressTrackingEnabled": "true",
            "asyncProgressTrackingCheckpointIntervalMs": "700",
        },
        records_per_batch=4,
    ),
    Job(
        "commit-log-v2",
        since=(4, 0),
        stateful=True,
        conf={
            "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
            "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        },
    ),
    Job(
        "commit-log-v3",
        since=(4, 3),
        conf={"spark.sql.streaming.queryEvolution.enableSinkEvolution": "true"},
        names_sink=True,
    ),
    Job(
        "repartitioned",
        since=(4, 3),
        stateful=True,
        conf={"spark.sql.streaming.stateStore.providerClass": _ROCKSDB},
        repartitions=True,
    ),
    Job(
        "skipped-batch",
        since=(4, 3),
        stateful=True,
        conf={"spark.sql.streaming.stateStore.providerClass": _ROCKSDB},
        fails_in=1,
        repartitions=True,
    ),
    Job(
        "offset-log-v2",
        since=(4, 2),
        topics=("orders", "payments"),
        conf={"spark.sql.streaming.offsetLog.formatVersion": "2"},
    ),
    Job(
        "named-sources",
        since=(4, 2),
        topics=("orders", "payments"),
        file_source=True,
        names=True,
        conf={
            "spark.sql.streaming.offsetLog.formatVersion": "2",
            "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
        },
    ),
)


def topics(version: str) -> dict[str, int]:
    """Return the topics that the queries require, with their numbers of partitions."""
    return {
        f"{job.name}-{topic}": len(STARTS[topic])
        for job in jobs_of(version)
        for topic in job.topics
    }


def jobs_of(version: str) -> list[Job]:
    """Return the queries that this version of Spark can run."""
    major, minor = map(int, version.split(".")[:2])
    line = (major, minor)
    return [job for job in JOBS if line >= job.since and line != job.but_not]
