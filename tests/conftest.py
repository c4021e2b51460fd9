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


# Where two workers share the tests, one of them has all that start Flink or Spark: two such JVMs at
# once are more than a small machine bears.
HEAVY = frozenset(
    f"tests/{name}.py"
    for name in (
        "golden/test_manifest",
        "integration/test_benchmarks",
        "integration/test_data_source",
        "integration/test_diff",
        "integration/test_encoder",
        "integration/test_examples",
        "integration/test_estate",
        "integration/test_flink_rest",
        "integration/test_howtos",
        "integration/test_mission",
        "integration/test_mission_group",
        "integration/test_scan",
        "integration/test_sink_states",
        "integration/test_spark_code",
        "integration/test_spark_group",
        "integration/test_spark_in_store",
        "integration/test_spark_seed",
        "integration/test_spark_shapes",
        "integration/test_spark_sinks",
        "integration/test_spark_versions",
        "integration/test_stopped",
        "integration/test_support_flink",
        "integration/test_verify_run",
    )
)


class WholeModules(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Each module stays whole, and the heavy ones stay together."""

    def _split_scope(self, nodeid: str) -> str:
        module = nodeid.partition("::")[0]
        return "heavy" if module in HEAVY else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> WholeModules:
    return WholeModules(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that needs Spark, in a module that HEAVY does not name, would run beside another."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            assert item.path.relative_to(config.rootpath).as_posix() in HEAVY, item.nodeid


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
