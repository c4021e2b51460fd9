"""Reader state and enumerator state of a KafkaSource merged into positions, as it restores itself.

What a reader holds is progress; what only the enumerator lists was finished, not yet assigned, or
is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

from decoder.kafka.enumerator import AssignmentStatus, EnumeratorEntry, EnumeratorState
from decoder.kafka.source import KafkaSource, ReaderSplit
from decoder.kafka.split import COMMITTED, EARLIEST, LATEST, NOT_SET, Split
from migrate.positions import Marker, Position, PositionState

_MARKERS = {
    EARLIEST: (PositionState.EARLIEST, Marker.EARLIEST),
    LATEST: (PositionState.LATEST, Marker.LATEST),
    COMMITTED: (PositionState.COMMITTED, Marker.COMMITTED),
}


def merged_positions(state: KafkaSource) -> Iterator[Position]:
    """Reader splits first: an enumerator's ASSIGNED entry is not progress."""
    held: dict[tuple[str, int], list[ReaderSplit]] = {}
    for reader_split in state.reader_splits:
        split = reader_split.split
        held.setdefault((split.topic, split.partition), []).append(reader_split)
    for copies in held.values():
        yield _held_by_a_reader(copies)
    for entry in _entries(state.enumerator):
        if (entry.topic, entry.partition) not in held:
            yield _known_to_the_enumerator(entry)


def _entries(enumerator: EnumeratorState | None) -> tuple[EnumeratorEntry, ...]:
    return enumerator.entries if enumerator is not None else ()


def _held_by_a_reader(copies: list[ReaderSplit]) -> Position:
    first = copies[0]
    split, subtask = first.split, first.subtask
    if any(copy.split != split for copy in copies):
        starts = [copy.split.starting_offset for copy in copies]
        return _unresolved(
            split.topic,
            split.partition,
            split.stopping_offset,
            f"it stands in reader state {len(copies)} times, with starts from {min(starts)} to "
            f"{max(starts)}",
        )
    if split.starting_offset >= 0:
        state, start = PositionState.NEXT, split.starting_offset
        return Position(split.topic, split.partition, state, start, split.stopping_offset, subtask)
    if split.starting_offset in _MARKERS:
        marker_state, marker = _MARKERS[split.starting_offset]
        return Position(
            split.topic, split.partition, marker_state, marker, split.stopping_offset, subtask
        )
    return _unresolved(
        split.topic,
        split.partition,
        split.stopping_offset,
        "its start was not initialised yet when the checkpoint was taken",
        subtask,
    )


def _known_to_the_enumerator(entry: EnumeratorEntry) -> Position:
    match entry.status:
        case AssignmentStatus.ASSIGNED:
            return _assigned_but_not_held(entry)
        case AssignmentStatus.UNASSIGNED:
            return _unassigned(entry)


def _assigned_but_not_held(entry: EnumeratorEntry) -> Position:
    """A split that was given to a reader and is no longer there was read to its end."""
    split = entry.split
    finished_at = _finished_at(split) if split is not None else None
    if split is not None and finished_at is not None:
        return Position(
            entry.topic,
            entry.partition,
            PositionState.FINISHED,
            finished_at,
            split.stopping_offset,
        )
    return _unresolved(
        entry.topic,
        entry.partition,
        split.stopping_offset if split is not None else None,
        "it was assigned to a reader that no longer holds it, and the offset it stopped at is "
        "not in the state",
    )


def _finished_at(split: Split) -> int | None:
    """The next offset of a finished split, where its stop is a number.

    A start that is still ``earliest`` cannot lie beyond the stop of a split that was read to its
    end; ``latest`` and ``committed`` can.
    """
    stop, start = split.stopping_offset, split.starting_offset
    if stop is None or stop < 0:
        return None
    if start >= 0:
        return max(start, stop)
    return stop if start == EARLIEST else None


def _unassigned(entry: EnumeratorEntry) -> Position:
    split = entry.split
    if split is None:
        return _unresolved(
            entry.topic,
            entry.partition,
            None,
            "it was not yet assigned, and the starting policy of the job is not in the state",
        )
    start: int | Marker
    if split.starting_offset == NOT_SET:
        return _unresolved(
            entry.topic,
            entry.partition,
            split.stopping_offset,
            "it was not yet assigned, and its start was not initialised",
        )
    if split.starting_offset in _MARKERS:
        _, start = _MARKERS[split.starting_offset]
    else:
        start = split.starting_offset
    return Position(
        entry.topic, entry.partition, PositionState.UNASSIGNED, start, split.stopping_offset
    )


def _unresolved(
    topic: str, partition: int, stopping_offset: int | None, reason: str, subtask: int | None = None
) -> Position:
    return Position(
        topic,
        partition,
        PositionState.UNRESOLVED,
        None,
        stopping_offset,
        subtask,
        reason=reason,
    )
