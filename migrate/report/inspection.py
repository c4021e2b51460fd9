"""``migrate inspect``: JSON in the shape of ``schemas``, CSV, and tables for people.

A source may have 100,000 positions: they are written a line each, from the positions themselves,
and never stand all in memory as text or as dictionaries.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any, TextIO

from decoder import Checkpoint, CheckpointKind, Operator, StopKind
from migrate.inputs.flink.extract import Extraction, Finding, Severity, Source
from migrate.model.positions import Position
from migrate.model.wording import counted, printable
from migrate.report.table import Column, Line, draw, numbers
from migrate.report.text import Screen

if TYPE_CHECKING:
    from migrate.report.schemas import (
        CheckpointReport,
        FindingReport,
        OperatorReport,
        SourceAlone,
    )


_CSV_COLUMNS = (
    *("operator_id", "name", "uid", "kind"),
    *("cluster", "topic", "partition", "state", "next_offset", "stopping_offset", "subtask"),
)
# Lines that are put together before they are written.
_LINES_AT_ONCE = 1000


# -- JSON ----------------------------------------------------------------------------------------


def inspection_json(extraction: Extraction) -> Iterator[str]:
    """The report in pieces of text, to be written one after another."""
    checkpoint = extraction.checkpoint
    yield f'{{\n  "checkpoint": {_indented(_checkpoint(checkpoint))},\n  "sources": '
    yield from _array(map(_source_lines, extraction.sources))
    yield ',\n  "operators": '
    yield from _array([_indented(_operator(one), 4)] for one in checkpoint.operators)
    yield ',\n  "findings": '
    yield from _array([_indented(_finding(one), 4)] for one in extraction.findings)
    yield "\n}\n"


def _array(elements: Iterable[Iterable[str]]) -> Iterator[str]:
    """An array of the report; each element is text in pieces."""
    opening = "[\n    "
    for element in elements:
        yield opening
        yield from element
        opening = ",\n    "
    yield "[]" if opening.startswith("[") else "\n  ]"


def _indented(value: Any, depth: int = 2) -> str:
    """``value`` as JSON of several lines, all but the first that far to the right."""
    text = json.dumps(value, indent=2, default=_value)
    return text.replace("\n", "\n" + " " * depth)


def _value(name: Enum) -> str:
    return str(name.value)


def _source_lines(source: Source) -> Iterator[str]:
    """A source in pieces of text: its positions, a line each, at its end."""
    yield _indented(_source(source), 4).removesuffix("\n    }")
    yield ',\n      "positions": '
    lines = _position_lines(source.positions)
    opening = "[\n        "
    while some := list(islice(lines, _LINES_AT_ONCE)):
        yield opening
        yield ",\n        ".join(some)
        opening = ",\n        "
    yield "[]\n    }" if opening.startswith("[") else "\n      ]\n    }"


def _position_lines(positions: Iterable[Position]) -> Iterator[str]:
    """As ``PositionReport`` of ``schemas``; ``json.dumps`` would take five times as long."""
    text = _Texts()
    for topic, partition, state, start, stop, subtask, cluster, _ in positions:
        yield (
            f'{{"cluster": {text[cluster]}, "topic": {text[topic]}, "partition": {partition}, '
            f'"state": {text[state]}, '
            f'"next_offset": {start if isinstance(start, int) else "null"}, '
            f'"stopping_offset": {"null" if stop is None else stop}, '
            f'"subtask": {"null" if subtask is None else subtask}}}'
        )


class _Texts(dict[str | None, str]):
    """JSON of texts, kept once it is made: the names of topics come again and again."""

    def __missing__(self, text: str | None) -> str:
        made = self[text] = json.dumps(text)
        return made


def _checkpoint(checkpoint: Checkpoint) -> CheckpointReport:
    return {
        "pointer": checkpoint.pointer,
        "id": checkpoint.checkpoint_id,
        "kind": checkpoint.type.kind,
        "stop": checkpoint.type.stop,
        "metadata_version": checkpoint.metadata_version,
    }


def _source(source: Source) -> SourceAlone:
    return {
        "operator_id": source.operator_id,
        "name": source.name,
        "uid": source.uid,
        "kind": source.kind,
        "parallelism": source.parallelism,
        "max_parallelism": source.max_parallelism,
        "initial_discovery_finished": source.initial_discovery_finished,
    }


def _operator(operator: Operator) -> OperatorReport:
    return {
        "operator_id": operator.operator_id,
        "name": operator.name,
        "uid": operator.uid,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "finished": operator.finished,
        "state_names": list(operator.state_names),
        "keyed_state_bytes": operator.keyed_state_bytes,
        "operator_state_bytes": operator.operator_state_bytes,
        "in_flight_bytes": operator.in_flight_bytes,
        "raw_state_bytes": operator.raw_state_bytes,
        "finished_subtasks": list(operator.finished_subtasks),
    }


def _finding(finding: Finding) -> FindingReport:
    return {
        "code": finding.code,
        "severity": finding.severity,
        "operator_id": finding.operator_id,
        "message": finding.message,
    }


# -- CSV -----------------------------------------------------------------------------------------


def inspection_csv(extraction: Extraction) -> Iterator[str]:
    """One row per position, with a header, in pieces of text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_CSV_COLUMNS)
    rows = (
        (
            source.operator_id,
            source.name,
            source.uid,
            source.kind.value,
            position.cluster,
            position.topic,
            position.partition,
            position.state.value,
            position.next_offset,
            position.stopping_offset,
            position.subtask,
        )
        for source in extraction.sources
        for position in source.positions
    )
    while text.tell():
        yield text.getvalue()
        text.seek(0)
        text.truncate()
        writer.writerows(islice(rows, _LINES_AT_ONCE))


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
        f"{_STOPPED.get(checkpoint.type.stop, '')}: {printable(checkpoint.pointer)}\n"
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
        yield f"{severity}{where} {finding.code}: {printable(finding.message)}\n"


def _heading(source: Source, screen: Screen) -> str:
    names = [f"uid {source.uid}" if source.uid else "", source.name or ""]
    shown = ", ".join(printable(name) for name in names if name)
    heading = screen.text(f"{source.kind.value} {source.operator_id}", "bold")
    return f"\n{heading}{f' ({shown})' if shown else ''}, parallelism {source.parallelism}\n"


_POSITIONS: tuple[Column[Position], ...] = (
    Column("CLUSTER", lambda one: printable(one.cluster or "")),
    Column("TOPIC", lambda one: printable(one.topic), apart=Line.ABOVE),
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
        Column("NAME", lambda one: printable(one.name or one.uid or ""), apart=Line.BELOW),
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
    return [*some, *map(printable, operator.state_names)]
