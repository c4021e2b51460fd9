"""The check after a move that the target started where the checkpoint ended. Pure, no I/O.

A Spark query starts at its seed (``spark_progress.starting_positions``), which stays as it was
however far the query has come; a partition that the seed lacks starts at 0 where its log does, and
fails the query where it doesn't. A topic of which the seed has no partition is taken for one that
the query does not read. Once it has run, its log says whether it went on from there, and read all
of it (``verify_log``). Two things are not known any more as it runs on: whether retention took
records at the seed before the first batch read them, once the log start is above it (a query with
``failOnDataLoss=false`` goes on without a warning), and whether it began at the seed, once its log
has lost its first batches (the continuous trigger does not heed a seed). Then the seed was right,
and more is not said.

A consumer group starts at what it has committed, which its consumers overwrite. So:

- committed at the position: ok.
- committed below it: what is between is repeated.
- committed above it: if it is still our own commit, by its metadata, what is between is lost;
  else someone has committed since, and where they started is not known any more ("moved on"):
  consumers that went on where we said and consumers that skipped a part look the same, and so does
  a Flink job that still runs and commits for this group. That is no proof, and so it is not
  "verified": a group is verified before its consumers start.
- nothing committed: missing.

Of a partition still at ``earliest`` in the checkpoint no record was read: its start is right up to
today's log start, as nobody had to read what was below. The same holds for a partition that the
checkpoint does not know, where Flink would start it at the log start.

A right start is of no use where the log has moved away from it. So where a broker was asked, the
offset that the target goes on from must still be in its log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from migrate.model.cluster_snapshot import GroupView, LogRange
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

if TYPE_CHECKING:
    from migrate.planning.state_proof import StateProof


class StartOutcome(str, Enum):
    """How a target started in one topic-partition."""

    OK = "ok"
    LOST = "lost"  # it started above the position
    REPEATED = "repeated"  # it started below the position
    MISSING = "missing"  # it has no start
    EXPIRED = "expired"  # it goes on below the log start: those records are gone
    BEYOND_END = "beyond end"  # it goes on beyond the log end: another log, or another cluster
    RECREATED = "topic recreated"  # since the plan was made: the offsets are of another log
    GONE = "gone"  # the broker has no such topic or partition
    MOVED_ON = "moved on"  # a group that others have committed for since, above the position
    UNKNOWN = "cannot tell"  # the checkpoint has no offset for it, or only a broker knows it


@dataclass(frozen=True, slots=True)
class VerifiedPartition(PartitionRow):
    """How a target started in one topic-partition.

    Attributes:
        started: where the target started or, where it has not run yet, will start.
        records: how many are lost or repeated, have expired, or by how many it has moved on, at
            most: transaction markers and compaction leave gaps. 0 for every other outcome.
    """

    expected: Start
    started: int | None
    outcome: StartOutcome
    records: int = 0


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """A plan beside what it was made from, read again.

    Attributes:
        differences: what the plan says otherwise, a line each.
        not_compared: why what it was made from cannot be read; empty where it was.
        elsewhere: how many partitions the plan starts at no position of the checkpoint: markers
            that were resolved, new partitions, and what the user's options decided.
    """

    differences: tuple[str, ...] = ()
    not_compared: str = ""
    elsewhere: int = 0


@dataclass(frozen=True, slots=True)
class QueryStart:
    """Where a Spark query started, as far as its checkpoint location tells.

    Attributes:
        started: its seeds.
        goes_on: where it goes on when it is started next; None where that need not be looked at.
        has_run: whether a query has begun a batch there.
        continuous: whether the first of them was an epoch of the continuous trigger, which does not
            heed a seed, and does not record where it started.
    """

    started: PositionSet
    goes_on: PositionSet | None = None
    has_run: bool = False
    continuous: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome of a move, sorted by topic and partition number.

    Attributes:
        target: the target as the user named it.
        has_run: whether a query has run there; a group's consumers do not show.
        continuous: as for ``QueryStart``: then no start is known.
        like_flinks: how many of those that have moved on were committed as Flink's Kafka sources do
            it: with neither metadata nor a leader epoch (KafkaSourceReader and KafkaFetcher @
            connectors 1.15.4 to 5.0.0). Consumers that commit by themselves give an epoch; programs
            may leave it out.
        state: a keyed state compared with the query's; None where that was not asked for.
        plan: a plan compared with what it was made from; None where no plan is verified.
        passed_by_log_start: of a query that has run, the partitions whose log start is above where
            it started: whether it read their first records before they went is not known.
        first_batches_gone: whether a query's log lacks its first batches, so that it does not show
            that it went on from its seed.
    """

    target: str
    partitions: tuple[VerifiedPartition, ...]
    has_run: bool = False
    continuous: bool = False
    like_flinks: int = 0
    state: StateProof | None = None
    plan: PlanCheck | None = None
    passed_by_log_start: tuple[TopicPartition, ...] = ()
    first_batches_gone: bool = False

    @property
    def verified(self) -> bool:
        """Whether every partition started where it should, and there is one.

        Of a query that has run, this is about its seed: see ``passed_by_log_start``.
        """
        return self._all(StartOutcome.OK) and not self.first_batches_gone

    @property
    def verified_or_moved_on(self) -> bool:
        """Whether every partition has started where it should, or has moved on since."""
        return self._all(StartOutcome.OK, StartOutcome.MOVED_ON)

    def _all(self, *outcomes: StartOutcome) -> bool:
        if self.state is not None and not self.state.is_right:
            return False
        if self.plan is not None and self.plan.differences:
            return False
        return bool(self.partitions) and all(
            partition.outcome in outcomes for partition in self.partitions
        )

    @property
    def counts(self) -> dict[StartOutcome, int]:
        """How many partitions have each outcome, without those that none has."""
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
    """Check where a Spark query started, or will.

    Args:
        expected: where the checkpoint ended, or what a plan made of it.
        query: where the query started.
        logs: the log ranges of what the broker has; None without a broker.
        new_at_earliest: whether a partition that ``expected`` does not know, of a topic that it
            does, is to start at the log start.
        recreated: the topics that were deleted and created again since the plan was made.
    """
    starts: dict[TopicPartition, int] = {}
    if not query.continuous:
        starts = {
            (topic, partition): 0
            for topic in expected.topics & query.started.topics
            for partition, log in (logs or {}).get(topic, {}).items()
            if log.start == 0
        }
        starts |= query.started.next_offsets
    goes_on = query.goes_on.next_offsets if query.goes_on is not None else {}
    target = _Target(starts, goes_on, logs, recreated, unknown=query.continuous)
    partitions = target.verify(expected, new_at_earliest)
    passed = [
        partition.topic_partition
        for partition in partitions
        if query.has_run
        and partition.outcome is StartOutcome.OK
        and partition.started is not None
        and (log := log_of(logs or {}, partition.topic, partition.partition)) is not None
        and log.start > partition.started
    ]
    return Verification(
        query.started.label,
        partitions,
        query.has_run,
        query.continuous,
        passed_by_log_start=tuple(passed),
    )


