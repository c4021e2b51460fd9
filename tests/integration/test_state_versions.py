"""Check the claims of the state matrix with the running Spark version.

`make test` uses the Spark of .venv. `make spark-matrix` runs this file with each supported Spark
and writes docs/state-matrix.md from the results. The expected result is counted from the records
that the job of tests/golden/stateful read, and from later records, without Flink and the decoder.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.version import __version__ as pyspark_version

from migrate import inspect, verify
from migrate.spark import (
    Rehearsal,
    StateRows,
    aggregate_rows,
    initial_state,
    prime,
    read_keyed_state,
    rehearse,
    seen_rows,
    session_windows,
)
from tests.support.kafka import Broker
from tests.support.reasons import refused
from tests.support.rehearsed import parse_orders
from tests.support.seeds import write_seed
from tests.support.spark import Spark, run_to_end
from tests.support.spark_versions import ROOT, environments
from tests.support.stateful_job import START, event, totals_processor

pytestmark = pytest.mark.integration

_SPARK = tuple(map(int, pyspark_version.split(".")[:2]))
# The savepoint in tests/golden/stateful. Its job stopped at these offsets. Each partition had 500
# records.
(SAVEPOINT,) = (Path(__file__).parents[1] / "golden" / "stateful").glob("savepoint-*")
STOPPED_AT = {0: 350, 1: 365}
EVENT = "user BIGINT, amount BIGINT, id STRING, at TIMESTAMP"
_STORE = "spark.sql.streaming.stateStore.providerClass"
_STORES = "org.apache.spark.sql.execution.streaming.state"
# Flink had fired the windows up to FIRED. Windows that end after PENDING had not fired. It is
# unknown which windows between them had fired.
FIRED = START + 30_000
PENDING = START + 36_000

# User, amount, id, millis.
Event = tuple[int, int, str, int]


@dataclass(frozen=True, slots=True)
class Events:
    """The job's own records in a topic of this run: those ``before`` the stop, and all records."""

    servers: str
    topic: str
    before: list[Event]
    all: list[Event]

    @property
    def positions(self) -> dict[tuple[str, int], int]:
        return {(self.topic, partition): at for partition, at in STOPPED_AT.items()}


@pytest.fixture(scope="module")
def events(broker: Broker) -> Events:
    topic, random_ = f"events-{uuid.uuid4().hex[:8]}", random.Random(17)
    broker.create_topic(topic, 2)
    before: list[Event] = []
    every: list[Event] = []
    for partition, at in STOPPED_AT.items():
        lines = [event(random_, number) for number in range(500)]
        broker.produce(topic, partition, lines)
        made = [_event(line) for line in lines]
        before += made[:at]
        every += made
    # A record later than every window, with its own user, advances the watermark.
    broker.produce(topic, 0, ["-1,0,end,1800000000000"])
    return Events(broker.bootstrap_servers, topic, before, every)


def _event(line: str) -> Event:
    user, amount, id_, at = line.split(",")
    return int(user), int(amount), id_, int(at)


def _state(spark: Spark, operator: str, state: str) -> DataFrame:
    return read_keyed_state(spark.session, str(SAVEPOINT), operator=operator, state=state)


def _rows(spark: Spark, operator: str, state: str | DataFrame, **told: Any) -> StateRows:
    """A count and a sum for each user."""
    found = _state(spark, operator, state) if isinstance(state, str) else state
    sums = {"amount": "value.f1"}
    return aggregate_rows(found, EVENT, keys={"user": "key"}, count="value.f0", sums=sums, **told)


def _go_on(
    spark: Spark,
    events: Events,
    query: Callable[[DataFrame], DataFrame],
    location: str,
    mode: str,
    name: str | None = None,
) -> list[Row]:
    """Run a query over the topic's current records and return the rows that it wrote."""
    parts = F.split(F.col("value").cast("STRING"), ",")
    stream = spark.stream(events.servers, name, subscribe=events.topic)
    parsed = stream.select(
        parts[0].cast("BIGINT").alias("user"),
        parts[1].cast("BIGINT").alias("amount"),
        parts[2].alias("id"),
        F.timestamp_millis(parts[3].cast("BIGINT")).alias("at"),
    )
    written: list[Row] = []
    writer = query(parsed).writeStream.outputMode(mode)
    run_to_end(
        writer.foreachBatch(lambda frame, _: written.extend(frame.collect()))
        .option("checkpointLocation", location)
        .trigger(availableNow=True)
        .start()
    )
    return written


