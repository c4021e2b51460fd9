"""The effect of changed positions: records that a reader duplicates or skips; no I/O here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from migrate.model.positions import Origin
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted
from migrate.planning.plan import PlannedPartition
from migrate.planning.refusals_and_warnings import reader_clause
from migrate.planning.source_changes import SourceChange


def position_warnings(
    changes: Sequence[SourceChange], origin: Origin | None = None
) -> list[WarningText]:
    """Return a warning for each changed position; for ``origin``, see ``position_changes``."""
    lines = position_changes(changes, origin)
    return [warning_text(WarningCode.POSITION_CHANGED, line) for line in lines]


def position_changes(changes: Sequence[SourceChange], origin: Origin | None = None) -> list[str]:
    """Return a line for each partition whose position changes, except for removed partitions.

    For a job without state, ``origin`` is the origin of the new positions. The lines then state the
    records that Flink reprocesses or skips. For a job with state, ``origin`` is None. The lines
    then report which records are double-counted in the state or missing from it.
    """
    readers = Counter(topic for change in changes for topic in {p.topic for p in change.partitions})
    return [
        (f"operator {change.operator_id}: " if readers[planned.topic] > 1 else "")
        + _line(planned, origin)
        for change in changes
        for planned in change.partitions
        if planned.next_offset is not None and planned.difference != 0
    ]


def _line(planned: PlannedPartition, origin: Origin | None) -> str:
    by = planned.difference
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
    verb = "rewinds" if by < 0 else "advances"
    return f"{planned.name} {verb} from {planned.current} to {planned.next_offset}, so {effect}"
