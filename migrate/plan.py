"""Positions and what a broker said -> a Plan: pure, no I/O.

A plan names, per topic-partition, the next offset a target is to start from and a verdict. What
would lose or repeat records is not clipped but refused, each with the way out and, where there is
one, the flag that allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from typing_extensions import assert_never

from migrate.extract import Extraction, Finding, Severity, Source
from migrate.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    Unresolved,
)
from migrate.positions import Marker, Position, PositionState
from migrate.snapshot import ClusterSnapshot, LogRange

# Findings about the job as a whole: they stand in the way whichever source is chosen.
_JOB_WIDE_BLOCKERS = frozenset({"in-flight-records", "ran-on"})
# Findings told again, partition by partition, by the plan itself.
_TOLD_BY_PARTITION = frozenset({"unresolved-positions", "latest-marker", "committed-marker"})

# A recreated topic that has grown past a position holds other records there. It is suspected where
# the first record since the checkpoint's time lies below the position by at least this part of the
# log before it: timestamps are the producers' and need not rise with the offsets.
_SUSPECT_PART = 0.5

REFUSED_BY_DEFAULT: Policies = Policies()


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
        lost, repeated: upper bounds of the records that going on from ``next_offset`` (or, where
            there is a problem, from where the refused way would have gone on) skips or reads again;
            None where nobody can tell.
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
    def next_offsets(self) -> dict[tuple[str, int], int]:
        """What is to be written: the next offset of each topic-partition that has one."""
        return {
            (planned.topic, planned.partition): planned.next_offset
            for planned in self.partitions
            if planned.next_offset is not None
        }


def make_plan(
    extraction: Extraction,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies = REFUSED_BY_DEFAULT,
    *,
    named: bool = False,
) -> Plan:
    """Plan the move of the chosen sources.

    Args:
        extraction: the whole checkpoint: what is in flight anywhere stands in the way.
        chosen: the sources to move, some or all of the extraction's.
        named: whether the user chose them by name: then a source that is not read is left out
            knowingly.
        snapshot: what the broker said of their topics (``topics_to_ask``), or None without one.
        policies: what the user allows.
    """
    findings = _concerning(extraction, chosen, named)
    refusals = list(_blocked_by_findings(findings, policies))
    moved = [_as_the_target_names_it(source, policies) for source in chosen]
    clusters_mixed_up = list(_clusters_mixed_up(moved))
    refusals += clusters_mixed_up
    if policies.merge_sources is MergeSources.FAIL and not clusters_mixed_up:
        refusals += _disagreements(moved)
    refusals += _groups_mixed_up(moved, snapshot)
    refusals += _names_collide(chosen, policies)
    partitions: list[PlannedPartition] = []
    if not refusals:
        partitions = _plan_partitions(moved, snapshot, policies)
        refusals += [_refuse(planned) for planned in partitions if planned.problem]
        if snapshot is not None and not policies.allow_ran_on:
            refusals += _group_ran_on(partitions, snapshot)
    return Plan(
        tuple(partitions),
        tuple(refusals),
        tuple(_warnings(findings, snapshot, partitions, policies)),
    )


def topics_to_ask(chosen: Iterable[Source], policies: Policies) -> set[str]:
    """The topics a snapshot must hold, as the target names them."""
    moved = (_as_the_target_names_it(source, policies) for source in chosen)
    return {topic for source in moved for topic in source.topics}


def _as_the_target_names_it(source: Source, policies: Policies) -> Source:
    """The source with the positions that are to move, its topics under their names of today."""
    kept = policies.partitions
    return replace(
        source,
        positions=tuple(
            replace(position, topic=policies.topic_map.get(position.topic, position.topic))
            for position in source.positions
            if kept is None or position.partition in kept.get(position.topic, frozenset())
        ),
    )


# -- what stands in the way of the whole ---------------------------------------------------------


def _concerning(extraction: Extraction, chosen: Sequence[Source], named: bool) -> list[Finding]:
    """The findings that bear on moving the chosen sources, but for those told by partition.

    What is about another operator bears on it too, unless the user chose these by name and it is
    not about the job as a whole.
    """
    ids = {source.operator_id for source in chosen}
    return [
        finding
        for finding in extraction.findings
        if finding.code not in _TOLD_BY_PARTITION
        and (
            not named
            or finding.operator_id is None
            or finding.operator_id in ids
            or finding.code in _JOB_WIDE_BLOCKERS
        )
    ]


def _blocked_by_findings(findings: Iterable[Finding], policies: Policies) -> Iterator[Refusal]:
    for finding in findings:
        if finding.severity is not Severity.BLOCKER:
            continue
        match finding.code:
            case "ran-on":
                if policies.allow_ran_on:
                    continue
                way_out = "move from the newest one, or add --allow-ran-on to repeat them"
            case "in-flight-records":
                if policies.allow_in_flight:
                    continue
                way_out = "or add --allow-in-flight to lose them"
            case _:
                way_out = "if it is not to be moved, choose the others with --source"
        yield Refusal(_where(finding) + finding.message, way_out)


def _where(finding: Finding) -> str:
    return f"operator {finding.operator_id}: " if finding.operator_id is not None else ""


def _clusters_mixed_up(chosen: Sequence[Source]) -> Iterator[Refusal]:
    """A target takes one cluster, and one topic-partition of two clusters is two positions."""
    clusters = {cluster for source in chosen for cluster in source.clusters}
    named = sorted(cluster for cluster in clusters if cluster is not None)
    if len(named) > 1:
        yield Refusal(
            f"there are positions of {len(named)} Kafka clusters: {', '.join(map(repr, named))}",
            "a target takes one: choose it with --cluster ID",
        )
    if named and None in clusters:
        unnamed = [source.operator_id for source in chosen if None in source.clusters]
        yield Refusal(
            f"the state of some sources does not name their Kafka cluster (operators "
            f"{', '.join(unnamed)}): it may not be {' or '.join(map(repr, named))}, which the "
            "others read",
            "move them one by one with --source",
        )


def _disagreements(chosen: Sequence[Source]) -> Iterator[Refusal]:
    """Sources that read one topic must agree on all of it: positions are per operator."""
    for topic, sources in sorted(_readers(chosen).items()):
        if len(sources) == 1:
            continue
        views = [
            {p.partition: (p.state, p.start) for p in source.positions if p.topic == topic}
            for source in sources
        ]
        differing = sorted(
            partition
            for partition in set().union(*views)
            if any(view.get(partition) != views[0].get(partition) for view in views)
        )
        if differing:
            names = ", ".join(source.operator_id for source in sources)
            shown = [view.get(differing[0], (None, None))[1] for view in views]
            starts = " and ".join(_show_start(start) for start in shown)
            yield Refusal(
                f"{len(sources)} sources read topic {topic} and disagree on {len(differing)} of "
                f"its partitions (operators {names}; {topic}-{differing[0]}: {starts})",
                "choose one with --source OPERATOR_ID, or take the lower with --merge-sources min",
            )


def _readers(chosen: Iterable[Source]) -> dict[str, list[Source]]:
    """The sources that read each topic."""
    readers: dict[str, list[Source]] = {}
    for source in chosen:
        for topic in source.topics:
            readers.setdefault(topic, []).append(source)
    return readers


def _names_collide(chosen: Iterable[Source], policies: Policies) -> Iterator[Refusal]:
    """A topic of the checkpoint must not be renamed to another one of it that moves too."""
    topics = {topic for source in chosen for topic in source.topics}
    for old, new in sorted(policies.topic_map.items()):
        if old in topics and new in topics and new not in policies.topic_map:
            yield Refusal(
                f"--topic-map {old}={new}: {new} is a topic of the checkpoint itself",
                "rename that one too, or leave it out with --partitions",
            )


def _groups_mixed_up(
    chosen: Iterable[Source], snapshot: ClusterSnapshot | None
) -> Iterator[Refusal]:
    """Each source has a consumer group of its own: one cannot stand for two."""
    if snapshot is None or snapshot.source_group is None:
        return
    marked = [
        source.operator_id
        for source in chosen
        if any(position.start is Marker.COMMITTED for position in source.positions)
    ]
    if len(marked) > 1:
        yield Refusal(
            f"{len(marked)} sources are still at the 'committed' marker (operators "
            f"{', '.join(marked)}), and --source-group names the group of one",
            "move them one by one with --source",
        )


def _show_start(start: int | Marker | None) -> str:
    match start:
        case int():
            return str(start)
        case Marker():
            return start.value
        case None:
            return "none"
        case _:
            assert_never(start)


def _group_ran_on(
    partitions: Iterable[PlannedPartition], snapshot: ClusterSnapshot
) -> Iterator[Refusal]:
    """Flink's group commits with each completed checkpoint: one beyond a position proves more."""
    beyond = [
        planned
        for planned in partitions
        if planned.next_offset is not None
        and planned.verdict is not Verdict.UNRESOLVED  # the user chose, knowing what it costs
        and (_flink_committed(planned.topic, planned.partition, snapshot) or 0)
        > planned.next_offset
    ]
    if beyond:
        first = beyond[0]
        committed = _flink_committed(first.topic, first.partition, snapshot)
        yield Refusal(
            f"the job ran on after this checkpoint: Flink's group has committed beyond "
            f"{len(beyond)} partitions (the first is {first.topic}-{first.partition}: committed "
            f"{committed}, to go on from {first.next_offset}), so what Flink emitted since would "
            "be emitted again",
            "move from a newer checkpoint, or add --allow-ran-on to repeat them",
        )


