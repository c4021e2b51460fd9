"""Run ``commit-group``, ``rollback``, ``diff``, and ``verify`` like a user, on a real broker."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.checkpoints import (
    SourceState,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.encoder import COMMITTER_STATE, LATEST
from tests.support.groups import member, read_from_group
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan
from tests.support.terminal import on_terminal

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture
def chk(tmp_path: Path, topic: str) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, 5])})


def test_dry_run_shows_all_changes_and_commits_nothing(
    broker: Broker, topic: str, group: str, chk: Path
) -> None:
    broker.commit(group, {(topic, 0): 1, (topic, 1): 9})
    dry_run = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    refused = migrate(*dry_run)
    assert (refused.code, refused.stdout) == (4, "")
    assert f"rewind 1 offset (the first is {topic}-1: from 9 to 4)" in refused.stderr
    result = migrate(*dry_run, "--wide", "--allow-moved-on")
    assert result.code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    origin = "00010203/0"
    # partition, checkpoint, from, current, new, difference, log start, log end, lag, verdict
    assert rows == [
        [topic, "0", "3", origin, "1", "3", "+2", "0", "10", "7", "ok"],
        [topic, "1", "4", origin, "9", "4", "-5", "0", "10", "6", "ok"],
        [topic, "2", "5", origin, "5", "0", "10", "5", "ok"],
        ["total", "18"],
    ]
    assert f"group {group}: Empty, classic, 0 members, 2 committed offsets" in result.stderr
    assert (
        f"the first is {topic}-1: from 9 to 4); up to 5 records will be reprocessed"
    ) in result.stderr
    assert (
        f"the first is {topic}-0: from 1 to 3); up to 2 records that Flink has read will be skipped"
        in result.stderr
    )
    assert "cannot determine whether the job is still running" in result.stderr
    assert "dry run: 3 of 3 offsets would change; nothing was" in result.stderr
    assert broker.committed(group) == {(topic, 0): 1, (topic, 1): 9}


def test_rollback_file_on_full_disk_prevents_commit(
    broker: Broker, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    """A file size limit of 0 bytes makes the same call fail that would fail on a full disk."""
    broker.commit(group, {(topic, 0): 1})
    done = subprocess.run(
        [
            *(sys.executable, "-m", "migrate", "commit-group", str(chk), "--group", group),
            *("-b", broker.bootstrap_servers, "--execute", "--yes"),
            *("--rollback-file", "full.json"),
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY)),
        check=False,
    )
    assert done.returncode == 6, done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "migrate: full.json: the rollback file cannot be written: File too large; choose a file "
        "on a different disk with --rollback-file",
        "nothing was committed",
    ]
    assert broker.committed(group) == {(topic, 0): 1}
    assert not (tmp_path / "full.json").exists()


def test_sink_option_warns_about_records_that_iceberg_may_drop(
    broker: Broker, group: str, chk: Path, tmp_path: Path
) -> None:
    move = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    assert "remember" not in migrate(*move).stderr
    sink = ROOT / "tests/golden/sinks/iceberg-flink"
    for options in ((), ("--plan-out", tmp_path / "plan.json")):
        result = migrate(*move, "--sink", sink, *options)
        assert result.code == 0, result.stderr
        assert "the sink may drop the job's records" in result.stderr
    (tmp_path / "sink").write_text("")
    refused = migrate(*move, "--sink", tmp_path / "sink")
    assert (refused.code, refused.stdout) == (4, "")


def test_commit_group_warns_of_sinks_that_remember_writers(
    broker: Broker, topic: str, group: str, tmp_path: Path
) -> None:
    """A move to Spark does not trigger the warning."""
    committer = operator_with_states(
        {COMMITTER_STATE: [b"\0\0\0\2\0\0\0\3abc"]}, operator_id=bytes(16)
    )
    source = source_operator(SourceState({0: splits(topic, [3, 4, 5])}))
    chk = write_checkpoint(tmp_path / "chk-7", source, committer)
    servers = ("-b", broker.bootstrap_servers)
    told = "[sink-memory]"
    assert told in migrate("commit-group", chk, "--group", group, *servers).stderr
    assert told not in migrate("to-spark", chk, *servers).stderr


def test_diff_of_missing_group_reports_difference(broker: Broker, group: str) -> None:
    """Regression: For a misspelled group, --exit-code returned 0, which means no lag."""
    for right in ("broker:latest", f"group:{group}-2"):
        compare = ("diff", f"group:{group}", right, "-b", broker.bootstrap_servers)
        result = migrate(*compare, "--exit-code", "--format", "json")
        assert (result.code, json.loads(result.stdout)["differs"]) == (1, True)
        assert "the group does not exist" in result.stderr


def test_empty_group_name_is_usage_error(broker: Broker, chk: Path) -> None:
    result = migrate("commit-group", chk, "--group", "", "-b", broker.bootstrap_servers)
    assert (result.code, result.stdout) == (2, "")
    assert "--group" in result.stderr


def test_missing_group_is_reported_in_dry_run_and_saved_plan(
    broker: Broker, group: str, chk: Path, tmp_path: Path
) -> None:
    """Regression: ``migrate show`` of the saved plan lacked this warning, so no reviewer saw it."""
    command = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    plan = tmp_path / "plan.json"
    warning = f"warning: group {group!r} does not exist and will be created"
    for arguments in ((chk,), (chk, "--plan-out", plan), ("--plan", plan)):
        result = migrate(*command, *arguments)
        assert result.code == 0
        assert result.stderr.count(warning) == 1
    assert migrate("show", plan).stdout.count(warning) == 1


def test_run_with_execute_option_reports_rollback_file_and_second_run_changes_nothing(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path
) -> None:
    broker.commit(group, {(topic, 0): 1})
    back = tmp_path / "back.json"
    command = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers, "--execute")
    result = migrate(*command, "--yes", "--rollback-file", back)
    assert (result.code, result.stdout) == (0, f"{back}\n"), result.stderr
    assert broker.committed(group) == {(topic, 0): 3, (topic, 1): 4, (topic, 2): 5}
    servers = f"-b {broker.bootstrap_servers}"
    assert result.stderr.splitlines()[-2:] == [
        f"next, before the group's consumers start: migrate verify {chk} group:{group} {servers}",
        f"to preview a rollback: migrate rollback {back} {servers}",
    ]

    again = migrate(*command, "--yes", "--rollback-file", tmp_path / "second.json")
    assert (again.code, again.stdout) == (0, ""), again.stderr
    assert "nothing to do" in again.stderr
    assert not (tmp_path / "second.json").exists()

    verified = migrate("verify", chk, f"group:{group}", "-b", broker.bootstrap_servers)
    assert verified.code == 0, verified.stdout
    same = migrate("diff", chk, f"group:{group}", "-b", broker.bootstrap_servers, "--exit-code")
    assert same.code == 0, same.stdout

    shown = migrate("rollback", back)
    assert shown.code == 0, shown.stderr
    assert "dry run: 3 offsets would change, including 2 to be removed; nothing was" in shown.stderr
    assert broker.committed(group)[topic, 1] == 4
    undone = migrate(
        "rollback", back, "--execute", "--yes", "--rollback-file", tmp_path / "forth.json"
    )
    assert (undone.code, undone.stdout) == (0, f"{tmp_path / 'forth.json'}\n"), undone.stderr
    assert broker.committed(group) == {(topic, 0): 1}


def test_plan_applied_after_rollback_reports_existing_group_and_rollback(
    tmp_path: Path, broker: Broker, group: str, chk: Path
) -> None:
    """Regression: The plan's warning that the group does not exist was printed again."""
    base = ("-b", broker.bootstrap_servers)
    plan, back, forth = (tmp_path / name for name in ("plan.json", "back.json", "forth.json"))
    saved = migrate("commit-group", chk, "--group", group, *base, "--plan-out", plan)
    assert (saved.code, "[new-group]" in saved.stderr) == (0, True), saved.stderr
    execute = ("--execute", "--yes", "--rollback-file")
    apply = ("commit-group", "--plan", plan, *base, *execute)
    assert migrate(*apply, back).code == 0
    undone = migrate("rollback", back, *execute, forth)
    assert undone.code == 0, undone.stderr

    again = migrate(*apply, tmp_path / "again.json")
    assert again.code == 0, again.stderr
    assert "[new-group]" not in again.stderr
    assert f"group {group}: Empty, classic, 0 members, 0 committed offsets\n" in again.stderr
    wrote = "an earlier rollback by migrate wrote this file and removed the group's offsets"
    assert f"{forth}: {wrote}\n" in again.stderr

    broker.commit(
        group, {partition: offset + 1 for partition, offset in broker.committed(group).items()}
    )
    refused = migrate("rollback", tmp_path / "again.json")
    assert refused.code == 4
    assert (
        "and consumers with auto.offset.reset=latest skip the records that arrive" in refused.stderr
    )
    assert " 0 records" not in refused.stderr


