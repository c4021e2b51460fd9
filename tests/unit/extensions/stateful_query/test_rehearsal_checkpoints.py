"""Determine the records between two checkpoints, and refuse unsuitable pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.extensions.stateful_query.rehearsal.checkpoints import CheckpointPair, Range, read_pair
from migrate.extensions.stateful_query.rehearsal.kafka_range import stream_of, unread_topics
from migrate.inputs.flink.choose_source import Choice
from migrate.model.errors import NoSuchName, Refused, UsageError
from migrate.model.positions import Marker
from tests.support.checkpoints import (
    OPERATOR_ID,
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import KafkaSplit, Operator

EARLIEST, LATEST = -2, -1
EMPTY = Operator(bytes(reversed(OPERATOR_ID)), 1, 128)


def _write(
    directory: Path, number: int, *starts: int, discovered: bool = True, more: Operator = EMPTY
) -> Path:
    state = SourceState({0: splits("orders", starts)}, initial_discovery_finished=discovered)
    return write_checkpoint(directory, source_operator(state), more, checkpoint_id=number)


def _pair(earlier: Path, later: Path) -> CheckpointPair:
    return read_pair(earlier, later, Choice())


def test_rehearsal_reads_records_between_positions_of_two_checkpoints(tmp_path: Path) -> None:
    """A partition without new records is not read."""
    pair = _pair(_write(tmp_path / "a", 7, 10, 20, 5), _write(tmp_path / "b", 9, 15, 20, 6))
    assert pair.ranges == {("orders", 0): Range(10, 15), ("orders", 2): Range(5, 6)}
    assert pair.warnings == ()


def test_rehearsal_reads_new_partition_from_earliest(tmp_path: Path) -> None:
    """A new partition is missing from the earlier checkpoint."""
    pair = _pair(_write(tmp_path / "a", 7, 10), _write(tmp_path / "b", 9, 15, 3))
    assert pair.ranges["orders", 1] == Range(Marker.EARLIEST, 3)


def test_rehearsal_refuses_new_partition_if_first_discovery_was_unfinished(tmp_path: Path) -> None:
    """If the job had not finished its first discovery of partitions, the start is unknown."""
    earlier = _write(tmp_path / "a", 7, 10, discovered=False)
    with pytest.raises(Refused) as refused:
        _pair(earlier, _write(tmp_path / "b", 9, 15, 3))
    assert refused.value.codes == ["partition-only-in-later"]
    assert refused.value.facts[0] == {"partition": "orders-1"}


def test_rehearsal_reads_from_earliest_marker_but_refuses_latest_marker(tmp_path: Path) -> None:
    """A partition that the job has not read yet has a marker instead of an offset.

    If the marker is the same in both checkpoints, the job has read no records, so the partition is
    omitted.
    """
    pair = _pair(_write(tmp_path / "a", 7, EARLIEST, 1), _write(tmp_path / "b", 9, 3, 2))
    assert pair.ranges["orders", 0] == Range(Marker.EARLIEST, 3)
    with pytest.raises(Refused) as refused:
        _pair(_write(tmp_path / "c", 7, LATEST, 1), _write(tmp_path / "d", 9, 3, 2))
    assert refused.value.codes == ["position-not-an-offset"]
    facts = {"partition": "orders-0", "side": "earlier", "start": "latest"}
    assert refused.value.facts[0] == facts
    pair = _pair(_write(tmp_path / "e", 7, LATEST, 1), _write(tmp_path / "f", 9, LATEST, 2))
    assert pair.ranges == {("orders", 1): Range(1, 2)}


@pytest.mark.parametrize(
    ("earlier", "later", "code", "facts"),
    [
        (
            (7, 10, 20),
            (9, 11, 19),
            "position-rewound",
            {"partition": "orders-1", "start": 20, "end": 19},
        ),
        ((7, 10, 20), (9, 11), "partition-only-in-earlier", {"partition": "orders-1"}),
        ((7, 10, 20), (7, 11, 21), "checkpoints-reversed", {}),
        ((9, 10, 20), (7, 11, 21), "checkpoints-reversed", {}),
        ((7, 10, 20), (9, 10, 20), "no-record-between", {}),
        (
            (7, 10),
            (9, EARLIEST),
            "position-not-an-offset",
            {"partition": "orders-0", "side": "later", "start": "earliest"},
        ),
    ],
)
def test_rehearsal_refuses_unsuitable_pair_of_checkpoints(
    tmp_path: Path,
    earlier: tuple[int, ...],
    later: tuple[int, ...],
    code: str,
    facts: dict[str, object],
) -> None:
    with pytest.raises(Refused) as refused:
        _pair(_write(tmp_path / "a", *earlier), _write(tmp_path / "b", *later))
    assert refused.value.codes == [code]
    assert refused.value.facts[0].items() >= facts.items()


def test_rehearsal_refuses_checkpoints_of_different_jobs(tmp_path: Path) -> None:
    other = Operator(bytes(16), 1, 128)
    with pytest.raises(Refused) as refused:
        _pair(_write(tmp_path / "a", 7, 1), _write(tmp_path / "b", 9, 2, more=other))
    assert refused.value.codes == ["jobs-differ"]
    assert "0" * 32 in refused.value.facts[0]["operators"]


@pytest.mark.parametrize("side", ["earlier", "later"])
def test_rehearsal_refuses_in_flight_records(tmp_path: Path, side: str) -> None:
    mores = [in_flight_operator(100) if side == end else EMPTY for end in ("earlier", "later")]
    with pytest.raises(Refused) as refused:
        _pair(
            _write(tmp_path / "a", 7, 1, more=mores[0]), _write(tmp_path / "b", 9, 2, more=mores[1])
        )
    assert refused.value.codes == ["in-flight-in-rehearsal"]
    assert "100 bytes" in refused.value.facts[0]["finding"]


def test_rehearsal_warns_of_checkpoints_from_two_runs_of_job(tmp_path: Path) -> None:
    """A restored job has a different ID, and nothing shows the checkpoint that it started from."""
    runs = [tmp_path / (digit * 32) for digit in "ab"]
    pair = _pair(_write(runs[0] / "chk-7", 7, 1), _write(runs[1] / "chk-9", 9, 2))
    assert "two runs, aaaa" in pair.warnings[0] and pair.warnings[0].endswith("[another-run]")
    savepoint = _write(tmp_path / "savepoint-aaaaaa-0123456789ab", 11, 3)
    assert _pair(runs[0] / "chk-7", savepoint).warnings == ()


def test_each_stream_of_rehearsal_reads_its_assigned_partitions(tmp_path: Path) -> None:
    def write(name: str, number: int, *starts: int) -> Path:
        topics = ("orders", "orders", "clicks")
        kafka = [KafkaSplit(t, p, s) for t, p, s in zip(topics, (0, 1, 0), starts, strict=True)]
        return write_checkpoint(
            tmp_path / name, source_operator(SourceState({0: kafka})), checkpoint_id=number
        )

    pair = _pair(write("a", 7, 1, 2, 3), write("b", 9, 4, 5, 6))
    assigned = stream_of(pair, {"assign": '{"orders":[1]}'})
    subscribed = stream_of(pair, {"SubscribePattern": "cl.*"})
    assert assigned.ranges == {("orders", 1): Range(2, 5)}
    assert subscribed.ranges == {("clicks", 0): Range(3, 6)}
    (warning,) = unread_topics(pair, [assigned, subscribed])
    assert warning.startswith("the job has read 1 partition that no stream of the rehearsal reads")
    with pytest.raises(NoSuchName, match="topic order, but the job does not read it"):
        stream_of(pair, {"subscribe": "orders, order"})
    with pytest.raises(UsageError, match="one of subscribe"):
        stream_of(pair, {})
