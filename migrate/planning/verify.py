"""After a move: did the target start where the checkpoint ended? Pure, no I/O.

A Spark query starts at its seed (``spark_progress.starting_positions``), which stays as it was
however far the query has come; a partition that the seed lacks starts at 0 where its log does, and
fails the query where it doesn't. A topic of which the seed has no partition is taken for one that
the query does not read. Once it has run, its log says whether it went on from there, and read all
of it (``verify_log``). Two things cannot be told any more as it runs on: whether retention took
records at the seed before the first batch read them, once the log start lies above it (a query
with ``failOnDataLoss=false`` goes on without a word), and whether it began at the seed, once its
log has lost its first batches (the continuous trigger does not heed a seed). Then the seed was
right, and more is not said.

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

A right start is of no use where the log has moved away from it. So where a broker was asked, the
offset that the target goes on from must still be one of its log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from migrate.model.cluster_snapshot import GroupView, LogRange
from migrate.model.positions import (
    Logs,
    Marker,
    PositionSet,
    Start,
    TopicPartition,
    Unknown,
    log_of,
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
class VerifiedPartition:
    """One topic-partition.

    ``started`` is where the target started or, where it has not run yet, will start.
    ``records`` is how many are lost or repeated, have expired, or by how many it has moved on, at
    most: transaction markers and compaction leave gaps. It is 0 for every other outcome.
    """

    topic: str
    partition: int
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
            heed a seed, and leaves no word of where it started.
    """

    started: PositionSet
    goes_on: PositionSet | None = None
    has_run: bool = False
    continuous: bool = False


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a move, sorted by topic and partition number.

    Attributes:
        target: as it was named.
        has_run: whether a query has run there; a group's consumers do not show.
        continuous: as for ``QueryStart``: then no start can be told.
        like_flinks: how many of those that have moved on were committed as Flink's Kafka sources do
            it: with neither metadata nor a leader epoch (KafkaSourceReader and KafkaFetcher @
            connectors 1.15.4 to 5.0.0). Consumers that commit by themselves give an epoch; programs
            may leave it out.
        state: a keyed state beside what the query holds; None where none was asked for.
        plan: a plan beside what it was made from; None where no plan is verified.
        passed_by_log_start: of a query that has run, the partitions whose log start lies above
            where it started: whether it read their first records before they went is not known.
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
        """Whether it started where it should everywhere, and there is something that was moved.

        Of a query that has run, this is about its seed: see ``passed_by_log_start``.
        """
        return self._all(StartOutcome.OK) and not self.first_batches_gone

    @property
    def verified_or_moved_on(self) -> bool:
        """Whether nothing worse is known of any partition than that the target has moved on."""
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
        """How many partitions came out how; those that none did are left out."""
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
    goes_on: dict[TopicPartition, int] = {}
    if not query.continuous:
        starts = {
            (topic, partition): 0
            for topic in expected.topics & query.started.topics
            for partition, log in (logs or {}).get(topic, {}).items()
            if log.start == 0
        }
        starts |= query.started.next_offsets
    if query.goes_on is not None:
        goes_on = query.goes_on.next_offsets
    target = _Target(starts, goes_on, unknown=query.continuous)
    partitions = _verified(expected, target, logs, new_at_earliest, recreated)
    return Verification(
        query.started.label,
        partitions,
        query.has_run,
        query.continuous,
        passed_by_log_start=_passed_by_log_start(partitions, logs or {}) if query.has_run else (),
    )


def _passed_by_log_start(
    partitions: Sequence[VerifiedPartition], logs: Logs
) -> tuple[TopicPartition, ...]:
    """Return the partitions that started right, below what is now the log start."""
    return tuple(
        (partition.topic, partition.partition)
        for partition in partitions
        if partition.outcome is StartOutcome.OK
        and partition.started is not None
        and (log := log_of(logs, partition.topic, partition.partition)) is not None
        and log.start > partition.started
    )


