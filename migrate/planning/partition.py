"""One position against one log: its next offset and verdict, or why there is none.

What would lose or repeat records is a problem, never clipped, unless a policy allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.policies import Gone, NewPartitions, OnBeyondEnd, OnExpired, Policies, Unresolved
from migrate.model.positions import Marker, Position, PositionState
from migrate.model.wording import did_you_mean
from migrate.planning.plan import PlannedPartition, Verdict

# A recreated topic that has grown past a position holds other records there. It is suspected where
# the first record since the checkpoint's time lies below the position by at least this part of the
# log before it: timestamps are the producers' and need not rise with the offsets.
_SUSPECT_PART = 0.5


def plan_position(
    position: Position, snapshot: ClusterSnapshot | None, policies: Policies
) -> PlannedPartition:
    """A position that the checkpoint holds; ``snapshot`` is None where no broker was asked."""
    if snapshot is None:
        return _plan_without_broker(position)
    if position.topic not in snapshot.topics:
        similar = snapshot.alike.get(position.topic, ())
        return _gone(position, Verdict.TOPIC_GONE, policies, similar)
    log = snapshot.topics[position.topic].get(position.partition)
    if log is None:
        return _gone(position, Verdict.PARTITION_GONE, policies)
    found = _where_it_stood(position, log, snapshot)
    if isinstance(found, str):
        return _unresolved(position, log, found, snapshot, policies)
    verdict, next_offset = found
    planned = _in_range(position, next_offset, verdict, log, policies)
    return replace(planned, reached=next_offset)  # where the job stood, whatever is made of it


def _where_it_stood(
    position: Position, log: LogRange, snapshot: ClusterSnapshot
) -> tuple[Verdict, int] | str:
    """The next offset, or why that cannot be told."""
    match position.start:
        case int(next_offset):
            finished = position.state is PositionState.FINISHED
            return (Verdict.FINISHED if finished else Verdict.OK), next_offset
        case Marker.EARLIEST:
            return Verdict.MARKER_RESOLVED, log.start
        case Marker.COMMITTED:
            committed = flink_committed(position.topic, position.partition, snapshot)
            if committed is not None:
                return Verdict.MARKER_RESOLVED, committed
            group = snapshot.source_group
            return "it has read no record and is still at the 'committed' marker" + (
                f", and group {group.name!r} has committed nothing for it"
                if group is not None
                else ": only Flink's own consumer group knows its start"
            )
        case Marker.LATEST:
            return (
                "it has read no record and is still at the 'latest' marker: today's log end "
                "would skip what came since the job started"
            )
        case None:
            return position.reason


def _plan_without_broker(position: Position) -> PlannedPartition:
    if isinstance(position.start, int):
        finished = position.state is PositionState.FINISHED
        verdict = Verdict.FINISHED if finished else Verdict.OK
        planned = _planned(position, verdict, position.start, None)
        return replace(planned, reached=position.start)
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
    chosen = _chosen(position, log, snapshot, policies)
    if chosen is None and policies.unresolved is Unresolved.COMMITTED:
        problem += ", and --unresolved committed finds nothing committed by --source-group"
    if chosen is None:
        return _problem(position, Verdict.UNRESOLVED, problem, log, lost=None, repeated=None)
    planned = _in_range(position, chosen, Verdict.UNRESOLVED, log, policies)
    # Where it really stood is not known: anywhere in the log, or in the gap below it.
    gap = max(0, log.start - chosen)
    goes_on = min(max(chosen, log.start), log.end)
    return replace(planned, lost=gap + goes_on - log.start, repeated=log.end - goes_on)


def _chosen(
    position: Position, log: LogRange, snapshot: ClusterSnapshot, policies: Policies
) -> int | None:
    match policies.unresolved:
        case Unresolved.FAIL:
            return None
        case Unresolved.EARLIEST:
            return log.start
        case Unresolved.LATEST:
            return log.end
        case Unresolved.TIMESTAMP:
            return log.first_at
        case Unresolved.COMMITTED:
            return flink_committed(position.topic, position.partition, snapshot)


def _in_range(
    position: Position, next_offset: int, verdict: Verdict, log: LogRange, policies: Policies
) -> PlannedPartition:
    if next_offset < log.start:
        lost = log.start - next_offset
        if policies.on_expired is OnExpired.EARLIEST:
            return _planned(position, Verdict.EXPIRED, log.start, log, lost=lost)
        problem = (
            f"its next offset {next_offset} lies below the log start {log.start}: "
            f"up to {lost} records are already gone"
        )
        return _problem(position, Verdict.EXPIRED, problem, log, lost=lost)
    if next_offset > log.end:
        # The records of a recreated topic are new to everyone: going on from its end skips them.
        lost = log.end - log.start
        if policies.on_beyond_end is OnBeyondEnd.LATEST:
            return _planned(position, Verdict.BEYOND_END, log.end, log, lost=lost)
        problem = (
            f"its next offset {next_offset} lies beyond the log end {log.end}: the topic was "
            "recreated, or this is another cluster"
        )
        return _problem(position, Verdict.BEYOND_END, problem, log, lost=lost)
    if _looks_recreated(position, next_offset, log):
        verdict = Verdict.SUSPECT
    return _planned(position, verdict, next_offset, log)


def _looks_recreated(position: Position, next_offset: int, log: LogRange) -> bool:
    if log.first_since is None or position.next_offset != next_offset:
        return False
    below = next_offset - log.first_since
    return below > 0 and below >= (next_offset - log.start) * _SUSPECT_PART


def new_partition(
    topic: str,
    partition: int,
    log: LogRange,
    as_flink: bool,
    policies: Policies,
    *,
    listed: bool = False,
) -> PlannedPartition:
    """A partition that no source of the checkpoint knows.

    Args:
        as_flink: whether Flink would start it at the log start.
        listed: whether the positions are none of Flink's.
    """
    held = log.end - log.start

    new = PlannedPartition(
        topic, partition, Verdict.NEW_PARTITION, None, log_start=log.start, log_end=log.end
    )

    def planned(next_offset: int, lost: int, repeated: int) -> PlannedPartition:
        # A KafkaSource looks for partitions as it starts and, of today's connectors, every five
        # minutes: KafkaSourceOptions @ 3.4.0-1.20, 5.0.0-2.2. One that was given its partitions
        # finds no others.
        older = log.first_since - log.start if log.first_since is not None else 0
        return replace(
            new,
            next_offset=next_offset,
            reached=log.start,
            lost=lost,
            repeated=repeated,
            undiscovered=older,
        )

    def refused(verdict: Verdict, problem: str) -> PlannedPartition:
        return replace(new, verdict=verdict, lost=None, repeated=None, problem=problem)

    match policies.new_partitions:
        case NewPartitions.AS_FLINK if as_flink:
            return planned(log.start, 0, 0)
        case NewPartitions.AS_FLINK:
            return refused(
                Verdict.UNRESOLVED,
                "it is not among the positions, and where their reader would start it is not known"
                if listed
                else "it is not in the checkpoint, and where Flink would start it is the job's "
                "starting policy, which is not in the state",
            )
        case NewPartitions.EARLIEST:
            # Where Flink's first discovery had not finished, it may have read it since.
            return planned(log.start, 0, 0 if as_flink else held)
        case NewPartitions.LATEST:
            return planned(log.end, held, 0)
        case NewPartitions.FAIL:
            there = "among the positions" if listed else "in the checkpoint"
            return refused(Verdict.NEW_PARTITION, f"it is not {there}")


def _gone(
    position: Position, verdict: Verdict, policies: Policies, similar: Sequence[str] = ()
) -> PlannedPartition:
    if policies.gone is Gone.SKIP:
        return _planned(position, verdict, None, None, lost=None)
    what = "topic" if verdict is Verdict.TOPIC_GONE else "partition"
    problem = f"the broker has no such {what}{did_you_mean(similar)}"
    return _problem(position, verdict, problem, None, lost=None)


def _problem(
    position: Position,
    verdict: Verdict,
    problem: str,
    log: LogRange | None,
    *,
    lost: int | None,
    repeated: int | None = 0,
) -> PlannedPartition:
    planned = _planned(position, verdict, None, log, lost=lost)
    return replace(planned, repeated=repeated, problem=problem)


def _planned(
    position: Position,
    verdict: Verdict,
    next_offset: int | None,
    log: LogRange | None,
    *,
    lost: int | None = 0,
) -> PlannedPartition:
    return PlannedPartition(
        position.topic,
        position.partition,
        verdict,
        next_offset,
        position.start,
        subtask=position.subtask,
        log_start=log.start if log is not None else None,
        log_end=log.end if log is not None else None,
        lost=lost,
    )


def flink_committed(topic: str, partition: int, snapshot: ClusterSnapshot) -> int | None:
    """What Flink's own group would read next, where it is named and has committed."""
    group = snapshot.source_group
    return group.next_offset(topic, partition) if group is not None else None
