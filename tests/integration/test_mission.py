"""The mission: what Flink processed and what Spark reads on is every record exactly once.

What Flink processed is told by its own exactly-once sink, what there is by a plain Kafka consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.kafka import Broker
from tests.support.spark import Spark
from tests.support.story import (
    MODES,
    Handover,
    Mode,
    Progress,
    account,
    go_on,
    hand_over,
    migrate,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def handover(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Handover]:
    with Broker() as broker:
        yield hand_over(request.param, broker, tmp_path_factory.mktemp("mission"), print)


def test_every_kind_of_partition_occurs(handover: Handover) -> None:
    found = {
        (progress, log_start > 0)
        for progress, log_start in map(handover.progress, handover.partitions())
    }
    assert found >= {
        (Progress.UNTOUCHED, False),
        (Progress.UNTOUCHED, True),
        (Progress.PARTLY_READ, False),
        (Progress.PARTLY_READ, True),
        (Progress.FULLY_READ, False),
        (Progress.ADDED_LATER, False),
    }


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_nothing_is_lost_and_nothing_repeated(
    handover: Handover, spark: Spark, mode: Mode, tmp_path_factory: pytest.TempPathFactory
) -> None:
    accounts = go_on(handover, spark, mode, tmp_path_factory.mktemp("query"), print)

    assert [(a.topic, a.partition) for a in accounts] == handover.partitions()
    for one in accounts:
        assert (one.lost, one.repeated) == (0, 0), one
        assert one.by_flink + one.by_spark == one.in_kafka, one
        # Every partition grew after the savepoint: each has a part that is Spark's.
        assert one.by_spark > 0, one


def test_the_account_finds_a_lost_and_a_repeated_record(
    handover: Handover, spark: Spark, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The same account on a start that is wrong by one: else the test above could not fail."""
    orders = handover.topics[0]
    right = json.loads(
        migrate(
            "to-spark",
            str(handover.savepoint),
            "--bootstrap-servers",
            handover.bootstrap_servers,
            say=print,
        )
    )
    right[orders]["0"] += 1
    right[orders]["1"] -= 1
    records = spark.read_all(
        handover.bootstrap_servers,
        {"subscribe": ",".join(handover.topics)},
        tmp_path_factory.mktemp("query") / "checkpoint",
        starting_offsets=json.dumps(right),
    )

    wrong = {
        (one.topic, one.partition): (one.lost, one.repeated)
        for one in account(handover, records)
        if one.lost or one.repeated
    }
    assert wrong == {(orders, 0): (1, 0), (orders, 1): (0, 1)}
