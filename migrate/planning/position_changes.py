"""The effect of changed positions: records that a reader duplicates or skips; no I/O here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from migrate.model.positions import Origin
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted
from migrate.planning.plan import PlannedPartition
from migrate.planning.refusals_and_warnings import reader_clause
from migrate.planning.source_changes import SourceChange


def position_warnings(
    changes: Sequence[SourceChange], origin: Origin | None = None, stale: Collection[str] = ()
) -> list[WarningText]:
    """Return a warning for each changed position; the arguments are as in ``position_changes``."""
    lines = position_changes(changes, origin, stale)
    return [warning_text(WarningCode.POSITION_CHANGED, line) for line in lines]


def position_changes(
    changes: Sequence[SourceChange], origin: Origin | None = None, stale: Collection[str] = ()
) -> list[str]:
    """Return a line for each partition whose position changes, except for removed partitions.

    For a job without state, ``origin`` is the origin of the new positions. In this case, the lines
    state which records Flink reprocesses or skips. For a job with state, ``origin`` is None. In
    this case, the lines report which records are double-counted in the state or missing from it.

    ``stale`` are the IDs of operators that may have processed records beyond their positions
    (``STALE_POSITIONS``). Their lines contain no number of records.
    """
    readers = Counter(topic for change in changes for topic in {p.topic for p in change.partitions})
    return [
        (f"operator {change.operator_id}: " if readers[planned.topic] > 1 else "")
        + _line(planned, origin, is_stale=change.operator_id in stale)
        for change in changes
        for planned in change.partitions
        if planned.next_offset is not None and planned.difference != 0
    ]


def _line(planned: PlannedPartition, origin: Origin | None, *, is_stale: bool) -> str:
    by = planned.difference
    if by is not None and is_stale:
        effect = "are double-counted or missing" if origin is None else "Flink reprocesses or skips"
        return (
            f"{planned.name} {_verb(by)} from {planned.current} to {planned.next_offset}, and the "
            f"job may have processed records beyond {planned.current}, so migrate cannot determine "
            f"how many records {effect}"
        )
    if by is None:
        effect = ""
        if origin is None:
            effect = ", and migrate cannot determine how many of its records are in the state"
        return f"{planned.name} resumes from {planned.next_offset}{effect}"
    records = f"up to {counted(abs(by), 'record')}"
    if origin is None:
        verb = "is" if abs(by) == 1 else "are"
        effect = f"{records} {verb} {'double-counted' if by < 0 else 'missing from the state'}"
    elif by < 0:
        effect = f"Flink reprocesses {records}"
    else:
        effect = f"Flink skips {records}{reader_clause(origin)}"
    return (
        f"{planned.name} {_verb(by)} from {planned.current} to {planned.next_offset}, so {effect}"
    )


def _verb(by: int) -> str:
    return "rewinds" if by < 0 else "advances"
