"""The coordinator state of a KafkaSource, which contains a KafkaSourceEnumState.

Coordinator state: ``i32 coordinatorVersion`` (0 or 1), ``i32 enumeratorVersion, i32 n``, n bytes of
the enumerator. If coordinatorVersion is 0, the bytes of the split assignment tracker follow.

KafkaSourceEnumState by enumerator version:

- 0: ``i32 n`` subtasks, ``i32 splitVersion``, n x {``i32 subtask, i32 m``, m x {``i32 len``,
  split}}
- 1: ``i32 n`` x {``UTF topic, i32 partition``}
- 2: ``i32 n`` x {``UTF topic, i32 partition, i32 status``}, ``bool initialDiscoveryFinished``
- 3: ``i32 n, i32 splitVersion``, n x {``i32 len``, split, ``i32 status``}, ``bool
  initialDiscoveryFinished``

Source: org.apache.flink.runtime.source.coordinator.{SourceCoordinator, SourceCoordinatorSerdeUtils}
@ Flink 2.2.0; KafkaSourceEnumStateSerializer, AssignmentStatus @ connector 1.15.4 to 5.0.0-2.2;
org.apache.flink.connector.base.source.utils.SerdeUtils @ 1.15.4 (version 0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import repeat
from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.kafka.bulk import EntryColumns, read_uniform_entries
from decoder.kafka.columns import Rows, make_rows
from decoder.kafka.split import (
    MIN_SPLIT_BYTES,
    MIN_TOPIC_PARTITION_BYTES,
    SPLIT_VERSION,
    Split,
    read_split,
    read_topic_partition,
)


class EnumeratorLayout(NamedTuple):
    """The differences between the versions of KafkaSourceEnumState.

    Attributes:
        releases: the connector's releases that write this version.
        by_subtask: True if the assigned splits are listed by subtask. The other versions list
            partitions.
        has_splits: True if an entry contains a split. Otherwise, it contains the topic and the
            partition.
        has_status: True if each entry ends with its status, and the whole state ends with
            ``initialDiscoveryFinished``.
    """

    releases: str
    by_subtask: bool = False
    has_splits: bool = False
    has_status: bool = False


# The layouts that can be read and written, by version.
ENUMERATOR_LAYOUTS = {
    0: EnumeratorLayout("1.12.0 to 1.12.2", by_subtask=True, has_splits=True),
    1: EnumeratorLayout("1.12.3 to 3.0"),
    2: EnumeratorLayout("3.1 to 4.0", has_status=True),
    3: EnumeratorLayout("5.0 or later", has_splits=True, has_status=True),
}


class AssignmentStatus(Enum):
    """Whether the enumerator has assigned a split to a reader."""

    ASSIGNED = 0
    UNASSIGNED = 1  # UNASSIGNED_INITIAL in connectors 3.1 to 4.0


class EnumeratorEntry(NamedTuple):
    """A topic-partition that the enumerator lists. ``split`` is None in versions 1 and 2.

    A split's starting offset dates from its discovery and does not show the job's progress.
    """

    topic: str
    partition: int
    status: AssignmentStatus
    split: Split | None


# The smallest number of entries to read as columns. For fewer entries, columns take more time and
# memory.
_MIN_FOR_COLUMNS = 5

# The split version is checked even if there are no splits, because it might be the only difference
# between the state of a Kafka source and the state of another source.
_SPLIT_VERSIONS = (SPLIT_VERSION,)

_STATUSES = {status.value: status for status in AssignmentStatus}


class EnumeratorState(NamedTuple):
    """KafkaSourceEnumState.

    ``initial_discovery_finished`` is None in versions 0 and 1, because they do not store it.
    """

    version: int
    entries: Sequence[EnumeratorEntry]
    initial_discovery_finished: bool | None


def listed_partitions(entries: Sequence[EnumeratorEntry]) -> Iterator[tuple[str, int]]:
    """Return the topic and partition of each entry."""
    if isinstance(entries, Rows):
        return entries.fields()
    return ((entry.topic, entry.partition) for entry in entries)


def open_coordinator_state(data: bytes, label: str) -> tuple[int, Cursor]:
    """Return the version of a source's enumerator, and a cursor over the enumerator's bytes.

    Raises:
        DecodeError: the bytes are not the coordinator state of a source.
    """
    cursor = Cursor(data, label)
    coordinator_version = cursor.version("coordinator", (0, 1))
    version = cursor.i32("enumerator version")
    body = cursor.frame(cursor.i32("enumerator length"), "enumerator state")
    if coordinator_version == 1:
        cursor.finish("coordinator state")
    return version, body


def read_enumerator(cursor: Cursor, version: int) -> EnumeratorState:
    """Read a KafkaSourceEnumState that extends to the end of ``cursor``.

    Raises:
        DecodeError: the bytes are not exactly a KafkaSourceEnumState.
    """
    cursor.check_version(version, "enumerator", ENUMERATOR_LAYOUTS, back=0)
    layout = ENUMERATOR_LAYOUTS[version]
    entries = _read_assigned(cursor) if layout.by_subtask else _read_listed(cursor, version)
    finished = cursor.boolean("initial discovery finished") if layout.has_status else None
    cursor.finish("enumerator state")
    # Rows come from ``read_uniform_entries``, which refuses duplicate topic-partitions.
    if not isinstance(entries, Rows) and len({entry[:2] for entry in entries}) != len(entries):
        cursor.fail("a topic-partition is listed twice", "enumerator state")
    return EnumeratorState(version, entries, finished)


def _read_assigned(cursor: Cursor) -> Sequence[EnumeratorEntry]:
    """Read the assigned splits of version 0, listed by subtask.

    The subtasks are ignored. After a failure of a rescaled job, a split may be listed under two
    subtasks.
    """
    subtasks = cursor.i32("subtasks")
    cursor.version("split", _SPLIT_VERSIONS)
    if not 0 <= subtasks <= cursor.remaining // 8:
        cursor.fail(
            f"{subtasks} subtasks cannot fit into the {cursor.remaining} bytes left", "subtasks"
        )
    assigned: dict[tuple[str, int], EnumeratorEntry] = {}
    for _ in range(subtasks):
        cursor.i32("subtask")
        for _ in range(cursor.count("splits", 4 + MIN_SPLIT_BYTES)):
            split = _read_framed_split(cursor)
            assigned[split.topic, split.partition] = EnumeratorEntry(
                split.topic, split.partition, AssignmentStatus.ASSIGNED, split
            )
    return tuple(assigned.values())


def _read_listed(cursor: Cursor, version: int) -> Sequence[EnumeratorEntry]:
    """Read the entries of a version that lists partitions, as columns if there are many."""
    layout = ENUMERATOR_LAYOUTS[version]
    if layout.has_splits:
        count = cursor.i32("partitions")
        cursor.version("split", _SPLIT_VERSIONS)
        if not 0 <= count <= cursor.remaining // (4 + MIN_SPLIT_BYTES + 4):
            cursor.fail(
                f"{count} splits cannot fit into the {cursor.remaining} bytes left", "splits"
            )
    else:
        count = cursor.count("partitions", MIN_TOPIC_PARTITION_BYTES + 4 * layout.has_status)
    if count >= _MIN_FOR_COLUMNS:
        columns = cursor.attempt(partial(read_uniform_entries, version=version, count=count))
        if columns is not None:
            return _entries_from_columns(columns)
    return read_entries(cursor, version, count)


def read_entries(cursor: Cursor, version: int, count: int) -> tuple[EnumeratorEntry, ...]:
    """Read an enumerator's entries one by one; the version must be one that lists partitions.

    Raises:
        DecodeError: the next bytes are not ``count`` entries.
    """
    layout = ENUMERATOR_LAYOUTS[version]
    return tuple(_read_entry(cursor, layout) for _ in range(count))


def _read_entry(cursor: Cursor, layout: EnumeratorLayout) -> EnumeratorEntry:
    split = _read_framed_split(cursor) if layout.has_splits else None
    topic, partition = split[:2] if split is not None else read_topic_partition(cursor)
    status = _read_status(cursor) if layout.has_status else AssignmentStatus.ASSIGNED
    return EnumeratorEntry(topic, partition, status, split)


def _entries_from_columns(columns: EntryColumns) -> Rows[EnumeratorEntry]:
    topics, partitions, codes, splits = columns

    def make_items() -> Iterator[EnumeratorEntry]:
        statuses = map(_STATUSES.__getitem__, repeat(0) if codes is None else codes)
        listed = splits.make_items() if splits is not None else repeat(None)
        return make_rows(EnumeratorEntry, topics, partitions, statuses, listed)

    return Rows(len(topics), make_items, lambda: zip(topics, partitions, strict=True))


def _read_framed_split(cursor: Cursor) -> Split:
    return read_split(cursor.frame(cursor.i32("split length"), "split"), SPLIT_VERSION)


def _read_status(cursor: Cursor) -> AssignmentStatus:
    code = cursor.i32("assignment status")
    if code not in _STATUSES:
        cursor.fail(f"unknown assignment status: {code}", "assignment status", back=4)
    return _STATUSES[code]
