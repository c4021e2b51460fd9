"""Read, commit, and roll back a consumer group of a real broker."""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from migrate.kafka import groups as changing
from migrate.kafka.group_offsets import GroupOffsets
from migrate.kafka.groups import ConsumerGroups
from migrate.kafka.snapshot import take_snapshot
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView, Member, Question
from migrate.model.errors import Refused
from migrate.storage.json_models import write_file
from migrate.targets.group import commit as consumer_group
from migrate.targets.group import rollback as undo
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import Applied, ChangeOutcome, Result
from migrate.targets.group.rollback_decision import RollbackPreview
from migrate.targets.group.rollback_file import ChangeProgress
from tests.support.groups import PROTOCOLS, member
from tests.support.jars import classpath
from tests.support.java_groups import JavaGroups
from tests.support.jdk import compile_java, run_java
from tests.support.kafka import Broker
from tests.support.plans import edit_and_seal_plan
from tests.support.secured import SecuredBroker

pytestmark = pytest.mark.integration

METADATA = "a trace"


def _name(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of three partitions with ten records each."""
    name = _name("t")
    broker.create_topic(name, 3)
    for partition in range(3):
        broker.produce(name, partition, map(str, range(10)))
    return name


@pytest.fixture
def other_topic(broker: Broker) -> str:
    """A topic that the group also reads and that no commit may change."""
    name = _name("other")
    broker.create_topic(name, 1)
    broker.produce(name, 0, map(str, range(30)))
    return name


@pytest.fixture
def group() -> str:
    return _name("g")


def _view(broker: Broker, group: str) -> GroupView:
    return ConsumerGroups(_config(broker)).view(group)


def _config(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def _wanted(topic: str, *offsets: int) -> dict[tuple[str, int], Committed]:
    return {(topic, n): Committed(offset, METADATA) for n, offset in enumerate(offsets)}


def _commit(
    broker: Broker, group: str, wanted: dict[tuple[str, int], Committed], path: Path
) -> ChangeOutcome:
    return consumer_group.commit(_config(broker), group, wanted, _view(broker, group), path)


def _seen(broker: Broker, path: Path) -> RollbackPreview:
    return undo.read_preview(_config(broker), rollback_file.read(path))


def _restore(broker: Broker, path: Path, to: Path, *, force: bool = False) -> ChangeOutcome:
    config = _config(broker)
    seen = undo.read_preview(config, rollback_file.read(path))
    return undo.restore(config, seen, to, force=force)


def _hold(java: JavaGroups, group: str, offsets: dict[tuple[str, int], Committed]) -> None:
    """Commit offsets with their metadata, using Kafka's Java client."""
    java.commit(
        group,
        {
            partition: (offset.next_offset, offset.leader_epoch, offset.metadata.encode())
            for partition, offset in offsets.items()
        },
    )


# -- snapshots -----------------------------------------------------------------------------------


def test_broker_snapshot_reports_missing_group_as_dead(
    broker: Broker, topic: str, group: str
) -> None:
    snapshot = take_snapshot(_config(broker), Question(frozenset({topic}), target_group=group))
    assert snapshot.target_group == GroupView(group, False, "Dead", "classic")
    assert snapshot.source_group is None
    assert snapshot.cluster_id


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_broker_snapshot_lists_members_and_assignments(
    broker: Broker, topic: str, group: str, protocol: str
) -> None:
    broker.commit(group, {(topic, n): 4 for n in range(3)})
    with member(broker, group, topic, protocol):
        view = _view(broker, group)
    assert (view.exists, view.state, view.type) == (True, "Stable", protocol)
    assigned = frozenset((topic, partition) for partition in range(3))
    assert view.members == (Member("a-member", "127.0.0.1", assigned),)
    left = _view(broker, group)
    assert (left.exists, left.state, left.type) == (True, "Empty", protocol)
    assert left.members == ()


def test_broker_snapshot_has_every_offset_with_metadata(
    broker: Broker, java: JavaGroups, topic: str, other_topic: str, group: str
) -> None:
    held = {(topic, 1): Committed(7, "mine, ünïcode"), (other_topic, 0): Committed(20)}
    _hold(java, group, held)
    snapshot = take_snapshot(
        _config(broker), Question(frozenset({topic}), source_group=group, target_group=group)
    )
    assert snapshot.target_group is not None
    assert snapshot.target_group.committed == held
    assert snapshot.source_group == snapshot.target_group


def test_group_created_during_broker_snapshot_is_not_mistaken_for_streams_group(
    broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first commit of a KafkaSource creates the group between two requests of the snapshot."""
    ask = GroupOffsets.read

    def ask_once_it_is_born(client: GroupOffsets, *arguments: Any, **more: Any) -> Any:
        broker.commit(group, {(topic, 0): 4})
        return ask(client, *arguments, **more)

    with monkeypatch.context() as born:
        born.setattr(GroupOffsets, "read", ask_once_it_is_born)
        view = _view(broker, group)
    assert (view.exists, view.state, view.type) == (True, "Empty", "classic")
    assert view.committed == {(topic, 0): Committed(4)}


def test_broker_snapshot_waits_for_open_transaction_that_commits_offsets(
    broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: `diff` reported "same" for offsets that an open transaction later replaced."""
    broker.commit(group, {(topic, 0): 3, (topic, 1): 3})
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": group})
    producer.init_transactions()
    consumer = Consumer({**servers, "group.id": group})
    producer.begin_transaction()
    offsets = [TopicPartition(topic, 0, 8)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata())
    with monkeypatch.context() as impatient:
        impatient.setattr("migrate.kafka.client.REQUEST_TIMEOUT", 1.0)
        with pytest.raises(BrokerError, match=rf"1 partition \(the first is {topic}-0\)"):
            _view(broker, group)
    ended = threading.Timer(1.0, producer.commit_transaction)
    ended.start()
    try:
        committed = _view(broker, group).committed
    finally:
        ended.join()
        consumer.close()
    assert committed == {(topic, 0): Committed(8), (topic, 1): Committed(3)}


def test_offsets_of_group_with_busy_transactional_producers_are_read(
    broker: Broker, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two producers take turns, so at every moment one transaction is open."""
    broker.commit(group, {(topic, 0): 3, (topic, 1): 3})
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producers = [Producer({**servers, "transactional.id": f"{group}-{n}"}) for n in range(2)]
    consumer = Consumer({**servers, "group.id": group})
    ended = threading.Event()

    def begin(partition: int, offset: int) -> None:
        producers[partition].begin_transaction()
        offsets = [TopicPartition(topic, partition, offset)]
        metadata = consumer.consumer_group_metadata()
        producers[partition].send_offsets_to_transaction(offsets, metadata)

    def take_turns() -> None:
        for partition in itertools.cycle((0, 1)):
            producers[partition].commit_transaction()
            if ended.wait(0.4):
                producers[1 - partition].commit_transaction()
                return
            begin(partition, 5)

    for partition, producer in enumerate(producers):
        producer.init_transactions()
        begin(partition, 5)
    turns = threading.Thread(target=take_turns)
    turns.start()
    try:
        monkeypatch.setattr("migrate.kafka.client.REQUEST_TIMEOUT", 8.0)
        committed = _view(broker, group).committed
    finally:
        ended.set()
        turns.join()
        consumer.close()
    assert committed == {(topic, 0): Committed(5), (topic, 1): Committed(5)}


def test_broker_snapshot_waits_for_coordinator_of_new_cluster(group: str) -> None:
    """The first request about a group makes a new cluster create its offsets topic."""
    with Broker({"offsets.topic.num.partitions": "50"}) as fresh:
        assert not _view(fresh, group).exists


def test_broker_snapshot_finds_first_offset_at_or_after_timestamp(broker: Broker) -> None:
    name = _name("times")
    broker.create_topic(name, 2)
    broker.produce(name, 0, "abcd", timestamps_ms=[1_000, 2_000, 3_000, 4_000])
    config = _config(broker)
    logs = take_snapshot(config, Question(frozenset({name}), since=2_500)).topics[name]
    assert (logs[0].first_since, logs[1].first_since) == (2, 0)
    later = take_snapshot(config, Question(frozenset({name}), since=5_000)).topics[name]
    assert later[0].first_since == 4
    assert take_snapshot(config, Question(frozenset({name}))).topics[name][0].first_since is None


# -- commits -------------------------------------------------------------------------------------


def test_commit_saves_rollback_file_and_keeps_remaining_offsets(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, other_topic: str, group: str
) -> None:
    held = {(topic, 0): Committed(2, "theirs"), (other_topic, 0): Committed(20, "theirs too")}
    _hold(java, group, held)
    path = tmp_path / "r.json"
    wanted = _wanted(topic, 5, 0, 10)
    outcome = _commit(broker, group, wanted, path)
    assert (outcome.applied, outcome.rollback_path) == (Applied.ALL, path)
    assert [(o.partition, o.result, o.now) for o in outcome.partitions] == [
        (partition, Result.COMMITTED, wanted[topic, partition]) for partition in range(3)
    ]
    assert _view(broker, group).committed == {**held, **wanted}
    file = rollback_file.read(path)
    assert file.before.committed == held
    assert file.after.committed == {**held, **wanted}
    assert file.changed_partitions == set(wanted)
    assert list(tmp_path.iterdir()) == [path]


def test_second_commit_of_same_offsets_writes_no_rollback_file(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    _commit(broker, group, _wanted(topic, 5, 0, 10), tmp_path / "first.json")
    again = _commit(broker, group, _wanted(topic, 5, 0, 10), tmp_path / "second.json")
    assert (again.applied, again.rollback_path) == (Applied.NOTHING_TO_DO, None)
    assert [path.name for path in tmp_path.iterdir()] == ["first.json"]


def test_commit_leaves_partition_unchanged_if_its_offset_is_already_committed(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, group: str
) -> None:
    theirs = Committed(5)
    _hold(java, group, {(topic, 0): theirs})
    outcome = _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    assert outcome.applied is Applied.ALL
    assert outcome.partitions[0].result is Result.UNCHANGED
    assert _view(broker, group).committed[topic, 0] == theirs


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_commit_refuses_active_group(
    tmp_path: Path, broker: Broker, topic: str, group: str, protocol: str
) -> None:
    broker.commit(group, {(topic, n): 4 for n in range(3)})
    with (
        member(broker, group, topic, protocol),
        pytest.raises(Refused, match=r"1 member \(a-member on 127\.0\.0\.1\)"),
    ):
        _commit(broker, group, _wanted(topic, 5, 5, 5), tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []
    assert set(broker.committed(group).values()) == {4}


def test_commit_to_group_changed_after_broker_snapshot_is_refused(
    tmp_path: Path, broker: Broker, topic: str, other_topic: str, group: str
) -> None:
    broker.commit(group, {(other_topic, 0): 3})
    seen = _view(broker, group)
    broker.commit(group, {(other_topic, 0): 4})
    with pytest.raises(Refused, match=f"{other_topic}-0: from 3 to 4"):
        consumer_group.commit(
            _config(broker), group, _wanted(topic, 5, 5, 5), seen, tmp_path / "r.json"
        )
    assert list(tmp_path.iterdir()) == []
    assert broker.committed(group) == {(other_topic, 0): 4}


def test_failure_of_single_partition_is_reported(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    """Kafka accepts the request and fails some of its partitions."""
    outcome = _commit(broker, group, _wanted(topic, 5, 6, 7, 8), tmp_path / "r.json")
    assert outcome.applied is Applied.PARTLY
    *good, bad = outcome.partitions
    assert {o.result for o in good} == {Result.COMMITTED}
    assert (bad.partition, bad.result, bad.now) == (3, Result.FAILED, None)
    assert bad.failure is not None
    assert bad.failure.code == "UNKNOWN_TOPIC_OR_PART"


def test_commit_refuses_existing_rollback_file(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    taken = tmp_path / "taken.json"
    taken.write_text("mine")
    with pytest.raises(Refused, match="already exists"):
        _commit(broker, group, _wanted(topic, 5, 5, 5), taken)
    assert taken.read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        _commit(broker, group, _wanted(topic, 5, 5, 5), tmp_path / "no-such-folder" / "r.json")
    assert [path.name for path in tmp_path.iterdir()] == ["taken.json"]
    assert broker.committed(group) == {}


def test_commit_of_long_metadata_is_split_into_requests(
    monkeypatch: pytest.MonkeyPatch, broker: Broker, group: str
) -> None:
    """Restored groups can have long metadata. The coordinator appends at most 1 MiB."""
    name = _name("wide")
    broker.create_topic(name, 300)
    wanted = {(name, n): Committed(0, f"{n} ".ljust(4000, "m")) for n in range(300)}
    groups = ConsumerGroups(_config(broker))
    assert groups.commit(group, wanted) == {}
    assert groups.view(group).committed == wanted
    monkeypatch.setattr(changing, "_REQUEST_BYTES", 2**31)
    refused = groups.commit(group, wanted)
    assert refused.keys() == wanted.keys()


def test_rollback_file_contains_no_secret(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    config = {**_config(broker), "sasl.username": "alice", "sasl.password": "hunter2"}
    before = _view(broker, group)
    consumer_group.commit(config, group, _wanted(topic, 1), before, tmp_path / "r.json")
    written = (tmp_path / "r.json").read_text()
    assert broker.bootstrap_servers in written
    assert "hunter2" not in written
    assert "alice" not in written


def _failures(outcome: ChangeOutcome) -> set[tuple[str, str]]:
    return {(o.failure.code, o.failure.reason) for o in outcome.partitions if o.failure}


def test_missing_permission_is_reported_with_required_acl(tmp_path: Path) -> None:
    with SecuredBroker({"tool": "word"}) as secured:
        secured.create_topic("t", 1)
        config = {
            "bootstrap.servers": secured.address("SASL"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "tool",
            "sasl.password": "word",
            "ssl.ca.pem": secured.authority.pem,
        }

        def allow(operation: AclOperation, kind: ResourceType) -> None:
            name = "t" if kind is ResourceType.TOPIC else "g"
            secured.allow("tool", operation, kind, name)

        def commit(file: str) -> ChangeOutcome:
            before = ConsumerGroups(config).view("g")
            return consumer_group.commit(config, "g", _wanted("t", 0), before, tmp_path / file)

        with pytest.raises(BrokerError, match="DESCRIBE"):
            ConsumerGroups(config).view("g")
        allow(AclOperation.DESCRIBE, ResourceType.GROUP)
        allow(AclOperation.DESCRIBE, ResourceType.TOPIC)
        outcome = commit("1.json")
        assert outcome.applied is Applied.NOTHING
        assert _failures(outcome) == {
            ("GROUP_AUTHORIZATION_FAILED", "access denied; grant this user READ on the group")
        }
        allow(AclOperation.READ, ResourceType.GROUP)
        outcome = commit("2.json")
        assert outcome.applied is Applied.NOTHING
        assert _failures(outcome) == {
            ("TOPIC_AUTHORIZATION_FAILED", "access denied; grant this user READ on the topic")
        }
        allow(AclOperation.READ, ResourceType.TOPIC)
        assert commit("3.json").applied is Applied.ALL

        def restore(to: str) -> ChangeOutcome:
            path = tmp_path / "3.json"
            seen = undo.read_preview(config, rollback_file.read(path))
            return undo.restore(config, seen, tmp_path / to)

        outcome = restore("back.json")
        assert outcome.applied is Applied.NOTHING
        assert _failures(outcome) == {
            ("GROUP_AUTHORIZATION_FAILED", "access denied; grant this user DELETE on the group")
        }
        assert secured.committed("g") == {("t", 0): 0}
        allow(AclOperation.DELETE, ResourceType.GROUP)
        assert restore("again.json").applied is Applied.ALL
        assert secured.committed("g") == {}


@pytest.fixture(scope="module")
def other_groups() -> Iterator[Broker]:
    """Start a broker with a share group and a streams group.

    In Kafka 4.1, these groups require unstable features.
    """
    source = Path(__file__).parents[1] / "support/java/OtherGroups.java"
    early = ("unstable.api.versions.enable", "unstable.feature.versions.enable")
    with Broker(dict.fromkeys(early, "true")) as running:
        jars = classpath("kafka-streams-4.1.1")
        arguments = [running.bootstrap_servers, "a-share-group", "a-streams-group", "t"]
        run_java("OtherGroups", [compile_java([source], jars), *jars], arguments)
        yield running


def test_share_group_is_refused_and_not_deleted(tmp_path: Path, other_groups: Broker) -> None:
    """Kafka describes a share group as missing, but would delete it like a consumer group."""
    view = _view(other_groups, "a-share-group")
    assert (view.exists, view.type) == (True, "unknown")
    with pytest.raises(Refused, match="is not a consumer group"):
        _commit(other_groups, "a-share-group", _wanted("t", 1), tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []
    blind = ConsumerGroups(_config(other_groups)).commit("a-share-group", _wanted("t", 1))
    assert blind["t", 0].code == "GROUP_ID_NOT_FOUND"
    written = rollback_file.rollback_file(
        "commit",
        ConsumerGroups(_config(other_groups)).cluster_id(),
        other_groups.bootstrap_servers,
        GroupView("a-share-group", False, "Dead", "classic"),
        _wanted("t", 1),
        {},
    )
    write_file(written, tmp_path / "made-up.json")
    with pytest.raises(Refused, match="is not a consumer group"):
        _restore(other_groups, tmp_path / "made-up.json", tmp_path / "back.json", force=True)
    assert _view(other_groups, "a-share-group").exists


def test_streams_group_is_refused(tmp_path: Path, other_groups: Broker) -> None:
    """Kafka describes a streams group as missing, and accepts every commit for the group."""
    with pytest.raises(Refused, match="is not a consumer group"):
        _commit(other_groups, "a-streams-group", _wanted("t", 1), tmp_path / "r.json")
    assert ConsumerGroups(_config(other_groups)).commit("a-streams-group", _wanted("t", 1)) == {}
    view = _view(other_groups, "a-streams-group")
    assert (view.exists, view.type, view.next_offset("t", 0)) == (True, "streams", 1)
    with pytest.raises(Refused, match="a-streams-group belongs to a Kafka Streams application"):
        _commit(other_groups, "a-streams-group", _wanted("t", 0), tmp_path / "r.json")
    assert list(tmp_path.iterdir()) == []


# -- rollbacks -----------------------------------------------------------------------------------


def test_rollback_restores_previous_offsets_and_metadata(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, other_topic: str, group: str
) -> None:
    held = {**{(topic, n): Committed(n, f"theirs {n}") for n in range(3)}}
    held[other_topic, 0] = Committed(20, "theirs too")
    _hold(java, group, held)
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    seen = _seen(broker, tmp_path / "r.json")
    assert (seen.progress, seen.warnings) == (ChangeProgress.APPLIED, ())
    assert [(p.partition, p.now, p.target) for p in seen.partitions] == [
        (n, Committed(5 + n, METADATA), Committed(n, f"theirs {n}")) for n in range(3)
    ]
    outcome = _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    assert outcome.applied is Applied.ALL
    assert _view(broker, group).committed == held


def test_rollback_removes_offsets_added_by_commit(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, other_topic: str, group: str
) -> None:
    held = {(topic, 0): Committed(2, "theirs"), (other_topic, 0): Committed(20, "theirs too", 0)}
    _hold(java, group, held)
    before = java.committed(group)
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    seen = _seen(broker, tmp_path / "r.json")
    assert seen.warnings == ()
    outcome = _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    assert outcome.applied is Applied.ALL
    assert java.committed(group) == before
    again = _restore(broker, tmp_path / "r.json", tmp_path / "again.json")
    assert (again.applied, again.rollback_path) == (Applied.NOTHING_TO_DO, None)


def test_rollback_of_new_group_removes_its_offsets(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    outcome = _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    assert outcome.applied is Applied.ALL
    assert [(o.result, o.target, o.now) for o in outcome.partitions] == [
        (Result.COMMITTED, None, None)
    ] * 3
    left = _view(broker, group)
    assert (left.committed, left.state) == ({}, "Empty")  # Kafka itself removes empty groups


def test_rollback_can_be_undone_with_its_own_file(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, other_topic: str, group: str
) -> None:
    _hold(java, group, {(other_topic, 0): Committed(20, "theirs")})
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    committed = _view(broker, group).committed
    _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    outcome = _restore(broker, tmp_path / "back.json", tmp_path / "forth.json")
    assert outcome.applied is Applied.ALL
    assert _view(broker, group).committed == committed


def test_rollback_of_group_with_newer_commits_requires_option_force(
    tmp_path: Path, broker: Broker, java: JavaGroups, topic: str, group: str
) -> None:
    held = {(topic, n): Committed(1, "theirs") for n in range(3)}
    _hold(java, group, held)
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    broker.commit(group, {(topic, 1): 9})
    assert (
        undo.read_preview(_config(broker), rollback_file.read(tmp_path / "r.json")).progress
        is ChangeProgress.MOVED_ON
    )
    with pytest.raises(Refused, match=rf"has newer commits; .*{topic}-1: 9.*force=True"):
        _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    forced = _restore(broker, tmp_path / "r.json", tmp_path / "back.json", force=True)
    assert forced.applied is Applied.ALL
    assert _view(broker, group).committed == held


@pytest.mark.parametrize("fresh", [True, False], ids=["removes", "commits"])
def test_rollback_keeps_newer_offset_of_topic_that_commit_did_not_change(
    tmp_path: Path,
    broker: Broker,
    java: JavaGroups,
    topic: str,
    other_topic: str,
    group: str,
    fresh: bool,
) -> None:
    held = {(other_topic, 0): Committed(20, "theirs")}
    if not fresh:
        held |= {(topic, n): Committed(1, "theirs") for n in range(3)}
    _hold(java, group, held)
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    _hold(java, group, {(other_topic, 0): Committed(25, "gone on")})
    outcome = _restore(broker, tmp_path / "r.json", tmp_path / "back.json")
    assert outcome.applied is Applied.ALL
    assert _view(broker, group).committed == {**held, (other_topic, 0): Committed(25, "gone on")}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rollback_refuses_active_group(
    tmp_path: Path, broker: Broker, topic: str, group: str, protocol: str
) -> None:
    _commit(broker, group, _wanted(topic, 5, 6, 7), tmp_path / "r.json")
    with member(broker, group, topic, protocol), pytest.raises(Refused, match="1 member "):
        _restore(broker, tmp_path / "r.json", tmp_path / "back.json", force=True)
    assert set(broker.committed(group).values()) == {5, 6, 7}


def test_rollback_file_of_different_cluster_is_refused(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    path = tmp_path / "r.json"
    _commit(broker, group, _wanted(topic, 5, 6, 7), path)
    edit_and_seal_plan(path, lambda file: file.update(cluster_id="elsewhere"))
    with pytest.raises(Refused, match="cluster elsewhere"):
        _restore(broker, path, tmp_path / "back.json", force=True)
    assert set(broker.committed(group).values()) == {5, 6, 7}


def test_rollback_refuses_group_changed_after_dry_run(
    tmp_path: Path, broker: Broker, topic: str, group: str
) -> None:
    path = tmp_path / "r.json"
    _commit(broker, group, _wanted(topic, 5, 6, 7), path)
    seen = undo.read_preview(_config(broker), rollback_file.read(path))
    broker.commit(group, {(topic, 0): 9})
    with pytest.raises(Refused, match="changed after the group was read"):
        undo.restore(_config(broker), seen, tmp_path / "back.json", force=True)
    assert broker.committed(group)[topic, 0] == 9
