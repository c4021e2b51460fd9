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
from migrate.plan import Plan, Verdict
from migrate.report.console import console_for
from migrate.report.inspection import InspectReport, SourceReport
from migrate.verify import Verification

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
        console.print(_source(source))
    if not report.sources:
        console.print(Text("no Kafka source in this checkpoint"))
    console.print(_operators(report))
    for finding in report.findings:
        line = Text()
        line.append(finding.severity.value, style=_STYLES[finding.severity])
        where = f" {finding.operator_id[:8]}" if finding.operator_id is not None else ""
        line.append(f"{where} {finding.code}: {visible(finding.message)}")
        console.print(line, soft_wrap=True)


def _source(source: SourceReport) -> Group:
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
    names = [f"uid {source.uid}" if source.uid else "", source.name or ""]
    shown = ", ".join(visible(name) for name in names if name)
    heading = Text(f"\n{source.kind} {source.operator_id}", style="bold")
    heading.append(
        f"{f' ({shown})' if shown else ''}, parallelism {source.parallelism}", style="not bold"
    )
    return Group(heading, table)


def _operators(report: InspectReport) -> Group:
    table = Table("operator", "name", box=None)
    for column in ("parallelism", "keyed bytes", "operator bytes", "in flight"):
        table.add_column(column, justify="right")
    table.add_column("state")
    for operator in report.operators:
        state = ["finished"] if operator.finished else operator.state_names
        table.add_row(
            operator.operator_id[:8],
            Text(visible(operator.name or operator.uid or "")),
            str(operator.parallelism),
            _number(operator.keyed_state_bytes),
            _number(operator.operator_state_bytes),
            _number(operator.in_flight_bytes),
            Text(visible(", ".join(state))),
        )
    return Group(Text("\noperators", style="bold"), table, Text(""))


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


def verification_table(verification: Verification, out: TextIO) -> str:
    """How the target started, partition by partition, and a total."""
    console, text = console_for(out)
    table = Table("topic", box=None)
    for column in ("partition", "checkpoint", "started"):
        table.add_column(column, justify="right")
    table.add_column("outcome")
    table.add_column("records", justify="right")
    for one in verification.partitions:
        expected = one.expected if isinstance(one.expected, int) else one.expected.value
        table.add_row(
            Text(visible(one.topic)),
            str(one.partition),
            str(expected),
            _number(one.started),
            one.outcome.value,
            str(one.records or ""),
        )
    console.print(table)
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in verification.counts.items())
    console.print(Text(f"{visible(verification.target)}: {counts}", style="bold"), soft_wrap=True)
    return text.getvalue()


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def plan_lines(plan: Plan) -> Iterator[str]:
    """A plan in lines: a total, then each partition that does not simply go on."""
    if not plan.partitions:
        return
    topics = {planned.topic for planned in plan.partitions}
    verdicts = Counter(planned.verdict for planned in plan.partitions)
    counts = ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
    )
    partitions = _counted(len(plan.partitions), "partition")
    yield f"{partitions} of {_counted(len(topics), 'topic')}: {counts}"
    for planned in plan.partitions:
        if planned.verdict is not Verdict.OK and planned.next_offset is not None:
            yield (
                f"{planned.topic}-{planned.partition}: {planned.verdict.value}, "
                f"from {planned.next_offset}"
            )
