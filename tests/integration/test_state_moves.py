"""Move keyed state from a real Flink job to a real Spark query.

The expected result is counted from all records of the topic with Kafka's own consumer, without
Flink, Spark, or the decoder.
"""

from __future__ import annotations

import os
import random
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import migrate
from migrate.spark import (
    FlinkStateDataSource,
    Primed,
    StateRows,
    aggregate_rows,
    initial_state,
    prime,
    seen_rows,
    session_windows,
)
from tests.support.kafka import Broker
from tests.support.reasons import refused
from tests.support.spark import Spark
from tests.support.stateful_job import START, event, run_stateful_job, totals_processor

pytestmark = pytest.mark.integration

WINDOW_MS, SLIDE_MS, GAP_MS = 10_000, 5_000, 3_000
SCHEMA = "user BIGINT, amount BIGINT, id STRING, at TIMESTAMP"
# A record later than every window, with its own user, advances the watermark, so windows close.
_END = "-1,0,end,1800000000000"

Window = tuple[int, int, int]  # user, start, end


@dataclass(frozen=True, slots=True)
class Scene:
    """A job that was stopped before the end of its topic, and the records produced since."""

    savepoint: Path
    sink: list[str]
    servers: str
    topic: str
    positions: str
    # Every record: user, amount, id, millis.
    records: list[tuple[int, int, str, int]]
    late: tuple[int, int, str, int]

    def fired(self, kind: str) -> dict[Window, tuple[int, int]]:
        """The windows that Flink has emitted."""
        lines = [line.split(",") for line in self.sink if line.startswith(f"{kind},")]
        found: dict[Window, tuple[int, int]] = {}
        for _, user, start, end, count, total in lines:
            found[int(user), int(start), int(end)] = (int(count), int(total))
        assert len(found) == len(lines)
        return found

    def state(
        self, session: SparkSession, operator: str, name: str, savepoint: Path | None = None
    ) -> DataFrame:
        reader = session.read.format("flink_state").option("operator", operator)
        return reader.option("state", name).load(str(savepoint or self.savepoint))

    def sql_operator(self, state: str) -> str:
        """Return the ID of the SQL operator with this state. SQL operators have no uid."""
        states = migrate.keyed_states(self.savepoint).states
        (found,) = {one.operator_id for one in states if one.name == state}
        return found


_STORE = "spark.sql.streaming.stateStore.providerClass"

