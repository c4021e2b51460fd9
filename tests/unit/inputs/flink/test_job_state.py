"""Judge whether a job may still run, from a JobManager's answer and the age of a snapshot."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.before_move import (
    check_before_write,
    find_watch,
    job_refusals,
    report_for_group,
)
from migrate.inputs.flink import rest_api as flink_rest
from migrate.inputs.flink.extract import extract
from migrate.inputs.flink.job_state import JobState, judge, judge_jobs
from migrate.inputs.flink.rest_api import CheckpointNumbers, FlinkJob
from migrate.inputs.watch import Watch
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView, LogRange
from migrate.model.errors import UsageError
from migrate.model.positions import Origin, target_of
from migrate.moves.plan import compared_group
from migrate.planning import Plan, make_plan
from migrate.planning.plan_file import plan_file, read_plan, save_plan
from migrate.storage.json_models import write_file
from tests.support.checkpoints import (
    SourceState,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.clock import replace_sleep
from tests.support.command import Result, migrate
from tests.support.golden_topics import GOLDEN
from tests.support.recorded_flink import recorded_flink

_JOB = "0a97a9c6086be373357fa722571e7df8"
_URL = "http://jobmanager:8081"


@pytest.fixture(autouse=True)
def same_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock of the JobManager at ``_URL``, which does not exist."""
    ask = flink_rest.JobManager.clock_ahead_ms

    def clock_ahead_ms(flink: flink_rest.JobManager, jobs: list[FlinkJob]) -> float:
        return 0.0 if flink._url == _URL else ask(flink, jobs)

    monkeypatch.setattr(flink_rest.JobManager, "clock_ahead_ms", clock_ahead_ms)
    monkeypatch.setattr(flink_rest.JobManager, "until_refreshed", lambda flink: iter((None,)))


def _planned(directory: Path) -> Plan:
    extraction = extract(read_checkpoint(write_source(directory / "chk-7", {0: splits("t", [3])})))
    return make_plan(extraction, extraction.sources, None, target=target_of("g"))


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[pytest.LogCaptureFixture]:
    """The log of `migrate`; ``monkeypatch`` sets the JobManager's answers."""
    with caplog.at_level("INFO", logger="migrate"):
        yield caplog


def _answer_numbers(
    monkeypatch: pytest.MonkeyPatch, completed: int | None, restored: int | None = None
) -> None:
    """Let Flink list these checkpoints of each job as the newest ones."""
    numbers = CheckpointNumbers(completed, restored)
    monkeypatch.setattr(flink_rest.JobManager, "checkpoint_numbers", lambda flink, job_id: numbers)


def _refusals(
    planned: Plan, jobs: list[FlinkJob], monkeypatch: pytest.MonkeyPatch
) -> Sequence[str]:
    """The refusals of ``commit-group``; without refusals, the report is logged."""
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: [(job, None) for job in jobs])
    _answer_numbers(monkeypatch, 7)
    judgment = judge(planned.origin, _URL)
    refusals = job_refusals(judgment, allow_ran_on=False, is_group=True)
    if not refusals:
        report_for_group(judgment, planned.origin, Watch(10.0, 0.0, 20.0), None)
    return refusals


@pytest.mark.parametrize(
    ("job_id", "known", "why"),
    [
        (_JOB, [], f"does not list job {_JOB}"),
        (_JOB, [FlinkJob("ff" * 16, "another", "FINISHED")], f"does not list job {_JOB}"),
        (
            "orders",
            [FlinkJob("ff" * 16, "another", "FINISHED")],
            "the path of the checkpoint does not show",
        ),
        # In every application cluster, a job can have this ID.
        (
            "0" * 32,
            [FlinkJob("0" * 32, "any", "CANCELED")],
            "the path of the checkpoint does not show",
        ),
    ],
)
def test_jobmanager_that_does_not_list_job_proves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    said: pytest.LogCaptureFixture,
    job_id: str,
    known: list[FlinkJob],
    why: str,
) -> None:
    assert _refusals(_planned(tmp_path / job_id), known, monkeypatch) == []
    (warning,) = (record.getMessage() for record in said.records if record.levelname == "WARNING")
    assert warning.endswith(" [job-may-run]")
    assert why in warning
    assert "with execute=True, `migrate` first waits 20 s for a sign of a running job" in said.text


def test_jobmanager_that_lists_job_as_canceled_proves_end_of_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture
) -> None:
    jobs = [FlinkJob(_JOB, "orders", "CANCELED"), FlinkJob("ff" * 16, "another", "RUNNING")]
    planned = _planned(tmp_path / _JOB)
    assert _refusals(planned, jobs[:1], monkeypatch) == []
    assert f"Flink lists job {_JOB} as CANCELED, and no other job is running" in said.text
    assert "it is unknown whether" not in said.text
    (running,) = _refusals(planned, jobs, monkeypatch)
    assert f"Flink lists job {'ff' * 16} (another) as RUNNING" in running


# -- the judgment ----------------------------------------------------------------------------------

_OTHER = "ff" * 16
# Times in milliseconds: the job ran from _BEGAN to _END, and was then stopped with _STOP.
_HOUR = 3_600_000
_BEGAN, _END = 10 * _HOUR, 20 * _HOUR
_STOP = Origin(
    "checkpoint",
    "/flink/savepoints/savepoint-0a97a9-48e0426595ec",
    9,
    stopped=True,
    written_at=_END - 100,
)
_STOP_PATH = f"file:{_STOP.pointer}"
_RETAINED = Origin("checkpoint", f"/flink/checkpoints/{_JOB}/chk-7", 7, written_at=_END - 100)
_FINISHED = FlinkJob(_JOB, "orders", "FINISHED", _BEGAN, _END)
_LATER = 30 * _HOUR


