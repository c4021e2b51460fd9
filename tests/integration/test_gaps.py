"""Plan positions in topics with gaps from aborted transactions and compaction."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from migrate.planning.plan_file import read_plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.kafka import Broker

pytestmark = pytest.mark.integration


def _offsets(broker: Broker, topic: str, isolation: str) -> list[int]:
    """Return the offsets of the records that a plain consumer receives."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": uuid.uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    seen: list[int] = []
    try:
        while True:
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                return seen
            offset = message.offset()
            assert offset is not None
            seen.append(offset)
    finally:
        consumer.close()


def _plan(tmp_path: Path, broker: Broker, topic: str, start: int) -> tuple[int, int | None]:
    """Return the planned offset of partition 0 and the reported lag."""
    directory = tmp_path / uuid.uuid4().hex
    chk = write_source(directory / "chk-7", {0: splits(topic, [start])})
    path = directory / "plan.json"
    saved = migrate("to-spark", chk, "-b", broker.bootstrap_servers, "--plan-out", path)
    assert saved.code == 0, saved.stderr
    (partition,) = read_plan(path).partitions
    printed = migrate("to-spark", chk, "-b", broker.bootstrap_servers)
    assert json.loads(printed.stdout) == {topic: {"0": partition.next_offset}}
    assert partition.next_offset is not None
    return partition.next_offset, partition.records_left


def test_positions_among_transaction_markers_are_planned_unchanged(
    tmp_path: Path, broker: Broker
) -> None:
    """Positions at markers and at aborted records are also in the range of the log."""
    topic = f"txn-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    for commit in (True, False, True):
        producer.begin_transaction()
        for number in range(3):
            producer.produce(topic, str(number), partition=0)
        producer.flush(30)
        if commit:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    # 0 1 2 | marker 3 | 4 5 6 aborted | marker 7 | 8 9 10 | marker 11
    assert _offsets(broker, topic, "read_committed") == [0, 1, 2, 8, 9, 10]
    assert broker.watermarks(topic)[0] == (0, 12)
    for start in (0, 2, 3, 5, 7, 11, 12):
        next_offset, left = _plan(tmp_path, broker, topic, start)
        assert next_offset == start
        assert left == 12 - start
        read = [o for o in _offsets(broker, topic, "read_committed") if o >= start]
        assert len(read) <= left  # an upper bound


def test_position_of_record_removed_by_compaction_is_planned_unchanged(
    tmp_path: Path, broker: Broker
) -> None:
    topic = f"compacted-{uuid.uuid4().hex[:8]}"
    broker.create_topic(
        topic,
        1,
        {
            "cleanup.policy": "compact",
            "segment.ms": "100",
            "min.cleanable.dirty.ratio": "0.01",
            "min.compaction.lag.ms": "0",
            "max.compaction.lag.ms": "100",
        },
    )
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(20):
        producer.produce(topic, str(number), key="the same", partition=0)
        producer.flush(30)
        time.sleep(0.02)
    deadline = time.monotonic() + 90
    while len(seen := _offsets(broker, topic, "read_uncommitted")) > 5:
        # A new record closes the previous segment, which can then be compacted.
        producer.produce(topic, "more", key="the same", partition=0)
        producer.flush(30)
        assert time.monotonic() < deadline, "the broker has not compacted the topic"
        time.sleep(1)
    log_start, log_end = broker.watermarks(topic)[0]
    gone = next(offset for offset in range(log_start, log_end) if offset not in seen)
    next_offset, left = _plan(tmp_path, broker, topic, gone)
    assert next_offset == gone
    assert left == log_end - gone
    assert len([offset for offset in seen if offset >= gone]) < left