def verify_log(
    verification: Verification,
    seeds: Mapping[str, Mapping[TopicPartition, int]],
    batches: Sequence[tuple[int, Mapping[str, Mapping[TopicPartition, int]]]],
) -> Verification:
    """Check what a Spark query has done since it started, by its log.

    A batch begins where the one before it ended, and the first at the seed of its source. So each
    batch must hold what its source was seeded with (else the query does not read it: missing), and
    none may end before it begins (else what is between is read again).

    Args:
        verification: what ``verify_query`` has said of its start.
        seeds: by source.
        batches: where each batch that is logged ended, by source; oldest first.
    """
    worse: dict[TopicPartition, tuple[StartOutcome, int]] = {}
    for source, offsets in seeds.items():
        for place, begins in offsets.items():
            for _, ends in batches:
                end = ends.get(source, {}).get(place)
                if end is None:
                    worse[place] = StartOutcome.MISSING, 0
                    break
                if end < begins:
                    _, before = worse.get(place, (None, 0))
                    worse[place] = StartOutcome.REPEATED, before + begins - end
                begins = end
    partitions = []
    for partition in verification.partitions:
        if partition.outcome is StartOutcome.OK and partition.topic_partition in worse:
            outcome, records = worse[partition.topic_partition]
            partition = replace(partition, outcome=outcome, records=records)
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
    metadata_prefix: str,
    recreated: Container[str] = (),
) -> Verification:
    """Check where a consumer group goes on.

    The metadata of our own commits begins with ``metadata_prefix``. For the rest see
    ``verify_query``.
    """
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    others = {
        place
        for place, committed in group.committed.items()
        if not committed.metadata.startswith(metadata_prefix)
    }
    target = _Target(starts, starts, logs, recreated, committed_by_others=others)
    partitions = target.verify(expected, new_at_earliest)
    moved_on = (
        group.committed[partition.topic_partition]
        for partition in partitions
        if partition.outcome is StartOutcome.MOVED_ON
    )
    like_flinks = sum(commit.leader_epoch is None and not commit.metadata for commit in moved_on)
    return Verification(f"group:{group.name}", partitions, like_flinks=like_flinks)


