"""The real systems that tests share: started when first asked for, stopped with the run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from tests.support.kafka import Broker
    from tests.support.spark import Spark

# Imported where they are used: collecting the unit tests needs neither a JDK nor PySpark.


def pytest_configure() -> None:
    """Started in the background of a script, this process was told to ignore Ctrl-C, and what it
    starts would inherit it: here some of them are to be interrupted."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# Where two workers share the tests, one of them has all that run Spark: a process has one session,
# and two Sparks at once are more than a small machine bears.
ON_SPARK = frozenset(
    f"tests/integration/test_{name}.py"
    for name in (
        "data_source",
        "diff",
        "cut_over",
        "cut_over_check",
        "cut_over_group",
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
        "state_moves",
        "state_on_spark",
        "state_rows",
        "state_ttl",
        "state_versions",
        "verify_run",
    )
)


class WholeModules(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Each module stays whole, and those on Spark stay together."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return "Spark" if module in ON_SPARK else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeModules:
    return WholeModules(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest begins first; the unit tests, short ones and last in the order of folders,
    are what the two workers end with.

    A test on real systems that fails is run once more: a machine can be too busy for a broker. The
    summary names each (RERUN), and each is looked into.
    """

    def on_spark(item: pytest.Item) -> bool:
        return item.path.relative_to(config.rootpath).as_posix() in ON_SPARK

    rerun = pytest.mark.flaky(reruns=1) if config.pluginmanager.hasplugin("rerunfailures") else None
    for item in items:
        # In another module it would run beside a second Spark.
        assert on_spark(item) or "spark" not in getattr(item, "fixturenames", ()), item.nodeid
        if rerun is not None and item.get_closest_marker("integration"):
            item.add_marker(rerun)
    items.sort(key=on_spark, reverse=True)


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
