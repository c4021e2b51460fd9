"""``migrate inspect`` for people: tables.

Names in a checkpoint are whatever a job's author wrote: they are shown, never obeyed, so control
characters are made visible and rich's markup is never parsed.
"""

from __future__ import annotations

from typing import TextIO

from rich.console import Group
from rich.table import Table
from rich.text import Text

from decoder.metadata.model import CheckpointKind, Operator, StopKind
from migrate.extract import Extraction, Severity, Source
from migrate.report.console import console_for, print_whole
from migrate.report.text import number_text
from migrate.wording import counted, visible

_STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_STOPPED = {
    StopKind.SUSPEND: ", job stopped",
    StopKind.TERMINATE: ", job drained and stopped",
}


def inspection_table(extraction: Extraction, out: TextIO) -> str:
    """Tables as wide as the terminal where ``out`` is one; else as wide as they are."""
    console, text = console_for(out)
    checkpoint = extraction.checkpoint
    kind = checkpoint.type.kind
    console.print(
        Text(
            f"{kind.value if kind is not CheckpointKind.UNKNOWN else 'snapshot'} "
            f"{checkpoint.checkpoint_id}, metadata version {checkpoint.metadata_version}"
            f"{_STOPPED.get(checkpoint.type.stop, '')}: {visible(checkpoint.pointer)}"
        ),
        soft_wrap=True,
    )
    for source in extraction.sources:
        console.print(_heading(source), soft_wrap=True)
        print_whole(console, _positions(source))
    if not extraction.sources:
        console.print(Text("no Kafka source in this checkpoint"))
    console.print(_operators(checkpoint.operators))
    for finding in extraction.findings:
        line = Text()
        line.append(finding.severity.value, style=_STYLES[finding.severity])
        where = f" {finding.operator_id[:8]}" if finding.operator_id is not None else ""
        line.append(f"{where} {finding.code}: {visible(finding.message)}")
        console.print(line, soft_wrap=True)
    return text.getvalue()


def _heading(source: Source) -> Text:
    names = [f"uid {source.uid}" if source.uid else "", source.name or ""]
    shown = ", ".join(visible(name) for name in names if name)
    heading = Text(f"\n{source.kind.value} {source.operator_id}", style="bold")
    heading.append(
        f"{f' ({shown})' if shown else ''}, parallelism {source.parallelism}", style="not bold"
    )
    return heading


def _positions(source: Source) -> Table:
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
            number_text(position.next_offset),
            number_text(position.stopping_offset),
            number_text(position.subtask),
        )
    return table


def _operators(operators: tuple[Operator, ...]) -> Group:
    raw = any(operator.raw_state_bytes for operator in operators)
    table = Table(box=None)
    table.add_column("operator", no_wrap=True)
    table.add_column("name", overflow="fold")
    columns = ["parallelism", "keyed bytes", "operator bytes", *(["of them raw"] if raw else [])]
    for column in (*columns, "in flight"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("state", overflow="fold")
    for operator in operators:
        table.add_row(
            operator.operator_id[:8],
            Text(visible(operator.name or operator.uid or "")),
            str(operator.parallelism),
            number_text(operator.keyed_state_bytes),
            number_text(operator.operator_state_bytes),
            *([str(operator.raw_state_bytes)] if raw else []),
            number_text(operator.in_flight_bytes),
            Text(visible(", ".join(_states(operator)))),
        )
    return Group(Text("\noperators", style="bold"), table, Text(""))


def _states(operator: Operator) -> list[str]:
    if operator.finished:
        return ["finished"]
    finished = len(operator.finished_subtasks)
    some = [f"{counted(finished, 'subtask')} finished"] if finished else []
    return [*some, *operator.state_names]