def test_execute_option_requires_yes_option_without_terminal(
    tmp_path: Path, broker: Broker, group: str, chk: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    result = subprocess.run(
        [
            *(sys.executable, "-m", "migrate", "commit-group", str(chk)),
            *("--group", group, "-b", broker.bootstrap_servers, "--execute"),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "--yes" in result.stderr
    assert broker.committed(group) == {}
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("answer", "code", "offsets"), [("n", 4, 0), ("y", 0, 3)])
def test_execute_option_on_terminal_asks_for_confirmation_once(
    tmp_path: Path, broker: Broker, group: str, chk: Path, answer: str, code: int, offsets: int
) -> None:
    with on_terminal(
        *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers, "--execute"),
        *("--rollback-file", tmp_path / "back.json"),
    ) as session:
        ended, stderr = session.answer(answer)
    assert ended == code, stderr
    assert stderr.count("[y/N]") == 1
    assert len(broker.committed(group)) == offsets
    assert (tmp_path / "back.json").exists() is (code == 0)


def test_active_group_is_refused_with_escaped_member_names(
    broker: Broker, topic: str, group: str, chk: Path
) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "client.id": "the-other\x1b[31m-job\nrefused: not",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    try:
        while not consumer.assignment():
            consumer.poll(0.2)
        for mode in ((), ("--execute", "--yes")):
            result = migrate(
                "commit-group", chk, "--group", group, "-b", broker.bootstrap_servers, *mode
            )
            assert (result.code, result.stdout) == (4, "")
            # The refusal shows the plan, and no control character moves the cursor.
            assert "the-other\\x1b[31m-job\\nrefused: not on 127.0.0.1" in result.stderr
            assert "\x1b" not in result.stderr
            assert "\nrefused: not" not in result.stderr
            assert [topic, "0", "3"] in [line.split()[:3] for line in result.stderr.splitlines()]
            assert "offsets.retention.minutes" not in result.stderr
    finally:
        consumer.close()


def test_commit_group_refuses_unsafe_positions(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    """One position is beyond the log end offset, and one position is unresolved."""
    chk = write_source(tmp_path / "bad" / "chk-1", {0: splits(topic, [1, 99, LATEST])})
    result = migrate(
        *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers),
        *("--execute", "--yes"),
    )
    assert (result.code, result.stdout) == (4, "")
    assert f"{topic}-1: beyond end" in result.stderr
    assert f"{topic}-2: unresolved" in result.stderr
    assert broker.committed(group) == {}
    allowed = migrate(
        *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers),
        *("--execute", "--yes", "--rollback-file", tmp_path / "back.json"),
        *("--on-beyond-end", "latest", "--unresolved", "earliest"),
    )
    assert allowed.code == 0, allowed.stderr
    assert broker.committed(group) == {(topic, 0): 1, (topic, 1): 10, (topic, 2): 0}


