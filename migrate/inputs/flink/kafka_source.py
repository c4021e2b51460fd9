"""Positions of a KafkaSource, merged from its reader state and its enumerator state as in Flink.

A reader's split has the position of its partition. A partition that is only in the enumerator's
state is finished, not yet assigned, or unresolved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import compress

from decoder import KafkaSource, ReaderSplit
from decoder.kafka.enumerator import (
    AssignmentStatus,
    EnumeratorEntry,
    EnumeratorState,
    listed_partitions,
)
from decoder.kafka.source import split_fields
from decoder.kafka.split import COMMITTED, EARLIEST, LATEST, NOT_SET, Split
from migrate.model.positions import (
    Marker,
    Position,
    PositionFields,
    PositionState,
    TopicPartition,
    unresolved_position,
)

_NEXT = PositionState.NEXT
_MARKERS = {EARLIEST: Marker.EARLIEST, LATEST: Marker.LATEST, COMMITTED: Marker.COMMITTED}


def merged_positions(state: KafkaSource, cluster: str | None = None) -> list[PositionFields]:
    """Return the fields of the positions of one cluster, sorted by topic and partition.

    A reader's split takes precedence over the enumerator's entry, whose start may be outdated.
    """
    known: defaultdict[str, dict[int, PositionFields]] = defaultdict(dict)
    for subtask, topic, partition, start, stop in split_fields(state.reader_splits):
        # Not a call of _reader_position, which would double the time.
        known[topic][partition] = (
            (topic, partition, _NEXT, start, stop, subtask, cluster, "")
            if start >= 0
            else _reader_position(subtask, Split(topic, partition, start, stop), cluster)
        )
    if sum(map(len, known.values())) < len(state.reader_splits):
        for copies in _group_duplicates(state.reader_splits):
            subtask, first = copies[0]
            known[first.topic][first.partition] = (
                _ambiguous_position(copies, cluster)
                if any(copy.split != first for copy in copies)
                else _reader_position(subtask, first, cluster)
            )
    for entry in _entries_without_reader(state.enumerator, known):
        is_assigned = entry.status is AssignmentStatus.ASSIGNED
        known[entry.topic][entry.partition] = (
            _finished_position(entry, cluster)
            if is_assigned
            else _unassigned_position(entry, cluster)
        )
    positions: list[PositionFields] = []
    for _, of_topic in sorted(known.items()):
        positions += map(of_topic.__getitem__, sorted(of_topic))
    return positions


def _entries_without_reader(
    enumerator: EnumeratorState | None, known: defaultdict[str, dict[int, PositionFields]]
) -> list[EnumeratorEntry]:
    """Return the entries of partitions without a reader.

    Usually there are none, and no EnumeratorEntry is created, to save time: ``entries`` may be
    ``decoder``'s Rows, which create entries on demand.
    """
    if enumerator is None:
        return []
    entries = enumerator.entries
    unknown = [partition not in known[topic] for topic, partition in listed_partitions(entries)]
    return list(compress(entries, unknown)) if any(unknown) else []


def _group_duplicates(reader_splits: Iterable[ReaderSplit]) -> list[list[ReaderSplit]]:
    """Return the splits of each duplicate topic-partition; only damaged state has duplicates."""
    groups: defaultdict[TopicPartition, list[ReaderSplit]] = defaultdict(list)
    for reader_split in reader_splits:
        groups[reader_split.split.topic, reader_split.split.partition].append(reader_split)
    return [splits for splits in groups.values() if len(splits) > 1]


def _reader_position(subtask: int, split: Split, cluster: str | None) -> Position:
    """Return the position of a reader's split."""
    topic, partition, start, stop = split
    if start >= 0:
        return Position(topic, partition, _NEXT, start, stop, subtask, cluster)
    if start in _MARKERS:
        marker = _MARKERS[start]
        state = PositionState(marker.value)
        return Position(topic, partition, state, marker, stop, subtask, cluster)
    reason = "its start was not initialised yet when the checkpoint was taken"
    return unresolved_position(
        topic, partition, reason, stopping_offset=stop, subtask=subtask, cluster=cluster
    )


def _ambiguous_position(copies: list[ReaderSplit], cluster: str | None) -> Position:
    first = copies[0].split
    starts = [copy.split.starting_offset for copy in copies]
    return unresolved_position(
        first.topic,
        first.partition,
        f"it stands in reader state {len(copies)} times, with starts from {min(starts)} to "
        f"{max(starts)}",
        stopping_offset=first.stopping_offset,
        cluster=cluster,
    )


def _finished_position(entry: EnumeratorEntry, cluster: str | None) -> Position:
    """Return the position of an assigned partition without a reader: it was read to its end.

    The position is unresolved if the state does not have the end.
    """
    split = entry.split
    finished_at = _finished_offset(split) if split is not None else None
    if split is not None and finished_at is not None:
        return Position(
            entry.topic,
            entry.partition,
            PositionState.FINISHED,
            finished_at,
            split.stopping_offset,
            cluster=cluster,
        )
    return unresolved_position(
        entry.topic,
        entry.partition,
        "it was assigned to a reader that no longer holds it, and the offset it stopped at is "
        "not in the state",
        stopping_offset=split.stopping_offset if split is not None else None,
        cluster=cluster,
    )


def _finished_offset(split: Split) -> int | None:
    """Return the next offset of a finished split, or None if it is not known.

    The next offset is the stop, or the start if the start is higher. ``earliest`` is taken to be
    lower. ``latest`` or ``committed`` may have been higher, so the next offset is not known.
    """
    stop, start = split.stopping_offset, split.starting_offset
    if stop is None or stop < 0:
        return None
    if start >= 0:
        return max(start, stop)
    return stop if start == EARLIEST else None


def _unassigned_position(entry: EnumeratorEntry, cluster: str | None) -> Position:
    topic, partition, split = entry.topic, entry.partition, entry.split
    if split is None:
        reason = "it was not yet assigned, and the starting policy of the job is not in the state"
        return unresolved_position(topic, partition, reason, cluster=cluster)
    stop = split.stopping_offset
    if split.starting_offset == NOT_SET:
        reason = "it was not yet assigned, and its start was not initialised"
        return unresolved_position(topic, partition, reason, stopping_offset=stop, cluster=cluster)
    start: int | Marker = split.starting_offset
    if start in _MARKERS:
        start = _MARKERS[start]
    return Position(topic, partition, PositionState.UNASSIGNED, start, stop, cluster=cluster)
