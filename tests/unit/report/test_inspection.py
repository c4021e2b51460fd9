"""Check the content and the memory use of the JSON and CSV output of ``migrate inspect``."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.positions import Marker, Position, PositionState
from migrate.report.inspection import inspection_csv, inspection_json
from migrate.report.schemas import PositionReport, SourceReport, json_schema
from tests.support.checkpoints import operator_with_states, splits, write_checkpoint, write_source


def _with_positions(folder: Path, positions: list[Position]) -> Extraction:
    """Return a checkpoint whose single source has these positions."""
    extraction = extract(read_checkpoint(write_source(folder / "chk-7", {0: splits("t", [1])})))
    source = Source(
        "0" * 32, None, None, SourceKind.KAFKA_SOURCE, 1, 128, {None: True}, tuple(positions)
    )
    return Extraction(extraction.checkpoint, (source,), extraction.findings)


def _read(extraction: Extraction) -> Any:
    report = json.loads("".join(inspection_json(extraction)))
    jsonschema.validate(report, json_schema("inspect"), jsonschema.Draft202012Validator)
    return report


def _next_offsets(count: int) -> list[Position]:
    return [Position("t", number, PositionState.NEXT, number) for number in range(count)]


@pytest.mark.parametrize("count", [0, 1, 1000, 2001])
def test_inspect_output_contains_every_position_once_in_order(tmp_path: Path, count: int) -> None:
    extraction = _with_positions(tmp_path, _next_offsets(count))
    (source,) = json.loads("".join(inspection_json(extraction)))["sources"]
    assert [position["partition"] for position in source["positions"]] == list(range(count))
    rows = list(csv.DictReader(io.StringIO("".join(inspection_csv(extraction)))))
    assert [row["partition"] for row in rows] == [str(number) for number in range(count)]


def test_inspect_json_writes_each_position_on_its_own_line(tmp_path: Path) -> None:
    text = "".join(inspection_json(_with_positions(tmp_path, _next_offsets(3))))
    lines = [line for line in text.splitlines() if '"next_offset"' in line]
    assert len(lines) == 3
    assert json.loads(lines[0].strip().rstrip(","))["partition"] == 0


def test_inspect_json_preserves_position_values_exactly(tmp_path: Path) -> None:
    hostile = '"}, {"topic": "\\u0000\x00\ud800é\n'
    positions = [
        Position("a", 0, PositionState.NEXT, 2**63 - 1, -1, 3, hostile),
        Position("b", 0, PositionState.EARLIEST, Marker.EARLIEST, None, 0),
        Position("b", 1, PositionState.FINISHED, 0, 0),
        Position("b", 2, PositionState.UNRESOLVED, None, -3, reason="it is not known"),
    ]
    (source,) = _read(_with_positions(tmp_path, positions))["sources"]
    assert [tuple(position.values()) for position in source["positions"]] == [
        (hostile, "a", 0, "next", 2**63 - 1, -1, 3),
        (None, "b", 0, "earliest", None, None, 0),
        (None, "b", 1, "finished", 0, 0, None),
        (None, "b", 2, "unresolved", None, -3, None),
    ]


def test_inspect_json_fields_follow_order_of_report_model(tmp_path: Path) -> None:
    extraction = _with_positions(tmp_path, _next_offsets(1))
    (source,) = _read(extraction)["sources"]
    assert list(source) == list(SourceReport.__annotations__)
    (position,) = source["positions"]
    assert list(position) == list(PositionReport.__annotations__)
    header = "".join(inspection_csv(extraction)).splitlines()[0].split(",")
    assert header == ["operator_id", "name", "uid", "kind", *PositionReport.__annotations__]


def test_inspect_reports_checkpoint_without_kafka_source(tmp_path: Path) -> None:
    chk = write_checkpoint(tmp_path / "chk-7", operator_with_states({"state": [b"x"]}))
    extraction = extract(read_checkpoint(chk))
    report = _read(extraction)
    assert (report["sources"], len(report["operators"])) == ([], 1)
    assert len("".join(inspection_csv(extraction)).splitlines()) == 1


@pytest.mark.parametrize("write", [inspection_json, inspection_csv])
def test_inspect_output_of_large_source_is_streamed(tmp_path: Path, write: Any) -> None:
    extraction = _with_positions(tmp_path, _next_offsets(20_000))
    tracemalloc.start()
    try:
        written = sum(map(len, write(extraction)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert written > 900_000
    assert peak < 600_000
