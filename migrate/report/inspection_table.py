"""The tables of ``migrate inspect``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from decoder import CheckpointKind, Operator, StopKind
from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.source import Source
from migrate.model.finding import Code, Finding, Severity
from migrate.model.positions import Position
from migrate.model.wording import counted, printable
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, table_lines
from migrate.report.text import operator_names

_STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_STOPPED = {StopKind.SUSPEND: ", job stopped", StopKind.TERMINATE: ", job drained and stopped"}


def inspection_table(extraction: Extraction, out: TextIO, *, wide: bool = False) -> str:
    """Return tables of positions and operators, and the findings.

    Without ``wide``, the tables are fitted to the terminal width, if possible.
    """
    return "".join(_lines(extraction, Screen.of(out), wide))


def _lines(extraction: Extraction, screen: Screen, wide: bool) -> Iterator[str]:
    checkpoint = extraction.checkpoint
    kind = checkpoint.type.kind
    yield (
        f"{kind.value if kind is not CheckpointKind.UNKNOWN else 'snapshot'} "
        f"{checkpoint.checkpoint_id}, metadata version {checkpoint.metadata_version}"
        f"{_STOPPED.get(checkpoint.type.stop, '')}: {printable(checkpoint.pointer)}\n"
    )
    for source in extraction.sources:
        yield _heading(source, screen)
        yield from table_lines(_POSITIONS, source.positions, screen, wide=wide)
    if not extraction.sources:
        yield "no Kafka source in this checkpoint\n"
    yield "\n" + screen.text("operators", "bold") + "\n"
    operators = checkpoint.operators
    yield from table_lines(_columns(operators), operators, screen, wide=wide)
    yield "\n"
    for finding in shown_findings(extraction, wide=wide):
        where = f" {finding.operator_id[:8]}" if finding.operator_id is not None else ""
        severity = screen.text(finding.severity.value, _STYLES[finding.severity])
        yield f"{severity}{where} {finding.code}: {printable(finding.message)}\n"


def shown_findings(extraction: Extraction, *, wide: bool) -> list[Finding]:
    """Return the findings that the table shows; the Flink release is included only if ``wide``."""
    return [
        finding for finding in extraction.findings if wide or finding.code is not Code.WRITTEN_BY
    ]


def _heading(source: Source, screen: Screen) -> str:
    heading = screen.text(f"{source.kind.value} {source.operator_id}", "bold")
    names = operator_names(source.uid, source.name)
    return f"\n{heading}{names}, parallelism {source.parallelism}\n"


_POSITIONS: tuple[Column[Position], ...] = (
    Column("CLUSTER", lambda position: position.cluster),
    Column("TOPIC", lambda position: position.topic, own_line=Line.ABOVE),
    Column("PARTITION", lambda position: position.partition),
    Column("STATE", lambda position: position.state.value),
    Column("NEXT-OFFSET", lambda position: position.next_offset),
    Column("STOPPING-OFFSET", lambda position: position.stopping_offset),
    Column("SUBTASK", lambda position: position.subtask, drop_order=1),
)


def _columns(operators: Sequence[Operator]) -> tuple[Column[Operator], ...]:
    raw = any(operator.raw_state_bytes for operator in operators)
    in_flight = any(operator.in_flight_bytes for operator in operators)
    return (
        Column("OPERATOR", lambda operator: operator.operator_id[:8]),
        Column("NAME", lambda operator: operator.name or operator.uid or "", own_line=Line.BELOW),
        Column("PARALLELISM", lambda operator: operator.parallelism),
        Column("KEYED-BYTES", lambda operator: operator.keyed_state_bytes, total=True),
        Column("OPERATOR-BYTES", lambda operator: operator.operator_state_bytes, total=True),
        Column("RAW-BYTES", lambda operator: operator.raw_state_bytes, total=True, wide=not raw),
        Column(
            "IN-FLIGHT", lambda operator: operator.in_flight_bytes, total=True, wide=not in_flight
        ),
        Column("STATE", lambda operator: ", ".join(_states(operator)), own_line=Line.BELOW),
    )


def _states(operator: Operator) -> list[str]:
    if operator.finished:
        return ["finished"]
    finished = len(operator.finished_subtasks)
    some = [f"{counted(finished, 'subtask')} finished"] if finished else []
    return [*some, *map(printable, operator.state_names)]
