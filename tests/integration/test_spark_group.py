"""Move a Spark query to a consumer group, and report the distance of a running query."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import functions

from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.groups import read_from_group
from tests.support.kafka import Broker
from tests.support.seeds import write_seed
from tests.support.spark import Spark

pytestmark = pytest.mark.integration

_SECONDS = 60
# A table that remembers Flink jobs (tests/golden/test_sinks.py).
ICEBERG = Path(__file__).parents[1] / "golden/sinks/iceberg-flink"


def test_group_resumes_from_committed_batch_of_query(
    broker: Broker, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topic, group, query = "spark-to-group", "after-spark", tmp_path / "query"
    broker.create_topic(topic, 2)
    for partition, count in enumerate((30, 20)):
        broker.produce(topic, partition, [str(offset) for offset in range(count)])
    write_seed({(topic, 0): 7, (topic, 1): 20}, query)
    read = spark.read_all(broker.bootstrap_servers, {"subscribe": topic}, query)
    assert {offset for _, partition, offset, _ in read if partition == 0} == set(range(7, 30))
    broker.produce(topic, 0, ["new"])
    servers = broker.bootstrap_servers
    to_group = ("commit-group", f"spark:{query}", "--group", group, "-b", servers)
    compare = ("diff", f"group:{group}", f"spark:{query}", "-b", servers, "--exit-code")

    dry = migrate(*to_group)
    assert dry.code == 0, dry.stderr
    assert "dry run" in dry.stderr and "batch" in dry.stderr
    assert "a sink that remembers checkpoint IDs may drop records" in dry.stderr
    asked = migrate(*to_group, "--sink", ICEBERG)
    assert asked.code == 0, asked.stderr
    assert f"{ICEBERG} remembers checkpoints of these Flink jobs: 'job " in asked.stderr
    assert "a sink that remembers checkpoint ids" not in asked.stderr
    assert migrate(*compare).code == 1

    done = migrate(*to_group, "--execute", "--yes")
    assert done.code == 0, done.stderr
    # Regression: If the command did not wait for a newer batch, it did not say so.
    waited = "the query's log has had no newer batch for"
    assert waited in done.stderr or "migrate did not wait" in done.stderr, done.stderr
    assert migrate(*compare).code == 0
    check = f"migrate diff spark:{query} group:{group} -b {servers}"
    assert f"next, before the group's consumers start: {check}\n" in done.stderr
    # A consumer of the group reads exactly the records that the query has not read.
    assert read_from_group(broker, group, [topic], "classic") == [(topic, 0, 30, "new")]

    back = migrate("rollback", done.stdout.strip(), "--execute", "--yes", "--force")
    assert back.code == 0, back.stderr


def test_query_that_reads_topic_from_two_clusters_triggers_warning(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """Regression: The result was "1 ok", without a warning about the topic of the other cluster."""
    topic, query = "spark-two-clusters", tmp_path / "query"
    with Broker() as other:
        for cluster in (broker, other):
            cluster.create_topic(topic, 1)
            cluster.produce(topic, 0, map(str, range(20)))
        here, there = (
            spark.stream(
                cluster.bootstrap_servers, subscribe=topic, startingOffsets="earliest"
            ).select("value")
            for cluster in (broker, other)
        )
        written = here.union(there).writeStream.format("noop").trigger(availableNow=True)
        written.option("checkpointLocation", str(query)).start().awaitTermination(_SECONDS)
    flags = ("--group", "after-two", "-b", broker.bootstrap_servers)
    dry_run = migrate("commit-group", f"spark:{query}", *flags)
    assert dry_run.code == 0, dry_run.stderr
    (warning,) = [line for line in dry_run.stderr.splitlines() if "[shared-topic]" in line]
    assert (
        f"several sources of the query read {topic}, and the query's log does not identify"
        in warning
    )


def test_plan_of_query_with_newer_batches_is_refused(
    broker: Broker, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The plan was applied, and the records of the newer batch were written twice."""
    monkeypatch.chdir(tmp_path)
    topic, query, servers = "spark-plan-stale", tmp_path / "query", broker.bootstrap_servers
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, [str(offset) for offset in range(20)])
    write_seed({(topic, 0): 0}, query)
    spark.read_all(servers, {"subscribe": topic}, query)
    plans: list[tuple[str, ...]] = [("to-spark",), ("commit-group", "--group", "after-stale")]
    for number, command in enumerate(plans):
        saved = migrate(
            *(*command, f"spark:{query}", "-b", servers, "--plan-out", f"{number}.json")
        )
        assert saved.code == 0, saved.stderr
        standing = migrate(*command, "--plan", f"{number}.json", "-b", servers)
        assert standing.code == 0, standing.stderr
    broker.produce(topic, 0, [str(offset) for offset in range(20, 30)])
    spark.read_all(servers, {"subscribe": topic}, query)
    for number, command in enumerate(plans):
        stale = migrate(*command, "--plan", f"{number}.json", "-b", servers)
        assert (stale.code, stale.stdout) == (4, "")
        assert "the query kept running; it has committed batch" in stale.stderr
        assert "stop the query, and move again from its new positions" in stale.stderr


