"""Write to real Spark sinks after a move, and check whether a sink skips a new query.

A sink that remembers the batches of an older query silently skips the same batch numbers of a new
query. `to-spark --sink` must report this first. Each test makes Spark skip batches, or proves that
Spark writes all of them.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.kafka import Broker
from tests.support.spark import Spark, run_to_end

pytestmark = pytest.mark.integration

TOPIC = "sinks"
RECORDS = 60
START = 17
EXPECTED = list(range(START, RECORDS))


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    broker.create_topic(TOPIC, 1)
    broker.produce(TOPIC, 0, [f"record {number}" for number in range(RECORDS)])
    return broker.bootstrap_servers


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits(TOPIC, [START])})


def seeded(chk: Path, servers: str, *arguments: str | Path) -> Path:
    """Return the checkpoint location of a new query that resumes from the job."""
    checkpoint_dir = chk.parent / f"checkpoint-{uuid.uuid4().hex}"
    result = migrate("to-spark", chk, "-b", servers, "--checkpoint-dir", checkpoint_dir, *arguments)
    assert result.code == 0, result.stderr
    return checkpoint_dir


def looked_at(chk: Path, sink: Path) -> Result:
    """Run ``to-spark`` with ``--sink``, and check that a refusal writes nothing."""
    checkpoint_dir = chk.parent / f"looked-{uuid.uuid4().hex}"
    result = migrate("to-spark", chk, "--sink", sink, "--checkpoint-dir", checkpoint_dir)
    if result.code != 0:
        assert result.stdout == ""
        assert not checkpoint_dir.exists()
    return result


def records(spark: Spark, servers: str, per_batch: int = 10) -> DataFrame:
    options = {"subscribe": TOPIC, "maxOffsetsPerTrigger": str(per_batch)}
    return spark.stream(servers, **options).select("topic", "partition", "offset")


def run(frame: DataFrame, checkpoint_dir: Path, kind: str, **options: str) -> None:
    run_to_end(
        frame.writeStream.format(kind)
        .option("checkpointLocation", str(checkpoint_dir))
        .options(**options)
        .trigger(availableNow=True)
        .start()
    )


def offsets(spark: Spark, kind: str, sink: Path) -> list[int]:
    rows = spark.session.read.format(kind).load(str(sink)).select("offset").collect()
    return sorted(row.offset for row in rows)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_new_sink_receives_every_record_once(
    spark: Spark, servers: str, chk: Path, tmp_path: Path, kind: str
) -> None:
    sink = tmp_path / "sink"
    assert "the sink is empty" in looked_at(chk, sink).stderr
    run(records(spark, servers, per_batch=30), seeded(chk, servers), kind, path=str(sink))
    assert offsets(spark, kind, sink) == EXPECTED


def test_topic_sink_receives_every_record_once(
    broker: Broker, spark: Spark, servers: str, chk: Path
) -> None:
    sink = f"sink-{uuid.uuid4().hex[:8]}"
    broker.create_topic(sink, 1)
    frame = records(spark, servers).select(F.col("offset").cast("string").alias("value"))
    options = {"kafka.bootstrap.servers": servers, "topic": sink}
    run(frame, seeded(chk, servers), "kafka", **options)
    assert sorted(int(value) for *_, value in broker.records(sink)) == EXPECTED


def test_file_sink_skips_batches_of_new_query_and_is_refused(
    spark: Spark, servers: str, chk: Path, tmp_path: Path
) -> None:
    sink = tmp_path / "sink"
    run(records(spark, servers, per_batch=20), seeded(chk, servers), "parquet", path=str(sink))
    assert offsets(spark, "parquet", sink) == EXPECTED
    written = sorted(path.name for path in (sink / "_spark_metadata").glob("[0-9]*"))
    assert written == ["0", "1", "2"]

    # The next query rereads all records in batches 0 to 4, and writes only batches 3 and 4.
    run(records(spark, servers, per_batch=10), seeded(chk, servers), "parquet", path=str(sink))
    assert offsets(spark, "parquet", sink) == sorted([*EXPECTED, *EXPECTED[30:]])

    refused = looked_at(chk, sink)
    assert refused.code == 4
    assert "would silently skip batches 0 to 4" in refused.stderr

    # Spark also ignores the files of a different writer, such as a Flink job that keeps running.
    before = offsets(spark, "parquet", sink)
    (added,) = sorted(sink.glob("part-*.parquet"))[:1]
    shutil.copyfile(added, sink / "part-of-flink.parquet")
    assert offsets(spark, "parquet", sink) == before


def test_compacted_log_of_file_sink_is_read(
    spark: Spark, servers: str, chk: Path, tmp_path: Path
) -> None:
    sink = tmp_path / "sink"
    run(records(spark, servers, per_batch=4), seeded(chk, servers), "parquet", path=str(sink))
    names = {path.name for path in (sink / "_spark_metadata").glob("[0-9]*")}
    assert names == {*map(str, range(9)), "9.compact", "10"}
    for batch in ("10", ".10.crc"):
        (sink / "_spark_metadata" / batch).unlink()
    assert "would silently skip batches 0 to 9" in looked_at(chk, sink).stderr


def test_delta_table_skips_no_batches_of_new_query(
    spark: Spark, servers: str, chk: Path, tmp_path: Path
) -> None:
    sink = tmp_path / "sink"
    for _ in range(2):
        frame = records(spark, servers, per_batch=50)
        run(frame, seeded(chk, servers), "delta", path=str(sink))
    assert offsets(spark, "delta", sink) == sorted(EXPECTED * 2)

    result = looked_at(chk, sink)
    assert result.code == 0
    assert "the sink remembers queries by ID (2); a new query is not among them" in result.stderr
    assert "warning: " + str(sink) not in result.stderr


@pytest.fixture
def often_checkpointed(spark: Spark) -> Iterator[None]:
    """Let new Delta tables write a checkpoint of their log at every second commit."""
    name = "spark.databricks.delta.properties.defaults.checkpointInterval"
    spark.session.conf.set(name, "2")
    yield
    spark.session.conf.unset(name)


@pytest.mark.usefixtures("often_checkpointed")
@pytest.mark.parametrize("name", ["orders-job", "5d1a1b9e-8c1f-4b7e-9f0a-2d3c4b5a6978"])
def test_delta_table_skips_batches_with_reused_application_id(
    spark: Spark, servers: str, chk: Path, tmp_path: Path, name: str
) -> None:
    """One of the application IDs is a UUID, like the ID of a query."""
    sink = tmp_path / "sink"

    def write(batch: DataFrame, batch_id: int) -> None:
        options = {"txnAppId": name, "txnVersion": str(batch_id)}
        batch.write.format("delta").mode("append").options(**options).save(str(sink))

    def run_query(per_batch: int) -> None:
        run_to_end(
            records(spark, servers, per_batch)
            .writeStream.foreachBatch(write)
            .option("checkpointLocation", str(seeded(chk, servers)))
            .trigger(availableNow=True)
            .start()
        )

    # The first query writes batches 0 and 1. The second query writes only batch 2.
    run_query(per_batch=30)
    run_query(per_batch=20)
    assert offsets(spark, "delta", sink) == sorted([*EXPECTED, *EXPECTED[40:]])

    told = f"(txnAppId): {name!r} up to 2"
    assert told in looked_at(chk, sink).stderr
    # Delta removes old commits. The remaining files are a Parquet checkpoint and newer commits.
    log = sink / "_delta_log"
    checkpointed = max(int(path.name[:20]) for path in log.glob("*.checkpoint.parquet"))
    assert checkpointed == 2
    for commit in log.glob("0*.json"):
        assert int(commit.name[:20]) <= checkpointed
        commit.unlink()
    assert told in looked_at(chk, sink).stderr


def test_damaged_delta_log_is_refused(chk: Path, tmp_path: Path) -> None:
    log = tmp_path / "sink/_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020}.json").write_text(json.dumps({"txn": {"appId": "x"}}))
    result = looked_at(chk, tmp_path / "sink")
    assert result.code == 4
    assert "is not a Delta commit" in result.stderr