def _other(state: str, began: int, ended: int | None = None, name: str = "x") -> FlinkJob:
    return FlinkJob(_OTHER, name, state, began, ended)


@pytest.mark.parametrize(
    ("origin", "jobs", "state", "is_beyond"),
    [
        (_STOP, None, JobState.STOPPED, False),
        (_STOP, [(_FINISHED, None)], JobState.STOPPED, False),
        # A different JobManager, or one that has restarted or forgotten the job, proves nothing.
        (_STOP, [], JobState.UNKNOWN, False),
        (_STOP, [(_other("CANCELED", _LATER, 2 * _LATER), None)], JobState.UNKNOWN, False),
        (_STOP, [(_other("RUNNING", _BEGAN), None)], JobState.UNKNOWN, False),
        # After a failover, Flink lists the job's own checkpoint, not the savepoint.
        (
            _STOP,
            [(_other("CANCELED", _LATER, 2 * _LATER), f"file:/flink/{_OTHER}/chk-50")],
            JobState.UNKNOWN,
            False,
        ),
        (
            _STOP,
            [
                (_FINISHED, None),
                (_other("CANCELED", _LATER, 2 * _LATER), f"file:/flink/{_OTHER}/chk-50"),
            ],
            JobState.UNKNOWN,
            False,
        ),
        (
            _STOP,
            [(_FINISHED, None), (_other("CANCELED", _LATER, 2 * _LATER), "s3://b/jobs/chk-50")],
            JobState.UNKNOWN,
            False,
        ),
        # A different pipeline, restored from its own retained checkpoint.
        (
            _STOP,
            [(_FINISHED, None), (_other("RUNNING", _LATER), f"file:/flink/{'b' * 32}/chk-5")],
            JobState.STOPPED,
            False,
        ),
        # The stop failed after the savepoint was written, and the job was canceled later.
        (_STOP, [(replace(_FINISHED, state="CANCELED"), None)], JobState.UNKNOWN, False),
        # A job with the ID that every application cluster uses.
        (
            replace(_STOP, pointer="/flink/savepoints/savepoint-000000-48e0426595ec"),
            [(FlinkJob("0" * 32, "orders", "FINISHED", _LATER, 2 * _LATER), None)],
            JobState.UNKNOWN,
            False,
        ),
        (_STOP, [(_other("RUNNING", _LATER), _STOP_PATH)], JobState.RESTARTED, True),
        # The restored job has ended, but its output is still newer than the savepoint.
        (_STOP, [(_other("FAILED", _LATER, 2 * _LATER), _STOP_PATH)], JobState.RESTARTED, True),
        # The same job id runs again, as in application mode.
        (_STOP, [(FlinkJob(_JOB, "orders", "RUNNING", _LATER), None)], JobState.RESTARTED, True),
        # The job was restarted, recovered, and was stopped again.
        (
            _STOP,
            [(FlinkJob(_JOB, "orders", "FINISHED", _LATER, 2 * _LATER), f"file:/{_JOB}/chk-50")],
            JobState.RESTARTED,
            True,
        ),
        # A job with the same name started after the stop, from a newer checkpoint or without state.
        (
            _STOP,
            [(_FINISHED, None), (_other("CANCELED", _LATER, 2 * _LATER, "orders"), None)],
            JobState.RESTARTED,
            True,
        ),
        (
            _STOP,
            [(_FINISHED, None), (_other("CANCELED", 1, 5, "orders"), None)],
            JobState.STOPPED,
            False,
        ),
        (_STOP, [(_other("RUNNING", _LATER), None)], JobState.RUNNING, True),
        # A different pipeline in the same cluster. Flink shows that the job itself has ended.
        (_STOP, [(_FINISHED, None), (_other("RUNNING", 5), None)], JobState.STOPPED, False),
        (
            replace(_STOP, pointer="/backup/nightly", copied_from=_STOP_PATH),
            [(_FINISHED, None), (_other("RUNNING", _LATER, name="orders"), None)],
            JobState.RESTARTED,
            True,
        ),
        (_RETAINED, None, JobState.UNKNOWN, False),
        (_RETAINED, [], JobState.UNKNOWN, False),
        (_RETAINED, [(FlinkJob(_JOB, "orders", "RESTARTING"), None)], JobState.RUNNING, True),
        # A job that recovers from its own checkpoint was not restarted by a user.
        (
            _RETAINED,
            [(FlinkJob(_JOB, "orders", "RUNNING"), _RETAINED.pointer)],
            JobState.RUNNING,
            True,
        ),
        (_RETAINED, [(FlinkJob(_JOB, "orders", "CANCELED", 1, 2), None)], JobState.ENDED, False),
        (
            _RETAINED,
            [
                (FlinkJob(_JOB, "orders", "CANCELED", 1, 2), None),
                (_other("CANCELED", _LATER, 2 * _LATER), f"file:/flink/{_OTHER}/chk-50"),
            ],
            JobState.UNKNOWN,
            False,
        ),
        # The recovered job may be the restarted job even if Flink has forgotten the original.
        (
            _RETAINED,
            [(_other("CANCELED", _LATER, 2 * _LATER), f"file:/flink/{_OTHER}/chk-50")],
            JobState.UNKNOWN,
            False,
        ),
        (
            _RETAINED,
            [
                (FlinkJob(_JOB, "orders", "CANCELED", 1, 2), None),
                (FlinkJob(_OTHER, "y", "RUNNING", 5), f"hdfs://n:1{_RETAINED.pointer}"),
            ],
            JobState.RESTARTED,
            True,
        ),
    ],
)
def test_job_state_is_determined_from_jobs_that_flink_lists(
    origin: Origin,
    jobs: list[tuple[FlinkJob, str | None]] | None,
    state: JobState,
    is_beyond: bool,
) -> None:
    """Each listed job has the path of the checkpoint or savepoint that it was restored from."""
    judgment = judge_jobs(origin, jobs)
    assert (judgment.state, judgment.is_beyond) == (state, is_beyond), judgment
    # If the JobManager does not list the job of a retained checkpoint, only the wait can show a
    # running job.
    is_doubtful = (
        state is JobState.UNKNOWN and jobs is not None and (origin, jobs) != (_RETAINED, [])
    )
    assert judgment.is_doubtful == is_doubtful
    assert bool(job_refusals(judgment, allow_ran_on=False)) == (is_beyond or is_doubtful)
    assert bool(job_refusals(judgment, allow_ran_on=False, source_group="g")) == is_beyond
    assert job_refusals(judgment, allow_ran_on=True) == []
    # A running job overwrites the offsets of a group, so no override applies.
    runs = any(not job.ended for job, _ in jobs or ())
    assert bool(job_refusals(judgment, allow_ran_on=True, is_group=True)) == runs


