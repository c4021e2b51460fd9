"""The positions of a HybridSource are those of its current source, if it reads Kafka.

The encoder supplies the bytes. State of real jobs is in tests/golden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pytest

from decoder import DecodeError, HybridSource, KafkaSource, UnknownSource, read_checkpoint
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.source import recognise_source
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.source import SourceKind
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.finding import Severity
from migrate.model.positions import PositionState
from migrate.planning import make_plan
from tests.support.checkpoints import operator_with_elements, splits, write_checkpoint
from tests.support.command import migrate
from tests.support.encoder import (
    ASSIGNED,
    EARLIEST,
    EnumeratorSplit,
    KafkaSplit,
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_split,
    encode_enumerator,
    encode_hybrid_enumerator,
    encode_hybrid_split,
    encode_reader_element,
    encode_split,
)
from tests.support.golden import golden

_FILE_SPLIT = b"\x01\xe5\x03\xb8 a file's"


def _kafka_split(index: int, split: KafkaSplit) -> bytes:
    inner = encode_split(split.topic, split.partition, split.starting_offset, split.stopping_offset)
    return encode_reader_element(
        encode_hybrid_split(index, f"{split.topic}-{split.partition}", inner)
    )


def _file_split(index: int) -> bytes:
    return encode_reader_element(encode_hybrid_split(index, "0000000001", _FILE_SPLIT, 1))


def _coordinator(index: int, version: int, enumerator: bytes) -> bytes:
    return encode_coordinator(1, 0, encode_hybrid_enumerator(index, version, enumerator))


def _extract(
    tmp_path: Path, elements: Mapping[int, Sequence[bytes]], coordinator: bytes | None
) -> Extraction:
    operator = operator_with_elements(elements, coordinator)
    return extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))


def _severities(extraction: Extraction) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in extraction.findings}


@pytest.mark.parametrize("name", ["1.15/other-kinds", "2.2/other-kinds"])
def test_encoder_reproduces_bytes_of_real_hybrid_source(name: str) -> None:
    metadata = (golden(name) / "_metadata").read_bytes()
    sources = read_checkpoint(golden(name)).sources.values()
    (source,) = [source for source in sources if isinstance(source, HybridSource)]
    assert isinstance(source.current, KafkaSource)
    assert source.current.reader_splits
    for held in source.current.reader_splits:
        split = held.split
        encoded = KafkaSplit(split.topic, split.partition, split.starting_offset)
        assert _kafka_split(source.source_index, encoded) in metadata


_ENTRIES = [EnumeratorSplit(split) for split in splits("orders", [EARLIEST, EARLIEST])]
_KAFKA = encode_enumerator(3, _ENTRIES)


def test_hybrid_source_positions_come_from_current_kafka_source(tmp_path: Path) -> None:
    held = {0: [_kafka_split(1, KafkaSplit("orders", 0, 40))]}
    entries = [_ENTRIES[0], EnumeratorSplit(KafkaSplit("orders", 1, 0, 90), ASSIGNED)]
    coordinator = _coordinator(1, 3, encode_enumerator(3, entries, False))
    extraction = _extract(tmp_path, held, coordinator)
    (source,) = extraction.sources
    assert source.kind is SourceKind.HYBRID_SOURCE
    assert source.initial_discovery_finished is False
    assert [(p.partition, p.state, p.next_offset) for p in source.positions] == [
        (0, PositionState.NEXT, 40),
        (1, PositionState.FINISHED, 90),
    ]
    codes = _severities(extraction)
    assert codes["hybrid-source"] is Severity.NOTE
    assert Severity.BLOCKER not in codes.values()
    (written_by,) = [f.message for f in extraction.findings if f.code == "written-by"]
    assert "and by a Kafka connector 5.0 or later (enumerator version 3)" in written_by


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_hybrid_source_is_read_with_every_version_of_its_kafka_enumerator(version: int) -> None:
    coordinator = _coordinator(4, version, encode_enumerator(version, _ENTRIES))
    source = recognise_source([], coordinator)
    assert isinstance(source, HybridSource)
    assert (source.source_index, source.other_splits) == (4, 0)
    assert isinstance(source.current, KafkaSource)
    assert source.current.enumerator is not None
    assert [entry.partition for entry in source.current.enumerator.entries] == [0, 1]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
@pytest.mark.parametrize("index", [0, 1, 2])
def test_hybrid_source_is_recognized_even_if_its_kafka_enumerator_is_empty(
    index: int, version: int
) -> None:
    coordinator = _coordinator(index, version, encode_enumerator(version, []))
    assert isinstance(recognise_source([], coordinator), HybridSource)


def test_dynamic_source_inside_hybrid_source_keeps_its_clusters(tmp_path: Path) -> None:
    inner = encode_dynamic_split("east", KafkaSplit("orders", 0, 7))
    element = encode_reader_element(encode_hybrid_split(1, "east-orders-0", inner, 1))
    streams = {"stream": {"east": StreamCluster(["orders"], "east:9092")}}
    enumerator = encode_dynamic_enumerator(1, streams, 3, {"east": _KAFKA})
    extraction = _extract(tmp_path, {0: [element]}, _coordinator(1, 1, enumerator))
    (source,) = extraction.sources
    assert [(p.cluster, p.partition, p.next_offset) for p in source.positions] == [
        ("east", 0, 7),
        ("east", 1, None),
    ]
    elsewhere = make_plan(extraction, [source], ClusterSnapshot({}), bootstrap_servers="b:1")
    assert any("'east' at east:9092" in warning for warning in elsewhere.warnings)


@pytest.mark.parametrize("elements", [{0: [_file_split(0)]}, {0: []}])
def test_hybrid_source_that_has_not_reached_kafka_blocks_move(
    tmp_path: Path, elements: Mapping[int, Sequence[bytes]]
) -> None:
    extraction = _extract(tmp_path, elements, _coordinator(0, 1, b"a file enumerator's"))
    (source,) = extraction.sources
    assert source.positions == ()
    assert source.initial_discovery_finished is None
    assert _severities(extraction)["hybrid-source-elsewhere"] is Severity.BLOCKER


def test_to_spark_is_refused_before_hybrid_source_reaches_kafka(tmp_path: Path) -> None:
    operator = operator_with_elements(
        {0: [_file_split(0)]}, _coordinator(0, 1, b"a file enumerator's")
    )
    result = migrate("to-spark", str(write_checkpoint(tmp_path / "chk-7", operator)))
    assert (result.code, result.stdout) == (4, "")
    assert "has not reached Kafka yet" in result.stderr


def test_remaining_splits_of_earlier_source_block_move(tmp_path: Path) -> None:
    """If a reader is restored from a checkpoint before the switch, it reads these splits first."""
    elements = {0: [_kafka_split(1, KafkaSplit("orders", 0, 40))], 1: [_file_split(0)]}
    extraction = _extract(tmp_path, elements, _coordinator(1, 3, _KAFKA))
    (finding,) = [f for f in extraction.findings if f.code == "hybrid-source-elsewhere"]
    assert finding.severity is Severity.BLOCKER
    assert "1 split " in finding.message
    assert extraction.sources[0].positions[0].next_offset == 40


def test_kafka_split_of_earlier_source_is_not_a_position(tmp_path: Path) -> None:
    elements = {0: [_kafka_split(0, KafkaSplit("old", 0, 40))]}
    extraction = _extract(tmp_path, elements, _coordinator(1, 3, _KAFKA))
    assert extraction.sources[0].topics == {"orders"}
    assert _severities(extraction)["hybrid-source-elsewhere"] is Severity.BLOCKER


@pytest.mark.parametrize(
    ("elements", "coordinator"),
    [
        # Without readable coordinator state, the current source is unknown.
        ({0: [_kafka_split(1, KafkaSplit("orders", 0, 40))]}, None),
        ({0: [_kafka_split(1, KafkaSplit("orders", 0, 40))]}, encode_coordinator(1, 1, b"damage")),
        # One of the splits cannot be decoded.
        (
            {0: [_kafka_split(1, KafkaSplit("orders", 0, 40)), b"damage"]},
            _coordinator(0, 1, b"a file enumerator's"),
        ),
        # Splits of a KafkaSource and of a HybridSource.
        (
            {
                0: [
                    _kafka_split(1, KafkaSplit("orders", 0, 40)),
                    encode_reader_element(encode_split("orders", 1, 4)),
                ]
            },
            _coordinator(1, 3, _KAFKA),
        ),
        # Only splits of a KafkaSource or DynamicKafkaSource, with a HybridSource's enumerator.
        ({0: [encode_reader_element(encode_split("orders", 1, 4))]}, _coordinator(1, 3, _KAFKA)),
        (
            {
                0: [
                    encode_reader_element(
                        encode_dynamic_split("east", KafkaSplit("orders", 1, 4)), 1
                    )
                ]
            },
            _coordinator(1, 3, _KAFKA),
        ),
    ],
)
def test_mixed_or_damaged_state_of_hybrid_source_blocks_move(
    tmp_path: Path, elements: Mapping[int, Sequence[bytes]], coordinator: bytes | None
) -> None:
    """Only part of the state belongs to a HybridSource, or only part of it can be read."""
    extraction = _extract(tmp_path, elements, coordinator)
    assert extraction.sources == ()
    assert _severities(extraction)["damaged-source"] is Severity.BLOCKER


def test_damaged_kafka_source_inside_hybrid_source_blocks_move(tmp_path: Path) -> None:
    bad = encode_reader_element(encode_hybrid_split(1, "x", encode_split("orders", 0, 4) + b"\0"))
    extraction = _extract(tmp_path, {0: [bad]}, _coordinator(1, 3, _KAFKA))
    (finding,) = [f for f in extraction.findings if f.code == "hybrid-source-elsewhere"]
    assert finding.severity is Severity.BLOCKER
    assert "some cannot be decoded" in finding.message
    assert extraction.sources[0].positions == ()


def test_nested_hybrid_source_is_not_unwrapped() -> None:
    """Hostile bytes could nest hybrid sources without limit."""
    enumerator = _KAFKA
    for version in (3, *[0] * 5000):
        enumerator = encode_hybrid_enumerator(1, version, enumerator)
    source = recognise_source([], encode_coordinator(1, 0, enumerator))
    assert isinstance(source, HybridSource)
    assert isinstance(source.current, UnknownSource)


def test_source_with_splits_of_two_kinds_is_unknown() -> None:
    split = KafkaSplit("orders", 0, 5)
    kinds = {
        "KafkaSource": encode_reader_element(encode_split("orders", 0, 5)),
        "DynamicKafkaSource": encode_reader_element(encode_dynamic_split("c", split), 1),
        "HybridSource": _file_split(0),
    }
    for one, other in combinations(kinds, 2):
        found = recognise_source([(0, [kinds[other]]), (1, [kinds[one]])], None)
        assert found == UnknownSource(f"its splits belong to a {one} and a {other}", True)


@pytest.mark.parametrize(
    "split",
    [
        encode_hybrid_split(-1, "orders-0", b"x"),
        encode_hybrid_split(1, "", b"x"),
        encode_hybrid_split(1, "orders-0", b"x") + b"\0",
        encode_hybrid_split(1, "orders-0", b"x")[:-1],
    ],
)
def test_malformed_hybrid_split_is_refused(split: bytes) -> None:
    assert read_reader_element(encode_reader_element(encode_hybrid_split(1, "o", b"x")), "s")
    with pytest.raises(DecodeError):
        read_reader_element(encode_reader_element(split), "s")


def test_unrelated_coordinator_is_not_a_hybrid_source(tmp_path: Path) -> None:
    """Other operators also have coordinators.

    Without reader state, a HybridSource is recognized only if its current source is a Kafka source.
    """
    operator = operator_with_elements({}, _coordinator(0, 1, b"whatever"))
    checkpoint = read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator))
    (source,) = checkpoint.sources.values()
    assert isinstance(source, UnknownSource)
