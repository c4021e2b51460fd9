"""``migrate scan`` on a real Spark, beside a real broker where lag is told."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import migrate as library
from migrate.cli import main, submit
from migrate.fleet import discover
from migrate.fleet.inventory import TableFormat, mark_newest
from migrate.spark import read_checkpoints
from migrate.spark.scan import scan_estate
from migrate.storage import Files
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.command import Result, migrate
from tests.support.estate import vanish
from tests.support.golden_positions import GOLDEN
from tests.support.kafka import Broker
from tests.support.spark import Spark, process_environment

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
_VIEWS = ("checkpoints", "positions", "operators", "findings")
JOB = "{:032x}".format


def _job(root: Path, job: int, number: int, topic: str, starts: list[int]) -> Path:
    """A job's directory with one checkpoint, of one KafkaSource."""
    state = SourceState({0: splits(topic, starts)})
    return write_checkpoint(
        root / JOB(job) / f"chk-{number}", source_operator(state), checkpoint_id=number
    )


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[Estate]:
    yield Estate(tmp_path_factory.mktemp("estate"), broker)


class Estate:
    """Some jobs, and the topics that they read: two partitions of 40 and 10 records."""

    def __init__(self, root: Path, broker: Broker) -> None:
        self.root = root
        self.broker = ("--bootstrap-servers", broker.bootstrap_servers)
        self.topic = f"scan-{uuid.uuid4().hex[:8]}"
        self.gone = f"gone-{uuid.uuid4().hex[:8]}"
        broker.create_topic(self.topic, 2)
        broker.produce(self.topic, 0, map(str, range(40)))
        broker.produce(self.topic, 1, map(str, range(10)))
        broker.delete_records(self.topic, 0, 5)
        _job(root, 1, 8, self.topic, [10, 10])
        self.newest = _job(root, 1, 9, self.topic, [30, 4])
        self.earliest = _job(root, 2, 1, self.topic, [-2, 10])
        self.expired = _job(root, 3, 1, self.topic, [4, 10])
        self.beyond_end = _job(root, 4, 1, self.topic, [41, 10])
        self.without_topic = _job(root, 5, 1, self.gone, [1, 1])
        self.unaligned = write_checkpoint(
            root / JOB(6) / "chk-1",
            source_operator(SourceState({0: splits(self.topic, [30, 4])})),
            in_flight_operator(7),
            checkpoint_id=1,
        )
        self.savepoint = write_checkpoint(
            root / "savepoints" / "savepoint-abcdef-0123456789ab",
            source_operator(SourceState({0: splits(self.topic, [30, 4])})),
        )
        self.corrupt = root / JOB(7) / "chk-3"
        self.corrupt.mkdir(parents=True)
        (self.corrupt / "_metadata").write_bytes(b"not one")
        self.half_written = root / JOB(1) / "chk-10"
        self.half_written.mkdir()

    def scan(self, *arguments: str | Path) -> Result:
        return migrate("scan", self.root, *arguments)


def _lines(result: Result) -> dict[str, list[str]]:
    """The cells of each line of the table, by checkpoint."""
    assert result.code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    return {row[0]: row[1:] for row in rows}


def test_each_job_is_a_line_by_its_newest_complete_checkpoint(spark: Spark, estate: Estate) -> None:
    result = estate.scan()
    assert _lines(result) == {
        str(estate.newest): ["1", "2", "yes"],
        str(estate.earliest): ["1", "2", "yes"],
        str(estate.expired): ["1", "2", "yes"],
        str(estate.beyond_end): ["1", "2", "yes"],
        str(estate.without_topic): ["1", "2", "yes"],
        str(estate.unaligned): ["1", "2", "no", "in-flight-records"],
        str(estate.corrupt): ["unreadable", "corrupt"],
        str(estate.savepoint): ["1", "2", "yes"],
    }
    assert result.stderr.splitlines() == [
        "7 jobs and 1 savepoint, 14 positions; 10 checkpoints read, 2 of them unreadable",
        "can move: 6",
        "cannot move: 1 (in-flight-records 1)",
        "unreadable: 1 (corrupt 1)",
    ]
    latest_only = estate.scan("--latest-only")
    assert latest_only.stdout == result.stdout
    assert "8 checkpoints read, 1 of them unreadable" in latest_only.stderr


