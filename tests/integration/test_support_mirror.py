"""Check that the test mirror copies to other offsets, with duplicates after a kill."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.support.kafka import Broker
from tests.support.mirror import Flow, Mirror
from tests.support.records import (
    COMPACTED,
    QUICK_CLEANER,
    Content,
    append,
    await_gone,
    read_logs,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[Broker, Broker]]:
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        west, east = pool.map(stack.enter_context, (Broker(QUICK_CLEANER), Broker(QUICK_CLEANER)))
        yield west, east


def _contents(broker: Broker, topic: str, partition: int = 0) -> list[Content]:
    return list(read_logs(broker, [topic])[topic, partition].values())


def _values(broker: Broker, topic: str, partition: int = 0) -> str:
    return "".join(
        (content.value or b"").decode() for content in _contents(broker, topic, partition)
    )


def test_killed_mirror_duplicates_records_of_both_flows_after_restart(
    brokers: tuple[Broker, Broker],
) -> None:
    """After a regular stop and start, the mirror does not duplicate records."""
    west, east = brokers
    west.create_topic("orders", 2)
    append(west, "orders", {0: ["x=1", "y=1"]}, keyed=True, headers={"trace": b"\0\1"})
    append(west, "orders", {0: "cd"}, transaction="abort")
    append(west, "orders", {0: "ef"}, transaction="commit")
    append(west, "orders", {1: "z"})
    west.create_topic("payments", 1)
    append(west, "payments", {0: "ab"}, transaction="abort")
    append(west, "payments", {0: "cd"}, transaction="commit")
    append(west, "payments", {0: "e"})
    east.create_topic("payments", 1)
    append(east, "payments", {0: "older"})
    flows = [
        Flow(("orders",)),
        Flow(
            ("payments",),
            *("old", "new"),
            identity=True,
            settings={"consumer.isolation.level": "read_committed"},
        ),
    ]
    with Mirror(west, east, flows) as mirror:
        mirror.await_copied()
        # By default, a mirror also copies records of aborted transactions, but no control records.
        assert _contents(east, "west.orders") == _contents(west, "orders")
        log = read_logs(west, ["orders"])["orders", 0]
        assert [*log] == [0, 1, 2, 3, 5, 6]
        assert [*read_logs(east, ["west.orders"])["west.orders", 0]] == [*range(6)]
        assert log[0].headers == (("trace", b"\0\1"),)
        assert _values(east, "west.orders", 1) == "z"
        assert _values(east, "payments") == "older" + "cde"

        mirror.stop()
        mirror.start()
        append(west, "orders", {0: "gh"})
        append(west, "payments", {0: "f"})
        mirror.await_copied()
        assert _values(east, "west.orders") == "x=1y=1cdefgh"  # from the committed source offset

        mirror.kill()
        append(west, "orders", {0: "i"})
        append(west, "payments", {0: "g"})
        mirror.start()
        mirror.await_copied()
        assert _values(east, "west.orders") == "x=1y=1cdefgh" + "ghi"
        assert _values(east, "payments") == "older" + "cdef" + "fg"

        mirror.pause()
        append(west, "orders", {1: "y"})
        time.sleep(1)
        assert _values(east, "west.orders", 1) == "z"
        mirror.resume()
        mirror.await_copied()
        assert _values(east, "west.orders", 1) == "zy"


def test_log_cleaner_removes_records_of_compacted_topic(
    brokers: tuple[Broker, Broker],
) -> None:
    west, _ = brokers
    west.create_topic("latest", 1, COMPACTED)
    append(west, "latest", {0: ["x=1", "y=1", "x=2", "y=2"]}, keyed=True)
    time.sleep(0.2)
    append(west, "latest", {0: ["z=1"]}, keyed=True)
    await_gone(west, "latest", 0, [0, 1])
    assert [*read_logs(west, ["latest"])["latest", 0]] == [2, 3, 4]
