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

# By default an example fails after 200 ms, which it can take on a busy machine.
settings.register_profile("no deadline", settings.default, deadline=None)
settings.load_profile("no deadline")

_HALF_A_DAY = 43_200.0  # seconds

# Imported only by the fixtures: the collection of unit tests needs neither a JDK nor PySpark.


def pytest_configure() -> None:
    """Handle Ctrl-C again if a script has started this process in the background.

    Child processes would inherit the ignored signal, and some tests interrupt them.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# A process has one Spark session, so a worker runs all tests of one of these lists: the tests on
# the state of a query, and the other tests on Spark. The two take about the same time.
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
    """Update the times of golden checkpoints, because savepoints older than a day need evidence."""
    now = time.time()
    for file in (Path(__file__).parent / "golden").rglob("_metadata"):
        if now - file.stat().st_mtime > _HALF_A_DAY:
            os.utime(file, (now, now))


class WholeModules(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """A scheduler that keeps each module, and each list of modules on Spark, in one worker."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return SPARK_SCOPES.get(module, module)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeModules:
    return WholeModules(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the tests on Spark first, because they take longest.

    A failed integration test runs once more, because a busy machine can slow down a broker. The
    summary shows it as RERUN.
    """

    def on_spark(item: pytest.Item) -> bool:
        return item.path.relative_to(config.rootpath).as_posix() in SPARK_SCOPES

    rerun = pytest.mark.flaky(reruns=1) if config.pluginmanager.hasplugin("rerunfailures") else None
    for item in items:
        # Otherwise another worker would start a second Spark for this test.
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
