"""FlinkKafkaConsumer stores the offset of the last processed record (SEMANTICS A 1, 2, and 13).

The encoder supplies the bytes. The bytes of real jobs, and the values that Flink's Kryo reads from
them, are in tests/golden.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoder import DecodeError, LegacyConsumer, read_checkpoint
from decoder.cursor import Cursor
from decoder.kafka.legacy import LegacyOffset, read_legacy_element
from migrate.extensions.savepoints.kafka_state import legacy_element
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.finding import Severity
from migrate.model.policies import Policies
from migrate.model.positions import Marker, PositionState
from migrate.planning import make_plan
from tests.support.checkpoints import RETAINED, legacy_operator, write_checkpoint
from tests.support.command import migrate
from tests.support.encoder import (
    LEGACY_EARLIEST,
    LEGACY_GROUP,
    LEGACY_LATEST,
    LEGACY_NOT_SET,
    DistributionMode,
    Operator,
    encode_legacy_element,
)
from tests.support.golden import ENTRIES, golden
from tests.support.recorded_flink import recorded_flink
from tests.support.strategies import topics

# From a real job (Flink 1.15): topic orders, partition 1, last processed offset 999.
REAL = bytes.fromhex("57018799 98ff0802 016f7264 6572f300 00000000 0003e7")


def _read(element: bytes) -> LegacyOffset:
    return read_legacy_element(Cursor(element, "element"), 3)


def _extract(tmp_path: Path, *operators: Operator, version: int = 3) -> Extraction:
    path = write_checkpoint(tmp_path / "chk-7", *operators, version=version)
    return extract(read_checkpoint(path))


def _only_source(tmp_path: Path, *elements: bytes) -> Source:
    (source,) = _extract(tmp_path, legacy_operator({0: elements})).sources
    return source


def _severities(extraction: Extraction) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in extraction.findings}


# -- bytes ---------------------------------------------------------------------------------------


def test_legacy_element_of_real_job_is_read_and_encoded_identically() -> None:
    assert _read(REAL) == LegacyOffset(3, "orders", 1, 999)
    assert encode_legacy_element("orders", 1, 999) == REAL


@pytest.mark.parametrize("topic", ["orders", "payments", "t", "a.b-c_d", "a" * 64])
def test_added_legacy_element_matches_bytes_of_encoder(topic: str) -> None:
    """The element is made from a real element. The cases cover both signs of the hash code."""
    for partition in (0, 7, 300):
        made = legacy_element(REAL, topic, partition, 1000)
        assert made == encode_legacy_element(topic, partition, 999)


@pytest.mark.parametrize("name", ["1.15/legacy", "1.20/legacy", "1.20/legacy-names"])
def test_encoder_reproduces_bytes_of_real_legacy_jobs(name: str) -> None:
    """Every element of the jobs is compared, without its class ID."""
    metadata = (golden(name) / "_metadata").read_bytes()
    (source,) = read_checkpoint(golden(name)).sources.values()
    assert isinstance(source, LegacyConsumer)
    for held in source.offsets:
        encoded = encode_legacy_element(held.topic, held.partition, held.stored_offset)
        assert encoded[1:] in metadata


@given(
    topics,
    st.integers(0, 2**31 - 1),
    st.integers(-1, 2**63 - 2) | st.sampled_from((LEGACY_NOT_SET, LEGACY_GROUP)),
    st.integers(2, 2**28),
)
def test_every_encoded_legacy_element_is_read_and_truncations_are_refused(
    topic: str, partition: int, offset: int, cls: int
) -> None:
    element = encode_legacy_element(topic, partition, offset, cls)
    assert _read(element) == LegacyOffset(3, topic, partition, offset)
    for size in range(len(element)):
        with pytest.raises(DecodeError):
            _read(element[:size])


@pytest.mark.parametrize("length", [1, 2, 63, 64, 126, 127, 249])
def test_both_kryo_string_forms_are_read(length: int) -> None:
    topic = "t" * length
    element = encode_legacy_element(topic, 0, 5)
    assert _read(element).topic == topic
    # Kryo marks the end of a short string with the high bit of the last byte. Any other string has
    # its length first.
    assert (topic.encode() in element) == (length not in range(2, 64))


@pytest.mark.parametrize(
    "element",
    [
        pytest.param(REAL + b"\0", id="an extra byte"),
        pytest.param(b"\0" + REAL[1:], id="null instead of an object"),
        pytest.param(b"\1" + REAL[1:], id="a class name instead of a class ID"),
        pytest.param(REAL[:1] + b"\2" + REAL[2:], id="a reference to another object"),
        pytest.param(REAL.replace(b"\x02\x01order", b"\x02\x02order"), id="topic by reference"),
        pytest.param(REAL.replace(b"order", b"ordef"), id="not the hash of its topic"),
        pytest.param(
            REAL.replace(b"\x08\x02\x01", b"\x08\x04\x01"), id="not the hash of its partition"
        ),
        pytest.param(encode_legacy_element("orders", -1, 5), id="a negative partition"),
        pytest.param(encode_legacy_element("or ders", 1, 5), id="an invalid topic"),
        pytest.param(encode_legacy_element("orders", 1, -2), id="KafkaSource's marker"),
        pytest.param(
            encode_legacy_element("orders", 1, LEGACY_NOT_SET - 1), id="an unknown negative offset"
        ),
        pytest.param(
            encode_legacy_element("orders", 1, 2**63 - 1),
            id="the maximum, which has no next offset",
        ),
        pytest.param(b"\xff\xff\xff\xff\xff\x01" + REAL[1:], id="an endless varint"),
    ],
)
def test_malformed_legacy_element_is_refused(element: bytes) -> None:
    assert _read(REAL)
    with pytest.raises(DecodeError):
        _read(element)


# -- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("stored", "next_offset"), [(999, 1000), (0, 1), (-1, 0)])
def test_next_offset_is_last_processed_offset_plus_1(
    tmp_path: Path, stored: int, next_offset: int
) -> None:
    source = _only_source(tmp_path, encode_legacy_element("orders", 1, stored))
    assert source.kind is SourceKind.FLINK_KAFKA_CONSUMER
    (position,) = source.positions
    assert (position.state, position.next_offset) == (PositionState.NEXT, next_offset)
    assert (position.stopping_offset, position.subtask, position.cluster) == (None, 0, None)


@pytest.mark.parametrize(
    ("stored", "state", "start"),
    [
        (LEGACY_EARLIEST, PositionState.EARLIEST, Marker.EARLIEST),
        (LEGACY_LATEST, PositionState.LATEST, Marker.LATEST),
        (LEGACY_GROUP, PositionState.COMMITTED, Marker.COMMITTED),
        (LEGACY_NOT_SET, PositionState.UNRESOLVED, None),
    ],
)
def test_each_legacy_marker_becomes_corresponding_marker_or_is_unresolved(
    tmp_path: Path, stored: int, state: PositionState, start: Marker | None
) -> None:
    (position,) = _only_source(tmp_path, encode_legacy_element("orders", 1, stored)).positions
    assert (position.state, position.start, position.next_offset) == (state, start, None)


@pytest.mark.parametrize("compressed", [False, True])
def test_legacy_positions_are_read_from_all_subtasks(tmp_path: Path, compressed: bool) -> None:
    listed = [encode_legacy_element("orders", partition, 10) for partition in range(3)]
    operator = legacy_operator({0: listed[:2], 1: listed[2:], 2: []}, compressed=compressed)
    (source,) = _extract(tmp_path, operator).sources
    assert [(p.partition, p.next_offset, p.subtask) for p in source.positions] == [
        (0, 11, 0),
        (1, 11, 0),
        (2, 11, 1),
    ]


def test_identical_legacy_offsets_of_subtasks_are_merged(tmp_path: Path) -> None:
    """After a restore, every subtask has the whole union state."""
    element = encode_legacy_element("orders", 0, 10)
    extraction = _extract(tmp_path, legacy_operator({0: [element], 1: [element]}))
    (position,) = extraction.sources[0].positions
    assert (position.next_offset, position.subtask) == (11, 0)


def test_conflicting_legacy_offsets_of_partition_block_move(tmp_path: Path) -> None:
    one, other = (encode_legacy_element("orders", 0, offset) for offset in (10, 12))
    extraction = _extract(tmp_path, legacy_operator({0: [one], 1: [other]}))
    (position,) = extraction.sources[0].positions
    assert position.state is PositionState.UNRESOLVED
    assert "from 10 to 12" in position.reason
    assert _severities(extraction)["unresolved-positions"] is Severity.BLOCKER


def test_missing_enumerator_of_legacy_consumer_is_not_reported(tmp_path: Path) -> None:
    """A FlinkKafkaConsumer has no enumerator."""
    extraction = _extract(tmp_path, legacy_operator({0: [REAL]}))
    codes = _severities(extraction).keys()
    assert not codes & {"no-enumerator", "initial-discovery", "state-not-moved", "legacy-consumer"}
    (source,) = extraction.sources
    assert source.kind is SourceKind.FLINK_KAFKA_CONSUMER
    assert source.initial_discovery_finished is None


@pytest.mark.parametrize(
    ("kind", "version", "severity"),
    [
        ("suspend savepoint CANONICAL", 4, Severity.BLOCKER),
        ("terminate savepoint NATIVE", 4, Severity.BLOCKER),
        ("savepoint CANONICAL", 4, None),
        (RETAINED, 4, None),
        (RETAINED, 3, Severity.WARNING),  # version 3 does not store the kind of snapshot
        (RETAINED, 2, None),  # Flink 1.10 and earlier stopped the consumer after the savepoint
    ],
)
def test_savepoint_that_stopped_legacy_consumer_has_stale_positions(
    tmp_path: Path, kind: str, version: int, severity: Severity | None
) -> None:
    """Flink stops the consumer before the savepoint, so the savepoint contains older positions.

    Regression: With Flink 1.20.3, at least 10 records of orders-1 were processed, but the savepoint
    contained -1. Without an earlier checkpoint, the savepoint contained no partition.
    """
    operator = legacy_operator({0: [REAL]})
    path = write_checkpoint(tmp_path / "sp", operator, version=version, kind=kind)
    extraction = extract(read_checkpoint(path))
    assert _severities(extraction).get("stale-positions") is severity
    plan = make_plan(extraction, extraction.sources, None)
    assert bool(plan.refusals) == (severity is Severity.BLOCKER)
    allowed = make_plan(extraction, extraction.sources, None, Policies(allow_ran_on=True))
    assert allowed.refusals == ()
    assert any("from the previous checkpoint" in w for w in allowed.warnings) == (
        severity is not None
    )


@pytest.mark.parametrize("scenario", ["legacy-stop", "legacy-drain"])
@pytest.mark.parametrize("flink", ["1.15", "1.20"])
def test_savepoint_that_stopped_real_legacy_job_is_refused_or_triggers_warning(
    flink: str, scenario: str
) -> None:
    """The real jobs had processed at least 40 records of orders-1 before the stop.

    The metadata of Flink 1.15 does not show the stop, so `migrate` can only warn.
    """
    extraction = extract(read_checkpoint(golden(f"{flink}/{scenario}")))
    (source,) = extraction.sources
    (orders_1,) = [p for p in source.positions if p.partition == 1]
    assert isinstance(orders_1.next_offset, int) and orders_1.next_offset < 40
    told = flink != "1.15"  # the metadata of Flink 1.15 does not show the stop
    severity = Severity.BLOCKER if told else Severity.WARNING
    assert _severities(extraction).get("stale-positions") is severity
    if told:
        # The move is refused whether or not the command selects the source.
        for flags in ((), ("--source", source.operator_id)):
            result = migrate("to-spark", str(golden(f"{flink}/{scenario}")), *flags)
            assert (result.code, result.stdout) == (4, "")
            assert "from the previous checkpoint" in result.stderr


def test_stop_with_savepoint_is_never_advised_for_legacy_job(tmp_path: Path) -> None:
    """Regression: ``migrate`` advised stop-with-savepoint.

    After a restore from this savepoint, Flink itself duplicates records.
    """
    job_id = "0a97a9c6086be373357fa722571e7df8"
    checkpoint = write_checkpoint(
        tmp_path / job_id / "chk-7", legacy_operator({0: [REAL]}), version=4, kind=RETAINED
    )
    plan = tmp_path / "plan.json"
    with recorded_flink() as (flink, url):
        flink.listed = {flink.reading}
        shown = migrate("to-spark", checkpoint)
        running = migrate("to-spark", checkpoint, "--flink-rest", url)
        saved = migrate("to-spark", checkpoint, "--plan-out", plan)
        applied = migrate("to-spark", "--plan", plan, "--flink-rest", url)
    assert (shown.code, running.code, saved.code, applied.code) == (0, 4, 0, 4), saved.stderr
    how = "take a savepoint with flink savepoint, and cancel the job immediately"
    assert f"next: {how}, and rerun the command with the savepoint" in shown.stderr
    assert f"{how} first" in running.stderr
    assert how in applied.stderr
    for result in (shown, running, saved, applied):
        assert "with a savepoint" not in result.stderr.replace("then run this with that", "")


def test_partition_missing_from_legacy_state_starts_at_log_start(
    tmp_path: Path,
) -> None:
    """FlinkKafkaConsumerBase.open starts partitions without state at EARLIEST_OFFSET."""
    extraction = _extract(tmp_path, legacy_operator({0: [REAL]}))
    snapshot = ClusterSnapshot({"orders": {1: LogRange(0, 2000), 2: LogRange(7, 90)}})
    plan = make_plan(extraction, extraction.sources, snapshot)
    assert plan.refusals == ()
    assert plan.next_offsets == {("orders", 1): 1000, ("orders", 2): 7}


def test_to_spark_moves_real_legacy_job_to_first_unread_records() -> None:
    result = migrate("to-spark", str(golden("1.15/legacy-rescaled")))
    assert result.code == 0
    (entry,) = [entry for entry in ENTRIES if entry["name"] == "1.15/legacy-rescaled"]
    (told,) = [o["legacy"] for o in entry["expected"]["operators"] if "legacy" in o]
    assert {held["stored_offset"] for held in told} > {-1, 11}
    last = {str(held["partition"]): held["stored_offset"] for held in told}
    assert json.loads(result.stdout) == {"orders": {p: offset + 1 for p, offset in last.items()}}


def test_legacy_consumer_is_read_from_metadata_version_2(tmp_path: Path) -> None:
    extraction = _extract(tmp_path, legacy_operator({0: [REAL]}), version=2)
    (position,) = extraction.sources[0].positions
    assert position.next_offset == 1000
    (written,) = [f.message for f in extraction.findings if f.code == "written-by"]
    assert "Flink 1.3 to 1.10 (metadata version 2)" in written


# -- state that is not of a FlinkKafkaConsumer ---------------------------------------------------


@pytest.mark.parametrize(
    ("elements", "code"),
    [
        ([b"another program's"], "legacy-consumer"),
        ([], "legacy-consumer"),
        ([REAL, b"damage"], "damaged-source"),
        ([REAL[:-1]], "legacy-consumer"),
    ],
)
def test_state_with_name_of_legacy_consumer_is_refused_if_content_is_invalid(
    tmp_path: Path, elements: list[bytes], code: str
) -> None:
    extraction = _extract(tmp_path, legacy_operator({0: elements}))
    assert extraction.sources == ()
    assert _severities(extraction)[code] is Severity.BLOCKER


def test_legacy_consumer_state_is_refused_if_its_distribution_is_not_union(tmp_path: Path) -> None:
    operator = legacy_operator({0: [REAL]}, mode=DistributionMode.SPLIT_DISTRIBUTE)
    extraction = _extract(tmp_path, operator)
    assert extraction.sources == ()
    assert _severities(extraction)["legacy-consumer"] is Severity.BLOCKER
