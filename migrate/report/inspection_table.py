"""``migrate inspect`` for people: tables.

Names in a checkpoint are whatever a job's author wrote: they are shown, never obeyed, so control
characters are made visible and nothing in them is markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from decoder import CheckpointKind, Operator, StopKind
from migrate.flink.extract import Extraction, Severity, Source
from migrate.positions import Position
from migrate.report.screen import Screen
from migrate.report.table import Column, Line, draw, numbers
from migrate.wording import counted, visible

_STYLES = {Severity.BLOCKER: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "dim"}
_STOPPED = {
    StopKind.SUSPEND: ", job stopped",
    StopKind.TERMINATE: ", job drained and stopped",
}


def inspection_table(extraction: Extraction, out: TextIO, *, wide: bool = False) -> str:
    """Tables as wide as the terminal where ``out`` is one; else as wide as they are."""
    return "".join(_lines(extraction, Screen.of(out), wide))


def _lines(extraction: Extraction, screen: Screen, wide: bool) -> Iterator[str]:
    checkpoint = extraction.checkpoint
    kind = checkpoint.type.kind
    yield (
        f"{kind.value if kind is not CheckpointKind.UNKNOWN else 'snapshot'} "
        f"{checkpoint.checkpoint_id}, metadata version {checkpoint.metadata_version}"
        f"{_STOPPED.get(checkpoint.type.stop, '')}: {visible(checkpoint.pointer)}\n"
    )
    for source in extraction.sources:
        yield _heading(source, screen)
        yield from draw(_POSITIONS, source.positions, screen, wide=wide)
    if not extraction.sources:
        yield "no Kafka source in this checkpoint\n"
    yield "\n" + screen.text("operators", "bold") + "\n"
    operators = checkpoint.operators
    yield from draw(_columns(operators), operators, screen, wide=wide)
    yield "\n"
    for finding in extraction.findings:
        where = f" {finding.operator_id[:8]}" if finding.operator_id is not None else ""
        severity = screen.text(finding.severity.value, _STYLES[finding.severity])
        yield f"{severity}{where} {finding.code}: {visible(finding.message)}\n"


def _heading(source: Source, screen: Screen) -> str:
    names = [f"uid {source.uid}" if source.uid else "", source.name or ""]
    shown = ", ".join(visible(name) for name in names if name)
    heading = screen.text(f"{source.kind.value} {source.operator_id}", "bold")
    return f"\n{heading}{f' ({shown})' if shown else ''}, parallelism {source.parallelism}\n"


_POSITIONS: tuple[Column[Position], ...] = (
    Column("CLUSTER", lambda one: visible(one.cluster or "")),
    Column("TOPIC", lambda one: visible(one.topic), apart=Line.ABOVE),
    numbers("PARTITION", lambda one: one.partition),
    Column("STATE", lambda one: one.state.value),
    numbers("NEXT-OFFSET", lambda one: one.next_offset),
    numbers("STOPPING-OFFSET", lambda one: one.stopping_offset),
    numbers("SUBTASK", lambda one: one.subtask, spare=1),
)


def _columns(operators: Sequence[Operator]) -> tuple[Column[Operator], ...]:
    raw = any(operator.raw_state_bytes for operator in operators)
    in_flight = any(operator.in_flight_bytes for operator in operators)
    return (
        Column("OPERATOR", lambda one: one.operator_id[:8]),
        Column("NAME", lambda one: visible(one.name or one.uid or ""), apart=Line.BELOW),
        numbers("PARALLELISM", lambda one: one.parallelism),
        numbers("KEYED-BYTES", lambda one: one.keyed_state_bytes, total_of=operators),
        numbers("OPERATOR-BYTES", lambda one: one.operator_state_bytes, total_of=operators),
        numbers("OF-THEM-RAW", lambda one: one.raw_state_bytes, total_of=operators, wide=not raw),
        numbers(
            "IN-FLIGHT", lambda one: one.in_flight_bytes, total_of=operators, wide=not in_flight
        ),
        Column("STATE", lambda one: ", ".join(_states(one)), apart=Line.BELOW),
    )


def _states(operator: Operator) -> list[str]:
    if operator.finished:
        return ["finished"]
    finished = len(operator.finished_subtasks)
    some = [f"{counted(finished, 'subtask')} finished"] if finished else []
    return [*some, *map(visible, operator.state_names)]
