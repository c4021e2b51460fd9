"""Plan one partition: turn a position and a log range into a next offset and a verdict.

A start that would lose or duplicate records is a problem, unless a policy allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrate.model.catalog import (
    AT_LATEST_MARKER,
    BEYOND_END,
    COMMITTED_MARKER_OFFLINE,
    EARLIEST_MARKER_OFFLINE,
    EXPIRED,
    LATEST_MARKER_OFFLINE,
    NEW_PARTITION,
    NO_COMMITTED_OFFSET,
    NO_COMMITTED_OFFSET_TO_START_AT,
    NO_SOURCE_GROUP,
    NOT_AMONG_POSITIONS,
    PARTITION_GONE,
    PARTITION_OF_MAP_MISSING,
    POSITION_UNKNOWN,
    START_DEPENDS_ON_JOB,
    TOPIC_GONE,
    TOPIC_OF_MAP_MISSING,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.message import Message
from migrate.model.policies import Gone, NewPartitions, OnBeyondEnd, OnExpired, Policies, Unresolved
from migrate.model.positions import Marker, Position, PositionState
from migrate.planning.plan import PlannedPartition, Verdict

# After the checkpoint, a topic may have been recreated and have grown past a position. In this
# case, all records below the position are newer than the checkpoint. A partition is therefore
# suspect if at least this fraction of the offsets from the log start offset to the position is at
# or above ``first_since``, the offset of the first record newer than the checkpoint. A smaller
# fraction is normal, because producer timestamps do not always increase with the offsets.
_SUSPECT_PART = 0.5


def plan_position(
    position: Position, snapshot: ClusterSnapshot | None, policies: Policies
) -> PlannedPartition:
    """Plan a position; ``snapshot`` is None if no broker was queried."""
    if snapshot is None:
        return _plan_without_broker(position)
    if position.topic not in snapshot.topics:
        similar = snapshot.alike.get(position.topic, ())
        return _plan_gone(position, Verdict.TOPIC_GONE, policies, similar)
    log = snapshot.topics[position.topic].get(position.partition)
    if log is None:
        return _plan_gone(position, Verdict.PARTITION_GONE, policies)
    resolved = _resolve(position, log, snapshot)
    if isinstance(resolved, Message):
        return _plan_unresolved(position, log, resolved, snapshot, policies)
    verdict, next_offset = resolved
    planned = _plan_in_range(position, next_offset, verdict, log, policies)
    # ``job_reached`` is the job's own next offset, even if a policy chose a different start.
    return replace(planned, job_reached=next_offset)


def _resolve(
    position: Position, log: LogRange, snapshot: ClusterSnapshot
) -> tuple[Verdict, int] | Message:
    """Return the verdict and the next offset, or the reason that the next offset is unknown."""
    match position.start:
        case int(next_offset):
            return _verdict(position), next_offset
        case Marker.EARLIEST:
            return Verdict.MARKER_RESOLVED, log.start
        case Marker.COMMITTED:
            committed = flink_committed(position.topic, position.partition, snapshot)
            if committed is not None:
                return Verdict.MARKER_RESOLVED, committed
            group = snapshot.source_group
            return NO_SOURCE_GROUP() if group is None else NO_COMMITTED_OFFSET(group=group.name)
        case Marker.LATEST:
            return AT_LATEST_MARKER()
        case None:
            return POSITION_UNKNOWN(reason=position.reason)


def _verdict(position: Position) -> Verdict:
    return Verdict.FINISHED if position.state is PositionState.FINISHED else Verdict.OK


def _plan_without_broker(position: Position) -> PlannedPartition:
    if isinstance(position.start, int):
        return _planned(position, _verdict(position), position.start, job_reached=position.start)
    match position.start:
        case Marker.EARLIEST:
            problem = EARLIEST_MARKER_OFFLINE()
        case Marker.COMMITTED:
            problem = COMMITTED_MARKER_OFFLINE()
        case Marker.LATEST:
            problem = LATEST_MARKER_OFFLINE()
        case None:
            problem = POSITION_UNKNOWN(reason=position.reason)
    return _planned(position, Verdict.UNRESOLVED, None, lost=None, repeated=None, problem=problem)


def _plan_unresolved(
    position: Position,
    log: LogRange,
    problem: Message,
    snapshot: ClusterSnapshot,
    policies: Policies,
) -> PlannedPartition:
    """Plan a position with an unknown next offset. The user must choose its start."""
    chosen = _choose_start(position, log, snapshot, policies)
    if chosen is None:
        if policies.unresolved is Unresolved.COMMITTED:
            problem = NO_COMMITTED_OFFSET_TO_START_AT(problem=problem.what)
        return _planned(
            position, Verdict.UNRESOLVED, None, log, lost=None, repeated=None, problem=problem
        )
    planned = _plan_in_range(position, chosen, Verdict.UNRESOLVED, log, policies)
    # The job's progress is unknown, so assume the worst case. All records between the log start and
    # the chosen offset count as lost, and the rest of the log counts as repeated.
    gap = max(0, log.start - chosen)
    clipped = min(max(chosen, log.start), log.end)
    return replace(planned, lost=gap + clipped - log.start, repeated=log.end - clipped)


def _choose_start(
    position: Position, log: LogRange, snapshot: ClusterSnapshot, policies: Policies
) -> int | None:
    match policies.unresolved:
        case Unresolved.FAIL:
            return None
        case Unresolved.EARLIEST:
            return log.start
        case Unresolved.LATEST:
            return log.end
        case Unresolved.COMMITTED:
            return flink_committed(position.topic, position.partition, snapshot)
        case int():
            return log.first_at


def _plan_in_range(
    position: Position, next_offset: int, verdict: Verdict, log: LogRange, policies: Policies
) -> PlannedPartition:
    """Plan a known next offset; if it is outside the log, apply a policy or report a problem."""
    if next_offset < log.start:
        lost = log.start - next_offset
        if policies.on_expired is OnExpired.EARLIEST:
            return _planned(position, Verdict.EXPIRED, log.start, log, lost=lost)
        problem = EXPIRED(next_offset=next_offset, log_start=log.start, lost=lost)
        return _planned(position, Verdict.EXPIRED, None, log, lost=lost, problem=problem)
    if next_offset > log.end:
        # If the topic was recreated, the job has read none of its records, and a start at the log
        # end skips all of them.
        lost = log.end - log.start
        if policies.on_beyond_end is OnBeyondEnd.LATEST:
            return _planned(position, Verdict.BEYOND_END, log.end, log, lost=lost)
        problem = BEYOND_END(next_offset=next_offset, log_end=log.end)
        return _planned(position, Verdict.BEYOND_END, None, log, lost=lost, problem=problem)
    if position.next_offset == next_offset and looks_recreated(next_offset, log):
        verdict = Verdict.SUSPECT
    return _planned(position, verdict, next_offset, log)


def looks_recreated(next_offset: int, log: LogRange) -> bool:
    """Return whether most records below a checkpoint's offset are newer than the checkpoint.

    ``log.first_since`` must refer to the checkpoint's time. If ``first_since`` is None, return
    False.
    """
    if log.first_since is None:
        return False
    newer_below = next_offset - log.first_since
    return newer_below > 0 and newer_below >= (next_offset - log.start) * _SUSPECT_PART


def new_partition(
    topic: str,
    partition: int,
    log: LogRange,
    at_log_start: bool,
    policies: Policies,
    *,
    from_position_list: bool = False,
) -> PlannedPartition:
    """Plan a partition that is not in any chosen source.

    ``at_log_start`` is True if Flink would start the partition at the log start offset.
    ``from_position_list`` is True if the positions are not from a checkpoint.
    """
    # A KafkaSource discovers partitions when it starts and then every five minutes
    # (KafkaSourceOptions @ 3.4.0-1.20, 5.0.0-2.2), so an undiscovered partition should have few
    # records older than the checkpoint. The partition may have many such records if the source has
    # a fixed list of partitions.
    older = log.first_since - log.start if log.first_since is not None else 0
    new = PlannedPartition(
        topic, partition, Verdict.NEW_PARTITION, None, log_start=log.start, log_end=log.end
    )
    moved = replace(new, next_offset=log.start, job_reached=log.start, older_offsets=older)
    size = log.end - log.start
    where = "among the positions" if from_position_list else "in the checkpoint"
    problem = NEW_PARTITION(where=where)
    match policies.new_partitions:
        case NewPartitions.AS_FLINK if at_log_start:
            return moved
        case NewPartitions.EARLIEST:
            # Unless Flink would start at the log start, the job may have read any part of the log.
            return replace(moved, repeated=0 if at_log_start else size)
        case NewPartitions.LATEST:
            return replace(moved, next_offset=log.end, lost=size)
        case NewPartitions.AS_FLINK:
            new = replace(new, verdict=Verdict.UNRESOLVED)
            problem = NOT_AMONG_POSITIONS() if from_position_list else START_DEPENDS_ON_JOB()
    return replace(new, lost=None, repeated=None, problem=problem)


def _plan_gone(
    position: Position, verdict: Verdict, policies: Policies, similar: Sequence[str] = ()
) -> PlannedPartition:
    if policies.gone is Gone.SKIP:
        return _planned(position, verdict, None, lost=None)
    problem = _gone(position.topic, verdict, policies, similar)
    return _planned(position, verdict, None, lost=None, problem=problem)


def _gone(topic: str, verdict: Verdict, policies: Policies, similar: Sequence[str]) -> Message:
    old = next((old for old, new in policies.topic_map.items() if new == topic), None)
    if verdict is Verdict.TOPIC_GONE:
        if old is not None:
            return TOPIC_OF_MAP_MISSING(old=old, new=topic, alike=similar)
        return TOPIC_GONE(alike=similar)
    return PARTITION_GONE() if old is None else PARTITION_OF_MAP_MISSING(old=old, new=topic)


def _planned(
    position: Position,
    verdict: Verdict,
    next_offset: int | None,
    log: LogRange | None = None,
    *,
    lost: int | None = 0,
    repeated: int | None = 0,
    job_reached: int | None = None,
    problem: Message | None = None,
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
        repeated=repeated,
        job_reached=job_reached,
        problem=problem,
    )


def flink_committed(topic: str, partition: int, snapshot: ClusterSnapshot) -> int | None:
    """Return the next offset that Flink's group has committed, or None."""
    group = snapshot.source_group
    return group.next_offset(topic, partition) if group is not None else None
