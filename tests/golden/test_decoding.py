"""Decode every golden checkpoint, and compare the result with Flink's own classes.

StateDump writes ``expected`` in the manifest. This Java program uses Flink's Checkpoints,
OperatorStateBackend, and the connector's own serializers (``make golden``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from decoder import (
    BeamKafkaIO,
    Checkpoint,
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    LegacyConsumer,
    ReaderSplit,
    SinkState,
    UnknownSource,
    read_checkpoint,
)
from decoder.kafka.enumerator import EnumeratorState
from decoder.kafka.sink import WRITER_STATE, FileSinkState
from migrate.inputs.flink.choose_source import Choice, choose
from migrate.inputs.flink.extract import extract
from migrate.model.positions import Marker, PositionState
from tests.golden.checks import (
    COMMITTED,
    EARLIEST,
    LATEST,
    LEGACY_EARLIEST,
    LEGACY_GROUP,
    LEGACY_LATEST,
)
from tests.golden.operators import as_flink_tells
from tests.support.golden import ENTRIES, GOLDEN, ONE_OF_EACH

# Fields that StateDump writes only for operators of one kind.
_KINDS_OWN = (
    "reader_splits",
    "enumerator",
    "dynamic",
    "hybrid",
    "legacy",
    "beam",
    "sink",
    "async",
    "file",
)

LONG_MIN = -(1 << 63)
_MARKERS = {
    EARLIEST: Marker.EARLIEST,
    LATEST: Marker.LATEST,
    COMMITTED: Marker.COMMITTED,
    LONG_MIN: None,
}
_LEGACY_MARKERS = {
    LEGACY_EARLIEST: Marker.EARLIEST,
    LEGACY_LATEST: Marker.LATEST,
    LEGACY_GROUP: Marker.COMMITTED,
}


def _of_kind(kind: str) -> list[dict[str, Any]]:
    return [entry for entry in ENTRIES if kind in entry]


@pytest.fixture(
    params=[
        pytest.param(
            entry, id=entry["name"], marks=() if entry["name"] in ONE_OF_EACH else pytest.mark.slow
        )
        for entry in ENTRIES
    ]
)
def entry(request: pytest.FixtureRequest) -> dict[str, Any]:
    given: dict[str, Any] = request.param
    return given


@pytest.fixture
def checkpoint(entry: dict[str, Any]) -> Checkpoint:
    return read_checkpoint(GOLDEN / entry["path"])


def _with_state(entry: dict[str, Any]) -> set[str]:
    """Return the job's Kafka sources, except finished sources, which leave no state."""
    finished = {o["operator_id"] for o in entry["expected"]["operators"] if o["finished"]}
    return set(entry["kafka_sources"]) - finished


def test_decoded_operators_match_flink(entry: dict[str, Any], checkpoint: Checkpoint) -> None:
    expected = entry["expected"]
    assert checkpoint.checkpoint_id == expected["checkpoint_id"]
    assert checkpoint.metadata_version == expected["metadata_version"]
    assert [
        as_flink_tells(operator)
        for operator in sorted(checkpoint.operators, key=lambda o: o.operator_id)
    ] == [
        {
            key: sorted(value) if key == "state_names" else value
            for key, value in operator.items()
            if key not in _KINDS_OWN
        }
        for operator in sorted(expected["operators"], key=lambda o: o["operator_id"])
    ]


