"""Run a complete migration on the real systems, with Kafka, Flink, `migrate`, and Spark.

`run_flink` runs a Flink job, stops it with a savepoint, and produces more records.
`continue_on_spark` runs a Spark query from the offsets of `migrate to-spark`. `count_records`
counts lost and duplicated records.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tests.support.flink import run_mission
from tests.support.kafka import Broker, Record
from tests.support.spark import Spark

TopicPartition = tuple[str, int]
# Topic-partition -> (log start offset, log end offset)
Watermarks = dict[TopicPartition, tuple[int, int]]

_COMMAND_SECONDS = 120
# The number of records produced to every partition after the job has stopped.
_LATE_RECORDS = 50


class Progress(Enum):
    """The part of a partition that the Flink job has read."""

    UNTOUCHED = "untouched"
    PARTLY_READ = "partly read"
    FULLY_READ = "fully read"
    ADDED_LATER = "added later"


@dataclass(frozen=True, slots=True)
class Mode:
    """A form of start offsets for a Spark query, and whether the query keeps state."""

    start: str
    stateful: bool

    def __str__(self) -> str:
        return f"{'stateful' if self.stateful else 'stateless'} query, {self.start}"


STARTING_OFFSETS = "startingOffsets"
SEED = "seeded checkpointLocation"
MODES = [Mode(start, stateful) for start in (STARTING_OFFSETS, SEED) for stateful in (False, True)]


@dataclass(frozen=True, slots=True)
class FlinkResult:
    """A stopped Flink job, with its savepoint, its processed records, and the records in Kafka.

    `processed` are the records that Flink's exactly-once sink committed. `truth` are the records
    that a plain consumer reads from Kafka before Spark starts. The decoder computes neither of
    them.
    """

    bootstrap_servers: str
    topics: tuple[str, ...]
    savepoint: Path
    processed: list[Record]
    truth: list[Record]
    bounds_at_stop: Watermarks

    def partitions(self) -> list[TopicPartition]:
        """Return every partition with records."""
        return sorted({(topic, partition) for topic, partition, _, _ in self.truth})

    def progress(self, partition: TopicPartition) -> tuple[Progress, int]:
        """Return Flink's progress in a partition, and the log start offset at the stop."""
        if partition not in self.bounds_at_stop:
            return Progress.ADDED_LATER, 0
        log_start, log_end = self.bounds_at_stop[partition]
        count = sum((topic, number) == partition for topic, number, _, _ in self.processed)
        if count == 0:
            return Progress.UNTOUCHED, log_start
        if count < log_end - log_start:
            return Progress.PARTLY_READ, log_start
        return Progress.FULLY_READ, log_start


@dataclass(frozen=True, slots=True)
class PartitionCounts:
    """The counts of one partition's records."""

    topic: str
    partition: int
    in_kafka: int
    by_flink: int
    after_flink: int
    lost: int
    repeated: int


class CommandError(RuntimeError):
    """A run of `migrate` did not exit with 0."""


def run_flink(
    flink_version: str, broker: Broker, workdir: Path, say: Callable[[str], None]
) -> FlinkResult:
    """Produce records, let Flink read some, stop it with a savepoint, and produce more records.

    The broker must be new, because this function creates the topics.
    """
    orders, payments = topics = ("orders", "payments")
    broker.create_topic(orders, 5)
    broker.create_topic(payments, 2)
    for partition, count in {
        (orders, 0): 600,
        (orders, 1): 650,
        (orders, 2): 60,
        (orders, 4): 30,
        (payments, 0): 600,
        (payments, 1): 80,
    }.items():
        _produce(broker, partition, 0, count)
    # Delete a part of one partition and all of another before the job starts.
    broker.delete_records(orders, 1, before=50)
    broker.delete_records(orders, 4, before=30)
    say(f"Kafka holds {_total(_watermarks(broker, topics))} records in {orders} and {payments}.")

    mission = run_mission(
        version=flink_version,
        bootstrap_servers=broker.bootstrap_servers,
        topics=topics,
        until={
            (orders, 0): 100,
            (orders, 1): 100,
            (orders, 2): 60,
            (payments, 0): 100,
            (payments, 1): 80,
        },
        savepoint_dir=workdir / "savepoints",
        sink_dir=workdir / "flink-sink",
    )
    say(f"Flink {flink_version} processed {len(mission.committed)} of them and was stopped with")
    say(f"savepoint {mission.savepoint}")

    bounds_at_stop = _watermarks(broker, topics)
    broker.add_partitions(orders, 6)
    for partition, (_, log_end) in _watermarks(broker, topics).items():
        _produce(broker, partition, log_end, _LATE_RECORDS)
    truth = [record for topic in topics for record in broker.records(topic)]
    say(f"Since then {orders} has got a sixth partition, and every partition {_LATE_RECORDS} more")
    say(f"records: Kafka holds {len(truth)}.")
    return FlinkResult(
        bootstrap_servers=broker.bootstrap_servers,
        topics=topics,
        savepoint=mission.savepoint,
        processed=mission.committed,
        truth=truth,
        bounds_at_stop=bounds_at_stop,
    )