# For tests that depend only on Spark, so one Flink version suffices.
once = pytest.mark.parametrize("scene", ["2.2"], indirect=True)


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def scene(
    request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Scene:
    topic = f"stateful-{request.param}-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 2)
    random_ = random.Random(17)
    for partition in (0, 1):
        broker.produce(topic, partition, [event(random_, number) for number in range(500)])
    savepoint, sink = run_stateful_job(
        request.param, broker.bootstrap_servers, topic, 350, tmp_path_factory.mktemp("stateful")
    )
    positions = migrate.to_spark(savepoint, bootstrap_servers=broker.bootstrap_servers)
    # A record for the first batch: Flink has fired its window and has seen its ID.
    late = (7, 1000, "id-3", START + 1)
    broker.produce(topic, 0, [",".join(map(str, late))])
    for partition in (0, 1):
        broker.produce(topic, partition, [event(random_, number) for number in range(480, 600)])
    broker.produce(topic, 0, [_END])
    records = [value.split(",") for _, _, _, value in broker.records(topic)]
    return Scene(
        savepoint,
        sink,
        broker.bootstrap_servers,
        topic,
        positions.starting_offsets,
        [(int(user), int(amount), id_, int(at)) for user, amount, id_, at in records],
        late,
    )


@pytest.fixture(scope="module")
def session(spark: Spark) -> SparkSession:
    spark.session.dataSource.register(FlinkStateDataSource)
    return spark.session


@pytest.fixture
def store(request: pytest.FixtureRequest, session: SparkSession) -> Iterator[str]:
    """Set Spark's state store."""
    before = session.conf.get(_STORE) or ""
    package = "org.apache.spark.sql.execution.streaming.state"
    session.conf.set(_STORE, f"{package}.{request.param}StateStoreProvider")
    yield request.param
    session.conf.set(_STORE, before)


# Each Flink version with one of Spark's state stores.
each_store = pytest.mark.parametrize(
    ("scene", "store"), [("1.20", "HDFSBacked"), ("2.2", "RocksDB")], indirect=True
)


# -- queries that a user could write -------------------------------------------------------------


def parsed(kafka: DataFrame) -> DataFrame:
    fields = F.split(F.col("value").cast("STRING"), ",")
    return kafka.select(
        fields[0].cast("BIGINT").alias("user"),
        fields[1].cast("BIGINT").alias("amount"),
        fields[2].alias("id"),
        F.timestamp_millis(fields[3].cast("BIGINT")).alias("at"),
    )


def totals(events: DataFrame) -> DataFrame:
    return events.groupBy("user").agg(
        F.count("*").alias("n"), F.sum("amount").alias("total"), F.avg("amount").alias("mean")
    )


def of_kafka(query: Callable[[DataFrame], DataFrame]) -> Callable[[DataFrame], DataFrame]:
    """Return the query with a step before it that parses Kafka records."""
    return lambda kafka: query(parsed(kafka))


totals_of_kafka = of_kafka(totals)


def unseen(events: DataFrame) -> DataFrame:
    return events.dropDuplicates(["id"]).select("id")


def windows(events: DataFrame) -> DataFrame:
    return _told(events, F.window("at", f"{WINDOW_MS} milliseconds"))


def sessions(events: DataFrame) -> DataFrame:
    return _told(events, F.session_window("at", f"{GAP_MS} milliseconds"))


def _told(events: DataFrame, window: Any) -> DataFrame:
    counted = (
        events.withWatermark("at", "2 seconds")
        .groupBy("user", window.alias("window"))
        .agg(F.count("*").alias("n"), F.sum("amount").alias("total"))
    )
    return counted.selectExpr(
        "user", "unix_millis(window.start) first", "unix_millis(window.end) last", "n", "total"
    )


# -- runs ----------------------------------------------------------------------------------------


class Crash(Exception):
    """A sink that fails."""


def go_on(
    session: SparkSession,
    scene: Scene,
    query: Callable[[DataFrame], DataFrame],
    location: str,
    mode: str,
    crash: bool = False,
) -> list[Row]:
    """Run the query over all current records in several batches and return the rows it wrote."""
    kafka = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", scene.servers)
        .option("subscribe", scene.topic)
        .option("maxOffsetsPerTrigger", "400")
        .load()
    )
    written: list[Row] = []

    def write(frame: DataFrame, batch: int) -> None:
        if crash:
            raise Crash
        written.extend(frame.collect())

    running = (
        query(kafka)
        .writeStream.foreachBatch(write)
        .outputMode(mode)
        .option("checkpointLocation", location)
        .trigger(availableNow=True)
        .start()
    )
    try:
        running.awaitTermination()
    finally:
        running.stop()
    return written


def final(session: SparkSession, location: str) -> dict[int, tuple[int, int]]:
    """Return the count and sum of every user in Spark's state at the end."""
    state = session.read.format("statestore").load(location).where("key.user >= 0")
    # Two fields of the value have the same name.
    fields = "STRUCT<a: BIGINT, b: BIGINT, c: DOUBLE, d: BIGINT>"
    rows = state.selectExpr("key.user", f"CAST(value AS {fields}) v")
    return {row["user"]: (row["v"]["a"], row["v"]["b"]) for row in rows.toLocalIterator()}


def never_moved(records: Iterable[tuple[int, int, str, int]]) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for user, amount, _, _ in records:
        count, total = found.get(user, (0, 0))
        found[user] = (count + 1, total + amount)
    return found


def of_users(scene: Scene) -> list[tuple[int, int, str, int]]:
    return [record for record in scene.records if record[0] >= 0]


# -- counts and sums -----------------------------------------------------------------------------


def _totals(state: DataFrame, key: str) -> StateRows:
    return aggregate_rows(
        state,
        SCHEMA,
        keys={"user": key},
        count="value.f0",
        sums={"amount": "value.f1"},
        averages={"amount": ("value.f1", "value.f0")},
    )


