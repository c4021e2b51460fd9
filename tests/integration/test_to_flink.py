"""Restore a real Flink job, with its state, from the positions of `migrate to-flink`."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from migrate.inputs.offsets_json import starting_offsets
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.flink import CountedRecord, CountRun, additional_source_kinds, run_count_job
from tests.support.jdk import JavaError
from tests.support.kafka import Broker
from tests.support.spark_files import COMMIT, batch, spark_directory

pytestmark = pytest.mark.integration

# The state is in compressed files, and in Flink 2 in segments of merged files. Checkpoints may be
# unaligned, but have no in-flight records, because no alignment takes a minute.
_IN_FILES = {
    "execution.checkpointing.unaligned": "true",
    "execution.checkpointing.unaligned.enabled": "true",
    "execution.checkpointing.aligned-checkpoint-timeout": "60 s",
    "execution.checkpointing.snapshot-compression": "true",
    "state.storage.fs.memory-threshold": "0",
    "execution.checkpointing.data-inline-threshold": "0",
}
_MERGED = {"execution.checkpointing.file-merging.enabled": "true"}
# Checkpoints share these files.
_ROCKSDB = {
    "state.backend.type": "rocksdb",
    "state.backend.incremental": "true",
    "execution.checkpointing.incremental": "true",
}
# FLINK_VERSIONS="1.15 2.3" tests a savepoint and a checkpoint with each of these versions.
_ASKED = os.environ.get("FLINK_VERSIONS", "").split()
_RUNS = [(version, stopped) for version in _ASKED for stopped in (True, False)] or [
    ("1.15", False),
    ("1.20", False),
    ("2.2", False),
    ("2.3", True),
]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def _by_partition(counted: list[CountedRecord]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return the offset and the count of each record in order, by partition."""
    found: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for one in counted:
        found.setdefault((one.topic, one.partition), []).append((one.offset, one.count))
    return found


def _produce(broker: Broker, topic: str, partition: int, count: int) -> None:
    broker.produce(topic, partition, [f"{topic}-{partition} {n}" for n in range(count)])


@pytest.mark.parametrize(
    ("version", "stopped"),
    _RUNS,
    ids=[f"{version} {'savepoint' if stopped else 'checkpoint'}" for version, stopped in _RUNS],
)
def test_job_resumes_with_state_from_new_positions(
    kafka: Broker, tmp_path: Path, version: str, stopped: bool
) -> None:
    """One job contains every kind of source in this Flink version."""
    in_rocksdb = not stopped and version in ("1.20", "2.2")
    options: dict[str, str] = {}
    if not stopped:
        options |= _IN_FILES | (_ROCKSDB if in_rocksdb else {})
        options |= _MERGED if version.startswith("2") else {}
    kinds = ["Kafka", *additional_source_kinds(version)]
    if stopped and "Legacy" in kinds:
        kinds.remove("Legacy")  # a savepoint has its positions at the previous checkpoint
    its_own = uuid.uuid4().hex[:8]  # the test may be repeated
    topics = {kind: f"{kind}-{its_own}" for kind in kinds}
    for topic in topics.values():
        kafka.create_topic(topic, 3)
        _produce(kafka, topic, 0, 40)
        _produce(kafka, topic, 1, 60)

    def run(until: Mapping[tuple[str, int], int], **more: Any) -> CountRun:
        return run_count_job(
            version=version,
            bootstrap_servers=kafka.bootstrap_servers,
            topics=[topics["Kafka"], *(f"{kind}={topics[kind]}" for kind in kinds[1:])],
            until=until,
            stopped=stopped,
            options=options,
            extra="rocksdb" if in_rocksdb else None,
            **more,
        )

    until = {(topic, n): count for topic in topics.values() for n, count in enumerate((12, 20))}
    first = run(until, workdir=tmp_path)
    inspected = json.loads(migrate("inspect", first.snapshot, "--format", "json").stdout)
    own = {
        (one["topic"], one["partition"]): one["next_offset"] or 0  # an empty partition has a marker
        for source in inspected["sources"]
        for one in source["positions"]
    }
    assert own.keys() == {(topic, n) for topic in topics.values() for n in range(3)}
    if stopped:  # the job has processed exactly the records before its savepoint
        counted = _by_partition(first.counted)
        assert {place: len(counted.get(place, ())) for place in own} == own
    for topic in topics.values():
        _produce(kafka, topic, 1, 10)
        _produce(kafka, topic, 2, 10)
        kafka.add_partitions(topic, 4)
        _produce(kafka, topic, 3, 10)
    # A rewind, an advance, a partition that had no records, and a new partition.
    starts: dict[tuple[str, int], int] = {}
    lines: list[str] = []
    for kind, topic in topics.items():
        back, ahead = own[topic, 0], own[topic, 1]
        starts |= dict(
            zip([(topic, n) for n in range(4)], (back - 5, ahead + 6, 4, 3), strict=True)
        )
        if kind == "Legacy" and version == "1.15":
            # The state does not show whether this is a stop-with-savepoint, which has the positions
            # of the previous checkpoint.
            lines.append(
                f"{topic}-0 rewinds from {back} to {back - 5}; the job may have processed "
                f"records beyond {back}, so migrate cannot determine"
            )
            continue
        lines += [
            f"{topic}-0 rewinds from {back} to {back - 5}, so up to 5 records are double-counted",
            f"{topic}-1 advances from {ahead} to {ahead + 6}, so up to 6 records are missing "
            f"from the",
            f"{topic}-2 advances from 0 to 4, so up to 4 records are missing from the state",
            f"{topic}-3 advances from 0 to 3, so up to 3 records are missing from the state",
        ]
    ends = {(t, n): end for t in topics.values() for n, (_, end) in kafka.watermarks(t).items()}
    side = tmp_path / "positions.json"
    side.write_text(starting_offsets(starts))
    new = tmp_path / "new"
    command = (
        *("to-flink", first.snapshot, "--from", f"json:{side}", "--out", new),
        *("-b", kafka.bootstrap_servers),
    )
    refused = migrate(*command)
    assert (refused.code, refused.stdout) == (4, "")
    for line in lines:
        assert line in refused.stderr
    assert not new.exists()
    written = migrate(*command, "--allow-state-mismatch")
    assert (written.code, written.stdout) == (0, f"{new}\n"), written.stderr

    # The new checkpoint does not depend on the original.
    shutil.rmtree(first.snapshot.parent)
    left = {place: ends[place] - start for place, start in starts.items()}
    again = run(left, workdir=tmp_path / "again", restored=new)
    assert _by_partition(again.counted) == {
        place: [(at, own.get(place, 0) + 1 + at - start) for at in range(start, ends[place])]
        for place, start in starts.items()
    }


