"""Run two clusters, a real MirrorMaker 2, and a Flink job that has read part of the records.

MirrorMaker 2 copies from the old cluster to the new one. Each topic is a test case. A topic in
``MANY`` has the same records in every partition, so that one command can translate all positions in
this topic.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.flink import CountRun, run_count_job
from tests.support.kafka import Broker
from tests.support.mirror import Flow, Mirror
from tests.support.records import (
    COMPACTED,
    QUICK_CLEANER,
    Log,
    TopicPartition,
    append,
    await_gone,
    read_logs,
)

FLINK = "2.2"
# The positions. Each of them has a separate partition.
POSITIONS = range(17)
MANY = ("marks", "committed", "twice")
DEFAULT = Flow(
    ("orders", "ledger", "compacted-there", "marks", "twice", "slow", "gone", "beats"),
    settings={"offset.lag.max": "0"},  # an offset sync for each record, not for every 100
)
IDENTITY = Flow(
    ("clicks", "compacted-here", "committed", "spread"),
    *("old", "new"),
    identity=True,
    settings={"consumer.isolation.level": "read_committed"},
)
NAMES = {topic: flow.copy_of(topic) for flow in (DEFAULT, IDENTITY) for topic in flow.topics}
READ_BY_FLINK = ("orders", "ledger", "compacted-there", "clicks", "compacted-here")


@dataclass(frozen=True, slots=True)
class TwoClusters:
    """Two clusters, and the records that a Flink job has consumed from the old one.

    Attributes:
        job: the run of the Flink job, with its savepoint.
        logs: the logs of the old cluster with all records that it ever had.
        superseded: the values that only the new cluster has removed, because their keys have newer
            records.
    """

    old: Broker
    new: Broker
    mirror: Mirror
    job: CountRun
    logs: dict[TopicPartition, Log]
    superseded: frozenset[str]

    def options(self, *topics: str) -> tuple[str, ...]:
        """Return the options for both clusters, and for the topics that have other names."""
        names = [f"{topic}={NAMES[topic]}" for topic in topics if NAMES[topic] != topic]
        return (
            *("-b", self.old.bootstrap_servers),
            *("--to-bootstrap-servers", self.new.bootstrap_servers),
            *(word for name in names for word in ("--topic-map", name)),
        )

    def unread(self) -> Counter[str]:
        """Return the values of the records that the Flink job has not counted."""
        counted = {(record.topic, record.partition, record.offset) for record in self.job.counted}
        return Counter(
            value
            for (topic, partition), log in self.logs.items()
            if topic in READ_BY_FLINK
            for offset, value in values(log).items()
            if (topic, partition, offset) not in counted and value not in self.superseded
        )

    def copies(self, topic: str) -> dict[int, Log]:
        """Return the logs of a topic in the new cluster, by partition."""
        logs = read_logs(self.new, [NAMES[topic]])
        return {partition: log for (_, partition), log in logs.items()}


def values(log: Log) -> dict[int, str]:
    """Return the values of a log's records by their offsets."""
    return {offset: (content.value or b"").decode() for offset, content in log.items()}


def lost_and_repeated(expected: Counter[str], read: Iterable[str]) -> tuple[int, int]:
    """Return how many expected values were not read, and how many values were read too often."""
    counted = Counter(read)
    return (expected - counted).total(), (counted - expected).total()


@contextmanager
def two_clusters(workdir: Path) -> Iterator[TwoClusters]:
    """Run both clusters and the mirror, and run the job until it has a savepoint."""
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        brokers = Broker(QUICK_CLEANER), Broker(QUICK_CLEANER)
        old, new = pool.map(stack.enter_context, brokers)
        _create_topics(old, new)
        running = pool.submit(
            run_count_job,
            version=FLINK,
            bootstrap_servers=old.bootstrap_servers,
            topics=READ_BY_FLINK,
            until={
                **{("orders", partition): 20 for partition in (0, 1, 3)},
                **{(topic, 0): 20 for topic in READ_BY_FLINK[1:]},
            },
            workdir=workdir,
        )
        # A mirror that is killed before it has committed anything.
        with Mirror(old, new, [Flow(("twice",))]) as killed:
            killed.await_copied()
        append(old, "twice", _numbered("twice", POSITIONS, range(12, 16)))
        mirror = stack.enter_context(Mirror(old, new, [DEFAULT, IDENTITY]))
        job = running.result()
        for topic, partitions in {topic: old.partitions(topic) for topic in READ_BY_FLINK}.items():
            append(old, topic, _numbered(topic, partitions, range(100, 110)), keyed=True)
        mirror.await_copied()
        logs, superseded = _compact_and_expire(old, new, mirror, job)
        yield TwoClusters(old, new, mirror, job, logs, superseded)