# Newer formats of the logs in the checkpoint location, by the first Spark version with the setting.
_NEWER_LOGS = {
    (4, 1): {"spark.sql.streaming.stateStore.checkpointFormatVersion": "2"},
    (4, 2): {"spark.sql.streaming.offsetLog.formatVersion": "2"},
}
_NAMES = {
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
}
BOTH = pytest.mark.parametrize("store", ["HDFSBacked", "RocksDB"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, spark: Spark) -> Iterator[None]:
    """Set Spark's state store; ``newer logs`` is RocksDB with the newest log formats."""
    if request.param == "newer logs" and min(_NEWER_LOGS) > _SPARK:
        pytest.skip("this Spark version has no newer log format that it can read")
    name = "RocksDB" if request.param == "newer logs" else request.param
    settings = {_STORE: f"{_STORES}.{name}StateStoreProvider"}
    if request.param == "newer logs":
        for since, more in _NEWER_LOGS.items():
            settings |= more if since <= _SPARK else {}
    for key, value in settings.items():
        spark.session.conf.set(key, value)
    yield
    for key in settings:
        spark.session.conf.unset(key)


def _totals(events: DataFrame) -> DataFrame:
    return events.groupBy("user").agg(
        F.count("*").alias("n"), F.sum("amount").alias("total"), F.avg("amount").alias("mean")
    )


@pytest.mark.parametrize("store", ["HDFSBacked", "RocksDB", "newer logs"], indirect=True)
@pytest.mark.usefixtures("store")
def test_counts_and_sums_continue_with_every_state_store(
    spark: Spark, events: Events, tmp_path: Path
) -> None:
    location = str(tmp_path / "query")
    averages = {"amount": ("value.f1", "value.f0")}
    primed = prime(
        _totals,
        [_rows(spark, "totals", "total", averages=averages)],
        positions=events.positions,
        checkpoint_location=location,
        output_mode="update",
    )
    assert (primed.proof.right, primed.proof.is_right) == (40, True)
    written = _go_on(spark, events, _totals, location, "update")
    found = {row["user"]: (row["n"], row["total"]) for row in written if row["user"] >= 0}
    assert found.items() <= _totals_of(events.all).items() and len(found) > 30
    # The state that it was primed with can still be verified.
    expect = "key, value.f0, value.f1, value.f1, value.f0"
    verified = verify(SAVEPOINT, f"spark:{location}", state="totals/total", expect=expect)
    assert verified.state == primed.proof


@BOTH
@pytest.mark.usefixtures("store")
def test_state_that_differs_from_flink_is_refused_on_every_spark_version(
    spark: Spark, tmp_path: Path
) -> None:
    """The proof reads Spark's state and finds a different, a missing, and an unexpected key."""
    state = _state(spark, "totals", "total")
    expected = state.where("key <> 5").selectExpr("key", "value.f0", "value.f1 + IF(key = 7, 1, 0)")
    with refused("state-differs") as error:
        prime(
            lambda stream: stream.groupBy("user").agg(F.count("*"), F.sum("amount")),
            [_rows(spark, "totals", state.where("key <> 3"))],
            positions={("events", partition): at for partition, at in STOPPED_AT.items()},
            checkpoint_location=str(tmp_path / "query"),
            output_mode="update",
            expected=expected,
        )
    proof = error.value.facts[0]["proof"]
    assert (proof.right, proof.wrong, proof.missing, proof.unexpected) == (37, 1, 1, 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(_SPARK < (4, 2), reason="streams have no names")
def test_named_streams_continue_after_move(spark: Spark, events: Events, tmp_path: Path) -> None:
    location = str(tmp_path / "query")
    for key, value in _NAMES.items():
        spark.session.conf.set(key, value)
    try:
        primed = prime(
            _totals,
            [_rows(spark, "totals", "total", averages={"amount": ("value.f1", "value.f0")})],
            positions=events.positions,
            checkpoint_location=location,
            output_mode="update",
            names=["events"],
        )
        assert (primed.proof.right, primed.proof.is_right) == (40, True)
        assert (tmp_path / "query/sources/events/0").is_file()
        written = _go_on(spark, events, _totals, location, "update", name="events")
    finally:
        for key in _NAMES:
            spark.session.conf.unset(key)
    found = {row["user"]: (row["n"], row["total"]) for row in written if row["user"] >= 0}
    assert found.items() <= _totals_of(events.all).items() and len(found) > 30


def _totals_of(events: list[Event]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for user, amount, _, _ in events:
        n, total = found.get(user, (0, 0))
        found[user] = (n + 1, total + amount)
    return found


@pytest.mark.skipif(_SPARK != (4, 0), reason="only Spark 4.0 writes but cannot read such files")
@pytest.mark.parametrize("store", ["RocksDB"], indirect=True)
@pytest.mark.usefixtures("store")
def test_state_files_with_checkpoint_ids_are_refused_on_spark_4_0(
    spark: Spark, events: Events, tmp_path: Path
) -> None:
    """Regression: The data source of Spark 4.0 ignored the ID.

    It opened the file with the same name but without an ID.
    """
    setting = "spark.sql.streaming.stateStore.checkpointFormatVersion"
    spark.session.conf.set(setting, "2")
    try:
        with refused("state-files-with-ids"):
            prime(
                lambda stream: stream.groupBy("user").agg(F.count("*"), F.sum("amount")),
                [_rows(spark, "totals", "total")],
                positions=events.positions,
                checkpoint_location=str(tmp_path / "query"),
                output_mode="update",
            )
    finally:
        spark.session.conf.unset(setting)
    assert list(tmp_path.iterdir()) == []


def _unseen(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["id"]).select("id")


@BOTH
@pytest.mark.usefixtures("store")
def test_ids_seen_by_flink_are_not_emitted_by_any_spark_version(
    spark: Spark, events: Events, tmp_path: Path
) -> None:
    location = str(tmp_path / "query")
    rows = seen_rows(_state(spark, "seen", "seen"), EVENT, keys={"id": "key"})
    primed = prime(_unseen, [rows], positions=events.positions, checkpoint_location=location)
    seen = {id_ for _, _, id_, _ in events.before}
    assert (primed.proof.right, primed.proof.is_right) == (len(seen), True)
    by_spark = [row["id"] for row in _go_on(spark, events, _unseen, location, "append")]
    assert sorted(by_spark) == sorted({id_ for _, _, id_, _ in events.all} - seen | {"end"})


def _by(window: Callable[[], Any]) -> Callable[[DataFrame], DataFrame]:
    def query(events: DataFrame) -> DataFrame:
        found = (
            events.withWatermark("at", "2 seconds")
            .groupBy("user", window().alias("window"))
            .agg(F.count("*").alias("n"), F.sum("amount").alias("total"))
        )
        return found.selectExpr(
            "user", "unix_millis(window.start) first", "unix_millis(window.end) last", "n", "total"
        )

    return query


def _windows_of(events: list[Event], size: int, slide: int) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    for user, amount, _, at in events:
        for start in range(at - at % slide, at - size, -slide):
            found.setdefault((user, start, start + size), []).append(amount)
    return found


def _sessions_of(events: list[Event], gap: int) -> dict[tuple[int, ...], list[int]]:
    found: dict[tuple[int, ...], list[int]] = {}
    last: dict[int, tuple[int, ...]] = {}
    for user, amount, _, at in sorted(events, key=lambda event: event[3]):
        window: tuple[int, ...] = (user, at, at + gap)
        amounts = [amount]
        if user in last and at <= last[user][2]:
            amounts = [*found.pop(last[user]), amount]
            window = (user, last[user][1], at + gap)
        found[window], last[user] = amounts, window
    return found


@pytest.mark.parametrize(
    ("kind", "store"),
    [("tumbling", "HDFSBacked"), ("hopping", "RocksDB"), ("sessions", "RocksDB")],
    indirect=["store"],
)
@pytest.mark.usefixtures("store")
def test_windows_continue_on_every_spark_version(
    spark: Spark, events: Events, tmp_path: Path, kind: str
) -> None:
    location, at = str(tmp_path / "query"), {"window": "namespace", "time": "at"}
    if kind == "tumbling":
        query = _by(lambda: F.window("at", "10 seconds"))
        rows = _rows(spark, "windows", "window-contents", **at)
        expected = _windows_of(events.all, 10_000, 10_000)
    elif kind == "hopping":
        query = _by(lambda: F.window("at", "10 seconds", "5 seconds"))
        rows = _rows(spark, "hops", "window-contents", slide_ms=5_000, **at)
        expected = _windows_of(events.all, 10_000, 5_000)
    else:
        query = _by(lambda: F.session_window("at", "3 seconds"))
        contents = _state(spark, "sessions", "window-contents")
        merged = session_windows(contents, _state(spark, "sessions", "merging-window-set"))
        rows = _rows(spark, "sessions", merged, session_gap_ms=3_000, **at)
        expected = _sessions_of(events.all, 3_000)
    primed = prime(
        query,
        [rows],
        positions=events.positions,
        checkpoint_location=location,
        watermark_ms=FIRED,
    )
    assert primed.proof.is_right and primed.proof.right > 30
    written = _go_on(spark, events, query, location, "append")
    found = {(row["user"], row["first"], row["last"]): (row["n"], row["total"]) for row in written}
    told = {window: (len(some), sum(some)) for window, some in expected.items()}
    assert len(found) == len(written) and found.items() <= told.items()
    assert {window for window in told if window[2] > PENDING} <= found.keys()
    assert all(end > FIRED for _, _, end in found)


@pytest.mark.skipif(_SPARK < (4, 0), reason="no transformWithStateInPandas")
def test_stateful_processor_continues_on_every_spark_version(
    spark: Spark, events: Events, tmp_path: Path
) -> None:
    schema, location = "user BIGINT, n BIGINT, total BIGINT", str(tmp_path / "query")
    write_seed(events.positions, tmp_path / "query")
    columns = {"user": "key", "n": "value.f0", "total": "value.f1"}
    initial = initial_state(
        spark.session,
        _state(spark, "totals", "total"),
        schema,
        columns=columns,
        keys=["user"],
        checkpoint_location=location,
    )

    def query(stream: DataFrame) -> DataFrame:
        return stream.groupBy("user").transformWithStateInPandas(
            totals_processor(), schema, "Update", "None", initialState=initial
        )

    spark.session.conf.set(_STORE, f"{_STORES}.RocksDBStateStoreProvider")
    try:
        written = _go_on(spark, events, query, location, "update")
    finally:
        spark.session.conf.unset(_STORE)
    found = {row["user"]: (row["n"], row["total"]) for row in written if row["user"] >= 0}
    assert found.items() <= _totals_of(events.all).items() and len(found) > 30


# -- rehearsals ----------------------------------------------------------------------------------

_REHEARSED = Path(__file__).parents[1] / "golden" / "rehearsed"
_RECORDS = "topic STRING, partition INT, offset BIGINT"
_ORDER = f"name STRING, amount BIGINT, id STRING, at TIMESTAMP, {_RECORDS}"
# Name, amount, id, millis, by partition and offset.
Order = tuple[str, int | None, str, int]


@pytest.fixture(scope="module")
def orders(broker: Broker) -> dict[int, list[Order]]:
    broker.create_topic("events", 2)
    orders: dict[int, list[Order]] = {}
    for partition in (0, 1):
        lines = (_REHEARSED / "events" / str(partition)).read_text().splitlines()
        broker.produce("events", partition, lines)
        fields = [line.split(",") for line in lines]
        orders[partition] = [(n, int(a) if a else None, i, int(at)) for n, a, i, at in fields]
    return orders


@BOTH
@pytest.mark.usefixtures("store")
def test_rehearsal_confirms_correct_query_and_detects_missing_filter(
    spark: Spark, broker: Broker, orders: dict[int, list[Order]], tmp_path: Path
) -> None:
    """Counts, IDs, and windows are correct.

    The report lists the records that the filter would remove.
    """
    checkpoints = sorted(_REHEARSED.glob("savepoint-*"), key=_checkpoint_id)
    starts, ends = (_offsets(checkpoint) for checkpoint in checkpoints)

    def state(checkpoint: str, operator: str, name: str) -> DataFrame:
        return read_keyed_state(spark.session, checkpoint, operator=operator, state=name)

    def totals(checkpoint: str) -> list[StateRows | DataFrame]:
        sums = {"amount": "IF(value.f1 = 0, NULL, value.f2)"}
        found = state(checkpoint, "totals", "total")
        return [aggregate_rows(found, _ORDER, keys={"name": "key"}, count="value.f0", sums=sums)]

    def seen(checkpoint: str) -> list[StateRows | DataFrame]:
        return [seen_rows(state(checkpoint, "seen", "seen"), _ORDER, keys={"id": "key"})]

    def windows(checkpoint: str) -> list[StateRows | DataFrame]:
        found = state(checkpoint, "windows", "window-contents")
        told: dict[str, Any] = {"count": "value.f0", "sums": {"amount": "value.f1"}}
        return [
            aggregate_rows(
                found, _ORDER, keys={"name": "key"}, window="namespace", time="at", **told
            )
        ]

    def run(query: Any, rows: Any, mode: str = "append", **more: Any) -> Rehearsal:
        kafka = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "events"}
        earlier, later = checkpoints
        options: dict[str, Any] = {"stream": parse_orders, "output_mode": mode, **more}
        options |= {"earlier": earlier, "later": later, "kafka": kafka}
        return rehearse(query, rows, scratch=tmp_path / "scratch", **options)

    def count(events: DataFrame) -> DataFrame:
        return events.groupBy("name").agg(F.count("*"), F.sum("amount"))

    def by_window(events: DataFrame) -> DataFrame:
        window = F.window("at", "10 seconds")
        return (
            events.withWatermark("at", "2 seconds")
            .groupBy(window, "name")
            .agg(F.count("*"), F.sum(F.coalesce("amount", F.lit(0))))
        )

    right = run(
        lambda events: count(events.where("amount IS NULL OR amount >= 0")), totals, "update"
    )
    assert right.proof.is_right and right.proof.right == 40
    assert right.records == sum(ends[n] - starts[n] for n in orders)
    assert run(lambda events: events.dropDuplicates(["id"]), seen).proof.is_right
    (first,) = windows(str(checkpoints[0]))
    assert isinstance(first, StateRows) and first.first_end is not None
    fired = run(by_window, windows, watermark_ms=first.first_end - 10_000)
    assert fired.proof.is_right and fired.proof.right > 20

    wrong = run(count, totals, "update")
    read = [(n, o, orders[n][o]) for n in orders for o in range(starts[n], ends[n])]
    refunds = {name for _, _, (name, amount, *_) in read if amount is not None and amount < 0}
    assert {row["key"]["name"] for row in wrong.wrong.collect()} == refunds
    shown = str(wrong)
    for partition in orders:
        at = [o for n, o, (name, *_) in read if n == partition and name == min(refunds)]
        assert not at or f"events-{partition} at {', '.join(map(str, at))}" in shown
    assert list((tmp_path / "scratch").iterdir()) == []


def _checkpoint_id(checkpoint: Path) -> int:
    return inspect(checkpoint).checkpoint.checkpoint_id


def _offsets(checkpoint: Path) -> dict[int, int]:
    (source,) = inspect(checkpoint).sources
    return {position.partition: position.next_offset or 0 for position in source.positions}


# -- the oldest Spark version --------------------------------------------------------------------


@pytest.mark.skipif(
    not environments()["3.5"].is_made or _SPARK < (4, 0),
    reason="PySpark 3.5 is missing; install it with: python -m tests.support.spark_versions 3.5",
)
def test_spark_3_5_detects_state_that_differs_from_flink() -> None:
    """Spark 3.5 has no data source for its state, so `migrate` reads the state differently."""
    this = Path(__file__).relative_to(ROOT)
    done = environments()["3.5"].run(
        "pytest", this, "-q", "-p", "no:cacheprovider", "-k", "differs_from_flink"
    )
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout
