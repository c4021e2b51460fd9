"""``migrate inspect`` for people: tables.

Names in a checkpoint are whatever a job's author wrote: they are shown, never obeyed, so control
characters are made visible and rich's markup is never parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from decoder import CheckpointKind, Operator, StopKind
from migrate.flink.extract import Extraction, Severity, Source
from migrate.report.text import console_for, number_text, print_whole, width_of
from migrate.wording import counted, visible

_STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_STOPPED = {
    StopKind.SUSPEND: ", job stopped",
    StopKind.TERMINATE: ", job drained and stopped",
}

_OPERATORS = Text("\noperators", style="bold")
# In letters: what names and states have of a line between them, if they are to be read.
_ROOM_FOR_NAMES = 20


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
    console.print(_operators(checkpoint.operators, console))
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


def _operators(operators: tuple[Operator, ...], console: Console) -> Group:
    """A table; where a terminal is too narrow for it the headers are broken, names and states
    wrapped, and where these would have no room beside the numbers, put below them."""
    numbers = _numbers(operators)
    table = _operator_table(operators, numbers, names=True)
    if width_of(console, table) > console.width:
        numbers = {header.replace(" ", "\n"): number for header, number in numbers.items()}
        alone = _operator_table(operators, numbers, names=False)
        if console.width - width_of(console, alone) < _ROOM_FOR_NAMES:
            return Group(_OPERATORS, *_entries(operators), Text(""))
        table = _operator_table(operators, numbers, names=True)
    return Group(_OPERATORS, table, Text(""))


def _numbers(operators: tuple[Operator, ...]) -> dict[str, Callable[[Operator], int | None]]:
    """What is told of an operator in numbers, by the header of their column."""
    raw = any(operator.raw_state_bytes for operator in operators)
    return {
        "parallelism": lambda operator: operator.parallelism,
        "keyed bytes": lambda operator: operator.keyed_state_bytes,
        "operator bytes": lambda operator: operator.operator_state_bytes,
        **({"of them raw": lambda operator: operator.raw_state_bytes} if raw else {}),
        "in flight": lambda operator: operator.in_flight_bytes,
    }


def _operator_table(
    operators: tuple[Operator, ...],
    numbers: Mapping[str, Callable[[Operator], int | None]],
    *,
    names: bool,
) -> Table:
    table = Table(box=None)
    table.add_column("operator", no_wrap=True)
    if names:
        table.add_column("name", overflow="fold")
    for header in numbers:
        table.add_column(header, justify="right", no_wrap=True)
    if names:
        table.add_column("state", overflow="fold")
    for operator in operators:
        told = [number_text(number(operator)) for number in numbers.values()]
        table.add_row(
            operator.operator_id[:8],
            *([_name(operator)] if names else []),
            *told,
            *([Text(", ".join(_states(operator)))] if names else []),
        )
    return table


def _entries(operators: tuple[Operator, ...]) -> Iterator[RenderableType]:
    """An entry of some lines for each operator."""
    numbers = _numbers(operators)
    for operator in operators:
        yield Text(f" {operator.operator_id[:8]} ").append(_name(operator))
        told = (
            f"{header} {number_text(number(operator), '?')}" for header, number in numbers.items()
        )
        for line in (", ".join(told), ", ".join(_states(operator))):
            if line:
                yield Padding(Text(line, overflow="fold"), (0, 0, 0, 3))


def _name(operator: Operator) -> Text:
    return Text(visible(operator.name or operator.uid or ""), overflow="fold")


def _states(operator: Operator) -> list[str]:
    if operator.finished:
        return ["finished"]
    finished = len(operator.finished_subtasks)
    some = [f"{counted(finished, 'subtask')} finished"] if finished else []
    return [*some, *map(visible, operator.state_names)]