def test_a_broker_tells_the_lag_and_what_is_no_longer_there(spark: Spark, estate: Estate) -> None:
    result = estate.scan(*estate.broker)
    assert _lines(result) == {
        str(estate.newest): ["1", "2", "16", "yes"],
        # A partition without a record read yet goes on from the log start, which is 5.
        str(estate.earliest): ["1", "2", "35", "yes"],
        str(estate.expired): ["1", "2", "36", "no", "expired"],
        # What lies beyond the log end of another topic has no lag.
        str(estate.beyond_end): ["1", "2", "0+?", "no", "beyond-end"],
        str(estate.without_topic): ["1", "2", "no", "topic-gone"],
        str(estate.unaligned): ["1", "2", "16", "no", "in-flight-records"],
        str(estate.corrupt): ["unreadable", "corrupt"],
        str(estate.savepoint): ["1", "2", "16", "yes"],
    }
    assert "lag: up to 119 records" in result.stderr.splitlines()


def test_the_call_tells_it_all_as_values(spark: Spark, estate: Estate) -> None:
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
    assert gone.why_not == (f"2 positions of topics that the broker does not have: {estate.gone}",)
    assert (gone.lag, gone.lag_unknown) == (None, 2)
    assert jobs[str(estate.corrupt)].error_kind == "corrupt"
    assert inventory.totals.movable == 3


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_output_is_each_view_as_a_table(
    spark: Spark, estate: Estate, tmp_path: Path, table_format: str
) -> None:
    directory = tmp_path / "out"
    done = estate.scan("--output", directory, "--format", table_format)
    assert done.code == 0, done.stderr
    for view in _VIEWS:
        expected = read_checkpoints(spark.session, str(estate.root), view=view)
        if table_format == "parquet":
            written = spark.session.read.parquet(str(directory / view))
            assert written.schema.simpleString() == expected.schema.simpleString()
            assert sorted(map(str, written.collect())) == sorted(map(str, expected.collect()))
        else:
            rows = [row for file in (directory / view).glob("*.csv") for row in _csv(file)]
            assert len(rows) == expected.count()
            assert {tuple(row) for row in rows} == {tuple(expected.columns)}
            errors = [row["pointer"] for row in rows if row["error_kind"]]
            assert sorted(errors) == sorted(map(str, [estate.half_written, estate.corrupt]))
    # Nothing is written over, and nothing scanned first.
    again = estate.scan("--output", directory)
    assert again.code == 4
    assert "is not empty; name a new directory" in again.stderr


