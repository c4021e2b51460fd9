"""Use the functions for Spark with a Spark Connect server and ``pyspark-client``.

The client has no py4j and no JVM. The server's Python workers lack the package of ``migrate``.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import migrate
from tests.support.command import migrate as command
from tests.support.connect import ConnectServer, NoSuchPackage, client_python
from tests.support.java_groups import JavaGroups
from tests.support.kafka import Broker
from tests.support.stateful_job import event

pytestmark = pytest.mark.integration

_GOLDEN = Path(__file__).parents[1] / "golden"
_REHEARSED = _GOLDEN / "rehearsed"
_PROGRAM = Path(__file__).parents[1] / "support" / "connect_program.py"
# (partition, offset) -> (name, amount)
Orders = dict[tuple[int, int], tuple[str, int | None]]


@pytest.fixture(scope="module")
def server() -> Iterator[ConnectServer]:
    try:
        python = client_python()
    except NoSuchPackage as error:
        pytest.skip(str(error))
    with ConnectServer(python) as running:
        yield running


@pytest.fixture(scope="module")
def orders() -> Orders:
    orders: Orders = {}
    for partition in (0, 1):
        lines = (_REHEARSED / "events" / str(partition)).read_text().splitlines()
        for offset, line in enumerate(lines):
            name, amount, _, _ = line.split(",")
            orders[partition, offset] = name, int(amount) if amount else None
    return orders


@pytest.fixture(scope="module")
def results(
    server: ConnectServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[dict[str, Any], Any]]:
    """The output of the program, and the offsets of its group as Kafka's Java client reads them."""
    work = tmp_path_factory.mktemp("connect")
    with Broker() as broker:  # a separate broker, because the savepoints determine the topic's name
        broker.create_topic("events", 2)
        for partition in (0, 1):
            events = (_REHEARSED / "events" / str(partition)).read_text().splitlines()
            broker.produce("events", partition, events)
        done = server.run(_PROGRAM, work, broker.bootstrap_servers, "group")
        assert done.returncode == 0, done.stderr[-4000:]
        with JavaGroups(broker.bootstrap_servers) as java:
            committed = {place: row[0] for place, row in java.committed("group").items()}
    yield json.loads(done.stdout.splitlines()[-1]), committed


def _totals(orders: Orders) -> dict[str, list[int | None]]:
    """Count the orders as the job does, without negative amounts."""
    amounts = defaultdict[str, list[int | None]](list)
    for name, amount in orders.values():
        if amount is None or amount >= 0:
            amounts[name].append(amount)
    counted: dict[str, list[int | None]] = {}
    for name, of_name in amounts.items():
        known = [amount for amount in of_name if amount is not None]
        counted[name] = [len(of_name), len(known), sum(known) if known else None]
    return counted


def _positions(checkpoint: Path) -> dict[int, int]:
    (source,) = migrate.inspect(checkpoint).sources
    return {position.partition: position.next_offset or 0 for position in source.positions}


def _snapshots() -> tuple[dict[int, int], dict[int, int]]:
    first, second = sorted(
        (_positions(path) for path in _REHEARSED.glob("savepoint-*")),
        key=lambda at: sum(at.values()),
    )
    return first, second


def test_spark_connect_client_has_no_py4j(results: tuple[dict[str, Any], Any]) -> None:
    found, _ = results
    assert found["session"] == "pyspark.sql.connect.session"
    assert (found["py4j"], found["imported"]) == (None, [])


def test_functions_and_data_sources_return_rows_on_spark_connect(
    results: tuple[dict[str, Any], Any], orders: Orders
) -> None:
    found, _ = results
    at, _ = _snapshots()
    expected = _totals({(p, o): order for (p, o), order in orders.items() if o < at[p]})
    for way in ("functions", "data sources"):
        assert found[way]["positions"] == [["events", p, at[p]] for p in sorted(at)]
        states = {key: value for _, key, value in found[way]["states"]}
        assert states == {
            name: [n, amounts, total or 0] for name, (n, amounts, total) in expected.items()
        }


def test_primed_query_on_spark_connect_counts_every_record(
    results: tuple[dict[str, Any], Any], orders: Orders
) -> None:
    found, _ = results
    at, _ = _snapshots()
    before = _totals({(p, o): order for (p, o), order in orders.items() if o < at[p]})
    assert found["primed"] == [len(before), len(before)]
    assert found["verified"] == [True, len(before)]
    after = {(p, o): order for (p, o), order in orders.items() if o >= at[p]}
    changed = _totals(after).keys()
    expected = {name: counts for name, counts in _totals(orders).items() if name in changed}
    assert {name: counts for name, *counts in found["output"]} == expected


def test_rehearsal_on_spark_connect_lists_keys_that_missing_filter_affects(
    results: tuple[dict[str, Any], Any], orders: Orders
) -> None:
    found, _ = results
    start, end = _snapshots()
    between = {(p, o): one for (p, o), one in orders.items() if start[p] <= o < end[p]}
    names = _totals({(p, o): order for (p, o), order in orders.items() if o < end[p]})
    negative = {name for name, amount in between.values() if amount is not None and amount < 0}
    assert found["rehearsed"] == {
        "is_right": False,
        "records": len(between),
        "right": len(names) - len(negative),
        "wrong": sorted(negative),
    }


def test_listener_on_spark_connect_commits_positions_of_query(
    results: tuple[dict[str, Any], Any], orders: Orders
) -> None:
    found, committed = results
    assert found["problem"] is None
    assert committed == {
        ("events", partition): sum(1 for p, _ in orders if p == partition) for partition in (0, 1)
    }


def test_script_generated_by_prime_runs_on_spark_connect_server(
    server: ConnectServer, tmp_path: Path
) -> None:
    """``verify-state`` finds the server in the environment variable SPARK_REMOTE."""
    (savepoint,) = (_GOLDEN / "stateful").glob("savepoint-*")
    script, location = tmp_path / "query.py", tmp_path / "location"
    arguments: list[str | Path] = ["--state", "seen/seen", "--checkpoint-dir", location]
    written = command("prime", savepoint, *arguments, "--query-file", script)
    assert written.code == 0, written.stderr
    text = script.read_text()
    script.write_text(text[: text.index("\nsink = ")])  # without the start of the query
    random_ = random.Random(17)  # like tests/golden/stateful/generate.py
    lines = {partition: [event(random_, number) for number in range(500)] for partition in (0, 1)}
    ids = {line.split(",")[2] for p, end in ((0, 350), (1, 365)) for line in lines[p][:end]}
    expected = f"{len(ids)} matching keys, 0 different, 0 missing, 0 not in Flink's state"
    primed = server.run(script)
    assert primed.returncode == 0, primed.stderr[-4000:]
    assert expected in primed.stdout
    target: list[str | Path] = [
        "verify-state",
        savepoint,
        f"spark:{location}",
        "--state",
        "seen/seen",
        "--expect",
        "key",
    ]
    verified = server.run("-m", "migrate", *target)
    assert expected in verified.stdout + verified.stderr, verified.stderr[-4000:]
    assert verified.returncode == 0, verified.stderr[-4000:]
