"""Merge reader state and enumerator state into positions (SEMANTICS A 3 to 6 and 12 to 15).

The encoder supplies the bytes, and Flink's own classes confirm the encoder. tests/golden has
checkpoints of real jobs with the same traps.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import Extraction, extract
from migrate.model.finding import Severity
from migrate.model.positions import Marker, Position, PositionState
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    operator_with_elements,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import (
    ASSIGNED,
    COMMITTED,
    EARLIEST,
    LATEST,
    MIGRATED,
    NO_STOPPING_OFFSET,
    UNASSIGNED,
    DistributionMode,
    EnumeratorSplit,
    KafkaSplit,
    encode_coordinator,
    encode_enumerator,
    encode_reader_element,
    encode_split,
)


def _extract(tmp_path: Path, state: SourceState) -> Extraction:
    return extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", source_operator(state))))


def _only_position(tmp_path: Path, state: SourceState) -> Position:
    (source,) = _extract(tmp_path, state).sources
    (position,) = source.positions
    return position


def _codes(extraction: Extraction) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in extraction.findings}


def test_reader_offset_is_next_offset_to_read(tmp_path: Path) -> None:
    position = _only_position(tmp_path, SourceState({0: [], 1: [KafkaSplit("orders", 0, 1000)]}))
    assert position.state is PositionState.NEXT
    assert (position.start, position.next_offset, position.subtask) == (1000, 1000, 1)


@pytest.mark.parametrize(
    ("stored", "state", "start"),
    [
        (EARLIEST, PositionState.EARLIEST, Marker.EARLIEST),
        (LATEST, PositionState.LATEST, Marker.LATEST),
        (COMMITTED, PositionState.COMMITTED, Marker.COMMITTED),
        (MIGRATED, PositionState.UNRESOLVED, None),
    ],
)
def test_reader_split_at_marker_has_no_next_offset(
    tmp_path: Path, stored: int, state: PositionState, start: Marker | None
) -> None:
    """The state contains the marker until the reader has read the first record of the split."""
    position = _only_position(tmp_path, SourceState({0: [KafkaSplit("orders", 0, stored)]}))
    assert (position.state, position.start, position.next_offset) == (state, start, None)


def test_position_of_reader_split_overrides_start_in_enumerator(tmp_path: Path) -> None:
    entry = EnumeratorSplit(KafkaSplit("orders", 0, EARLIEST), ASSIGNED)
    position = _only_position(
        tmp_path, SourceState({0: [KafkaSplit("orders", 0, 40)]}, entries=[entry])
    )
    assert (position.state, position.next_offset) == (PositionState.NEXT, 40)


@pytest.mark.parametrize(
    ("start", "stop", "next_offset"),
    [
        (EARLIEST, 100, 100),
        (20, 100, 100),
        (150, 100, 150),  # the start is beyond the stop, so nothing was read
        (0, 0, 0),
        (LATEST, 100, None),  # the offset of 'latest' may have been beyond the stop
        (COMMITTED, 100, None),
        (MIGRATED, 100, None),
        (20, LATEST, None),
        (20, COMMITTED, None),
        (20, NO_STOPPING_OFFSET, None),
    ],
)
def test_bounded_split_that_left_its_reader_counts_as_finished_if_its_end_offset_is_known(
    tmp_path: Path, start: int, stop: int, next_offset: int | None
) -> None:
    """A reader drops a bounded split at its end, but the enumerator still lists the assignment."""
    entry = EnumeratorSplit(KafkaSplit("orders", 0, start, stop), ASSIGNED)
    position = _only_position(tmp_path, SourceState({0: []}, entries=[entry]))
    expected = PositionState.UNRESOLVED if next_offset is None else PositionState.FINISHED
    assert (position.state, position.next_offset) == (expected, next_offset)
    assert position.subtask is None
    assert position.stopping_offset == (None if stop == NO_STOPPING_OFFSET else stop)


@pytest.mark.parametrize("version", [1, 2])
def test_enumerator_without_offsets_leaves_finished_split_unresolved(
    tmp_path: Path, version: int
) -> None:
    """Enumerator versions 1 and 2 contain no offsets, and no reader has the split any longer."""
    entry = EnumeratorSplit(KafkaSplit("orders", 0, 5, 100), ASSIGNED)
    position = _only_position(
        tmp_path, SourceState({0: []}, entries=[entry], enumerator_version=version)
    )
    assert (position.state, position.start) == (PositionState.UNRESOLVED, None)


@pytest.mark.parametrize(
    ("stored", "state", "start"),
    [
        (0, PositionState.UNASSIGNED, 0),
        (77, PositionState.UNASSIGNED, 77),
        (EARLIEST, PositionState.UNASSIGNED, Marker.EARLIEST),
        (LATEST, PositionState.UNASSIGNED, Marker.LATEST),
        (COMMITTED, PositionState.UNASSIGNED, Marker.COMMITTED),
        (MIGRATED, PositionState.UNRESOLVED, None),
    ],
)
def test_unassigned_split_has_start_that_enumerator_version_3_stores(
    tmp_path: Path, stored: int, state: PositionState, start: int | Marker | None
) -> None:
    entry = EnumeratorSplit(KafkaSplit("orders", 0, stored), UNASSIGNED)
    position = _only_position(tmp_path, SourceState({0: []}, entries=[entry]))
    assert (position.state, position.start) == (state, start)


@pytest.mark.parametrize("discovery_finished", [True, False])
def test_unassigned_split_is_unresolved_in_enumerator_version_2(
    tmp_path: Path, discovery_finished: bool
) -> None:
    """Enumerator version 2 does not store start offsets."""
    entry = EnumeratorSplit(KafkaSplit("orders", 0, 5), UNASSIGNED)
    state = SourceState(
        {0: []},
        entries=[entry],
        enumerator_version=2,
        initial_discovery_finished=discovery_finished,
    )
    assert _only_position(tmp_path, state).state is PositionState.UNRESOLVED


@pytest.mark.parametrize(
    ("version", "stored", "told"), [(1, True, None), (2, True, True), (3, False, False)]
)
def test_initial_discovery_flag_is_read_from_enumerator(
    tmp_path: Path, version: int, stored: bool, told: bool | None
) -> None:
    state = SourceState(
        {0: splits("orders", [1])},
        enumerator_version=version,
        initial_discovery_finished=stored,
    )
    extraction = _extract(tmp_path, state)
    assert extraction.sources[0].initial_discovery_finished is told
    assert ("initial-discovery" in _codes(extraction)) == (told is not True)


def test_duplicate_partition_with_different_offsets_blocks_move(tmp_path: Path) -> None:
    state = SourceState(
        {0: [KafkaSplit("orders", 0, 10)], 1: [KafkaSplit("orders", 0, 12)]}, entries=[]
    )
    extraction = _extract(tmp_path, state)
    (position,) = extraction.sources[0].positions
    assert position.state is PositionState.UNRESOLVED
    assert "from 10 to 12" in position.reason
    assert _codes(extraction)["unresolved-positions"] is Severity.BLOCKER


def test_positions_are_sorted_by_topic_and_partition_number(tmp_path: Path) -> None:
    state = SourceState({0: [*splits("b", [1] * 11), *splits("a", [2, 2])]})
    (source,) = _extract(tmp_path, state).sources
    assert [p.topic_partition for p in source.positions] == [
        *[("a", n) for n in range(2)],
        *[("b", n) for n in range(11)],
    ]


def test_unsupported_source_kind_yields_no_positions(tmp_path: Path) -> None:
    hybrid_split = encode_reader_element(b"\x00\x00\x00\x01" + b"\x00" * 30, version=0)
    operator = operator_with_elements({0: [hybrid_split]}, b"\x00\x00\x00\x01" + b"\x00" * 20)
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    assert extraction.sources == ()
    assert _codes(extraction)["another-source-kind"] is Severity.WARNING


@pytest.mark.parametrize(
    ("topic", "partition", "start"),
    [
        ("", 0, 5),
        ("a b", 0, 5),
        ("a" * 250, 0, 5),
        ("..", 0, 5),
        ("orders", -1, 5),
        ("orders", 0, -4),
        ("orders", 0, -(1 << 62)),
    ],
)
def test_split_with_invalid_topic_or_number_is_not_a_kafka_split(
    tmp_path: Path, topic: str, partition: int, start: int
) -> None:
    element = encode_reader_element(encode_split(topic, partition, start, NO_STOPPING_OFFSET))
    operator = operator_with_elements({0: [element]}, None)
    assert extract(read_checkpoint(write_checkpoint(tmp_path / "x", operator))).sources == ()


@pytest.mark.parametrize("damage", ["trailing byte", "later split version", "coordinator"])
def test_partly_undecodable_state_of_kafka_source_blocks_move(tmp_path: Path, damage: str) -> None:
    good = encode_reader_element(encode_split("orders", 0, 5, NO_STOPPING_OFFSET))
    split = encode_split("orders", 1, 5, NO_STOPPING_OFFSET)
    bad = {
        "trailing byte": encode_reader_element(split + b"\0"),
        "later split version": encode_reader_element(split, version=1),
        "coordinator": encode_reader_element(split),
    }[damage]
    enumerator = encode_enumerator(1, [EnumeratorSplit(KafkaSplit("orders", 0, 0))])
    coordinator = encode_coordinator(1, 9 if damage == "coordinator" else 1, enumerator)
    operator = operator_with_elements({0: [good, bad]}, coordinator)
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    assert extraction.sources == ()
    assert _codes(extraction)["damaged-source"] is Severity.BLOCKER


def test_blocker_for_in_flight_records_contains_their_size_and_operator(
    tmp_path: Path,
) -> None:
    source = source_operator(SourceState({0: splits("orders", [1])}))
    chk = write_checkpoint(tmp_path / "chk-7", source, in_flight_operator(4321))
    (finding,) = [f for f in extract(read_checkpoint(chk)).findings if f.code.startswith("in-")]
    assert finding.severity is Severity.BLOCKER
    assert "4321 bytes" in finding.message
    assert finding.operator_id == bytes(reversed(range(16))).hex()


@pytest.mark.parametrize("version", [2, 3, 4])
def test_warning_appears_if_snapshot_does_not_prove_that_job_was_stopped(
    tmp_path: Path, version: int
) -> None:
    """Metadata versions 2 and 3, used by Flink up to 1.15, do not contain the kind of snapshot."""
    operator = operator_with_states({"buffer": [b"record"]})
    chk = write_checkpoint(tmp_path / "chk-7", operator, version=version)
    (finding,) = [f for f in extract(read_checkpoint(chk)).findings if f.code == "not-a-stop"]
    assert finding.severity is Severity.WARNING
    assert ("a checkpoint or savepoint" in finding.message) == (version < 4)


@pytest.mark.parametrize("mode", [DistributionMode.UNION, DistributionMode.BROADCAST])
def test_reader_state_with_union_or_broadcast_distribution_is_not_a_kafka_source(
    tmp_path: Path, mode: DistributionMode
) -> None:
    """The reader state of a KafkaSource has the mode SPLIT_DISTRIBUTE."""
    split = encode_reader_element(encode_split("orders", 0, 5, NO_STOPPING_OFFSET))
    operator = operator_with_states({"SourceReaderState": [split]}, mode)
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    assert extraction.sources == ()
    assert _codes(extraction)["another-source-kind"] is Severity.WARNING
    as_a_source = operator_with_states({"SourceReaderState": [split]})
    kafka = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-8", as_a_source)))
    assert [source.topics for source in kafka.sources] == [{"orders"}]


def test_source_with_unknown_enumerator_and_without_reader_state_is_reported(
    tmp_path: Path,
) -> None:
    operator = operator_with_elements({}, encode_coordinator(1, 9, b"\0" * 20))
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    assert extraction.sources == ()
    assert _codes(extraction)["another-source-kind"] is Severity.WARNING


@pytest.mark.parametrize("state", [b"", b"\xac\xed\0\5sr", b"\0\0\0\1\0\0\0\1\0\0\0\7x"])
def test_coordinator_of_unrelated_operator_yields_no_source(tmp_path: Path, state: bytes) -> None:
    operator = operator_with_elements({}, state)
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    assert {finding.code for finding in extraction.findings} == {"not-a-stop", "written-by"}


def test_newer_complete_checkpoint_blocks_move_of_older_checkpoint(tmp_path: Path) -> None:
    job = tmp_path / "job"
    operator = source_operator(SourceState({0: splits("orders", [1])}))
    old = write_checkpoint(job / "chk-7", operator, checkpoint_id=7)
    assert "ran-on" not in _codes(extract(read_checkpoint(old)))
    (job / "chk-9").mkdir()  # incomplete, without _metadata
    assert "ran-on" not in _codes(extract(read_checkpoint(old)))
    newer = write_checkpoint(job / "chk-11", operator, checkpoint_id=11)
    assert _codes(extract(read_checkpoint(old)))["ran-on"] is Severity.BLOCKER
    assert "ran-on" not in _codes(extract(read_checkpoint(newer)))
    assert read_checkpoint(job).checkpoint_id == 11
