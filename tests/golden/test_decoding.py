"""Every golden checkpoint, decoded, against what Flink's own classes read from the same bytes.

``expected`` in the manifest is written by StateDump, a Java program on Flink's Checkpoints,
OperatorStateBackend and the connector's own serializers (``make golden``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from decoder import Checkpoint, read_checkpoint
from decoder.kafka.source import KafkaSource, UnknownSource
from migrate.choose import choose_sources
from migrate.extract import extract
from migrate.positions import Marker, PositionState

GOLDEN = Path(__file__).parent
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
ENTRIES: list[dict[str, Any]] = MANIFEST["checkpoints"]


def golden(name: str) -> Path:
    """The directory of a golden checkpoint, such as ``2.2/retained``."""
    return GOLDEN / next(str(entry["path"]) for entry in ENTRIES if entry["name"] == name)


LONG_MIN = -(1 << 63)
_MARKERS = {-2: Marker.EARLIEST, -1: Marker.LATEST, -3: Marker.COMMITTED, LONG_MIN: None}


@pytest.fixture(params=ENTRIES, ids=lambda entry: entry["name"])
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    given: dict[str, Any] = request.param
    return given


@pytest.fixture
def checkpoint(entry: dict[str, Any]) -> Checkpoint:
    return read_checkpoint(GOLDEN / entry["path"])


def _with_state(entry: dict[str, Any]) -> set[str]:
    """The job's Kafka sources, but those that had fully finished: they leave no state behind."""
    finished = {o["operator_id"] for o in entry["expected"]["operators"] if o["finished"]}
    return set(entry["kafka_sources"]) - finished


def test_the_operators_are_those_that_flink_reads(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    expected = entry["expected"]
    assert checkpoint.checkpoint_id == expected["checkpoint_id"]
    assert checkpoint.metadata_version == expected["metadata_version"]
    assert [
        {
            "operator_id": operator.operator_id,
            "name": operator.name,
            "uid": operator.uid,
            "parallelism": operator.parallelism,
            "max_parallelism": operator.max_parallelism,
            "finished": operator.finished,
            "state_names": list(operator.state_names),
            "operator_state_bytes": operator.operator_state_bytes,
            "keyed_state_bytes": operator.keyed_state_bytes,
            "in_flight_bytes": operator.in_flight_bytes,
            "coordinator_state_bytes": operator.coordinator_state.size
            if operator.coordinator_state is not None
            else None,
            "subtasks": sorted(s.index for s in operator.subtasks),
            "finished_subtasks": sorted(s.index for s in operator.subtasks if s.finished),
        }
        for operator in sorted(checkpoint.operators, key=lambda o: o.operator_id)
    ] == [
        {
            key: sorted(value) if key == "state_names" else value
            for key, value in operator.items()
            if key not in ("reader_splits", "enumerator")
        }
        for operator in sorted(expected["operators"], key=lambda o: o["operator_id"])
    ]


def test_the_type_is_the_one_that_flink_deserializes(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    expected = entry["expected"]["checkpoint_type"]
    if expected is None:  # metadata version 3 holds no type
        assert checkpoint.type.kind.value == "unknown"
        assert checkpoint.type.stop.value == "unknown"
        return
    assert checkpoint.type.kind.value == ("savepoint" if expected["savepoint"] else "checkpoint")
    names = {"Suspend Savepoint": "suspend", "Terminate Savepoint": "terminate"}
    assert checkpoint.type.stop.value == names.get(expected["name"], "none")


def test_the_kafka_sources_are_recognised_and_no_other(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    recognised = {
        operator_id
        for operator_id, source in checkpoint.sources.items()
        if isinstance(source, KafkaSource)
    }
    assert recognised == _with_state(entry)
    for source in checkpoint.sources.values():
        if isinstance(source, UnknownSource):
            assert not source.partly_kafka


def test_splits_and_enumerators_are_those_that_the_connector_deserializes(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    for operator in entry["expected"]["operators"]:
        if operator["operator_id"] not in _with_state(entry):
            continue
        source = checkpoint.sources[operator["operator_id"]]
        assert isinstance(source, KafkaSource)
        assert sorted(
            (
                held.subtask,
                held.split.topic,
                held.split.partition,
                held.split.starting_offset,
                held.split.stopping_offset,
            )
            for held in source.reader_splits
        ) == sorted(
            (
                held["subtask"],
                held["topic"],
                held["partition"],
                held["starting_offset"],
                _stop(held["stopping_offset"]),
            )
            for held in operator["reader_splits"]
        )
        assert source.enumerator is not None
        enumerator = operator["enumerator"]
        assert source.enumerator.version == enumerator["serializer_version"]
        told = source.enumerator.initial_discovery_finished
        assert told == (enumerator["initial_discovery_finished"] if told is not None else None)
        assert (told is None) == (enumerator["serializer_version"] == 1)
        assert sorted(
            (
                known.topic,
                known.partition,
                known.status.name,
                known.split.starting_offset if known.split is not None else None,
                known.split.stopping_offset if known.split is not None else None,
            )
            for known in source.enumerator.entries
        ) == sorted(
            (
                known["topic"],
                known["partition"],
                known["status"] or "ASSIGNED",
                known["starting_offset"],
                _stop(known["stopping_offset"]),
            )
            for known in enumerator["splits"]
        )


def _stop(stored: int | None) -> int | None:
    return None if stored == LONG_MIN else stored


def test_positions_are_what_the_readers_hold(entry: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Each split that Flink's classes found in a reader is a position with the same start."""
    sources = {source.operator_id: source for source in extract(checkpoint).sources}
    for operator in entry["expected"]["operators"]:
        if operator["operator_id"] not in _with_state(entry):
            continue
        positions = {p.topic_partition: p for p in sources[operator["operator_id"]].positions}
        held = {(split["topic"], split["partition"]) for split in operator["reader_splits"]}
        known = {(split["topic"], split["partition"]) for split in operator["enumerator"]["splits"]}
        assert positions.keys() == held | known
        for split in operator["reader_splits"]:
            position = positions[split["topic"], split["partition"]]
            start = split["starting_offset"]
            assert position.start == (start if start >= 0 else _MARKERS[start])
            assert position.subtask == split["subtask"]
        for missing in known - held:
            assert positions[missing].state in (
                PositionState.FINISHED,
                PositionState.UNASSIGNED,
                PositionState.UNRESOLVED,
            )


def test_a_source_is_found_by_its_uid_though_metadata_4_holds_none() -> None:
    """An operator id is the hash of the uid that the job gave: see GoldenJobs.java."""
    found = 0
    for entry in ENTRIES:
        extraction = extract(read_checkpoint(GOLDEN / entry["path"]))
        if entry["name"].endswith("/retained"):
            (source,) = choose_sources(extraction, "orders-and-payments")
            assert source.operator_id in entry["kafka_sources"]
            assert source.uid in (None, "orders-and-payments")
            found += 1
    assert found == sum(entry["name"].endswith("/retained") for entry in ENTRIES) > 0