def continue_on_spark(
    job: FlinkResult, spark: Spark, mode: Mode, workdir: Path, say: Callable[[str], None]
) -> list[PartitionCounts]:
    """Run a Spark query from the offsets of `migrate to-spark`, and count the records."""
    checkpoint_dir = Path(tempfile.mkdtemp(prefix="query-", dir=workdir)) / "checkpoint"
    arguments = ["to-spark", str(job.savepoint)]
    arguments += ["--bootstrap-servers", job.bootstrap_servers]
    starting_offsets = None
    if mode.start == STARTING_OFFSETS:
        starting_offsets = migrate(*arguments, say=say)
    else:
        migrate(*arguments, "--checkpoint-dir", str(checkpoint_dir), say=say)
    records = spark.read_all(
        job.bootstrap_servers,
        {"subscribe": ",".join(job.topics)},
        checkpoint_dir,
        starting_offsets=starting_offsets,
        stateful=mode.stateful,
    )
    return count_records(job, records)


def migrate(*arguments: str, say: Callable[[str], None]) -> str:
    """Run `migrate` as a user does, and return its stdout."""
    say(f"$ migrate {' '.join(arguments)}")
    done = subprocess.run(
        [Path(sys.executable).with_name("migrate"), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_COMMAND_SECONDS,
        check=False,
    )
    if done.returncode:
        raise CommandError(f"migrate {arguments[0]}: exit code {done.returncode}\n{done.stderr}")
    for line in (done.stderr + done.stdout).splitlines():
        say(line)
    return done.stdout


def count_records(job: FlinkResult, after_flink: Iterable[Record]) -> list[PartitionCounts]:
    """Compare all records that Flink or Spark has processed with the records in Kafka.

    A record is its topic, partition, offset and value. A processed record that is not in Kafka
    counts as duplicated.
    """
    truth, flink, others = Counter(job.truth), Counter(job.processed), Counter(after_flink)
    processed = flink + others
    in_kafka, by_flink, by_others, lost, repeated = (
        _by_partition(records)
        for records in (truth, flink, others, truth - processed, processed - truth)
    )
    partitions = sorted({*in_kafka, *by_flink, *by_others})
    return [
        PartitionCounts(
            topic=partition[0],
            partition=partition[1],
            in_kafka=in_kafka[partition],
            by_flink=by_flink[partition],
            after_flink=by_others[partition],
            lost=lost[partition],
            repeated=repeated[partition],
        )
        for partition in partitions
    ]


def _by_partition(records: Counter[Record]) -> Counter[TopicPartition]:
    counts: Counter[TopicPartition] = Counter()
    for (topic, partition, _, _), count in records.items():
        counts[topic, partition] += count
    return counts


def _produce(broker: Broker, partition: TopicPartition, first: int, count: int) -> None:
    topic, number = partition
    values = [f"{topic}/{number} record {n}" for n in range(first, first + count)]
    broker.produce(topic, number, values)


def _watermarks(broker: Broker, topics: Iterable[str]) -> Watermarks:
    return {
        (topic, partition): bounds
        for topic in topics
        for partition, bounds in broker.watermarks(topic).items()
    }


def _total(watermarks: Watermarks) -> int:
    return sum(log_end - log_start for log_start, log_end in watermarks.values())
