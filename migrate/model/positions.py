"""Position: where one topic-partition goes on, or why that is not known; Origin and Target: where
positions are from, and where they go to.

Flink's markers (-1, -2, -3, Long.MIN_VALUE) end at ``extract``: past it a start is a next offset
(the offset of the next record to read, >= 0), a named ``Marker``, or unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, TypeAlias

from migrate.model.cluster_snapshot import GroupView, LogRange
from migrate.model.wording import did_you_mean

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Target:
    """What positions are moved to: a Spark query, the consumer group of this name, or a savepoint
    of Flink's."""

    kind: Literal["spark", "group", "savepoint"]
    name: str | None = None


# How a Spark query is named, by its checkpoint location.
SPARK_PREFIX = "spark:"
# How a consumer group is named.
GROUP_PREFIX = "group:"
SPARK = Target("spark")
SAVEPOINT = Target("savepoint")


def target_of(group: str | None) -> Target:
    """The consumer group of this name, or Spark where none is named."""
    return SPARK if group is None else Target("group", group)


@dataclass(frozen=True, slots=True)
class Origin:
    """What positions are from: a checkpoint, a batch of a Spark query, or another side.

    Attributes:
        kind: ``batch``, ``checkpoint``, which may be a savepoint, or ``positions`` of another side.
        pointer: its directory; of a query ``spark:`` before it; another side's whole name.
        number: the checkpoint's or the batch's; 0 of another side.
        newer: the numbers of complete checkpoints beside it that are newer, the last written at the
            end.
        stopped: whether the job ended with it, so that it is the job's last output.
        written_at: milliseconds of the epoch; None where that is not known.
        copied_from: where it was written, if it lies elsewhere and tells: the time may be the
            copy's.
    """

    kind: Literal["checkpoint", "batch", "positions"]
    pointer: str
    number: int
    newer: tuple[int, ...] = ()
    stopped: bool = False
    written_at: int | None = None
    copied_from: str | None = None

    @property
    def title(self) -> str:
        """How it is called: ``checkpoint 42``, ``batch 7``."""
        return self.kind if self.kind == "positions" else f"{self.kind} {self.number}"

    @property
    def group(self) -> str | None:
        """The consumer group that they are of; None of anything else."""
        if self.kind == "positions" and self.pointer.startswith(GROUP_PREFIX):
            return self.pointer.removeprefix(GROUP_PREFIX)
        return None


class PositionState(str, Enum):
    """What a source's state says of one topic-partition."""

    NEXT = "next"  # a reader holds it and has read up to its next offset
    EARLIEST = "earliest"  # a reader holds it and has read no record: starts at the log start
    LATEST = "latest"  # the same, starting at what was the log end when the job started
    COMMITTED = "committed"  # the same, starting at what Flink's own group has committed
    FINISHED = "finished"  # bounded, and read to its stopping offset
    UNASSIGNED = "unassigned"  # discovered, but not yet given to a reader
    UNRESOLVED = "unresolved"  # not in the state


class Marker(str, Enum):
    """A start that only a broker can turn into an offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"


class Unknown(str, Enum):
    """Why there is neither a next offset nor a marker."""

    UNRESOLVED = "unresolved"
    ABSENT = "absent"  # the partition is not known there at all


# Where one side stands at a partition: at the next offset to read, at a marker, or nobody knows.
Start: TypeAlias = int | Marker | Unknown


class Position(NamedTuple):
    """One topic-partition of one source.

    A named tuple, as a source may have 100,000 of them: a frozen dataclass takes four times as long
    to make.

    Attributes:
        cluster: the Kafka cluster's id for a DynamicKafkaSource, else None.
        start: the next offset to read, a marker, or None where the state does not tell.
        stopping_offset: where a bounded source stops, as stored (-1 and -3 are Flink's markers for
            latest and committed); None for a source without an end.
        subtask: the subtask whose reader holds it, or None where none does.
        reason: why the start is not known; empty where it is.
    """

    topic: str
    partition: int
    state: PositionState
    start: int | Marker | None
    stopping_offset: int | None = None
    subtask: int | None = None
    cluster: str | None = None
    reason: str = ""

    @property
    def next_offset(self) -> int | None:
        """The offset of the next record to read, where the state itself tells it."""
        return self.start if isinstance(self.start, int) else None

    @property
    def topic_partition(self) -> TopicPartition:
        return (self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A topic-partition; the rows that say more of one are its subclasses."""

    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return (self.topic, self.partition)

    @property
    def name(self) -> str:
        """As Kafka's own tools write it: ``orders-3``."""
        return f"{self.topic}-{self.partition}"


Logs: TypeAlias = Mapping[str, Mapping[int, LogRange]]


@dataclass(frozen=True, slots=True)
class PositionSet:
    """Where one side stands.

    Attributes:
        label: the side as its user named it.
        starts: never holds ``ABSENT``: what a side does not know is missing from it.
        note: what else there is to say of the side, such as which batch it is.
    """

    label: str
    starts: Mapping[TopicPartition, Start]
    note: str = ""

    def at(self, topic: str, partition: int) -> Start:
        return self.starts.get((topic, partition), Unknown.ABSENT)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for topic, _ in self.starts)

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        """Of what stands at an offset, and not at a marker."""
        return {place: start for place, start in self.starts.items() if isinstance(start, int)}


def resolve(start: Start, log: LogRange | None) -> int | None:
    """The next offset of a start, where it has one or the log tells it.

    Only ``earliest`` can be resolved by looking at a log: today's log end is not the ``latest`` of
    another day, and ``committed`` is known to a group alone.
    """
    match start:
        case int():
            return start
        case Marker.EARLIEST:
            return log.start if log is not None else None
        case Marker.LATEST | Marker.COMMITTED | Unknown():
            return None


def log_of(logs: Logs, topic: str, partition: int) -> LogRange | None:
    return logs.get(topic, {}).get(partition)


def group_positions(label: str, group: GroupView) -> PositionSet:
    """What a consumer group has committed, of all its topics."""
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    note = "" if group.exists else "there is no such group" + did_you_mean(group.alike)
    return PositionSet(label, starts, note)


def log_starts(label: str, logs: Logs) -> PositionSet:
    """The log start of every partition."""
    return PositionSet(label, {place: log.start for place, log in _each(logs)})


def log_ends(label: str, logs: Logs) -> PositionSet:
    """The log end of every partition."""
    return PositionSet(label, {place: log.end for place, log in _each(logs)})


def log_at(label: str, logs: Logs) -> PositionSet:
    """The first record of every partition at or after the time that was asked for, the log end
    where there is none."""
    return PositionSet(
        label, {place: log.first_at for place, log in _each(logs) if log.first_at is not None}
    )


def _each(logs: Logs) -> list[tuple[TopicPartition, LogRange]]:
    return [
        ((topic, partition), log)
        for topic, partitions in logs.items()
        for partition, log in partitions.items()
    ]


def format_start(start: Start) -> str:
    """A start in words."""
    return start.value if not isinstance(start, int) else str(start)