@dataclass(frozen=True, slots=True)
class _Target:
    """A target, and what the broker has of its topics.

    Attributes:
        starts: where it started, or will.
        goes_on: where it reads next, as far as that is to be checked.
        logs, recreated: as for ``verify_query``.
        unknown: whether nothing says where it started.
        committed_by_others: the partitions that others than us have committed last.
    """

    starts: Mapping[TopicPartition, int]
    goes_on: Mapping[TopicPartition, int]
    logs: Logs | None
    recreated: Container[str]
    unknown: bool = False
    committed_by_others: Container[TopicPartition] = ()

    def verify(self, expected: PositionSet, new_at_earliest: bool) -> tuple[VerifiedPartition, ...]:
        """Check each partition that any side knows, of the expected topics."""
        new = Marker.EARLIEST if new_at_earliest else Unknown.UNRESOLVED
        topics = expected.topics
        starts: dict[TopicPartition, Start] = {
            **{place: new for place in self.starts if place[0] in topics},
            **{(topic, n): new for topic in topics for n in (self.logs or {}).get(topic, ())},
            **expected.starts,
        }
        partitions = []
        for place, start in sorted(starts.items(), key=lambda item: item[0]):
            outcome, records = self._outcome(place, start)
            started = self.starts.get(place)
            partitions.append(VerifiedPartition(*place, start, started, outcome, records))
        return tuple(partitions)

    def _outcome(self, place: TopicPartition, expected: Start) -> tuple[StartOutcome, int]:
        """Return the outcome of a partition, and its records.

        What the log says goes before what the start says, unless records are lost already.
        """
        if place[0] in self.recreated:
            return StartOutcome.RECREATED, 0
        if self.unknown:
            return StartOutcome.UNKNOWN, 0
        log = log_of(self.logs or {}, *place)
        outcome, records = _compare(expected, self.starts.get(place), log)
        if outcome is StartOutcome.MISSING:
            return outcome, records
        if self.logs is not None and log is None:
            return StartOutcome.GONE, 0
        if outcome is StartOutcome.LOST:
            if place not in self.committed_by_others:
                return outcome, records
            outcome = StartOutcome.MOVED_ON
        goes_on = self.goes_on.get(place)
        if log is not None and goes_on is not None:
            if goes_on < log.start:
                return StartOutcome.EXPIRED, log.start - goes_on
            if goes_on > log.end:
                return StartOutcome.BEYOND_END, 0
        return outcome, records


def _compare(
    expected: Start, started: int | None, log: LogRange | None
) -> tuple[StartOutcome, int]:
    """Return how a start compares with the position, and how many records are between them."""
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