def test_checkpoint_type_matches_flinks_deserialized_type(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    expected = entry["expected"]["checkpoint_type"]
    if expected is None:  # metadata version 3 does not contain the type
        assert checkpoint.type.kind.value == "unknown"
        assert checkpoint.type.stop.value == "unknown"
        return
    assert checkpoint.type.kind.value == ("savepoint" if expected["savepoint"] else "checkpoint")
    names = {"Suspend Savepoint": "suspend", "Terminate Savepoint": "terminate"}
    assert checkpoint.type.stop.value == names.get(expected["name"], "none")


def test_kafka_sources_are_recognized_by_kind(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    def recognized(kind: type) -> set[str]:
        return {name for name, source in checkpoint.sources.items() if isinstance(source, kind)}

    assert recognized(KafkaSource) == _with_state(entry)
    assert recognized(DynamicKafkaSource) == set(entry.get("dynamic_sources", ()))
    assert recognized(HybridSource) == set(entry.get("hybrid_sources", ()))
    assert recognized(LegacyConsumer) == set(entry.get("legacy_sources", ()))
    assert recognized(BeamKafkaIO) == set(entry.get("beam_sources", ()))
    for source in checkpoint.sources.values():
        if isinstance(source, UnknownSource):
            assert not source.partly_kafka


def test_decoded_splits_and_enumerators_match_connector(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    for operator in entry["expected"]["operators"]:
        if operator["operator_id"] not in _with_state(entry):
            continue
        source = checkpoint.sources[operator["operator_id"]]
        assert isinstance(source, KafkaSource)
        _check_readers(source.reader_splits, operator["reader_splits"])
        assert source.enumerator is not None
        assert source.enumerator.version == operator["enumerator"]["serializer_version"]
        _check_enumerator(source.enumerator, operator["enumerator"])


@pytest.mark.parametrize("dynamic", _of_kind("dynamic_sources"), ids=lambda e: e["name"])
def test_dynamic_source_state_matches_values_read_by_connector(
    dynamic: dict[str, Any],
) -> None:
    (operator_id,) = dynamic["dynamic_sources"]
    source = read_checkpoint(GOLDEN / dynamic["path"]).sources[operator_id]
    assert isinstance(source, DynamicKafkaSource)
    (expected,) = [o["dynamic"] for o in dynamic["expected"]["operators"] if "dynamic" in o]
    enumerator = expected["enumerator"]
    retained = expected.get("retained", {})
    assert source.retained == retained.keys()
    enumerators = {**enumerator["clusters"], **retained}
    assert source.clusters.keys() == enumerators.keys()
    for cluster, state in source.clusters.items():
        held = [split for split in expected["reader_splits"] if split["cluster"] == cluster]
        _check_readers(state.reader_splits, held)
        assert state.enumerator is not None
        _check_enumerator(state.enumerator, enumerators[cluster])
    assert source.enumerator is not None
    assert source.enumerator.version == enumerator["serializer_version"]
    assert {
        stream: {
            cluster: {
                "topics": sorted(on_cluster.topics),
                "bootstrap_servers": on_cluster.bootstrap_servers,
            }
            for cluster, on_cluster in clusters.items()
        }
        for stream, clusters in source.enumerator.streams.items()
    } == enumerator["streams"]


@pytest.mark.parametrize("legacy", _of_kind("legacy_sources"), ids=lambda e: e["name"])
def test_legacy_consumer_offsets_match_values_read_by_flinks_kryo_serializer(
    legacy: dict[str, Any],
) -> None:
    sources = read_checkpoint(GOLDEN / legacy["path"]).sources
    for operator in legacy["expected"]["operators"]:
        if operator["operator_id"] in legacy["legacy_sources"]:
            source = sources[operator["operator_id"]]
            assert isinstance(source, LegacyConsumer)
            assert sorted(
                (held.subtask, held.topic, held.partition, held.stored_offset)
                for held in source.offsets
            ) == sorted(
                (held["subtask"], held["topic"], held["partition"], held["stored_offset"])
                for held in operator["legacy"]
            )


@pytest.mark.parametrize("legacy", _of_kind("legacy_sources"), ids=lambda e: e["name"])
def test_legacy_consumer_resumes_after_its_stored_offset(
    legacy: dict[str, Any],
) -> None:
    """The state stores the last consumed offset, or -1 if nothing has been consumed."""
    sources = {s.operator_id: s for s in extract(read_checkpoint(GOLDEN / legacy["path"])).sources}
    for operator in legacy["expected"]["operators"]:
        if operator["operator_id"] in legacy["legacy_sources"]:
            found = sources[operator["operator_id"]].positions
            assert {(p.topic, p.partition): (p.start, p.subtask) for p in found} == {
                (held["topic"], held["partition"]): (
                    _LEGACY_MARKERS.get(held["stored_offset"], held["stored_offset"] + 1),
                    held["subtask"],
                )
                for held in operator["legacy"]
            }


@pytest.mark.parametrize("beam", _of_kind("beam_sources"), ids=lambda e: e["name"])
def test_beam_checkpoint_marks_match_beams_coder(beam: dict[str, Any]) -> None:
    checkpoint = read_checkpoint(GOLDEN / beam["path"])
    (expected,) = [o["beam"] for o in beam["expected"]["operators"] if "beam" in o]
    (operator_id,) = beam["beam_sources"]
    state = checkpoint.sources[operator_id]
    assert isinstance(state, BeamKafkaIO)
    assert [(subtask, *mark) for subtask, mark in state.assigned] == [
        (m["subtask"], m["topic"], m["partition"], m["next_offset"], m["watermark"])
        for m in expected
    ]
    assert state.unassigned == ()
    (source,) = extract(checkpoint).sources
    assert {(p.topic, p.partition): p.start for p in source.positions} == {
        (m["topic"], m["partition"]): m["next_offset"] for m in expected
    }


@pytest.mark.parametrize("hybrid", _of_kind("hybrid_sources"), ids=lambda e: e["name"])
def test_state_in_hybrid_source_matches_values_read_by_serializers_of_inner_source(
    hybrid: dict[str, Any],
) -> None:
    (operator_id,) = hybrid["hybrid_sources"]
    source = read_checkpoint(GOLDEN / hybrid["path"]).sources[operator_id]
    assert isinstance(source, HybridSource)
    (expected,) = [o["hybrid"] for o in hybrid["expected"]["operators"] if "hybrid" in o]
    enumerator = expected["enumerator"]
    assert source.source_index == enumerator["current_source_index"]
    if enumerator["kafka"] is None:
        assert isinstance(source.current, UnknownSource)
        assert not source.current.partly_kafka
        return
    assert isinstance(source.current, KafkaSource)
    _check_readers(
        source.current.reader_splits,
        [split["kafka"] for split in expected["reader_splits"] if split["kafka"]],
    )
    assert source.current.enumerator is not None
    assert source.current.enumerator.version == enumerator["wrapped_version"]
    _check_enumerator(source.current.enumerator, enumerator["kafka"])


def test_decoded_transactions_match_sink_serializers(
    entry: dict[str, Any], checkpoint: Checkpoint
) -> None:
    expected = {o["operator_id"]: o["sink"] for o in entry["expected"]["operators"] if "sink" in o}
    for operator_id, sink in checkpoint.sinks.items():
        if operator_id not in expected:  # a FileSink, or a committer without pending commits
            assert isinstance(sink, FileSinkState) or sink == SinkState((), ())
            continue
        told = expected.pop(operator_id)
        assert isinstance(sink, SinkState)
        assert [(writer.prefix, list(writer.open_transactions)) for writer in sink.writers] == [
            (writer["prefix"], writer["precommitted"]) for writer in told["writers"]
        ]
        assert [(t.transactional_id, t.producer_id, t.epoch) for t in sink.pending] == [
            (t["transactional_id"], t["producer_id"], t["epoch"]) for t in told["transactions"]
        ]
    assert not any(told["writers"] or told["transactions"] for told in expected.values())


def test_writers_of_file_sinks_are_recognized(checkpoint: Checkpoint) -> None:
    """In these jobs, every sink with writers is a KafkaSink or a FileSink."""
    for operator in checkpoint.operators:
        sink = checkpoint.sinks.get(operator.operator_id)
        if sink is not None and WRITER_STATE in operator.state_names:
            assert isinstance(sink, FileSinkState | SinkState)


@pytest.mark.parametrize("held", _of_kind("async_operators"), ids=lambda e: e["name"])
def test_async_queues_and_open_files_of_sinks_match_values_read_by_flinks_serializers(
    held: dict[str, Any],
) -> None:
    checkpoint = read_checkpoint(GOLDEN / held["path"])
    findings = extract(checkpoint).findings
    waiting = 0
    for operator in held["expected"]["operators"]:
        if "file" in operator:
            sink = checkpoint.sinks[operator["operator_id"]]
            assert isinstance(sink, FileSinkState)
            assert [bucket._asdict() for bucket in sink.buckets] == operator["file"]["buckets"]
        waiting += len(operator.get("async", {}).get("waiting", ()))
    told = [finding.message for finding in findings if finding.code == "in-flight-records"]
    assert [message.partition(" waiting for responses")[0] for message in told] == (
        [f"the operator's queue contains up to {waiting} records"] if waiting else []
    )
    assert bool(waiting) == (held["expected"]["checkpoint_type"]["name"] == "Suspend Savepoint")


def _check_readers(held: Sequence[ReaderSplit], expected: list[dict[str, Any]]) -> None:
    assert sorted(
        (
            reader.subtask,
            reader.split.topic,
            reader.split.partition,
            reader.split.starting_offset,
            reader.split.stopping_offset,
        )
        for reader in held
    ) == sorted(
        (
            reader["subtask"],
            reader["topic"],
            reader["partition"],
            reader["starting_offset"],
            _stop(reader["stopping_offset"]),
        )
        for reader in expected
    )


def _check_enumerator(enumerator: EnumeratorState, expected: dict[str, Any]) -> None:
    told = enumerator.initial_discovery_finished
    assert told == (expected["initial_discovery_finished"] if told is not None else None)
    assert (told is None) == (enumerator.version <= 1)
    assert sorted(
        (
            known.topic,
            known.partition,
            known.status.name,
            known.split.starting_offset if known.split is not None else None,
            known.split.stopping_offset if known.split is not None else None,
        )
        for known in enumerator.entries
    ) == sorted(
        (
            known["topic"],
            known["partition"],
            known["status"] or "ASSIGNED",
            known["starting_offset"],
            _stop(known["stopping_offset"]),
        )
        for known in expected["splits"]
    )


def _stop(stored: int | None) -> int | None:
    return None if stored == LONG_MIN else stored


def test_positions_match_reader_splits(entry: dict[str, Any], checkpoint: Checkpoint) -> None:
    """Each split that Flink's classes find in a reader is a position with the same start."""
    sources = {source.operator_id: source for source in extract(checkpoint).sources}
    for operator in entry["expected"]["operators"]:
        told = _listed_and_held(operator, operator["operator_id"] in _with_state(entry))
        if told is None:
            continue
        listed, held = told
        found = sources[operator["operator_id"]].positions
        positions = {(p.cluster, p.topic, p.partition): p for p in found}
        # A KafkaSource's cluster is None. It never occurs together with other clusters.
        assert list(positions) == sorted(positions)
        known = {
            (cluster, split["topic"], split["partition"])
            for cluster, enumerator in listed.items()
            for split in enumerator["splits"]
        }
        by_reader = {(s.get("cluster"), s["topic"], s["partition"]): s for s in held}
        assert positions.keys() == by_reader.keys() | known
        for place, split in by_reader.items():
            position = positions[place]
            start = split["starting_offset"]
            assert position.start == (start if start >= 0 else _MARKERS[start])
            assert position.subtask == split["subtask"]
        for missing in known - by_reader.keys():
            assert positions[missing].state in (
                PositionState.FINISHED,
                PositionState.UNASSIGNED,
                PositionState.UNRESOLVED,
            )


def _listed_and_held(
    operator: dict[str, Any], is_plain: bool
) -> tuple[dict[str | None, Any], list[dict[str, Any]]] | None:
    """Return the enumerators by cluster and the reader splits of a Kafka source.

    For other operators, return None.
    """
    if is_plain:
        return {None: operator["enumerator"]}, operator["reader_splits"]
    if "dynamic" in operator:
        dynamic = operator["dynamic"]
        listed = {**dynamic["enumerator"]["clusters"], **dynamic.get("retained", {})}
        return listed, dynamic["reader_splits"]
    if "hybrid" in operator and operator["hybrid"]["enumerator"]["kafka"]:
        hybrid = operator["hybrid"]
        held = [split["kafka"] for split in hybrid["reader_splits"]]
        return {None: hybrid["enumerator"]["kafka"]}, held
    return None


def test_source_is_found_by_uid_even_if_metadata_contains_only_hash_of_uid() -> None:
    """Flink computes an operator ID as the hash of the UID. GoldenJobs.java sets the UID."""
    found = 0
    for entry in ENTRIES:
        extraction = extract(read_checkpoint(GOLDEN / entry["path"]))
        if entry["name"].endswith("/retained"):
            (source,) = choose(extraction, Choice(source="orders-and-payments"))
            assert source.operator_id in entry["kafka_sources"]
            assert source.uid in (None, "orders-and-payments")
            found += 1
    assert found == sum(entry["name"].endswith("/retained") for entry in ENTRIES) > 0
