"""The output of ``migrate inspect`` as JSON and CSV; ``schemas`` defines the JSON format.

Each position is on one line. The output is generated in pieces, because a source may have 100,000
positions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from operator import attrgetter

from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.source import Source
from migrate.model.positions import PositionFields, PositionState
from migrate.report.text import ROWS_AT_ONCE, csv_pieces

# The names of the attributes to report. The report fields in ``schemas`` have the same names.
_SOURCE = (
    *("operator_id", "name", "uid", "kind", "parallelism", "max_parallelism"),
    "initial_discovery_finished",
)
_OPERATOR = (
    *("operator_id", "name", "uid", "parallelism", "max_parallelism", "finished", "state_names"),
    *("keyed_state_bytes", "operator_state_bytes", "in_flight_bytes", "raw_state_bytes"),
    "finished_subtasks",
)
_FINDING = ("code", "severity", "operator_id", "message")
_CSV_COLUMNS = (
    *("operator_id", "name", "uid", "kind"),
    *("cluster", "topic", "partition", "state", "next_offset", "stopping_offset", "subtask"),
)
_SOURCE_CELLS = attrgetter("operator_id", "name", "uid", "kind.value")


# -- JSON ----------------------------------------------------------------------------------------


def inspection_json(extraction: Extraction) -> Iterator[str]:
    """Yield the JSON report as chunks of text."""
    checkpoint = extraction.checkpoint
    head = {
        "pointer": checkpoint.pointer,
        "id": checkpoint.checkpoint_id,
        "kind": checkpoint.type.kind,
        "stop": checkpoint.type.stop,
        "metadata_version": checkpoint.metadata_version,
    }
    yield f'{{\n  "checkpoint": {_indented(head)},\n  "sources": '
    yield from _array(map(_source_pieces, extraction.sources))
    yield ',\n  "operators": '
    yield from _array([_fields(operator, _OPERATOR)] for operator in checkpoint.operators)
    yield ',\n  "findings": '
    yield from _array([_fields(finding, _FINDING)] for finding in extraction.findings)
    yield "\n}\n"


def _array(elements: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a JSON array; each element is an iterable of pieces of text."""
    opening = "[\n    "
    for element in elements:
        yield opening
        yield from element
        opening = ",\n    "
    yield "[]" if opening.startswith("[") else "\n  ]"


def _fields(item: object, names: Iterable[str]) -> str:
    return _indented({name: getattr(item, name) for name in names}, 4)


def _indented(value: object, depth: int = 2) -> str:
    """Return a value as JSON; indent all lines except the first by ``depth`` more spaces."""
    text = json.dumps(value, indent=2, default=lambda member: member.value)
    return text.replace("\n", "\n" + " " * depth)


def _source_pieces(source: Source) -> Iterator[str]:
    """Yield a source in pieces of text; its positions come last, each on one line."""
    yield _fields(source, _SOURCE).removesuffix("\n    }")
    yield ',\n      "positions": '
    lines = _position_lines(source.position_fields)
    opening = "[\n        "
    while some := list(islice(lines, ROWS_AT_ONCE)):
        yield opening
        yield ",\n        ".join(some)
        opening = ",\n        "
    yield "[]\n    }" if opening.startswith("[") else "\n      ]\n    }"


def _position_lines(positions: Iterable[PositionFields]) -> Iterator[str]:
    """Yield each position as the JSON of a ``PositionReport``, faster than with ``json.dumps``."""
    states = {state: json.dumps(state) for state in PositionState}
    topic_of_head, cluster_of_head, head = None, None, ""
    for topic, partition, state, start, stop, subtask, cluster, _ in positions:
        if topic != topic_of_head or cluster != cluster_of_head:
            topic_of_head, cluster_of_head = topic, cluster
            head = f'{{"cluster": {json.dumps(cluster)}, "topic": {json.dumps(topic)}, '
        yield (
            f'{head}"partition": {partition}, "state": {states[state]}, '
            f'"next_offset": {start if isinstance(start, int) else "null"}, '
            f'"stopping_offset": {"null" if stop is None else stop}, '
            f'"subtask": {"null" if subtask is None else subtask}}}'
        )


# -- CSV -----------------------------------------------------------------------------------------


def inspection_csv(extraction: Extraction) -> Iterator[str]:
    """Yield a header, and a row for each position, as chunks of text."""
    rows = (
        (
            *_SOURCE_CELLS(source),
            *(cluster, topic, partition, state.value),
            *(start if isinstance(start, int) else None, stop, subtask),
        )
        for source in extraction.sources
        for topic, partition, state, start, stop, subtask, cluster, _ in source.position_fields
    )
    return csv_pieces(_CSV_COLUMNS, rows)
