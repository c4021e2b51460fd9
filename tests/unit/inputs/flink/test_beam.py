"""Read positions of Apache Beam's KafkaIO (SEMANTICS A 15).

The states of real pipelines, and the values that Beam's own classes read from them, are in
tests/golden (test_decoding.py). No pipeline produces the states in this file: real elements with a
different checkpoint mark, and maps of pending splits in the format of Java's serialization.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from decoder import BeamKafkaIO, DecodeError, UnknownSource, read_checkpoint
from decoder.kafka.beam import WRAPPER_STATE
from decoder.kafka.split import NOT_SET
from decoder.metadata.model import InlineState
from migrate.inputs.flink.choose_source import Choice, choose
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.source import SourceKind
from migrate.model.errors import NoSuchName
from migrate.model.finding import Severity
from migrate.model.positions import PositionState
from tests.support.checkpoints import (
    operator_with_elements,
    operator_with_states,
    write_checkpoint,
)
from tests.support.command import migrate
from tests.support.encoder import (
    ByteStreamHandle,
    FileHandle,
    KeyGroupsHandle,
    Operator,
    PartitionableHandle,
    encode_coordinator,
)
from tests.support.golden import ENTRIES, golden
from tests.support.hostile import java_class, utf

_SPLIT = "org.apache.beam.runners.flink.translation.wrappers.streaming.io.source.FlinkSourceSplit"
_KAFKA = "org.apache.beam.sdk.io.kafka.KafkaUnboundedSource"
_BYTES = b"\x75\x72\x00\x02[B"  # start of the last array of an element: the state of its split
_NULL = b"\x70"


def _real_element() -> bytes:
    """The element of a real pipeline's first split, with ``PARTITIONS`` in this order."""
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
    """A checkpoint mark in Avro's binary format, with Beam's schema."""
    items = [
        _long(at) + _long(partition) + _long(len(topic)) + topic.encode() + _long(watermark)
        for at, (topic, partition) in zip(next_offsets, PARTITIONS, strict=False)
    ]
    return _long(len(items)) + b"".join(items) + _long(0)


def _with_state(state: bytes) -> bytes:
    """The real element with a different state of its split."""
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


def test_beam_position_is_next_offset_of_checkpoint_mark(tmp_path: Path) -> None:
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
    ids=["no reader yet", "readers that had not queried Kafka", "one of three readers"],
)
def test_beam_split_without_start_offset_is_unresolved(
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
        _mark(5, 6),  # fewer partitions than the source reads
        _mark(5, 6, 7) + b"\0",
        _mark(5, -2, 7),  # an invalid offset
        _mark(5, 6, 7).replace(b"orders", b"orderz"),  # not a topic of the source
        b"\xff" * 9 + b"\x01" + _mark(5, 6, 7),  # an impossible count
        b"\x80" * 11,
    ],
)
@pytest.mark.parametrize(
    "beside", [b"", _with_mark(_mark(5, 6, 7))], ids=["alone", "with a valid element"]
)
@pytest.mark.parametrize("bad_first", [True, False])
def test_checkpoint_mark_that_beam_rejects_blocks_move(
    tmp_path: Path, mark: bytes, beside: bytes, bad_first: bool
) -> None:
    elements = [one for one in (_with_mark(mark), beside) if one]
    second = operator_with_elements({0: [_with_mark(_mark(1, 2, 3))]}, None, bytes(16))
    for others in ((), (second,)):
        held = operator_with_elements({0: elements if bad_first else elements[::-1]}, None)
        extraction = _extract(tmp_path, held, *others)
        assert len(extraction.sources) == len(others)
        assert _codes(extraction)["damaged-source"] is Severity.BLOCKER


def test_beam_checkpoint_mark_is_read_from_avro_block_with_byte_size(tmp_path: Path) -> None:
    """In Avro, a negative count precedes the byte size of a block. Beam never writes this form."""
    whole = _mark(5, 6, 7)
    element = _with_mark(_long(-3) + _long(len(whole) - 2) + whole[1:])
    (source,) = _extract(tmp_path, operator_with_elements({0: [element]}, None)).sources
    assert [position.start for position in source.positions] == [5, 6, 7]


def _object(name: str, values: dict[str, bytes], written: bytes | None = None) -> bytes:
    """A serialized Java object with these fields in this order.

    A value of four bytes is an int field, and any other value is an object field. ``written`` is
    the data that the class itself writes after the fields.
    """
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


