"""The positions of a FlinkKafkaConsumer, which has no enumerator: what its subtasks list is all."""

from __future__ import annotations

from collections.abc import Iterator

from decoder import LegacyConsumer
from decoder.kafka.legacy import EARLIEST, GROUP, LATEST, NOT_SET, LegacyOffset
from migrate.positions import Marker, Position, PositionState, TopicPartition

_MARKERS = {
    EARLIEST: (PositionState.EARLIEST, Marker.EARLIEST),
    LATEST: (PositionState.LATEST, Marker.LATEST),
    GROUP: (PositionState.COMMITTED, Marker.COMMITTED),
}


def legacy_positions(state: LegacyConsumer) -> Iterator[Position]:
    """Sorted by topic and partition.

    Union state: after a restore without a checkpoint since, every subtask lists all.
    """
    listed: dict[TopicPartition, list[LegacyOffset]] = {}
    for offset in state.offsets:
        listed.setdefault((offset.topic, offset.partition), []).append(offset)
    for place in sorted(listed):
        yield _listed_by_subtasks(listed[place])


def _listed_by_subtasks(copies: list[LegacyOffset]) -> Position:
    first = copies[0]
    topic, partition, stored = first.topic, first.partition, first.stored_offset
    if any(copy.stored_offset != stored for copy in copies):
        offsets = [copy.stored_offset for copy in copies]
        return _unresolved(
            first,
            None,
            f"it is listed {len(copies)} times, with offsets from {min(offsets)} to {max(offsets)}",
        )
    if stored in _MARKERS:
        marker_state, marker = _MARKERS[stored]
        return Position(topic, partition, marker_state, marker, None, first.subtask)
    if stored == NOT_SET:
        reason = "its start was not set yet when the checkpoint was taken"
        return _unresolved(first, first.subtask, reason)
    # The last record processed; -1 where none was, of a partition that is read from 0.
    return Position(topic, partition, PositionState.NEXT, stored + 1, None, first.subtask)


def _unresolved(listed: LegacyOffset, subtask: int | None, reason: str) -> Position:
    return Position(
        listed.topic,
        listed.partition,
        PositionState.UNRESOLVED,
        None,
        subtask=subtask,
        reason=reason,
    )
