"""Summarize a scan without Spark: jobs, totals, the table, and plans for many jobs."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from migrate.extensions.fleet import scan as scanning
from migrate.extensions.fleet.candidates import Candidate, mark_newest
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.inventory import Inventory, JobPlan, ScannedJob, add_ran_on, totals
from migrate.extensions.fleet.report import inventory_table, summary_lines
from migrate.extensions.fleet.save_plans import (
    INDEX,
    INDEX_COLUMNS,
    check_can_save,
    file_name,
    save_plans,
)
from migrate.extensions.fleet.scan_run import ScanRequest, read_chunk
from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.source import Source
from migrate.model.errors import Refused, UsageError
from migrate.model.option_names import command_line_notation
from migrate.moves import load_inputs
from migrate.moves.options import Request
from migrate.spark.session import failure_of
from migrate.storage.files import Files
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import migrate
from tests.support.many_jobs import DAMAGES, Condition, delete_as_flink, generate


def _job(pointer: str, **values: Any) -> ScannedJob:
    directory = str(Path(pointer).parent) if "/chk-" in pointer else None
    return ScannedJob(pointer, directory, None, **values)


_NO_OBSTACLE = (
    "no obstacle was found; the scan does not check whether jobs are running or were restarted"
)
_MOVES = _job("/e/a/chk-9", sources=1, positions=2, lag=16)
_UNALIGNED = _job(
    "/e/b/chk-1", sources=2, positions=5, obstacles=("in-flight-records",), why_not=("7 bytes",)
)
_UNREADABLE = _job("/e/c/chk-2", error_kind="truncated", error="/e/c/chk-2: cut short")


def test_scan_represents_job_by_its_newest_complete_checkpoint() -> None:
    def candidate(name: str, size: int | None = 1) -> Candidate:
        job = f"/e/{name.partition('/')[0]}" if "/" in name else None
        return Candidate(f"/e/{name}", job, size)

    candidates = [
        candidate("a/chk-9"),
        candidate("a/chk-10"),
        candidate("a/chk-11", None),  # incomplete
        candidate("b/chk-3", None),
        candidate("b/chk-4", None),
        candidate("savepoint-1"),
        candidate("savepoint-2"),
    ]
    marked = mark_newest(candidates)
    assert [replace(candidate, chk_numbers=None) for candidate in marked] == candidates
    assert marked[1].chk_numbers == frozenset({9, 10, 11})
    assert [c.pointer for c in marked if c.chk_numbers is not None] == [
        *("/e/a/chk-10", "/e/b/chk-4", "/e/savepoint-1", "/e/savepoint-2")
    ]


def test_totals_count_jobs_positions_obstacles_and_errors() -> None:
    told = totals([_MOVES, _UNALIGNED, _UNREADABLE, _job("/e/savepoint-1", error_kind="truncated")])
    assert (told.jobs, told.savepoints) == (3, 1)
    assert (told.movable, told.not_read) == (1, 2)
    assert (told.positions, told.lag) == (7, 16)
    assert told.obstacles == {"in-flight-records": 1}
    assert told.errors == {"truncated": 2}
    assert totals([_UNALIGNED]).lag is None


@pytest.mark.parametrize("kind", ["not found", "unreadable", "unavailable"])
def test_missing_scan_root_is_counted_as_unreadable_but_not_as_job(kind: str) -> None:
    missing = _job("/e/nope", error_kind=kind, error="/e/nope: no such directory")
    told = totals([_MOVES, missing])
    assert (told.jobs, told.savepoints, told.unlistable) == (1, 0, 1)
    assert (told.movable, told.not_read) == (1, 1)
    assert list(summary_lines(Inventory((_MOVES, missing), 2, 1))) == [
        "1 job, 2 positions; 1 checkpoint read",
        "lag: up to 16 records",
        f"yes: 1 ({_NO_OBSTACLE})",
        f"unreadable: 1 ({kind} 1)",
    ]


_ENDS = (
    "if the job is running, a stop-with-savepoint resolves {}; use `migrate cut-over`, or stop "
    "the job and scan its savepoint"
)


def test_table_and_summary_show_jobs_and_lag() -> None:
    inventory = Inventory((_MOVES, _UNALIGNED, _UNREADABLE), 12, 1)
    assert "".join(inventory_table(inventory, io.StringIO())) == (
        "MOVES       CHECKPOINT  SOURCES  PARTITIONS  LAG  WHY\n"
        "yes         /e/a/chk-9        1           2   16\n"
        "no          /e/b/chk-1        2           5       in-flight-records\n"
        "unreadable  /e/c/chk-2                            truncated\n"
        "total                         3           7   16\n"
    )
    partly_known = replace(_MOVES, lag_unknown=2)
    assert list(summary_lines(Inventory((partly_known,), 1, 0)))[1] == (
        "lag: up to 16 records, plus 2 positions with unknown lag"
    )
    grown = replace(_MOVES, unlisted=1)
    assert "  16+?\n" in "".join(inventory_table(Inventory((grown,), 1, 0), io.StringIO()))
    assert list(summary_lines(Inventory((grown,), 1, 0)))[1] == (
        "lag: up to 16 records, plus 1 partition with records that a checkpoint lacks"
    )
    assert list(summary_lines(inventory)) == [
        "3 jobs, 7 positions; 12 checkpoints read, 1 of them unreadable",
        "lag: up to 16 records",
        f"yes: 1 ({_NO_OBSTACLE})",
        "no: 1 (in-flight-records 1)",
        "unreadable: 1 (truncated 1)",
        _ENDS.format("in-flight-records (in an unaligned checkpoint)"),
    ]


def test_summary_lists_obstacles_resolved_by_stop_with_savepoint() -> None:
    """Regression: The scan reported "no" for a job, but its cut-over reported "no obstacle"."""
    pending = _job("/e/d/chk-1", obstacles=("pending-transactions",), positions=1)
    *_, last = summary_lines(Inventory((pending,), 1, 1))
    assert last == _ENDS.format("pending-transactions")
    *_, last = summary_lines(Inventory((pending, _UNALIGNED), 2, 1))
    assert "(in an unaligned checkpoint) and pending-transactions; use `migrate cut-over`" in last


def test_counts_in_summary_equal_numbers_of_rows_in_table() -> None:
    """Regression: The table had 21 rows with "yes", but the summary counted 84.

    The summary included 63 checkpoints without a plan.
    """
    checked = _job("/e/d/chk-1", to_check=("pending-transactions",), positions=1)
    refused = _job("/e/f/chk-1", to_check=("pending-transactions",), positions=1)
    jobs = (_MOVES, checked, refused, _UNALIGNED, _UNREADABLE)

    def moves(inventory: Inventory) -> list[str]:
        table = "".join(inventory_table(inventory, io.StringIO())).splitlines()
        return [line.split()[0] for line in table[1:-1]]

    before = Inventory(jobs, 5, 1)
    assert moves(before) == ["yes", "check", "check", "no", "unreadable"]
    assert list(summary_lines(before))[2:] == [
        f"yes: 1 ({_NO_OBSTACLE})",
        "check: 2 (pending-transactions 2)",
        "no: 1 (in-flight-records 1)",
        "unreadable: 1 (truncated 1)",
        _ENDS.format("in-flight-records (in an unaligned checkpoint)"),
    ]
    plans = {job.pointer: JobPlan(None, f"{number}.json") for number, job in enumerate(jobs)}
    for job in (refused, _UNALIGNED, _UNREADABLE):
        plans[job.pointer] = JobPlan(None, None, reasons=("which cluster?",))
    after = Inventory(jobs, 5, 1, plans)
    assert moves(after) == ["yes", "check", "no", "no", "unreadable"]
    assert list(summary_lines(after))[2:] == [
        f"yes: 1 ({_NO_OBSTACLE})",
        "check: 1 (pending-transactions 1)",
        "no: 2 (in-flight-records 1, no plan 1)",
        "unreadable: 1 (truncated 1)",
        "plans: 2 saved, 1 refused",
        _ENDS.format("in-flight-records (in an unaligned checkpoint)"),
    ]
    assert "which cluster?" in "".join(inventory_table(after, io.StringIO()))


def test_control_characters_in_table_are_escaped() -> None:
    inventory = Inventory((_job("/e/\x1b[2J\nfake/chk-1"),), 1, 0)
    table = "".join(inventory_table(inventory, io.StringIO()))
    assert table.splitlines()[1].split()[1].startswith("/e/\\x1b[2J\\nfake")


@pytest.mark.parametrize(
    "directory", ["..", ".", "", "a/../../b", "x" * 400, "\0", "ключ", "index.csv", "\udcff"]
)
def test_plan_file_name_is_safe_for_any_job_directory(directory: str) -> None:
    job = ScannedJob(f"/e/{directory}/chk-1", f"/e/{directory}", None)
    name = file_name(job)
    assert Path(name).name == name
    assert name.isascii() and name.isprintable() and len(name) < 200
    assert name.endswith(".json") and not name.startswith(".")


def test_plan_file_names_are_unique() -> None:
    pointers = [f"/e/{team}/a{sign}b/chk-{n}" for team in "xy" for sign in "/:_" for n in (1, 2)]
    names = {file_name(ScannedJob(one, str(Path(one).parent), None)) for one in pointers}
    assert len(names) == len(pointers)
    with_id = file_name(ScannedJob("/e/" + "ab" * 16 + "/chk-7", "/e/x", "ab" * 16))
    assert with_id.startswith("ab" * 16 + "-chk-7-")
    savepoint = file_name(ScannedJob("/e/savepoint-1", None, None))
    assert savepoint.startswith("savepoint-1-")


def test_invalid_plan_options_of_scan_are_refused(tmp_path: Path) -> None:
    check_can_save(tmp_path, None, broker=False)
    check_can_save(tmp_path / "new", "spark-{job}", broker=True)
    with pytest.raises(UsageError, match="require a broker"):
        check_can_save(tmp_path, "spark-{job}", broker=False)
    with pytest.raises(UsageError, match="share this group"):
        check_can_save(tmp_path, "spark", broker=True)
    (tmp_path / "there").touch()
    with pytest.raises(UsageError, match="Not a directory"):
        check_can_save(tmp_path / "there", None, broker=False)
    with pytest.raises(Refused, match="is not empty"):
        check_can_save(tmp_path, None, broker=False)


def test_plan_saved_by_scan_equals_plan_of_to_spark(tmp_path: Path) -> None:
    known, vanished = (
        write_source(tmp_path / "e" / name / "chk-7", {0: splits("t", [3, 4])}) for name in "ab"
    )
    earliest = write_source(tmp_path / "e" / "c" / "chk-7", {0: splits("t", [-2])})
    jobs = [
        *(_job(str(known)), _job(str(vanished)), _job(str(earliest))),
        *(_UNALIGNED, _UNREADABLE),
    ]
    delete_as_flink(str(vanished))
    with command_line_notation():
        plans = save_plans(jobs, tmp_path / "plans", None)
    assert list(plans) == [job.pointer for job in jobs]
    alone = tmp_path / "alone.json"
    assert migrate("to-spark", known, "--plan-out", alone).code == 0
    file = plans[str(known)].file
    assert file is not None

    def saved(path: Path) -> dict[str, Any]:
        plan: dict[str, Any] = json.loads(path.read_text())
        del plan["created_at"], plan["sha256"]  # both depend on the time
        return plan

    assert saved(tmp_path / "plans" / file) == saved(alone)
    assert {path.name for path in (tmp_path / "plans").iterdir()} == {file, INDEX}
    assert "no such file" in plans[str(vanished)].reasons[0]
    assert "only a broker can resolve" in plans[str(earliest)].reasons[0]
    assert plans[_UNALIGNED.pointer].reasons == ("7 bytes",)
    assert plans[_UNREADABLE.pointer].reasons == ("/e/c/chk-2: cut short",)
    rows = list(csv.DictReader((tmp_path / "plans" / INDEX).open()))
    assert tuple(rows[0]) == INDEX_COLUMNS
    assert [row["plan"] for row in rows] == [file, "", "", "", ""]


def test_failed_plan_of_job_does_not_affect_plans_of_remaining_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, on_a_directory, unlucky = (
        _job(str(write_source(tmp_path / "e" / name / "chk-7", {0: splits(name, [3])})))
        for name in "abc"
    )
    (tmp_path / "plans" / file_name(on_a_directory)).mkdir(parents=True)

    def choose(extraction: Extraction, request: Request) -> list[Source]:
        """Raise an unexpected error for one job, like a bug in ``migrate``."""
        if extraction.sources[0].topics == {"c"}:
            raise KeyError("c")
        return list(extraction.sources)

    monkeypatch.setattr(load_inputs, "choose", choose)
    jobs = [on_a_directory, unlucky, good]
    plans = save_plans(jobs, tmp_path / "plans", None)
    file = plans[good.pointer].file
    assert file is not None and (tmp_path / "plans" / file).is_file()
    assert plans[on_a_directory.pointer].file is None
    assert "File exists" in plans[on_a_directory.pointer].reasons[0]
    assert plans[unlucky.pointer].reasons == ("internal error: KeyError: 'c'",)
    failures = [type(plans[job.pointer].failure) for job in jobs]
    assert failures == [FileExistsError, KeyError, type(None)]
    inventory = Inventory(tuple(jobs), 3, 0, plans)
    assert list(summary_lines(inventory))[-1] == "plans: 1 saved, 2 failed"
    # The table and the summary are printed before the error.
    monkeypatch.setattr(scanning, "scan", lambda *_, **__: inventory)  # a scan without files
    done = migrate("scan", tmp_path / "e", "--plans", tmp_path / "plans")
    assert done.code == 70
    assert [line.split()[1] for line in done.stdout.splitlines()[1:]] == [
        job.pointer for job in jobs
    ]
    assert "plans: 1 saved, 2 failed" in done.stderr
    assert "Traceback" in done.stderr
    del plans[unlucky.pointer]
    jobs.remove(unlucky)
    monkeypatch.setattr(scanning, "scan", lambda *_, **__: Inventory(tuple(jobs), 2, 0, plans))
    done = migrate("scan", tmp_path / "e", "--plans", tmp_path / "plans")
    assert done.code == 6
    assert "File exists" in done.stderr.splitlines()[-1]


def test_jobs_with_same_group_get_no_plan(tmp_path: Path) -> None:
    zeros = "0" * 32  # jobs of highly available application clusters may share this ID
    jobs = [
        ScannedJob(f"/e/{team}/{zeros}/chk-7", f"/e/{team}/{zeros}", zeros) for team in ("x", "y")
    ]
    plans = save_plans(jobs, tmp_path / "plans", "spark-{job}")
    for job in jobs:
        plan = plans[job.pointer]
        assert (plan.group, plan.file) == (f"spark-{zeros}", None)
        assert "2 jobs would share this group" in plan.reasons[0]
    assert [path.name for path in (tmp_path / "plans").iterdir()] == [INDEX]


def test_plan_is_refused_if_job_without_plan_has_same_group(tmp_path: Path) -> None:
    zeros = "0" * 32
    moves, other = (
        ScannedJob(f"/e/{team}/{zeros}/chk-7", f"/e/{team}/{zeros}", zeros) for team in ("x", "y")
    )
    later = replace(other, obstacles=("in-flight-records",), why_not=("records are in flight",))
    plans = save_plans([moves, later], tmp_path / "plans", "spark-{job}")
    assert plans[moves.pointer].file is None
    assert "2 jobs would share this group" in plans[moves.pointer].reasons[0]
    assert plans[later.pointer].reasons == ("records are in flight",)


def test_scan_reports_obstacle_for_checkpoint_if_its_job_kept_running() -> None:
    """Regression: A savepoint had a plan but no obstacle, although its job had kept running."""

    def checkpoint(job_id: str, number: int, **values: Any) -> ScannedJob:
        directory = f"/e/{job_id}"
        return ScannedJob(f"{directory}/chk-{number}", directory, job_id, number, **values)

    def savepoint(digits: str, number: int) -> ScannedJob:
        return ScannedJob(f"/s/savepoint-{digits}-0123456789ab", None, None, number)

    job = f"d0ff21{'0' * 26}"
    other = f"d0ff22{'0' * 26}"
    zeros = "0" * 32  # shared by many jobs
    jobs = [
        *(savepoint("d0ff21", 20), checkpoint(job, 100)),
        *(savepoint("d0ff22", 101), checkpoint(other, 99)),
        *(savepoint("000000", 20), checkpoint(zeros, 100)),
        *(savepoint("d0ff23", 20), checkpoint(f"d0ff23{'0' * 26}", 100, error_kind="corrupt")),
        ScannedJob("/s/copy", None, None, 3),
    ]
    marked = add_ran_on(jobs)
    assert [job.obstacles for job in marked] == [
        *(("ran-on",), (), (), ("ran-on",)),
        *((), (), (), (), ()),
    ]
    assert marked[0].why_not == (
        f"the job kept running; {jobs[1].pointer} has a higher number and, by its name, is from "
        f"the same job",
    )


def test_user_must_check_checkpoints_whose_times_contradict_their_numbers() -> None:
    """A job with a fixed ID kept running after savepoint 400.

    Its checkpoint numbers then restarted at 1. If chk-3 is newer than savepoint 500, it is unclear
    which of the two is the latest.
    """
    day = datetime(2026, 11, 26, tzinfo=timezone.utc)

    def savepoint(number: int, at: datetime | None) -> ScannedJob:
        pointer = f"/s/savepoint-d0ff21-{number:012}"
        return ScannedJob(pointer, None, None, number, written_at=at)

    def checkpoint(at: datetime | None) -> ScannedJob:
        job = f"d0ff21{'0' * 26}"
        return ScannedJob(f"/e/{job}/chk-3", f"/e/{job}", job, 3, written_at=at)

    def marks(at: datetime | None) -> list[tuple[tuple[str, ...], ...]]:
        jobs = add_ran_on([savepoint(400, day), savepoint(500, day), checkpoint(at)])
        return [(job.obstacles, job.to_check) for job in jobs]

    ran_on, check = (("ran-on",), ()), ((), ("numbering-began-anew",))
    assert marks(day + timedelta(seconds=11)) == [ran_on, check, check]
    for at in (day + timedelta(seconds=10), day, None):  # for example, after a copy
        assert marks(at) == [ran_on, ((), ()), ran_on]


_SUPERSEDED = "possibly-superseded"


def _run(place: Path, number: int, seconds: int, *, offset: int = 5, operator_id: str = "a") -> str:
    """Write a checkpoint of a job, and return its path."""
    source = SourceState({0: splits("t", [offset])}, operator_id=operator_id.encode() * 16)
    write_checkpoint(place, source_operator(source), checkpoint_id=number)
    os.utime(place / "_metadata", (1_790_000_000 + seconds,) * 2)
    return str(place)


@pytest.mark.parametrize("kind", ["checkpoint", "savepoint", "fixed ID"])
def test_scan_reports_checkpoint_from_which_job_with_other_id_may_have_continued(
    tmp_path: Path, kind: str
) -> None:
    """Regression: The scan reported "yes" for a checkpoint that a restored job had superseded."""
    first = {
        "checkpoint": tmp_path / ("a" * 32) / "chk-9",
        "savepoint": tmp_path / "savepoint-aaaaaa-0123456789ab",
        "fixed ID": tmp_path / "one" / ("0" * 32) / "chk-9",
    }[kind]
    superseded = _run(first, 9, 0)
    newest = _run(tmp_path / ("b" * 32) / "chk-12", 12, 60, offset=8)
    other = _run(tmp_path / ("c" * 32) / "chk-3", 3, 0, operator_id="c")
    scanned = migrate("scan", tmp_path)
    assert scanned.code == 0
    moves = {line.split()[1]: line.split()[::4] for line in scanned.stdout.splitlines()[1:-1]}
    assert {path: cells for path, cells in moves.items() if cells[0] != "yes"} == {
        superseded: ["check", _SUPERSEDED]
    }
    assert {*moves} == {superseded, newest, other}
    assert f"{superseded} may be superseded by {newest}" in scanned.stderr
    assert f"[{_SUPERSEDED}]" in scanned.stderr
    assert "yes: 2 (no obstacle was found; " in scanned.stderr
    assert "check: 1 (possibly-superseded 1)" in scanned.stderr
    assert "newer" in migrate("explain", _SUPERSEDED).stdout


@pytest.mark.parametrize(
    ("number", "seconds", "operator_id"),
    [
        (12, 10, "a"),  # two jobs of the same program that complete checkpoints at similar times
        (12, -60, "a"),
        (8, 60, "a"),
        (12, 60, "b"),
    ],
)
def test_scan_reports_no_superseded_checkpoint_if_order_or_operators_differ(
    tmp_path: Path, number: int, seconds: int, operator_id: str
) -> None:
    _run(tmp_path / ("a" * 32) / "chk-9", 9, 0)
    _run(tmp_path / ("b" * 32) / f"chk-{number}", number, seconds, operator_id=operator_id)
    scanned = migrate("scan", tmp_path)
    assert "yes: 2 (no obstacle was found; " in scanned.stderr
    assert _SUPERSEDED not in scanned.stderr + scanned.stdout


def _read(marked: list[Candidate]) -> list[tuple[bool, bool]]:
    scanned = read_chunk(Files(), ScanRequest(), marked)
    return [(checkpoint.newest, checkpoint.is_counted) for checkpoint in scanned]


def test_deleted_checkpoint_of_listed_job_is_replaced_by_newest_checkpoint(tmp_path: Path) -> None:
    job = tmp_path / "job"
    newest = write_source(job / "chk-12", {0: splits("t", [5])})
    named = mark_newest(discover([str(job / "chk-9")], Files()))  # never existed
    assert _read(named) == [(True, True)]
    seen = mark_newest(discover([str(job)], Files()))
    delete_as_flink(str(newest))
    write_source(job / "chk-13", {0: splits("t", [6])})
    assert _read(seen) == [(False, True), (True, True)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--group", "g-{job}"], "--plans DIR"),
        (["--plans", "plans", "--group", "g-{job}"], "require a broker"),
    ],
)
def test_conflicting_scan_options_are_usage_errors(arguments: list[str], told: str) -> None:
    done = migrate("scan", "nowhere", *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert told in done.stderr


def _without(package: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a scan in a process in which a package is not installed."""
    hidden = f"import sys; sys.modules[{package!r}] = None; from migrate.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", hidden, "scan", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_scan_with_master_but_without_pyspark_reports_install_command(tmp_path: Path) -> None:
    done = _without("pyspark", tmp_path, "--master", "local[1]")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install '.[spark]'" in done.stderr