@pytest.mark.parametrize(
    ("origin", "completed", "restored", "state", "text"),
    [
        (_STOP, 9, None, JobState.STOPPED, "lists no job that was restored"),
        # Checkpoint 10 can also be a savepoint.
        (_STOP, 10, None, JobState.RESTARTED, "has completed checkpoint 10 after checkpoint 9"),
        (_STOP, None, 50, JobState.RESTARTED, "has recovered from checkpoint 50 after"),
        # A run with the same ID was restored from the savepoint, or Flink has forgotten its end.
        (_STOP, None, 9, JobState.UNKNOWN, "does not list this savepoint 9 as the job's newest"),
        (_STOP, None, None, JobState.UNKNOWN, "does not list this savepoint 9 as the job's newest"),
        (_STOP, 8, None, JobState.UNKNOWN, "does not list this savepoint 9 as the job's newest"),
        (_RETAINED, 7, None, JobState.ENDED, "no other job is running"),
        (_RETAINED, None, 7, JobState.ENDED, "no other job is running"),
        (_RETAINED, 8, None, JobState.ENDED, "has completed checkpoint 8 after checkpoint 7"),
        (
            _RETAINED,
            None,
            None,
            JobState.UNKNOWN,
            ("does not list this checkpoint 7 as the job's newest"),
        ),
    ],
)
def test_state_of_ended_job_depends_on_newest_checkpoint_that_flink_lists(
    monkeypatch: pytest.MonkeyPatch,
    origin: Origin,
    completed: int | None,
    restored: int | None,
    state: JobState,
    text: str,
) -> None:
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: [(_FINISHED, None)])
    _answer_numbers(monkeypatch, completed, restored)
    judgment = judge(origin, _URL)
    is_beyond = "checkpoint " in text and " after" in text
    assert (judgment.state, judgment.is_beyond) == (state, is_beyond), judgment
    assert text in judgment.text
    is_refused = is_beyond or state is JobState.UNKNOWN
    assert bool(job_refusals(judgment, allow_ran_on=False)) == is_refused


@pytest.mark.parametrize("kind", ["completed", "savepoint"])
def test_newest_checkpoint_number_includes_savepoints(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Regression: After a stop with savepoint 8, checkpoint 7 was treated as the newest."""
    latest = {"completed": {"id": 7}, "savepoint": {"id": 6}, "restored": {"id": 3}}
    latest[kind] = {"id": 8}
    answer = json.dumps({"latest": latest}).encode()
    monkeypatch.setattr("migrate.inputs.flink.rest_client.request", lambda url, path: answer)
    numbers = flink_rest.JobManager(_URL).checkpoint_numbers(_JOB)
    assert numbers == CheckpointNumbers(8, 3)


def test_flink_response_from_before_stop_is_requested_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: Just after a stop, Flink listed checkpoint 8 as the newest, from its cache."""
    monkeypatch.undo()  # the wait
    answers = {
        "/config": '{"flink-version": "2.2.0", "refresh-interval": 3000}',
        f"/jobs/{_JOB}/checkpoints": '{"latest": {"completed": {"id": 8}}}',
    }
    fresh, waited = '{"latest": {"completed": {"id": 8}, "savepoint": {"id": 9}}}', list[float]()

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if sum(waited) >= 2.5:
            answers[f"/jobs/{_JOB}/checkpoints"] = fresh

    monkeypatch.setattr(
        "migrate.inputs.flink.rest_client.request", lambda url, path: answers[path].encode()
    )
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: [(_FINISHED, None)])
    monkeypatch.setattr(flink_rest.JobManager, "clock_ahead_ms", lambda flink, jobs: 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: sum(waited))
    replace_sleep(monkeypatch, sleep)
    judgment = judge(_STOP, _URL)
    assert (judgment.state, sum(waited)) == (JobState.STOPPED, 2.5), judgment
    # The wait is limited to the age of Flink's answers, and 2 s.
    judgment = judge(replace(_STOP, number=10), _URL)
    assert judgment.state is JobState.UNKNOWN
    assert 7.5 <= sum(waited) <= 8


