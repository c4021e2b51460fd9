"""Fixtures for the real systems that tests share, and the order of the tests."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from tests.support.kafka import Broker
    from tests.support.spark import Spark

# By default, Hypothesis fails an example that takes more than 200 ms. On a busy machine, a correct
# example may take longer.
settings.register_profile("no deadline", settings.default, deadline=None)
settings.load_profile("no deadline")

_HALF_A_DAY = 43_200.0  # seconds

# Only fixtures import the real systems, so unit tests can be collected without a JDK and PySpark.


def pytest_configure() -> None:
    """Handle Ctrl-C again if a script has started this process in the background.

    Child processes would inherit the ignored signal, and some tests interrupt them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A process can have only one Spark session, so all tests in one of these lists run in the same
# worker. The first list contains the tests of a query's state, and the second list the other tests
# that use Spark. Both lists take about the same time.
ON_SPARK = {
    "state": (
        "data_source",
        "rehearse",
        "state_moves",
        "state_on_spark",
        "state_rows",
        "state_ttl",
        "state_versions",
    ),
    "positions": (
        "cut_over",
        "cut_over_check",
        "cut_over_group",
        "diff",
        "estate",
        "examples",
        "follow",
        "howtos",
        "mission",
        "scan_on_spark",
        "spark_code",
        "spark_group",
        "spark_seed",
        "spark_shapes",
        "spark_sinks",
        "spark_versions",
        "translation",
        "verify_run",
    ),
}
SPARK_SCOPES = {
    f"tests/integration/test_{name}.py": f"Spark, {scope}"
    for scope, names in ON_SPARK.items()
    for name in names
}


def pytest_sessionstart() -> None:
    """Make the golden checkpoints look new.

    If a savepoint is more than a day old, ``migrate`` requires evidence that its job has not run
    since.
    """
    now = time.time()
    for file in (Path(__file__).parent / "golden").rglob("_metadata"):
        if now - file.stat().st_mtime > _HALF_A_DAY:
            os.utime(file, (now, now))


class WholeModules(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """A scheduler that runs each module, and each list in ``ON_SPARK``, in a single worker."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return SPARK_SCOPES.get(module, module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeModules:
    return WholeModules(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests that use Spark first, because they take longest.

    A failed integration test is run a second time, because it may have failed only because a busy
    machine slowed down a broker. The summary shows such a test as RERUN.
    """

    def on_spark(item: pytest.Item) -> bool:
        return item.path.relative_to(config.rootpath).as_posix() in SPARK_SCOPES

    rerun = pytest.mark.flaky(reruns=1) if config.pluginmanager.hasplugin("rerunfailures") else None
    for item in items:
        # If a test with this fixture were not listed, another worker would start a second Spark.
        assert on_spark(item) or "spark" not in getattr(item, "fixturenames", ()), item.nodeid
        if rerun is not None and item.get_closest_marker("integration"):
            item.add_marker(rerun)
    items.sort(key=on_spark, reverse=True)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Run one Kafka broker for all tests; each test creates its own topics."""
    from tests.support.kafka import Broker

    with Broker() as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[Spark]:
    """Run one Spark session for all tests; each query has its own checkpoint directory."""
    from tests.support.spark import Spark

    with Spark() as running:
        yield running
