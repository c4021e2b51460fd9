"""Positions of topic-partitions, their origin, and their target.

A start is a next offset (the offset of the next record to read, >= 0), a ``Marker``, or unknown.
``migrate.inputs.flink`` translates Flink's numbers for markers, such as -1, to ``Marker``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from migrate.model.cluster_snapshot import LogRange

TopicPartition = tuple[str, int]


class ClusterPartition(NamedTuple):
    """A partition of a source; ``cluster`` is None if the state contains no cluster."""

    cluster: str | None
    topic: str
    partition: int

    def __str__(self) -> str:
        suffix = f" of cluster {self.cluster!r}" if self.cluster is not None else ""
        return f"{self.topic}-{self.partition}{suffix}"


# The assumed maximum difference, in seconds, between the storage's clock and the clocks of this
# machine and of producers.
CLOCK_DIFFERENCE = 60.0
# The prefixes that mark a string as a Spark query's checkpoint location, as a consumer group name,
# or as a saved plan's path.
SPARK_PREFIX = "spark:"
GROUP_PREFIX = "group:"
PLAN_PREFIX = "plan:"


def prefix_advice(name: str, *prefixes: str) -> str:
    """Return advice about a name that starts with one of the prefixes; "" otherwise.

    An option or key already states the kind of its value, such as a directory, a group, or a plan.
    A value with a prefix, such as ``spark:query``, would therefore mean a directory with this whole
    name.
    """
    return next((f"omit the prefix {prefix}" for prefix in prefixes if name.startswith(prefix)), "")


class Target(NamedTuple):
    """The target of a move.

    Attributes:
        title: the target, in words.
        command: the words of the command that writes to the target.
        group: the consumer group's name; None for any other target.
    """

    title: str
    command: tuple[str, ...]
    group: str | None = None

    def apply_command(self, plan: str) -> tuple[str, ...]:
        """Return the words of the command that applies a saved plan; ``DIR`` is a placeholder."""
        write = ("--checkpoint-dir", "DIR") if self.group is None else ("--execute",)
        return (*self.command, "--plan", plan, *write)


SPARK = Target("a Spark query", ("to-spark",))
SAVEPOINT = Target("a savepoint", ("to-flink",))


def target_of(group: str | None) -> Target:
    """Return the target for a consumer group's name, or Spark if there is no name."""
    if group is None:
        return SPARK
    return Target(f"consumer group {group}", ("commit-group", "--group", group), group)


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of positions, such as a checkpoint or a batch of a Spark query.

    Attributes:
        kind: ``checkpoint`` for a checkpoint or savepoint, ``batch`` for a Spark query, and
            ``positions`` for any other input.
        pointer: the checkpoint's directory; ``spark:`` and the query's checkpoint location; or the
            name of another input, such as ``group:NAME``.
        number: the number of the checkpoint or batch; 0 for another input.
        newer: the numbers of newer complete checkpoints in the job's checkpoint directory, in the
            order of ``Siblings.newer``; for a query, the batch that it has started but not
            committed. A saved plan contains only the last of these numbers.
        stopped: True if the job ended with this checkpoint.
        written_at: the time at which the checkpoint was written or the batch was committed, in
            epoch milliseconds; None if unknown.
        copied_from: for a copy, the directory in which Flink wrote the checkpoint; ``written_at``
            may then be the time of the copy.
        is_legacy: True if a source is a FlinkKafkaConsumer, whose stop-with-savepoint stores the
            offsets of the previous checkpoint.
    """

    kind: Literal["checkpoint", "batch", "positions"]
    pointer: str
    number: int
    newer: tuple[int, ...] = ()
    stopped: bool = False
    written_at: int | None = None
    copied_from: str | None = None
    is_legacy: bool = False

    @property
    def reader(self) -> str:
        """Return the kind of reader that has these positions: ``job``, ``query``, or ``group``."""
        return {"checkpoint": "job", "batch": "query", "positions": "group"}[self.kind]

    @property
    def how_to_stop(self) -> str:
        """Return an instruction for stopping the job without duplicating records."""
        if self.is_legacy:
            return "take a savepoint with flink savepoint, and cancel the job immediately"
        return "stop the job with a savepoint"

    @property
    def title(self) -> str:
        """Return ``checkpoint 42``, ``savepoint 43``, ``batch 7``, or ``positions``."""
        if self.kind == "positions":
            return self.kind
        # A savepoint's directory is savepoint-<job>-<random> in Flink.
        name = self.pointer.rstrip("/").rpartition("/")[2]
        is_savepoint = self.stopped or name.startswith("savepoint-")
        return f"{'savepoint' if is_savepoint else self.kind} {self.number}"

    @property
    def is_of_flink(self) -> bool:
        """Return whether Flink can show if the reader of the positions is running."""
        return self.kind == "checkpoint" or self.group is not None

    @property
    def group(self) -> str | None:
        """Return the consumer group's name, or None if the origin is something else."""
        if self.kind == "positions" and self.pointer.startswith(GROUP_PREFIX):
            return self.pointer.removeprefix(GROUP_PREFIX)
        return None