def test_history_server_is_refused_as_jobmanager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: The report was "ok", although a HistoryServer lists no running jobs.

    A HistoryServer is recognized by a field of DashboardConfiguration (Flink 1.20.3 and 2.3.0).
    """
    answers = {
        "/config": '{"flink-version": "2.2.0", "features": {"web-history": true}}',
        "/jobs/overview": '{"jobs": []}',
    }
    monkeypatch.setattr(
        "migrate.inputs.flink.rest_client.request", lambda url, path: answers[path].encode()
    )
    with pytest.raises(UsageError, match="a HistoryServer, which does not list running jobs"):
        judge(_STOP, _URL)
    answers["/config"] = answers["/config"].replace("true", "false")
    assert judge(_STOP, _URL).state is JobState.UNKNOWN


@pytest.mark.parametrize("ahead_s", [-600, 0, 600])
@pytest.mark.parametrize("is_later", [True, False])
def test_start_time_of_job_is_compared_with_savepoint_time_using_jobmanager_clock(
    ahead_s: int, is_later: bool
) -> None:
    """Regression: If the JobManager's clock was behind, a job seemed older than the savepoint."""
    with recorded_flink() as (flink, url):
        flink.listed, flink.ahead_ms = {flink.reading}, 1000 * ahead_s
        flink.began_at(seconds_ago=100 if is_later else 400)
        judgment = judge(replace(_STOP, written_at=round(1000 * (time.time() - 250))), url)
    assert judgment.state is (JobState.RUNNING if is_later else JobState.UNKNOWN), judgment


# -- the wait before a location or a plan is written -----------------------------------------------


def _retained(folder: Path, *, apart: float, age: float = 0) -> Path:
    """The newest of three checkpoints, which are ``apart`` seconds apart."""
    newest = time.time() - age
    for number in (5, 6, 7):
        chk = write_source(folder / f"chk-{number}", {0: splits("t", [number])})
        at = newest - (7 - number) * apart
        os.utime(chk / "_metadata", (at, at))
    return folder / "chk-7"


@pytest.mark.parametrize(
    ("apart", "age", "wait", "is_quiet"),
    [
        (1, 0, 3, False),
        (10, 0, 20, False),
        (10, 60, 20, False),
        (10, 800, 20, False),  # the file server's clock may be behind
        (10, 1000, 20, True),  # longer than two intervals plus the clock tolerance
        (300, 0, None, False),  # the wait would be too long
        (300, 900, None, False),
        (300, 1600, None, True),
    ],
)
def test_wait_depends_on_checkpoint_interval_and_age(
    tmp_path: Path, apart: float, age: float, wait: float | None, is_quiet: bool
) -> None:
    chk = _retained(tmp_path / _JOB, apart=apart, age=age)
    watch = find_watch(extract(read_checkpoint(chk)).origin)
    assert watch.wait == (pytest.approx(wait, abs=0.1) if wait is not None else None)
    assert watch.is_quiet == is_quiet


def test_running_job_is_detected_if_local_clock_is_ahead_of_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: With clocks 10 minutes apart, a running job seemed to be stopped.

    The location was written without a wait.
    """
    chk, out, now = _retained(tmp_path / _JOB, apart=2), tmp_path / "out", time.time
    monkeypatch.setattr(time, "time", lambda: now() + 600)
    replace_sleep(
        monkeypatch, lambda _: write_source(chk.with_name("chk-8"), {0: splits("t", [9])})
    )
    refused = migrate("to-spark", chk, "--checkpoint-dir", out)
    assert refused.code == 4, refused.stderr
    assert "the job kept running; it has completed chk-8" in refused.stderr
    assert not out.exists()


@pytest.mark.parametrize(("age", "wait"), [(0, 6), (100, None)])
def test_move_waits_briefly_after_single_recent_checkpoint(
    tmp_path: Path, age: float, wait: float | None
) -> None:
    """By default, Flink retains one checkpoint. A single checkpoint does not show the interval."""
    chk = write_source(tmp_path / _JOB / "chk-7", {0: splits("t", [3])})
    os.utime(chk / "_metadata", (time.time() - age,) * 2)
    assert find_watch(extract(read_checkpoint(chk)).origin).wait == wait


@pytest.mark.parametrize("flag", ["--checkpoint-dir", "--plan-out"])
def test_newer_checkpoint_during_wait_prevents_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    chk, out, waits = _retained(tmp_path / _JOB, apart=2), tmp_path / "out", list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        write_source(chk.with_name("chk-8"), {0: splits("t", [9])})

    replace_sleep(monkeypatch, sleep)
    refused = migrate("to-spark", chk, flag, out)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert "the job kept running; it has completed chk-8" in refused.stderr
    assert not out.exists()
    assert waits == [pytest.approx(4, abs=0.5)]


@pytest.mark.parametrize(("flag", "waits"), [((), 0), (("--allow-ran-on",), 0), (None, 1)])
def test_dry_run_and_override_skip_wait_for_newer_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: tuple[str, ...] | None, waits: int
) -> None:
    chk, slept = _retained(tmp_path / _JOB, apart=2), list[float]()
    replace_sleep(monkeypatch, slept.append)
    out = ("--checkpoint-dir", tmp_path / "out") if flag != () else ()
    moved = migrate("to-spark", chk, *out, *(flag or ()))
    assert moved.code == 0, moved.stderr
    assert len(slept) == waits
    assert ("the job has probably stopped" in moved.stderr) == bool(waits)
    # A job restarted from chk-7 would write to a new directory, so the wait cannot show this job.
    assert ("[job-may-run]" in moved.stderr) == bool(waits)


@pytest.mark.parametrize("age", [0, 3600])
def test_file_times_of_copy_do_not_prove_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: pytest.LogCaptureFixture, age: float
) -> None:
    """Regression: The files of a copy had nearly equal times, so the job seemed to be stopped."""
    chk, slept = _retained(tmp_path / _JOB, apart=0.01, age=age), list[float]()
    replace_sleep(monkeypatch, slept.append)
    origin = replace(extract(read_checkpoint(chk)).origin, copied_from=f"s3://b/{_JOB}/chk-7")
    assert find_watch(origin).interval is None
    judgment = judge_jobs(origin, None)
    check_before_write(origin, judgment, allow_ran_on=False, source_group=None)
    lines = [record.getMessage() for record in said.records]
    assert len(slept) == (1 if age == 0 else 0)
    assert not any("has probably stopped" in line for line in lines)
    assert any("[job-may-run]" in line for line in lines)


def test_flink_is_queried_again_after_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: A job restarted during the wait was not detected."""
    chk, jobs = _retained(tmp_path / _JOB, apart=2), list[tuple[FlinkJob, str | None]]()
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    replace_sleep(monkeypatch, lambda seconds: jobs.append((_other("RUNNING", _LATER), str(chk))))
    out = tmp_path / "out"
    refused = migrate("to-spark", chk, "--checkpoint-dir", out, "--flink-rest", _URL)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert f"job {_OTHER} (x), RUNNING, continued the job" in refused.stderr
    assert not out.exists()