def test_verify_of_plan_checks_positions_that_options_have_changed(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    """The options changed the name of the topic, and a position beyond the log end offset."""
    chk = write_source(tmp_path / "chk-7", {0: splits("of-old", [1, 99, 3])})
    plan = tmp_path / "plan.json"
    base = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    flags = ("--on-beyond-end", "latest", "--topic-map", f"of-old={topic}")
    assert migrate(*base, chk, *flags, "--plan-out", plan).code == 0
    back = tmp_path / "back.json"
    applied = migrate(*base, "--plan", plan, "--execute", "--yes", "--rollback-file", back)
    assert applied.code == 0, applied.stderr
    target = (f"group:{group}", "-b", broker.bootstrap_servers)
    assert migrate("verify", chk, *target).code == 5  # the group has no offset for of-old
    verified = migrate("verify", f"plan:{plan}", *target)
    assert verified.code == 0, verified.stdout


def test_saved_plan_is_refused_after_group_has_newer_commits(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path
) -> None:
    plan = tmp_path / "plan.json"
    base = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    saved = migrate(*base, chk, "--plan-out", plan)
    assert (saved.code, saved.stdout) == (0, ""), saved.stderr
    assert broker.committed(group) == {}
    assert migrate(*base, chk, "--plan-out", plan).code == 4  # an existing plan is not overwritten

    broker.commit(group, {(topic, 0): 2})
    moved = migrate(*base, "--plan", plan, "--execute", "--yes")
    assert (moved.code, moved.stdout) == (4, "")
    assert f"the group's offsets have changed: {topic}-0 from no offset to 2;" in moved.stderr
    plan.unlink()
    assert migrate(*base, chk, "--plan-out", plan).code == 0
    broker.produce(topic, 0, ["more"])  # the plan remains valid after new records
    applied = migrate(
        *base, "--plan", plan, "--execute", "--yes", "--rollback-file", tmp_path / "back.json"
    )
    assert applied.code == 0, applied.stderr
    assert broker.committed(group) == {(topic, 0): 3, (topic, 1): 4, (topic, 2): 5}


@pytest.mark.parametrize("change", ["partition", "deleted records", "recreated"])
def test_saved_spark_plan_is_refused_after_topic_changes(
    tmp_path: Path, broker: Broker, topic: str, chk: Path, change: str
) -> None:
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "-b", broker.bootstrap_servers, "--plan-out", plan).code == 0
    unmoved = migrate("to-spark", "--plan", plan, "-b", broker.bootstrap_servers)
    assert json.loads(unmoved.stdout) == {topic: {"0": 3, "1": 4, "2": 5}}
    match change:
        case "partition":
            broker.add_partitions(topic, 4)
        case "deleted records":
            broker.delete_records(topic, 0, 8)
        case "recreated":
            broker.delete_topic(topic)
            broker.create_topic(topic, 3)
    refused = migrate("to-spark", "--plan", plan, "-b", broker.bootstrap_servers)
    assert (refused.code, refused.stdout) == (4, "")
    assert "create a new one with --plan-out" in refused.stderr