def _csv(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_a_root_with_credentials_is_a_line_without_them(
    spark: Spark, estate: Estate, tmp_path: Path, table_format: str
) -> None:
    roots = ["s3://AKIA:hush@bucket/flink", "abfss://c@a.dfs.core.windows.net/flink?sv=1&sig=hush"]
    out = ("--output", tmp_path / "out", "--format", table_format)
    done = migrate("scan", estate.newest, *roots, *out, "--plans", tmp_path / "plans", "-v")
    lines = _lines(done)
    assert lines["s3://…@bucket/flink"][0] == "unreadable"
    assert str(estate.newest) in lines
    assert "hush" not in done.stdout + done.stderr
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        assert b"hush" not in file.read_bytes()
    tables = spark.session.read.option("header", True).format(table_format)
    for view in _VIEWS:
        rows = tables.load(str(tmp_path / "out" / view)).collect()
        assert "hush" not in str(rows)
        assert "credentials in a URL are refused" in str(rows)


def test_positions_are_written_with_their_lag(spark: Spark, estate: Estate, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    done = estate.scan("--output", directory, *estate.broker)
    assert done.code == 0, done.stderr
    rows = spark.session.read.parquet(str(directory / "positions")).collect()
    found = {
        (row.pointer, row.partition): (row.log_start, row.log_end, row.lag, row.obstacle)
        for row in rows
        if row.error_kind is None
    }
    assert found[str(estate.newest), 0] == (5, 40, 10, None)
    assert found[str(estate.newest), 1] == (0, 10, 6, None)
    assert found[str(estate.earliest), 0] == (5, 40, 35, None)
    assert found[str(estate.expired), 0] == (5, 40, 36, "expired")
    assert found[str(estate.beyond_end), 0] == (5, 40, None, "beyond-end")
    assert found[str(estate.without_topic), 0] == (None, None, None, "topic-gone")
    # One that is not a job's newest too.
    assert found[str(estate.root / JOB(1) / "chk-8"), 0] == (5, 40, 30, None)


def _plan(file: Path) -> dict[str, Any]:
    """A saved plan, but for the moment it was made."""
    saved: dict[str, Any] = json.loads(file.read_text())
    del saved["created_at"]
    return saved


def test_plans_are_those_that_each_command_would_save(
    spark: Spark, estate: Estate, tmp_path: Path
) -> None:
    done = estate.scan("--plans", tmp_path / "plans", *estate.broker)
    assert done.code == 0, done.stderr
    index = {row["pointer"]: row for row in _csv(tmp_path / "plans" / "index.csv")}
    assert index.keys() == _lines(done).keys()
    planned = [estate.newest, estate.earliest, estate.savepoint]
    for chk in planned:
        alone = tmp_path / f"{uuid.uuid4()}.json"
        made = migrate("to-spark", chk, *estate.broker, "--plan-out", alone)
        assert made.code == 0, made.stderr
        assert _plan(tmp_path / "plans" / index[str(chk)]["plan"]) == _plan(alone)
    files = {row["plan"] for row in index.values() if row["plan"]}
    assert len(files) == len(planned)
    assert {file.name for file in (tmp_path / "plans").iterdir()} == {*files, "index.csv"}
    assert "7 bytes of records lie in its channels" in index[str(estate.unaligned)]["reasons"]
    assert index[str(estate.corrupt)]["reasons"]
    assert estate.gone in index[str(estate.without_topic)]["reasons"]
    assert "plans: 3" in done.stderr.splitlines()
    # And it can be applied.
    applied = migrate(
        "to-spark", "--plan", tmp_path / "plans" / index[str(estate.newest)]["plan"], *estate.broker
    )
    assert (applied.code, json.loads(applied.stdout)) == (0, {estate.topic: {"0": 30, "1": 4}})


def test_plans_for_groups(spark: Spark, estate: Estate, tmp_path: Path) -> None:
    asked = ("--plans", tmp_path / "plans", "--group", "spark-{job}")
    done = estate.scan(*asked, *estate.broker)
    assert done.code == 0, done.stderr
    index = {row["pointer"]: row for row in _csv(tmp_path / "plans" / "index.csv")}
    row = index[str(estate.newest)]
    assert row["group"] == f"spark-{JOB(1)}"
    alone = tmp_path / "alone.json"
    made = migrate(
        *("commit-group", estate.newest, "--group", row["group"]),
        *(*estate.broker, "--plan-out", alone),
    )
    assert made.code == 0, made.stderr
    assert _plan(tmp_path / "plans" / row["plan"]) == _plan(alone)


def test_a_plan_that_only_the_broker_refuses_is_told_with_its_reasons(
    spark: Spark, estate: Estate, tmp_path: Path
) -> None:
    """Partitions that a job still has to discover, and may begin anywhere: no position shows it."""
    root = tmp_path / "estate"
    state = SourceState({0: splits(estate.topic, [30])}, initial_discovery_finished=False)
    chk = write_checkpoint(root / JOB(1) / "chk-1", source_operator(state), checkpoint_id=1)
    done = migrate("scan", root, "--plans", tmp_path / "plans", *estate.broker)
    ((pointer, cells),) = _lines(done).items()
    assert (pointer, cells[:4]) == (str(chk), ["1", "1", "10", "no"])
    assert "starting policy" in " ".join(cells)
    assert not list((tmp_path / "plans").glob("*.json"))
    assert "plans: 0; 1 that can move were refused" in done.stderr.splitlines()


def test_tables_that_are_written_are_told_where_stdout_is_full(
    spark: Spark, estate: Estate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["migrate", "scan", str(estate.newest), "--output"])
    sys.argv.append(str(tmp_path / "out"))
    told = io.StringIO()
    with (
        Path("/dev/full").open("w") as full,
        redirect_stdout(full),
        redirect_stderr(told),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    assert ended.value.code == 5
    assert told.getvalue().splitlines()[-1] == (
        f"migrate: stdout: No space left on device; {tmp_path / 'out'}: written, and whole"
    )
    assert (tmp_path / "out" / "positions" / "_SUCCESS").exists()


def test_a_session_that_is_there_has_its_master(spark: Spark, estate: Estate) -> None:
    done = estate.scan("--master", "local[1]")
    assert (done.code, done.stdout) == (2, "")
    assert "there is a Spark session already" in done.stderr


def test_a_job_that_goes_on_while_it_is_scanned_is_a_line_and_no_checkpoint_is_there_twice(
    spark: Spark, tmp_path: Path
) -> None:
    """What was found is not what is read: the newest was subsumed, or deleted, in between."""
    for job, number in ((1, 1), (1, 2), (2, 1), (2, 2), (3, 1)):
        _job(tmp_path, job, number, "t", [number])
    being_written = tmp_path / JOB(1) / "chk-3"
    being_written.mkdir()
    found = mark_newest(discover([str(tmp_path)], Files()))
    for job in (1, 2, 3):
        vanish(str(tmp_path / JOB(job) / ("chk-1" if job == 3 else "chk-2")))
    being_written.rmdir()
    _job(tmp_path, 1, 3, "t", [3])
    _job(tmp_path, 3, 9, "t", [9])
    with scan_estate(spark.session, found, tables=True, broker=False) as scanned:
        jobs = {job.pointer: job.movable for job in scanned.jobs()}
        counts = scanned.counts()
        scanned.write(str(tmp_path / "out"), TableFormat.PARQUET)
    assert jobs == {
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
    assert counts == (7, 3)


def test_roots_that_are_not_there_are_no_inventory(spark: Spark, tmp_path: Path) -> None:
    gone = migrate("scan", tmp_path / "gone")
    assert (gone.code, gone.stdout) == (3, "")
    assert "no such directory" in gone.stderr
    nothing = migrate("scan", tmp_path)
    assert (nothing.code, nothing.stdout) == (0, "")
    assert "no checkpoint" in nothing.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return process_environment(tmp_path_factory.mktemp("conf"))


def test_without_a_session_it_starts_spark_and_shows_a_bar_on_a_terminal(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """stdout is the table alone, and nothing is left where it was started."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "migrate.cli", "scan", str(GOLDEN / "2.2" / "stop")],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        cwd=tmp_path,
        env={**environment, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:  # closed at its other end
            break
    stdout, _ = done.communicate()
    os.close(ours)
    assert done.returncode == 0, shown
    header, line = stdout.splitlines()
    assert header.split()[0] == "checkpoint"
    assert "savepoint-" in line and line.endswith("yes")
    assert "━".encode() in shown and b"can move: 1" in shown
    assert not list(tmp_path.iterdir())


def test_spark_submit_runs_it(tmp_path: Path, environment: dict[str, str]) -> None:
    spark_submit = Path(sys.executable).with_name("spark-submit")
    command = [str(spark_submit), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command += [str(submit.__file__), str(GOLDEN / "2.2" / "stop"), "--output", "out"]
    command.append("--quiet")  # what it told would be on stdout: spark-submit makes one of the two
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    _, line = done.stdout.splitlines()
    assert line.endswith("yes")
    assert (tmp_path / "out" / "positions" / "_SUCCESS").exists()