@each_store
def test_counts_and_sums_continue_after_move(
    scene: Scene, session: SparkSession, store: str, tmp_path: Path
) -> None:
    """The query crashes in its first real batch and restarts, after the savepoint was deleted."""
    savepoint = tmp_path / scene.savepoint.name
    shutil.copytree(scene.savepoint, savepoint)
    two_days_ago = time.time() - 2 * 86_400
    os.utime(savepoint / "_metadata", (two_days_ago, two_days_ago))
    location = str(tmp_path / "checkpoint")
    rows = _totals(scene.state(session, "totals", "total", savepoint), "key")
    as_value = "concat_ws(',', user, amount, coalesce(id, ''), coalesce(unix_millis(at), 0))"
    primed = prime(
        totals_of_kafka,
        [rows.as_kafka(as_value)],
        positions=scene.positions,
        checkpoint_location=location,
        output_mode="update",
    )
    assert (primed.proof.right, primed.proof.is_right) == (40, True)
    assert primed.pinned["spark.sql.shuffle.partitions"] == "1"
    assert primed.pinned[_STORE].endswith(f".{store}StateStoreProvider")
    # Regression: the warnings about the job were only in the log, which a script does not show.
    assert [text.rpartition(" ")[2] for text in primed.warnings] == ["[old-savepoint]"]
    assert f"warning: {primed.warnings[0]}" in str(primed)
    shutil.rmtree(savepoint)

    with pytest.raises(StreamingQueryException, match="Crash"):
        go_on(session, scene, totals_of_kafka, location, "update", crash=True)
    written = go_on(session, scene, totals_of_kafka, location, "update")
    expected = never_moved(of_users(scene))
    assert final(session, location) == expected
    last = {row["user"]: (row["n"], row["total"]) for row in written if row["user"] >= 0}
    assert last.items() <= expected.items() and len(last) > 30
    assert go_on(session, scene, totals_of_kafka, location, "update") == []
    # The state that it was primed with can still be verified.
    verified = migrate.verify(
        scene.savepoint,
        f"spark:{location}",
        state="totals/total",
        expect="key, value.f0, value.f1, value.f1, value.f0",
        bootstrap_servers=scene.servers,
    )
    assert (verified.verified, verified.state) == (True, primed.proof)


