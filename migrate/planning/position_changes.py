"""The effect of changed positions: records that a reader duplicates or skips; no I/O here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from migrate.model.message import Message
from migrate.model.positions import Origin
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import (
    PARTITION_ADVANCED,
    PARTITION_ADVANCED_BEFORE_READER,
    PARTITION_ADVANCED_UNDER_STATE,
    PARTITION_REWOUND,
    PARTITION_REWOUND_UNDER_STATE,
    POSITION_SET,
    POSITION_SET_UNDER_STATE,
    STALE_POSITION_CHANGED,
    STALE_POSITION_CHANGED_UNDER_STATE,
)
from migrate.planning.plan import PlannedPartition
from migrate.planning.refusals_and_warnings import reader_of
from migrate.planning.source_changes import SourceChange


def position_warnings(
    changes: Sequence[SourceChange], origin: Origin | None = None, stale: Collection[str] = ()
) -> list[WarningText]:
    """Return a warning for each changed position; for the arguments, see ``position_changes``."""
    return [WarningText(change) for change in position_changes(changes, origin, stale)]


def position_changes(
    changes: Sequence[SourceChange], origin: Origin | None = None, stale: Collection[str] = ()
) -> list[Message]:
    """Return a message about each partition whose position changes, except for removed partitions.

    For a job without state, ``origin`` is the origin of the new positions. In this case, the
    messages state which records Flink reprocesses or skips. For a job with state, ``origin`` is
    None. In this case, the messages report which records are double-counted in the state or missing
    from it.

    ``stale`` contains the IDs of operators that may have processed records beyond their positions
    (``STALE_POSITIONS``). Messages about these operators do not contain a record count.
    """
    readers = Counter(topic for change in changes for topic in {p.topic for p in change.partitions})
    return [
        _message(planned, origin, is_stale=change.operator_id in stale).about(
            f"operator {change.operator_id}" if readers[planned.topic] > 1 else ""
        )
        for change in changes
        for planned in change.partitions
        if planned.next_offset is not None and planned.difference != 0
    ]


def _message(planned: PlannedPartition, origin: Origin | None, *, is_stale: bool) -> Message:
    by = planned.difference
    if by is None:
        position_set = POSITION_SET_UNDER_STATE if origin is None else POSITION_SET
        return position_set(partition=planned.name, next_offset=planned.next_offset)
    facts: dict[str, Any] = {
        "partition": planned.name,
        "current": planned.current,
        "next_offset": planned.next_offset,
    }
    if is_stale:
        changed = STALE_POSITION_CHANGED_UNDER_STATE if origin is None else STALE_POSITION_CHANGED
        return changed(verb="rewinds" if by < 0 else "advances", **facts)
    facts["records"] = abs(by)
    if by < 0:
        return (PARTITION_REWOUND_UNDER_STATE if origin is None else PARTITION_REWOUND)(**facts)
    if origin is None:
        return PARTITION_ADVANCED_UNDER_STATE(**facts)
    if (reader := reader_of(origin)) is not None:
        return PARTITION_ADVANCED_BEFORE_READER(**facts, reader=reader)
    return PARTITION_ADVANCED(**facts)
