"""Check the claims of the support matrix with the running Spark version.

`make test` uses the Spark of .venv. `make spark-matrix` runs this file with each supported Spark
and writes docs/spark-matrix.md from the results.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.version import __version__ as pyspark_version

from migrate.inputs.offsets_json import starting_offsets
from migrate.inputs.spark_log import committed_positions, starting_positions
from migrate.inputs.spark_log_entries import entry_numbers
from migrate.kafka.config import kafka_config
from migrate.model.errors import InputError
from migrate.spark.resume_check import run_first_batch
from migrate.storage.files import Files
from tests.support.command import migrate
from tests.support.jars import classpath
from tests.support.jdk import QUICK_START
from tests.support.kafka import Broker, Record
from tests.support.seeds import write_seed
from tests.support.spark import CONNECTOR, Spark, SparkQueryError, run_to_end

pytestmark = pytest.mark.integration

_SPARK = tuple(map(int, pyspark_version.split(".")[:2]))
TOPIC = "spark-versions"
# Partition -> (log start offset, position, log end offset). The positions are in the middle, at the
# start, and at the end of a log, and in a log that does not start at 0.
LOGS = {0: (0, 37, 120), 1: (0, 0, 60), 2: (0, 80, 80), 3: (40, 41, 90)}
POSITIONS = {(TOPIC, partition): position for partition, (_, position, _) in LOGS.items()}

STATEFUL = pytest.mark.parametrize("stateful", [False, True], ids=["stateless", "stateful"])
WAY = pytest.mark.parametrize("way", ["options", "seed"])


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    broker.create_topic(TOPIC, len(LOGS))
    for partition, (start, _, end) in LOGS.items():
        broker.produce(TOPIC, partition, [f"record {offset}" for offset in range(end)])
        broker.delete_records(TOPIC, partition, before=start)
    return broker.bootstrap_servers


def start(
    spark: Spark,
    servers: str,
    directory: Path,
    way: str,
    next_offsets: Mapping[tuple[str, int], int],
    stateful: bool,
) -> list[Record]:
    """Start a query in one of the ways of ``to-spark``, and return the records that it reads."""
    told = None
    if way == "options":
        told = starting_offsets(next_offsets)
    else:
        write_seed(next_offsets, directory)
    return spark.read_all(
        servers, {"subscribe": TOPIC}, directory, starting_offsets=told, stateful=stateful
    )


def records_from(next_offsets: Mapping[tuple[str, int], int]) -> list[Record]:
    return [
        (topic, partition, offset, f"record {offset}")
        for (topic, partition), next_offset in sorted(next_offsets.items())
        for offset in range(next_offset, LOGS[partition][2])
    ]


@WAY
@STATEFUL
def test_query_starts_exactly_at_positions(
    spark: Spark, servers: str, tmp_path: Path, way: str, stateful: bool
) -> None:
    read = start(spark, servers, tmp_path / "query", way, POSITIONS, stateful)
    assert read == records_from(POSITIONS)


@WAY
def test_shifted_start_of_query_is_detected(
    spark: Spark, servers: str, tmp_path: Path, way: str
) -> None:
    wrong = {**POSITIONS, (TOPIC, 0): POSITIONS[TOPIC, 0] + 1, (TOPIC, 3): POSITIONS[TOPIC, 3] - 1}
    read = start(spark, servers, tmp_path / "query", way, wrong, stateful=False)
    right = records_from(POSITIONS)
    assert sorted(set(right) - set(read)) == [(TOPIC, 0, 37, "record 37")]
    assert sorted(set(read) - set(right)) == [(TOPIC, 3, 40, "record 40")]


# A Hadoop checksum file with the chunk size and a CRC-32 that does not match.
STALE = b"crc\0" + (512).to_bytes(4, "big") + b"\0\0\0\1"


def test_query_starts_at_exact_positions_despite_stale_checksums(
    spark: Spark, servers: str, tmp_path: Path
) -> None:
    query = tmp_path / "query"
    write_seed(POSITIONS, query)
    for stale in (query / ".metadata.crc", query / "sources" / "0" / ".0.crc"):
        stale.write_bytes(STALE)
    assert starting_positions("spark:query", query).starts == POSITIONS
    assert spark.read_all(servers, {"subscribe": TOPIC}, query) == records_from(POSITIONS)


@pytest.mark.skipif(_SPARK < (4, 2), reason="sources have no names")
def test_named_source_starts_exactly_at_seed(spark: Spark, servers: str, tmp_path: Path) -> None:
    query = tmp_path / "query"
    write_seed(POSITIONS, query)
    (query / "sources" / "0").rename(query / "sources" / "orders")
    settings = {
        "spark.sql.streaming.offsetLog.formatVersion": "2",
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    }
    for key, value in settings.items():
        spark.session.conf.set(key, value)
    try:
        records = (
            spark.session.readStream.name("orders")  # type: ignore[attr-defined]  # since 4.2
            .format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("subscribe", TOPIC)
            .load()
            .selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        )
        run_to_end(
            records.writeStream.format("json")
            .option("path", str(tmp_path / "sink"))
            .option("checkpointLocation", str(query))
            .trigger(availableNow=True)
            .start()
        )
    finally:
        for key in settings:
            spark.session.conf.unset(key)
    schema = "topic STRING, partition INT, offset LONG, value STRING"
    rows = spark.session.read.schema(schema).json(str(tmp_path / "sink")).collect()
    read = sorted((row.topic, row.partition, row.offset, row.value) for row in rows)
    assert read == records_from(POSITIONS)
    assert (query / "offsets" / "0").read_text().startswith("v2\n")


@pytest.mark.skipif(_SPARK < (4, 2), reason="PySpark cannot ask for Real-Time Mode")
def test_real_time_mode_starts_at_seed_and_logs_batch_when_batch_ends(
    spark: Spark, broker: Broker, tmp_path: Path
) -> None:
    """Until a batch ends, no log shows its output, so a restart duplicates the output."""
    query, sink = tmp_path / "query", f"real-time-{uuid.uuid4().hex[:8]}"
    topic = f"{sink}-in"
    servers = broker.bootstrap_servers
    broker.create_topic(topic, 2)
    broker.create_topic(sink, 1)
    for partition in (0, 1):
        broker.produce(topic, partition, [f"{partition} {n}" for n in range(20)])
    write_seed({(topic, 0): 7, (topic, 1): 3}, query)
    right = sorted([*(f"0 {n}" for n in range(7, 20)), *(f"1 {n}" for n in range(3, 20))])

    def wait_for(condition: Callable[[], bool], running: StreamingQuery) -> None:
        deadline = time.monotonic() + 90
        while not condition():
            assert running.isActive and time.monotonic() < deadline, running.exception()
            time.sleep(0.2)

    def written(count: int, running: StreamingQuery) -> list[str]:
        """Wait for this number of records in the sink, and return all values."""
        wait_for(lambda: broker.watermarks(sink)[0][1] >= count, running)
        return sorted(value for *_, value in broker.records(sink))

    def start(batch: str) -> StreamingQuery:
        writer: Any = (
            spark.stream(servers, subscribe=topic)
            .selectExpr("value")
            .writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", sink)
            .option("checkpointLocation", str(query))
            .outputMode("update")
        )
        running: StreamingQuery = writer.trigger(realTime=batch).start()  # since 4.2
        return running

    running = start("1 hour")
    assert written(30, running) == right
    running.stop()
    assert (query / "offsets").is_dir() and not entry_numbers(Files(), str(query / "offsets"))
    running = start("5 seconds")
    assert written(60, running) == sorted([*right, *right])
    wait_for((query / "commits" / "0").exists, running)
    running.stop()
    assert committed_positions("spark:x", query).starts == {(topic, 0): 20, (topic, 1): 20}


def test_verify_run_option_reports_start_positions(servers: str, tmp_path: Path) -> None:
    """``verify --run`` runs Spark on a copy of the seed."""
    write_seed(POSITIONS, tmp_path / "query")
    conf = {
        "spark.jars": ",".join(map(str, classpath(CONNECTOR))),
        "spark.driver.extraJavaOptions": " ".join(QUICK_START),
    }
    resume = run_first_batch(
        "spark:query", str(tmp_path / "query"), kafka_config(servers, None, ()), conf
    )
    assert resume.start_positions.starts == POSITIONS
    assert resume.records == len(records_from(POSITIONS))
    assert json.loads((tmp_path / "query" / "metadata").read_text()).keys() == {"id"}


def _restarted(
    spark: Spark, servers: str, topic: str, directory: Path, most: int
) -> list[tuple[int, Any]]:
    """Run a query to its end, and return the number and the start offsets of each batch."""
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": str(most)}
    query = (
        spark.stream(servers, subscribe=topic, **options)
        .writeStream.format("noop")
        .option("checkpointLocation", str(directory))
        .trigger(availableNow=True)
        .start()
    )
    run_to_end(query)
    starts = []
    for progress in query.recentProgress:
        begins = progress["sources"][0]["startOffset"]
        if isinstance(begins, str):
            begins = json.loads(begins) if begins.startswith("{") else None
        starts.append((progress["batchId"], begins))
    return starts


def test_query_with_lost_log_entries_restarts_at_reported_positions(
    spark: Spark, broker: Broker, tmp_path: Path
) -> None:
    """Regression: ``diff`` and ``verify`` reported "before batch 0" for a query without commits.

    Without a commit, Spark reruns the newest planned batch from the end of the previous batch.
    """
    topic, old = f"lost-{uuid.uuid4().hex[:8]}", tmp_path / "old"
    servers = broker.bootstrap_servers
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(15)))
    assert [batch for batch, _ in _restarted(spark, servers, topic, old, 5)] == [0, 1, 2]

    def lost(name: str, *entries: str) -> Path:
        query = shutil.copytree(old, tmp_path / name)
        for crc in query.rglob("*.crc"):
            crc.unlink()
        for entry in entries:
            path = query / entry
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return query

    def says(query: Path) -> Any:
        starts = committed_positions("spark:x", query).starts
        return {name: {str(n): at} for (name, n), at in starts.items()}

    for query in (
        lost("whole"),
        lost("no commits", "commits"),
        lost("empty commits", "commits/0", "commits/1", "commits/2"),
    ):
        told = says(query)
        (_, begins), *_ = _restarted(spark, servers, topic, query, 100)
        assert told == begins, query.name
    only = lost("only batch 0", "commits", "offsets/1", "offsets/2")
    assert says(only) == {topic: {"0": 0}}
    assert _restarted(spark, servers, topic, only, 100)[0] == (0, None)
    # Spark fails with these logs.
    for query in (
        lost("commits ahead", "offsets/2"),
        lost("gap", "commits", "offsets/1"),
        lost("gap before a commit", "offsets/1"),
        lost("only the newest batch", "offsets/0", "offsets/1"),
        lost("empty commit"),
        lost("empty offsets"),
    ):
        if query.name.startswith("empty"):
            (query / query.name.split()[1].replace("commit", "commits") / "2").write_bytes(b"")
        with pytest.raises(InputError, match=r"Spark (?:would|fails)"):
            says(query)
        with pytest.raises(SparkQueryError):
            _restarted(spark, servers, topic, query, 100)


def _counts(spark: Spark, servers: str, topic: str, directory: Path) -> dict[int, int]:
    """Run a query that counts the records of each partition, and return all counts of its state."""
    name = f"counts_{uuid.uuid4().hex[:8]}"
    records = spark.stream(servers, subscribe=topic, startingOffsets="earliest")
    query = (
        records.groupBy("partition")
        .count()
        .writeStream.format("memory")
        .queryName(name)
        .outputMode("complete")
        .option("checkpointLocation", str(directory))
        .trigger(availableNow=True)
        .start()
    )
    run_to_end(query)
    return {row.partition: row["count"] for row in spark.session.table(name).collect()}


@pytest.fixture(scope="module")
def counted(
    spark: Spark, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    """Return a topic with two partitions, and the checkpoint location of a query.

    The query has counted the first 10 of 20 records in each partition.
    """
    topic, old = f"counts-{uuid.uuid4().hex[:8]}", tmp_path_factory.mktemp("counted") / "old"
    broker.create_topic(topic, 2)
    for partition in (0, 1):
        broker.produce(topic, partition, map(str, range(10)))
    assert _counts(spark, broker.bootstrap_servers, topic, old) == {0: 10, 1: 10}
    for partition in (0, 1):
        broker.produce(topic, partition, map(str, range(10)))
    return topic, old


# With the offsets 7 and 14, 3 records are double-counted and 4 records are never counted. With 8
# and 13, both numbers are lower by one.
@pytest.mark.parametrize(
    ("starts", "counts"),
    [((7, 14), {0: 10 + 13, 1: 10 + 6}), ((8, 13), {0: 10 + 12, 1: 10 + 7})],
    ids=["right", "wrong by one"],
)
def test_copied_query_resumes_from_new_positions_with_existing_counts(
    spark: Spark,
    broker: Broker,
    counted: tuple[str, Path],
    tmp_path: Path,
    starts: tuple[int, int],
    counts: dict[int, int],
) -> None:
    (topic, old), new = counted, tmp_path / "new"
    before = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    side = tmp_path / "side.json"
    side.write_text(json.dumps({topic: dict(zip("01", starts, strict=True))}))
    kept = migrate(
        *("copy-query", f"spark:{old}", "--from", f"json:{side}"),
        *("--checkpoint-dir", new, "-b", broker.bootstrap_servers),
    )
    assert (kept.code, kept.stdout) == (0, side.read_text().replace(" ", "") + "\n"), kept.stderr
    assert _counts(spark, broker.bootstrap_servers, topic, new) == counts
    assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == before


def test_original_query_resumes_unchanged_after_copy(
    spark: Spark, broker: Broker, counted: tuple[str, Path]
) -> None:
    topic, old = counted
    assert _counts(spark, broker.bootstrap_servers, topic, old) == {0: 20, 1: 20}


@pytest.mark.skipif(_SPARK < (4, 0), reason="no transformWithState")
def test_copied_query_with_stateful_processor_runs_after_old_location_was_deleted(
    spark: Spark, broker: Broker, tmp_path: Path
) -> None:
    """In the state of a stateful processor, Spark stores absolute paths of schema files."""
    topic, old, new = f"processed-{uuid.uuid4().hex[:8]}", tmp_path / "old", tmp_path / "new"
    servers = broker.bootstrap_servers
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    provider = "spark.sql.streaming.stateStore.providerClass"
    package = "org.apache.spark.sql.execution.streaming.state"
    spark.session.conf.set(provider, f"{package}.RocksDBStateStoreProvider")
    try:
        assert _processed(spark, servers, topic, old) == [10]
        side = tmp_path / "side.json"
        side.write_text(json.dumps({topic: {"0": 7}}))
        kept = migrate(
            *("copy-query", f"spark:{old}", "--from", f"json:{side}"),
            *("--checkpoint-dir", new, "-b", servers),
        )
        assert kept.code == 0, kept.stderr
        assert [file for file in old.rglob("*") if "_stateSchema" in file.parts]
        shutil.rmtree(old)
        assert _processed(spark, servers, topic, new) == [13]  # 3 records are double-counted
    finally:
        spark.session.conf.unset(provider)


def _processed(spark: Spark, servers: str, topic: str, directory: Path) -> list[int]:
    """Count the records of a topic in the state of a processor, and return the query's output."""
    import pandas
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counter(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._state = handle.getValueState("count", "count LONG")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Any:
            (total,) = self._state.get() if self._state.exists() else (0,)
            total += sum(len(group) for group in rows)
            self._state.update((total,))
            yield pandas.DataFrame({"count": [total]})

        def close(self) -> None:
            pass

    said: list[int] = []
    records = spark.stream(servers, subscribe=topic, startingOffsets="earliest")
    counts = records.groupBy("topic").transformWithStateInPandas(
        Counter(), "count LONG", "Update", "None"
    )

    # A memory sink can resume from a checkpoint location only in complete mode.
    def keep(frame: DataFrame, batch: int) -> None:
        said.extend(row["count"] for row in frame.collect())

    writer = counts.writeStream.foreachBatch(keep).outputMode("update")
    run_to_end(
        writer.option("checkpointLocation", str(directory)).trigger(availableNow=True).start()
    )
    return said


def test_location_without_metadata_gets_new_id_or_fails(spark: Spark, tmp_path: Path) -> None:
    """The ID of a query is in ``metadata``. Since SPARK-55058, Spark requires this file."""
    (tmp_path / "source").mkdir()

    def run(number: int) -> StreamingQuery:
        (tmp_path / "source" / f"{number}.txt").write_text(f"{number}\n")
        query = (
            spark.session.readStream.format("text")
            .load(str(tmp_path / "source"))
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path / "query"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return query

    first = run(0)
    for name in ("metadata", ".metadata.crc"):
        (tmp_path / "query" / name).unlink(missing_ok=True)
    if _SPARK >= (4, 2):
        with pytest.raises(Exception, match=r"MISSING_METADATA_FILE|metadata"):
            run(1)
    else:
        assert run(1).id != first.id
        assert entry_numbers(Files(), str(tmp_path / "query/commits")) == [0, 1]