def _list(*elements: bytes) -> bytes:
    """An ArrayList that writes its elements after a block with its size, like Java's."""
    return _object("java.util.ArrayList", {}, b"\x77\x04" + bytes(4) + b"".join(elements))


def _source(name: str, topic: str = "waits", partition: int = 4, listed: bytes = b"") -> bytes:
    place = {"partition": pack(">i", partition), "topic": _text(topic)}
    held = listed or _list(_object("TopicPartition", place))
    return _object(name, {"spec": _object("AutoValue_KafkaIO_Read", {"topicPartitions": held})})


def _split(source: bytes, state: bytes = _NULL) -> bytes:
    values = {"splitIndex": pack(">i", 3), "beamSplitSource": source, "splitState": state}
    return _object(_SPLIT, values)


def _map(*lists: bytes) -> bytes:
    """A map from subtasks to lists of splits, as the enumerator writes it."""
    number = _object("java.lang.Integer", {"value": pack(">i", 0)})
    held = b"".join(number + one for one in lists)
    return b"\xac\xed\0\5" + _object("java.util.HashMap", {}, held)


def _waiting(source: str, topic: str, partition: int) -> bytes:
    """A map with one subtask, whose list has one split of one partition."""
    return _map(_list(_split(_source(source, topic, partition))))


@pytest.mark.parametrize("readers", [{0: [_with_mark(_mark(5, 6, 7))]}, {0: []}])
def test_pending_splits_of_beam_enumerator_are_unresolved(
    tmp_path: Path, readers: dict[int, list[bytes]]
) -> None:
    """A pending split is in the state of the enumerator, and no reader has it yet."""
    coordinator = encode_coordinator(1, 0, _waiting(_KAFKA, "waits", 4))
    checkpoint = read_checkpoint(
        write_checkpoint(tmp_path / "chk-7", operator_with_elements(readers, coordinator))
    )
    (state,) = checkpoint.sources.values()
    assert isinstance(state, BeamKafkaIO)
    assert [(m.topic, m.partition, m.next_offset) for m in state.unassigned] == [
        ("waits", 4, NOT_SET)
    ]
    (source,) = extract(checkpoint).sources
    assert source.positions[-1].state is PositionState.UNRESOLVED
    assert len(source.positions) == 1 + 3 * len(readers[0])


def test_unrecognized_beam_enumerator_state_blocks_move(tmp_path: Path) -> None:
    for version, body in ((0, _waiting("a.b.KinesisSource", "waits", 4)), (1, b""), (0, _NULL)):
        coordinator = encode_coordinator(1, version, body)
        held = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, coordinator)
        assert _codes(_extract(tmp_path, held))["damaged-source"] is Severity.BLOCKER


_AN_INTEGER = _object("java.lang.Integer", {"value": pack(">i", 0)})
_ONE_SPLIT = _split(_source(_KAFKA))


@pytest.mark.parametrize(
    "body",
    [
        _map(_object("java.util.Collections$SingletonList", {"element": _ONE_SPLIT})),
        _map(b"\x75" + java_class("[LX;", 2, []) + pack(">i", 1) + _ONE_SPLIT),
        _map(_list(_list(_ONE_SPLIT))),
        _map(_list(_AN_INTEGER, _ONE_SPLIT)),
        _map(_ONE_SPLIT),
        _map(_list(_ONE_SPLIT), _NULL),
        _map(_list(_ONE_SPLIT))[:-1] + _AN_INTEGER + b"\x78",  # a key without a list
        b"\xac\xed\0\5" + _object("java.util.HashMap", {"held": _ONE_SPLIT}, b""),
        b"\xac\xed\0\5"
        + _object("java.util.HashMap", {"held": _ONE_SPLIT}, _AN_INTEGER + _list(_ONE_SPLIT)),
        _map(_object("java.util.ArrayList", {"held": _ONE_SPLIT}, _ONE_SPLIT)),
        _map(_list(_split(_source(_KAFKA, listed=_object("java.util.List12", {}))))),
        _map(_list(_split(_source(_KAFKA, listed=_list())))),
        _map(_list(_split(_source(_KAFKA, "no topic")))),
        _map(_list(_split(_source(_KAFKA, partition=-1)))),
    ],
)
@pytest.mark.parametrize("readers", [{0: [_with_mark(_mark(5, 6, 7))]}, {0: []}])
def test_pending_beam_splits_of_unexpected_shape_block_move(
    tmp_path: Path, body: bytes, readers: dict[int, list[bytes]]
) -> None:
    held = operator_with_elements(readers, encode_coordinator(1, 0, body))
    assert _codes(_extract(tmp_path, held))["damaged-source"] is Severity.BLOCKER