def test_to_flink_changes_only_selected_source_if_two_clusters_share_topic_name(
    kafka: Broker, tmp_path: Path
) -> None:
    """Regression: Offsets of one cluster's group were written to the source of the other cluster.

    As a result, the job skipped 20 records of the other cluster.
    """
    topic, group = f"orders-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex
    second = f"second-{topic}"
    with Broker() as other_cluster:

        def run(until: Mapping[tuple[str, int], int], **more: Any) -> CountRun:
            return run_count_job(
                version="2.2",
                bootstrap_servers=kafka.bootstrap_servers,
                topics=[topic, f"Second={other_cluster.bootstrap_servers}/{topic}"],
                until=until,
                **more,
            )

        def produce(count: int) -> None:
            for broker in (kafka, other_cluster):
                _produce(broker, topic, 0, count)

        for broker in (kafka, other_cluster):
            broker.create_topic(topic, 1)
        # Few records, because the job slowly counts all buffered records before its savepoint.
        produce(40)
        first = run({(topic, 0): 12, (second, 0): 12}, workdir=tmp_path)
        read = {place[0]: len(counted) for place, counted in _by_partition(first.counted).items()}
        produce(60)
        ahead = max(read.values()) + 20
        kafka.commit(group, {(topic, 0): ahead})
        new = tmp_path / "new"
        command = (
            *("to-flink", first.snapshot, "--from", f"group:{group}", "--out", new),
            *("-b", kafka.bootstrap_servers, "--allow-state-mismatch"),
        )
        refused = migrate(*command)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert f"2 sources read topic {topic} (operators " in refused.stderr
        assert not new.exists()
        written = migrate(*command, "--source", "kafka-source")
        assert (written.code, written.stdout) == (0, f"{new}\n"), written.stderr
        left = {(topic, 0): 100 - ahead, (second, 0): 100 - read[second]}
        again = _by_partition(run(left, workdir=tmp_path / "again", restored=new).counted)
        offsets = {place[0]: [offset for offset, _ in again[place]] for place in left}
        assert offsets == {
            topic: list(range(ahead, 100)),
            second: list(range(read[second], 100)),
        }


# "earliest" and "committed" were also tested, with Flink 2.2.0 and connector 5.0.0.
_RESETS = os.environ.get("FLINK_RESETS", "latest").split()


