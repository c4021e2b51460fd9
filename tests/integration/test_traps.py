"""The traps of reading Flink's state, each on a real broker.

What real jobs left (golden checkpoints) is read against topics laid out as those jobs saw them; a
position that no run leaves on demand is the encoder's.

Elsewhere: markers and Flink's own group, expired, beyond the end, recreated, new and gone
partitions in test_to_spark.py; several clusters in test_dynamic.py; aborted transactions and
compaction in test_gaps.py; what happens after a plan was saved in test_saved_plans.py; whether the
job still runs in test_stopped.py.
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
    """The golden topics on this broker, which no test here changes: old name -> new name."""
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


# -- A 3, 4, 6: markers and what only the enumerator holds ---------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_readers_win_over_the_enumerator_and_earliest_is_the_log_start(
    broker: Broker, names: dict[str, str], version: str
) -> None:
    """Version 3 of the enumerator (connector 5.0) keeps the start of every split, -2, for ever."""
    manifest = json.loads((GOLDEN / "manifest.json").read_text())
    (entry,) = [e for e in manifest["checkpoints"] if e["name"] == f"{version}/retained"]
    (source,) = entry["kafka_sources"]
    (operator,) = [o for o in entry["expected"]["operators"] if o["operator_id"] == source]
    expected: dict[str, dict[str, int]] = {names["orders"]: {}, names["payments"]: {}}
    for split in operator["reader_splits"]:
        # No partition that was still at its marker has lost a record: earliest is 0.
        start = 0 if split["starting_offset"] == EARLIEST else split["starting_offset"]
        expected[names[split["topic"]]][str(split["partition"])] = start
    result = _golden_to_spark(_golden(version, "retained"), broker, names, ("orders", "payments"))
    assert _offsets(result) == expected


@pytest.mark.parametrize("version", _VERSIONS)
def test_a_job_that_started_from_committed_needs_its_own_group(
    broker: Broker, names: dict[str, str], version: str
) -> None:
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
def test_an_unassigned_split_starts_at_its_own_start(
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
def test_where_an_unassigned_split_of_version_2_starts_is_not_in_the_state(
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


def test_a_split_that_a_reader_has_not_initialised_is_unresolved(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    refused = _to_spark(write_source(tmp_path / "chk-7", {0: splits(topic, [3, MIGRATED])}), broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-1: unresolved" in refused.stderr


# -- A 5: bounded sources ------------------------------------------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("scenario", ["bounded", "bounded-subtask-finished"])
def test_a_partition_that_a_bounded_job_finished_is_not_read_again(
    broker: Broker, names: dict[str, str], version: str, scenario: str
) -> None:
    """Its split is gone from the readers; before connector 5.0 its stop is stored nowhere."""
    result = _golden_to_spark(_golden(version, scenario), broker, names, ("payments",))
    if version != "2.2":
        assert (result.code, result.stdout) == (4, "")
        assert f"{names['payments']}-0: unresolved" in result.stderr
    else:
        (offsets,) = _offsets(result).values()
        assert offsets["0"] == 18
        assert 18 < offsets["1"] < 80


def test_a_finished_partition_whose_stop_is_a_marker_is_unresolved(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
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


# -- A 7, 8: records in flight, and a job that ran on --------------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_records_in_flight_are_lost_knowingly_or_not_at_all(
    broker: Broker, names: dict[str, str], version: str
) -> None:
    chk = _golden(version, "unaligned")
    refused = _golden_to_spark(chk, broker, names, ("orders", "payments"))
    assert (refused.code, refused.stdout) == (4, "")
    assert "bytes of records are in its channels" in refused.stderr
    allowed = _golden_to_spark(chk, broker, names, ("orders", "payments"), "--allow-in-flight")
    assert "[in-flight-records]" in allowed.stderr
    assert _offsets(allowed)[names["orders"]]["1"] == 80  # its end, while most was not emitted


def test_a_newer_checkpoint_proves_that_the_job_ran_on(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    chk, plan, group = tmp_path / "chk-7", tmp_path / "plan.json", f"flink-{topic}"
    write_source(chk, {0: splits(topic, [3, 4, 5])})
    write_source(chk.with_name("chk-8"), {0: splits(topic, [6, 4, 5])})
    refused = _to_spark(chk, broker)
    assert (refused.code, refused.stdout) == (4, "")
    assert "chk-8 is complete beside it" in refused.stderr
    allowed = _to_spark(chk, broker, "--allow-ran-on", "--plan-out", plan)
    assert allowed.code == 0, allowed.stderr
    assert [saved.repeated for saved in read_plan(plan).partitions] == [None] * 3
    assert f"{topic}-0: ok, from 3, repeats ? records" in allowed.stderr
    plan.unlink()
    broker.commit(group, {(topic, 0): 6, (topic, 1): 4, (topic, 2): 5})
    counted = _to_spark(chk, broker, "--allow-ran-on", "--source-group", group, "--plan-out", plan)
    assert counted.code == 0, counted.stderr
    assert [saved.repeated for saved in read_plan(plan).partitions] == [3, 0, 0]
    assert f"{topic}-0: ok, from 3, repeats up to 3 records" in counted.stderr
    assert "committed 3 records beyond 1 partition" in counted.stderr


def test_a_copy_without_its_times_says_that_its_age_is_not_known(
    tmp_path: Path, broker: Broker, names: dict[str, str]
) -> None:
    """These topics were made after the job's own, of which the positions are."""
    original = _golden("2.2", "stop")
    for kept in (True, False):
        copy = tmp_path / str(kept) / original.name
        shutil.copytree(original, copy, copy_function=shutil.copyfile)
        if kept:
            os.utime(copy / "_metadata", (1_600_000_000, 1_600_000_000))
        told = _golden_to_spark(copy, broker, names, ("orders", "payments")).stderr
        assert ("[maybe-recreated]" in told) is kept
        assert "[age-unknown]" in told


# -- A 12, 13: one topic-partition twice ---------------------------------------------------------


@pytest.mark.parametrize("version", _VERSIONS)
def test_two_sources_of_one_topic_are_merged_only_where_the_user_says_so(
    tmp_path: Path, broker: Broker, names: dict[str, str], version: str
) -> None:
    chk, plan = _golden(version, "two-sources"), tmp_path / "plan.json"
    refused = _golden_to_spark(chk, broker, names, ("orders",))
    assert (refused.code, refused.stdout) == (4, "")
    assert f"2 sources read topic {names['orders']} and disagree on" in refused.stderr
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
    assert f"--merge-sources min: {sum(between)} records of" in merged.stderr
    saved = _golden_to_spark(chk, broker, names, ("orders",), *flags, "--plan-out", plan)
    assert saved.code == 0, saved.stderr
    assert [partition.repeated for partition in read_plan(plan).partitions] == between


@pytest.mark.parametrize(("again", "refused"), [(3, False), (5, True), (EARLIEST, True)])
def test_one_partition_twice_in_one_source_must_stand_at_one_place(
    tmp_path: Path, broker: Broker, topic: str, again: int, refused: bool
) -> None:
    held = splits(topic, [3, 4, 5])
    readers = {0: held, 1: [KafkaSplit(topic, 0, again)]}
    state = SourceState(readers, entries=list(map(EnumeratorSplit, held)))
    chk = write_checkpoint(tmp_path / "chk-7", source_operator(state))
    result = _to_spark(chk, broker)
    if refused:
        assert (result.code, result.stdout) == (4, "")
        assert f"{topic}-0: unresolved: reader state has it 2 times" in result.stderr
    else:
        assert _offsets(result) == {topic: {"0": 3, "1": 4, "2": 5}}
