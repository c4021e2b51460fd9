"""Merge the positions of a source's readers and enumerator."""

from __future__ import annotations

import pytest

from decoder import KafkaSource, ReaderSplit
from decoder.kafka.enumerator import AssignmentStatus, EnumeratorEntry, EnumeratorState
from decoder.kafka.split import COMMITTED, EARLIEST, LATEST, NOT_SET, Split
from migrate.inputs.flink.kafka_source import merged_positions
from migrate.model.positions import Marker, Position, PositionState

_ASSIGNED, _UNASSIGNED = AssignmentStatus.ASSIGNED, AssignmentStatus.UNASSIGNED
_FINISHED = PositionState.FINISHED
_GONE = "its former reader no longer has the partition, and the state lacks the last offset"


def _merged(
    held: list[tuple[int, Split]], entries: list[EnumeratorEntry] | None = None
) -> list[Position]:
    enumerator = None if entries is None else EnumeratorState(3, tuple(entries), True)
    splits = tuple(ReaderSplit(subtask, split) for subtask, split in held)
    return [
        Position(*fields) for fields in merged_positions(KafkaSource(splits, enumerator), "east")
    ]


def _entry(
    split: Split | None, status: AssignmentStatus = _ASSIGNED, partition: int = 0
) -> EnumeratorEntry:
    return EnumeratorEntry("t", partition, status, split)


def _unresolved(reason: str, stop: int | None = None, subtask: int | None = None) -> Position:
    state = PositionState.UNRESOLVED
    return Position("t", 0, state, None, stop, subtask, "east", reason)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, None, Position("t", 0, PositionState.NEXT, 0, None, 3, "east")),
        (7, 9, Position("t", 0, PositionState.NEXT, 7, 9, 3, "east")),
        (
            EARLIEST,
            None,
            Position("t", 0, PositionState.EARLIEST, Marker.EARLIEST, None, 3, "east"),
        ),
        (LATEST, 9, Position("t", 0, PositionState.LATEST, Marker.LATEST, 9, 3, "east")),
        (
            COMMITTED,
            LATEST,
            Position("t", 0, PositionState.COMMITTED, Marker.COMMITTED, LATEST, 3, "east"),
        ),
        (
            NOT_SET,
            9,
            _unresolved(
                "its start was not initialized when the checkpoint was taken", 9, subtask=3
            ),
        ),
    ],
)
def test_position_of_reader_overrides_enumerator(
    start: int, stop: int | None, expected: Position
) -> None:
    split = Split("t", 0, start, stop)
    assert _merged([(3, split)]) == [expected]
    # The enumerator stores the first start of the split, which shows no progress.
    assert _merged([(3, split)], [_entry(Split("t", 0, 1, None))]) == [expected]


@pytest.mark.parametrize(
    ("split", "start"),
    [
        (Split("t", 0, 5, 9), 9),
        (Split("t", 0, 9, 9), 9),
        (Split("t", 0, 10, 9), 10),
        (Split("t", 0, 0, 0), 0),
        (Split("t", 0, EARLIEST, 9), 9),
        (Split("t", 0, LATEST, 9), None),
        (Split("t", 0, COMMITTED, 9), None),
        (Split("t", 0, 5, LATEST), None),
        (Split("t", 0, 5, None), None),
    ],
)
def test_assigned_split_without_reader_counts_as_finished_if_its_end_offset_is_known(
    split: Split, start: int | None
) -> None:
    """A reader drops a bounded split at its end, but the enumerator still lists the assignment."""
    stop = split.stopping_offset
    expected = (
        _unresolved(_GONE, stop)
        if start is None
        else Position("t", 0, _FINISHED, start, stop, cluster="east")
    )
    assert _merged([], [_entry(split)]) == [expected]
    assert _merged([], [_entry(None)]) == [_unresolved(_GONE)]


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (
            Split("t", 0, 5, 9),
            Position("t", 0, PositionState.UNASSIGNED, 5, 9, cluster="east"),
        ),
        (
            Split("t", 0, LATEST, None),
            Position("t", 0, PositionState.UNASSIGNED, Marker.LATEST, cluster="east"),
        ),
        (
            Split("t", 0, NOT_SET, 9),
            _unresolved("it was not yet assigned, and its start was not initialized", 9),
        ),
        (
            None,
            _unresolved(
                "it was not yet assigned, and the state does not contain the job's starting policy"
            ),
        ),
    ],
)
def test_unassigned_split_starts_at_position_in_enumerator(
    split: Split | None, expected: Position
) -> None:
    assert _merged([], [_entry(split, _UNASSIGNED)]) == [expected]


def test_split_in_several_readers_is_unresolved_if_starts_differ() -> None:
    same = Split("t", 0, 5, None)
    (found,) = _merged([(0, same), (1, same)])
    assert found == Position("t", 0, PositionState.NEXT, 5, None, 0, "east")
    others = [(0, same), (1, Split("t", 0, 9, None)), (2, Split("t", 0, 7, 9))]
    assert _merged([*others, (0, Split("t", 1, 3, None))]) == [
        _unresolved("reader state contains the partition 3 times, with starts from 5 to 9"),
        Position("t", 1, PositionState.NEXT, 3, None, 0, "east"),
    ]


def test_positions_are_sorted_by_topic_and_partition() -> None:
    held = [(0, Split(topic, n, 5, None)) for topic in ("u", "t") for n in (10, 2)]
    entries = [_entry(Split("t", 3, 5, 6), partition=3), _entry(None, partition=2)]
    found = _merged(held, entries)
    assert [position.topic_partition for position in found] == [
        ("t", 2),
        ("t", 3),
        ("t", 10),
        ("u", 2),
        ("u", 10),
    ]
    assert [position.state for position in found if position.partition == 3] == [_FINISHED]