@pytest.mark.parametrize("starts_at", _RESETS)
def test_restored_job_uses_its_starting_offsets_for_expired_position(
    kafka: Broker, tmp_path: Path, starts_at: str
) -> None:
    """For other positions, the job resumes from its state.

    The property auto.offset.reset, which is always earliest in this job, has no effect.
    """
    expired, beside = f"expired-{starts_at}", f"beside-{starts_at}"
    for topic in (expired, beside):
        kafka.create_topic(topic, 1)
        _produce(kafka, topic, 0, 40)

    def run(until: int, **more: Any) -> CountRun:
        return run_count_job(
            version="2.2",
            bootstrap_servers=kafka.bootstrap_servers,
            topics=[expired, beside],
            until={(beside, 0): until},
            **more,
        )

    first = run(12, workdir=tmp_path)
    held = _by_partition(first.counted)
    read, of_expired = len(held[beside, 0]), len(held[expired, 0])
    assert of_expired < 38
    kafka.delete_records(expired, 0, before=38)
    restored: dict[str, Any] = {
        "workdir": tmp_path / "again",
        "restored": first.snapshot,
        "options": {"testjobs.starting-offsets": starts_at},
    }
    if starts_at == "committed":
        with pytest.raises(JavaError, match="OffsetOutOfRangeException"):
            run(40 - read, **restored)
        return
    again = _by_partition(run(40 - read, **restored).counted)
    assert len(again[beside, 0]) == 40 - read
    # With "latest", the two remaining records are silently lost.
    at = {"latest": [], "earliest": [38, 39]}[starts_at]
    assert [offset for offset, _ in again.get((expired, 0), ())] == at


def test_to_flink_applies_policy_options(kafka: Broker, tmp_path: Path) -> None:
    """Deleted topics and expired positions are refused unless an option allows them.

    Markers are resolved.
    """
    topic, gone = f"policies-{uuid.uuid4().hex[:8]}", "t-gone"
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

    kafka.commit(topic, {(topic, 0): 2, (topic, 1): 7, (topic, 2): 8})
    refused = to_flink(f"group:{topic}", "a")
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-0: expired: next offset 2 is below the log start offset 4" in refused.stderr
    assert f"the broker does not have {gone}-0" in refused.stderr
    allowed = to_flink(f"group:{topic}", "a", "--on-expired", "earliest", "--gone", "skip")
    assert allowed.code == 0, allowed.stderr
    assert written("a") == {(topic, 0): 4, (topic, 1): 7, (topic, 2): 8}
    assert f"{topic}-0 rewinds from 6 to 4, so Flink reprocesses up to 2 records" in allowed.stderr
    # The old position is a marker for the log start.
    assert f"{topic}-1 advances from 0 to 7" in allowed.stderr

    ends = to_flink("broker:latest", "b", "--gone", "skip")
    assert ends.code == 0, ends.stderr
    assert written("b") == {(topic, n): 10 for n in range(3)}
    with_time = migrate(
        *("to-flink", chk, "--from", "broker:2000-01-01", "--out", tmp_path / "d"),
        *("--gone", "skip", "-b", kafka.bootstrap_servers),
    )
    assert with_time.code == 0, with_time.stderr
    assert written("d") == {(topic, 0): 4, (topic, 1): 0, (topic, 2): 0}
    # Its own positions, with the marker resolved.
    itself = to_flink(str(chk), "c", "--gone", "skip")
    assert itself.code == 0, itself.stderr
    assert written("c") == {(topic, 0): 6, (topic, 1): 0}


def test_copy_query_with_timestamp_start_uses_topics_of_copied_query(
    kafka: Broker, tmp_path: Path
) -> None:
    """Regression: `migrate` required topic names, although the copied query lists its topics."""
    topic = f"query-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(topic, 2)
    for partition in range(2):
        _produce(kafka, topic, partition, 10)
    kafka.delete_records(topic, 0, before=4)
    files = {
        "metadata": f'{{"id":"{uuid.uuid4()}"}}',
        "offsets/0": batch(f'{{"{topic}":{{"0":6,"1":7}}}}'),
        "commits/0": COMMIT,
        "state/0/0/1.delta": "rows",
    }
    query = spark_directory(tmp_path / "query", files)
    result = migrate(
        *("copy-query", f"spark:{query}", "--from", "broker:2000-01-01"),
        *("--checkpoint-dir", tmp_path / "new", "-b", kafka.bootstrap_servers),
    )
    assert (result.code, result.stdout) == (0, f'{{"{topic}":{{"0":4,"1":0}}}}\n'), result.stderr
