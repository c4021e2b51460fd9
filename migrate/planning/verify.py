"""Verify, after a move, that the target started at the moved positions. Pure, no I/O.

A Spark query starts at its seed (``spark_log.starting_positions``). The seed does not change while
the query runs. A partition that is missing from the seed starts at offset 0. If the log start
offset is higher than 0, the query fails. If the seed has no partition of a topic, the query is
assumed not to read the topic. After the query has run, its log of batches shows whether the query
continued from the seed and read all partitions of the seed (``verify_log``).

While the query runs, the evidence needed to answer two questions can be lost. In that case, the
outcome ``ok`` means only that the seed was correct.

- Did the first batch read the records at the seed? This is uncertain once the log start offset is
  above the seed, because a query with ``failOnDataLoss=false`` skips deleted records without a
  warning.
- Did the query start at the seed? This is uncertain once the query's log has lost its first
  batches. These batches show whether the query started with the continuous trigger, because this
  trigger ignores the seed.

A consumer group starts at its committed offsets. Its consumers overwrite these offsets, so verify a
group before its consumers start. The outcome of a partition depends on its committed offset:

- Equal to the position: ``ok``.
- Below the position: the records between both offsets are duplicated (``REPEATED``).
- Above the position, and committed by ``migrate`` (as shown by its rollback file): the records
  between both offsets are lost (``LOST``).
- Above the position, but no rollback file shows that ``migrate`` committed it: ``MOVED_ON``, which
  is not verified. Consumers that started at the offset from ``migrate``, consumers that skipped
  records, a Flink job that is still running, and ``migrate`` itself (with its rollback file in a
  different directory) are indistinguishable.
- No committed offset: ``MISSING``; ``RECREATED`` if a rollback file shows that the topic was
  recreated since ``migrate`` committed its offset, because Kafka removes the offsets of a deleted
  topic.

If a partition is still at ``earliest`` in the checkpoint, the job has read none of its records. In
that case, any start offset up to the current log start offset is correct, because the log has no
records below it. The same applies to a partition that is not in the checkpoint, if Flink would
start it at the log start offset.

If a broker was queried, the next offset that the target will read must also be between the log
start offset and the log end offset, inclusive. Otherwise the outcome is ``EXPIRED`` or
``BEYOND_END``. A checkpoint does not contain the IDs of its topics. If most records below the
position are newer than the checkpoint, the topic may have been recreated, and the outcome is
``SUSPECT`` (``looks_recreated``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from migrate.inputs.spark_query import QueryStart
from migrate.model.cluster_snapshot import GroupView, LogRange
from migrate.model.offset_metadata import with_client_metadata
from migrate.model.positions import (
    Logs,
    Marker,
    PartitionRow,
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    log_of,
    resolve,
)
from migrate.planning.partition import looks_recreated


class StartOutcome(str, Enum):
    """The outcome of a target's start in one topic-partition."""

    OK = "ok"
    LOST = "lost"  # the target started above the position
    REPEATED = "repeated"  # the target started below the position, or reread some records
    MISSING = "missing"  # the target has no start, or the query does not read the partition
    EXPIRED = "expired"  # the next offset is below the log start, so records were deleted
    BEYOND_END = "beyond end"  # the next offset is beyond the log end (another log or cluster)
    RECREATED = "topic recreated"  # the offset is for an earlier topic with the same name
    SUSPECT = "suspect"  # most records below the offset are newer than the checkpoint
    GONE = "gone"  # the broker has no such topic or partition
    MOVED_ON = "moved on"  # above the position; not known to be committed by ``migrate``
    UNKNOWN = "cannot tell"  # the expected offset, or the query's start, is unknown


