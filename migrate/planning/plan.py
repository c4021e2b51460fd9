"""A plan, with a verdict for each topic-partition, refusals, and warnings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import Refused
from migrate.model.message import Message
from migrate.model.positions import Marker, Origin, PartitionRow, Target, TopicPartition
from migrate.storage.uris import local_path


class Verdict(str, Enum):
    """The plan's verdict on a topic-partition."""

    OK = "ok"
    MARKER_RESOLVED = "marker resolved"  # a marker that the broker resolved to an offset
    NEW_PARTITION = "new partition"  # on the broker, not in the checkpoint
    FINISHED = "finished"  # a bounded source has read up to the stopping offset
    SUSPECT = "suspect"  # in range, but the topic may have been recreated
    EXPIRED = "expired"  # below the log start, so records were already deleted
    BEYOND_END = "beyond end"  # beyond the log end: a recreated topic, or another cluster
    PARTITION_GONE = "partition gone"
    TOPIC_GONE = "topic gone"
    UNRESOLVED = "unresolved"

    @property
    def is_at_position(self) -> bool:
        """True if a partition with this verdict starts at its position in the checkpoint."""
        return self in (Verdict.OK, Verdict.FINISHED, Verdict.SUSPECT)


class MatchOutcome(str, Enum):
    """The outcome of the translation of one position."""

    PROVED = "proved"  # every record from the old log start to the position has a copy, in order
    MATCHED = "matched"  # all records that were compared agree
    AT_END = "at the end"  # matched, but no record at or after the position has been copied yet
    LAGGING = "mirror lags"  # some consumed records are not copied yet
    WENT_BACK = "mirror went back"  # at and after the place, the new log duplicates records
    AMBIGUOUS = "ambiguous"  # several places in the new log agree
    EXPIRED = "expired there"  # the new log starts after the first unconsumed record
    FILTERED = "filtered"  # records of the old log have no copy
    FOREIGN = "foreign records"  # the new log has records that the old log lacks
    OTHER_PARTITIONING = "other partitioning"  # both: filtered and foreign records
    NOT_FOUND = "not found"

    @property
    def is_match(self) -> bool:
        """True if a start at the new offset neither loses nor duplicates any compared record."""
        return self in (MatchOutcome.PROVED, MatchOutcome.MATCHED, MatchOutcome.AT_END)

    @property
    def is_lossless(self) -> bool:
        """True if a start at the new offset loses no records, but may duplicate some."""
        return self in (MatchOutcome.WENT_BACK, MatchOutcome.AMBIGUOUS)


@dataclass(frozen=True, slots=True)
class Translation:
    """A partition's position in the job's cluster, if the target reads from another cluster.

    Attributes:
        before, after: the number of records that match directly before and after the position.
        compared: the number of records in the old log that were compared with their copies.
        unread: the number of offsets in the new log that were not read, before and after the place.
        is_searched_to_end: True if the new log was searched to its end; otherwise, the log might
            contain further copies of the records.
    """

    topic: str
    next_offset: int
    log_start: int
    log_end: int
    outcome: MatchOutcome
    before: int
    after: int
    is_searched_to_end: bool
    compared: int = 0
    unread: int = 0

    @property
    def is_sampled(self) -> bool:
        """True if some records were not compared."""
        return bool(self.unread) or not self.is_searched_to_end


@dataclass(frozen=True, slots=True)
class PlannedPartition(PartitionRow):
    """One topic-partition in a plan.

    ``topic``, ``next_offset``, ``current``, and the log range refer to the target's cluster. All
    other offsets refer to the job's cluster.

    Attributes:
        next_offset: the offset to write; None if the partition has a problem or is skipped.
        position: the offset or marker in the checkpoint; None if the checkpoint contains neither.
        operator_id: the source that contains the position; None for a partition that is not in any
            source.
        subtask: the subtask whose reader has the partition, or None.
        log_start, log_end: the log range; None if no broker was queried, or if the log is missing
            on the broker.
        current: the target's current next offset, if it has one.
        flink_committed: the current offset of the source group, if the user specified the group.
        lost, repeated: upper bounds on the number of records that a start at ``next_offset`` skips
            (lost) or duplicates (repeated); None if unknown. For a refused partition, they refer to
            the refused start; for ``EXPIRED``, to a start at the log start. Records that the job
            has emitted since its last offset commit are not counted.
        job_reached: the job's next offset at this checkpoint, which is the highest among all
            sources; None if any source's next offset is unknown. Not saved.
        unknown_to_some: True if a source reads the topic but does not have this partition. That
            source may not have read any of the partition's records. Not saved.
        older_offsets: for a partition that is not in any source, the number of offsets that are
            certainly older than the checkpoint. Not saved.
        problem: the reason that the partition is refused; None if it is not refused. Not saved.
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
    job_reached: int | None = None
    unknown_to_some: bool = False
    older_offsets: int = 0
    problem: Message | None = None
    translation: Translation | None = None

    @property
    def job_next_offset(self) -> int | None:
        """The next offset in the job's cluster."""
        return self.translation.next_offset if self.translation is not None else self.next_offset

    def in_job_cluster(self, topic: str) -> PlannedPartition:
        """Return the partition in the job's cluster, where its topic is named ``topic``.

        Without a translation, the log range of the target's cluster is kept.
        """
        translation = self.translation
        if translation is None:
            return replace(self, topic=topic, current=None)
        return replace(
            self,
            topic=topic,
            next_offset=translation.next_offset,
            current=None,
            log_start=translation.log_start,
            log_end=translation.log_end,
            translation=None,
        )

    @property
    def difference(self) -> int | None:
        """The next offset minus ``current``: positive for skipped records, None if unknown."""
        if self.next_offset is None or self.current is None:
            return None
        return self.next_offset - self.current

    @property
    def ran_on_by(self) -> int:
        """The number of offsets from ``job_reached`` up to ``flink_committed``.

        The number is 0 if either is None, or if ``next_offset`` is None. A job commits at each
        completed checkpoint, so a commit beyond this checkpoint proves that the job kept running.
        """
        if self.job_reached is None or self.flink_committed is None or self.next_offset is None:
            return 0
        return max(0, self.flink_committed - self.job_reached)

    @property
    def read_already(self) -> int:
        """The largest number of offsets that any source has read beyond ``job_next_offset``.

        The number is 0 if the source's offset is beyond the log end, because the records that the
        source has read are not in this log.
        """
        if self.job_reached is None or self.job_next_offset is None:
            return 0
        if self.verdict is Verdict.BEYOND_END:
            return 0
        return max(0, self.job_reached - self.job_next_offset)

    @property
    def records_left(self) -> int | None:
        """The upper bound on the lag in records; some offsets have no record."""
        if self.next_offset is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.next_offset)


