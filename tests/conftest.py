"""The real systems that tests share: started when first asked for, stopped with the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.kafka import Broker
    from tests.support.spark import Spark

# Imported where they are used: collecting the unit tests needs neither a JDK nor PySpark.


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """A Kafka broker for the whole run; each test makes topics of its own."""
    from tests.support.kafka import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[Spark]:
    """A Spark session for the whole run; each query has a checkpoint directory of its own."""
    from tests.support.spark import Spark

    with Spark() as running:
        yield running
