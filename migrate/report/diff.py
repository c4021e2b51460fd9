"""The models for the JSON of ``migrate diff``, and its table and CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Literal, TextIO

from pydantic import Field

from migrate.model.option_names import option
from migrate.model.positions import Marker, PositionSet, Start, Unknown
from migrate.model.wording import counted, printable
from migrate.planning.diff import Diff, DiffRow, DiffTotals, Relation
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines
from migrate.report.text import csv_text, difference_text, lag_text
from migrate.storage.json_models import Model

# The maximum number of partitions for which each partition has its own row. Above this number, each
# topic has one row.
FOLD_ABOVE = 200

_STYLES = {
    Relation.SAME: "dim",
    Relation.AHEAD: "yellow",
    Relation.BEHIND: "magenta",
    Relation.ONLY_LEFT: "red",
    Relation.ONLY_RIGHT: "red",
    Relation.UNRESOLVED: "bold red",
}

_Count = Annotated[int, Field(ge=0)]
_State = Literal["next", "earliest", "latest", "committed", "unresolved", "absent"]


class SideReport(Model):
    label: str
    note: str


class StartReport(Model):
    """The start of a side. ``next_offset`` is null if unknown."""

    state: _State
    next_offset: _Count | None


class LogReport(Model):
    start: _Count
    end: _Count


class TotalsReport(Model):
    partitions: _Count
    same: _Count
    ahead: _Count
    behind: _Count
    only_left: _Count
    only_right: _Count
    unresolved: _Count
    offsets_ahead: _Count
    offsets_behind: _Count
    lag: _Count | None = Field(description="the sum of the known lags")
    lag_unknown: _Count = Field(
        description="the number of the right side's partitions without a known lag"
    )


class RowReport(Model):
    """A partition. ``difference`` is right minus left; ``records_between`` is an upper bound."""

    topic: str
    partition: _Count
    relation: Relation
    left: StartReport
    right: StartReport
    difference: int | None
    records_between: _Count | None
    log: LogReport | None
    lag: _Count | None = Field(
        description="the log end offset minus the right side's next offset; null if either is "
        "unknown, or if the next offset is higher than the log end offset"
    )


class DiffReport(Model):
    """A comparison of two sides by partition, sorted by topic and partition number."""

    version: Literal[1]
    left: SideReport
    right: SideReport
    differs: bool
    totals: TotalsReport
    partitions: list[RowReport]


def diff_json(diff: Diff) -> str:
    report = DiffReport(
        version=1,
        left=_side(diff.left),
        right=_side(diff.right),
        differs=diff.differs,
        totals=TotalsReport(**asdict(diff.totals)),
        partitions=[_row(row) for row in diff.rows],
    )
    return json.dumps(report.model_dump(mode="json"), indent=2)


def _side(side: PositionSet) -> SideReport:
    # A path is not always valid Unicode, but JSON must be.
    return SideReport(label=printable(side.label), note=printable(side.note))


def _row(row: DiffRow) -> RowReport:
    return RowReport(
        topic=row.topic,
        partition=row.partition,
        relation=row.relation,
        left=StartReport(state=_start_state(row.left), next_offset=row.left_offset),
        right=StartReport(state=_start_state(row.right), next_offset=row.right_offset),
        difference=row.difference,
        records_between=row.records_between,
        log=LogReport(start=row.log.start, end=row.log.end) if row.log is not None else None,
        lag=row.lag,
    )


def _start_state(start: Start) -> _State:
    return start.value if not isinstance(start, int) else "next"


# -- CSV -----------------------------------------------------------------------------------------


_CSV_COLUMNS: dict[str, Callable[[DiffRow], object]] = {
    "topic": lambda row: row.topic,
    "partition": lambda row: row.partition,
    "left": lambda row: row.left_offset,
    "right": lambda row: row.right_offset,
    "difference": lambda row: row.difference,
    "relation": lambda row: row.relation.value,
    "left_state": lambda row: _start_state(row.left),
    "right_state": lambda row: _start_state(row.right),
    "records_between": lambda row: row.records_between,
    "log_start": lambda row: row.log.start if row.log is not None else None,
    "log_end": lambda row: row.log.end if row.log is not None else None,
    "lag": lambda row: row.lag,
}


def diff_csv(diff: Diff) -> str:
    """Return a header and a row for each partition; cells with unknown values are empty."""
    values = _CSV_COLUMNS.values()
    return csv_text(_CSV_COLUMNS, ([value(row) for value in values] for row in diff.rows))


# -- the table -----------------------------------------------------------------------------------


def diff_table(
    diff: Diff, out: TextIO, *, every_partition: bool = False, wide: bool = False
) -> str:
    """Return a table of partitions (or of topics, if there are many partitions) and the totals.

    If ``out`` is a terminal, the table is fitted to the terminal's width, unless ``wide`` is True.
    """
    screen = Screen.of(out)
    lines = []
    for name, side in (("left", diff.left), ("right", diff.right)):
        note = f" ({side.note})" if side.note else ""
        lines.append(f"{name:<5} {printable(side.label + note)}\n")
    folded = len(diff.rows) > FOLD_ABOVE and not every_partition
    if folded:
        topics = list(diff.by_topic.items())
        lines += table_lines(_columns_of_topics(), topics, screen, wide=wide)
    else:
        lines += table_lines(_columns(clipped=diff.is_clipped), diff.rows, screen, wide=wide)
    lines.append(screen.text(totals_line(diff.totals), "bold") + "\n")
    if folded:
        lines.append(f"shown by topic; {option('all_', True)} shows every partition\n")
    return "".join(lines)


def totals_line(totals: DiffTotals) -> str:
    """Return totals like ``7 partitions: 4 same, 2 ahead (by 120 offsets), 1 only on the left``."""
    counts = {
        "same": totals.same,
        f"ahead (by {totals.offsets_ahead} offsets)": totals.ahead,
        f"behind (by {totals.offsets_behind} offsets)": totals.behind,
        "only on the left": totals.only_left,
        "only on the right": totals.only_right,
        "unresolved": totals.unresolved,
    }
    texts = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return counted(totals.partitions, "partition") + (f": {texts}" if texts else "")


def _columns(*, clipped: bool) -> tuple[Column[DiffRow], ...]:
    return (
        Column("RELATION", lambda row: row.relation.value, style=lambda row: _STYLES[row.relation]),
        Column("TOPIC", lambda row: row.topic, own_line=Line.ABOVE),
        Column("PARTITION", lambda row: row.partition),
        Column("LEFT", lambda row: start_text(row.left, row.left_offset), right=True),
        Column("RIGHT", lambda row: start_text(row.right, row.right_offset), right=True),
        Column("DIFFERENCE", lambda row: difference_text(row.difference), right=True),
        Column("OFFSETS-BETWEEN", lambda row: row.records_between, wide=not clipped, drop_order=1),
        Column("LOG-START-OFFSET", lambda row: row.log.start if row.log else None, drop_order=3),
        Column("LOG-END-OFFSET", lambda row: row.log.end if row.log else None, drop_order=2),
        Column("LAG", lambda row: row.lag, drop_order=1),
    )


_Topic = tuple[str, DiffTotals]


def _columns_of_topics() -> tuple[Column[_Topic], ...]:
    def counts(heading: str, count: Callable[[DiffTotals], int]) -> Column[_Topic]:
        return Column(heading, lambda topic: count(topic[1]) or None, total=True)

    def partitions(relation: Relation) -> Column[_Topic]:
        return counts(relation.value.upper(), lambda totals: totals.of(relation))

    return (
        Column("TOPIC", lambda topic: topic[0], own_line=Line.ABOVE),
        counts("PARTITIONS", lambda totals: totals.partitions),
        *map(partitions, Relation),
        counts("OFFSETS-AHEAD", lambda totals: totals.offsets_ahead),
        counts("OFFSETS-BEHIND", lambda totals: totals.offsets_behind),
        Column("LAG", lambda topic: lag_text(topic[1].lag, topic[1].lag_unknown), right=True),
    )


def start_text(start: Start, next_offset: int | None) -> str:
    """Return the text for a start.

    The text is an offset; a marker, with its offset if known (``earliest = 5``); ``unresolved``; or
    ``-`` for an absent partition.
    """
    match start:
        case Unknown.ABSENT:
            return "-"
        case Marker() | Unknown():
            return start.value if next_offset is None else f"{start.value} = {next_offset}"
        case _:
            return str(start)