@dataclass(frozen=True, slots=True)
class Plan:
    """The next offsets from which a target starts. A plan with refusals cannot be applied.

    Attributes:
        cluster_id: the ID of the job's cluster; None if no broker was queried.
        topic_ids: the IDs of the job's topics, by their names in the job's cluster; empty if no
            broker was queried.
        to_cluster_id, to_topic_ids: the same for the target's cluster; None and empty if both
            clusters are the same.
        source_group: Flink's consumer group, if the user specified it.
        queried_flink: True if Flink was queried about the job.
        only_some_partitions: True if the user chose partitions.
        topic_pattern: the pattern by which the job finds its topics, if the user passed it.
        source_cluster: the DynamicKafkaSource's ID for the Kafka cluster of the positions; None if
            the state does not identify a cluster.
        topic_map: the topic names at the target, by their names in the input.
        snapshot: the broker's answers; None if no broker was queried. Not saved.
        notes: remarks, for example about problems that were ruled out. Not saved.
    """

    origin: Origin
    target: Target
    partitions: tuple[PlannedPartition, ...]
    refusals: tuple[Message, ...] = ()
    warnings: tuple[str, ...] = ()
    cluster_id: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    source_group: str | None = None
    queried_flink: bool = False
    allow_ran_on: bool = False
    only_some_partitions: bool = False
    topic_pattern: str | None = None
    operators: tuple[str, ...] = ()
    source_cluster: str | None = None
    topic_map: Mapping[str, str] = field(default_factory=dict)
    to_cluster_id: str | None = None
    to_topic_ids: Mapping[str, str] = field(default_factory=dict)
    made_at: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    snapshot: ClusterSnapshot | None = field(default=None, repr=False, compare=False)
    notes: tuple[str, ...] = ()

    @property
    def next_offsets(self) -> dict[TopicPartition, int]:
        """The offsets to write."""
        return {
            planned.topic_partition: planned.next_offset
            for planned in self.partitions
            if planned.next_offset is not None
        }

    @property
    def topics(self) -> set[str]:
        return {planned.topic for planned in self.partitions}

    def apply_command(self, path: str) -> tuple[str, ...]:
        """Return the words of the command that applies the plan in the file ``path``.

        The Kafka clusters and the JobManager that the plan requires are placeholders, such as
        ``HOST:PORT``.
        """
        brokers = () if self.cluster_id is None else ("-b", "HOST:PORT")
        other_cluster = ("--to-kafka-config", "FILE") if self.is_translated else ()
        flink = ("--flink-rest", "URL") if self.queried_flink else ()
        return ("migrate", *self.target.apply_command(path), *brokers, *other_cluster, *flink)

    @property
    def is_translated(self) -> bool:
        """True if the target reads from a different cluster than the job does."""
        return self.to_cluster_id is not None

    @property
    def target_cluster_id(self) -> str | None:
        """The ID of the target's cluster."""
        return self.to_cluster_id if self.is_translated else self.cluster_id

    def in_target_cluster(self) -> Plan:
        """Return the plan with the IDs of the cluster that the target reads from."""
        if not self.is_translated:
            return self
        return replace(self, cluster_id=self.to_cluster_id, topic_ids=self.to_topic_ids)

    def in_job_cluster(self) -> Plan:
        """Return the plan with the offsets and the topics of the job's cluster."""
        if not self.is_translated:
            return self
        old_names = {new: old for old, new in self.topic_map.items()}
        partitions = tuple(
            planned.in_job_cluster(old_names.get(planned.topic, planned.topic))
            for planned in self.partitions
        )
        return replace(
            self, partitions=partitions, topic_map={}, to_cluster_id=None, to_topic_ids={}
        )

    def check(self) -> None:
        """Raise ``Refused`` if there are refusals."""
        if self.refusals:
            raise Refused(self.refusals)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON to apply it later (``--plan-out``).

        Raises:
            Refused: the plan has refusals, or a file with this name exists.
            UsageError: the file cannot be written.
        """
        from migrate.planning.plan_file import save_plan

        save_plan(self, local_path(os.fspath(path)))
