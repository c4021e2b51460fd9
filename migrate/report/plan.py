"""A plan for a consumer group, and what came of it, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from migrate.model.positions import Marker
from migrate.model.wording import counted, printable
from migrate.planning import PlannedPartition, Verdict
from migrate.report.table import Column, Line, draw, numbers
from migrate.report.text import Screen, difference_text, number_text

if TYPE_CHECKING:
    from migrate.model.cluster_snapshot import Committed
    from migrate.targets.group.commit import ChangeOutcome
    from migrate.targets.group.rollback_decision import RestoredOffset


def plan_table(partitions: Sequence[PlannedPartition], out: TextIO, *, wide: bool = False) -> str:
    """The change, partition by partition."""
    told = any(_position(one) != number_text(one.next_offset) for one in partitions)
    columns: tuple[Column[PlannedPartition], ...] = (
        Column("TOPIC", lambda one: printable(one.topic), apart=Line.ABOVE),
        numbers("PARTITION", lambda one: one.partition),
        # What the checkpoint says is worth a column where that is not what is written.
        Column("CHECKPOINT", _position, right=True, wide=not told, spare=2),
        Column("FROM", _origin, wide=True),
        numbers("CURRENT-OFFSET", lambda one: one.current),
        numbers("NEW-OFFSET", lambda one: one.next_offset),
        Column("DIFFERENCE", lambda one: difference_text(one.difference), right=True, spare=3),
        numbers("LOG-START-OFFSET", lambda one: one.log_start, wide=True),
        numbers("LOG-END-OFFSET", lambda one: one.log_end, spare=1),
        numbers("LAG", lambda one: one.records_left, total_of=partitions),
        Column("VERDICT", lambda one: one.verdict.value, style=_style),
        _records("LOST", lambda one: one.lost, partitions),
        _records("REPEATED", lambda one: one.repeated, partitions),
    )
    return "".join(draw(columns, partitions, Screen.of(out), wide=wide))


def _position(planned: PlannedPartition) -> str:
    position = planned.position
    return position.value if isinstance(position, Marker) else number_text(position)


def _origin(planned: PlannedPartition) -> str:
    """The operator and, where a reader held it, the subtask."""
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
        case _:  # not as one would have it, and allowed
            return "yellow"


def _records(
    heading: str,
    count: Callable[[PlannedPartition], int | None],
    partitions: Sequence[PlannedPartition],
) -> Column[PlannedPartition]:
    """Numbers of records; ``?`` where nobody can tell one, and nothing where there is none."""
    counts = list(map(count, partitions))
    known = sum(one or 0 for one in counts)
    total = str(known) if None not in counts else f"{known}+?" if known else "?"
    return Column(
        heading,
        lambda one: number_text(count(one), "?") if count(one) != 0 else "",
        right=True,
        total=total,
    )


def restoration_table(
    partitions: Sequence[RestoredOffset], out: TextIO, *, wide: bool = False
) -> str:
    """What is brought back, partition by partition."""

    def held(committed: Committed | None) -> str:
        return "none" if committed is None else str(committed.next_offset)

    columns: tuple[Column[RestoredOffset], ...] = (
        Column("TOPIC", lambda one: printable(one.topic), apart=Line.ABOVE),
        numbers("PARTITION", lambda one: one.partition),
        Column("CURRENT-OFFSET", lambda one: held(one.now), right=True),
        Column("NEW-OFFSET", lambda one: held(one.target), right=True),
        numbers("LOG-START-OFFSET", lambda one: one.log.start if one.log else None, spare=2),
        numbers("LOG-END-OFFSET", lambda one: one.log.end if one.log else None, spare=1),
        Column("DOUBT", lambda one: one.doubt.value if one.doubt else "", style=lambda _: "red"),
    )
    return "".join(draw(columns, partitions, Screen.of(out), wide=wide))


def outcome_lines(outcome: ChangeOutcome) -> Iterator[str]:
    """What came of a change: a total, then each partition that is not as it should be."""
    from migrate.targets.group.commit import Applied, Result

    if outcome.applied is Applied.NOTHING_TO_DO:
        yield f"nothing to do: group {outcome.group} holds these offsets"
        return
    done = [one.target for one in outcome.partitions if one.result is Result.COMMITTED]
    removed = done.count(None)
    yield f"group {outcome.group}: {outcome.applied.value}; {_done(len(done) - removed, removed)}"
    for one in outcome.partitions:
        if one.result in (Result.COMMITTED, Result.UNCHANGED):
            continue
        failure = one.failure
        why = f": {failure.code}, {failure.reason}" if failure is not None else ""
        held = "" if one.now is None else f"; it holds {one.now.next_offset}"
        yield f"{printable(one.topic)}-{one.partition} {one.result.value}{why}{held}"


def _done(written: int, removed: int) -> str:
    if removed and not written:
        return f"{counted(removed, 'offset')} removed"
    also = f", {removed} removed" if removed else ""
    return f"{counted(written, 'offset')} written and read back{also}"
