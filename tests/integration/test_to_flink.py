"""A real Flink job goes on, with its state, from the positions that `migrate to-flink` wrote."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.flink import Counted, count_job
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

# State in files, compressed; from 2.0 on in segments of merged ones.
_IN_FILES = {
    "execution.checkpointing.snapshot-compression": "true",
    "state.storage.fs.memory-threshold": "0",
    "execution.checkpointing.data-inline-threshold": "0",
}
_MERGED = {"execution.checkpointing.file-merging.enabled": "true"}
# ... and files that checkpoints share.
_ROCKSDB = {
    "state.backend.type": "rocksdb",
    "state.backend.incremental": "true",
    "execution.checkpointing.incremental": "true",
}
# What runs; FLINK_VERSIONS="1.15 2.3" runs both kinds on these.
_ASKED = os.environ.get("FLINK_VERSIONS", "").split()
_RUNS = [(version, stopped) for version in _ASKED for stopped in (True, False)] or [
    ("1.20", True),
    ("1.20", False),
    ("2.2", False),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def _of(counted: list[Counted], topic: str) -> dict[int, list[tuple[int, int]]]:
    """By partition, each record's offset and the count with it, in their order."""
    found: dict[int, list[tuple[int, int]]] = {}
    for one in counted:
        assert one.topic == topic
        found.setdefault(one.partition, []).append((one.offset, one.count))
    return found


def _produce(broker: Broker, topic: str, partition: int, count: int) -> None:
    broker.produce(topic, partition, [f"{topic}-{partition} {n}" for n in range(count)])


@pytest.mark.parametrize(
    ("version", "stopped"),
    _RUNS,
    ids=[f"{version} {'savepoint' if stopped else 'checkpoint'}" for version, stopped in _RUNS],
)
def test_a_job_goes_on_with_its_state_from_other_positions(
    kafka: Broker, tmp_path: Path, version: str, stopped: bool
) -> None:
    in_rocksdb = not stopped and version in ("1.20", "2.2")
    options: dict[str, str] = {}
    if not stopped:
        options |= _IN_FILES | (_ROCKSDB if in_rocksdb else {})
        options |= _MERGED if version.startswith("2") else {}
    topic = f"orders-{version}-{int(stopped)}"
    kafka.create_topic(topic, 3)
    _produce(kafka, topic, 0, 40)
    _produce(kafka, topic, 1, 60)
    run = count_job(
        version=version,
        bootstrap_servers=kafka.bootstrap_servers,
        topics=[topic],
        until={(topic, 0): 12, (topic, 1): 20},
        workdir=tmp_path,
        stopped=stopped,
        options=options,
        extra="rocksdb" if in_rocksdb else None,
    )
    inspected = migrate("inspect", run.left, "--format", "json")
    (source,) = json.loads(inspected.stdout)["sources"]
    own = {one["partition"]: one["next_offset"] for one in source["positions"]}
    if stopped:  # it has processed what lies before its savepoint, and nothing else
        assert {n: len(of_one) for n, of_one in _of(run.counted, topic).items()} == {
            0: own[0],
            1: own[1],
        }
    _produce(kafka, topic, 1, 10)
    _produce(kafka, topic, 2, 10)
    kafka.add_partitions(topic, 4)
    _produce(kafka, topic, 3, 10)
    ends = {n: end for n, (_, end) in kafka.watermarks(topic).items()}
    # Back, ahead, a partition that had only a marker, one that the job did not know.
    starts = {0: own[0] - 5, 1: own[1] + 6, 2: 4, 3: 3}
    side = tmp_path / "positions.json"
    side.write_text(json.dumps({topic: {str(n): start for n, start in starts.items()}}))
    new = tmp_path / "new"
    command = (
        *("to-flink", run.left, "--from", f"json:{side}", "--out", new),
        *("-b", kafka.bootstrap_servers),
    )
    refused = migrate(*command)
    assert (refused.code, refused.stdout) == (4, "")
    for line in (
        f"{topic}-0 goes back from {own[0]} to {own[0] - 5}: up to 5 records are counted twice",
        f"{topic}-1 goes ahead from {own[1]} to {own[1] + 6}: up to 6 records are not in the state",
        f"{topic}-2 goes ahead from 0 to 4: up to 4 records are not in the state",
        f"{topic}-3 goes ahead from 0 to 3: up to 3 records are not in the state",
    ):
        assert line in refused.stderr
    assert not new.exists()
    written = migrate(*command, "--allow-state-mismatch")
    assert (written.code, written.stdout) == (0, f"{new}\n"), written.stderr

    # Neither needs the other: it goes on without what it was made from.
    shutil.rmtree(run.left.parent)
    until = {(topic, n): ends[n] - start for n, start in starts.items()}
    again = count_job(
        version=version,
        bootstrap_servers=kafka.bootstrap_servers,
        topics=[topic],
        until=until,
        workdir=tmp_path / "again",
        restored=new,
        options=options,
        extra="rocksdb" if in_rocksdb else None,
    )
    counted = _of(again.counted, topic)
    state = {0: own[0], 1: own[1], 2: 0, 3: 0}
    assert counted == {
        n: [(at, state[n] + 1 + at - start) for at in range(start, ends[n])]
        for n, start in starts.items()
    }


def test_policies_and_sides_are_those_of_every_move(kafka: Broker, tmp_path: Path) -> None:
    """A marker becomes an offset, what is gone leaves the state, what has expired is refused."""
    topic, gone = "t-policies", "t-gone"
    kafka.create_topic(topic, 3)
    for partition in range(3):
        _produce(kafka, topic, partition, 10)
    kafka.delete_records(topic, 0, before=4)
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [6, -2]), 1: splits(gone, [5])})

    def to_flink(side: str, out: str, *options: str) -> Result:
        servers = kafka.bootstrap_servers
        return migrate(
            "to-flink", chk, "--from", side, "--out", tmp_path / out, "-b", servers, *options
        )

    def written(out: str) -> dict[tuple[str, int], int]:
        shown = json.loads(migrate("inspect", tmp_path / out, "--format", "json").stdout)
        positions = shown["sources"][0]["positions"]
        return {(one["topic"], one["partition"]): one["next_offset"] for one in positions}

    kafka.commit("policies", {(topic, 0): 2, (topic, 1): 7, (topic, 2): 8})
    refused = to_flink("group:policies", "a")
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-0: expired: its next offset 2 lies below the log start 4" in refused.stderr
    assert f"reads {gone}-0, which the broker does not have" in refused.stderr
    allowed = to_flink("group:policies", "a", "--on-expired", "earliest", "--gone", "skip")
    assert allowed.code == 0, allowed.stderr
    assert written("a") == {(topic, 0): 4, (topic, 1): 7, (topic, 2): 8}
    assert f"{topic}-0 goes back from 6 to 4: up to 2 records are read again" in allowed.stderr
    assert f"{topic}-1 goes ahead from 0 to 7" in allowed.stderr  # from the log start: a marker

    ends = to_flink("broker:latest", "b", "--gone", "skip")
    assert ends.code == 0, ends.stderr
    assert written("b") == {(topic, n): 10 for n in range(3)}
    itself = to_flink(str(chk), "c", "--gone", "skip")  # its own positions, the marker resolved
    assert itself.code == 0, itself.stderr
    assert written("c") == {(topic, 0): 6, (topic, 1): 0}
