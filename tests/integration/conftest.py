"""What the tests of the commands begin with."""

from __future__ import annotations

import uuid

import pytest

from tests.support.kafka import Broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of three partitions with ten records each."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 3)
    for partition in range(3):
        broker.produce(name, partition, map(str, range(10)))
    return name
