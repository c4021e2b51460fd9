"""The queries whose checkpoint locations are kept, and which Sparks can run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

GOLDEN = Path(__file__).parent
MANIFEST = GOLDEN / "manifest.json"

_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Where each query is told to start, by topic and partition: nothing that a reader could guess.
STARTS: Mapping[str, Mapping[str, int]] = {
    "orders": {"0": 3, "1": 0, "2": 11},
    "payments": {"0": 5},
}


@dataclass(frozen=True, slots=True)
class Job:
    """One query.

    Attributes:
        since: the first line of Spark that can run it.
        but_not: one that cannot all the same.
        topics: the Kafka sources' topics, one source each.
        conf: what the session is told.
        options: what the writer of the stream is told.
        file_source: whether a source of files stands before the Kafka ones.
        stateful: whether it keeps each record's identity in a state store.
        names: whether the sources have names of their own; their topics'.
        names_sink: whether the sink has a name of its own.
        fails_in: the batch in which the query fails after its offsets were logged.
        repartitions: whether its state is then repartitioned, with the location's own tool, and a
            batch that has failed skipped.
        records_per_batch: so few that there are several batches.
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
    # Started again, Spark 4.1.1 fails as it reports on the batch that it has run a second time
    # (KafkaMicroBatchStream.metrics: None.get is null; mended in 4.2.0).
    Job("failed-batch", fails_in=2, but_not=(4, 1)),
    Job(
        "async-progress",
        # Of its batches, some 200 ms apart, it logs every fourth or so.
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
    """The topics that must be there for them, and their numbers of partitions."""
    return {
        f"{job.name}-{topic}": len(STARTS[topic])
        for job in jobs_of(version)
        for topic in job.topics
    }


def jobs_of(version: str) -> list[Job]:
    """Those that this version of Spark can run."""
    major, minor = map(int, version.split(".")[:2])
    line = (major, minor)
    return [job for job in JOBS if line >= job.since and line != job.but_not]
