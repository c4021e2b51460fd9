"""A plan: topic-partitions with a verdict each, refusals, and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from enum import Enum

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused
from migrate.model.positions import Marker, Origin, PartitionRow, Target, TopicPartition
from migrate.storage.uris import local_path


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
        next_offset: the offset to write; None where there is a problem, or it is skipped.
        position: the offset or marker of the checkpoint; None where it has neither.
        operator_id: the source of the position; None for a partition that no source knows.
        subtask: the subtask whose reader has the partition; None where none does.
        log_start, log_end: the broker's log range; None without a broker, or without such a log.
        current: the next offset of the target now, if it has one.
        flink_committed: the next offset of Flink's own group now, if it is named and has one.
        lost, repeated: upper bounds of the records that going on from ``next_offset`` (or, where
            there is a problem, from where the refused way would have gone on) skips or reads again;
            None where that is not known. What a job that runs on has emitted since its last commit
            is not among them.
        reached: the job's next offset at this checkpoint, the highest where several sources read
            it; None where that is not known. Not saved.
        unknown_to_some: whether a source that reads its topic does not know it, and so may not have
            read any of it. Not saved.
        undiscovered: of a partition that no source knows, how many offsets are older than the
            checkpoint, as far as that is known. Not saved.
        problem: why it is refused, or empty. Not saved, as no such plan is.
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
        """How far the target moves: positive skips records that it would have read."""
        if self.next_offset is None or self.current is None:
            return None
        return self.next_offset - self.current

    @property
    def ran_on(self) -> int:
        """How many offsets beyond the checkpoint Flink's group has committed.

        It commits with each completed checkpoint, so that one beyond proves that the job ran on.
        """
        if self.reached is None or self.flink_committed is None or self.next_offset is None:
            return 0
        return max(0, self.flink_committed - self.reached)

    @property
    def read_already(self) -> int:
        """How many offsets the furthest source had read beyond the next offset."""
        if self.reached is None or self.next_offset is None:
            return 0
        return max(0, self.reached - self.next_offset)

    @property
    def records_left(self) -> int | None:
        """At most how many records are left to read: there are gaps between offsets."""
        if self.next_offset is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.next_offset)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A reason not to carry out a plan, and the way out."""

    what: str
    way_out: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.way_out}" if self.way_out else self.what


@dataclass(frozen=True, slots=True)
class Plan:
    """The next offsets that a target starts from. Only a plan without refusals is carried out.

    Attributes:
        warnings: what is not refused, and must be known.
        cluster_id, topic_ids: Kafka's own ids; None and empty without a broker.
        source_group: Flink's own consumer group, if it is named.
        allow_ran_on: whether the job may have run on.
        only_some_partitions: whether its topics have partitions that do not move.
        topic_pattern: the pattern by which the job finds its topics, if it is named.
        operators: the ids of the chosen sources.
        source_cluster: the DynamicKafkaSource's id of the cluster of the positions; None where the
            state names none.
        topic_map: the target's names of topics, by their names in what is moved.
        snapshot: the broker's answers; None without a broker. Not saved.
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
        """The offsets to write, of each topic-partition that has one."""
        return {
            planned.topic_partition: planned.next_offset
            for planned in self.partitions
            if planned.next_offset is not None
        }

    @property
    def topics(self) -> set[str]:
        return {planned.topic for planned in self.partitions}

    def check(self) -> None:
        """Raise ``Refused`` if there are refusals."""
        if self.refusals:
            raise Refused([str(refusal) for refusal in self.refusals])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON, to be applied later: ``--plan-out``.

        Raises:
            Refused: the plan has refusals, or there is a file of this name.
            UsageError: the file cannot be written.
        """
        from migrate.planning.plan_file import save_plan

        save_plan(self, local_path(os.fspath(path)))
