"""What a plan is: topic-partitions with a verdict each, refusals, and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from migrate.positions import Position, TopicPartition
from migrate.snapshot import LogRange


class Verdict(str, Enum):
    """What the plan says of one topic-partition."""

    OK = "ok"
    MARKER_RESOLVED = "marker resolved"  # a marker in the state, turned into an offset
    NEW_PARTITION = "new partition"  # on the broker, not in the checkpoint
    FINISHED = "finished"  # bounded and read to its end: from there on
    SUSPECT = "suspect"  # in range, but the topic may have been recreated
    EXPIRED = "expired"  # below the log start: records are already gone
    BEYOND_END = "beyond end"  # the topic was recreated, or this is another cluster
    PARTITION_GONE = "partition gone"
    TOPIC_GONE = "topic gone"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One topic-partition of a plan.

    Attributes:
        next_offset: what is to be written; None where there is a problem, or it is skipped.
        position: what the checkpoint says; None for a partition it does not know.
        operator_id: the source the position is of.
        log: the broker's log range; None without a broker and for what it does not have.
        current: the next offset the target holds now, where it holds one.
        reached: the next offset that the job had come to with this checkpoint, the source furthest
            on where several read it; None where that is not known.
        unknown_to_some: whether a source that reads its topic does not know it, and so may not have
            read any of it.
        flink_committed: the next offset that Flink's own group holds now, where it is named and
            holds one.
        lost, repeated: upper bounds of the records that going on from ``next_offset`` (or, where
            there is a problem, from where the refused way would have gone on) skips or reads again;
            None where nobody can tell. What a job that runs on has emitted since its last commit
            is not among them.
        problem: why it is refused; empty where it is not.
    """

    topic: str
    partition: int
    verdict: Verdict
    next_offset: int | None
    position: Position | None
    log: LogRange | None
    operator_id: str | None = None
    current: int | None = None
    reached: int | None = None
    unknown_to_some: bool = False
    flink_committed: int | None = None
    lost: int | None = 0
    repeated: int | None = 0
    problem: str = ""

    @property
    def difference(self) -> int | None:
        """How far the target is moved: positive skips what it would have read."""
        if self.next_offset is None or self.current is None:
            return None
        return self.next_offset - self.current

    @property
    def ran_on(self) -> int:
        """How many offsets beyond the checkpoint Flink's group has committed: it commits with each
        completed checkpoint, so that one beyond proves that the job ran on."""
        if self.reached is None or self.flink_committed is None or self.next_offset is None:
            return 0
        return max(0, self.flink_committed - self.reached)

    @property
    def read_already(self) -> int:
        """How many offsets the source furthest on had come beyond where the lowest goes on."""
        if self.reached is None or self.next_offset is None:
            return 0
        return max(0, self.reached - self.next_offset)

    @property
    def records_left(self) -> int | None:
        """An upper bound: transaction markers and compaction leave gaps between offsets."""
        if self.next_offset is None or self.log is None:
            return None
        return max(0, self.log.end - self.next_offset)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan must not be carried out: what, where, and the way out."""

    what: str
    way_out: str

    def __str__(self) -> str:
        return f"{self.what}; {self.way_out}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What a target is to start from. Only a plan without refusals may be applied."""

    partitions: tuple[PlannedPartition, ...]
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        """What is to be written: the next offset of each topic-partition that has one."""
        return {
            (planned.topic, planned.partition): planned.next_offset
            for planned in self.partitions
            if planned.next_offset is not None
        }
