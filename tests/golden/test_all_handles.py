"""Read every kind of state handle that Flink can write, from Flink's own metadata serializers.

AllHandles.java creates ``tests/golden/synthetic`` (``python -m tests.golden.synthetic.generate``).
The expected values are Flink's own reading of the same bytes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decoder import DecodeError
from decoder.cursor import Cursor
from decoder.metadata.parse import parse_metadata
from decoder.metadata.properties import read_checkpoint_type
from tests.golden.operators import as_flink_tells

SYNTHETIC = Path(__file__).parent / "synthetic"
ENTRIES: list[dict[str, Any]] = json.loads((SYNTHETIC / "manifest.json").read_text())["checkpoints"]
PROPERTIES: list[dict[str, Any]] = json.loads((SYNTHETIC / "properties.json").read_text())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["path"].split("/")[0])
def test_values_of_every_kind_of_state_handle_match_values_read_by_flink(
    entry: dict[str, Any],
) -> None:
    metadata = parse_metadata((SYNTHETIC / entry["path"]).read_bytes(), entry["path"])
    expected = entry["expected"]
    assert metadata.version == entry["metadata_version"]
    assert metadata.checkpoint_id == expected["checkpoint_id"]
    assert [as_flink_tells(operator) for operator in metadata.operators] == expected["operators"]


KINDS = [
    pytest.param(bytes.fromhex(written["hex"]), written["flink_says"], id=f"{made['flink']} {kind}")
    for made in PROPERTIES
    for kind, written in made["kinds"].items()
]


@pytest.mark.parametrize(("data", "flink_says"), KINDS)
def test_checkpoint_type_matches_flink(data: bytes, flink_says: str | None) -> None:
    cursor = Cursor(data, "properties")
    told = read_checkpoint_type(cursor)
    cursor.finish("properties")
    if flink_says is None:  # a checkpoint stored without properties
        assert (told.kind.value, told.stop.value) == ("unknown", "unknown")
        return
    savepoint = "SavepointType{" in flink_says
    assert told.kind.value == ("savepoint" if savepoint else "checkpoint")
    stops = {
        "postCheckpointAction=SUSPEND": "suspend",
        "postCheckpointAction=TERMINATE": "terminate",
    }
    expected = next((stop for said, stop in stops.items() if said in flink_says), "none")
    assert told.stop.value == expected


@pytest.mark.parametrize("data", [pytest.param(kind.values[0], id=kind.id) for kind in KINDS])
def test_truncated_checkpoint_properties_are_refused(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(DecodeError):
            read_checkpoint_type(Cursor(data[:size], "properties"))