def test_write_warns_that_job_may_be_running_if_nothing_proves_end_of_job(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "orders" / "chk-7", {0: splits("t", [3])})
    moved = migrate("to-spark", chk, "--checkpoint-dir", tmp_path / "out")
    assert moved.code == 0
    assert "[job-may-run]" in moved.stderr
    assert "[job-may-run]" not in migrate("to-spark", chk).stderr


@pytest.mark.parametrize("stop", [False, True])
def test_plan_of_deleted_checkpoint_or_missing_savepoint_is_refused(
    tmp_path: Path, stop: bool
) -> None:
    """Flink deletes a subsumed checkpoint, and a savepoint after a restore with CLAIM.

    A missing checkpoint therefore shows that the job kept running. A savepoint belongs to the user,
    who may also have moved it.
    """
    kept: tuple[str, ...] = ()
    if stop:
        (original,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
        chk = shutil.copytree(original, tmp_path / "savepoints" / original.name)
        kept = ("--partitions", "orders:0-1", "--partitions", "payments:0-1")
    else:
        chk = write_source(tmp_path / "orders" / "chk-7", {0: splits("t", [3])})
    (chk / "_metadata").touch()
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", plan, *kept).code == 0
    assert migrate("to-spark", "--plan", plan).code == 0
    shutil.rmtree(chk)
    refused = migrate("to-spark", "--plan", plan)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    if stop:
        assert f" is no longer at {chk}; if you moved it, " in refused.stderr
        assert "the job kept running" not in refused.stderr
        moved = shutil.copytree(original, tmp_path / "archive" / original.name)
        assert migrate("to-spark", moved, "--plan-out", tmp_path / "again.json", *kept).code == 0
        assert migrate("to-spark", "--plan", tmp_path / "again.json").code == 0
    else:
        assert f"the job kept running; {chk} was deleted; " in refused.stderr
    # On a machine without access to the directory, a deletion cannot be determined.
    chk.parent.rename(tmp_path / "elsewhere")
    unseen = migrate("to-spark", "--plan", plan)
    assert unseen.code == 0, unseen.stderr
    assert "the job's checkpoints do not show whether the job kept running" in unseen.stderr


# -- the savepoint of a stop -----------------------------------------------------------------------


_STOPPED_WITH = "the job was stopped with this savepoint; use --flink-rest URL to check whether"


def _savepoint(folder: Path, days: float) -> tuple[Path | str, ...]:
    """The arguments for a savepoint of this age and for the partitions that it contains."""
    (original,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    savepoint = folder / original.name
    savepoint.mkdir()
    for file in original.iterdir():
        (savepoint / file.name).write_bytes(file.read_bytes())
    at = time.time() - days * 86_400
    os.utime(savepoint / "_metadata", (at, at))
    return savepoint, "--partitions", "orders:0-1", "--partitions", "payments:0-1"


def _moved(folder: Path, days: float, *flags: str | Path) -> Result:
    moved = migrate("to-spark", *_savepoint(folder, days), *flags)
    assert moved.code == 0, moved.stderr
    return moved


@pytest.mark.parametrize(
    "flags", [(), ("--spark-source", "0=topic:orders", "--spark-source", "1=topic:payments")]
)
def test_possible_restart_from_savepoint_triggers_single_warning(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    moved = _moved(tmp_path, 0, *flags)
    assert moved.stderr.count(_STOPPED_WITH) == 1
    assert "ago" not in moved.stderr


def test_saved_plan_triggers_warning_about_possible_restart_from_savepoint(tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    _moved(tmp_path, 0, "--plan-out", plan)
    applied = migrate("to-spark", "--plan", plan)
    assert applied.code == 0, applied.stderr
    assert applied.stderr.count(_STOPPED_WITH) == 1


def test_saved_plan_stores_time_of_savepoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: A plan was applied although its savepoint had become too old.

    The advice in the messages did not apply to a saved plan.
    """
    plan, out, now = tmp_path / "plan.json", tmp_path / "out", time.time
    _moved(tmp_path, 0.9, "--plan-out", plan)
    saved = read_plan(plan)
    assert saved.origin.written_at == pytest.approx((now() - 0.9 * 86_400) * 1000, abs=60_000)
    monkeypatch.setattr(time, "time", lambda: now() + 86_400)
    refused = migrate("to-spark", "--plan", plan, "--checkpoint-dir", out)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert "[savepoint-aged-after-plan]" in refused.stderr
    assert "; to check for a restart, add --flink-rest [old-savepoint]" in refused.stderr
    assert "--allow-ran-on" in refused.stderr
    assert not out.exists()
    # A plan of an earlier release lacks the savepoint's time, so the time of the plan is used.
    content = plan_file(saved)
    old = content.checkpoint.model_copy(update={"written_at": None})
    (tmp_path / "old").mkdir()
    write_file(content.model_copy(update={"checkpoint": old}), tmp_path / "old/plan.json")
    assert migrate("to-spark", "--plan", tmp_path / "old/plan.json").code == 0
    monkeypatch.setattr(time, "time", lambda: now() + 2 * 86_400)
    refused = migrate("to-spark", "--plan", tmp_path / "old/plan.json", "--checkpoint-dir", out)
    assert refused.code == 4, refused.stderr


@pytest.mark.parametrize("group", [None, "new"])
def test_plan_made_with_flink_rest_is_refused_if_flink_is_not_queried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str | None
) -> None:
    """Regression: The job was restarted after the plan. The suggested command applied the plan.

    The command lacked --flink-rest, so Flink was not queried.
    """
    monkeypatch.chdir(tmp_path)
    asked, jobs = _savepoint(tmp_path, 0), list[tuple[FlinkJob, str | None]]()
    digits = asked[0].name.split("-")[1]  # type: ignore[union-attr]
    began, ended = 1, round(1000 * time.time())
    jobs.append((FlinkJob(digits + "0" * (32 - len(digits)), "x", "FINISHED", began, ended), None))
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    _answer_numbers(monkeypatch, extract(read_checkpoint(asked[0])).origin.number)
    view = GroupView("new", False, "Dead", "unknown")
    logs = {topic: {0: LogRange(0, 90), 1: LogRange(0, 90)} for topic in ("orders", "payments")}
    snapshot = ClusterSnapshot(logs, "cluster", target_group=view)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    command = ["to-spark"] if group is None else ["commit-group", "--group", group]
    brokers = [] if group is None else ["-b", "localhost:1"]
    saved = migrate(*command, *asked, *brokers, "--flink-rest", _URL, "--plan-out", "plan.json")
    assert saved.code == 0, saved.stderr
    apply = shlex.split(saved.stderr.splitlines()[-1].partition(": migrate ")[2])
    assert apply[-2:] == ["--flink-rest", _URL]
    assert migrate("show", "plan.json").stdout.endswith(" --flink-rest URL\n")
    refused = migrate(*apply[:-2], *([] if group is None else ["--yes"]))
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert "[flink-not-queried-since-plan]" in refused.stderr
    assert "; add --flink-rest URL" in refused.stderr
    jobs.append((_other("RUNNING", _LATER), str(asked[0])))
    refused = migrate(*apply, *([] if group is None else ["--yes"]))
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert f"job {_OTHER} (x), RUNNING, continued the job" in refused.stderr
    assert not Path("DIR").exists()


def test_plan_made_with_flink_rest_is_applied_without_it_if_restart_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = tmp_path / "plan.json"
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: [])
    _moved(tmp_path, 0, "--flink-rest", _URL, "--allow-ran-on", "--plan-out", plan)
    assert migrate("to-spark", "--plan", plan).code == 0


def test_saved_plan_stores_path_of_original_checkpoint_for_copy(tmp_path: Path) -> None:
    """Regression: Jobs restored from the original checkpoint were not recognized."""
    planned = _planned(tmp_path / _JOB)
    copied = "s3://key:secret@bucket/chk-7?sig=hush"
    save_plan(replace(planned, origin=replace(planned.origin, copied_from=copied)), tmp_path / "p")
    origin = read_plan(tmp_path / "p").origin
    assert origin.copied_from is not None and "bucket/chk-7" in origin.copied_from
    assert "secret" not in (tmp_path / "p").read_text()


@pytest.mark.parametrize(
    "jobs",
    [
        [],
        [(FlinkJob(_OTHER, "x", "FINISHED", 1, 2), None)],  # of a different cluster
    ],
)
def test_move_from_savepoint_is_refused_if_jobmanager_does_not_list_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: list[tuple[FlinkJob, str | None]]
) -> None:
    """Regression: The result was "ok" for a savepoint of a job that Flink did not list.

    The advice was to add --flink-rest, and later to omit it. A recent savepoint of such a job was
    moved with only a warning.
    """
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    asked, out = _savepoint(tmp_path, 3), tmp_path / "out"
    for days in (3, 0):
        at = time.time() - 86_400 * days
        os.utime(asked[0] / "_metadata", (at, at))  # type: ignore[operator]
        for way in ((), ("--checkpoint-dir", out), ("--plan-out", out)):
            refused = migrate("to-spark", *asked, "--flink-rest", _URL, *way)
            assert (refused.code, refused.stdout) == (4, ""), refused.stderr
            assert "ok:" not in refused.stderr
            assert "it is unknown whether the job was restarted since the stop" in refused.stderr
            assert "[job-may-have-restarted]" in refused.stderr
            assert "--flink-rest" not in refused.stderr.split("refused")[-1]
            assert not out.exists()
    moved = ("to-flink", asked[0], "--from", asked[0], "--out", out, *asked[1:])
    assert migrate(*moved, "--flink-rest", _URL).code == 4
    assert not out.exists()
    allowed = migrate("to-spark", *asked, "--flink-rest", _URL, "--allow-ran-on")
    assert allowed.code == 0, allowed.stderr
    assert "[job-may-run]" in allowed.stderr and "ok:" not in allowed.stderr


def test_move_is_refused_if_job_is_running_and_override_is_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [(FlinkJob(_OTHER, "x", "RUNNING", 2**45), None)]
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    asked = _savepoint(tmp_path, 0)
    refused = migrate("to-spark", *asked, "--flink-rest", _URL)
    assert refused.code == 4
    assert "[job-running]" in refused.stderr
    assert migrate("to-spark", *asked, "--flink-rest", _URL, "--allow-ran-on").code == 0


@pytest.mark.parametrize(
    ("state", "way_out"),
    [
        (
            "RUNNING",
            "this savepoint 9; stop the job with a savepoint",
        ),
        *(
            (
                state,
                "this savepoint 9; move from the newest savepoint or retained checkpoint of the "
                "ended job, or restart the job from it, stop the job with a savepoint",
            )
            for state in ("CANCELED", "FAILED", "FINISHED")
        ),
    ],
)
def test_remedy_does_not_stop_job_that_flink_lists_as_ended(state: str, way_out: str) -> None:
    """Regression: The remedy was to stop a canceled job, which Flink then did not find."""
    ended = None if state == "RUNNING" else 2 * _LATER
    restarted = (_other(state, _LATER, ended), _STOP_PATH)
    judgment = judge_jobs(_STOP, [(_FINISHED, None), restarted])
    for is_group, saved in ((False, False), (False, True), (True, False)):
        (refusal,) = job_refusals(judgment, allow_ran_on=False, is_group=is_group, saved=saved)
        assert f"{state}, continued the job of {way_out}, and move from that savepoint" in refusal


@pytest.mark.parametrize(("flags", "is_committed"), [(("--flink-rest", _URL), True), ((), False)])
def test_output_that_stop_committed_is_note_if_flink_lists_job_as_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], is_committed: bool
) -> None:
    """Regression: A warning asked for the state that the next line showed as FINISHED."""
    savepoint = write_checkpoint(
        tmp_path / f"savepoint-{_JOB[:6]}-48e0426595ec",
        source_operator(SourceState({0: splits("orders", [3])})),
        operator_with_states({"next-transactional-id-hint": []}, operator_id=b"\7" * 16),
        version=4,
        kind="terminate savepoint CANONICAL",
    )
    now = int(time.time() * 1000)
    jobs = [(FlinkJob(_JOB, "orders", "FINISHED", now - _HOUR, now + 1000), None)]
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    _answer_numbers(monkeypatch, 7)
    moved = migrate("to-spark", savepoint, *flags)
    assert moved.code == 0, moved.stderr
    committed = "has committed its pending output in this savepoint, because the job has FINISHED"
    assert (committed in moved.stderr) == is_committed
    assert ("if `flink list -a` shows the job as FINISHED" in moved.stderr) != is_committed
    _answer_numbers(monkeypatch, 8)
    refused = migrate("to-spark", savepoint, "--flink-rest", _URL)
    assert refused.code == 4 and committed not in refused.stderr


def test_canceled_job_is_not_to_be_stopped_after_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The next step was to stop a job that Flink listed as CANCELED."""
    chk = write_source(tmp_path / _JOB / "chk-7", {0: splits("orders", [3])})
    jobs = [(FlinkJob(_JOB, "orders", "CANCELED", 1, 2), None)]
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: jobs)
    _answer_numbers(monkeypatch, 7)
    moved = migrate("to-spark", chk, "--flink-rest", _URL)
    assert moved.code == 0, moved.stderr
    assert f"Flink lists job {_JOB} as CANCELED, and no other job is running" in moved.stderr
    assert "stop the job" not in moved.stderr and "if the job is" not in moved.stderr
    assert "next: use this output as startingOffsets" in moved.stderr
    _answer_numbers(monkeypatch, 8)
    refused = migrate("to-spark", chk, "--flink-rest", _URL)
    assert refused.code == 4
    assert (
        "move from the newest savepoint or retained checkpoint of the ended job" in refused.stderr
    )
    allowed = migrate("to-spark", chk, "--flink-rest", _URL, "--allow-ran-on")
    assert allowed.code == 0, allowed.stderr
    assert "stop the job" not in allowed.stderr


@pytest.mark.parametrize(
    ("origin", "ended", "evidence"),
    [
        (
            _STOP,
            _FINISHED,
            "the job was stopped with this savepoint, Flink lists it (job "
            f"{_JOB}, orders) as FINISHED, and Flink lists no job that was restored from it",
        ),
        (
            _RETAINED,
            replace(_FINISHED, state="CANCELED"),
            f"Flink lists job {_JOB} (orders), which wrote this checkpoint, as CANCELED, and lists "
            "no job that was restored from it",
        ),
    ],
)
def test_refusal_for_group_distinguishes_running_job_from_ended_job_of_checkpoint(
    origin: Origin, ended: FlinkJob, evidence: str
) -> None:
    """Regression: The refusal did not state that the job of the savepoint had ended.

    The advice was to stop the job, although it was a different job that was running.
    """
    clicks = FlinkJob(_OTHER, "clicks", "RUNNING", 5)
    judgment = judge_jobs(origin, [(ended, None), (clicks, None)])
    assert job_refusals(judgment, allow_ran_on=False) == []
    (refusal,) = job_refusals(judgment, allow_ran_on=False, is_group=True)
    assert refusal.code == "other-job-may-overwrite-group"
    assert refusal.startswith(
        f"{evidence}; however, Flink lists job {_OTHER} (clicks) as RUNNING; if that job commits "
    )
    assert "stop the job with a savepoint" not in refusal
    assert "omit flink_rest" in refusal


@pytest.mark.parametrize(("job_id", "is_same"), [(_JOB, True), (_OTHER, False)])
def test_refusal_states_whether_running_job_wrote_checkpoint(job_id: str, is_same: bool) -> None:
    judgment = judge_jobs(_RETAINED, [(FlinkJob(job_id, "orders", "RUNNING", 2**45), None)])
    (refusal,) = job_refusals(judgment, allow_ran_on=False)
    assert (judgment.is_same_job, refusal.code) == (is_same, "job-running")
    assert ("wrote checkpoint 7" in refusal) is is_same
    assert (refusal.facts["if_different"] == "") is is_same


@pytest.mark.parametrize(
    ("commits", "group"),
    [
        ((3, 5), "flink"),
        ((3, None), "flink"),
        ((None, None), None),  # no commits, for example because the group name is mistyped
        ((3, 1), None),  # an older commit
        ((4, 5), None),
    ],
)
def test_source_group_proves_stop_only_if_commits_equal_checkpoint_positions(
    tmp_path: Path, commits: tuple[int | None, ...], group: str | None
) -> None:
    chk = write_source(tmp_path / _JOB / "chk-7", {0: splits("t", [3, 5])})
    extraction = extract(read_checkpoint(chk))
    plan = make_plan(extraction, extraction.sources, None, target=target_of(None))
    partitions = [
        replace(planned, flink_committed=commit)
        for planned, commit in zip(plan.partitions, commits, strict=True)
    ]
    plan = replace(plan, source_group="flink", partitions=tuple(partitions))
    assert compared_group(plan) == group


def test_old_savepoint_triggers_warning(tmp_path: Path) -> None:
    moved = _moved(tmp_path, 12.5)
    assert "warning: this savepoint was written 12 days ago; if the job was rest" in moved.stderr
    assert "[old-savepoint]" in moved.stderr


@pytest.mark.parametrize("flag", ["--checkpoint-dir", "--plan-out"])
def test_write_from_old_savepoint_requires_proof_or_override(tmp_path: Path, flag: str) -> None:
    """The proof is a JobManager or a source group that shows no restart after the savepoint."""
    asked, out = _savepoint(tmp_path, 1.5), tmp_path / "out"
    refused = migrate("to-spark", *asked, flag, out)
    assert (refused.code, refused.stdout) == (4, ""), refused.stderr
    assert "written 1 day ago" in refused.stderr
    assert all(option in refused.stderr for option in ("--flink-rest", "--source-group"))
    assert not out.exists()
    allowed = migrate("to-spark", *asked, flag, out, "--allow-ran-on")
    assert allowed.code == 0, allowed.stderr


def test_flink_is_queried_for_every_command_that_moves_positions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment variable sets the JobManager.

    Flink lists a job restored from the savepoint.
    """
    asked, out = _savepoint(tmp_path, 0), tmp_path / "out"
    again = FlinkJob(_OTHER, "x", "RUNNING")
    restored: list[tuple[FlinkJob, str | None]] = [(again, str(asked[0]))]
    monkeypatch.setattr(flink_rest, "read_restored_jobs", lambda url: restored)
    monkeypatch.setenv("MIGRATE_FLINK_REST", _URL)
    for command in (
        ("to-spark", *asked),
        ("to-spark", *asked, "--checkpoint-dir", out),
        ("to-spark", *asked, "--plan-out", out),
        ("to-flink", asked[0], "--from", asked[0], "--out", out, *asked[1:]),
    ):
        refused = migrate(*command)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert f"job {_OTHER} (x), RUNNING, continued the job" in refused.stderr
        assert not out.exists()
    # Flink is not queried for positions that no Flink job has written.
    (tmp_path / "side.json").write_text('{"t": {"0": 1}}')
    assert migrate("to-spark", f"json:{tmp_path / 'side.json'}").code == 0
    monkeypatch.delenv("MIGRATE_FLINK_REST")
    plan = tmp_path / "plan.json"
    assert migrate("to-spark", *asked, "--plan-out", plan).code == 0
    monkeypatch.setenv("MIGRATE_FLINK_REST", _URL)
    for command in (
        ("to-spark", "--plan", plan),
        ("to-spark", "--plan", plan, "--checkpoint-dir", out),
    ):
        refused = migrate(*command)
        assert (refused.code, refused.stdout) == (4, ""), refused.stderr
        assert f"job {_OTHER} (x), RUNNING, continued the job" in refused.stderr
        assert "[job-has-later-output-after-plan]" in refused.stderr
        assert not out.exists()
    now = int(time.time() * 1000)
    restored[:] = [(FlinkJob(f"0523e1{'0' * 26}", "x", "FINISHED", now - _HOUR, now), None)]
    _answer_numbers(monkeypatch, 2)
    moved = migrate("to-spark", *asked)
    assert moved.code == 0, moved.stderr
    assert "ok: the job was stopped with this savepoint, Flink lists it (job " in moved.stderr


def test_messages_about_stop_and_age_are_printed_only_for_savepoints(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    os.utime(chk / "_metadata", (0, 0))
    moved = migrate("to-spark", chk)
    assert moved.code == 0
    for text in ("stopped", "ago", "[job-may-run]", "[old-savepoint]"):
        assert text not in moved.stderr