def _reference(handle: int) -> bytes:
    """A reference to an earlier item of the stream.

    The number of the item counts classes, objects, and the types of fields.
    """
    return b"\x71" + pack(">i", 0x7E0000 + handle)


_LIST, _SPLIT_READ, _SOURCE_READ, _PARTITIONS_READ = 5, 9, 12, 17


@pytest.mark.parametrize(
    "body",
    [
        _map(_list(_ONE_SPLIT), _reference(_LIST)),
        _map(_list(_ONE_SPLIT, _reference(_SPLIT_READ))),
        _map(_list(_ONE_SPLIT, _split(_reference(_SOURCE_READ)))),
        _map(_list(_ONE_SPLIT, _split(_source(_KAFKA, listed=_reference(_PARTITIONS_READ))))),
    ],
    ids=["list", "split", "source", "partitions"],
)
def test_pending_beam_split_listed_twice_makes_source_unknown(tmp_path: Path, body: bytes) -> None:
    held = operator_with_elements({0: []}, encode_coordinator(1, 0, body))
    (source,) = read_checkpoint(write_checkpoint(tmp_path / "chk-7", held)).sources.values()
    assert isinstance(source, UnknownSource) and source.partly_kafka
    assert "listed twice" in source.reason


def test_beam_enumerator_with_nested_lists_is_quickly_reported_as_blocker(tmp_path: Path) -> None:
    """Each list refers many times to the next list, so a traversal would take exponential time."""
    body = _list()
    for level in range(6, 0, -1):
        body = _list(body, *[_reference(_LIST + 2 * level)] * 6)
    coordinator = encode_coordinator(1, 0, _map(body))
    held = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, coordinator)
    assert _codes(_extract(tmp_path, held))["damaged-source"] is Severity.BLOCKER


def test_refusal_of_non_kafka_beam_source_contains_class_name(tmp_path: Path) -> None:
    element = REAL.replace(_KAFKA.encode(), b"org.apache.beam.sdk.io.other.QueueUnboundedSource")
    assert len(element) == len(REAL)
    extraction = _extract(tmp_path, operator_with_elements({0: [element]}, None))
    with pytest.raises(NoSuchName, match=r"the source .*QueueUnbounded.* is not KafkaIO"):
        choose(extraction, Choice())


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("bundle-buffer-tag", "run the pipeline with --finishBundleBeforeCheckpointing"),
        (
            "pushed-back-elements",
            "take a new checkpoint once the side inputs of these records are ready",
        ),
        ("stable-input-buffer0", "take a new checkpoint after a checkpoint interval without input"),
        ("stable-input-buffer1", "take a new checkpoint after a checkpoint interval without input"),
    ],
)
def test_move_is_blocked_if_beam_operator_buffers_records(
    tmp_path: Path, name: str, way: str
) -> None:
    source = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, None)
    holding = operator_with_states({name: [b"one", b"two"]}, operator_id=bytes(16))
    extraction = _extract(tmp_path, source, holding)
    (blocker,) = [f for f in extraction.findings if f.severity is Severity.BLOCKER]
    assert blocker.code == "in-flight-records"
    assert "contains 2 records that" in blocker.message
    assert way in blocker.message
    empty = operator_with_states({name: []}, operator_id=bytes(16))
    assert "in-flight-records" not in _codes(_extract(tmp_path, source, empty))


def test_keyed_state_of_dofn_triggers_warning_in_pipeline_with_kafkaio(tmp_path: Path) -> None:
    """The state may contain the positions of a second source, if the DoFn is splittable."""
    source = operator_with_elements({0: [_with_mark(_mark(5, 6, 7))]}, None)
    bundle = operator_with_states({"bundle-buffer-tag": []}).subtasks[0]
    groups = KeyGroupsHandle(0, (0,), ByteStreamHandle("keyed", b"restrictions"), None)
    dofn = Operator(bytes(16), 1, 128, subtasks=(replace(bundle, managed_keyed=groups),))
    told = {str(finding.code): finding for finding in _extract(tmp_path, source, dofn).findings}
    assert told["another-source-kind"].severity is Severity.WARNING
    assert "use_deprecated_read" in told["another-source-kind"].message
    assert "keyed state" in told["state-not-moved"].message


