"""Write and read whole records: keys, headers, timestamps, transactions, compacted logs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as KafkaPartition

from tests.support.kafka import Broker, BrokerError

TopicPartition = tuple[str, int]

_ANSWER_SECONDS = 30

# Settings of a broker that cleans logs immediately, and of a compacted topic with short segments.
QUICK_CLEANER = {"log.cleaner.backoff.ms": "100", "log.segment.delete.delay.ms": "100"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
}


class Content(NamedTuple):
    """The parts of a record that a mirror copies unchanged."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[object, ...]


# The records of a partition, by their offsets in ascending order.
Log = dict[int, Content]


def append(
    broker: Broker,
    topic: str,
    values: Mapping[int, Sequence[str]],
    *,
    keyed: bool = False,
    headers: Mapping[str, bytes] | None = None,
    timestamp_ms: int | None = None,
    transaction: str | None = None,
) -> None:
    """Append values to partitions in order.

    Args:
        broker: the broker.
        topic: the topic.
        values: the values by partition.
        keyed: True to use the part of each value before ``=`` as the record's key.
        headers: the headers of each record.
        timestamp_ms: the timestamp of each record; None for the time of the call.
        transaction: ``commit`` or ``abort`` to append all records in one transaction, which ends
            this way. At its end, each partition with records gets a control record, which takes an
            offset.
    """
    settings: dict[str, str | int] = {
        "bootstrap.servers": broker.bootstrap_servers,
        "log_level": 0,
        "broker.address.family": "v4",
        "enable.idempotence": "true",
        # Small batches, for the same reason as in Broker.produce.
        "batch.num.messages": 4,
        "linger.ms": 5,
    }
    if transaction is not None:
        settings["transactional.id"] = uuid.uuid4().hex
    producer = Producer(settings)
    if transaction is not None:
        producer.init_transactions(_ANSWER_SECONDS)
        producer.begin_transaction()
    errors: list[KafkaError] = []
    for partition, value in ((n, value) for n, each in values.items() for value in each):
        producer.produce(
            topic,
            value,
            value.partition("=")[0] if keyed else None,
            partition,
            headers=dict(headers or {}),
            timestamp=timestamp_ms or 0,  # 0 is now
            on_delivery=lambda error, _: errors.append(error) if error else None,
        )
        producer.poll(0)
    if producer.flush(_ANSWER_SECONDS) or errors:
        raise BrokerError(f"{topic}: records not reported: {errors}")
    if transaction == "commit":
        producer.commit_transaction(_ANSWER_SECONDS)
    elif transaction is not None:
        producer.abort_transaction(_ANSWER_SECONDS)


def read_logs(
    broker: Broker, topics: Iterable[str], isolation: str = "read_uncommitted"
) -> dict[TopicPartition, Log]:
    """Read topics to their ends, and return the records of every partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "log_level": 0,
            "broker.address.family": "v4",
            "group.id": "tests-logs",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "fetch.wait.max.ms": 10,
        }
    )
    logs: dict[TopicPartition, Log] = {
        (topic, partition): {} for topic in topics for partition in broker.partitions(topic)
    }
    todo = set(logs)
    deadline = time.monotonic() + _ANSWER_SECONDS
    try:
        consumer.assign([KafkaPartition(*partition, OFFSET_BEGINNING) for partition in logs])
        while todo:
            if time.monotonic() > deadline:
                raise BrokerError(f"not read to their end: {sorted(todo)}")
            message = consumer.poll(1)
            if message is None:
                continue
            error, topic, partition = message.error(), message.topic(), message.partition()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            offset = message.offset()
            assert topic is not None and partition is not None and offset is not None
            if error is not None:
                todo.discard((topic, partition))
                continue
            logs[topic, partition][offset] = Content(
                message.key(),
                message.value(),
                message.timestamp()[1],
                tuple(message.headers() or ()),
            )
    finally:
        consumer.close()
    return logs


def await_gone(broker: Broker, topic: str, partition: int, offsets: Iterable[int]) -> None:
    """Wait until the log cleaner has removed the records at these offsets."""
    expected = set(offsets)
    deadline = time.monotonic() + _ANSWER_SECONDS
    while remaining := expected & read_logs(broker, [topic])[topic, partition].keys():
        if time.monotonic() > deadline:
            raise BrokerError(f"{topic}-{partition}: still there: {sorted(remaining)}")
        time.sleep(0.1)
