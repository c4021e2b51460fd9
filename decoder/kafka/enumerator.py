"""The coordinator's state of a KafkaSource: KafkaSourceEnumState, what the enumerator knows.

Coordinator state: ``i32 coordinatorVersion`` (0 or 1), ``i32 enumeratorVersion, i32 n``, n
enumerator bytes; version 0 has the split assignment tracker's bytes after them.

Enumerator version 0: ``i32 n`` subtasks, ``i32 splitVersion``, n x {``i32 subtask, i32 m``, m x
{``i32 len``, split}}. Version 1: ``i32 n`` x {``UTF topic, i32 partition``}. Version 2: the same
with ``i32 status`` each, then ``bool initialDiscoveryFinished``. Version 3: ``i32 n, i32
splitVersion``, n x {``i32 len``, split, ``i32 status``}, ``bool initialDiscoveryFinished``.

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
from decoder.errors import ErrorKind
from decoder.kafka.bulk import EntryColumns, alike_entries
from decoder.kafka.columns import Rows, rows
from decoder.kafka.split import (
    MIN_SPLIT_BYTES,
    MIN_TOPIC_PARTITION_BYTES,
    SPLIT_VERSION,
    Split,
    read_split,
    read_topic_partition,
)

_COORDINATOR_VERSIONS = (0, 1)

# The connector's releases, by the enumerator version that they write.
ENUMERATOR_WRITTEN_BY = {
    0: "1.12.0 to 1.12.2",
    1: "1.12.3 to 3.0",
    2: "3.1 to 4.0",
    3: "5.0 or later",
}


class AssignmentStatus(Enum):
    """Whether the enumerator has handed a split to a reader."""

    ASSIGNED = 0
    UNASSIGNED = 1  # UNASSIGNED_INITIAL in connectors 3.1 to 4.0


class EnumeratorEntry(NamedTuple):
    """One topic-partition the enumerator knows. ``split`` is None in versions 1 and 2.

    A split keeps the start it was discovered with for ever: it is not progress.
    """

    topic: str
    partition: int
    status: AssignmentStatus
    split: Split | None


# From here on columns are faster than a call for each entry. Of few they take more memory: a
# DynamicKafkaSource may list thousands of clusters of one partition.
_MANY = 5

_STATUSES = {status.value: status for status in AssignmentStatus}


class EnumeratorState(NamedTuple):
    """KafkaSourceEnumState.

    ``initial_discovery_finished`` is None in versions 0 and 1, which lack it.
    """

    version: int
    entries: Sequence[EnumeratorEntry]
    initial_discovery_finished: bool | None


def listed_places(entries: Sequence[EnumeratorEntry]) -> Iterator[tuple[str, int]]:
    """The topic and partition of each entry."""
    if isinstance(entries, Rows):
        return entries.fields()
    return ((entry.topic, entry.partition) for entry in entries)


def open_coordinator_state(data: bytes, what: str) -> tuple[int, Cursor]:
    """The version of a source's enumerator, and its bytes, whatever source it is.

    Raises:
        DecodeError: not the coordinator state of a source.
    """
    cursor = Cursor(data, what)
    coordinator_version = cursor.i32("coordinator version")
    if coordinator_version not in _COORDINATOR_VERSIONS:
        cursor.fail(
            f"coordinator version {coordinator_version} is not read here (known: 0, 1)",
            "coordinator version",
            ErrorKind.UNSUPPORTED,
            back=4,
        )
    version = cursor.i32("enumerator version")
    body = cursor.frame(cursor.i32("enumerator length"), "enumerator state")
    if coordinator_version == 1:
        cursor.finish("coordinator state")
    return version, body


def read_enumerator(cursor: Cursor, version: int) -> EnumeratorState:
    """A KafkaSourceEnumState, which must use up ``cursor``.

    Raises:
        DecodeError: not one, read strictly.
    """
    entries: Sequence[EnumeratorEntry]
    match version:
        case 0:
            entries = _read_assigned(cursor)
        case 1 | 2 | 3:
            entries = _read_listed(cursor, version)
        case _:
            cursor.fail(
                f"enumerator version {version} is not read here (known: 0 to 3)",
                "enumerator version",
                ErrorKind.UNSUPPORTED,
            )
    finished = cursor.boolean("initial discovery finished") if version >= 2 else None
    cursor.finish("enumerator state")
    # Read all at once, they were looked at.
    if not isinstance(entries, Rows) and len({entry[:2] for entry in entries}) != len(entries):
        cursor.fail("a topic-partition stands here twice", "enumerator state")
    return EnumeratorState(version, entries, finished)


def _read_assigned(cursor: Cursor) -> Sequence[EnumeratorEntry]:
    """Version 0: what was assigned, by subtask.

    A split that was given to another one, after a failure of a rescaled job, stands there under
    both; whose it is now, only the readers tell.
    """
    subtasks = cursor.i32("subtasks")
    _check_split_version(cursor)
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
    """Versions 1 to 3; all at once, where they are many and nothing is wrong with any of them."""
    count = _read_count(cursor, version)
    if count >= _MANY:
        columns = cursor.attempt(partial(alike_entries, version=version, count=count))
        if columns is not None:
            return _entries_of(columns)
    return read_entries(cursor, version, count)


def _read_count(cursor: Cursor, version: int) -> int:
    """How many entries follow."""
    if version == 1:
        return cursor.count("partitions", MIN_TOPIC_PARTITION_BYTES)
    if version == 2:
        return cursor.count("partitions", MIN_TOPIC_PARTITION_BYTES + 4)
    count = cursor.i32("partitions")
    _check_split_version(cursor)
    if not 0 <= count <= cursor.remaining // (4 + MIN_SPLIT_BYTES + 4):
        cursor.fail(f"{count} splits cannot fit into the {cursor.remaining} bytes left", "splits")
    return count


def read_entries(cursor: Cursor, version: int, count: int) -> tuple[EnumeratorEntry, ...]:
    """The entries of an enumerator of version 1 to 3, one after another.

    Raises:
        DecodeError: one of them is not an entry, read strictly.
    """
    return tuple(_read_entry(cursor, version) for _ in range(count))


def _read_entry(cursor: Cursor, version: int) -> EnumeratorEntry:
    if version == 3:
        split = _read_framed_split(cursor)
        return EnumeratorEntry(split.topic, split.partition, _read_status(cursor), split)
    topic, partition = read_topic_partition(cursor)
    status = _read_status(cursor) if version == 2 else AssignmentStatus.ASSIGNED
    return EnumeratorEntry(topic, partition, status, None)


def _entries_of(columns: EntryColumns) -> Rows[EnumeratorEntry]:
    topics, partitions, codes, splits = columns
    statuses = (
        repeat(AssignmentStatus.ASSIGNED) if codes is None else [_STATUSES[code] for code in codes]
    )

    def walk() -> Iterator[EnumeratorEntry]:
        held = splits.walk() if splits is not None else repeat(None)
        return rows(EnumeratorEntry, topics, partitions, statuses, held)

    return Rows(len(topics), walk, lambda: zip(topics, partitions, strict=True))


def _read_framed_split(cursor: Cursor) -> Split:
    return read_split(cursor.frame(cursor.i32("split length"), "split"), SPLIT_VERSION)


def _check_split_version(cursor: Cursor) -> None:
    """Checked although there may be no split: nothing else may tell what this is."""
    version = cursor.i32("split version")
    if version != SPLIT_VERSION:
        cursor.fail(
            f"version {version} of the splits is not KafkaPartitionSplit's (known: "
            f"{SPLIT_VERSION})",
            "split version",
            ErrorKind.UNSUPPORTED,
            back=4,
        )


def _read_status(cursor: Cursor) -> AssignmentStatus:
    code = cursor.i32("assignment status")
    if code not in _STATUSES:
        cursor.fail(f"unknown assignment status: {code}", "assignment status", back=4)
    return _STATUSES[code]
