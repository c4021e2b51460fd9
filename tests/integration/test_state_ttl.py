"""Move state with a TTL without the entries that had expired when the job stopped.

The expected result is Flink's own count after a restart from the savepoint, over the same records
that Spark then reads.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import migrate
from migrate.extensions.stateful_query.transfer.origin import may_expire
from migrate.extensions.stateful_query.transfer.time_to_live import check_time_to_live
from migrate.model.errors import Refused
from migrate.spark import (
    FlinkStateDataSource,
    Primed,
    StateRows,
    aggregate_rows,
    initial_state,
    prime,
    unexpired,
)
from tests.support.kafka import Broker
from tests.support.reasons import refused
from tests.support.spark import Spark
from tests.support.stateful_job import run_idle_keys_job

pytestmark = pytest.mark.integration

TTL_SECONDS = 20
SCHEMA = "user BIGINT, amount BIGINT"

Totals = dict[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Stopped:
    """A stopped job, and its counts after a restart from the savepoint."""

    savepoint: Path
    servers: str
    topic: str
    by_flink: dict[str, Totals]

    def operator(self, state: str) -> str:
        (operator_id,) = {
            listed.operator_id
            for listed in migrate.keyed_states(self.savepoint).states
            if listed.name == state
        }
        return operator_id

    def state(self, session: SparkSession, name: str) -> DataFrame:
        reader = session.read.format("flink_state").option("operator", self.operator(name))
        return reader.option("state", name).load(str(self.savepoint))


@pytest.fixture(scope="module", params=["1.20", "2.2"])
def stopped(
    request: pytest.FixtureRequest, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Stopped:
    topic = f"idle-{request.param}-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    servers = broker.bootstrap_servers
    workdir = tmp_path_factory.mktemp("idle")
    savepoint, by_flink = run_idle_keys_job(request.param, servers, topic, TTL_SECONDS, workdir)
    return Stopped(savepoint, servers, topic, by_flink)


@pytest.fixture(scope="module")
def session(spark: Spark) -> SparkSession:
    spark.session.dataSource.register(FlinkStateDataSource)
    return spark.session


def totals(events: DataFrame) -> DataFrame:
    return events.groupBy("user").agg(F.count("*").alias("n"), F.sum("amount").alias("total"))


def go_on(session: SparkSession, stopped: Stopped, location: str) -> Totals:
    """Run the query over the records since the stop and return the last totals of each user."""
    kafka = session.readStream.format("kafka").option("subscribe", stopped.topic)
    fields = F.split(F.col("value").cast("STRING"), ",")
    events = (
        kafka.option("kafka.bootstrap.servers", stopped.servers)
        .load()
        .select(fields[0].cast("BIGINT").alias("user"), fields[1].cast("BIGINT").alias("amount"))
    )
    written: Totals = {}

    def write(frame: DataFrame, batch: int) -> None:
        written.update({row["user"]: (row["n"], row["total"]) for row in frame.collect()})

    running = totals(events).writeStream.foreachBatch(write).outputMode("update")
    query = running.option("checkpointLocation", location).trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return written


STATES = pytest.mark.parametrize(
    ("kind", "name", "key"), [("function", "total", "key"), ("sql", "accState", "key.f0")]
)


def rows_of(state: DataFrame, key: str, **time_to_live: Any) -> StateRows:
    return aggregate_rows(
        state,
        SCHEMA,
        keys={"user": key},
        count="value.f0",
        sums={"amount": "value.f1"},
        **time_to_live,
    )


@STATES
def test_counts_of_expired_keys_restart_from_zero(
    stopped: Stopped, session: SparkSession, tmp_path: Path, kind: str, name: str, key: str
) -> None:
    """Regression: `prime` also moved expired entries, and reported their keys as right.

    As a result, 195 of 220 users had wrong counts.
    """
    rows = rows_of(stopped.state(session, name), key, ttl_ms=TTL_SECONDS * 1000)
    assert rows.expired is not None and rows.expired.number > 20
    location = str(tmp_path / "checkpoint")
    primed = prime(
        totals,
        [rows],
        positions=migrate.to_spark(stopped.savepoint).starting_offsets,
        checkpoint_location=location,
        output_mode="update",
    )
    assert primed.proof.is_right
    expired, never = primed.warnings[0], primed.warnings[-1]
    assert expired.startswith(f"{rows.expired.number} expired entries are not migrated, ")
    assert never.startswith("Flink drops an entry 20000 ms after its last access, but Spark ")
    assert go_on(session, stopped, location) == stopped.by_flink[kind]

    verify = partial(
        migrate.verify,
        stopped.savepoint,
        f"spark:{location}",
        state=f"{stopped.operator(name)}/{name}",
        expect=f"{key}, value.f0, value.f1",
    )
    with refused("ttl-missing"):
        verify()
    verified = verify(ttl_ms=TTL_SECONDS * 1000).state
    assert verified is not None and verified.warnings[0].endswith("[expired-state]")
    assert replace(verified, warnings=()) == primed.proof
    kept = verify(ttl_ms=None)
    assert not kept.verified and kept.state is not None
    assert kept.state.missing == rows.expired.number


@STATES
def test_state_with_ttl_is_refused_if_ttl_ms_is_not_passed(
    stopped: Stopped, session: SparkSession, tmp_path: Path, kind: str, name: str, key: str
) -> None:
    state = stopped.state(session, name)
    with refused("ttl-missing") as error:
        rows_of(state, key)
    assert error.value.facts == [{"state": name, "operator": stopped.operator(name)}]

    def prime_own(rows: DataFrame) -> Primed:
        return prime(
            lambda events: events.groupBy("user").agg(F.sum("amount")),
            [rows],
            positions=migrate.to_spark(stopped.savepoint).starting_offsets,
            checkpoint_location=str(tmp_path / "checkpoint"),
            output_mode="update",
            expected=rows,
        )

    # For any expression of the columns, the query plan shows that the state can have expired
    # entries.
    for columns in ([f"{key} user", "value.f1 amount"], [f"{key} + 0 user", "value.f1 + 0 amount"]):
        with pytest.raises(Refused) as own:
            prime_own(state.selectExpr(*columns))
        assert own.value.codes[0].startswith("ttl-")
    live = unexpired(state, ttl_ms=TTL_SECONDS * 1000).selectExpr(f"{key} user", "value.f1 amount")
    assert prime_own(live).proof.right == live.count() < state.count()


def test_printed_python_file_is_refused_until_ttl_is_set(
    stopped: Stopped, session: SparkSession, tmp_path: Path
) -> None:
    """The printed file contains the placeholder ``ttl_ms=...``."""
    location = tmp_path / "checkpoint"
    named = [f"{stopped.operator('total')}/total"]
    start = migrate.to_spark(stopped.savepoint, state=named, checkpoint_dir=location)
    printed = start.code("python")
    assert printed.count("ttl_ms=...)") == 1
    with refused("ttl-missing"):
        exec(compile(printed, "query.py", "exec"), {"__name__": "__main__"})
    assert not location.exists()


def test_initial_state_of_processor_omits_expired_entries(
    stopped: Stopped, session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    location = str(tmp_path / "checkpoint")
    migrate.to_spark(stopped.savepoint, checkpoint_dir=location)
    state = stopped.state(session, "total")
    given = partial(
        initial_state,
        session,
        state,
        "user BIGINT, n BIGINT",
        columns={"user": "key", "n": "value.f0"},
        keys=["user"],
        checkpoint_location=location,
    )
    with refused("ttl-missing"):
        given()
    assert given(ttl_ms=None).count().count() == state.count()
    grouped = given(ttl_ms=TTL_SECONDS * 1000)
    kept = unexpired(state, ttl_ms=TTL_SECONDS * 1000)
    assert grouped.count().count() == kept.count() < state.count()
    lines = capsys.readouterr().err.splitlines()
    told = [line for line in lines if line.endswith("[expired-state]")]
    assert len(told) == 2 and told[0] == told[1]
    # Regression: The results had no warnings.
    carried = [warning for result in (kept, grouped) for warning in vars(result)["warnings"]]
    assert told == [f"warning: {warning}" for warning in carried]


def test_ttl_ms_none_moves_expired_entries_with_warning(
    stopped: Stopped, session: SparkSession
) -> None:
    state = stopped.state(session, "total")
    rows = rows_of(state, "key", ttl_ms=None)
    assert rows.expected.count() == state.count()
    assert rows.expired is not None
    assert [*rows.expired.warnings()] == [
        "the state has a TTL, but expired entries are also migrated (ttl_ms=None), so Spark "
        "continues from expired values [expiry-ignored]"
    ]


def test_stop_time_determines_expired_entries(stopped: Stopped, session: SparkSession) -> None:
    state = stopped.state(session, "total")
    newest = state.agg(F.max("last_access")).collect()[0][0]
    with refused("stop-before-last-access"):
        unexpired(state, ttl_ms=TTL_SECONDS * 1000, stopped_at_ms=newest - 1)
    # For Flink, an entry expires exactly at its last access plus the TTL.
    oldest = state.agg(F.min("last_access")).collect()[0][0]
    ttl_ms = newest - oldest
    before = unexpired(state, ttl_ms=ttl_ms + 1, stopped_at_ms=newest)
    assert before.count() == state.count()
    assert unexpired(state, ttl_ms=ttl_ms, stopped_at_ms=newest).count() < state.count()
    everything = unexpired(state, ttl_ms=2**63 - 1, stopped_at_ms=newest)
    assert everything.count() == state.count()


def test_modification_time_of_copied_savepoint_is_not_used_as_stop_time(
    stopped: Stopped, session: SparkSession, tmp_path: Path
) -> None:
    """The files of a copy can be newer, so entries could expire too early."""
    copy = tmp_path / stopped.savepoint.name
    shutil.copytree(stopped.savepoint, copy)
    later = time.time() + 3600
    os.utime(copy / "_metadata", (later, later))
    reader = session.read.format("flink_state").option("operator", stopped.operator("total"))
    state = reader.option("state", "total").load(str(copy))
    with refused("expiry-depends-on-stop") as error:
        rows_of(state, "key", ttl_ms=TTL_SECONDS * 1000)
    assert error.value.facts[0]["entries"] == 10
    assert error.value.facts[0]["original"].startswith("file:/")
    newest = state.agg(F.max("last_access")).collect()[0][0]
    exact = rows_of(state, "key", ttl_ms=TTL_SECONDS * 1000, stopped_at_ms=newest)
    assert exact.expired is not None and exact.expired.number == state.count() - 10


def test_files_modified_after_stop_lead_to_warning(stopped: Stopped, session: SparkSession) -> None:
    metadata = stopped.savepoint / "_metadata"
    before, later = metadata.stat().st_mtime_ns, time.time() + 3600
    try:
        os.utime(metadata, (later, later))
        rows = rows_of(stopped.state(session, "total"), "key", ttl_ms=TTL_SECONDS * 1000)
    finally:
        os.utime(metadata, ns=(before, before))
    assert rows.expired is not None and rows.expired.doubtful == 10
    told = [*rows.expired.warnings()]
    assert told[1].startswith(
        "10 entries are treated as expired, because the TTL ended before the checkpoint's "
        "modification time; this is wrong if the job stopped earlier; "
    )


# -- lists and maps ------------------------------------------------------------------------------

(KINDS,) = (Path(__file__).parents[1] / "golden/state/2.2/kinds/canonical").glob("savepoint-*")


def test_elements_of_list_state_expire_separately(session: SparkSession) -> None:
    state = session.createDataFrame(
        [(1, ["a", "b", None], [10, 20, 30]), (2, ["c"], [10]), (3, ["d"], [None])],
        "key BIGINT, value ARRAY<STRING>, last_access ARRAY<BIGINT>",
    )
    kept = unexpired(state, ttl_ms=15, stopped_at_ms=30)
    assert {row["key"]: row["value"] for row in kept.collect()} == {1: ["b", None], 3: ["d"]}
    assert unexpired(kept).count() == 2  # the TTL was already applied


@pytest.mark.parametrize("name", ["lasting-value", "lasting-list", "lasting-map"])
def test_ttl_is_detected_for_every_kind_of_state(session: SparkSession, name: str) -> None:
    reader = session.read.format("flink_state").option("state", name)
    state = reader.load(str(KINDS))
    with refused("ttl-missing") as error:
        unexpired(state.select("key", "value"))
    assert error.value.facts[0]["state"] == name
    newest = state.agg(
        F.max(F.array_max("last_access") if name == "lasting-list" else F.col("last_access"))
    ).collect()[0][0]
    assert unexpired(state, ttl_ms=3_600_000, stopped_at_ms=newest).count() == state.count()
    later = newest + 3_600_000
    assert unexpired(state, ttl_ms=3_600_000, stopped_at_ms=later).count() == 0
    without = reader.option("state", name.removeprefix("lasting-")).load(str(KINDS))
    assert unexpired(without).count() > 0
    with pytest.raises(migrate.UsageError, match="this state has no TTL"):
        unexpired(without, ttl_ms=1)


# -- rows built by the user -----------------------------------------------------------------------


def kinds(session: SparkSession, name: str) -> DataFrame:
    return session.read.format("flink_state").option("state", name).load(str(KINDS))


def own_rows(session: SparkSession, ttl: DataFrame) -> dict[str, DataFrame]:
    """Return frames that combine a state without a TTL with the state ``ttl``."""
    plain = kinds(session, "value")
    keyed = plain.selectExpr("CAST(key AS STRING) key", "value")
    other = ttl.selectExpr("CAST(key AS STRING) key", "value")
    newest = ttl.agg(F.max("last_access").alias("newest"))
    plain.createOrReplaceTempView("plain_state")
    newest.createOrReplaceTempView("newest_access")
    return {
        "join of an expression": keyed.crossJoin(ttl.selectExpr("CAST(key AS STRING) || '' k")),
        "join of an aggregate": keyed.crossJoin(newest),
        "union": keyed.select("key").union(other.select("key")),
        "union of columns": plain.select("value").unionByName(ttl.select("value"), True),
        "scalar subquery": session.sql("SELECT *, (SELECT * FROM newest_access) FROM plain_state"),
        "in a subquery": session.sql(
            "SELECT * FROM plain_state WHERE EXISTS (SELECT 1 FROM newest_access WHERE newest > 0)"
        ),
        "lateral subquery": session.sql(
            "SELECT * FROM plain_state, LATERAL (SELECT newest + 0 FROM newest_access)"
        ),
        "common table": session.sql(
            "WITH t AS (SELECT * FROM newest_access) SELECT key, newest + 1 FROM plain_state, t"
        ),
    }


def test_ttl_is_detected_if_rows_combine_several_states(session: SparkSession) -> None:
    """Regression: In a join or union of two states, the TTL of one state was not detected."""
    ttl = kinds(session, "lasting-value")
    for name, rows in own_rows(session, ttl).items():
        assert may_expire(rows), name
        with pytest.raises(migrate.UsageError, match="call `unexpired` on the state itself"):
            unexpired(rows.drop("last_access"), ttl_ms=1000)
    for name, rows in own_rows(session, unexpired(ttl, ttl_ms=None)).items():
        assert not may_expire(rows), name


def test_unexpired_call_covers_only_its_own_branch_of_query_plan(session: SparkSession) -> None:
    """A join or union with the unfiltered state is still refused."""
    raw = kinds(session, "lasting-value")
    live = unexpired(raw, ttl_ms=None)
    lateral = "LATERAL (SELECT value AS live_value FROM live_state)"
    raw.createOrReplaceTempView("raw_state")
    live.createOrReplaceTempView("live_state")
    for rows in (
        live.unionByName(raw),
        raw.unionByName(live),
        live.crossJoin(raw.selectExpr("value AS raw_value")),
        session.sql(f"SELECT live_value FROM raw_state, {lateral}"),
    ):
        with pytest.raises(Refused):
            check_time_to_live(rows)
        check_time_to_live(unexpired(rows, ttl_ms=None))
    for rows in (live, live.unionByName(live), live.crossJoin(live.select("value"))):
        check_time_to_live(rows)


def test_ttl_check_does_not_cover_rows_collected_from_spark(session: SparkSession) -> None:
    """The query plan of collected or checkpointed rows no longer shows the state."""
    rows = kinds(session, "lasting-value").selectExpr("value")
    for cut in (
        rows.selectExpr("CAST(value AS STRING) value").localCheckpoint(),
        session.createDataFrame(rows.collect(), "value STRING"),
    ):
        check_time_to_live(cut)