@pytest.mark.slow
def test_scan_without_pyarrow_writes_csv_and_reports_install_command_for_parquet(
    tmp_path: Path,
) -> None:
    chk = write_source(tmp_path / "e" / "chk-7", {0: splits("t", [3, 4])})
    done = _without("pyarrow", chk, "--output", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install '.[parquet]'" in done.stderr
    assert done.stderr.endswith("; without pyarrow, add --format csv\n")
    assert not (tmp_path / "out").exists()
    done = _without("pyarrow", chk, "--output", tmp_path / "out", "--format", "csv")
    assert done.returncode == 0, done.stderr
    (table,) = (tmp_path / "out" / "positions").glob("*.csv")
    with table.open(newline="") as lines:
        assert [row["next_offset"] for row in csv.DictReader(lines)] == ["3", "4"]


@pytest.mark.slow
def test_ctrl_c_during_scan_leaves_no_files(tmp_path: Path) -> None:
    generate(tmp_path / "estate", 2_000)
    out, work = tmp_path / "out", tmp_path / "work"
    work.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "migrate", "scan", str(tmp_path / "estate")),
            *("--output", str(out), "--format", "csv"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(work)},
        start_new_session=True,
    )
    while not list(out.glob("*/positions/part-*")):  # the scan writes while it reads
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C in a terminal
    stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "")
    assert not out.exists()
    assert list(work.iterdir()) == []


@pytest.mark.slow
def test_scan_finds_every_checkpoint_of_generated_directory_tree(tmp_path: Path) -> None:
    begun = time.process_time()
    estate = generate(tmp_path, 1_000)
    assert time.process_time() - begun < 3
    assert len(estate.checkpoints) == 1_000
    assert {one.condition for one in estate.checkpoints.values()} == set(Condition)
    assert all(estate.of(condition) for condition in DAMAGES)
    found = discover([str(tmp_path)], Files())
    assert {one.pointer for one in found} == estate.checkpoints.keys()
    newest = {c.pointer for c in mark_newest(found) if c.chk_numbers is not None}
    assert newest >= set(estate.newest().values())


def test_spark_failure_is_reported_without_stack_traces() -> None:
    of_a_worker = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x.py", line 1, in <module>
ModuleNotFoundError: No module named 'migrate'
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:2)"""
    assert failure_of(Exception(of_a_worker)) == (
        "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times; "
        "ModuleNotFoundError: No module named 'migrate'"
    )
    of_java = """An error occurred while calling None.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'nonsense'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3)"""
    assert "Could not parse Master URL: 'nonsense'" in failure_of(Exception(of_java))
