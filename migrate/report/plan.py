"""Tables for a plan and a rollback, and lines about the outcome of a change to a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from migrate.model.positions import Marker
from migrate.model.wording import counted, printable
from migrate.planning import PlannedPartition, Verdict
from migrate.planning.plan import MatchOutcome
from migrate.report.table import Column, Line, table_text
from migrate.report.text import difference_text

if TYPE_CHECKING:
    from migrate.model.cluster_snapshot import Committed
    from migrate.targets.group.commit import ChangeOutcome
    from migrate.targets.group.rollback_decision import RestoredOffset


def plan_table(partitions: Sequence[PlannedPartition], out: TextIO, *, wide: bool = False) -> str:
    """Return a plan's table of partitions."""
    differs = any(_position(row) != row.next_offset for row in partitions)
    is_translated = any(row.translation is not None for row in partitions)
    proof = Column("SAME-RECORDS", _proof, right=True, drop_order=4)
    columns: tuple[Column[PlannedPartition], ...] = (
        Column("TOPIC", lambda row: row.topic, own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row.partition),
        # Without --wide, this column is shown only if it differs from NEW-OFFSET in some row.
        Column("CHECKPOINT", _position, right=True, wide=not differs, drop_order=2),
        Column("FROM", _origin, wide=True),
        Column("CURRENT-OFFSET", lambda row: row.current),
        Column("NEW-OFFSET", lambda row: row.next_offset),
        Column("DIFFERENCE", lambda row: difference_text(row.difference), right=True, drop_order=3),
        Column("LOG-START-OFFSET", lambda row: row.log_start, wide=True),
        Column("LOG-END-OFFSET", lambda row: row.log_end, drop_order=1),
        Column("LAG", lambda row: row.records_left, total=True),
        Column("VERDICT", lambda row: row.verdict.value, style=_style),
        *((proof,) if is_translated else ()),
        _records("LOST", lambda row: row.lost, partitions),
        _records("REPEATED", lambda row: row.repeated, partitions),
    )
    return table_text(columns, partitions, out, wide=wide)


def _position(planned: PlannedPartition) -> str | int | None:
    position = planned.position
    return position.value if isinstance(position, Marker) else position


def _proof(planned: PlannedPartition) -> str:
    """Return the numbers of matching records before and after a position, such as ``100+98``.

    Any outcome except MATCHED is appended.
    """
    proof = planned.translation
    if proof is None:
        return ""
    counts = f"{proof.before}+{proof.after}"
    return counts if proof.outcome is MatchOutcome.MATCHED else f"{counts}, {proof.outcome.value}"


def _origin(planned: PlannedPartition) -> str:
    """Return the first digits of the operator ID, and the subtask if known."""
    if planned.operator_id is None:
        return ""
    subtask = "" if planned.subtask is None else f"/{planned.subtask}"
    return planned.operator_id[:8] + subtask


def _style(planned: PlannedPartition) -> str:
    if planned.problem:
        return "bold red"
    match planned.verdict:
        case Verdict.OK:
            return "green"
        case Verdict.MARKER_RESOLVED | Verdict.NEW_PARTITION | Verdict.FINISHED:
            return ""
        case _:  # suspect, or a problem that the user has allowed
            return "yellow"


def _records(
    heading: str,
    count: Callable[[PlannedPartition], int | None],
    partitions: Sequence[PlannedPartition],
) -> Column[PlannedPartition]:
    """Return a column of record counts: ``?`` if unknown, empty for 0."""
    counts = list(map(count, partitions))
    known = sum(value or 0 for value in counts)
    total = str(known) if None not in counts else f"{known}+?" if known else "?"
    return Column(
        heading,
        lambda row: "?" if count(row) is None else count(row) or None,
        right=True,
        total=total,
    )


def restoration_table(
    partitions: Sequence[RestoredOffset], out: TextIO, *, wide: bool = False
) -> str:
    """Return a table of the partitions that a rollback changes."""
    columns: tuple[Column[RestoredOffset], ...] = (
        Column("TOPIC", lambda row: row.topic, own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row.partition),
        Column("CURRENT-OFFSET", lambda row: committed_text(row.now), right=True),
        Column("NEW-OFFSET", _new_offset, right=True),
        Column("LOG-START-OFFSET", lambda row: row.log.start if row.log else None, drop_order=2),
        Column("LOG-END-OFFSET", lambda row: row.log.end if row.log else None, drop_order=1),
        Column("DOUBT", lambda row: row.doubt.value if row.doubt else "", style=lambda _: "red"),
    )
    return table_text(columns, partitions, out, wide=wide)


def _new_offset(row: RestoredOffset) -> str:
    return "omitted" if row.omitted else committed_text(row.target)


def committed_text(committed: Committed | None) -> str:
    return "none" if committed is None else str(committed.next_offset)


def outcome_lines(outcome: ChangeOutcome) -> Iterator[str]:
    """Yield the totals of a change's outcome, then a line for each partition with a problem."""
    from migrate.targets.group.commit import Applied, Result

    if outcome.applied is Applied.NOTHING_TO_DO:
        yield f"nothing to do; group {outcome.group} already has these offsets"
        return
    done = [row.target for row in outcome.partitions if row.result is Result.COMMITTED]
    removed = done.count(None)
    yield f"group {outcome.group}: {outcome.applied.value}; {_counts(len(done) - removed, removed)}"
    for row in outcome.partitions:
        if row.result in (Result.COMMITTED, Result.UNCHANGED):
            continue
        failure = row.failure
        why = f": {failure.code}, {failure.reason}" if failure is not None else ""
        if failure is not None and failure.answer_lost:
            why += "; the broker may still execute the request"
        current = "" if row.now is None else f"; its offset is {row.now.next_offset}"
        yield f"{printable(row.topic)}-{row.partition} {row.result.value}{why}{current}"


def _counts(written: int, removed: int) -> str:
    if removed and not written:
        return f"{counted(removed, 'offset')} removed"
    also = f", {removed} removed" if removed else ""
    return f"{counted(written, 'offset')} written and read back{also}"
