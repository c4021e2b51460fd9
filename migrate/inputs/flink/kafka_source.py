"""Positions of a KafkaSource, merged from its reader and enumerator states as in Flink.

A reader's split contains the position of its partition. A partition that is only in the
enumerator's state is finished, not yet assigned, or unresolved.
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
from migrate.model.positions import Marker, PositionFields, PositionState, TopicPartition

# A position's state, its start (a next offset or a marker), and the reason if it has no start.
PositionStart = tuple[PositionState, int | Marker | None, str]

_NEXT = PositionState.NEXT
_MARKERS = {EARLIEST: Marker.EARLIEST, LATEST: Marker.LATEST, COMMITTED: Marker.COMMITTED}


def merged_positions(state: KafkaSource, cluster: str | None = None) -> list[PositionFields]:
    """Return the fields of the positions in one cluster, sorted by topic and partition.

    A reader's split takes precedence over the enumerator's entry, because the entry's start may be
    outdated.
    """
    known: defaultdict[str, dict[int, PositionFields]] = defaultdict(dict)
    for subtask, topic, partition, offset, stop in split_fields(state.reader_splits):
        # Calling _fields for every split would double the time.
        known[topic][partition] = (
            (topic, partition, _NEXT, offset, stop, subtask, cluster, "")
            if offset >= 0
            else _fields(topic, partition, _reader_start(offset), stop, subtask, cluster)
        )
    if sum(map(len, known.values())) < len(state.reader_splits):
        for copies in _group_duplicates(state.reader_splits):
            subtask, (topic, partition, offset, stop) = copies[0]
            fields = _fields(topic, partition, _reader_start(offset), stop, subtask, cluster)
            if any(copy.split != copies[0].split for copy in copies):
                starts = [copy.split.starting_offset for copy in copies]
                start = unknown_start(
                    f"reader state contains the partition {len(copies)} times, with starts "
                    f"from {min(starts)} to {max(starts)}"
                )
                fields = _fields(topic, partition, start, stop, None, cluster)
            known[topic][partition] = fields
    for topic, partition, status, split in _entries_without_reader(state.enumerator, known):
        is_assigned = status is AssignmentStatus.ASSIGNED
        start = _finished_start(split) if is_assigned else _unassigned_start(split)
        stop = split.stopping_offset if split is not None else None
        known[topic][partition] = _fields(topic, partition, start, stop, None, cluster)
    positions: list[PositionFields] = []
    for _, of_topic in sorted(known.items()):
        positions += map(of_topic.__getitem__, sorted(of_topic))
    return positions


def _entries_without_reader(
    enumerator: EnumeratorState | None, known: defaultdict[str, dict[int, PositionFields]]
) -> list[EnumeratorEntry]:
    """Return the entries for partitions without a reader.

    ``enumerator.entries`` may be a ``Rows`` object from ``decoder``, which creates each
    EnumeratorEntry on demand. Usually, every partition has a reader. To save time, no
    EnumeratorEntry is then created.
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


def _fields(
    topic: str,
    partition: int,
    position_start: PositionStart,
    stop: int | None,
    subtask: int | None,
    cluster: str | None,
) -> PositionFields:
    state, start, reason = position_start
    return topic, partition, state, start, stop, subtask, cluster, reason


def unknown_start(reason: str) -> PositionStart:
    """Return the ``PositionStart`` of a position with an unknown start."""
    return PositionState.UNRESOLVED, None, reason


def _reader_start(offset: int) -> PositionStart:
    """Return the start of a reader's split.

    If the start is a marker, the reader has not read any records from the split yet.
    """
    if offset >= 0:
        return _NEXT, offset, ""
    if (marker := _MARKERS.get(offset)) is not None:
        return PositionState(marker.value), marker, ""
    return unknown_start("its start was not initialized when the checkpoint was taken")


def _finished_start(split: Split | None) -> PositionStart:
    """Return the start of a partition that is assigned but has no reader.

    Such a partition was read up to its stopping offset. The next offset is the stopping offset or,
    if higher, the starting offset. A starting offset of ``earliest`` counts as lower. If the
    stopping offset is missing or is a marker, the next offset cannot be determined. The same
    applies if the starting offset is ``latest``, ``committed``, or not set, because the partition
    might have started beyond its stopping offset.
    """
    if split is not None and split.stopping_offset is not None and split.stopping_offset >= 0:
        offset = split.starting_offset
        if offset >= 0 or offset == EARLIEST:
            return PositionState.FINISHED, max(offset, split.stopping_offset), ""
    return unknown_start(
        "its former reader no longer has the partition, and the state lacks the last offset"
    )


def _unassigned_start(split: Split | None) -> PositionStart:
    """Return the start of a partition that was discovered but not yet assigned to a reader."""
    if split is None:
        return unknown_start(
            "it was not yet assigned, and the state does not contain the job's starting policy"
        )
    if split.starting_offset == NOT_SET:
        return unknown_start("it was not yet assigned, and its start was not initialized")
    offset = split.starting_offset
    return PositionState.UNASSIGNED, _MARKERS.get(offset, offset), ""