def test_expired_positions_of_query_are_refused(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    topic, query = "spark-to-group-expired", tmp_path / "query"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, [str(offset) for offset in range(10)])
    write_seed({(topic, 0): 0}, query)
    spark.read_all(broker.bootstrap_servers, {"subscribe": topic}, query)
    broker.produce(topic, 0, [str(offset) for offset in range(10, 20)])
    broker.delete_records(topic, 0, before=15)

    result = migrate(
        "commit-group", f"spark:{query}", "--group", "g", "-b", broker.bootstrap_servers
    )

    assert result.code == 4
    assert "up to 5 records were deleted" in result.stderr


def test_rows_in_state_of_query_trigger_warning(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """An open window contains rows that the query has read and no consumer will reread."""
    topic, query = "spark-to-group-state", tmp_path / "query"
    broker.create_topic(topic, 1)
    window = int(time.time()) // 10 * 10_000
    times = [window + 1_000] * 40 + [window + 15_000] * 50
    broker.produce(topic, 0, map(str, range(90)), times)
    write_seed({(topic, 0): 0}, query)
    windows = (
        spark.stream(broker.bootstrap_servers, subscribe=topic)
        .withWatermark("timestamp", "0 seconds")
        .groupBy(functions.window("timestamp", "10 seconds"))
        .count()
        .writeStream.format("memory")
        .queryName("windows")
        .option("checkpointLocation", str(query))
    )
    assert windows.trigger(availableNow=True).start().awaitTermination(_SECONDS)
    assert [row["count"] for row in spark.session.table("windows").collect()] == [40]

    move = ("commit-group", f"spark:{query}", "--group", "g", "-b", broker.bootstrap_servers)
    result = migrate(*move, "--plan-out", tmp_path / "plan.json")
    assert result.code == 0, result.stderr
    assert _next_offsets(tmp_path / "plan.json") == [90]
    (warning,) = [line for line in result.stderr.splitlines() if "state of 1 operator" in line]
    assert "read but not emitted" in warning
    # No records exist beyond the positions, so the query cannot have written such records.
    assert "asyncProgressTrackingEnabled" not in result.stderr


def _next_offsets(plan: Path) -> list[int]:
    return [one["next_offset"] for one in json.loads(plan.read_text())["partitions"]]


def test_output_beyond_last_logged_batch_triggers_warning(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """With asynchronous progress tracking, the query wrote 50 records, but it logged position 5."""
    topic, out, query = "spark-async", "spark-async-out", tmp_path / "query"
    servers = broker.bootstrap_servers
    for name in (topic, out):
        broker.create_topic(name, 1)
    broker.produce(topic, 0, map(str, range(50)))
    write_seed({(topic, 0): 0}, query)

    def run(interval: str, until: int) -> None:
        """Run batches of five records. Log a batch if the interval has passed, in milliseconds."""
        started = (
            spark.stream(servers, subscribe=topic, maxOffsetsPerTrigger="5")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", out)
            .option("checkpointLocation", str(query))
            .option("asyncProgressTrackingEnabled", "true")
            .option("asyncProgressTrackingCheckpointIntervalMs", interval)
            .start()
        )
        deadline = time.monotonic() + _SECONDS
        try:
            while len(broker.records(out)) < until:
                assert started.isActive and time.monotonic() < deadline, started.exception()
                time.sleep(0.2)
            # The last batch is complete before the query is stopped.
            while len(started.recentProgress) < 10:
                assert time.monotonic() < deadline
                time.sleep(0.2)
        finally:
            started.stop()

    def committed(name: str) -> tuple[list[int], str]:
        plan = tmp_path / name
        move = ("commit-group", f"spark:{query}", "--group", "g", "-b", servers)
        result = migrate(*move, "--plan-out", plan)
        assert result.code == 0, result.stderr
        return _next_offsets(plan), result.stderr

    run("3600000", until=50)
    assert len(broker.records(out)) == 50
    positions, told = committed("after-a-clean-stop.json")
    assert positions == [5]
    assert "[output-beyond]" in told
    compared = migrate("diff", f"spark:{query}", "broker:latest", "-b", servers)
    assert "[output-beyond]" in compared.stderr

    # As a remedy, the query runs without an interval. Spark resumes from the logged positions and
    # duplicates the later records.
    run("0", until=50 + 45)
    positions, told = committed("after-the-way-out.json")
    assert positions == [50]
    assert "[output-beyond]" not in told


@contextmanager
def running(
    spark: Spark, servers: str, topic: str, query: Path, *, trigger: str = "0 seconds"
) -> Iterator[None]:
    """Run a query that starts a batch whenever there are records. Its sink is next to it."""
    started = (
        spark.stream(servers, subscribe=topic)
        .selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .option("path", str(query.with_name(f"{query.name}-out")))
        .option("checkpointLocation", str(query))
        .trigger(processingTime=trigger)
        .start()
    )
    try:
        yield
    finally:
        started.stop()


def test_diff_reports_distance_between_checkpoint_and_running_query(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    topic, query = "spark-distance", tmp_path / "query"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, [str(offset) for offset in range(40)])
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(topic, [25])})
    write_seed({(topic, 0): 25}, query)

    def distance() -> int:
        result = migrate("diff", checkpoint, f"spark:{query}", "--format", "json")
        assert result.code == 0, result.stderr
        (row,) = json.loads(result.stdout)["partitions"]
        return int(row["difference"])

    def wait_for(expected: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while (found := distance()) != expected:
            assert found < expected and time.monotonic() < deadline
            time.sleep(0.2)

    assert distance() == 0
    with running(spark, broker.bootstrap_servers, topic, query):
        wait_for(15)
        broker.produce(topic, 0, ["one more"])
        wait_for(16)


def test_move_is_refused_while_query_is_running_and_warns_after_query_has_stopped(
    broker: Broker, spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The moves exited with 0 and no warning, so two queries read the same records."""
    monkeypatch.chdir(tmp_path)
    topic, old, new = "spark-still-running", tmp_path / "old", tmp_path / "new"
    servers, produced = broker.bootstrap_servers, Event()
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(50)))
    write_seed({(topic, 0): 0}, old)
    # Starts Spark's JVM before the time-critical part.
    spark.read_all(servers, {"subscribe": topic}, tmp_path / "unrelated")
    moves = [
        ("to-spark", f"spark:{old}", "-b", servers, "--checkpoint-dir", str(new)),
        ("to-spark", f"spark:{old}", "-b", servers, "--plan-out", str(tmp_path / "plan")),
        ("commit-group", f"spark:{old}", "-b", servers, "--group", "g", "--execute", "--yes"),
    ]
    ids = [str(number) for number in range(50)]

    def produce() -> None:
        while not produced.wait(0.3):
            ids.append(str(len(ids)))
            broker.produce(topic, 0, ids[-1:])

    producer = Thread(target=produce)
    with running(spark, servers, topic, old, trigger="2 seconds"):
        producer.start()
        try:
            _wait_for_batch(old, 2)
            for move in moves:
                refused = migrate(*move)
                assert refused.code == 4, refused.stderr
                assert "[query-may-run]" in refused.stderr
                assert "[reader-kept-running]" in refused.stderr
        finally:
            produced.set()
            producer.join()
    ids += map(str, range(len(ids), len(ids) + 5))
    broker.produce(topic, 0, ids[-5:])
    assert not new.exists() and not (tmp_path / "plan").exists()
    assert broker.committed("g") == {}

    moved = migrate(*moves[0])
    assert moved.code == 0, moved.stderr
    assert "[query-may-run]" in moved.stderr
    by_old = [row.value for row in spark.session.read.parquet(f"{old}-out").collect()]
    by_new = [value for *_, value in spark.read_all(servers, {"subscribe": topic}, new)]
    assert len(by_new) >= 5
    assert sorted(by_old + by_new) == sorted(ids)


def _wait_for_batch(query: Path, batch: int) -> None:
    deadline = time.monotonic() + _SECONDS
    while not (query / f"commits/{batch}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_move_warns_if_query_may_be_running_without_new_records(
    broker: Broker, spark: Spark, tmp_path: Path
) -> None:
    """A running query without new records starts no batches, so its files do not change."""
    topic, query, new = "spark-idle", tmp_path / "query", tmp_path / "new"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    write_seed({(topic, 0): 0}, query)
    move = ("to-spark", f"spark:{query}", "-b", broker.bootstrap_servers)
    with running(spark, broker.bootstrap_servers, topic, query):
        _wait_for_batch(query, 0)
        for moved in (migrate(*move), migrate(*move, "--checkpoint-dir", str(new))):
            assert moved.code == 0, moved.stderr
            assert "cannot determine whether the query is still running" in moved.stderr
            assert "[query-may-run]" in moved.stderr
