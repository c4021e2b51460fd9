"""Consumers that join a group, or read from its committed offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, KafkaException

from tests.support.kafka import Broker, Record

_JOIN_SECONDS = 30
_READ_SECONDS = 60

# The group protocols of Kafka 4. With `classic`, clients assign the partitions; with `consumer`,
# brokers do (KIP-848).
PROTOCOLS = ("classic", "consumer")


@contextmanager
def member(broker: Broker, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """Run a consumer that has joined the group and has partitions of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "a-member",
            "enable.auto.commit": False,
            # Without a committed offset the consumer must fail.
            "auto.offset.reset": "error",
        }
    )
    consumer.subscribe([topic])
    try:
        deadline = time.monotonic() + _JOIN_SECONDS
        while not consumer.assignment():
            assert time.monotonic() < deadline, f"not joined after {_JOIN_SECONDS} s"
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


def read_from_group(
    broker: Broker, group: str, topics: Iterable[str], protocol: str
) -> list[Record]:
    """Read from the group's offsets to the end of every partition, and return the records.

    The consumer commits its positions. A partition without a group offset is an error.
    """
    todo = {(topic, partition) for topic in topics for partition in broker.partitions(topic)}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    records: list[Record] = []
    try:
        consumer.subscribe(sorted({topic for topic, _ in todo}))
        deadline = time.monotonic() + _READ_SECONDS
        while todo:
            assert time.monotonic() < deadline, f"{sorted(todo)} not read after {_READ_SECONDS} s"
            message = consumer.poll(1)
            if message is None:
                continue
            error = message.error()
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            if error is not None and error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            assert topic is not None and partition is not None and offset is not None
            if error is not None:
                todo.discard((topic, partition))
            else:
                records.append((topic, partition, offset, (message.value() or b"").decode()))
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return sorted(records)