def test_positions_older_than_topic_trigger_warning(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The position is in the range of the recreated topic.

    However, the checkpoint is older than all records before the position.
    """
    chk = write_source(tmp_path / "old" / "chk-7", {0: splits(topic, [8, 8, 8])})
    os.utime(chk / "_metadata", (1_600_000_000, 1_600_000_000))  # long before these records
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert result.code == 0
    assert "3 partitions may belong to a recreated topic" in result.stderr
    fresh = write_source(tmp_path / "new" / "chk-7", {0: splits(topic, [8, 8, 8])})
    assert "recreated" not in migrate("to-spark", fresh, "-b", broker.bootstrap_servers).stderr


def test_unresolved_position_is_resolved_to_offset_at_timestamp(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The option is ``--unresolved timestamp:TIME``."""
    chk = write_source(tmp_path / "old" / "chk-7", {0: splits(topic, [1, LATEST, 1])})
    command = ("to-spark", chk, "-b", broker.bootstrap_servers, "--unresolved")
    early = migrate(*command, "timestamp:2020-01-01T00:00:00Z")
    assert json.loads(early.stdout)[topic]["1"] == 0, early.stderr
    late = migrate(*command, "timestamp:2100-01-01T00:00:00Z")
    assert json.loads(late.stdout)[topic]["1"] == 10, late.stderr


def test_verify_reports_missing_offset_and_offset_that_duplicates_records(
    broker: Broker, topic: str, group: str, chk: Path
) -> None:
    """From offset 2 instead of 4, the group would reprocess two records.

    Partition 2 has no offset.
    """
    broker.commit(group, {(topic, 0): 3, (topic, 1): 2})
    result = migrate("verify", chk, f"group:{group}", "-b", broker.bootstrap_servers)
    assert result.code == 5
    assert "1 ok, 1 repeated (up to 2 offsets), 1 missing" in result.stdout


def test_verify_explains_group_offsets_lost_since_commit(
    tmp_path: Path, broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: A deleted, recreated, or extended topic was "missing", without an explanation.

    Kafka removes the group's offsets of a deleted topic. A rollback file shows a recreated topic.
    """
    monkeypatch.chdir(tmp_path)
    other, base = f"other-{topic}", ("-b", broker.bootstrap_servers)
    broker.create_topic(other, 1)
    broker.produce(other, 0, map(str, range(10)))
    positions = {0: [*splits(topic, [3, 4, 5]), *splits(other, [6])]}
    chk = write_source(tmp_path / "chk-7", positions)
    move = migrate("commit-group", chk, "--group", group, *base, "--execute", "--yes")
    assert move.code == 0, move.stderr
    verify = ("verify", chk, f"group:{group}", *base)
    assert migrate(*verify).code == 0
    broker.add_partitions(topic, 4)
    added = migrate(*verify)
    assert added.code == 5 and f"group:{group}: 4 ok, 1 missing" in added.stdout
    assert f"missing (1): {topic}-3 is not in the checkpoint" in added.stderr
    broker.delete_topic(other)
    deleted = migrate(*verify)
    assert deleted.code == 5 and f"group:{group}: 3 ok, 1 missing, 1 gone" in deleted.stdout
    assert "gone (1): the broker has no such topic or partition" in deleted.stderr
    broker.create_topic(other, 1)
    recreated = migrate(*verify)
    assert recreated.code == 5
    assert f"group:{group}: 3 ok, 1 missing, 1 topic recreated" in recreated.stdout
    Path(move.stdout.strip()).unlink()
    unknown = migrate(*verify)
    assert unknown.code == 5 and f"group:{group}: 3 ok, 2 missing" in unknown.stdout
    assert "missing (1): the group has no offset for these partitions" in unknown.stderr


@pytest.mark.parametrize("flinks", [False, True], ids=["by a consumer", "as Flink does it"])
def test_verify_is_inconclusive_once_group_has_newer_commits(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path, flinks: bool
) -> None:
    base = ("-b", broker.bootstrap_servers)
    command = ("commit-group", chk, "--group", group, *base, "--execute", "--yes")
    assert migrate(*command, "--rollback-file", tmp_path / "back.json").code == 0
    assert migrate("verify", chk, f"group:{group}", *base).code == 0
    if flinks:
        broker.commit(group, {(topic, n): 10 for n in range(3)})
    else:
        read_from_group(broker, group, [topic], "classic")
    verified = migrate("verify", chk, f"group:{group}", *base)
    assert verified.code == 5
    assert "3 moved on" in verified.stdout
    assert "the group no longer shows the start offsets" in verified.stderr
    assert ("may be from a Flink job or from migrate" in verified.stderr) is flinks
    allowed = migrate("verify", chk, f"group:{group}", *base, "--allow-moved-on")
    assert allowed.code == 0
    # Newer commits do not explain an offset below the position.
    broker.commit(group, {(topic, 0): 1})
    assert migrate("verify", chk, f"group:{group}", *base, "--allow-moved-on").code == 5


@pytest.mark.parametrize("partitions", [3, 1], ids=["everywhere", "in one partition"])
def test_newer_commits_are_detected_without_rollback_file(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path, partitions: int
) -> None:
    """The rollback file is in a different directory, for example on a different machine."""
    command = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    gone = tmp_path / "elsewhere" / "back.json"
    gone.parent.mkdir()
    assert migrate(*command, "--execute", "--yes", "--rollback-file", gone).code == 0
    moved = broker.committed(group)
    with member(broker, group, topic) as consumer:
        consumer.commit(
            offsets=[TopicPartition(topic, n, 9) for n in range(partitions)], asynchronous=False
        )
    there = broker.committed(group)
    back = sum(there[place] - next_offset for place, next_offset in moved.items())
    again = (*command, "--rollback-file", tmp_path / "again.json")
    for refused in (migrate(*again), migrate(*again, "--execute", "--yes")):
        assert (refused.code, refused.stdout) == (4, "")
        assert f"group {group} has newer commits" in refused.stderr
        assert f"reprocess up to {back} records; add --allow-moved-on" in refused.stderr
    assert broker.committed(group) == there
    assert migrate(*again, "--execute", "--yes", "--allow-moved-on").code == 0
    assert broker.committed(group) == moved


def test_repeated_move_after_consumption_requires_option_allow_moved_on(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path
) -> None:
    command = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    first = migrate(*command, "--execute", "--yes", "--rollback-file", tmp_path / "back.json")
    assert first.code == 0
    moved = broker.committed(group)
    read_from_group(broker, group, [topic], "classic")
    there = broker.committed(group)
    back = sum(there[place] - next_offset for place, next_offset in moved.items())
    assert back > 0
    # The first rollback file is in the same directory as the next rollback file.
    again = (*command, "--rollback-file", tmp_path / "again.json")
    for refused in (migrate(*again), migrate(*again, "--execute", "--yes")):
        assert (refused.code, refused.stdout) == (4, "")
        assert f"reprocess up to {back} records; add --allow-moved-on" in refused.stderr
    assert broker.committed(group) == there
    assert migrate(*again, "--execute", "--yes", "--allow-moved-on").code == 0
    assert broker.committed(group) == moved


def test_verify_reports_records_expired_after_correct_start(
    tmp_path: Path,
    broker: Broker,
    topic: str,
    group: str,
    chk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The checkpoint, the seed, and the group contain the offsets 3, 4, and 5 of three partitions.

    The log of partition 0 then starts at 4.
    """
    base = ("-b", broker.bootstrap_servers)
    monkeypatch.chdir(tmp_path)  # the directory of the rollback file
    seed, back = tmp_path / "seed", tmp_path / "back.json"
    assert migrate("to-spark", chk, *base, "--checkpoint-dir", seed).code == 0
    move = ("commit-group", chk, "--group", group, *base, "--execute", "--yes")
    assert migrate(*move, "--rollback-file", back).code == 0
    targets = (f"spark:{seed}", f"group:{group}")
    for target in targets:
        right = migrate("verify", chk, target, *base)
        assert right.code == 0, right.stdout
        assert right.stderr.splitlines()[-1] == (
            "verified: all 3 partitions will start where the checkpoint ended"
        )
        assert "WILL-START-AT" in right.stdout and "STARTED-AT" not in right.stdout
    broker.delete_records(topic, 0, 4)
    for target in targets:
        found = migrate("verify", chk, target, *base, "--allow-moved-on")
        assert found.code == 5
        assert ["expired", topic, "0", "3", "3", "1"] in [
            line.split() for line in found.stdout.splitlines()
        ]
        assert "2 ok, 1 expired (up to 1 offset)" in found.stdout
        assert "these records were deleted" in found.stderr
    broker.delete_topic(topic)
    for target in targets:
        found = migrate("verify", chk, target, *base)
        assert found.code == 5
        assert "3 gone" in found.stdout


@pytest.mark.parametrize("records", [2, 30], ids=["smaller", "larger"])
def test_verify_detects_recreated_topic_by_topic_id(
    tmp_path: Path, broker: Broker, topic: str, chk: Path, records: int
) -> None:
    base, plan, seed = ("-b", broker.bootstrap_servers), tmp_path / "plan.json", tmp_path / "seed"
    assert migrate("to-spark", chk, *base, "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan, *base, "--checkpoint-dir", seed).code == 0
    assert migrate("verify", f"plan:{plan}", f"spark:{seed}", *base).code == 0
    broker.delete_topic(topic)
    broker.create_topic(topic, 3)
    later = round(time.time() * 1000) + 120_000  # clocks may differ by a minute
    for partition in range(3):
        broker.produce(topic, partition, map(str, range(records)), [later] * records)
    found = migrate("verify", f"plan:{plan}", f"spark:{seed}", *base)
    assert found.code == 5
    assert "3 topic recreated" in found.stdout
    # Regression: The checkpoint has no topic ID, and the larger topic was "verified".
    by_the_checkpoint = migrate("verify", chk, f"spark:{seed}", *base)
    assert by_the_checkpoint.code == 5
    assert ("3 suspect" if records == 30 else "beyond end") in by_the_checkpoint.stdout


def test_verify_refuses_plan_for_different_cluster(
    tmp_path: Path, broker: Broker, chk: Path
) -> None:
    base, plan, seed = ("-b", broker.bootstrap_servers), tmp_path / "plan.json", tmp_path / "seed"
    assert migrate("to-spark", chk, *base, "--plan-out", plan).code == 0
    assert migrate("to-spark", "--plan", plan, *base, "--checkpoint-dir", seed).code == 0
    edit_and_seal_plan(plan, lambda held: held.update(cluster_id="elsewhere"))
    found = migrate("verify", f"plan:{plan}", f"spark:{seed}", *base)
    assert (found.code, found.stdout) == (4, "")
    assert "the plan is for cluster elsewhere" in found.stderr


def test_verify_reads_start_of_seeded_query(tmp_path: Path, chk: Path) -> None:
    seed = tmp_path / "seed"
    assert migrate("to-spark", chk, "--checkpoint-dir", seed).code == 0
    assert migrate("verify", chk, f"spark:{seed}").code == 0
    other = write_source(tmp_path / "other" / "chk-7", {0: splits("other", [1])})
    assert migrate("verify", other, f"spark:{seed}").code == 5


# -- problems found in reviews -------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [("--source", "topic:x"), ("--topic-map", "a=b"), ("--partitions", "a:0"), ("--gone", "skip")],
)
def test_options_for_creating_plan_are_rejected_with_saved_plan(
    tmp_path: Path, broker: Broker, group: str, chk: Path, flags: tuple[str, ...]
) -> None:
    plan = tmp_path / "plan.json"
    base = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    assert migrate(*base, chk, "--plan-out", plan).code == 0
    assert migrate(*base, "--plan", plan, *flags, "--execute", "--yes").code == 2
    assert broker.committed(group) == {}


@pytest.mark.parametrize("flags", [("--partitions", "typo:0"), ("--topic-map", "typo=b")])
def test_misspelled_topic_is_usage_error(
    broker: Broker, group: str, chk: Path, flags: tuple[str, str]
) -> None:
    base = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    result = migrate(*base, *flags, "--execute", "--yes")
    assert (result.code, result.stdout) == (2, "")
    assert "typo" in result.stderr


def test_topic_map_to_name_of_other_topic_in_checkpoint_is_refused(
    tmp_path: Path, broker: Broker
) -> None:
    """With this ``--topic-map``, two topics of the checkpoint would have the same name."""
    name = f"b-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 1)
    broker.produce(name, 0, map(str, range(10)))
    readers = {0: [*splits("a", [7]), *splits(name, [2])]}
    chk = write_source(tmp_path / "chk-7", readers)
    result = migrate("to-spark", chk, "-b", broker.bootstrap_servers, "--topic-map", f"a={name}")
    assert (result.code, result.stdout) == (4, "")
    assert "the checkpoint already has a topic" in result.stderr


def test_records_deleted_during_confirmation_are_detected(
    tmp_path: Path, broker: Broker, topic: str, group: str, chk: Path
) -> None:
    """``migrate`` checks the logs again after the user has confirmed the commit."""
    with on_terminal(
        *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers, "--execute"),
        *("--rollback-file", tmp_path / "back.json"),
    ) as session:
        session.await_question()
        broker.delete_records(topic, 0, 8)
        ended, stderr = session.answer("y")
    assert ended == 4, stderr
    assert "(the log now ranges from 8 to 10)" in stderr
    assert broker.committed(group) == {}
    assert not (tmp_path / "back.json").exists()


def test_recreated_topic_triggers_warning_even_if_position_is_resolved_by_timestamp(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    chk = write_source(tmp_path / "old" / "chk-7", {0: splits(topic, [8, 8, LATEST])})
    os.utime(chk / "_metadata", (1_600_000_000, 1_600_000_000))
    result = migrate(
        *("to-spark", chk, "-b", broker.bootstrap_servers),
        *("--unresolved", "timestamp:2100-01-01T00:00:00Z"),
    )
    assert json.loads(result.stdout)[topic]["2"] == 10
    assert "2 partitions may belong to a recreated topic" in result.stderr


def test_plan_is_refused_if_topic_that_it_skips_was_created_later(
    tmp_path: Path, broker: Broker, topic: str
) -> None:
    """The plan was created with ``--gone skip``, because the topic did not exist."""
    gone = f"gone-{uuid.uuid4().hex[:8]}"
    chk = write_source(tmp_path / "chk-7", {0: [*splits(topic, [1, 1, 1]), *splits(gone, [1])]})
    plan = tmp_path / "plan.json"
    saved = migrate(
        "to-spark", chk, "-b", broker.bootstrap_servers, "--gone", "skip", "--plan-out", plan
    )
    assert saved.code == 0, saved.stderr
    assert f"{gone}-0: topic gone, skipped" in saved.stderr
    broker.create_topic(gone, 1)
    result = migrate("to-spark", "--plan", plan, "-b", broker.bootstrap_servers)
    assert (result.code, result.stdout) == (4, "")
    assert "did not exist when the plan was created" in result.stderr