class PositionState(str, Enum):
    """The state of one topic-partition in a source."""

    NEXT = "next"  # assigned to a reader and read up to the next offset
    EARLIEST = "earliest"  # assigned, no record read yet; starts at the log start
    LATEST = "latest"  # assigned, no record read yet; starts at the log end as of the job's start
    COMMITTED = "committed"  # assigned, no record read yet; starts at the group's committed offset
    FINISHED = "finished"  # in a bounded source, and read to the stopping offset
    UNASSIGNED = "unassigned"  # discovered, but not yet assigned to a reader
    UNRESOLVED = "unresolved"  # the position is not in the state


class Marker(str, Enum):
    """A start for which the state contains a marker instead of an offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"


class Unknown(str, Enum):
    """The reason that a partition has neither a next offset nor a marker."""

    UNRESOLVED = "unresolved"  # the input contains the partition, but without a position
    ABSENT = "absent"  # the input does not contain the partition


Start: TypeAlias = int | Marker | Unknown


class Position(NamedTuple):
    """One topic-partition in one source.

    This is not a frozen dataclass, because a source may have 100,000 positions, and creating frozen
    dataclasses takes four times as long.

    Attributes:
        start: the next offset to read, or a marker; None if the state has neither.
        stopping_offset: the offset at which a bounded source stops, as stored by Flink (-1 and -3
            are markers for latest and committed); None for an unbounded source.
        subtask: the subtask whose reader has the partition, or None.
        cluster: for a DynamicKafkaSource, the ID of the Kafka cluster; otherwise None.
        reason: the reason that the start is unknown; empty if it is known.
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
        """Return the offset of the next record to read, or None if it is not in the state."""
        return self.start if isinstance(self.start, int) else None

    @property
    def topic_partition(self) -> TopicPartition:
        return (self.topic, self.partition)


# The fields of a Position as a plain tuple, which takes a third of the time to create. A Position
# also has this type.
PositionFields: TypeAlias = tuple[
    str, int, PositionState, int | Marker | None, int | None, int | None, str | None, str
]


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A topic-partition; subclasses add facts about the partition."""

    topic: str
    partition: int

    @property
    def topic_partition(self) -> TopicPartition:
        return (self.topic, self.partition)

    @property
    def name(self) -> str:
        """The partition, as written by the Kafka tools: ``orders-3``."""
        return f"{self.topic}-{self.partition}"


Logs: TypeAlias = "Mapping[str, Mapping[int, LogRange]]"


@dataclass(frozen=True, slots=True)
class PositionSet:
    """The positions of one input.

    Attributes:
        label: the user's name for the input.
        starts: the start of each partition in the input; never ``ABSENT``.
        note: a remark about the input, such as ``after batch 7``.
        written_at: the time at which the checkpoint was written, in epoch milliseconds; None if
            unknown, or if the input is not a checkpoint.
    """

    label: str
    starts: Mapping[TopicPartition, Start]
    note: str = ""
    written_at: int | None = None

    def at(self, topic: str, partition: int) -> Start:
        return self.starts.get((topic, partition), Unknown.ABSENT)

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for topic, _ in self.starts)

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        """Return the starts that are offsets."""
        return {
            partition: start for partition, start in self.starts.items() if isinstance(start, int)
        }


def resolve(start: Start, log: LogRange | None) -> int | None:
    """Return the next offset of a start, or None if the log range does not determine it.

    A log range resolves only the ``earliest`` marker. ``latest`` refers to the log end offset
    when the job started, not to the current log end offset. ``committed`` refers to an offset of a
    consumer group.
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


def format_start(start: Start) -> str:
    """Return a start as text: ``42``, ``earliest``, ``unresolved``."""
    return start.value if not isinstance(start, int) else str(start)


def format_position(position: int | Marker | None) -> str:
    """Return a position as text: ``42``, ``earliest``, ``no offset``."""
    return "no offset" if position is None else format_start(position)
