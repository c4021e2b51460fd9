"""Positions and what a broker said -> a Plan: pure, no I/O.

A plan names, per topic-partition, the next offset a target is to start from and a verdict. What
would lose or repeat records is not clipped but refused, each with the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from typing_extensions import assert_never

from migrate.extract import Extraction, Finding, Severity, Source
from migrate.positions import Marker, Position, PositionState
from migrate.snapshot import ClusterSnapshot, LogRange

# Findings about the job as a whole: they stand in the way whichever source is chosen.
_JOB_WIDE_BLOCKERS = frozenset({"in-flight-records", "ran-on"})
# Findings told again, partition by partition, by the plan itself.
_TOLD_BY_PARTITION = frozenset({"unresolved-positions"})

ALLOW_RAN_ON = "--allow-ran-on"


class Verdict(str, Enum):
    """What the plan says of one topic-partition."""

    OK = "ok"
    MARKER_RESOLVED = "marker resolved"  # a marker in the state, turned into an offset
    NEW_PARTITION = "new partition"  # on the broker, not in the checkpoint: from the log start
    FINISHED = "finished"  # bounded and read to its end: from there on
    EXPIRED = "expired"  # below the log start: records are already gone
    BEYOND_END = "beyond end"  # the topic was recreated, or this is another cluster
    PARTITION_GONE = "partition gone"
    TOPIC_GONE = "topic gone"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class PlannedPartition:
    """One topic-partition of a plan.

    ``next_offset`` is None exactly where ``problem`` says why there is none. ``log`` is None
    without a broker, and for what the broker does not have. ``position`` is None for a partition
    the checkpoint does not know.
    """

    topic: str
    partition: int
    verdict: Verdict
    next_offset: int | None
    position: Position | None
    log: LogRange | None
    problem: str = ""


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
    *,
    allow_ran_on: bool = False,
) -> Plan:
    """Plan the move of the chosen sources.

    Args:
        extraction: the whole checkpoint: what is in flight anywhere stands in the way.
        chosen: the sources to move, some or all of the extraction's.
        snapshot: what the broker said of their topics, or None without a broker.
        allow_ran_on: move although the job ran on after this checkpoint.
    """
    refusals = list(_blocked_by_findings(extraction, chosen, allow_ran_on))
    refusals += _disagreements(chosen)
    partitions: list[PlannedPartition] = []
    if not refusals:
        partitions = _plan_partitions(chosen, snapshot)
        refusals += [_refuse(planned) for planned in partitions if planned.problem]
        if snapshot is not None and not allow_ran_on:
            refusals += _group_ran_on(partitions, snapshot)
    return Plan(tuple(partitions), tuple(refusals), tuple(_warnings(extraction, chosen, snapshot)))


# -- what stands in the way of the whole ---------------------------------------------------------


def _concerns(finding: Finding, extraction: Extraction, chosen: Sequence[Source]) -> bool:
    """Whether a finding bears on moving the chosen sources.

    One about a source that was not recognised bears on it unless the user chose another by name.
    """
    if finding.operator_id is None or finding.code in _JOB_WIDE_BLOCKERS:
        return True
    if any(source.operator_id == finding.operator_id for source in chosen):
        return True
    return len(chosen) == len(extraction.sources)


def _blocked_by_findings(
    extraction: Extraction, chosen: Sequence[Source], allow_ran_on: bool
) -> Iterator[Refusal]:
    for finding in extraction.findings:
        if (
            finding.severity is not Severity.BLOCKER
            or finding.code in _TOLD_BY_PARTITION
            or not _concerns(finding, extraction, chosen)
        ):
            continue
        where = f"operator {finding.operator_id}: " if finding.operator_id is not None else ""
        match finding.code:
            case "ran-on" if allow_ran_on:
                continue
            case "ran-on":
                way_out = f"move from the newest one, or add {ALLOW_RAN_ON} to repeat them"
            case "in-flight-records":
                way_out = "no flag allows this"
            case _:
                way_out = "if it is not to be moved, choose the others with --source"
        yield Refusal(where + finding.message, way_out)


def _disagreements(chosen: Sequence[Source]) -> Iterator[Refusal]:
    """Sources that read one topic must agree on all of it: positions are per operator."""
    readers: dict[str, list[Source]] = {}
    for source in chosen:
        for topic in source.topics:
            readers.setdefault(topic, []).append(source)
    for topic, sources in sorted(readers.items()):
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
                "choose one with --source OPERATOR_ID",
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
        if planned.position is not None
        and planned.position.next_offset is not None
        and (_flink_committed(planned.topic, planned.partition, snapshot) or 0)
        > planned.position.next_offset
    ]
    if beyond:
        first = beyond[0]
        committed = _flink_committed(first.topic, first.partition, snapshot)
        yield Refusal(
            f"the job ran on after this checkpoint: Flink's group has committed beyond "
            f"{len(beyond)} positions (the first is {first.topic}-{first.partition}: committed "
            f"{committed}, position {first.next_offset}), so what Flink emitted since would be "
            "emitted again",
            f"move from a newer checkpoint, or add {ALLOW_RAN_ON} to repeat them",
        )


# -- partition by partition ----------------------------------------------------------------------


def _plan_partitions(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None
) -> list[PlannedPartition]:
    positions = {
        position.topic_partition: position for source in chosen for position in source.positions
    }
    planned = [_plan_position(position, snapshot) for position in positions.values()]
    if snapshot is not None:
        planned += _new_partitions(chosen, positions.keys(), snapshot)
    return sorted(planned, key=lambda partition: (partition.topic, partition.partition))


def _plan_position(position: Position, snapshot: ClusterSnapshot | None) -> PlannedPartition:
    if position.start is None:
        log = _log(position, snapshot)
        return _problem(position, Verdict.UNRESOLVED, position.reason, log)
    if snapshot is None:
        return _plan_without_broker(position)
    if position.topic not in snapshot.topics:
        return _problem(position, Verdict.TOPIC_GONE, "the broker has no such topic", None)
    log = _log(position, snapshot)
    if log is None:
        return _problem(position, Verdict.PARTITION_GONE, "the broker has no such partition", None)
    if isinstance(position.start, int):
        finished = position.state is PositionState.FINISHED
        return _in_range(
            position, position.start, Verdict.FINISHED if finished else Verdict.OK, log
        )
    return _resolve_marker(position, position.start, log, snapshot)


def _flink_committed(topic: str, partition: int, snapshot: ClusterSnapshot) -> int | None:
    group = snapshot.source_group
    return group.next_offset(topic, partition) if group is not None else None


def _log(position: Position, snapshot: ClusterSnapshot | None) -> LogRange | None:
    if snapshot is None:
        return None
    return snapshot.topics.get(position.topic, {}).get(position.partition)


def _plan_without_broker(position: Position) -> PlannedPartition:
    if isinstance(position.start, Marker):
        problem = (
            f"it has read no record and is still at the '{position.start.value}' marker, which "
            "only a broker can resolve"
        )
        return _problem(position, Verdict.UNRESOLVED, problem, None)
    finished = position.state is PositionState.FINISHED
    verdict = Verdict.FINISHED if finished else Verdict.OK
    return PlannedPartition(
        position.topic, position.partition, verdict, position.next_offset, position, None
    )


def _resolve_marker(
    position: Position, marker: Marker, log: LogRange, snapshot: ClusterSnapshot
) -> PlannedPartition:
    match marker:
        case Marker.EARLIEST:
            return _in_range(position, log.start, Verdict.MARKER_RESOLVED, log)
        case Marker.LATEST:
            problem = (
                "it has read no record and is still at the 'latest' marker: today's log end "
                "would skip what came since the job started"
            )
            return _problem(position, Verdict.UNRESOLVED, problem, log)
        case Marker.COMMITTED:
            committed = _flink_committed(position.topic, position.partition, snapshot)
            if committed is not None:
                return _in_range(position, committed, Verdict.MARKER_RESOLVED, log)
            problem = "it has read no record and is still at the 'committed' marker" + (
                f", and group {snapshot.source_group.name!r} has committed nothing for it"
                if snapshot.source_group is not None
                else ": only Flink's own consumer group knows its start"
            )
            return _problem(position, Verdict.UNRESOLVED, problem, log)
        case _:
            assert_never(marker)


def _in_range(
    position: Position, next_offset: int, verdict: Verdict, log: LogRange
) -> PlannedPartition:
    if next_offset < log.start:
        problem = (
            f"its next offset {next_offset} lies below the log start {log.start}: "
            f"up to {log.start - next_offset} records are already gone"
        )
        return _problem(position, Verdict.EXPIRED, problem, log)
    if next_offset > log.end:
        problem = (
            f"its next offset {next_offset} lies beyond the log end {log.end}: the topic was "
            "recreated, or this is another cluster"
        )
        return _problem(position, Verdict.BEYOND_END, problem, log)
    return PlannedPartition(position.topic, position.partition, verdict, next_offset, position, log)


def _new_partitions(
    chosen: Sequence[Source], known: Iterable[tuple[str, int]], snapshot: ClusterSnapshot
) -> Iterator[PlannedPartition]:
    """Partitions on the broker that no chosen source knows; Flink would start them at earliest
    where its first discovery had finished."""
    seen = set(known)
    for topic, logs in snapshot.topics.items():
        readers = [source for source in chosen if topic in source.topics]
        at_earliest = all(source.initial_discovery_finished for source in readers)
        for partition, log in logs.items():
            if (topic, partition) in seen:
                continue
            if at_earliest:
                yield PlannedPartition(
                    topic, partition, Verdict.NEW_PARTITION, log.start, None, log
                )
            else:
                problem = (
                    "it is not in the checkpoint, and where Flink would start it is the job's "
                    "starting policy, which is not in the state"
                )
                yield PlannedPartition(
                    topic, partition, Verdict.UNRESOLVED, None, None, log, problem
                )


def _problem(
    position: Position, verdict: Verdict, problem: str, log: LogRange | None
) -> PlannedPartition:
    return PlannedPartition(
        position.topic, position.partition, verdict, None, position, log, problem
    )


def _refuse(planned: PlannedPartition) -> Refusal:
    what = f"{planned.topic}-{planned.partition} is {planned.verdict.value}: {planned.problem}"
    return Refusal(what, _way_out(planned))


def _way_out(planned: PlannedPartition) -> str:
    match planned.verdict:
        case Verdict.EXPIRED:
            return "move from a newer checkpoint; records that are gone cannot be read by anyone"
        case Verdict.BEYOND_END | Verdict.TOPIC_GONE | Verdict.PARTITION_GONE:
            return "name the brokers that the job read from with --bootstrap-servers"
        case _:
            pass
    marker = planned.position.start if planned.position is not None else None
    match marker:
        case Marker.EARLIEST:
            return "add --bootstrap-servers HOST:PORT"
        case Marker.COMMITTED:
            return "add --bootstrap-servers HOST:PORT --source-group GROUP (Flink's own group.id)"
        case _:
            return (
                "let the job read on (until each partition has had a record) and move from the "
                "checkpoint it takes then"
            )


def _warnings(
    extraction: Extraction, chosen: Sequence[Source], snapshot: ClusterSnapshot | None
) -> Iterator[str]:
    for finding in extraction.findings:
        if finding.severity is Severity.WARNING and _concerns(finding, extraction, chosen):
            if finding.code in ("latest-marker", "committed-marker"):
                continue  # told by partition
            where = f"operator {finding.operator_id}: " if finding.operator_id is not None else ""
            yield where + finding.message
    if snapshot is None:
        yield (
            "no broker was asked (--bootstrap-servers): that these offsets are still there, and "
            "that the topics have no other partitions, which Spark wants listed, is not checked"
        )
