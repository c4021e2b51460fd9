"""Check that the offsets of an old rollback file still exist in the log."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from migrate.kafka.groups import ConsumerGroups
from migrate.model.cluster_snapshot import Committed
from migrate.model.errors import Refused
from migrate.storage.json_models import as_json
from migrate.targets.group import commit as consumer_group
from migrate.targets.group import rollback as undo
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import Applied
from tests.support.command import Result, migrate
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration

_THEN, _COMMITTED = 4, 8


class Case:
    """A group whose offsets were changed from 4 to 8, in two partitions of ten records each."""

    def __init__(self, broker: Broker, home: Path) -> None:
        self.broker = broker
        self.config = {"bootstrap.servers": broker.bootstrap_servers}
        self.topic = f"t-{uuid.uuid4().hex[:8]}"
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        self.path = home / "rollback.json"
        self.create(10)
        broker.commit(self.group, self.at(_THEN))
        groups = ConsumerGroups(self.config)
        wanted = {place: Committed(_COMMITTED) for place in self.at(_COMMITTED)}
        before = groups.view(self.group)
        outcome = consumer_group.commit(self.config, self.group, wanted, before, self.path)
        assert outcome.applied is Applied.ALL

    def create(self, records: int) -> None:
        self.broker.create_topic(self.topic, 2)
        for partition in range(2):
            self.broker.produce(self.topic, partition, map(str, range(records)))

    def at(self, *offsets: int) -> dict[tuple[str, int], int]:
        first, second = offsets * 2 if len(offsets) == 1 else offsets
        return {(self.topic, 0): first, (self.topic, 1): second}

    def rollback(self, *flags: str) -> Result:
        return migrate("rollback", self.path, *flags)

    def committed(self) -> Mapping[tuple[str, int], int]:
        return self.broker.committed(self.group)


@pytest.fixture
def case(broker: Broker, tmp_path: Path) -> Case:
    return Case(broker, tmp_path)


def _expire(case: Case) -> None:
    case.broker.delete_records(case.topic, 1, 6)


def _recreate(case: Case, records: int) -> None:
    case.broker.delete_topic(case.topic)
    case.create(records)
    case.broker.commit(case.group, case.at(records))


def _recreate_smaller(case: Case) -> None:
    _recreate(case, 2)


def _recreate_larger(case: Case) -> None:
    """Recreate the topic so that the offset is in range but belongs to a different record."""
    _recreate(case, 20)


@pytest.mark.parametrize(
    ("happens", "doubts", "says"),
    [
        (
            _expire,
            ["", "below log start"],
            "1: the group's earlier offset 4 is below the log start offset; the log now contains "
            "offsets 6",
        ),
        (
            _recreate_smaller,
            ["topic recreated"] * 2,
            "0: the group's earlier offset 4 belongs to a topic that was recreated",
        ),
        (
            _recreate_larger,
            ["topic recreated"] * 2,
            "1: the group's earlier offset 4 belongs to a topic that was recreated",
        ),
    ],
)
def test_rollback_requires_option_force_if_old_offset_is_not_in_current_log(
    case: Case, happens: Callable[[Case], None], doubts: list[str], says: str
) -> None:
    happens(case)
    before = case.committed()
    for flags in ((), ("--execute", "--yes")):
        refused = case.rollback(*flags)
        assert (refused.code, refused.stdout) == (4, "")
        assert f"{case.topic}-{says}" in refused.stderr
        assert "add --force to restore the offset anyway" in refused.stderr
        # The refusal shows each partition.
        rows = [line for line in refused.stderr.splitlines() if line.split()[:1] == [case.topic]]
        assert [row.rstrip().endswith(doubt) for row, doubt in zip(rows, doubts, strict=True)]
    assert case.committed() == before
    assert list(case.path.parent.iterdir()) == [case.path]
    forced = case.rollback("--execute", "--yes", "--force")
    assert forced.code == 0, forced.stderr
    assert case.committed() == case.at(_THEN)


def test_rollback_refuses_offset_beyond_log_end_without_topic_ids(case: Case) -> None:
    """Brokers before 2.8 have no topic IDs. The log range still reveals the recreated topic."""
    _recreate_smaller(case)
    file = rollback_file.read(case.path)
    assert list(file.topic_ids) == [case.topic]
    case.path.write_text(as_json(file.model_copy(update={"topic_ids": {}})))
    refused = case.rollback()
    assert refused.code == 4
    assert (
        f"{case.topic}-0: the group's earlier offset 4 is higher than the log end offset; the "
        "log now contains offsets 0 to 2"
    ) in (refused.stderr)


def test_rollback_with_force_skips_deleted_partition(case: Case, broker: Broker) -> None:
    """Kafka itself deletes a group's offsets for a deleted topic."""
    other = f"other-{uuid.uuid4().hex[:8]}"
    broker.create_topic(other, 1)
    broker.commit(case.group, {(other, 0): 0})
    broker.delete_topic(case.topic)
    deadline = time.monotonic() + 60
    while case.committed() != {(other, 0): 0}:  # Kafka deletes the offsets after a delay
        assert time.monotonic() < deadline
        time.sleep(0.05)
    refused = case.rollback("--execute", "--yes")
    assert (refused.code, refused.stdout) == (4, "")
    for partition in range(2):
        assert (
            f"{case.topic}-{partition}: the group's earlier offset 4 belongs to a partition that "
            "no longer exists; add --force to omit the offset"
        ) in refused.stderr
    left_out = case.rollback("--execute", "--yes", "--force")
    assert left_out.code == 0, left_out.stderr
    assert "nothing to do" in left_out.stderr
    assert "2 partitions are not restored, because these partitions" in left_out.stderr
    assert case.committed() == {(other, 0): 0}