def _numbered(
    topic: str, partitions: Iterable[int], numbers: Iterable[int]
) -> dict[int, list[str]]:
    """Return unique values by partition; the part before ``=`` is the key of keyed records."""
    numbers = list(numbers)
    return {n: [f"{topic}/{n} {number}=" for number in numbers] for n in partitions}


def _create_topics(old: Broker, new: Broker) -> None:
    # Partition 0 is read in part, and 1 to its end; 2 is empty; 3 has lost its first records.
    old.create_topic("orders", 4)
    append(old, "orders", _numbered("orders", (0, 3), range(90)))
    append(old, "orders", _numbered("orders", (1,), range(20)))
    old.delete_records("orders", 3, 10)
    old.create_topic("ledger", 1)
    for n in range(30):
        ending = "abort" if n % 3 == 2 else "commit"
        append(
            old, "ledger", _numbered("ledger", (0,), range(3 * n, 3 * n + 3)), transaction=ending
        )
    # The new cluster has compacted one topic, and the old cluster another.
    for broker, config, topic in (
        (old, {}, "compacted-there"),
        (new, COMPACTED, NAMES["compacted-there"]),
        (old, COMPACTED, "compacted-here"),
        (new, {}, NAMES["compacted-here"]),
    ):
        broker.create_topic(topic, 1, config)
    for topic in ("compacted-there", "compacted-here"):
        append(old, topic, _numbered(topic, (0,), range(90)), keyed=True)
    # The new cluster's topic had records before the mirror started.
    for broker in (old, new):
        broker.create_topic("clicks", 1)
    append(old, "clicks", _numbered("clicks", (0,), range(90)))
    append(new, "clicks", _numbered("older", (0,), range(7)))
    for topic in MANY:
        old.create_topic(topic, len(POSITIONS))
    for topic in ("marks", "committed"):
        for n, ending in enumerate(("commit", "abort", "commit", "commit")):
            several = _numbered(topic, POSITIONS, range(3 * n, 3 * n + 3))
            append(old, topic, several, transaction=ending)
    append(old, "twice", _numbered("twice", POSITIONS, range(12)))
    for topic in ("slow", "gone"):
        old.create_topic(topic, 1)
        append(old, topic, _numbered(topic, (0,), range(20)))
    old.create_topic("beats", 1)
    append(old, "beats", {0: ["first"]})
    append(old, "beats", {0: ["beat"] * 40}, timestamp_ms=int(time.time() * 1000))
    old.create_topic("spread", 2)
    new.create_topic("spread", 3)
    append(old, "spread", _numbered("spread", (0, 1), range(20)))


def _compact_and_expire(
    old: Broker, new: Broker, mirror: Mirror, job: CountRun
) -> tuple[dict[TopicPartition, Log], frozenset[str]]:
    """Let both clusters remove records around the job's positions."""
    logs = read_logs(old, NAMES)
    position = Counter((record.topic, record.partition) for record in job.counted)
    there, here = position["compacted-there", 0], position["compacted-here", 0]
    # The new cluster has lost the records on both sides of the position, and the old cluster has
    # lost other records near it.
    gone_there = (there - 1, there, there + 3)
    gone_here = (here - 4, here - 2, here + 3, here + 4)
    updates = {
        topic: [values(logs[topic, 0])[offset] + "newer" for offset in offsets]
        for topic, offsets in (("compacted-there", gone_there), ("compacted-here", gone_here))
    }
    # The cleaner leaves the newest segment alone, so one more record follows the updates.
    for number in range(110, 112):
        for topic, newer in updates.items():
            append(old, topic, {0: newer}, keyed=True)
            updates[topic] = _numbered(topic, (0,), [number])[0]
        time.sleep(0.2)  # until the next record starts a new segment
    mirror.await_copied()
    await_gone(old, "compacted-here", 0, gone_here)
    await_gone(new, NAMES["compacted-there"], 0, gone_there)
    superseded = frozenset(values(logs["compacted-there", 0])[offset] for offset in gone_there)
    old.delete_records("orders", 3, 10 + position["orders", 3])
    old.delete_records("clicks", 0, position["clicks", 0] - 3)
    new.delete_records("clicks", 0, 7 + position["clicks", 0] - 2)
    new.delete_records(NAMES["gone"], 0, 12)
    for partition, log in read_logs(old, NAMES).items():
        logs[partition] |= log
    return logs, superseded
