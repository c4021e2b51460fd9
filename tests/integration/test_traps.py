"""Check the traps of Flink's state on a real broker.

Golden checkpoints of real jobs are read with topics as these jobs saw them. The encoder writes
positions that no job produces on demand.

Other modules cover the remaining traps. `test_to_spark.py` has markers, Flink's own group, expired,
beyond-end, recreated, new, and deleted partitions. `test_dynamic.py` has several clusters.
`test_gaps.py` has aborted transactions and compaction. `test_saved_plans.py` has changes after
planning. `test_stopped.py` has jobs that may still run.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from migrate.planning.plan_file import read_plan
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import Result, migrate
from tests.support.encoder import (
    EARLIEST,
    LATEST,
    MIGRATED,
    UNASSIGNED,
    EnumeratorSplit,
    KafkaSplit,
)
from tests.support.golden_topics import GOLDEN, create_golden_topics, topic_map
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_VERSIONS = ("1.15", "1.20", "2.2")


@pytest.fixture(scope="module")
def names(broker: Broker) -> dict[str, str]:
    """Map the golden topics to their names on this broker. No test changes these topics."""
    return create_golden_topics(broker, "orders", "payments", "idle")


def _golden(version: str, scenario: str) -> Path:
    (metadata,) = (GOLDEN / version / scenario).rglob("_metadata")
    return metadata.parent


def _to_spark(chk: Path, broker: Broker, *flags: str | Path) -> Result:
    return migrate("to-spark", chk, "-b", broker.bootstrap_servers, *flags)


def _golden_to_spark(
    chk: Path, broker: Broker, names: dict[str, str], topics: Sequence[str], *flags: str | Path
) -> Result:
    return _to_spark(chk, broker, *topic_map({old: names[old] for old in topics}), *flags)


def _offsets(result: Result) -> dict[str, dict[str, int]]:
    assert result.code == 0, result.stderr
    written: dict[str, dict[str, int]] = json.loads(result.stdout)
    return written


# -- A 3, 4, 6: markers, and splits that only the enumerator contains ----------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_reader_position_overrides_initial_offset_of_enumerator(
    broker: Broker, names: dict[str, str], version: str
) -> None:
    """Enumerator version 3 (connector 5.0) always stores -2 as the initial offset of a split."""
    manifest = json.loads((GOLDEN / "manifest.json").read_text())
    (entry,) = [e for e in manifest["checkpoints"] if e["name"] == f"{version}/retained"]
    (source,) = entry["kafka_sources"]
    (operator,) = [o for o in entry["expected"]["operators"] if o["operator_id"] == source]
    expected: dict[str, dict[str, int]] = {names["orders"]: {}, names["payments"]: {}}
    for split in operator["reader_splits"]:
        # Partitions at a marker have lost no records, so the earliest offset is 0.
        start = 0 if split["starting_offset"] == EARLIEST else split["starting_offset"]
        expected[names[split["topic"]]][str(split["partition"])] = start
    result = _golden_to_spark(_golden(version, "retained"), broker, names, ("orders", "payments"))
    assert _offsets(result) == expected


@pytest.mark.parametrize("version", _VERSIONS)
def test_job_started_from_committed_offsets_requires_source_group(
    broker: Broker, names: dict[str, str], version: str
) -> None:
    """The job uses OffsetsInitializer.committedOffsets(), so some splits have a marker."""
    chk, group = _golden(version, "starting-offsets"), f"flink-{uuid.uuid4().hex[:8]}"
    refused = _golden_to_spark(chk, broker, names, ("idle", "orders"), "--source", "committed")
    assert (refused.code, refused.stdout) == (4, "")
    idle, orders = names["idle"], names["orders"]
    assert f"refused: {idle}-0, {idle}-1, {orders}-2: unresolved: " in refused.stderr
    committed = {(names["idle"], 0): 3, (names["idle"], 1): 0, (names["orders"], 2): 0}
    broker.commit(group, committed)
    result = _golden_to_spark(
        chk, broker, names, ("idle", "orders"), "--source", "committed", "--source-group", group
    )
    offsets = _offsets(result)
    assert offsets[names["idle"]] == {"0": 3, "1": 0}
    assert offsets[names["orders"]]["2"] == 0


@pytest.mark.parametrize(
    ("start", "next_offset"), [(6, 6), (EARLIEST, 2), (LATEST, None), (MIGRATED, None)]
)
def test_unassigned_split_starts_at_its_initial_offset(
    tmp_path: Path, broker: Broker, topic: str, start: int, next_offset: int | None
) -> None:
    broker.delete_records(topic, 2, 2)
    held = splits(topic, [3, 4])
    state = SourceState(
        {0: held},
        entries=[
            *map(EnumeratorSplit, held),
            EnumeratorSplit(KafkaSplit(topic, 2, start), UNASSIGNED),
        ],
    )
    result = _to_spark(write_checkpoint(tmp_path / "chk-7", source_operator(state)), broker)
    if next_offset is None:
        assert (result.code, result.stdout) == (4, "")
        assert f"{topic}-2: unresolved" in result.stderr
    else:
        assert _offsets(result) == {topic: {"0": 3, "1": 4, "2": next_offset}}


@pytest.mark.parametrize("finished", [True, False])
def test_unassigned_split_of_enumerator_version_2_requires_start_policy(
    tmp_path: Path, broker: Broker, topic: str, finished: bool
) -> None:
    held = splits(topic, [3, 4])
    state = SourceState(
        {0: held},
        entries=[*map(EnumeratorSplit, held), EnumeratorSplit(KafkaSplit(topic, 2, 0), UNASSIGNED)],
        enumerator_version=2,
        initial_discovery_finished=finished,
    )
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    refused = _to_spark(chk, broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-2: unresolved" in refused.stderr
    chosen = _to_spark(chk, broker, "--unresolved", "earliest")
    assert _offsets(chosen) == {topic: {"0": 3, "1": 4, "2": 0}}


def test_uninitialized_split_of_reader_is_unresolved(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    refused = _to_spark(write_source(tmp_path / "chk-7", {0: splits(topic, [3, MIGRATED])}), broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-1: unresolved" in refused.stderr


# -- A 5: bounded sources ------------------------------------------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("scenario", ["bounded", "bounded-subtask-finished"])
def test_partition_finished_by_bounded_job_is_not_reread(
    broker: Broker, names: dict[str, str], version: str, scenario: str
) -> None:
    """No reader contains the finished split.

    Before connector 5.0, no state stores its stopping offset.
    """
    result = _golden_to_spark(_golden(version, scenario), broker, names, ("payments",))
    if version != "2.2":
        assert (result.code, result.stdout) == (4, "")
        assert f"{names['payments']}-0: unresolved" in result.stderr
    else:
        (offsets,) = _offsets(result).values()
        assert offsets["0"] == 18
        assert 18 < offsets["1"] < 80


def test_partition_without_reader_is_unresolved_if_stopping_offset_is_marker(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """Partition 1 has the marker latest as its stopping offset, so its end is unknown."""
    state = SourceState(
        {0: splits(topic, [3])},
        entries=[
            EnumeratorSplit(KafkaSplit(topic, 0, EARLIEST)),
            EnumeratorSplit(KafkaSplit(topic, 1, EARLIEST, LATEST)),
            EnumeratorSplit(KafkaSplit(topic, 2, 9, 6)),
        ],
    )
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    refused = _to_spark(chk, broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-1: unresolved" in refused.stderr
    assert f"{topic}-2 is" not in refused.stderr
    chosen = _to_spark(chk, broker, "--unresolved", "latest")
    assert _offsets(chosen) == {topic: {"0": 3, "1": 10, "2": 9}}


# -- A 7, 8: in-flight records, and a job that kept running --------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_in_flight_records_require_option_allow_in_flight(
    broker: Broker, names: dict[str, str], version: str
) -> None:
    chk = _golden(version, "unaligned")
    refused = _golden_to_spark(chk, broker, names, ("orders", "payments"))
    assert (refused.code, refused.stdout) == (4, "")
    assert "bytes of records that are not yet processed" in refused.stderr
    allowed = _golden_to_spark(chk, broker, names, ("orders", "payments"), "--allow-in-flight")
    assert "[in-flight-records]" in allowed.stderr
    # The log end, although most records were not emitted.
    assert _offsets(allowed)[names["orders"]]["1"] == 80


def test_newer_checkpoint_in_same_directory_proves_that_job_kept_running(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    chk, plan, group = tmp_path / "chk-7", tmp_path / "plan.json", f"flink-{topic}"
    write_source(chk, {0: splits(topic, [3, 4, 5])})
    write_source(chk.with_name("chk-8"), {0: splits(topic, [6, 4, 5])})
    refused = _to_spark(chk, broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert "the newer complete checkpoint chk-8 is in the same directory" in refused.stderr
    allowed = _to_spark(chk, broker, "--allow-ran-on", "--plan-out", plan)
    assert allowed.code == 0, allowed.stderr
    assert [saved.repeated for saved in read_plan(plan).partitions] == [None] * 3
    assert f"{topic}-0: ok, from 3, duplicates ? records" in allowed.stderr
    plan.unlink()
    broker.commit(group, {(topic, 0): 6, (topic, 1): 4, (topic, 2): 5})
    counted = _to_spark(chk, broker, "--allow-ran-on", "--source-group", group, "--plan-out", plan)
    assert counted.code == 0, counted.stderr
    assert [saved.repeated for saved in read_plan(plan).partitions] == [3, 0, 0]
    assert f"{topic}-0: ok, from 3, duplicates up to 3 records" in counted.stderr
    assert "3 records ahead of the checkpoint in 1 partition" in counted.stderr


def test_age_of_checkpoint_copied_without_original_file_times_is_unknown(
    tmp_path: Path, broker: Broker, names: dict[str, str]
) -> None:
    """The topics are newer than the job.

    Only a copy that preserves the original file times shows that the topics were recreated.
    """
    original = _golden("2.2", "stop")
    for kept in (True, False):
        copy = tmp_path / str(kept) / original.name
        shutil.copytree(original, copy, copy_function=shutil.copyfile)
        if kept:
            os.utime(copy / "_metadata", (1_600_000_000, 1_600_000_000))
        told = _golden_to_spark(copy, broker, names, ("orders", "payments")).stderr
        assert ("[maybe-recreated]" in told) is kept
        assert "[age-unknown]" in told


# -- A 12, 13: two positions for one partition ---------------------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_two_sources_of_same_topic_require_merge_options(
    tmp_path: Path, broker: Broker, names: dict[str, str], version: str
) -> None:
    chk, plan = _golden(version, "two-sources"), tmp_path / "plan.json"
    refused = _golden_to_spark(chk, broker, names, ("orders",))
    assert (refused.code, refused.stdout) == (4, "")
    assert f"2 sources of topic {names['orders']} have different positions in" in refused.stderr
    (us,), (eu,) = (
        _offsets(_golden_to_spark(chk, broker, names, ("orders",), "--source", uid)).values()
        for uid in ("orders-us", "orders-eu")
    )
    assert us != eu
    lower = {partition: min(us[partition], eu[partition]) for partition in us}
    between = [abs(us[partition] - eu[partition]) for partition in sorted(us)]
    unsaid = _golden_to_spark(chk, broker, names, ("orders",), "--merge-sources", "min")
    assert (unsaid.code, unsaid.stdout) == (4, "")
    assert f"2 sources read topic {names['orders']} (operators " in unsaid.stderr
    assert "add --one-cluster" in unsaid.stderr
    flags = ("--merge-sources", "min", "--one-cluster")
    merged = _golden_to_spark(chk, broker, names, ("orders",), *flags)
    assert _offsets(merged) == {names["orders"]: lower}
    assert f"--merge-sources min: {sum(between)} records in" in merged.stderr
    saved = _golden_to_spark(chk, broker, names, ("orders",), *flags, "--plan-out", plan)
    assert saved.code == 0, saved.stderr
    assert [partition.repeated for partition in read_plan(plan).partitions] == between


@pytest.mark.parametrize(("again", "refused"), [(3, False), (5, True), (EARLIEST, True)])
def test_duplicate_split_with_different_position_is_unresolved(
    tmp_path: Path, broker: Broker, topic: str, again: int, refused: bool
) -> None:
    held = splits(topic, [3, 4, 5])
    readers = {0: held, 1: [KafkaSplit(topic, 0, again)]}
    state = SourceState(readers, entries=list(map(EnumeratorSplit, held)))
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    result = _to_spark(chk, broker)
    if refused:
        assert (result.code, result.stdout) == (4, "")
        told = "the next offset is unknown: reader state contains the partition 2 times"
        assert f"{topic}-0: unresolved: {told}" in result.stderr
    else:
        assert _offsets(result) == {topic: {"0": 3, "1": 4, "2": 5}}
