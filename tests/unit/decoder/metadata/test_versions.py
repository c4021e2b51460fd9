"""Read old versions as Flink's sources define them, and refuse unknown versions by number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from decoder import DecodeError, ErrorKind, read_checkpoint
from decoder.metadata.layout import LAYOUTS
from decoder.metadata.parse import parse_metadata
from migrate.inputs.flink.extract import extract
from migrate.model.positions import PositionState
from tests.golden.test_all_handles import ENTRIES, SYNTHETIC
from tests.support.checkpoints import (
    SourceState,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import (
    EnumeratorSplit,
    FileHandle,
    KafkaSplit,
    KeyGroupsHandle,
    Metadata,
    Operator,
    PartitionableHandle,
    Subtask,
    encode_metadata,
)

_OPERATOR = operator_with_states({"list": [b"x"]})
_V2 = encode_metadata(Metadata(9, (_OPERATOR,)), 2)
_CHAIN_LENGTH = 8 + 8 + 4 + 4 + 16 + 4 + 4


@pytest.mark.parametrize("version", [1, 7, -1])
def test_unsupported_metadata_version_is_refused_with_its_number(version: int) -> None:
    data = _V2[:4] + version.to_bytes(4, "big", signed=True) + _V2[8:]
    with pytest.raises(DecodeError, match=f"version {version} is not supported") as refused:
        parse_metadata(data, "_metadata")
    assert refused.value.kind is ErrorKind.UNSUPPORTED


def test_metadata_version_2_is_read_and_unused_fields_are_skipped() -> None:
    assert parse_metadata(_V2, "_metadata").operators[0].state_names == ("list",)
    # The field contained the chain length before Flink 1.3. Any number is accepted.
    other = bytearray(_V2)
    other[_CHAIN_LENGTH : _CHAIN_LENGTH + 4] = (77).to_bytes(4, "big")
    assert parse_metadata(bytes(other), "_metadata").checkpoint_id == 9


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (_CHAIN_LENGTH + 4, -1, "negative"),  # a finished operator
        (_CHAIN_LENGTH + 8, -1, "negative"),  # a finished subtask
        (_CHAIN_LENGTH + 20, 1, "Flink 1.1"),  # state of Checkpointed
    ],
)
def test_impossible_field_values_in_metadata_version_2_are_refused(
    place: int, value: int, says: str
) -> None:
    data = bytearray(_V2)
    data[place : place + 4] = value.to_bytes(4, "big", signed=True)
    with pytest.raises(DecodeError, match=says):
        parse_metadata(bytes(data), "_metadata")


def test_raw_state_bytes_are_also_counted_separately() -> None:
    """The sizes of the operator state and the keyed state include raw state."""
    handle = PartitionableHandle((), FileHandle("file:/a", 1000))
    keyed = KeyGroupsHandle(0, (0,), FileHandle("file:/b", 200), None)
    subtask = Subtask(0, raw_operator=handle, managed_operator=handle, raw_keyed=keyed)
    for version in (2, 3):
        data = encode_metadata(Metadata(1, (replace(_OPERATOR, subtasks=(subtask,)),)), version)
        (operator,) = parse_metadata(data, "_metadata").operators
        assert operator.raw_state_bytes == 1200
        assert (operator.operator_state_bytes, operator.keyed_state_bytes) == (2000, 200)


def test_duplicate_operator_id_is_refused() -> None:
    twice = Metadata(1, (Operator(bytes(16), 1, 1), Operator(bytes(16), 2, 2)))
    for version in (2, 3):
        with pytest.raises(DecodeError, match=f"operator {'00' * 16} is listed twice"):
            parse_metadata(encode_metadata(twice, version), "_metadata")


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 13])
@pytest.mark.parametrize("version", sorted(LAYOUTS))
def test_metadata_cut_off_at_any_byte_is_reported_as_truncated(version: int, step: int) -> None:
    """A file that ends inside the trailing properties is also reported as truncated.

    The error is never "corrupt" or "unsupported".
    """
    path = next(entry["path"] for entry in ENTRIES if entry["metadata_version"] == version)
    data = (SYNTHETIC / path).read_bytes()
    assert parse_metadata(data, "_metadata").version == version
    for size in range(0, len(data), step):
        with pytest.raises(DecodeError) as refused:
            parse_metadata(data[:size], "_metadata")
        assert refused.value.kind is ErrorKind.TRUNCATED, size


# -- enumerator version 0 ------------------------------------------------------------------------


def _version_0(tmp_path: Path, state: SourceState) -> dict[int, tuple[PositionState, int | None]]:
    operator = source_operator(replace(state, enumerator_version=0))
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", operator)))
    (source,) = extraction.sources
    assert source.initial_discovery_finished is None
    (written,) = [f.message for f in extraction.findings if f.code == "written-by"]
    assert "connector 1.12.0 to 1.12.2" in written
    return {p.partition: (p.state, p.next_offset) for p in source.positions}


def test_splits_assigned_by_enumerator_version_0_get_offsets_from_readers(tmp_path: Path) -> None:
    """The enumerator contains start offsets, but not the progress.

    A split that no reader contains has finished if it has a stopping offset. Otherwise, its
    position is unresolved.
    """
    held = splits("orders", [40, 50])
    assigned = [
        EnumeratorSplit(KafkaSplit("orders", 0, -2), subtask=0),
        EnumeratorSplit(KafkaSplit("orders", 1, -2), subtask=1),
        EnumeratorSplit(KafkaSplit("orders", 2, 5, 90), subtask=1),  # finished
        EnumeratorSplit(KafkaSplit("orders", 3, 5), subtask=4),
    ]
    assert _version_0(tmp_path, SourceState({0: held[:1], 1: held[1:]}, entries=assigned)) == {
        0: (PositionState.NEXT, 40),
        1: (PositionState.NEXT, 50),
        2: (PositionState.FINISHED, 90),
        3: (PositionState.UNRESOLVED, None),
    }


def test_enumerator_version_0_may_assign_same_split_to_two_subtasks(tmp_path: Path) -> None:
    """Flink 1.12.0 to 1.12.2 keeps the old assignment of a split when it reassigns the split."""
    assigned = [
        EnumeratorSplit(KafkaSplit("orders", 0, -2, 90), subtask=0),
        EnumeratorSplit(KafkaSplit("orders", 0, 7, 90), subtask=1),
    ]
    assert _version_0(tmp_path, SourceState({0: []}, entries=assigned)) == {
        0: (PositionState.FINISHED, 90)
    }
