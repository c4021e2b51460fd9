"""Check that the mission job's sink commits exactly the records before the savepoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.flink import dump_states, run_mission
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def topics() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 3)
        broker.produce("orders", 0, (f"o0-{n}" for n in range(10)))
        broker.produce("orders", 1, (f"o1-{n}" for n in range(80)))
        broker.delete_records("orders", 1, before=6)
        yield broker


@pytest.mark.parametrize(("version", "drain"), [("1.15", False), ("1.20", False), ("2.2", True)])
def test_committed_sink_output_of_flink_ends_at_savepoint_positions(
    topics: Broker, tmp_path: Path, version: str, drain: bool
) -> None:
    run = run_mission(
        version=version,
        bootstrap_servers=topics.bootstrap_servers,
        topics=["orders"],
        until={("orders", 0): 10, ("orders", 1): 12},
        savepoint_dir=tmp_path / "savepoints",
        sink_dir=tmp_path / "sink",
        drain=drain,
    )
    (operators,) = [dump["operators"] for dump in dump_states(version, {run.savepoint: {}})]
    (source,) = [op["operator_id"] for op in operators if op["coordinator_state_bytes"]]
    (dump,) = dump_states(version, {run.savepoint: {"kafka_sources": [source]}})
    positions = {
        split["partition"]: split["starting_offset"]
        for operator in dump["operators"]
        for split in operator["reader_splits"] or []
    }
    assert positions[0] == 10
    assert 6 + 12 <= positions[1] < 80
    assert positions[2] == -2
    assert run.committed == [
        record for record in topics.records("orders") if record[2] < positions[record[1]]
    ]
