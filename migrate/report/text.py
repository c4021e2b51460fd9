"""Inspections and plans for people: rich tables, and CSV.

Names in a checkpoint are whatever a job's author wrote: they are shown, never obeyed, so control
characters are made visible and rich's markup is never parsed.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from migrate.extract import Severity
from migrate.planning import Plan, PlannedPartition, Verdict
from migrate.report.console import console_for, print_whole
from migrate.report.inspection import InspectReport, OperatorReport, SourceReport
from migrate.wording import counted

_STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}

_POSITION_COLUMNS = ("cluster", "topic", "partition", "state", "next_offset", "stopping_offset")
CSV_COLUMNS = ("operator_id", "name", "uid", "kind", *_POSITION_COLUMNS, "subtask")


def visible(text: str) -> str:
    """Text with its control characters written out, so that it can move no cursor."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def inspection_table(report: InspectReport, out: TextIO) -> str:
    """Tables as wide as the terminal where ``out`` is one; else as wide as they are."""
    console, text = console_for(out)
    _print_inspection(report, console)
    return text.getvalue()


def _print_inspection(report: InspectReport, console: Console) -> None:
    checkpoint = report.checkpoint
    stopped = {"suspend": "job stopped", "terminate": "job drained and stopped"}
    console.print(
        Text(
            f"{checkpoint.kind.value if checkpoint.kind.value != 'unknown' else 'snapshot'} "
            f"{checkpoint.id}, metadata version {checkpoint.metadata_version}"
            + (f", {stopped[checkpoint.stop.value]}" if checkpoint.stop.value in stopped else "")
            + f": {visible(checkpoint.pointer)}"
        ),
        soft_wrap=True,
    )
    for source in report.sources:
        console.print(_heading(source), soft_wrap=True)
        print_whole(console, _positions(source))
    if not report.sources:
        console.print(Text("no Kafka source in this checkpoint"))
    console.print(_operators(report))
    for finding in report.findings:
        line = Text()
        line.append(finding.severity.value, style=_STYLES[finding.severity])
        where = f" {finding.operator_id[:8]}" if finding.operator_id is not None else ""
        line.append(f"{where} {finding.code}: {visible(finding.message)}")
        console.print(line, soft_wrap=True)


def _heading(source: SourceReport) -> Text:
    names = [f"uid {source.uid}" if source.uid else "", source.name or ""]
    shown = ", ".join(visible(name) for name in names if name)
    heading = Text(f"\n{source.kind} {source.operator_id}", style="bold")
    heading.append(
        f"{f' ({shown})' if shown else ''}, parallelism {source.parallelism}", style="not bold"
    )
    return heading


def _positions(source: SourceReport) -> Table:
    clusters = any(position.cluster is not None for position in source.positions)
    table = Table(*(["cluster"] if clusters else []), "topic", box=None)
    table.add_column("partition", justify="right")
    table.add_column("state")
    for column in ("next offset", "stopping offset", "subtask"):
        table.add_column(column, justify="right")
    for position in source.positions:
        table.add_row(
            *([Text(visible(position.cluster or ""))] if clusters else []),
            Text(position.topic),
            str(position.partition),
            position.state.value,
            _number(position.next_offset),
            _number(position.stopping_offset),
            _number(position.subtask),
        )
    return table


def _operators(report: InspectReport) -> Group:
    raw = any(operator.raw_state_bytes for operator in report.operators)
    table = Table(box=None)
    table.add_column("operator", no_wrap=True)
    table.add_column("name", overflow="fold")
    columns = ["parallelism", "keyed bytes", "operator bytes", *(["of them raw"] if raw else [])]
    for column in (*columns, "in flight"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for operator in report.operators:
        table.add_row(
            operator.operator_id[:8],
            Text(visible(operator.name or operator.uid or "")),
            str(operator.parallelism),
            _number(operator.keyed_state_bytes),
            _number(operator.operator_state_bytes),
            *([str(operator.raw_state_bytes)] if raw else []),
            _number(operator.in_flight_bytes),
            Text(visible(", ".join(_states(operator)))),
        )
    return Group(Text("\noperators", style="bold"), table, Text(""))


def _states(operator: OperatorReport) -> list[str]:
    if operator.finished:
        return ["finished"]
    finished = len(operator.finished_subtasks)
    some = [f"{counted(finished, 'subtask')} finished"] if finished else []
    return [*some, *operator.state_names]


def _number(value: int | None) -> str:
    return "" if value is None else str(value)


def inspection_csv(report: InspectReport) -> str:
    """One row per position, with a header."""
    return csv_text(
        CSV_COLUMNS,
        (
            (
                source.operator_id,
                source.name,
                source.uid,
                source.kind,
                *(getattr(position, column) for column in _POSITION_COLUMNS[:3]),
                position.state.value,
                position.next_offset,
                position.stopping_offset,
                position.subtask,
            )
            for source in report.sources
            for position in source.positions
        ),
    )


def csv_text(columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def plan_lines(plan: Plan) -> Iterator[str]:
    """A plan in lines: a total, then each partition that does not simply go on."""
    if not plan.partitions:
        return
    topics = {planned.topic for planned in plan.partitions}
    verdicts = Counter(planned.verdict for planned in plan.partitions)
    counts = ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
    )
    partitions = counted(len(plan.partitions), "partition")
    yield f"{partitions} of {counted(len(topics), 'topic')}: {counts}"
    for planned in plan.partitions:
        cost = "".join(_cost(planned))
        if (planned.verdict is not Verdict.OK or cost) and planned.next_offset is not None:
            yield (
                f"{planned.topic}-{planned.partition}: {planned.verdict.value}, "
                f"from {planned.next_offset}{cost}"
            )


def _cost(planned: PlannedPartition) -> Iterator[str]:
    for what, records in (("loses", planned.lost), ("repeats", planned.repeated)):
        if records != 0:
            amount = "?" if records is None else f"up to {records}"
            yield f", {what} {amount} records"
