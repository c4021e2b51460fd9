"""``migrate inspect`` for programs: JSON, in the shape of ``schemas``, and CSV.

A source may have 100,000 positions: they are written a line each, from the positions themselves,
and never stand all in memory as text or as dictionaries.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING, Any

from decoder import Checkpoint, Operator
from migrate.flink.extract import Extraction, Finding, Source
from migrate.positions import Position

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
