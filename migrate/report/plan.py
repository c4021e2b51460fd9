"""A plan for a consumer group, and what came of it, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.table import Table
from rich.text import Text

from migrate.planning import PlannedPartition
from migrate.positions import Marker
from migrate.report.text import console_for, difference_text, number_text, print_whole
from migrate.wording import counted, visible

if TYPE_CHECKING:
    from migrate.group.commit import ChangeOutcome
    from migrate.group.restoration import Restored


def plan_table(partitions: Sequence[PlannedPartition], out: TextIO) -> str:
    """The change, partition by partition."""
    table = Table("topic", box=None)
    for column in (
        *("partition", "checkpoint", "from", "now", "next offset"),
        *("difference", "left", "log start", "log end"),
    ):
        table.add_column(column, justify="right")
    table.add_column("verdict")
    for column in ("lost", "repeated"):
        table.add_column(column, justify="right")
    for planned in partitions:
        table.add_row(
            Text(visible(planned.topic)),
            str(planned.partition),
            planned.position.value
            if isinstance(planned.position, Marker)
            else number_text(planned.position),
            _origin(planned),
            number_text(planned.current),
            number_text(planned.next_offset),
            difference_text(planned.difference),
            number_text(planned.records_left),
            number_text(planned.log_start),
            number_text(planned.log_end),
            planned.verdict.value,
            number_text(planned.lost, "?") if planned.lost != 0 else "",
            number_text(planned.repeated, "?") if planned.repeated != 0 else "",
        )
    return _render(table, out)


def _origin(planned: PlannedPartition) -> str:
    """The operator and, where a reader held it, the subtask."""
    if planned.operator_id is None:
        return ""
    subtask = "" if planned.subtask is None else f"/{planned.subtask}"
    return planned.operator_id[:8] + subtask


def restoration_table(partitions: Iterable[Restored], out: TextIO) -> str:
    """What is brought back, partition by partition."""
    table = Table("topic", box=None)
    for column in ("partition", "now", "then", "log start", "log end"):
        table.add_column(column, justify="right")
    table.add_column("doubt")
    for restored in partitions:
        now, then = restored.now, restored.then
        table.add_row(
            Text(visible(restored.topic)),
            str(restored.partition),
            "none" if now is None else str(now.next_offset),
            "none" if then is None else str(then.next_offset),
            number_text(restored.log.start if restored.log is not None else None),
            number_text(restored.log.end if restored.log is not None else None),
            restored.doubt.value if restored.doubt is not None else "",
        )
    return _render(table, out)


def outcome_lines(outcome: ChangeOutcome) -> Iterator[str]:
    """What came of a change: a total, then each partition that is not as it should be."""
    from migrate.group.commit import Applied, Result

    if outcome.applied is Applied.NOTHING_TO_DO:
        yield f"nothing to do: group {outcome.group} holds these offsets"
        return
    done = [one.wanted for one in outcome.partitions if one.result is Result.COMMITTED]
    removed = done.count(None)
    yield f"group {outcome.group}: {outcome.applied.value}; {_done(len(done) - removed, removed)}"
    for one in outcome.partitions:
        if one.result in (Result.COMMITTED, Result.UNCHANGED):
            continue
        failure = one.failure
        why = f": {failure.code}, {failure.reason}" if failure is not None else ""
        held = "" if one.now is None else f"; it holds {one.now.next_offset}"
        yield f"{visible(one.topic)}-{one.partition} {one.result.value}{why}{held}"


def _done(written: int, removed: int) -> str:
    if removed and not written:
        return f"{counted(removed, 'offset')} removed"
    also = f", {removed} removed" if removed else ""
    return f"{counted(written, 'offset')} written and read back{also}"


def _render(table: Table, out: TextIO) -> str:
    console, text = console_for(out)
    print_whole(console, table)
    return text.getvalue()
