"""Members of consumer groups, and what a group of a test is to look like before and after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer

from tests.support.kafka import Broker

_JOIN_SECONDS = 30

# The group protocols of Kafka 4: the clients' own (classic) and the brokers' (KIP-848).
PROTOCOLS = ("classic", "consumer")


@contextmanager
def member(broker: Broker, group: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
    """A consumer that has joined the group and has got partitions of the topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "a-member",
            "enable.auto.commit": False,
            # Without an offset it is to fail, not to guess.
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
