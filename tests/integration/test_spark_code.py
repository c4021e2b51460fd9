"""Run the code of `to-spark --format` unchanged, with Python, scalac, and a query."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Producer

from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.jars import read_lock
from tests.support.jdk import find_jdk
from tests.support.kafka import Broker
from tests.support.spark import CONNECTOR, Spark, run_to_end, submit_environment

pytestmark = pytest.mark.integration

ORDERS, PAYMENTS = "code-orders", "code-payments"
RECORDS = 30
ROW = "topic STRING, partition INT, offset LONG"
STARTS = {ORDERS: [7, 30], PAYMENTS: [12]}


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    for topic, starts in STARTS.items():
        broker.create_topic(topic, len(starts))
        for partition in range(len(starts)):
            broker.produce(topic, partition, map(str, range(RECORDS)))
    return broker.bootstrap_servers


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    held = [split for topic, starts in STARTS.items() for split in splits(topic, starts)]
    return write_source(tmp_path / "chk-7", {0: held})


def printed(chk: Path, servers: str, kind: str, *arguments: str | Path) -> str:
    result = migrate("to-spark", chk, "-b", servers, "--format", kind, *arguments)
    assert result.code == 0, result.stderr
    return result.stdout


def run_with_sink(code: str, spark: Spark, directory: Path) -> dict[str, Any]:
    """Run a printed script with a sink until the query ends, and return its variables."""
    assert spark.session.getActiveSession() is not None
    code, tries = re.subn(r"^sink = .*\n", "", code, flags=re.M)
    code, sinks = re.subn(r"^# (?=sink = \(|    |\)$)", "", code, flags=re.M)
    assert (tries, sinks) == (1, 4)
    code = code.replace('"path", SINK_DIRECTORY', f'"path", "{directory / "sink"}"')
    code = code.replace('= "CHECKPOINT-DIR"', f'= "{directory / "checkpoint"}"')
    code = code.replace("sink.start()", "sink.trigger(availableNow=True).start()")
    variables: dict[str, Any] = {}
    exec(compile(code, "printed.py", "exec"), variables)
    return variables


def written(spark: Spark, directory: Path) -> set[tuple[str, int]]:
    """Return the topic partition and the offset of each record that the query has written."""
    rows = (
        spark.session.read.schema(ROW)
        .parquet(str(directory / "sink"))
        .selectExpr("concat(topic, '-', partition) AS place", "offset")
        .collect()
    )
    found = {(row.place, row.offset) for row in rows}
    assert len(rows) == len(found)
    return found


def contents(directory: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def expected(*places: tuple[str, int]) -> set[tuple[str, int]]:
    return {
        (f"{topic}-{partition}", offset)
        for topic, partition in places
        for offset in range(STARTS[topic][partition], RECORDS)
    }


ALL = [(ORDERS, 0), (ORDERS, 1), (PAYMENTS, 0)]


def test_python_code_with_starting_offsets_reads_planned_records(
    servers: str, spark: Spark, chk: Path, tmp_path: Path
) -> None:
    run_with_sink(printed(chk, servers, "python"), spark, tmp_path)
    assert written(spark, tmp_path) == expected(*ALL)


def test_python_code_with_checkpoint_location_reads_planned_records(
    servers: str, spark: Spark, chk: Path, tmp_path: Path
) -> None:
    text = printed(chk, servers, "python", "--checkpoint-dir", tmp_path / "seed")
    # The changed option contradicts the seed, so the test passes only if the seed is used.
    text = text.replace('.option("startingOffsets", ', '.option("startingOffsets", "latest" or ')
    code = run_with_sink(text, spark, tmp_path)
    assert code["checkpoint_location"] == str(tmp_path / "seed")
    assert written(spark, tmp_path) == expected(*ALL)


def test_printed_scala_code_previews_records_and_leaves_seed_unchanged(
    servers: str, chk: Path, tmp_path: Path
) -> None:
    """The test runs the command in the first line of the code, as the tutorial does in Python."""
    seed = tmp_path / "seed"
    text = printed(chk, servers, "scala", "--checkpoint-dir", seed)
    command = text.splitlines()[0].removeprefix("// ")
    (package,) = [jar for jar in read_lock()[CONNECTOR] if "-sql-kafka-" in jar.artifact]
    assert command == f"spark-shell --packages {package.coordinates} < query.scala"
    (tmp_path / "query.scala").write_text(text)
    before = contents(seed)
    (tmp_path / "spark").mkdir()
    done = subprocess.run(
        command,
        shell=True,
        cwd=tmp_path,
        env=submit_environment(tmp_path / "spark"),
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"^\|(code-\w+) *\| *(\d) *\| *(\d+) *\| *(\d+) *\|$", done.stdout, re.M)
    assert len(shown) == 20
    assert all(offset == value for *_, offset, value in shown)
    places = {(f"{topic}-{partition}", int(offset)) for topic, partition, offset, _ in shown}
    assert places <= expected(*ALL)
    assert contents(seed) == before


def test_python_code_for_some_partitions_reads_only_these_partitions(
    servers: str, spark: Spark, chk: Path, tmp_path: Path
) -> None:
    text = printed(chk, servers, "python", "--partitions", f"{ORDERS}:0")
    assert '.option("assign", ' in text
    run_with_sink(text, spark, tmp_path)
    assert written(spark, tmp_path) == expected((ORDERS, 0))


def test_python_code_for_two_streams_reads_planned_records(
    servers: str, spark: Spark, chk: Path, tmp_path: Path
) -> None:
    sources = [f"--spark-source={n}=topic:{topic}" for n, topic in enumerate((PAYMENTS, ORDERS))]
    seed = ("--checkpoint-dir", tmp_path / "seed")
    run_with_sink(printed(chk, servers, "python", *seed, *sources), spark, tmp_path)
    assert written(spark, tmp_path) == expected(*ALL)


def test_printed_options_work_with_read_stream(
    servers: str, spark: Spark, chk: Path, tmp_path: Path
) -> None:
    lines = printed(chk, servers, "options").splitlines()
    options = dict(line.split("=", 1) for line in lines)
    records = spark.session.readStream.format("kafka").options(**options).load()
    run_to_end(
        records.select("topic", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "sink"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert written(spark, tmp_path) == expected(*ALL)


@pytest.mark.parametrize(
    ("level", "offsets"), [("read_committed", {2}), ("read_uncommitted", {0, 2})]
)
def test_isolation_level_determines_whether_aborted_records_are_read(
    broker: Broker, spark: Spark, tmp_path: Path, level: str, offsets: set[int]
) -> None:
    topic = f"code-{level}"
    broker.create_topic(topic, 1)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic}
    producer = Producer({**settings, "broker.address.family": "v4"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "aborted", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)  # its marker is at offset 1
    producer.begin_transaction()
    producer.produce(topic, "committed", partition=0)
    producer.commit_transaction(30)
    chk = write_source(tmp_path / "chk-7", {0: splits(topic, [0])})
    text = printed(chk, broker.bootstrap_servers, "python", "--isolation-level", level)
    run_with_sink(text, spark, tmp_path)
    assert written(spark, tmp_path) == {(f"{topic}-0", offset) for offset in offsets}


def test_scala_code_compiles(servers: str, chk: Path, tmp_path: Path) -> None:
    """Use the compiler that Spark's own shell uses."""
    one = printed(chk, servers, "scala", "--checkpoint-dir", tmp_path / "checkpoint")
    several = printed(
        chk,
        servers,
        "scala",
        f"--spark-source=0=topic:{ORDERS}",
        f"--spark-source=1=topic:{PAYMENTS}",
    )
    properties = tmp_path / "secured.properties"
    properties.write_text("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.ca.location=x\n")
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    secured = migrate(
        "to-spark", "--plan", plan, "--kafka-config", properties, "-b", servers, "--format", "scala"
    )
    assert secured.code == 0, secured.stderr
    file = tmp_path / "Printed.scala"
    uses = "val frames: Seq[org.apache.spark.sql.DataFrame] = Seq"
    file.write_text(
        f"object One {{\n{one}\n{uses}(records, rows); val where: String = checkpointLocation }}\n"
        f"object Several {{\n{several}\n{uses}(records0, records1) }}\n"
        f"object Secured {{\n{secured.stdout}\n{uses}(records) }}\n"
    )
    jars = Path(pyspark.__file__).parent / "jars"
    command = [str(find_jdk() / "bin/java"), "-cp", os.fspath(jars / "*"), "scala.tools.nsc.Main"]
    done = subprocess.run(
        [*command, "-usejavacp", "-Xfatal-warnings", "-d", str(tmp_path), str(file)],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert (tmp_path / "Secured.class").exists()