def test_rollback_with_force_counts_only_offsets_of_existing_partitions(
    tmp_path: Path, broker: Broker
) -> None:
    """Regression: The dry run announced five changes, but three offsets were changed.

    The message also said that the commit was applied only in part.
    """
    orders, payments, group = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("o", "p", "g"))
    broker.create_topic(orders, 3)
    broker.create_topic(payments, 2)
    broker.commit(group, {(orders, 0): 0, (payments, 0): 0, (payments, 1): 0})
    config = {"bootstrap.servers": broker.bootstrap_servers}
    for topic, count in ((orders, 3), (payments, 2)):
        for partition in range(count):
            broker.produce(topic, partition, map(str, range(10)))
    wanted = {
        (topic, number): Committed(_COMMITTED)
        for topic, count in ((orders, 3), (payments, 2))
        for number in range(count)
    }
    back = tmp_path / "back.json"
    before = ConsumerGroups(config).view(group)
    assert consumer_group.commit(config, group, wanted, before, back).applied is Applied.ALL
    broker.delete_topic(payments)
    deadline = time.monotonic() + 60
    while len(broker.committed(group)) > 3:  # Kafka deletes the offsets after a delay
        assert time.monotonic() < deadline
        time.sleep(0.05)

    previewed = migrate("rollback", back, "--force")
    assert previewed.code == 0, previewed.stderr
    assert "dry run: 3 offsets would change, including 2 to be removed; nothing" in previewed.stderr
    assert (
        f"the group has lost the offsets of 2 partitions (the first is {payments}-0), for example "
        "because the topic was deleted; a rollback restores the earlier offsets"
    ) in previewed.stderr
    assert (
        "warning: the earlier offsets of 2 partitions are not restored, because these partitions "
        f"no longer exist ({payments}-0, {payments}-1) [earlier-offsets-omitted]"
    ) in previewed.stderr
    rows = [line.split() for line in previewed.stdout.splitlines()]
    assert [payments, "0", "none", "omitted", "partition", "gone"] in rows
    forced = migrate("rollback", back, "--force", "--execute", "--yes")
    assert forced.code == 0, forced.stderr
    assert "applied; 1 offset written and read back, 2 removed" in forced.stderr
    assert broker.committed(group) == {(orders, 0): 0}


def test_rollback_restores_offset_in_range_without_force(case: Case) -> None:
    case.broker.delete_records(case.topic, 1, _THEN)  # the log now starts at this offset
    result = case.rollback("--execute", "--yes")
    assert result.code == 0, result.stderr
    assert case.committed() == case.at(_THEN)


def test_rollback_refuses_offset_that_expired_after_preview(case: Case) -> None:
    seen = undo.read_preview(case.config, rollback_file.read(case.path))
    assert seen.unless_forced == ()
    _expire(case)
    with pytest.raises(Refused, match="is below the log start offset"):
        undo.restore(case.config, seen, case.path.with_name("back.json"))
    assert case.committed() == case.at(_COMMITTED)


def test_rollback_restores_leader_epochs(tmp_path: Path, broker: Broker) -> None:
    """A consumer commits its leader epochs with its offsets, to detect a truncated log."""
    topic, group = (f"{kind}-{uuid.uuid4().hex[:8]}" for kind in "tg")
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, "abcd")
    config = {"bootstrap.servers": broker.bootstrap_servers}
    consumer = Consumer({**config, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        while (message := consumer.poll(0.5)) is None:
            pass
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    groups = ConsumerGroups(config)
    theirs = groups.view(group)
    assert theirs.committed[topic, 0].leader_epoch == message.leader_epoch() == 0
    path = tmp_path / "r.json"
    wanted = {(topic, 0): Committed(2, "ours")}
    assert consumer_group.commit(config, group, wanted, theirs, path).applied is Applied.ALL
    assert groups.view(group).committed == wanted  # like Flink, `migrate` commits no leader epoch
    seen = undo.read_preview(config, rollback_file.read(path))
    assert undo.restore(config, seen, tmp_path / "back.json").applied is Applied.ALL
    assert groups.view(group).committed == theirs.committed
