"""The real systems that tests share: started when first asked for, stopped with the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.kafka import Broker
    from tests.support.spark import Spark

# Imported where they are used: collecting the unit tests needs neither a JDK nor PySpark.


@pytest.hookimpl(tryfirst=True)  # before xdist's own, which reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who runs what, where two workers share the tests: each module stays whole, and one worker has
    all that start Flink or Spark, since two of those JVMs at once are more than a machine bears."""
    for item in items:
        heavy = item.get_closest_marker("heavy") or "spark" in getattr(item, "fixturenames", ())
        item.add_marker(pytest.mark.xdist_group("heavy" if heavy else item.path.name))


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
