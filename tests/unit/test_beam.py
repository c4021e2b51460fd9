"""Apache Beam's KafkaIO: SEMANTICS A 15, of which the positions are read.

What real pipelines left, and what Beam's own classes read of it, is in tests/golden
(test_decoding.py). Here are the states that no pipeline can be made to leave when it is run: real
elements with another mark, and a map of splits that wait, in the grammar of Java's serialization.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from decoder import BeamKafkaIO, read_checkpoint
from decoder.kafka.split import NOT_SET
from migrate.flink.choose_source import NoSuchSource, choose_sources
from migrate.flink.extract import Extraction, Severity, SourceKind, extract
from migrate.positions import PositionState
from tests.support.checkpoints import (
    operator_with_elements,
    operator_with_states,
    write_checkpoint,
)
from tests.support.command import migrate
from tests.support.encoder import Operator, encode_coordinator
from tests.support.golden import ENTRIES, golden
from tests.support.hostile import java_class, utf

_SPLIT = "org.apache.beam.runners.flink.translation.wrappers.streaming.io.source.FlinkSourceSplit"
_KAFKA = "org.apache.beam.sdk.io.kafka.KafkaUnboundedSource"
_BYTES = b"\x75\x72\x00\x02[B"  # the array that a split's state is: the last that it holds
_NULL = b"\x70"


def _real_element() -> bytes:
    """Of the first split of a real pipeline: three partitions, in this order."""
    data = (golden("beam/beam") / "_metadata").read_bytes()
    begin = data.index(b"\xac\xed\0\5sr" + utf(_SPLIT))
    return data[begin - 8 : begin + int.from_bytes(data[begin - 4 : begin], "big")]


REAL = _real_element()
PARTITIONS = (("orders", 0), ("orders", 2), ("payments", 1))


def _long(value: int) -> bytes:
    left, out = (value << 1) ^ (value >> 63), bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes((*out, left))


def _mark(*next_offsets: int, watermark: int = -9223372036854775) -> bytes:
    """In Avro's binary form, by Beam's schema of it."""
    items = [
        _long(at) + _long(partition) + _long(len(topic)) + topic.encode() + _long(watermark)
        for at, (topic, partition) in zip(next_offsets, PARTITIONS, strict=False)
    ]
    return _long(len(items)) + b"".join(items) + _long(0)


def _with_state(state: bytes) -> bytes:
    """The real element with another state of its split."""
    split = REAL[8 : REAL.rindex(_BYTES)] + state
    return REAL[:4] + pack(">i", len(split)) + split


def _with_mark(mark: bytes) -> bytes:
    head = REAL[REAL.rindex(_BYTES) :][: len(_BYTES) + 8 + 1 + 2 + 2]
    return _with_state(head + pack(">i", len(mark)) + mark)


def _extract(tmp_path: Path, *operators: Operator) -> Extraction:
    own = Path(tempfile.mkdtemp(dir=tmp_path))
    return extract(read_checkpoint(write_checkpoint(own / "chk-7", *operators)))


def _codes(extraction: Extraction) -> dict[str, Severity]:
    return {finding.code: finding.severity for finding in extraction.findings}


def test_the_next_offset_is_where_the_pipeline_goes_on(tmp_path: Path) -> None:
    element = _with_mark(_mark(5, 0, 1 << 40))
    (source,) = _extract(tmp_path, operator_with_elements({0: [element]}, None)).sources
    assert source.kind is SourceKind.BEAM_KAFKA_IO
    assert [(p.topic, p.partition, p.state, p.start) for p in source.positions] == [
        ("orders", 0, PositionState.NEXT, 5),
        ("orders", 2, PositionState.NEXT, 0),
        ("payments", 1, PositionState.NEXT, 1 << 40),
    ]
    assert source.initial_discovery_finished is None


@pytest.mark.parametrize(
    ("element", "known"),
    [(_with_state(_NULL), 0), (_with_mark(_mark(-1, -1, -1)), 0), (_with_mark(_mark(-1, 7, 8)), 2)],
    ids=["no reader yet", "readers that had not asked Kafka", "one of them"],
)
def test_a_start_that_was_not_known_is_unresolved(
    tmp_path: Path, element: bytes, known: int
) -> None:
    extraction = _extract(tmp_path, operator_with_elements({0: [element]}, None))
    states = [position.state for position in extraction.sources[0].positions]
    assert states.count(PositionState.UNRESOLVED) == 3 - known
    assert states.count(PositionState.NEXT) == known
    assert _codes(extraction)["unresolved-positions"] is Severity.BLOCKER


def _cut(mark: bytes) -> list[bytes]:
    return [mark[:size] for size in range(len(mark))]


@pytest.mark.parametrize(
    "mark",
    [
        *_cut(_mark(5, 6, 7)),
        _mark(5, 6),  # fewer than its source reads
        _mark(5, 6, 7) + b"\0",
        _mark(5, -2, 7),  # no offset
        _mark(5, 6, 7).replace(b"orders", b"orderz"),  # another topic than its source's
        b"\xff" * 9 + b"\x01" + _mark(5, 6, 7),  # a count that cannot be
        b"\x80" * 11,
    ],
)
def test_a_mark_that_beam_would_not_restore_blocks(tmp_path: Path, mark: bytes) -> None:
    other = operator_with_elements({0: [_with_mark(_mark(5, 6, 7)), _with_mark(mark)]}, None)
    extraction = _extract(tmp_path, other)
    assert extraction.sources == ()
    assert _codes(extraction)["damaged-source"] is Severity.BLOCKER


def test_a_block_may_tell_its_bytes(tmp_path: Path) -> None:
    """Of a negative count: Avro's specification has it, Beam's coder does not write it."""
    whole = _mark(5, 6, 7)
    element = _with_mark(_long(-3) + _long(len(whole) - 2) + whole[1:])
    (source,) = _extract(tmp_path, operator_with_elements({0: [element]}, None)).sources
    assert [position.start for position in source.positions] == [5, 6, 7]


def _object(name: str, values: dict[str, bytes], written: bytes | None = None) -> bytes:
    """An object of Java's, its fields in this order: of four bytes where a value has them, else of
    objects; ``written``: by its class itself."""
    fields = [
        (b"I" if len(value) == 4 else b"L")
        + utf(field)
        + (b"\x74" + utf("Lx;")) * (len(value) != 4)
        for field, value in values.items()
    ]
    flags = 2 if written is None else 3
    after = b"" if written is None else written + b"\x78"
    return b"\x73" + java_class(name, flags, fields) + b"".join(values.values()) + after


def _text(value: str) -> bytes:
    return b"\x74" + utf(value)


def _waiting(source: str, topic: str, partition: int) -> bytes:
    """A map of one subtask, whose list has one split, of one partition."""
    place = {"partition": pack(">i", partition), "topic": _text(topic)}
    listed = _object("java.util.ArrayList", {}, _object("TopicPartition", place))
    beam = _object(source, {"spec": _object("AutoValue_KafkaIO_Read", {"topicPartitions": listed})})
    split = _object(
        _SPLIT, {"splitIndex": pack(">i", 3), "beamSplitSource": beam, "splitState": _NULL}
    )
    held = _object("java.util.ArrayList", {}, split)
    number = _object("java.lang.Integer", {"value": pack(">i", 0)})
    return b"\xac\xed\0\5" + _object("java.util.HashMap", {}, number + held)


@pytest.mark.parametrize("readers", [{0: [_with_mark(_mark(5, 6, 7))]}, {0: []}])
def test_splits_that_wait_for_a_reader_are_unresolved(
    tmp_path: Path, readers: dict[int, list[bytes]]
) -> None:
    coordinator = encode_coordinator(1, 0, _waiting(_KAFKA, "waits", 4))
    checkpoint = read_checkpoint(
        write_checkpoint(tmp_path / "chk-7", operator_with_elements(readers, coordinator))
    )
    (state,) = checkpoint.sources.values()
    assert isinstance(state, BeamKafkaIO)
    assert [(m.topic, m.partition, m.next_offset) for m in state.waiting] == [("waits", 4, NOT_SET)]
    (source,) = extract(checkpoint).sources
    assert source.positions[-1].state is PositionState.UNRESOLVED
    assert len(source.positions) == 1 + 3 * len(readers[0])


def test_what_else_waits_in_the_enumerator_is_not_passed_over(tmp_path: Path) -> None:
    for version, body in ((0, _waiting("a.b.KinesisSource", "waits", 4)), (1, b""), (0, _NULL)):
        coordinator = encode_coordinator(1, version, body)
        held = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, coordinator)
        assert _codes(_extract(tmp_path, held))["damaged-source"] is Severity.BLOCKER


def test_a_source_of_beams_that_is_not_kafkas_is_told_by_its_name(tmp_path: Path) -> None:
    element = REAL.replace(_KAFKA.encode(), b"org.apache.beam.sdk.io.other.QueueUnboundedSource")
    assert len(element) == len(REAL)
    extraction = _extract(tmp_path, operator_with_elements({0: [element]}, None))
    with pytest.raises(NoSuchSource, match=r"an Apache Beam pipeline's source, .*QueueUnbounded"):
        choose_sources(extraction, None)


@pytest.mark.parametrize("name", ["bundle-buffer-tag", "pushed-back-elements"])
def test_records_that_a_bundle_holds_back_block(tmp_path: Path, name: str) -> None:
    source = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, None)
    holding = operator_with_states({name: [b"one", b"two"]}, operator_id=bytes(16))
    extraction = _extract(tmp_path, source, holding)
    (blocker,) = [f for f in extraction.findings if f.severity is Severity.BLOCKER]
    assert blocker.code == "in-flight-records"
    assert "keeps 2 records here" in blocker.message
    assert "--finishBundleBeforeCheckpointing" in blocker.message
    empty = operator_with_states({name: []}, operator_id=bytes(16))
    assert "in-flight-records" not in _codes(_extract(tmp_path, source, empty))


def test_what_a_users_function_keeps_under_the_wrappers_name_is_no_source(tmp_path: Path) -> None:
    for held in ([], [b"x"], [b"\xac\xed\0\5sr" + utf("a.b.Counter")]):
        extraction = _extract(tmp_path, operator_with_states({"_default_": held}))
        assert extraction.sources == ()
        assert "damaged-source" not in _codes(extraction)


def test_a_splittable_dofn_is_refused_by_name() -> None:
    """Its positions are restrictions in keyed state: what a real pipeline left."""
    extraction = extract(read_checkpoint(golden("beam-sdf/beam-sdf")))
    with pytest.raises(NoSuchSource, match="use_deprecated_read"):
        choose_sources(extraction, None)


def test_its_positions_move_to_spark_and_none_are_written_into_a_savepoint(tmp_path: Path) -> None:
    chk = golden("beam/beam")
    moved = migrate("to-spark", chk)
    assert moved.code == 0, moved.stderr
    (marks,) = [one["beam"] for one in _entry("beam/beam")["operators"] if "beam" in one]
    assert {
        (topic, int(partition), at)
        for topic, partitions in json.loads(moved.stdout).items()
        for partition, at in partitions.items()
    } == {(mark["topic"], mark["partition"], mark["next_offset"]) for mark in marks}
    side = tmp_path / "side.json"
    at = {"orders": {"0": 3, "1": 3, "2": 0}, "payments": {"0": 11, "1": 3}, "x": {"0": 1}}
    side.write_text(json.dumps(at))
    refused = migrate("to-flink", chk, "--from", f"json:{side}", "--out", tmp_path / "new")
    assert refused.code == 4
    assert "an Apache Beam pipeline's KafkaIO, whose splits are not written" in refused.stderr
    assert not (tmp_path / "new").exists()


def _entry(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = next(e for e in ENTRIES if e["name"] == name)["expected"]
    return expected
