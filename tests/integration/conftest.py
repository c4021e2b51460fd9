"""Fixtures for the tests of the commands."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests.support import stores
from tests.support.java_groups import JavaGroups
from tests.support.kafka import Broker
from tests.support.stores import S3


@pytest.fixture
def topic(broker: Broker) -> str:
    """Create a topic with three partitions of ten records each, and return its name."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    broker.create_topic(name, 3)
    for partition in range(3):
        broker.produce(name, partition, map(str, range(10)))
    return name


@pytest.fixture
def group() -> str:
    """Return the name of a consumer group that does not exist."""
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture(scope="module")
def java(broker: Broker) -> Iterator[JavaGroups]:
    """Run Kafka's Java client, which reads a group's offsets independently of ``migrate``."""
    with JavaGroups(broker.bootstrap_servers) as client:
        yield client


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    """Run an S3 server for a module; until it stops, the environment contains its address."""
    if find_spec("s3fs") is None or find_spec("moto") is None:
        pytest.skip("needs the extra s3, and moto[s3] with flask")
    with stores.s3() as running:
        yield running