@dataclass(frozen=True, slots=True)
class VerifiedPartition(PartitionRow):
    """How a target started in one topic-partition.

    Attributes:
        started: the offset at which the target started or (before its first run) will start; None
            if there is no such offset, or if it is unknown.
        records: the number of offsets that are lost, repeated, expired, or passed ("moved on"),
            some of which may have no record; 0 for other outcomes.
        added: True if the checkpoint or the plan lacks the partition.
    """

    expected: Start
    started: int | None
    outcome: StartOutcome
    records: int = 0
    added: bool = False


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """A comparison of a plan with its origin, which is reread for the comparison.

    Attributes:
        differences: the differences between the plan and its origin, one line each.
        not_compared: the reason that the origin cannot be read; empty if it was read.
        unmatched: the positions of a plan for another cluster that have no certain match there,
            one line each.
        other_starts: the partitions that start at a different offset than in the checkpoint:
            resolved markers other than ``earliest``, new partitions, and starts set by the user's
            options.
    """

    differences: tuple[str, ...] = ()
    not_compared: str = ""
    unmatched: tuple[str, ...] = ()
    other_starts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The verification of a move; its partitions are sorted by topic and number.

    Attributes:
        target: the user's name for the target.
        has_run: True if a query has run in the target. Always False for a group.
        continuous: as in ``QueryStart``; if True, every start is unknown.
        maybe_flink_commits: the number of moved-on partitions whose commit may come from Flink,
            because the commit has neither metadata nor a leader epoch (KafkaSourceReader and
            KafkaFetcher @ connectors 1.15.4 to 5.0.0). ``migrate`` also commits without an epoch
            and, by default, without metadata. Consumers' automatic commits have an epoch; their
            other commits may lack it.
        other_problems: the problems that an extension's additional check has found (a summary, then
            details); empty if there are none.
        state: the comparison of the query's state with the Flink state (``StateProof``); None if no
            extension has compared them.
        plan: the comparison of a plan with its origin, if a plan is verified.
        moved_on_since: for each rollback file according to which ``migrate`` committed the
            positions to the group, the number of its partitions that have moved on.
        passed_by_log_start: if a query has run, the partitions that started at the correct offset
            but whose log start offset is now higher. The query may not have read their first
            records.
        other_topics: the query's topics, if it reads none of the expected topics.
        more_topics: the query's other topics, if it reads expected topics. They are not compared.
        first_batches_gone: True if a query's log no longer contains its first batches, so the log
            does not show whether the query started at its seed.
    """

    target: str
    partitions: tuple[VerifiedPartition, ...]
    has_run: bool = False
    continuous: bool = False
    maybe_flink_commits: int = 0
    moved_on_since: Mapping[str, int] = field(default_factory=dict)
    other_problems: tuple[str, ...] = ()
    state: Any = None
    plan: PlanCheck | None = None
    passed_by_log_start: tuple[TopicPartition, ...] = ()
    first_batches_gone: bool = False
    other_topics: tuple[str, ...] = ()
    more_topics: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        """True if every partition is ``ok``, with no other problem and no difference in the plan.

        False if there are no partitions, if the query's log no longer contains its first batches,
        or if retention may have deleted records before the query read them
        (``passed_by_log_start``).
        """
        lost_evidence = self.first_batches_gone or self.passed_by_log_start
        return self._outcomes_are(StartOutcome.OK) and not lost_evidence

    @property
    def verified_or_moved_on(self) -> bool:
        """True if every partition is ``ok`` or ``moved on``, without problems or differences.

        False if there are no partitions. Unlike ``verified``, this property may be True if the
        query's log no longer contains its first batches, or if retention may have deleted records
        before the query read them.
        """
        return self._outcomes_are(StartOutcome.OK, StartOutcome.MOVED_ON)

    def _outcomes_are(self, *outcomes: StartOutcome) -> bool:
        if self.other_problems:
            return False
        if self.plan is not None and (self.plan.differences or self.plan.unmatched):
            return False
        return bool(self.partitions) and all(
            partition.outcome in outcomes for partition in self.partitions
        )

    @property
    def counts(self) -> dict[StartOutcome, int]:
        """The number of partitions with each outcome; outcomes without partitions are omitted."""
        counts = Counter(partition.outcome for partition in self.partitions)
        return {outcome: counts[outcome] for outcome in StartOutcome if counts[outcome]}


def verify_query(
    expected: PositionSet,
    query: QueryStart,
    logs: Logs | None,
    *,
    new_at_earliest: bool,
    recreated: Container[str] = (),
) -> Verification:
    """Check a Spark query's actual or future start offsets, and its committed batches.

    Args:
        expected: the positions at which the checkpoint ended, or the positions of a plan.
        query: the start of the query, and its committed batches.
        logs: the log ranges of the broker's partitions; None if no broker was queried.
            ``first_since`` refers to the checkpoint's time; it is None for a plan with topic IDs.
        new_at_earliest: True if new partitions must start at the log start. New partitions are
            those that ``expected`` lacks although it has other partitions of the topic.
        recreated: the topics that were recreated since the plan was made.
    """
    starts: dict[TopicPartition, int] = {}
    reads = query.start_positions.topics
    if not query.continuous:
        starts = {
            (topic, partition): 0
            for topic in expected.topics & reads
            for partition, log in (logs or {}).get(topic, {}).items()
            if log.start == 0
        }
        starts |= query.start_positions.next_offsets
    resumes_at = query.resumes_at.next_offsets if query.resumes_at is not None else {}
    also_reads = (reads | {topic for topic, _ in resumes_at}) - expected.topics
    target = _Target(starts, resumes_at, logs, recreated, starts_unknown=query.continuous)
    partitions = target.verify(expected, new_at_earliest)
    passed = [
        partition.topic_partition
        for partition in partitions
        if query.has_begun_batch
        and partition.outcome is StartOutcome.OK
        and partition.started is not None
        and (log := log_of(logs or {}, partition.topic, partition.partition)) is not None
        and log.start > partition.started
    ]
    verification = Verification(
        query.start_positions.label,
        partitions,
        query.has_begun_batch,
        query.continuous,
        passed_by_log_start=tuple(passed),
        other_topics=() if reads & expected.topics else tuple(sorted(reads)),
        more_topics=tuple(sorted(also_reads)) if reads & expected.topics else (),
    )
    return verify_log(verification, query.seeds, query.batches)


def verify_log(
    verification: Verification,
    seeds: Mapping[str, Mapping[TopicPartition, int]],
    batches: Sequence[tuple[int, Mapping[str, Mapping[TopicPartition, int]]]],
) -> Verification:
    """Check the committed batches in a Spark query's log.

    The first batch starts at the seeds of its sources, and every other batch starts at the end of
    the previous batch. If a batch has no offset for a seeded partition, the query does not read
    this partition (``MISSING``). If a batch ends below its start, the records in between are
    duplicated (``REPEATED``). If a partition is neither seeded nor in the newest batch, the query
    reads it from its next batch on or, with ``assign``, never reads it (``UNKNOWN``).

    Args:
        verification: the verification of the query's start.
        seeds: the seeded offsets, by source.
        batches: (number, end offsets by source) for each committed batch, oldest first.
    """
    worse: dict[TopicPartition, tuple[StartOutcome, int]] = {}
    for source, offsets in seeds.items():
        for topic_partition, begins in offsets.items():
            for _, ends in batches:
                end = ends.get(source, {}).get(topic_partition)
                if end is None:
                    worse[topic_partition] = StartOutcome.MISSING, 0
                    break
                if end < begins:
                    _, before = worse.get(topic_partition, (None, 0))
                    worse[topic_partition] = StartOutcome.REPEATED, before + begins - end
                begins = end
    newest = batches[-1:]
    listed = {
        place
        for sources in (seeds, *(ends for _, ends in newest))
        for offsets in sources.values()
        for place in offsets
    }
    partitions = []
    for partition in verification.partitions:
        if partition.outcome is StartOutcome.OK and partition.topic_partition in worse:
            outcome, records = worse[partition.topic_partition]
            partition = replace(partition, outcome=outcome, records=records)
        elif (
            partition.outcome is StartOutcome.OK
            and newest
            and partition.topic_partition not in listed
        ):
            partition = replace(partition, outcome=StartOutcome.UNKNOWN, started=None)
        partitions.append(partition)
    return replace(
        verification,
        partitions=tuple(partitions),
        first_batches_gone=bool(batches) and batches[0][0] > 0,
    )


def verify_group(
    expected: PositionSet,
    group: GroupView,
    logs: Logs | None,
    *,
    new_at_earliest: bool,
    written_by_us: Container[TopicPartition] = (),
    superseded: Mapping[TopicPartition, tuple[str, int]] | None = None,
    recreated: Container[str] = (),
    recreated_since_commit: Container[str] = (),
) -> Verification:
    """Check the start offsets of a consumer group.

    ``written_by_us`` contains the partitions that still match the result of the newest rollback
    file. ``superseded`` contains the partitions with newer commits by other clients, with the name
    of the rollback file and the offset that ``migrate`` committed. ``recreated_since_commit``
    contains the topics with a different ID than in the newest rollback file; they were recreated if
    the group has no offset. Metadata from another client may
    mean that records beyond the offset were processed; in that case, the start of its consumers is
    unknown. If the leader epoch of an offset is later than the partition's current epoch, the
    offset belongs to an earlier topic with the same name, and Java consumers do not start from this
    offset. For the other arguments, see ``verify_query``.
    """
    committed = group.committed.items()
    starts = {partition: commit.next_offset for partition, commit in committed}
    others = {partition for partition, _ in committed if partition not in written_by_us}
    epochs = {
        partition: commit.leader_epoch
        for partition, commit in committed
        if commit.leader_epoch is not None
    }
    target = _Target(starts, starts, logs, recreated, committed_by_others=others, epochs=epochs)
    marked = set(with_client_metadata(group.committed)) & others
    partitions = tuple(
        replace(partition, outcome=StartOutcome.UNKNOWN)
        if partition.outcome is StartOutcome.OK and partition.topic_partition in marked
        else replace(partition, outcome=StartOutcome.RECREATED)
        if partition.outcome is StartOutcome.MISSING and partition.topic in recreated_since_commit
        else partition
        for partition in target.verify(expected, new_at_earliest)
    )
    moved_on = [row for row in partitions if row.outcome is StartOutcome.MOVED_ON]
    commits = (group.committed[row.topic_partition] for row in moved_on)
    maybe_flink_commits = sum(
        commit.leader_epoch is None and not commit.metadata for commit in commits
    )
    earlier = ((row, (superseded or {}).get(row.topic_partition)) for row in moved_on)
    moved_on_since = Counter(
        commit[0] for row, commit in earlier if commit is not None and _is_at(commit[1], row)
    )
    return Verification(
        f"group:{group.name}",
        partitions,
        maybe_flink_commits=maybe_flink_commits,
        moved_on_since=moved_on_since,
    )


def _is_at(committed: int, row: VerifiedPartition) -> bool:
    """Return whether a partition that has moved on was at its position in an earlier commit.

    If the position is a marker, the log start may have increased since the commit.
    """
    if isinstance(row.expected, int):
        return committed == row.expected
    return row.started is not None and committed <= row.started - row.records


@dataclass(frozen=True, slots=True)
class _Target:
    """A target, and the broker's log ranges for its topics.

    Attributes:
        starts: the offsets at which the target started or will start.
        resumes_at: the next offsets that the target will read, if known.
        logs, recreated: as in ``verify_query``.
        starts_unknown: True if the start of every partition is unknown.
        committed_by_others: the partitions whose last commit is not known to be from ``migrate``.
        epochs: the leader epochs that were committed with a group's offsets.
    """

    starts: Mapping[TopicPartition, int]
    resumes_at: Mapping[TopicPartition, int]
    logs: Logs | None
    recreated: Container[str]
    starts_unknown: bool = False
    committed_by_others: Container[TopicPartition] = ()
    epochs: Mapping[TopicPartition, int] = field(default_factory=dict)

    def verify(self, expected: PositionSet, new_at_earliest: bool) -> tuple[VerifiedPartition, ...]:
        """Check every known partition of the expected topics."""
        new = Marker.EARLIEST if new_at_earliest else Unknown.UNRESOLVED
        topics, logs = expected.topics, self.logs or {}
        known = {*self.starts, *((topic, n) for topic in topics for n in logs.get(topic, ()))}
        starts: dict[TopicPartition, Start] = {
            **{(topic, n): new for topic, n in known if topic in topics},
            **expected.starts,
        }
        partitions = []
        for topic_partition, start in sorted(starts.items(), key=lambda item: item[0]):
            outcome, records = self._outcome(topic_partition, start)
            started = self.starts.get(topic_partition)
            added = topic_partition not in expected.starts
            partitions.append(
                VerifiedPartition(*topic_partition, start, started, outcome, records, added)
            )
        return tuple(partitions)

    def _outcome(
        self, topic_partition: TopicPartition, expected: Start
    ) -> tuple[StartOutcome, int]:
        """Return the outcome of a partition, and the number of affected offsets.

        The outcome is the first one that applies: ``RECREATED``, ``UNKNOWN``, ``GONE``,
        ``MISSING``, ``LOST`` (unless another client may have committed), ``EXPIRED``,
        ``BEYOND_END``, ``SUSPECT``, and then the remaining outcomes.
        """
        if topic_partition[0] in self.recreated:
            return StartOutcome.RECREATED, 0
        if self.starts_unknown:
            return StartOutcome.UNKNOWN, 0
        log = log_of(self.logs or {}, *topic_partition)
        epoch = self.epochs.get(topic_partition)
        present = log.leader_epoch if log is not None else None
        if epoch is not None and present is not None and epoch > present:
            return StartOutcome.RECREATED, 0
        if self.logs is not None and log is None:
            return StartOutcome.GONE, 0
        outcome, records = _compare(expected, self.starts.get(topic_partition), log)
        if outcome is StartOutcome.MISSING:
            return outcome, records
        if outcome is StartOutcome.LOST:
            if topic_partition not in self.committed_by_others:
                return outcome, records
            outcome = StartOutcome.MOVED_ON
        resumes_at = self.resumes_at.get(topic_partition)
        if log is not None and resumes_at is not None:
            if resumes_at < log.start:
                return StartOutcome.EXPIRED, log.start - resumes_at
            if resumes_at > log.end:
                return StartOutcome.BEYOND_END, 0
        offset = expected if outcome is StartOutcome.OK and isinstance(expected, int) else None
        if offset is not None and log is not None and looks_recreated(offset, log):
            return StartOutcome.SUSPECT, 0
        return outcome, records


def _compare(
    expected: Start, started: int | None, log: LogRange | None
) -> tuple[StartOutcome, int]:
    """Compare a start with the expected position; return the outcome and the number of offsets."""
    if started is None:
        return StartOutcome.MISSING, 0
    at_earliest = expected is Marker.EARLIEST
    if at_earliest and started == 0:
        return StartOutcome.OK, 0
    position = resolve(expected, log)
    if position is None:
        return StartOutcome.UNKNOWN, 0
    if started > position:
        return StartOutcome.LOST, started - position
    if started == position or at_earliest:
        return StartOutcome.OK, 0
    return StartOutcome.REPEATED, position - started
