"""Run ``migrate scan`` on Spark and compare the results with a local scan."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

import migrate as library
from migrate.cli import submit
from migrate.extensions.fleet.candidates import mark_newest
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.scan_on_spark import scan_on_spark
from migrate.extensions.fleet.scan_run import scan_locally
from migrate.extensions.fleet.write_tables import Output, TableFormat
from migrate.spark import read_checkpoints
from migrate.storage.files import Files
from tests.support.command import Result, migrate
from tests.support.few_jobs import JOB, FewJobs, csv_rows, scan, write_job
from tests.support.golden import GOLDEN
from tests.support.kafka import Broker
from tests.support.many_jobs import delete_as_flink, generate
from tests.support.spark import Spark, process_environment

pytestmark = pytest.mark.integration

_VIEWS = ("checkpoints", "positions", "operators", "findings")
_GENERATED = 300


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> FewJobs:
    return FewJobs(tmp_path_factory.mktemp("estate"), broker)


def _on_spark(*arguments: str | Path) -> Result:
    """Run a scan in this process, which has a Spark session."""
    return migrate("scan", *arguments)


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_scan_on_spark_matches_local_scan(
    spark: Spark, estate: FewJobs, tmp_path: Path, table_format: str
) -> None:
    """Scan a few jobs with a broker, and a generated tree with jobs of every Flink version."""
    generated = tmp_path / "generated"
    generate(generated, _GENERATED)
    tables: list[dict[str, list[str]]] = []
    told: list[tuple[str, list[str]]] = []
    for run, name in ((scan, "here"), (_on_spark, "spark")):
        out = tmp_path / name
        asked = ("--output", out, "--format", table_format, *estate.broker)
        done = run(estate.root, generated, *asked)
        assert done.code == 0, done.stderr
        told.append((done.stdout, done.stderr.replace(str(out), "OUT").splitlines()))
        tables.append({view: _table(spark, out / view, table_format) for view in _VIEWS})
        assert all((out / view / "_SUCCESS").exists() for view in _VIEWS)
        assert {entry.name for entry in out.iterdir()} == set(_VIEWS)
    assert told[0] == told[1]
    assert tables[0] == tables[1]
    assert min(map(len, tables[0].values())) > _GENERATED
    # Messages from the executors use the option names of the command line.
    assert any("add --one-cluster" in row for row in tables[1]["checkpoints"])


def _table(spark: Spark, directory: Path, table_format: str) -> list[str]:
    """Return the schema of a Parquet table, and the sorted rows of any table."""
    if table_format == "parquet":
        frame = spark.session.read.parquet(str(directory))
        return [frame.schema.simpleString(), *sorted(map(str, frame.collect()))]
    rows = [row for file in directory.glob("*.csv") for row in csv_rows(file)]
    return sorted(map(str, rows))


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_output_of_scan_contains_each_view_as_table(
    spark: Spark, estate: FewJobs, tmp_path: Path, table_format: str
) -> None:
    directory = tmp_path / "out"
    done = scan(estate.root, "--output", directory, "--format", table_format)
    assert done.code == 0, done.stderr
    for view in _VIEWS:
        expected = read_checkpoints(spark.session, str(estate.root), view=view)
        if table_format == "parquet":
            written = spark.session.read.parquet(str(directory / view))
            assert written.schema.simpleString() == expected.schema.simpleString()
            assert sorted(map(str, written.collect())) == sorted(map(str, expected.collect()))
        else:
            rows = [row for file in (directory / view).glob("*.csv") for row in csv_rows(file)]
            assert len(rows) == expected.count()
            assert {tuple(row) for row in rows} == {tuple(expected.columns)}
            errors = [row["pointer"] for row in rows if row["error_kind"]]
            assert sorted(errors) == sorted(map(str, [estate.half_written, estate.corrupt]))
    # A second scan does not overwrite the tables, and is refused before it reads checkpoints.
    again = scan(estate.root, "--output", directory)
    assert again.code == 4
    assert "is not empty; choose a new directory" in again.stderr


def test_scan_function_returns_jobs_with_lag_and_obstacles(spark: Spark, estate: FewJobs) -> None:
    inventory = library.scan(estate.root, bootstrap_servers=estate.broker[1])
    jobs = {job.pointer: job for job in inventory.jobs}
    newest = jobs[str(estate.newest)]
    assert (newest.job_id, newest.checkpoint_id, newest.lag) == (JOB(1), 9, 16)
    assert (newest.topics, newest.sources, newest.positions) == ((estate.topic,), 1, 2)
    assert newest.movable
    assert newest.written_at is not None
    assert newest.written_at.timestamp() == pytest.approx(
        (estate.newest / "_metadata").stat().st_mtime, abs=0.002
    )
    gone = jobs[str(estate.without_topic)]
    assert gone.obstacles == ("topic-gone",)
    assert gone.why_not == (f"2 positions in topics that the broker does not have: {estate.gone}",)
    assert (gone.lag, gone.lag_unknown) == (None, 2)
    assert jobs[str(estate.corrupt)].error_kind == "corrupt"
    assert inventory.totals.movable == 3
    # A scan in a process without a Spark session returns the same values.
    program = (
        "import sys, pickle, migrate\n"
        "found = migrate.scan(sys.argv[1], bootstrap_servers=sys.argv[2])\n"
        "assert 'pyspark' not in sys.modules\n"
        "sys.stdout.buffer.write(pickle.dumps(found))"
    )
    command = [sys.executable, "-c", program, str(estate.root), estate.broker[1]]
    done = subprocess.run(command, capture_output=True, check=True)
    assert pickle.loads(done.stdout) == inventory


def test_master_option_is_refused_if_spark_session_already_exists(
    spark: Spark, estate: FewJobs
) -> None:
    done = _on_spark(estate.root, "--master", "local[1]")
    assert (done.code, done.stdout) == (2, "")
    assert "a Spark session already exists" in done.stderr


@pytest.mark.parametrize("where", ["here", "on Spark"])
def test_job_running_during_scan_has_single_row_per_checkpoint(
    spark: Spark, tmp_path: Path, where: str
) -> None:
    """After the listing, the newest checkpoint is subsumed or deleted before the scan reads it."""
    run = scan_locally if where == "here" else partial(scan_on_spark, spark.session)
    for job, number in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
        write_job(tmp_path, job, number, "t", [number])
    being_written = tmp_path / JOB(1) / "chk-3"
    being_written.mkdir()
    found = mark_newest(discover([str(tmp_path)], Files()))
    for job in (1, 2, 3):
        delete_as_flink(str(tmp_path / JOB(job) / ("chk-1" if job == 3 else "chk-2")))
    being_written.rmdir()
    write_job(tmp_path, 1, 3, "t", [3])
    write_job(tmp_path, 3, 9, "t", [9])
    told = run(found, Output(str(tmp_path / "out"), TableFormat.PARQUET))
    assert {job.pointer: job.movable for job in told.jobs} == {
        str(being_written): True,
        str(tmp_path / JOB(2) / "chk-1"): True,
        str(tmp_path / JOB(3) / "chk-9"): True,
    }
    rows = spark.session.read.parquet(str(tmp_path / "out" / "positions")).collect()
    assert sorted((row.job_id[-1], row.checkpoint_id, row.error_kind) for row in rows) == [
        *(("1", 1, None), ("1", 2, "not found"), ("1", 3, None)),
        *(("2", 1, None), ("2", 2, "not found")),
        *(("3", 1, "not found"), ("3", 9, None)),
    ]
    assert (told.checkpoints, told.unreadable) == (7, 3)


def test_scan_runs_with_spark_submit(tmp_path: Path) -> None:
    spark_submit = Path(sys.executable).with_name("spark-submit")
    command = [str(spark_submit), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += [str(submit.__file__), str(GOLDEN / "2.2" / "stop"), "--output", "out"]
    command.append("--quiet")  # spark-submit writes stdout and stderr to the same stream
    (tmp_path / "conf").mkdir()
    (tmp_path / "work").mkdir()
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path / "work",
        env=process_environment(tmp_path / "conf"),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, line = done.stdout.splitlines()
    assert line.startswith("check ") and line.endswith("  pending-transactions")
    assert (tmp_path / "work" / "out" / "positions" / "_SUCCESS").exists()
