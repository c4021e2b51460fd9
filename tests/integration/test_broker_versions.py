"""Check the claims of the broker matrix with the Kafka release of the running broker.

`make test` uses the broker of every other test. `make broker-matrix` runs this file with each Kafka
release and writes docs/broker-matrix.md from the results.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.groups import PROTOCOLS, member, read_from_group
from tests.support.jars import classpath
from tests.support.jdk import compile_java, run_java
from tests.support.kafka import RELEASE, Broker

pytestmark = pytest.mark.integration

_RELEASE = tuple(map(int, RELEASE.split(".")))
_SOON = 60.0
_SINCE = {"classic": (0,), "consumer": (4, 0)}


@pytest.fixture
def chk(tmp_path: Path, topic: str) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits(topic, [3, 4, 5])})


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    if _SINCE[request.param] > _RELEASE:
        pytest.skip("this Kafka does not have it")
    return str(request.param)


def test_consumers_resume_from_verified_commit(
    broker: Broker, topic: str, group: str, chk: Path, tmp_path: Path, protocol: str
) -> None:
    servers = ("-b", broker.bootstrap_servers)
    with member(broker, group, topic, protocol):
        pass  # creates a group with this protocol
    move = ("commit-group", chk, "--group", group, *servers, "--rollback-file")
    result = migrate(*move, tmp_path / "back.json", "--execute", "--yes")
    assert result.code == 0, result.stderr
    assert migrate("verify", chk, f"group:{group}", *servers).code == 0
    read = [
        (partition, offset)
        for _, partition, offset, _ in read_from_group(broker, group, [topic], protocol)
    ]
    assert read == [(p, n) for p, first in enumerate((3, 4, 5)) for n in range(first, 10)]


def test_commit_to_active_group_is_refused(
    broker: Broker, topic: str, group: str, chk: Path, tmp_path: Path, protocol: str
) -> None:
    move = ("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers)
    with member(broker, group, topic, protocol):
        result = migrate(*move, "--rollback-file", tmp_path / "r.json", "--execute", "--yes")
    assert (result.code, broker.committed(group)) == (4, {}), result.stderr
    assert "1 member (a-member on 127.0.0.1)" in result.stderr


def test_rollback_restores_previous_offset_and_removes_added_offsets(
    broker: Broker, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    """Before the commit, one partition had an offset, and two partitions had no offset."""
    broker.commit(group, {(topic, 0): 1})
    servers = ("-b", broker.bootstrap_servers)
    back = tmp_path / "back.json"
    moved = migrate(
        *("commit-group", chk, "--group", group, *servers, "--rollback-file", back),
        *("--execute", "--yes"),
    )
    assert moved.code == 0, moved.stderr
    assert broker.committed(group) == {(topic, 0): 3, (topic, 1): 4, (topic, 2): 5}
    undone = migrate(
        *("rollback", back, *servers, "--rollback-file", tmp_path / "forth.json"),
        *("--execute", "--yes"),
    )
    assert undone.code == 0, undone.stderr
    assert broker.committed(group) == {(topic, 0): 1}


def test_saved_plan_is_refused_after_topic_is_recreated(
    broker: Broker, topic: str, group: str, chk: Path, tmp_path: Path
) -> None:
    """`migrate` compares the topic ID that Kafka assigned."""
    move = ("commit-group", "--group", group, "-b", broker.bootstrap_servers)
    plan = tmp_path / "plan.json"
    planned = migrate(*move, chk, "--plan-out", plan)
    assert planned.code == 0, planned.stderr
    broker.delete_topic(topic)
    _create_again(broker, topic)
    for partition in range(3):
        broker.produce(topic, partition, map(str, range(10)))
    result = migrate(
        *move,
        *("--plan", plan, "--rollback-file", tmp_path / "r.json", "--execute", "--yes"),
    )
    assert (result.code, broker.committed(group)) == (4, {}), result.stderr
    assert "recreated" in result.stderr


def _create_again(broker: Broker, topic: str) -> None:
    """Create the topic again. With ZooKeeper, the deleted topic may exist for some time."""
    deadline = time.monotonic() + _SOON
    while True:
        try:
            return broker.create_topic(topic, 3)
        except KafkaException as error:
            gone_soon = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not gone_soon or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


@pytest.mark.skipif(_RELEASE < (4, 2), reason="Kafka 4.1 has to be asked for them")
def test_share_group_and_streams_group_are_refused(
    broker: Broker, chk: Path, tmp_path: Path
) -> None:
    source = Path(__file__).parents[1] / "support/java/OtherGroups.java"
    jars = classpath("kafka-streams-4.1.1")
    arguments = [broker.bootstrap_servers, "a-share-group", "a-streams-group", "of-both"]
    run_java("OtherGroups", [compile_java([source], jars), *jars], arguments)
    broker.commit("a-streams-group", {("of-both", 0): 0})
    for group, told in (
        ("a-share-group", "a-share-group is not a consumer group"),
        ("a-streams-group", "a-streams-group belongs to a Kafka Streams application"),
    ):
        result = migrate(
            *("commit-group", chk, "--group", group, "-b", broker.bootstrap_servers),
            *("--rollback-file", tmp_path / "r.json", "--execute", "--yes"),
        )
        assert (result.code, told in result.stderr) == (4, True), result.stderr
    assert broker.committed("a-streams-group") == {("of-both", 0): 0}