def _flink_committed(topic: str, partition: int, snapshot: ClusterSnapshot) -> int | None:
    group = snapshot.source_group
    return group.next_offset(topic, partition) if group is not None else None


# -- partition by partition ----------------------------------------------------------------------


def _plan_partitions(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> list[PlannedPartition]:
    positions = _merged(chosen)
    planned = [
        replace(_plan_position(position, snapshot, policies), operator_id=operator_id)
        for operator_id, position in positions.values()
    ]
    if snapshot is not None:
        planned += _new_partitions(chosen, positions, snapshot, policies)
        planned = [_with_current(partition, snapshot) for partition in planned]
    return sorted(planned, key=lambda partition: (partition.topic, partition.partition))


def _merged(chosen: Sequence[Source]) -> dict[tuple[str, int], tuple[str, Position]]:
    """The position of each topic-partition and its source; the lowest where there are several."""
    merged: dict[tuple[str, int], tuple[str, Position]] = {}
    for source in chosen:
        for position in source.positions:
            place = position.topic_partition
            if place not in merged or _height(position) < _height(merged[place][1]):
                merged[place] = (source.operator_id, position)
    return merged


def _height(position: Position) -> int:
    """Where a position lies among those of one partition; what cannot be told goes first, so that
    it is not covered up by one that can."""
    match position.start:
        case int(next_offset):
            return next_offset
        case Marker.EARLIEST:
            return -1
        case _:
            return -2


def _plan_position(
    position: Position, snapshot: ClusterSnapshot | None, policies: Policies
) -> PlannedPartition:
    if snapshot is None:
        return _plan_without_broker(position)
    if position.topic not in snapshot.topics:
        return _gone(position, Verdict.TOPIC_GONE, policies)
    log = snapshot.topics[position.topic].get(position.partition)
    if log is None:
        return _gone(position, Verdict.PARTITION_GONE, policies)
    match position.start:
        case int(next_offset):
            finished = position.state is PositionState.FINISHED
            verdict = Verdict.FINISHED if finished else Verdict.OK
            return _in_range(position, next_offset, verdict, log, policies)
        case Marker.EARLIEST:
            return _in_range(position, log.start, Verdict.MARKER_RESOLVED, log, policies)
        case Marker.COMMITTED:
            committed = _flink_committed(position.topic, position.partition, snapshot)
            if committed is not None:
                return _in_range(position, committed, Verdict.MARKER_RESOLVED, log, policies)
            group = snapshot.source_group
            problem = "it has read no record and is still at the 'committed' marker" + (
                f", and group {group.name!r} has committed nothing for it"
                if group is not None
                else ": only Flink's own consumer group knows its start"
            )
        case Marker.LATEST:
            problem = (
                "it has read no record and is still at the 'latest' marker: today's log end "
                "would skip what came since the job started"
            )
        case None:
            problem = position.reason
        case _:
            assert_never(position.start)
    return _unresolved(position, log, problem, snapshot, policies)


def _plan_without_broker(position: Position) -> PlannedPartition:
    if isinstance(position.start, int):
        finished = position.state is PositionState.FINISHED
        verdict = Verdict.FINISHED if finished else Verdict.OK
        return PlannedPartition(
            position.topic, position.partition, verdict, position.start, position, None
        )
    problem = (
        f"it has read no record and is still at the '{position.start.value}' marker, which only a "
        "broker can resolve"
        if position.start is not None
        else position.reason
    )
    return _problem(position, Verdict.UNRESOLVED, problem, None, lost=None, repeated=None)


def _unresolved(
    position: Position, log: LogRange, problem: str, snapshot: ClusterSnapshot, policies: Policies
) -> PlannedPartition:
    """A position that only the user can decide on."""
    chosen: int | None
    match policies.unresolved:
        case Unresolved.FAIL:
            chosen = None
        case Unresolved.EARLIEST:
            chosen = log.start
        case Unresolved.LATEST:
            chosen = log.end
        case Unresolved.TIMESTAMP:
            chosen = log.first_at
        case Unresolved.COMMITTED:
            chosen = _flink_committed(position.topic, position.partition, snapshot)
            if chosen is None:
                problem += ", and --unresolved committed finds nothing committed by --source-group"
        case _:
            assert_never(policies.unresolved)
    if chosen is None:
        return _problem(position, Verdict.UNRESOLVED, problem, log, lost=None, repeated=None)
    planned = _in_range(position, chosen, Verdict.UNRESOLVED, log, policies)
    if planned.problem:
        return planned
    # Where it really stood is not known: anywhere in the log.
    return replace(planned, lost=chosen - log.start, repeated=log.end - chosen)


def _in_range(
    position: Position, next_offset: int, verdict: Verdict, log: LogRange, policies: Policies
) -> PlannedPartition:
    if next_offset < log.start:
        lost = log.start - next_offset
        if policies.on_expired is OnExpired.EARLIEST:
            return PlannedPartition(
                position.topic,
                position.partition,
                Verdict.EXPIRED,
                log.start,
                position,
                log,
                lost=lost,
            )
        problem = (
            f"its next offset {next_offset} lies below the log start {log.start}: "
            f"up to {lost} records are already gone"
        )
        return _problem(position, Verdict.EXPIRED, problem, log, lost=lost)
    if next_offset > log.end:
        # The records of a recreated topic are new to everyone: going on from its end skips them.
        lost = log.end - log.start
        if policies.on_beyond_end is OnBeyondEnd.LATEST:
            return PlannedPartition(
                position.topic,
                position.partition,
                Verdict.BEYOND_END,
                log.end,
                position,
                log,
                lost=lost,
            )
        problem = (
            f"its next offset {next_offset} lies beyond the log end {log.end}: the topic was "
            "recreated, or this is another cluster"
        )
        return _problem(position, Verdict.BEYOND_END, problem, log, lost=lost)
    if _looks_recreated(position, next_offset, log):
        verdict = Verdict.SUSPECT
    return PlannedPartition(position.topic, position.partition, verdict, next_offset, position, log)


def _looks_recreated(position: Position, next_offset: int, log: LogRange) -> bool:
    if log.first_since is None or position.next_offset != next_offset:
        return False
    below = next_offset - log.first_since
    return below > 0 and below >= (next_offset - log.start) * _SUSPECT_PART


def _new_partitions(
    chosen: Sequence[Source],
    known: Mapping[tuple[str, int], object],
    snapshot: ClusterSnapshot,
    policies: Policies,
) -> Iterator[PlannedPartition]:
    """Partitions on the broker that no chosen source knows."""
    wanted = _wanted_partitions(policies)
    for topic, readers in _readers(chosen).items():
        as_flink = all(source.initial_discovery_finished for source in readers)
        for partition, log in snapshot.topics.get(topic, {}).items():
            if (topic, partition) in known:
                continue
            if wanted is not None and partition not in wanted.get(topic, frozenset()):
                continue
            yield _new_partition(topic, partition, log, as_flink, policies)


def _wanted_partitions(policies: Policies) -> dict[str, frozenset[int]] | None:
    """``Policies.partitions`` under the target's names."""
    if policies.partitions is None:
        return None
    return {
        policies.topic_map.get(topic, topic): partitions
        for topic, partitions in policies.partitions.items()
    }


def _new_partition(
    topic: str, partition: int, log: LogRange, as_flink: bool, policies: Policies
) -> PlannedPartition:
    held = log.end - log.start

    def planned(next_offset: int, lost: int, repeated: int) -> PlannedPartition:
        return PlannedPartition(
            topic,
            partition,
            Verdict.NEW_PARTITION,
            next_offset,
            None,
            log,
            lost=lost,
            repeated=repeated,
        )

    match policies.new_partitions:
        case NewPartitions.AS_FLINK if as_flink:
            return planned(log.start, 0, 0)
        case NewPartitions.EARLIEST:
            # Where Flink's first discovery had not finished, it may have read it since.
            return planned(log.start, 0, 0 if as_flink else held)
        case NewPartitions.LATEST:
            return planned(log.end, held, 0)
        case NewPartitions.AS_FLINK:
            verdict = Verdict.UNRESOLVED
            problem = (
                "it is not in the checkpoint, and where Flink would start it is the job's "
                "starting policy, which is not in the state"
            )
        case NewPartitions.FAIL:
            verdict = Verdict.NEW_PARTITION
            problem = "it is not in the checkpoint"
        case _:
            assert_never(policies.new_partitions)
    return PlannedPartition(
        topic, partition, verdict, None, None, log, lost=None, repeated=None, problem=problem
    )


def _gone(position: Position, verdict: Verdict, policies: Policies) -> PlannedPartition:
    if policies.gone is Gone.SKIP:
        return PlannedPartition(
            position.topic, position.partition, verdict, None, position, None, lost=None
        )
    what = "topic" if verdict is Verdict.TOPIC_GONE else "partition"
    return _problem(position, verdict, f"the broker has no such {what}", None, lost=None)


def _problem(
    position: Position,
    verdict: Verdict,
    problem: str,
    log: LogRange | None,
    *,
    lost: int | None,
    repeated: int | None = 0,
) -> PlannedPartition:
    return PlannedPartition(
        position.topic,
        position.partition,
        verdict,
        None,
        position,
        log,
        lost=lost,
        repeated=repeated,
        problem=problem,
    )


def _with_current(planned: PlannedPartition, snapshot: ClusterSnapshot) -> PlannedPartition:
    if snapshot.target_group is None:
        return planned
    current = snapshot.target_group.next_offset(planned.topic, planned.partition)
    return replace(planned, current=current)


# -- ways out and warnings -----------------------------------------------------------------------


def _refuse(planned: PlannedPartition) -> Refusal:
    what = f"{planned.topic}-{planned.partition} is {planned.verdict.value}: {planned.problem}"
    return Refusal(what, _way_out(planned))


def _way_out(planned: PlannedPartition) -> str:
    match planned.verdict:
        case Verdict.EXPIRED:
            return "move from a newer checkpoint, or go on after the gap with --on-expired earliest"
        case Verdict.BEYOND_END:
            return (
                "name the brokers that the job read from with --bootstrap-servers, or skip to the "
                "end with --on-beyond-end latest"
            )
        case Verdict.TOPIC_GONE | Verdict.PARTITION_GONE:
            return (
                "name the brokers that the job read from with --bootstrap-servers, or leave it out "
                "with --gone skip"
            )
        case Verdict.NEW_PARTITION:
            return "choose with --new-partitions earliest or latest"
        case _:
            pass
    if planned.position is None:
        return "choose with --new-partitions earliest or latest"
    choose = "choose with --unresolved earliest|latest|committed|timestamp:T"
    asked = planned.log is not None
    match planned.position.start:
        case Marker.EARLIEST:
            return "add --bootstrap-servers HOST:PORT"
        case Marker.COMMITTED:
            needed = "" if asked else "--bootstrap-servers HOST:PORT "
            return f"name Flink's own with {needed}--source-group GROUP, or {choose}"
        case Marker.LATEST:
            return (
                "move from a later checkpoint, which has its offset once it has had a record, or "
                + choose
            )
        case _:
            return choose


def _warnings(
    findings: Iterable[Finding],
    snapshot: ClusterSnapshot | None,
    partitions: Sequence[PlannedPartition],
    policies: Policies,
) -> Iterator[str]:
    for finding in findings:
        allowed = (finding.code == "in-flight-records" and policies.allow_in_flight) or (
            finding.code == "ran-on" and policies.allow_ran_on
        )
        if finding.severity is Severity.WARNING or allowed:
            yield _where(finding) + finding.message
    suspects = [planned for planned in partitions if planned.verdict is Verdict.SUSPECT]
    if suspects:
        first = suspects[0]
        yield (
            f"{len(suspects)} partitions look recreated (the first is {first.topic}-"
            f"{first.partition}: the first record since the checkpoint lies below its position): "
            "what lies at their positions may be other records"
        )
    group = snapshot.source_group if snapshot is not None else None
    if group is not None and not any(
        group.next_offset(planned.topic, planned.partition) is not None for planned in partitions
    ):
        yield (
            f"group {group.name!r} has committed nothing for these topics: if its name is right, "
            "that the job did not run on is not shown by it"
        )
    if snapshot is None:
        yield (
            "no broker was asked (--bootstrap-servers): that these offsets are still there, and "
            "that the topics have no other partitions, which Spark wants listed, is not checked"
        )
