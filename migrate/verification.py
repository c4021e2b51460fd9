"""After a move: did the target start where the checkpoint ended? Pure, no I/O.

A Spark query starts at its seed (``spark_progress.starting_positions``), which stays as it was
however far the query has come; a partition that the seed lacks starts at 0 where its log does, and
fails the query where it doesn't. A topic of which the seed has no partition is taken for one that
the query does not read.

A consumer group starts at what it has committed, which its consumers overwrite. So:

- committed at the position: ok.
- committed below it: what lies between is repeated.
- committed above it: if it is still our own commit, by its metadata, what lies between is lost;
  else someone has committed since, and where they started cannot be told any more ("moved on"):
  consumers that went on where we said and consumers that skipped a part look the same, and so does
  a Flink job that still runs and commits for this group. That is no proof, and so it is not
  "verified": a group is verified before its consumers start.
- nothing committed: missing.

A partition still at ``earliest`` in the checkpoint had no record read: its start is right up to
today's log start, as all below has gone without anyone having to read it. So it is with a partition
that the checkpoint does not know, where Flink would start that at the log start.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from migrate.position_set import Logs, NamedState, PositionSet, Start, log_of
from migrate.positions import TopicPartition
from migrate.snapshot import GroupView, LogRange


class Outcome(str, Enum):
    """How a target started in one topic-partition."""

    OK = "ok"
    LOST = "lost"  # it started above the position
    REPEATED = "repeated"  # it started below the position
    MISSING = "missing"  # it has no start
    MOVED_ON = "moved on"  # a group that others have committed for since, above the position
    UNKNOWN = "cannot tell"  # the checkpoint has no offset for it, or only a broker knows it


@dataclass(frozen=True, slots=True)
class Verified:
    """One topic-partition.

    ``records`` is how many are lost or repeated, or by how many it has moved on, at most:
    transaction markers and compaction leave gaps. It is 0 for every other outcome.
    """

    topic: str
    partition: int
    expected: Start
    started: int | None
    outcome: Outcome
    records: int = 0


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a move, sorted by topic and partition number.

    ``like_flinks`` is how many of those that have moved on were committed as Flink's Kafka sources
    do it: with neither metadata nor a leader epoch (KafkaSourceReader and KafkaFetcher @ connectors
    1.15.4 to 5.0.0). Consumers that commit by themselves give an epoch; programs may leave it out.
    """

    target: str
    partitions: tuple[Verified, ...]
    like_flinks: int = 0

    @property
    def verified(self) -> bool:
        """Whether it started where it should everywhere, and there is something that was moved."""
        return self._all(Outcome.OK)

    @property
    def verified_or_moved_on(self) -> bool:
        """Whether nothing worse can be said of any partition than that it has moved on."""
        return self._all(Outcome.OK, Outcome.MOVED_ON)

    def _all(self, *outcomes: Outcome) -> bool:
        return bool(self.partitions) and all(
            partition.outcome in outcomes for partition in self.partitions
        )

    @property
    def counts(self) -> dict[Outcome, int]:
        """How many partitions came out how; those that none did are left out."""
        counts = Counter(partition.outcome for partition in self.partitions)
        return {outcome: counts[outcome] for outcome in Outcome if counts[outcome]}


def verify_query(
    expected: PositionSet, started: PositionSet, logs: Logs, *, new_at_earliest: bool
) -> Verification:
    """Check where a Spark query started.

    Args:
        expected: where the checkpoint ended, or what a plan made of it.
        started: where the query started.
        logs: the log ranges of what the broker has, or nothing without a broker.
        new_at_earliest: whether a partition that ``expected`` does not know, of a topic that it
            does, is to start at the log start.
    """
    starts = {
        (topic, partition): 0
        for topic in expected.topics & started.topics
        for partition, log in logs.get(topic, {}).items()
        if log.start == 0
    }
    starts |= {place: start for place, start in started.starts.items() if isinstance(start, int)}
    return _verification(started.label, expected, starts, logs, new_at_earliest)


def verify_group(
    expected: PositionSet,
    group: GroupView,
    logs: Logs,
    *,
    new_at_earliest: bool,
    metadata_prefix: str,
) -> Verification:
    """Check what a consumer group goes on from.

    Args:
        expected: as for `verify_query`, and so the rest.
        group: the group now.
        metadata_prefix: how the metadata of our own commits begins.
    """
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    whole = _verification(f"group:{group.name}", expected, starts, logs, new_at_earliest)
    partitions = tuple(_moved_on(found, group, metadata_prefix) for found in whole.partitions)
    moved_on = [
        group.committed[found.topic, found.partition]
        for found in partitions
        if found.outcome is Outcome.MOVED_ON
    ]
    like_flinks = sum(held.leader_epoch is None and not held.metadata for held in moved_on)
    return Verification(whole.target, partitions, like_flinks)


def _moved_on(found: Verified, group: GroupView, metadata_prefix: str) -> Verified:
    if found.outcome is not Outcome.LOST:
        return found
    committed = group.committed[found.topic, found.partition]
    if committed.metadata.startswith(metadata_prefix):
        return found
    return replace(found, outcome=Outcome.MOVED_ON)


def _verification(
    target: str,
    expected: PositionSet,
    starts: Mapping[TopicPartition, int],
    logs: Logs,
    new_at_earliest: bool,
) -> Verification:
    new = NamedState.EARLIEST if new_at_earliest else NamedState.UNRESOLVED
    everything = {
        **dict.fromkeys(_partitions_of(expected.topics, starts, logs), new),
        **expected.starts,
    }
    return Verification(
        target,
        tuple(
            _verify(topic, partition, start, starts.get((topic, partition)), logs)
            for (topic, partition), start in sorted(everything.items(), key=lambda item: item[0])
        ),
    )


def _partitions_of(
    topics: frozenset[str], starts: Mapping[TopicPartition, int], logs: Logs
) -> Iterator[TopicPartition]:
    """What the target and the broker know of these topics."""
    yield from (place for place in starts if place[0] in topics)
    for topic in topics:
        yield from ((topic, partition) for partition in logs.get(topic, ()))


def _verify(
    topic: str, partition: int, expected: Start, started: int | None, logs: Logs
) -> Verified:
    outcome, records = _compare(expected, started, log_of(logs, topic, partition))
    return Verified(topic, partition, expected, started, outcome, records)


def _compare(expected: Start, started: int | None, log: LogRange | None) -> tuple[Outcome, int]:
    if started is None:
        return Outcome.MISSING, 0
    if isinstance(expected, int):
        if started > expected:
            return Outcome.LOST, started - expected
        if started < expected:
            return Outcome.REPEATED, expected - started
        return Outcome.OK, 0
    if expected is NamedState.EARLIEST:
        if started == 0:
            return Outcome.OK, 0
        if log is not None:
            lost = started - log.start
            return (Outcome.LOST, lost) if lost > 0 else (Outcome.OK, 0)
    return Outcome.UNKNOWN, 0
