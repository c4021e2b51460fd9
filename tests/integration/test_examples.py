"""Run examples/ unchanged. Flink, Spark, and the windows count every order."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from examples.demo import MEGABYTES, story
from examples.local import JARS, TOPIC, LocalStack
from examples.windows.spark_query import WINDOW, revenue, upsert
from tests.support.command import migrate
from tests.support.jars import read_lock
from tests.support.spark import Spark, run_to_end

pytestmark = pytest.mark.integration

_WINDOW_MS = 4000
_PATIENCE_SECONDS = 60.0

# (start of the window, customer) -> (orders, cents)
Revenue = dict[tuple[str, str], tuple[int, int]]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    with LocalStack(tmp_path_factory.mktemp("examples")) as running:
        yield running


def test_windows_are_moved_by_reprocessing_records(
    stack: LocalStack, spark: Spark, tmp_path: Path
) -> None:
    """Moving only the positions would lose Flink's state for the unfinished windows."""
    for topic in ("revenue", "naive"):
        stack.broker.create_topic(topic, 1)
    stack.start_orders()
    stack.submit("windows/tables.sql", "windows/flink.sql")
    _await(lambda: _revenue(stack, "revenue"))

    job = stack.flink.running()["windows"]
    early = stack.flink.savepoint(job)
    since_ms = -(-_now_ms() // _WINDOW_MS) * _WINDOW_MS
    _await(lambda: any(start >= _text(since_ms) for start, _ in _revenue(stack, "revenue")))
    late = stack.flink.stop(job)
    by_flink = _revenue(stack, "revenue")
    time.sleep(_WINDOW_MS / 1000)
    stack.stop_orders()
    truth = _truth(stack)

    _query(stack, spark, late, tmp_path / "naive", since_ms=0, topic="naive")
    _query(stack, spark, early, tmp_path / "overlapping", since_ms=since_ms, topic="revenue")

    nothing = dict.fromkeys(truth, (0, 0))
    naive = nothing | by_flink | _revenue(stack, "naive")
    wrong = {window for window in truth if naive[window] != truth[window]}
    newest = max(start for start, _ in by_flink)
    assert wrong and all(start > newest for start, _ in wrong)
    assert all(naive[window] < truth[window] for window in wrong)
    assert migrate("inspect", late).stdout.count("state-not-moved") >= 1

    assert _revenue(stack, "revenue") == truth
    assert sum(orders for orders, _ in truth.values()) == len(stack.in_kafka())
    # Both Flink and Spark have written some of the windows, with the same results.
    both = {window for window in by_flink if window[0] >= _text(since_ms)}
    assert both and all(by_flink[window] == truth[window] for window in both)
    assert int(WINDOW.split()[0]) * 1000 == _WINDOW_MS


def test_open_file_of_json_sink_stays_hidden_after_stop(stack: LocalStack) -> None:
    """The example writes CSV because Flink keeps a JSON file open across checkpoints.

    After a stop, the records of the open file stay hidden, although the positions are past them.
    """
    lake = stack.lake / "hidden"
    tables = stack.sql("orders/tables.sql").replace("'format' = 'csv'", "'format' = 'json'")
    job_of = stack.sql("orders/flink.sql").replace("'orders'", "'hidden'")
    stack.start_orders()
    stack.flink.submit(tables.replace("orders/flink", lake.name) + job_of)
    _await(lambda: any(file.stat().st_size for file in lake.glob(".part-*.inprogress.*")))

    savepoint = stack.flink.stop(stack.flink.running()["hidden"])
    stack.stop_orders()

    moved = json.loads(migrate("inspect", savepoint, "--format", "json").stdout)
    (source,) = moved["sources"]
    assert sum(position["next_offset"] or 0 for position in source["positions"]) > 0
    assert [file for file in lake.glob(".part-*.inprogress.*") if file.stat().st_size]
    assert not list(lake.glob("part-*"))
    assert "files-in-progress" in {finding["code"] for finding in moved["findings"]}


@pytest.mark.timeout(1200)  # 370 s on a busy machine
def test_orders_move_to_spark_and_back_without_loss(stack: LocalStack) -> None:
    """Run the steps of ``make demo``."""
    accounts, totals, back = story(stack)
    jars = {jar.path for name in JARS for jar in read_lock()[name]}
    assert sum(jar.stat().st_size for jar in jars) / 1e6 == pytest.approx(MEGABYTES, rel=0.05)

    assert len(accounts) == 6
    for one in accounts:
        assert (one.lost, one.repeated) == (0, 0), one
        assert one.by_flink + one.by_spark + one.by_flink_again == one.in_kafka, one
    assert all(min(one.by_flink, one.by_spark, one.by_flink_again) > 0 for one in accounts[:5])

    assert len(totals) == 5 and {one.verdict for one in totals} == {"right"}, totals
    for total in totals:
        assert total.by_flink is not None
        assert 0 < total.by_flink[0] < total.in_kafka[0], total

    # Flink has resumed with its old state, which lacks Spark's counts, as the command warned.
    assert back.is_right and back.not_in_its_state > 0, back
    assert sum(row.in_kafka[0] for row in back.shared) == sum(one.in_kafka for one in accounts)
    for both, total in zip(back.shared, totals, strict=True):
        assert both.customer == total.customer
        assert both.by_spark[0] > 0 and both.by_flink_again[0] > 0, both
        assert both.in_kafka[0] > total.in_kafka[0], both


def _query(
    stack: LocalStack, spark: Spark, savepoint: str, checkpoint: Path, since_ms: int, topic: str
) -> None:
    """Seed a query from a savepoint, and let it read all available records."""
    servers = stack.broker.bootstrap_servers
    seeded = migrate("to-spark", savepoint, "-b", servers, "--checkpoint-dir", checkpoint)
    assert seeded.code == 0, seeded.stderr
    session = spark.session.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    rows = revenue(session, servers, since_ms)
    run_to_end(upsert(rows, servers, topic, str(checkpoint)).trigger(availableNow=True).start())


def _revenue(stack: LocalStack, topic: str) -> Revenue:
    """Return the newest record of each window and customer in the topic."""
    rows = [json.loads(value) for *_, value in stack.broker.records(topic)]
    return {(row["window_start"], row["customer"]): (row["orders"], row["cents"]) for row in rows}


def _truth(stack: LocalStack) -> Revenue:
    """Compute the expected results from all orders in Kafka."""
    orders: Counter[tuple[str, str]] = Counter()
    cents: Counter[tuple[str, str]] = Counter()
    for *_, value in stack.broker.records(TOPIC):
        order = json.loads(value)
        window = order["ordered_ms"] // _WINDOW_MS * _WINDOW_MS
        key = (_text(window), order["customer"])
        orders[key] += 1
        cents[key] += order["cents"]
    return {key: (orders[key], cents[key]) for key in orders}


def _text(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _await(done: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.2)
