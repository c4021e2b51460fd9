"""Call the library on a real broker and compare the results with the commands."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

import migrate as library
from migrate.targets.group.commit import Applied
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.encoder import EARLIEST
from tests.support.groups import member
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


def test_library_commits_and_rolls_back_like_commands(
    broker: Broker, topic: str, group: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, EARLIEST])})
    servers = broker.bootstrap_servers
    broker.commit(group, {(topic, 0): 1})

    move = library.plan(chk, group=group, bootstrap_servers=servers)
    assert move.refusals == ()
    assert [(one.current, one.next_offset, one.log_end) for one in move.partitions] == [
        (1, 3, 10),
        (None, 4, 10),
        (None, 0, 10),
    ]
    looked_at = library.commit_group(plan=move, group=group, bootstrap_servers=servers)
    assert looked_at.outcome is None
    assert (looked_at.group.state, looked_at.refusals) == ("Empty", ())
    assert broker.committed(group) == {(topic, 0): 1}
    dry = migrate("commit-group", chk, "--group", group, "-b", servers)
    # With the header and the total.
    assert len(dry.stdout.splitlines()) == 2 + len(looked_at.plan.partitions)

    # With -q, a forgotten --execute is still reported.
    result = "dry run: 3 of 3 offsets would change; nothing was committed; add --execute\n"
    dry_run = ("commit-group", "-q", chk, "--group", group, "-b", servers)
    assert migrate(*dry_run).stderr.endswith(result)
    assert "dry run" not in migrate(*dry_run, "--dry-run").stderr

    back = tmp_path / "back.json"
    done = library.commit_group(
        chk, group=group, bootstrap_servers=servers, execute=True, rollback_file=back
    )
    assert done.outcome is not None
    assert (done.outcome.applied, done.outcome.rollback_path) == (Applied.ALL, back)
    after = {(topic, 0): 3, (topic, 1): 4, (topic, 2): 0}
    assert broker.committed(group) == after
    with pytest.raises(library.Refused, match="the plan was already applied"):
        looked_at.execute()  # the result is older than the commit
    assert library.verify(chk, f"group:{group}", bootstrap_servers=servers).verified
    assert not library.diff(chk, f"group:{group}", bootstrap_servers=servers).differs

    # The brokers in the rollback file take precedence over the environment variable.
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    shown = migrate("rollback", back)
    assert (shown.code, "MIGRATE_" in shown.stderr) == (0, False), shown.stderr
    config = tmp_path / "client.properties"
    config.write_text("bootstrap.servers=127.0.0.1:1\nclient.id=of-the-environment\n")
    monkeypatch.setenv("MIGRATE_KAFKA_CONFIG", str(config))
    again = migrate("rollback", back)
    assert (again.code, again.stdout) == (0, shown.stdout), again.stderr
    assert f"Kafka properties from MIGRATE_KAFKA_CONFIG: {config}" in again.stderr
    quiet = migrate("rollback", "-q", back)
    assert quiet.stdout == shown.stdout
    result = "dry run: 3 offsets would change, including 2 to be removed; nothing was changed"
    assert quiet.stderr == f"{result}; add --execute\n"
    assert migrate("rollback", "-q", "--dry-run", back).stderr == ""
    undone = library.rollback(back, kafka_properties={"sasl.password": "hunter2"})
    assert (undone.outcome, undone.refusals) == (None, ())
    assert broker.committed(group) == after
    assert undone.execute().applied is Applied.ALL
    assert broker.committed(group) == {(topic, 0): 1}
    assert "hunter2" not in repr(undone)


def test_library_function_to_spark_resolves_positions_with_broker(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4])})
    servers = broker.bootstrap_servers
    start = library.to_spark(chk, bootstrap_servers=servers)
    assert migrate("to-spark", chk, "-b", servers).stdout == start.starting_offsets + "\n"
    assert json.loads(start.starting_offsets) == {topic: {"0": 3, "1": 4, "2": 0}}
    with pytest.raises(library.Refused, match=f"{topic}-2: new partition"):
        library.to_spark(
            chk, kafka_properties={"bootstrap.servers": servers}, new_partitions="fail"
        )


def test_library_dry_run_lists_active_group_and_execute_raises_error(
    broker: Broker, topic: str, group: str, tmp_path: Path
) -> None:
    """The dry run returns the refusal.

    ``execute`` raises the refusal and writes no rollback file.
    """
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, 5])})
    servers = broker.bootstrap_servers
    with member(broker, group, topic):
        looked_at = library.commit_group(chk, group=group, bootstrap_servers=servers)
        assert len(looked_at.refusals) == 1
        assert "has 1 member " in looked_at.refusals[0]
        with pytest.raises(library.Refused, match="has 1 member "):
            looked_at.execute()
    assert broker.committed(group) == {}
    assert list(tmp_path.glob("rollback-*")) == []


def test_misspelled_group_gets_suggestion(
    broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, 5])})
    group = f"billing-{uuid.uuid4().hex}"
    broker.commit(group, {(topic, 0): 1})
    misspelt = group.replace("billing", "biling")
    monkeypatch.setenv("MIGRATE_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    dry = migrate("commit-group", chk, "--group", misspelt, "--source-group", misspelt)
    assert dry.code == 0, dry.stderr  # a hint is no refusal
    assert f"brokers from MIGRATE_BOOTSTRAP_SERVERS: {broker.bootstrap_servers}" in dry.stderr
    meant = f"(did you mean {group!r}?)"
    assert f"will be created {meant}; check the name [new-group]" in dry.stderr
    assert f"group {misspelt!r} {meant} has committed no offset" in dry.stderr
    side = migrate("diff", chk, f"group:{misspelt}")
    assert f"the group does not exist {meant}" in side.stdout
    assert "did you mean" not in migrate("commit-group", chk, "--group", "like-none").stderr
    looked_at = library.commit_group(
        chk, group=misspelt, bootstrap_servers=broker.bootstrap_servers
    )
    assert looked_at.group.alike == (group,)
    told = migrate("commit-group", chk, "--group", group, "-v").stderr
    assert f"asking {broker.bootstrap_servers} about 1 topic, group {group}: " in told