def _wrapped(*elements: bytes, file: bool = False) -> Operator:
    """The state of an UnboundedSourceWrapper of Beam 2.50: elements without their length."""
    held = operator_with_states({WRAPPER_STATE: elements}, sized=False)
    if not file:
        return held
    (subtask,) = held.subtasks
    assert isinstance(subtask.managed_operator, PartitionableHandle)
    handle = replace(subtask.managed_operator, delegate=FileHandle("file:/gone/state", 5000))
    return replace(held, subtasks=(replace(subtask, managed_operator=handle),))


def _real_wrapped() -> list[bytes]:
    checkpoint = read_checkpoint(golden("beam-2.50/beam"))
    return [
        bytes(handle.stream.data[handle.states[0].byte_offsets[0] :])
        for operator in checkpoint.operators
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        and handle.states[0].name == WRAPPER_STATE
        and isinstance(handle.stream, InlineState)
    ]


WRAPPED = _real_wrapped()
_DOFN = operator_with_states({"bundle-buffer-tag": []}, operator_id=bytes(16))


def test_positions_are_read_from_wrapper_state_of_beam_2_50(tmp_path: Path) -> None:
    """In Beam 2.50, KafkaIO runs in an UnboundedSourceWrapper, whose state contains its splits."""
    (source,) = _extract(tmp_path, _wrapped(*WRAPPED), _DOFN).sources
    assert source.kind is SourceKind.BEAM_KAFKA_IO
    assert {(p.topic, p.partition) for p in source.positions} == {
        *PARTITIONS,
        ("orders", 1),
        ("payments", 0),
        ("x", 0),
    }


_HEAD_GONE = b"\0" + WRAPPED[0][1:]  # not a stream of a Java object


@pytest.mark.parametrize(
    "elements",
    [
        [WRAPPED[0][:-1]],
        [WRAPPED[0][:-1], WRAPPED[1]],
        [WRAPPED[1], WRAPPED[0][:-1]],
        [WRAPPED[1], _HEAD_GONE],
        [WRAPPED[1], b"x"],
        [_HEAD_GONE, WRAPPED[1]],
        [_HEAD_GONE],
        [WRAPPED[0][:200]],
    ],
)
@pytest.mark.parametrize("others", [(), (_DOFN,)], ids=["alone", "in a pipeline"])
def test_damaged_wrapper_state_of_kafkaio_blocks_move(
    tmp_path: Path, elements: list[bytes], others: tuple[Operator, ...]
) -> None:
    extraction = _extract(tmp_path, _wrapped(*elements), *others)
    assert extraction.sources == ()
    assert _codes(extraction)["damaged-source"] is Severity.BLOCKER


def test_missing_wrapper_state_file_is_error_only_in_beam_pipeline(tmp_path: Path) -> None:
    """In any other job, the state with this name belongs to a user function."""
    held = _wrapped(WRAPPED[0], file=True)
    with pytest.raises(DecodeError, match="missing"):
        _extract(tmp_path, held, _DOFN)
    assert _extract(tmp_path, held).sources == ()  # state of a user function


def test_wrapper_state_has_no_size_limit_in_beam_pipeline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any other job, a larger state with this name is ignored.

    In a Beam pipeline, this test expects `migrate` to try to read the file, which is missing.
    """
    held = _wrapped(WRAPPED[0], file=True)
    monkeypatch.setattr("decoder.kafka.operator._MAX_WRAPPER_BYTES", 10)
    with pytest.raises(DecodeError, match="missing"):
        _extract(tmp_path, held, _DOFN)


@pytest.mark.parametrize("sized", [True, False])
def test_user_state_with_name_of_beam_wrapper_state_is_not_a_source(
    tmp_path: Path, sized: bool
) -> None:
    for held in ([], [b"x"], [b"\xac\xed\0\5sr" + utf("a.b.Counter")]):
        function = operator_with_states({"_default_": held}, sized=sized)
        for others in ((), (_DOFN,)):
            extraction = _extract(tmp_path, function, *others)
            assert extraction.sources == ()
            assert "damaged-source" not in _codes(extraction)


def test_splittable_dofn_is_refused_with_advice_to_use_deprecated_read() -> None:
    """The positions of a splittable DoFn are restrictions in keyed state."""
    extraction = extract(read_checkpoint(golden("beam-sdf/beam-sdf")))
    with pytest.raises(NoSuchName, match="use_deprecated_read"):
        choose(extraction, Choice())


def test_beam_positions_move_to_spark_but_not_into_savepoint(tmp_path: Path) -> None:
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
    assert "[beam-positions]" in refused.stderr
    assert not (tmp_path / "new").exists()


def _entry(name: str) -> dict[str, Any]:
    expected: dict[str, Any] = next(e for e in ENTRIES if e["name"] == name)["expected"]
    return expected