@once
def test_counts_are_wrong_without_state(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """A seed with the right offsets but without state leads to a wrong count for every user.

    This negative control proves that the previous test can fail.
    """
    location = tmp_path / "checkpoint"
    migrate.to_spark(scene.savepoint, bootstrap_servers=scene.servers, checkpoint_dir=location)
    go_on(session, scene, totals_of_kafka, str(location), "update")
    expected, found = never_moved(of_users(scene)), final(session, str(location))
    assert {user for user in expected if found.get(user) == expected[user]} == set()


def test_counts_and_sums_of_sql_job_continue_after_move(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """The fields of the SQL job's accumulators have no names, and its key is a row."""
    location = str(tmp_path / "checkpoint")
    state = scene.state(session, scene.sql_operator("accState"), "accState")
    prime(
        totals,
        [_totals(state, "key.f0")],
        positions=scene.positions,
        checkpoint_location=location,
        output_mode="update",
    )
    go_on(session, scene, totals_of_kafka, location, "update")
    assert final(session, location) == never_moved(of_users(scene))


@once
@pytest.mark.parametrize("key", ["key * 100000000000", "key - 0.5D", "concat('0', key)"])
def test_key_changed_by_cast_is_refused(
    scene: Scene, session: SparkSession, tmp_path: Path, key: str
) -> None:
    """Spark's own cast would return a different key, and the real key would start without state."""
    state = scene.state(session, "totals", "total").where("key > 1")
    schema = SCHEMA.replace("user BIGINT", "user INT")
    rows = aggregate_rows(state, schema, keys={"user": key}, count="value.f0")
    with pytest.raises(
        migrate.Refused, match=r"user has type .* in Flink, and this value is not exactly int"
    ):
        prime(
            lambda events: events.groupBy("user").count(),
            [rows],
            positions=scene.positions,
            checkpoint_location=str(tmp_path / "checkpoint"),
            output_mode="update",
        )
    assert list(tmp_path.iterdir()) == []


@once
def test_spark_state_that_differs_from_flink_state_is_refused(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """The report counts a different aggregate, a missing key, and an unexpected key."""
    state = scene.state(session, "totals", "total")
    rows = _totals(state.where("key <> 3"), "key")
    expected = state.where("key <> 5").selectExpr("key", "value.f0", "value.f1 + IF(key = 7, 1, 0)")
    with refused("state-differs") as error:
        prime(
            lambda events: events.groupBy("user").agg(F.count("*"), F.sum("amount")),
            [rows],
            positions=scene.positions,
            checkpoint_location=str(tmp_path / "checkpoint"),
            output_mode="update",
            expected=expected,
        )
    _, *examples = error.value.reasons
    assert str(error.value.facts[0]["proof"]) == (
        "37 matching keys, 1 different, 1 missing, 1 not in Flink's state; 39 entries compared"
    )
    assert sorted(one.partition(":")[0] for one in examples) == [
        "different",
        "missing",
        "unexpected",
    ]
    assert any(one.startswith('different: {"user":7}: Flink {"count":') for one in examples)
    assert list(tmp_path.iterdir()) == []


# -- deduplication -------------------------------------------------------------------------------


@pytest.mark.parametrize("of_sql", [False, True], ids=["process function", "ROW_NUMBER() = 1"])
def test_ids_seen_by_flink_are_not_emitted_by_spark(
    scene: Scene, session: SparkSession, tmp_path: Path, of_sql: bool
) -> None:
    location = str(tmp_path / "checkpoint")
    operator = scene.sql_operator("deduplicate-state") if of_sql else "seen"
    state = scene.state(session, operator, "deduplicate-state" if of_sql else "seen")
    rows = seen_rows(state, SCHEMA, keys={"id": "key.f0" if of_sql else "key"})
    prime(unseen, [rows], positions=scene.positions, checkpoint_location=location)
    by_spark = go_on(session, scene, of_kafka(unseen), location, "append")
    by_flink = [line.split(",")[1] for line in scene.sink if line.startswith("seen,")]
    times = Counter([*by_flink, *(row["id"] for row in by_spark)])
    assert times.keys() == {id_ for _, _, id_, _ in scene.records}
    assert set(times.values()) == {1}
    assert by_flink and by_spark


# -- windows -------------------------------------------------------------------------------------


def _of_windows(state: DataFrame, **of_their_kind: Any) -> StateRows:
    """Return rows with the count and the sum of each window, for windows of any kind."""
    return aggregate_rows(
        state,
        SCHEMA,
        keys={"user": "key"},
        count="value.f0",
        sums={"amount": "value.f1"},
        window="namespace",
        time="at",
        **of_their_kind,
    )


def _prime_windows(
    scene: Scene, session: SparkSession, location: Path, watermark_ms: int | None
) -> Primed:
    rows = _of_windows(scene.state(session, "windows", "window-contents"))
    return prime(
        windows,
        [rows],
        positions=scene.positions,
        checkpoint_location=str(location),
        watermark_ms=watermark_ms,
    )


def _emitted(rows: Iterable[Row]) -> Counter[tuple[Window, tuple[int, int]]]:
    return Counter(
        ((row["user"], row["first"], row["last"]), (row["n"], row["total"])) for row in rows
    )


def _windows(scene: Scene) -> dict[Window, tuple[int, int]]:
    found: dict[Window, tuple[int, int]] = {}
    for user, amount, id_, at in of_users(scene):
        if (user, amount, id_, at) != scene.late:
            first = at - at % WINDOW_MS
            count, total = found.get((user, first, first + WINDOW_MS), (0, 0))
            found[user, first, first + WINDOW_MS] = (count + 1, total + amount)
    return found


def test_windows_continue_and_fire_only_once(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """Flink fires some windows before the move, and Spark fires the others after the move."""
    fired = scene.fired("window")
    primed = _prime_windows(
        scene, session, tmp_path / "checkpoint", max(end for _, _, end in fired)
    )
    assert primed.proof.right > 30
    by_spark = _emitted(
        go_on(session, scene, of_kafka(windows), primed.checkpoint_location, "append")
    )
    both = Counter(fired.items()) + by_spark
    assert both == Counter(_windows(scene).items())
    assert {window for window, _ in by_spark}.isdisjoint(fired)


@once
def test_low_watermark_fires_window_twice_and_triggers_warning(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """Flink has fired the window.

    If the watermark is too low, a late record reopens it in Spark.
    """
    primed = _prime_windows(scene, session, tmp_path / "checkpoint", 0)
    (told,) = primed.warnings
    assert told.endswith(" [watermark]")
    again = _emitted(go_on(session, scene, of_kafka(windows), primed.checkpoint_location, "append"))
    user, amount, _, at = scene.late
    window = (user, at - at % WINDOW_MS, at - at % WINDOW_MS + WINDOW_MS)
    assert window in scene.fired("window")
    assert again[window, (1, amount)] == 1


@once
def test_missing_or_too_high_watermark_is_refused(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(migrate.UsageError, match="at least the end of the last window"):
        _prime_windows(scene, session, tmp_path / "none", None)
    with refused("watermark-too-high"):
        _prime_windows(scene, session, tmp_path / "high", START + 10**6)
    assert list(tmp_path.iterdir()) == []


@once
def test_windows_kept_for_late_records_are_not_fired_twice(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """Flink has fired the windows but keeps them until no record can be late."""
    fired = scene.fired("lasting")
    rows = _of_windows(scene.state(session, "lasting", "window-contents"))
    assert rows.fired.number > 0 and rows.fired.last_end == max(end for _, _, end in fired)
    primed = prime(
        windows,
        [rows],
        positions=scene.positions,
        checkpoint_location=str(tmp_path / "checkpoint"),
        watermark_ms=rows.fired.last_end,
    )
    assert primed.warnings[-1].endswith("[fired-windows]")
    location = f"spark:{primed.checkpoint_location}"
    verified = migrate.verify(scene.savepoint, location, state="lasting/window-contents")
    assert verified.state == primed.proof
    by_spark = _emitted(
        go_on(session, scene, of_kafka(windows), primed.checkpoint_location, "append")
    )
    assert Counter(fired.items()) + by_spark == Counter(_windows(scene).items())


def test_sql_windows_are_compared_by_instant(scene: Scene, session: SparkSession) -> None:
    """Flink SQL stores window times as the wall-clock time of New York, five hours from UTC.

    Without the conversion, later records would be in different windows, and the proof would not
    detect this.
    """
    state = scene.state(session, scene.sql_operator("window-aggs"), "window-aggs")

    def rows(end: str) -> StateRows:
        return aggregate_rows(
            state,
            SCHEMA,
            keys={"user": "key.f0"},
            count="value.f0",
            sums={"amount": "value.f1"},
            window=f"named_struct('start', {end} - {WINDOW_MS}, 'end', {end})",
            time="at",
        )

    with refused("windows-in-local-time"):
        rows("namespace")
    instants = rows("unix_millis(to_utc_timestamp(timestamp_millis(namespace), 'GMT-5'))")
    windows = _of_windows(scene.state(session, "windows", "window-contents"))
    assert sorted(instants.expected.collect()) == sorted(windows.expected.collect())


def hops(events: DataFrame) -> DataFrame:
    return _told(events, F.window("at", f"{WINDOW_MS} milliseconds", f"{SLIDE_MS} milliseconds"))


def _prime_hops(
    scene: Scene, session: SparkSession, location: Path, slide_ms: int | None, watermark_ms: int
) -> Primed:
    rows = _of_windows(scene.state(session, "hops", "window-contents"), slide_ms=slide_ms)
    return prime(
        hops,
        [rows],
        positions=scene.positions,
        checkpoint_location=str(location),
        watermark_ms=watermark_ms,
    )


def test_hopping_windows_continue_after_move(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """When the job stopped, some windows of a record had fired, and others were pending."""
    fired = scene.fired("hop")
    primed = _prime_hops(
        scene, session, tmp_path / "checkpoint", SLIDE_MS, max(end for _, _, end in fired)
    )
    by_spark = _emitted(go_on(session, scene, of_kafka(hops), primed.checkpoint_location, "append"))
    expected: dict[Window, tuple[int, int]] = {}
    for user, amount, id_, at in of_users(scene):
        if (user, amount, id_, at) != scene.late:
            pane = at - at % SLIDE_MS
            for start in (pane - SLIDE_MS, pane):
                count, total = expected.get((user, start, start + WINDOW_MS), (0, 0))
                expected[user, start, start + WINDOW_MS] = (count + 1, total + amount)
    assert Counter(fired.items()) + by_spark == Counter(expected.items())


@once
@pytest.mark.parametrize("slide_ms", [None, SLIDE_MS])
def test_hopping_windows_require_slide_and_sufficient_watermark(
    scene: Scene, session: SparkSession, tmp_path: Path, slide_ms: int | None
) -> None:
    """Otherwise, the rows for pending windows would reopen windows that Flink has fired."""
    watermark_ms = max(end for _, _, end in scene.fired("hop"))
    with pytest.raises(migrate.Refused) as error:
        _prime_hops(
            scene, session, tmp_path / "checkpoint", slide_ms, watermark_ms - WINDOW_MS // 2
        )
    assert "hopping-windows-unexpected" in error.value.codes
    assert list(tmp_path.iterdir()) == []


def test_session_windows_continue_after_move(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    contents = scene.state(session, "sessions", "window-contents")
    merged = scene.state(session, "sessions", "merging-window-set")
    fired = scene.fired("session")
    rows = _of_windows(session_windows(contents, merged), session_gap_ms=GAP_MS)
    primed = prime(
        sessions,
        [rows],
        positions=scene.positions,
        checkpoint_location=str(tmp_path / "checkpoint"),
        watermark_ms=max(end for _, _, end in fired),
    )
    by_spark = _emitted(
        go_on(session, scene, of_kafka(sessions), primed.checkpoint_location, "append")
    )
    assert Counter(fired.items()) + by_spark == Counter(_sessions(scene).items())
    verified = migrate.verify(
        scene.savepoint, f"spark:{tmp_path / 'checkpoint'}", state="sessions/window-contents"
    )
    assert verified.state == primed.proof
    # Some contents are stored under a different window than that of the session.
    pairs = [pair for row in merged.collect() for pair in row["value"]]
    assert any(pair["f0"] != pair["f1"] for pair in pairs)


def _sessions(scene: Scene) -> dict[Window, tuple[int, int]]:
    by_user: dict[int, list[tuple[int, int]]] = {}
    for user, amount, id_, at in of_users(scene):
        if (user, amount, id_, at) != scene.late:
            by_user.setdefault(user, []).append((at, amount))
    found = {}
    for user, events in by_user.items():
        groups: list[list[tuple[int, int]]] = []
        for at, amount in sorted(events):
            if not groups or at > groups[-1][-1][0] + GAP_MS:
                groups.append([])
            groups[-1].append((at, amount))
        for group in groups:
            window = (user, group[0][0], group[-1][0] + GAP_MS)
            found[window] = (len(group), sum(amount for _, amount in group))
    return found


# -- several streams -----------------------------------------------------------------------------


@once
def test_stream_numbers_follow_order_in_spark_query_plan(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """The arguments of `prime` can have a different order than the streams in the plan."""
    location = tmp_path / "checkpoint"
    seen = seen_rows(scene.state(session, "seen", "seen"), SCHEMA, keys={"id": "key"})
    nothing = session.createDataFrame([], SCHEMA)
    one, other = {("one", 0): 1}, {("other", 0): 2, ("other", 1): 3}

    def both(events: DataFrame, others: DataFrame) -> DataFrame:
        return others.union(events).dropDuplicates(["id"])

    primed = prime(both, [seen, nothing], positions=[one, other], checkpoint_location=str(location))
    assert primed.positions == (other, one)
    seeds = [(location / "sources" / str(number) / "0").read_bytes() for number in (0, 1)]
    assert seeds == [b'\0v1\n{"other":{"0":2,"1":3}}', b'\0v1\n{"one":{"0":1}}']

    before = {path: path.stat().st_mtime_ns for path in location.rglob("*")}
    asked: list[tuple[list[StateRows | DataFrame], Any, str]] = [
        ([seen, nothing], lambda events, _: unseen(events), "stream-not-read"),
        ([seen], lambda events: events.select("id"), "no-state-store"),
    ]
    with pytest.raises(migrate.Refused, match="already the checkpoint location of a query"):
        prime(both, [seen, nothing], positions=[one, other], checkpoint_location=str(location))
    for rows, query, code in asked:
        target = str(tmp_path / "other")
        with refused(code):
            prime(query, rows, positions=[one, other][: len(rows)], checkpoint_location=target)
    assert {path: path.stat().st_mtime_ns for path in location.rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint"]


# -- a user's stateful processor -----------------------------------------------------------------


@once
@pytest.mark.parametrize("store", ["RocksDB"], indirect=True)
@pytest.mark.usefixtures("store")
def test_stateful_processor_continues_after_move(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """The query uses transformWithStateInPandas with an initial state from the savepoint."""
    location = tmp_path / "checkpoint"

    def of(state: DataFrame | None) -> Any:
        return initial_state(
            session,
            state,
            "user BIGINT, n BIGINT, total BIGINT",
            columns={"user": "key", "n": "value.f0", "total": "value.f1"},
            keys=["user"],
            checkpoint_location=str(location),
        )

    def run(initial: Any) -> dict[int, tuple[int, int]]:
        def query(kafka: DataFrame) -> DataFrame:
            return (
                parsed(kafka)
                .where("user >= 0")
                .groupBy("user")
                .transformWithStateInPandas(
                    totals_processor(),
                    outputStructType="user BIGINT, n BIGINT, total BIGINT",
                    outputMode="Update",
                    timeMode="None",
                    initialState=initial,
                )
            )

        written = go_on(session, scene, query, str(location), "update")
        return {row["user"]: (row["n"], row["total"]) for row in written}

    state = scene.state(session, "totals", "total")
    with refused("initial-state-without-seed"):
        of(state)
    with refused("initial-state-missing"):
        of(None)
    migrate.to_spark(scene.savepoint, bootstrap_servers=scene.servers, checkpoint_dir=location)
    with refused("initial-state-missing"):
        of(None)
    found, expected = run(of(state)), never_moved(of_users(scene))
    assert found.items() <= expected.items() and len(found) > 30
    # Spark would silently ignore the initial state. A restart does not require the savepoint.
    with refused("initial-state-ignored"):
        of(state)
    assert run(of(None)) == {}


# -- the printed file ----------------------------------------------------------------------------


@once
def test_printed_python_file_runs_unchanged(
    scene: Scene, session: SparkSession, tmp_path: Path
) -> None:
    """The file is the query that `to-spark` prints for the option --state."""
    location = tmp_path / "checkpoint"
    location.mkdir()  # like the mount point of a volume
    start = migrate.to_spark(
        scene.savepoint,
        bootstrap_servers=scene.servers,
        checkpoint_dir=location,
        state=["seen/seen"],
    )
    code = start.code("python")
    # Regression: The program exited when the query had started, because it waited for the query of
    # prime(), which had already ended.
    runner = threading.Thread(target=exec, args=(code, {}), daemon=True)
    runner.start()
    late = time.monotonic() + 120
    while runner.is_alive() and not (location / "commits/1").exists() and time.monotonic() < late:
        time.sleep(0.2)
    assert runner.is_alive()
    (running,) = session.streams.active
    running.processAllAvailable()
    assert runner.is_alive()
    running.stop()
    runner.join(60)
    assert not runner.is_alive()
    keys = session.read.format("statestore").load(str(location)).select("key.key")
    by_flink = {line.split(",")[1] for line in scene.sink if line.startswith("seen,")}
    # Records without the format that the file assumes have a NULL key.
    assert {row["key"] for row in keys.collect()} == {*by_flink, None}