def verify_log(
    found: Verification,
    seeds: Mapping[str, Mapping[TopicPartition, int]],
    batches: Sequence[tuple[int, Mapping[str, Mapping[TopicPartition, int]]]],
) -> Verification:
    """Check what a Spark query has done since it started, by its log.

    A batch begins where the one before it ended, and the first at the seed of its source. So what a
    source was seeded with must be in each batch of that source (else the query does not read it:
    missing), and none may end before it begins (else what lies between is read again).

    Args:
        found: what ``verify_query`` has said of its start.
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
                    before = worse.get(place, (StartOutcome.REPEATED, 0))[1]
                    worse[place] = StartOutcome.REPEATED, before + begins - end
                begins = end
    partitions = []
    for one in found.partitions:
        told = worse.get((one.topic, one.partition))
        if told is not None and one.outcome is StartOutcome.OK:
            one = replace(one, outcome=told[0], records=told[1])
        partitions.append(one)
    return replace(
        found,
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
    """Check what a consumer group goes on from.

    Args:
        expected: as for `verify_query`, and so the rest.
        group: the group now.
        metadata_prefix: how the metadata of our own commits begins.
    """
    starts = {place: committed.next_offset for place, committed in group.committed.items()}
    others = {
        place
        for place, committed in group.committed.items()
        if not committed.metadata.startswith(metadata_prefix)
    }
    target = _Target(starts, starts, moved_on_by=others)
    partitions = _verified(expected, target, logs, new_at_earliest, recreated)
    moved_on = [
        group.committed[found.topic, found.partition]
        for found in partitions
        if found.outcome is StartOutcome.MOVED_ON
    ]
    like_flinks = sum(held.leader_epoch is None and not held.metadata for held in moved_on)
    return Verification(f"group:{group.name}", partitions, like_flinks=like_flinks)


@dataclass(frozen=True, slots=True)
class _Target:
    """What is known of a target.

    Attributes:
        starts: where it started, or will.
        goes_on: where it reads next, as far as that is to be looked at.
        unknown: whether nothing tells where it started.
        moved_on_by: the partitions that others than us have committed last.
    """

    starts: Mapping[TopicPartition, int]
    goes_on: Mapping[TopicPartition, int]
    unknown: bool = False
    moved_on_by: Container[TopicPartition] = ()


def _verified(
    expected: PositionSet,
    target: _Target,
    logs: Logs | None,
    new_at_earliest: bool,
    recreated: Container[str],
) -> tuple[VerifiedPartition, ...]:
    new = Marker.EARLIEST if new_at_earliest else Unknown.UNRESOLVED
    everything = {
        **dict.fromkeys(_partitions_of(expected.topics, target.starts, logs or {}), new),
        **expected.starts,
    }
    found = []
    for place, start in sorted(everything.items(), key=lambda item: item[0]):
        outcome, records = _outcome(place, start, target, logs, recreated)
        found.append(VerifiedPartition(*place, start, target.starts.get(place), outcome, records))
    return tuple(found)


def _partitions_of(
    topics: frozenset[str], starts: Mapping[TopicPartition, int], logs: Logs
) -> Iterator[TopicPartition]:
    """What the target and the broker know of these topics."""
    yield from (place for place in starts if place[0] in topics)
    for topic in topics:
        yield from ((topic, partition) for partition in logs.get(topic, ()))


def _outcome(
    place: TopicPartition,
    expected: Start,
    target: _Target,
    logs: Logs | None,
    recreated: Container[str],
) -> tuple[StartOutcome, int]:
    """What the log says goes before what the start says, unless records are lost already."""
    if place[0] in recreated:
        return StartOutcome.RECREATED, 0
    if target.unknown:
        return StartOutcome.UNKNOWN, 0
    log = log_of(logs or {}, *place)
    started = target.starts.get(place)
    outcome, records = _compare(expected, started, log)
    if outcome is StartOutcome.MISSING:
        return outcome, records
    if logs is not None and log is None:
        return StartOutcome.GONE, 0
    moved_on = outcome is StartOutcome.LOST and place in target.moved_on_by
    if outcome is StartOutcome.LOST and not moved_on:
        return outcome, records
    goes_on = target.goes_on.get(place)
    if log is not None and goes_on is not None:
        if goes_on < log.start:
            return StartOutcome.EXPIRED, log.start - goes_on
        if goes_on > log.end:
            return StartOutcome.BEYOND_END, 0
    return (StartOutcome.MOVED_ON if moved_on else outcome), records


def _compare(
    expected: Start, started: int | None, log: LogRange | None
) -> tuple[StartOutcome, int]:
    if started is None:
        return StartOutcome.MISSING, 0
    if isinstance(expected, int):
        if started > expected:
            return StartOutcome.LOST, started - expected
        if started < expected:
            return StartOutcome.REPEATED, expected - started
        return StartOutcome.OK, 0
    if expected is Marker.EARLIEST:
        if started == 0:
            return StartOutcome.OK, 0
        if log is not None:
            lost = started - log.start
            return (StartOutcome.LOST, lost) if lost > 0 else (StartOutcome.OK, 0)
    return StartOutcome.UNKNOWN, 0
