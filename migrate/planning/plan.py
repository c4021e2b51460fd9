"""What a plan is: topic-partitions with a verdict each, refusals, and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused
from migrate.model.positions import Marker, Origin, PartitionRow, Target, TopicPartition
from migrate.storage.files import local_path


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

    @property
    def is_at_position(self) -> bool:
        """Whether a partition with this verdict goes on at its own position."""
        return self in (Verdict.OK, Verdict.FINISHED, Verdict.SUSPECT)


@dataclass(frozen=True, slots=True)
class PlannedPartition(PartitionRow):
    """One topic-partition of a plan.

    Attributes:
        next_offset: what is to be written; None where there is a problem, or it is skipped.
        position: what the checkpoint says, a marker included; None where it does not tell.
        operator_id: the source the position is of; None for a partition that no source knows.
        subtask: the subtask whose reader holds it; None where none does.
        log_start, log_end: the broker's log range; None without a broker and for what it lacks.
        current: the next offset the target holds now, where it holds one.
        flink_committed: the next offset that Flink's own group holds now, where it is named and
            holds one.
        lost, repeated: upper bounds of the records that going on from ``next_offset`` (or, where
            there is a problem, from where the refused way would have gone on) skips or reads again;
            None where nobody can tell. What a job that runs on has emitted since its last commit
            is not among them.
        reached: the next offset that the job had come to with this checkpoint, the source furthest
            on where several read it; None where that is not known. Not saved.
        unknown_to_some: whether a source that reads its topic does not know it, and so may not have
            read any of it. Not saved.
        undiscovered: of a partition that no source knows, how many offsets are older than the
            checkpoint, as far as that is known. Not saved.
        problem: why it is refused; empty where it is not. Not saved, as no such plan is.
    """

    verdict: Verdict
    next_offset: int | None
    position: int | Marker | None = None
    operator_id: str | None = None
    subtask: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    current: int | None = None
    flink_committed: int | None = None
    lost: int | None = 0
    repeated: int | None = 0
    reached: int | None = None
    unknown_to_some: bool = False
    undiscovered: int = 0
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
        if self.next_offset is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.next_offset)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plan must not be carried out: what, where, and the way out."""

    what: str
    way_out: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.way_out}" if self.way_out else self.what


@dataclass(frozen=True, slots=True)
class Plan:
    """What a target is to start from. Only a plan without refusals is carried out.

    Attributes:
        refusals: why it must not be carried out, each with the way out.
        warnings: what is not refused, and must be known.
        cluster_id, topic_ids: Kafka's own ids, None and empty where no broker was asked.
        source_group: Flink's own consumer group, where it is named.
        allow_ran_on: whether the job may have run on.
        only_some_partitions: whether its topics have partitions that are not to move.
        topic_pattern: the pattern by which the job finds its topics, where it is named.
        operators: the sources that were chosen, by id.
        source_cluster: the cluster of their positions, by the id that a DynamicKafkaSource knows it
            by; None where the state names none.
        topic_map: the target's names of topics, by their names in what is moved.
        snapshot: what the broker said; None without one. Not saved.
        notes: what was in doubt, and is in order. Not saved.
    """

    origin: Origin
    target: Target
    partitions: tuple[PlannedPartition, ...]
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    source_group: str | None = None
    allow_ran_on: bool = False
    only_some_partitions: bool = False
    topic_pattern: str | None = None
    operators: tuple[str, ...] = ()
    source_cluster: str | None = None
    topic_map: Mapping[str, str] = field(default_factory=dict)
    made_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    snapshot: ClusterSnapshot | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        """What is to be written: the next offset of each topic-partition that has one."""
        return {
            planned.topic_partition: planned.next_offset
            for planned in self.partitions
            if planned.next_offset is not None
        }

    @property
    def topics(self) -> set[str]:
        return {planned.topic for planned in self.partitions}

    def check(self) -> None:
        """Raise ``Refused`` where it must not be carried out."""
        if self.refusals:
            raise Refused([str(refusal) for refusal in self.refusals])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, to be applied later: ``--plan-out``.

        Raises:
            Refused: it must not be carried out, or there is a file of this name.
            UsageError: it cannot be written there.
        """
        from migrate.planning.plan_file import save_plan

        save_plan(self, local_path(os.fspath(path)))
