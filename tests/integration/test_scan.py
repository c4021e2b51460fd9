"""Run ``migrate scan`` with a real broker and without Spark.

``test_scan_on_spark.py`` compares the results with a scan on Spark.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest

from migrate.extensions.fleet.view_columns import CheckpointView
from tests.support.checkpoints import SourceState, source_operator, splits, write_checkpoint
from tests.support.command import migrate
from tests.support.few_jobs import JOB, FewJobs, csv_rows, lines, scan, write_job
from tests.support.golden import GOLDEN
from tests.support.kafka import Broker
from tests.support.stores import S3

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def estate(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> FewJobs:
    return FewJobs(tmp_path_factory.mktemp("estate"), broker)


def test_scan_lists_each_job_with_newest_complete_checkpoint(estate: FewJobs) -> None:
    result = scan(estate.root)
    assert lines(result) == {
        str(estate.newest): ["yes", "1", "2"],
        str(estate.earliest): ["yes", "1", "2"],
        str(estate.expired): ["yes", "1", "2"],
        str(estate.beyond_end): ["yes", "1", "2"],
        str(estate.without_topic): ["yes", "1", "2"],
        str(estate.unaligned): ["no", "1", "2", "in-flight-records"],
        str(estate.corrupt): ["unreadable", "corrupt"],
        str(estate.savepoint): ["yes", "1", "2"],
    }
    assert result.stderr.splitlines() == [
        "7 jobs and 1 savepoint, 14 positions; 10 checkpoints read, 2 of them unreadable",
        "yes: 6 (no obstacle was found; the scan does not check whether jobs are running or were "
        "restarted)",
        "no: 1 (in-flight-records 1)",
        "unreadable: 1 (corrupt 1)",
        "if the job is running, a stop-with-savepoint resolves in-flight-records (in an "
        "unaligned checkpoint); use `migrate cut-over`, or stop the job and scan its savepoint",
        "next, to save a plan for each job without an obstacle: migrate scan "
        f"{estate.root} --plans plans -b HOST:PORT",
    ]
    latest_only = scan(estate.root, "--latest-only")
    assert latest_only.stdout == result.stdout
    assert "8 checkpoints read, 1 of them unreadable" in latest_only.stderr


def test_scan_with_broker_reports_lag_and_missing_records(estate: FewJobs) -> None:
    result = scan(estate.root, *estate.broker)
    assert lines(result) == {
        str(estate.newest): ["yes", "1", "2", "16"],
        # A partition without consumed records starts at the log start offset, which is 5.
        str(estate.earliest): ["yes", "1", "2", "35"],
        str(estate.expired): ["no", "1", "2", "36", "expired"],
        # A position beyond the log end offset of a different topic has no lag.
        str(estate.beyond_end): ["no", "1", "2", "0+?", "beyond-end"],
        str(estate.without_topic): ["no", "1", "2", "topic-gone"],
        str(estate.unaligned): ["no", "1", "2", "16", "in-flight-records"],
        str(estate.corrupt): ["unreadable", "corrupt"],
        str(estate.savepoint): ["yes", "1", "2", "16"],
    }
    assert "lag: up to 119 records, plus 3 positions with unknown lag" in result.stderr.splitlines()


def test_scan_reports_lag_of_topic_with_new_partition_as_incomplete(
    broker: Broker, tmp_path: Path
) -> None:
    """A plan also moves the new partition. A new partition without records adds no lag."""
    topic = f"grows-{uuid.uuid4().hex[:8]}"
    broker.create_topic(topic, 1)
    broker.produce(topic, 0, map(str, range(10)))
    chk = write_job(tmp_path, 1, 9, topic, [10])
    flags = ("-b", broker.bootstrap_servers)
    broker.add_partitions(topic, 2)
    before = scan(tmp_path, *flags)
    assert lines(before) == {str(chk): ["yes", "1", "1", "0"]}
    assert "lag: up to 0 records" in before.stderr.splitlines()
    broker.produce(topic, 1, map(str, range(100)))
    after = scan(tmp_path, *flags)
    assert lines(after) == {str(chk): ["yes", "1", "1", "0+?"]}
    assert (
        "lag: up to 0 records, plus 1 partition with records that a checkpoint lacks"
        in after.stderr.splitlines()
    )


def test_positions_table_of_scan_contains_lag(estate: FewJobs, tmp_path: Path) -> None:
    directory = tmp_path / "out"
    done = scan(estate.root, "--output", directory, *estate.broker)
    assert done.code == 0, done.stderr
    rows = parquet.read_table(directory / "positions").to_pylist()
    found = {
        (row["pointer"], row["partition"]): tuple(
            row[name] for name in ("log_start", "log_end", "lag", "obstacle")
        )
        for row in rows
        if row["error_kind"] is None
    }
    assert found[str(estate.newest), 0] == (5, 40, 10, None)
    assert found[str(estate.newest), 1] == (0, 10, 6, None)
    assert found[str(estate.earliest), 0] == (5, 40, 35, None)
    assert found[str(estate.expired), 0] == (5, 40, 36, "expired")
    assert found[str(estate.beyond_end), 0] == (5, 40, None, "beyond-end")
    assert found[str(estate.without_topic), 0] == (None, None, None, "topic-gone")
    # The table also contains checkpoints that are not a job's newest.
    assert found[str(estate.root / JOB(1) / "chk-8"), 0] == (5, 40, 30, None)


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_scan_tables_in_object_store_match_local_tables(
    estate: FewJobs, tmp_path: Path, s3: S3, table_format: str
) -> None:
    url = f"{s3.store.root}/{tmp_path.name}"
    for place in (str(tmp_path / "out"), url):
        done = scan(estate.root, "--output", place, "--format", table_format)
        assert done.code == 0, done.stderr
    local = {
        file.relative_to(tmp_path / "out").as_posix(): file.read_bytes()
        for file in (tmp_path / "out").rglob("*")
        if file.is_file()
    }
    assert len(local) == 8 and "positions/_SUCCESS" in local
    stored = s3.store.system.find(url)
    root = url.partition("://")[2]
    assert {one.removeprefix(f"{root}/"): s3.store.system.cat_file(one) for one in stored} == local
    again = scan(estate.root, "--output", url)
    assert (again.code, again.stdout) == (4, "")
    assert "is not empty; choose a new directory" in again.stderr


@pytest.mark.parametrize("table_format", ["parquet", "csv"])
def test_scan_lists_root_url_without_its_credentials(
    estate: FewJobs, tmp_path: Path, table_format: str
) -> None:
    roots = ["s3://AKIA:hush@bucket/flink", "abfss://c@a.dfs.core.windows.net/flink?sv=1&sig=hush"]
    out = ("--output", tmp_path / "out", "--format", table_format)
    done = scan(estate.newest, *roots, *out, "--plans", tmp_path / "plans", "-v")
    told = lines(done)
    assert told["s3://…@bucket/flink"][0] == "unreadable"
    assert str(estate.newest) in told
    assert "hush" not in done.stdout + done.stderr
    for file in filter(Path.is_file, tmp_path.rglob("*")):
        assert b"hush" not in file.read_bytes()
    for view in CheckpointView:
        table = tmp_path / "out" / view.value
        rows: list[Any] = [row for file in table.glob("*.csv") for row in csv_rows(file)]
        if table_format == "parquet":
            rows = parquet.read_table(table).to_pylist()
        assert "hush" not in str(rows)
        assert "migrate refuses credentials in a URL" in str(rows)


def test_output_to_dbfs_without_spark_is_usage_error(estate: FewJobs) -> None:
    done = scan(estate.root, "--output", "dbfs:/tables")
    assert (done.code, done.stdout) == (2, "")
    assert "only Spark can write to a URI of this kind; add --master URL" in done.stderr


def _plan(file: Path) -> dict[str, Any]:
    """Return a saved plan without its creation time and its checksum."""
    saved: dict[str, Any] = json.loads(file.read_text())
    del saved["created_at"], saved["sha256"]
    return saved


def test_scan_and_to_spark_save_same_plans(estate: FewJobs, tmp_path: Path) -> None:
    done = scan(estate.root, "--plans", tmp_path / "plans", *estate.broker)
    assert done.code == 0, done.stderr
    index = {row["pointer"]: row for row in csv_rows(tmp_path / "plans" / "index.csv")}
    assert index.keys() == lines(done).keys()
    planned = [estate.newest, estate.earliest, estate.savepoint]
    for chk in planned:
        alone = tmp_path / f"{uuid.uuid4()}.json"
        made = migrate("to-spark", chk, *estate.broker, "--plan-out", alone)
        assert made.code == 0, made.stderr
        assert _plan(tmp_path / "plans" / index[str(chk)]["plan"]) == _plan(alone)
    files = {row["plan"] for row in index.values() if row["plan"]}
    assert len(files) == len(planned)
    assert {file.name for file in (tmp_path / "plans").iterdir()} == {*files, "index.csv"}
    assert (
        "the operator's channels contain 7 bytes of records"
        in index[str(estate.unaligned)][("reasons")]
    )
    assert index[str(estate.corrupt)]["reasons"]
    assert estate.gone in index[str(estate.without_topic)]["reasons"]
    assert "plans: 3 saved" in done.stderr.splitlines()
    # A saved plan can be applied.
    applied = migrate(
        "to-spark", "--plan", tmp_path / "plans" / index[str(estate.newest)]["plan"], *estate.broker
    )
    assert (applied.code, json.loads(applied.stdout)) == (0, {estate.topic: {"0": 30, "1": 4}})


def test_scan_saves_plans_for_groups(estate: FewJobs, tmp_path: Path) -> None:
    asked = ("--plans", tmp_path / "plans", "--group", "spark-{job}")
    done = scan(estate.root, *asked, *estate.broker)
    assert done.code == 0, done.stderr
    index = {row["pointer"]: row for row in csv_rows(tmp_path / "plans" / "index.csv")}
    row = index[str(estate.newest)]
    assert row["group"] == f"spark-{JOB(1)}"
    alone = tmp_path / "alone.json"
    made = migrate(
        *("commit-group", estate.newest, "--group", row["group"]),
        *(*estate.broker, "--plan-out", alone),
    )
    assert made.code == 0, made.stderr
    assert _plan(tmp_path / "plans" / row["plan"]) == _plan(alone)


def test_scan_lists_job_and_reasons_if_its_plan_is_refused(estate: FewJobs, tmp_path: Path) -> None:
    """The job had not finished its first discovery, so its state lacks some partitions."""
    root = tmp_path / "estate"
    state = SourceState({0: splits(estate.topic, [30])}, initial_discovery_finished=False)
    chk = write_checkpoint(root / JOB(1) / "chk-1", source_operator(state), checkpoint_id=1)
    done = scan(root, "--plans", tmp_path / "plans", *estate.broker)
    ((pointer, cells),) = lines(done).items()
    assert (pointer, cells[:4]) == (str(chk), ["no", "1", "1", "10+?"])
    assert "starting policy" in " ".join(cells)
    assert not list((tmp_path / "plans").glob("*.json"))
    assert {
        "yes: 0",
        "no: 1 (no plan 1)",
        "plans: 0 saved, 1 refused",
    } <= set(done.stderr.splitlines())


def test_scan_reports_written_tables_even_if_stdout_is_full(
    estate: FewJobs, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "migrate", "scan", str(estate.newest), "--output", str(out)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 5
    assert ended.stderr.splitlines()[-1] == (
        f"migrate: stdout: No space left on device; {out}: written completely"
    )
    assert (out / "positions" / "_SUCCESS").exists()


def test_scan_fails_for_missing_root_and_lists_nothing_for_empty_root(tmp_path: Path) -> None:
    gone = scan(tmp_path / "gone")
    assert (gone.code, gone.stdout) == (3, "")
    assert "no such directory" in gone.stderr
    nothing = scan(tmp_path)
    assert (nothing.code, nothing.stdout) == (0, "")
    assert "no checkpoint" in nothing.stderr


def test_scan_on_terminal_shows_progress_bar(tmp_path: Path) -> None:
    """stdout contains only the table, and the working directory stays empty."""
    ours, theirs = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-m", "migrate", "scan", str(GOLDEN / "2.2" / "stop")],
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 1 << 16)
        except OSError:  # the other end was closed
            break
    stdout, _ = done.communicate()
    os.close(ours)
    assert done.returncode == 0, shown
    header, line = stdout.splitlines()
    assert header.split()[0] == "MOVES"
    assert line.startswith("check ") and "savepoint-" in line
    assert line.endswith("  pending-transactions")
    assert "━".encode() in shown and b"check: 1 (pending-transactions 1)" in shown
    assert not list(tmp_path.iterdir())


def test_scan_lists_remaining_jobs_if_partition_has_no_leader(tmp_path: Path) -> None:
    """Regression: A partition without a leader ended the scan with exit code 6 and no table.

    The test starts two brokers with one replica, and stops the second broker.
    """
    root = tmp_path / "root"
    first, second = write_job(root, 1, 1, "payments", [3, 4]), write_job(root, 2, 1, "orders", [2])
    with Broker(listeners={"OTHER": "PLAINTEXT"}) as broker:
        broker.create_topic("orders", 1)
        broker.produce("orders", 0, map(str, range(10)))
        with broker.second("payments"):
            broker.produce("payments", 0, map(str, range(10)))
        tables = tmp_path / "tables"
        options = ("-b", broker.bootstrap_servers, "--output", tables, "--format", "csv")
        result = scan(root, *options)
        assert lines(result) == {
            str(first): ["no", "1", "2", "7+?", "unreachable"],
            str(second): ["yes", "1", "1", "8"],
        }
        (file,) = (tables / "positions").glob("*.csv")
        rows = {
            (row["topic"], row["partition"]): (row["lag"], row["obstacle"], row["unknown"])
            for row in csv_rows(file)
        }
        answered = {key: value for key, value in rows.items() if key != ("payments", "1")}
        assert answered == {("payments", "0"): ("7", "", ""), ("orders", "0"): ("8", "", "")}
        lag, obstacle, why = rows["payments", "1"]
        assert (lag, obstacle) == ("", "unreachable")
        assert "payments-1" in why
        assert "lag: up to 15 records, plus 1 position with unknown lag" in result.stderr
