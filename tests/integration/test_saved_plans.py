"""Apply saved plans after changes on a real broker."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest

from migrate.extensions.fleet.inventory import ScannedJob
from migrate.extensions.fleet.save_plans import INDEX, save_plans
from migrate.planning.plan_file import read_plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan, edit_plan

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of two partitions with ten records each."""
    name = f"p-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 2)
    _fill(broker, name, 10)
    return name


def _fill(broker: Broker, topic: str, records: int) -> None:
    for partition in broker.partitions(topic):
        broker.produce(topic, partition, map(str, range(records)))


@pytest.fixture
def chk(tmp_path: Path, topic: str) -> Path:
    return write_source(tmp_path / "job" / "chk-7", {0: splits(topic, [3, 4])})


def _save(broker: Broker, chk: Path, path: Path, *flags: str) -> Result:
    saved = migrate("to-spark", chk, "-b", broker.bootstrap_servers, "--plan-out", path, *flags)
    assert saved.code == 0, saved.stderr
    return saved


def _apply(broker: Broker, path: Path) -> Result:
    return migrate("to-spark", "--plan", path, "-b", broker.bootstrap_servers)


def test_scan_saves_no_plan_for_job_with_recreated_topic(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    """The recreated topic has more records.

    For a single job, ``to-spark`` only warns of this case.
    """
    fresh = write_source(tmp_path / "fresh" / "chk-7", {0: splits(topic, [3, 4])})
    os.utime(chk / "_metadata", (1_600_000_000, 1_600_000_000))  # long before these records
    jobs = [ScannedJob(str(one), str(one.parent), None) for one in (chk, fresh)]
    servers = broker.bootstrap_servers
    made = save_plans(jobs, tmp_path / "plans", None, bootstrap_servers=servers)
    suspect, planned = made[str(chk)], made[str(fresh)]
    assert (suspect.file, suspect.failure) == (None, None)
    (reason,) = suspect.reasons
    assert reason.startswith("suspect: 2 partitions may belong to a recreated topic")
    assert {path.name for path in (tmp_path / "plans").iterdir()} == {planned.file, INDEX}
    assert (
        "2 partitions may belong to a recreated topic"
        in _save(broker, chk, tmp_path / "plan.json").stderr
    )


def test_plan_is_refused_after_topic_is_recreated_with_more_records(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    plan = tmp_path / "plan.json"
    _save(broker, chk, plan)
    assert read_plan(plan).topic_ids.keys() == {topic}
    unmoved = _apply(broker, plan)
    assert json.loads(unmoved.stdout) == {topic: {"0": 3, "1": 4}}
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    _fill(broker, topic, 30)  # every position is in range, and every log end offset is higher
    refused = _apply(broker, plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"topic {topic} was recreated after the plan was created" in refused.stderr


def test_plan_is_refused_after_source_group_has_newer_commits(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    plan, group = tmp_path / "plan.json", f"flink-{topic}"
    broker.commit(group, {(topic, 0): 3})
    _save(broker, chk, plan, "--source-group", group)
    saved = read_plan(plan)
    assert saved.source_group == group
    assert [partition.flink_committed for partition in saved.partitions] == [3, None]
    assert _apply(broker, plan).code == 0
    broker.commit(group, {(topic, 1): 7})
    refused = _apply(broker, plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"{topic}-1: from no offset to 7" in refused.stderr


def test_plan_is_refused_after_newer_checkpoint(
    tmp_path: Path, broker: Broker, topic: str, chk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.json"
    monkeypatch.chdir(chk)
    _save(broker, Path(), plan)  # the plan contains the absolute path
    monkeypatch.chdir(tmp_path)
    unmoved = _apply(broker, plan)
    assert unmoved.code == 0
    assert "note:" not in unmoved.stderr
    write_source(chk.with_name("chk-9"), {0: splits(topic, [5, 6])})
    refused = _apply(broker, plan)
    assert (refused.code, refused.stdout) == (4, "")
    way_out = "stop the job with a savepoint, and move from that savepoint"
    assert f"the job kept running; it has completed chk-9; {way_out} [" in refused.stderr


def test_plan_that_allows_duplicates_is_applied_with_warning(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    """``--allow-ran-on`` accepts duplicates.

    The warning reports that their number has increased.
    """
    plan, group = tmp_path / "plan.json", f"flink-{topic}"
    broker.commit(group, {(topic, 0): 5})
    _save(broker, chk, plan, "--source-group", group, "--allow-ran-on")
    assert [partition.repeated for partition in read_plan(plan).partitions] == [2, 0]
    broker.commit(group, {(topic, 0): 8})
    write_source(chk.with_name("chk-9"), {0: splits(topic, [8, 4])})
    applied = _apply(broker, plan)
    assert json.loads(applied.stdout) == {topic: {"0": 3, "1": 4}}
    assert "from 5 to 8" in applied.stderr
    assert "completed chk-9" in applied.stderr
    assert "the move duplicates more records than planned" in applied.stderr


def test_plan_of_deleted_checkpoint_is_refused(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    """Regression: ``migrate`` printed only a note.

    Flink deletes a checkpoint only after it has completed newer ones, so the deletion shows that
    the job kept running.
    """
    plan, target = tmp_path / "plan.json", tmp_path / "query"
    write_source(chk.with_name("chk-6"), {0: splits(topic, [1, 1])})
    _save(broker, chk, plan)
    shutil.rmtree(chk)
    asked = ("to-spark", "--plan", plan, "-b", broker.bootstrap_servers)
    refused = migrate(*asked, "--checkpoint-dir", target)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"the job kept running; {chk} was deleted" in refused.stderr
    assert not target.exists()


@pytest.mark.parametrize("to_group", [False, True])
def test_plan_of_moved_savepoint_is_refused_until_made_from_new_path(
    tmp_path: Path, broker: Broker, topic: str, to_group: bool
) -> None:
    """Regression: the refusal said that the job kept running and that the savepoint was deleted."""
    old, new = tmp_path / "savepoint-1-a", tmp_path / "savepoint-1-b"
    write_source(old, {0: splits(topic, [3, 4])})
    move = ["commit-group", "--group", f"g-{topic}"] if to_group else ["to-spark"]
    back = tmp_path / "back.json"
    write = ["--checkpoint-dir", str(tmp_path / "query")]
    if to_group:
        write = ["--execute", "--yes", "--rollback-file", str(back)]
    move += ["-b", broker.bootstrap_servers]
    assert migrate(*move, old, "--plan-out", tmp_path / "old.json").code == 0
    old.rename(new)
    refused = migrate(*move, "--plan", tmp_path / "old.json", *write)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"savepoint 7 is no longer at {old}; if you moved it, " in refused.stderr
    assert "kept running" not in refused.stderr
    assert migrate(*move, new, "--plan-out", tmp_path / "new.json").code == 0
    applied = migrate(*move, "--plan", tmp_path / "new.json", *write)
    assert applied.code == 0, applied.stderr


def test_plan_of_deleted_job_directory_is_applied_with_note(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    plan = tmp_path / "plan.json"
    write_source(chk.with_name("chk-6"), {0: splits(topic, [1, 1])})
    _save(broker, chk, plan)
    shutil.rmtree(chk.parent)
    applied = _apply(broker, plan)
    assert json.loads(applied.stdout) == {topic: {"0": 3, "1": 4}}
    assert f"note: {chk} no longer exists" in applied.stderr
    assert "the job's checkpoints do not show whether the job kept running" in applied.stderr


def test_plan_made_without_broker_is_refused_after_newer_checkpoint(
    tmp_path: Path, topic: str, chk: Path
) -> None:
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan).code == 0
    write_source(chk.with_name("chk-9"), {0: splits(topic, [5, 6])})
    assert migrate("to-spark", "--plan", plan).code == 4


def test_recreated_topic_with_fewer_records_is_detected_without_topic_ids(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    """The plan has no topic IDs, as with brokers before Kafka 2.8."""
    plan = tmp_path / "plan.json"
    _save(broker, chk, plan)
    edit_and_seal_plan(plan, lambda held: held.update(topic_ids={}))
    applied = _apply(broker, plan)
    assert applied.code == 0, applied.stderr
    assert "warning: topics have no IDs on these brokers" in applied.stderr
    broker.delete_topic(topic)
    broker.create_topic(topic, 2)
    _fill(broker, topic, 5)
    refused = _apply(broker, plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert "[log-end-decreased]" in refused.stderr
    assert f"log end offsets have decreased: {topic}-0 from 10 to 5," in refused.stderr


def test_edited_plan_is_neither_applied_nor_verified(
    tmp_path: Path, broker: Broker, topic: str, chk: Path
) -> None:
    """Regression: ``migrate`` applied the edited plan and then reported "verified"."""
    plan, seed = tmp_path / "plan.json", tmp_path / "query"
    _save(broker, chk, plan)

    def skip(held: dict[str, Any]) -> None:
        held["partitions"][0]["next_offset"] += 5

    def skip_from_there(held: dict[str, Any]) -> None:
        held["partitions"][0] |= {"position": 8, "next_offset": 8}

    untouched = plan.read_text()
    base = ("-b", broker.bootstrap_servers)
    for rewrite, said in (
        (edit_plan, "edited"),
        (edit_and_seal_plan, "differs from its position 3"),
    ):
        plan.write_text(untouched)
        rewrite(plan, skip)
        for command in (
            ("to-spark", "--plan", plan, *base, "--checkpoint-dir", seed),
            ("verify", f"plan:{plan}", f"spark:{seed}", *base),
        ):
            result = migrate(*command)
            assert (result.code, result.stdout) == (3, "")
            assert said in result.stderr
        assert not seed.exists()
    plan.write_text(untouched)
    edit_and_seal_plan(plan, skip_from_there)
    assert migrate("to-spark", "--plan", plan, *base, "--checkpoint-dir", seed).code == 0
    found = migrate("verify", f"plan:{plan}", f"spark:{seed}", *base)
    assert found.code == 5
    assert f"{topic}-0: its position is 3, but 8 in the plan" in found.stderr
    assert found.stderr.endswith("not verified: the plan differs from its origin\n")


def test_plan_that_starts_from_group_is_refused_after_newer_commits(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """Regression: The plan was applied, and records consumed in the meantime were reprocessed."""
    plan, group = tmp_path / "plan.json", f"side-{topic}"
    broker.commit(group, {(topic, 0): 3, (topic, 1): 4})
    saved = migrate(
        *("to-spark", f"group:{group}", "--topic-map", f"{topic}={topic}"),
        *("-b", broker.bootstrap_servers, "--plan-out", plan),
    )
    assert saved.code == 0, saved.stderr
    assert _apply(broker, plan).code == 0
    broker.commit(group, {(topic, 1): 7})
    refused = _apply(broker, plan)
    assert (refused.code, refused.stdout) == (4, "")
    assert "[reader-kept-running]" in refused.stderr
    assert f"new offsets in 1 partition (the first is {topic}-1: from 4 to 7)" in refused.stderr
