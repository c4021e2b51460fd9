"""Reactions of a cut-over to a JobManager's answers.

tests/integration/test_cut_over.py uses a real JobManager.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from decoder import DecodeError
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import Unavailable
from migrate.extensions.cutover.observe import observe
from migrate.extensions.cutover.observe_stopped_job import read_savepoint
from migrate.extensions.cutover.report import StartReport
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.model.errors import CutOverStopped, MigrateError, Refused
from migrate.model.message import Message
from tests.support.cut_over import act, open_context, reason_done
from tests.support.golden_topics import GOLDEN
from tests.support.local_server import QuietHandler, serving
from tests.support.recorded_flink import recorded_flink

_JOB = "0123456789abcdef0123456789abcdef"
_SAVEPOINTS = f"/jobs/{_JOB}/savepoints/"
_FAILED = '{"status": {"id": "COMPLETED"}, "operation": {"failure-cause": {"stack-trace": "No"}}}'
_GOES_ON = '{"status": {"id": "IN_PROGRESS"}, "operation": null}'


class Flink:
    """A JobManager with one job.

    Attributes:
        state: the state of the job, or None if Flink does not list the job.
        answers: the answer to each path.
        known: the status of each requested stop, by its trigger ID.
        of_a_stop: the status of the next requested stop.
        asked: the path and the body of each POST request.
    """

    def __init__(self) -> None:
        self.state: str | None = "RUNNING"
        self.answers = {
            "/config": '{"flink-version": "2.2.0"}',
            f"/jobs/{_JOB}": f'{{"jid":"{_JOB}","name":"orders","state":"RUNNING","vertices":[]}}',
        }
        self.known: dict[str, str] = {}
        self.of_a_stop = _FAILED
        self.asked: list[tuple[str, Any]] = []
        self.checkpoints(None)

    def checkpoints(self, completed: Path | None, **latest: Any) -> None:
        found = {"id": 7, "external_path": f"file:{completed}"} if completed else None
        told = {"latest": {"completed": found, **latest}}
        self.answers[f"/jobs/{_JOB}/checkpoints"] = json.dumps(told)

    def answer(self, path: str) -> str | None:
        if path == "/jobs/overview":
            job = {"jid": _JOB, "name": "orders", "state": self.state, "start-time": 1}
            return json.dumps({"jobs": [{**job, "end-time": -1}] if self.state else []})
        if path.startswith(_SAVEPOINTS):
            return self.of_a_trigger(path.removeprefix(_SAVEPOINTS))
        return self.answers.get(path)

    def of_a_trigger(self, trigger_id: str) -> str | None:
        return self.known.get(trigger_id)

    def post(self, path: str, body: Any) -> None:
        self.asked.append((path, body))
        self.known[body["triggerId"]] = self.of_a_stop


@pytest.fixture
def flink() -> Iterator[tuple[Flink, str]]:
    known = Flink()

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            told = known.answer(self.path)
            self.send_response(404 if told is None else 200)
            self.end_headers()
            self.wfile.write((told or "{}").encode())

        def do_POST(self) -> None:
            known.post(self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(202)
            self.end_headers()

    with serving(Handler) as url:
        yield known, url


def _context(
    folder: Path, url: str | None, *, savepoint: Path | None = None, **more: Any
) -> CutOverContext:
    flink: dict[str, Any] = {"savepoint": str(savepoint)}
    if savepoint is None:
        flink = {"rest": url, "job": "orders", "savepoints": str(folder / "savepoints")}
    spec = {
        "version": 1,
        "flink": {**flink, **more.pop("flink", {})},
        "kafka": {"bootstrap-servers": "127.0.0.1:1"},
        "target": {"checkpoint-dir": "query"},
        "timeouts": {"stop": "5m"},
        **more,
    }
    path = folder / "orders.yaml"
    path.write_text(yaml.safe_dump(spec))
    return open_context(path)


def _golden(name: str) -> Path:
    (found,) = (GOLDEN / name).glob("savepoint-*")
    return found


# -- obstacles of the stop -----------------------------------------------------------------------


def _refused(context: CutOverContext) -> list[Any]:
    """Return the code and the facts of each refusal."""
    with pytest.raises(Refused) as refused:
        act(context, "check")
    return _codes_and_facts(refused.value)


def _codes_and_facts(error: MigrateError) -> list[Any]:
    return [
        (reason.code, reason.facts) if isinstance(reason, Message) else reason
        for reason in error.reasons
    ]


def test_stop_is_refused_unless_job_is_running(flink: tuple[Flink, str], tmp_path: Path) -> None:
    known, url = flink
    context = _context(tmp_path, url)
    for known.state in ("RESTARTING", "CREATED"):
        facts = {"job_id": _JOB, "job": "orders", "state": known.state}
        assert _refused(context) == [("job-not-running", facts)]


def test_file_as_savepoint_folder_is_refused(flink: tuple[Flink, str], tmp_path: Path) -> None:
    """Regression: The check found no obstacle, and Flink failed after the stop request."""
    context = _context(tmp_path, flink[1])
    (tmp_path / "savepoints").touch()
    facts = {"key": "flink.savepoints", "folder": f"{tmp_path}/savepoints"}
    assert _refused(context) == [("folder-is-file", facts)]


@pytest.mark.parametrize("existing", ["/proc", "/sys/fs"])
def test_unwritable_checkpoint_dir_is_refused_before_stop(
    existing: str, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """Regression: The check found no obstacle, and ``apply`` failed after the stop.

    Not even root can create a directory in these file systems, but their mode bits allow it.
    """
    target = f"{existing}/queries/orders"
    context = _context(tmp_path, flink[1], target={"checkpoint-dir": target})
    _, (code, facts) = _refused(context)  # the first refusal is about the missing checkpoint
    assert code == "checkpoint-dir-not-writable"
    assert (facts["location"], facts["directory"]) == (target, existing)


def test_check_for_writable_checkpoint_dir_changes_nothing(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    context = _context(tmp_path, flink[1], target={"checkpoint-dir": "queries/orders"})
    before = sorted(tmp_path.rglob("*"))
    assert _refused(context) == [("no-completed-checkpoint", {})]
    assert sorted(tmp_path.rglob("*")) == before


def test_check_step_reports_idle_tasks_failed_checkpoint_and_missing_program(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    context = _context(tmp_path, url, start="no-such-program-here --fast")
    no_program = ("program-missing", {"program": "no-such-program-here"})
    assert _refused(context) == [("no-completed-checkpoint", {}), no_program]

    chk = _golden("1.20/legacy-stop")
    tasks = [{"name": f"t{n}", "status": "RUNNING" if n == 3 else "FINISHED"} for n in range(8)]
    job = {"jid": _JOB, "name": "orders", "state": "RUNNING", "vertices": tasks}
    known.answers[f"/jobs/{_JOB}"] = json.dumps(job)
    known.checkpoints(chk, failed={"id": 8, "failure_message": "too late"})
    idle = [f"t{n}: FINISHED" for n in (0, 1, 2, 4, 5, 6, 7)]
    failed = ("checkpoint-failed", {"failure": "too late"})
    assert _refused(context) == [("tasks-not-running", {"tasks": idle}), failed, no_program]
    known.answers[f"/jobs/{_JOB}"] = json.dumps({**job, "vertices": tasks[3:4]})
    assert _refused(context) == [failed, no_program]


def test_legacy_source_is_refused_before_stop(flink: tuple[Flink, str], tmp_path: Path) -> None:
    known, url = flink
    shutil.copytree(_golden("1.20/legacy-stop"), tmp_path / "job" / "chk-7")
    known.checkpoints(tmp_path / "job" / "chk-7")
    (tmp_path / "query").mkdir()
    (tmp_path / "query" / "theirs").touch()
    legacy, *others = _refused(_context(tmp_path, url))
    assert legacy == ("legacy-consumer-stop", {})
    assert len(others) == 1 and str(tmp_path / "query") in str(others[0])


def test_check_step_retries_with_next_checkpoint_if_flink_deleted_previous_one(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """Regression: The check failed (exit code 3) if Flink had deleted four checkpoints in a row."""
    known, url = flink
    job = tmp_path / "job"
    job.mkdir()
    asked = 0

    def checkpoints_path(path: str) -> str | None:
        nonlocal asked
        if path.endswith("/checkpoints"):
            asked += 1
            known.checkpoints(job / f"chk-{asked}")
            if asked == 6:  # the first one that still exists
                shutil.copytree(_golden("1.20/legacy-stop"), job / f"chk-{asked}")
        return Flink.answer(known, path)

    known.answer = checkpoints_path  # type: ignore[method-assign]
    assert _refused(_context(tmp_path, url))[0] == ("legacy-consumer-stop", {})
    assert asked == 6


def test_check_step_does_not_wait_for_job_directory_that_does_not_exist(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    known.checkpoints(tmp_path / "another-machine" / "chk-7")
    before = time.monotonic()
    with pytest.raises(DecodeError, match="no such file or directory"):
        act(_context(tmp_path, url), "check")
    assert time.monotonic() - before < 5


@pytest.mark.parametrize(
    ("start", "refused"),
    [
        ("no-such-program-here", True),
        (["no-such-program-here", "x"], True),
        ("./there", False),
        (["./there"], False),
        ("cd /", False),  # a shell builtin
        ("$SPARK_HOME/bin/spark-submit", False),
        (["$SPARK_HOME/bin/spark-submit"], True),
    ],
)
def test_check_step_refuses_missing_start_program(
    start: str | list[str], refused: bool, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("#!/bin/sh\n")
    (tmp_path / "there").chmod(0o755)
    found = _refused(_context(tmp_path, flink[1], start=start))
    program = start.split()[0] if isinstance(start, str) else start[0]
    no_program = [("program-missing", {"program": program})] if refused else []
    assert found == [("no-completed-checkpoint", {}), *no_program]


# -- the stop ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "asked"),
    [
        ({}, {"drain": False, "formatType": "CANONICAL"}),
        ({"drain": True}, {"drain": True, "formatType": "CANONICAL"}),
        ({"format": "native"}, {"drain": False, "formatType": "NATIVE"}),
    ],
)
def test_stop_is_requested_once_and_found_by_later_run(
    spec: dict[str, Any], asked: dict[str, Any], flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    done = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
    known.of_a_stop = json.dumps(done)
    context = _context(tmp_path, url, flink=spec)
    assert reason_done(context, "stop") is None
    assert act(context, "stop") == "stopped with file:/s/savepoint-1"
    ((path, body),) = known.asked
    trigger_id = body.pop("triggerId")
    assert path == f"/jobs/{_JOB}/stop"
    assert body == {"targetDirectory": f"file://{tmp_path}/savepoints/{_JOB}", **asked}
    found = context.record.model.flink
    assert (found.job_id, found.job_name, found.version) == (_JOB, "orders", "2.2.0")
    assert (found.savepoint, found.finished) == ("file:/s/savepoint-1", True)
    assert reason_done(context, "stop") == "stopped with file:/s/savepoint-1"

    # A run whose record does not contain the stop finds the stop by its trigger ID.
    known.state = "FINISHED"
    there = tmp_path / "savepoints" / _JOB / "savepoint-1"
    shutil.copytree(_golden("2.2/stop"), there)
    end = {
        "id": read_savepoint(context, str(there)).checkpoint_id,
        "external_path": f"file:{there}",
    }
    known.checkpoints(None, savepoint=end)
    shutil.rmtree(context.record.folder)
    found_again = f"already stopped by another client with {there}"
    assert act(_context(tmp_path, url, flink=spec), "stop") == found_again
    # After a failed stop, a new stop is requested.
    known.state = "RUNNING"
    known.known[trigger_id] = _FAILED
    shutil.rmtree(context.record.folder)
    assert act(_context(tmp_path, url, flink=spec), "stop") == "stopped with file:/s/savepoint-1"
    assert len(known.asked) == 2
    assert known.asked[1][1]["triggerId"] != trigger_id


def test_stop_of_earlier_job_with_same_id_is_ignored(
    flink: tuple[Flink, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job restarted under a fixed ID, and Flink remembers the old stop for five minutes."""
    known, url = flink
    monkeypatch.setattr("migrate.inputs.watch.time", Clock())
    for number in (1, 2):
        done = {"location": f"file:/s/savepoint-{number}"}
        known.of_a_stop = json.dumps({"status": {"id": "COMPLETED"}, "operation": done})
        context = _context(tmp_path, url)
        assert act(context, "stop") == f"stopped with file:/s/savepoint-{number}"
        assert len(known.asked) == number
        shutil.rmtree(context.record.folder)


def test_failed_or_timed_out_stop_reports_job_state(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    with pytest.raises(CutOverStopped) as failed:
        act(_context(tmp_path, url), "stop")
    assert _codes_and_facts(failed.value) == [
        ("stop-failed", {"problem": "No", "state": "RUNNING"})
    ]

    known.of_a_stop = _GOES_ON
    context = _context(tmp_path, url, timeouts={"stop": "200ms"})
    with pytest.raises(CutOverStopped) as late:
        act(context, "stop")
    unfinished = {"limit": "200ms", "state": "RUNNING"}
    assert _codes_and_facts(late.value) == [("stop-unfinished", unfinished)]
    assert not context.record.model.flink.finished
    known.state = None
    with pytest.raises(CutOverStopped) as unknown:
        act(context, "stop")
    assert _codes_and_facts(unknown.value) == [
        ("stop-unfinished", {**unfinished, "state": "not listed"})
    ]


def test_reported_state_of_job_follows_progress_of_stop_request(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """Regression: The state was "a stop was requested" before the request and after its failure."""
    known, url = flink
    context = _context(tmp_path, url)
    context.record.path.unlink(missing_ok=True)
    (context.record.path / "full").mkdir(parents=True)  # so the record cannot be written
    with pytest.raises(OSError, match="Is a directory"):
        act(context, "stop")
    assert known.asked == []
    assert context.state == "this run has not changed anything or stopped a job"
    shutil.rmtree(context.record.path)
    with pytest.raises(CutOverStopped) as failed:
        act(context, "stop")
    assert failed.value.codes == ["stop-failed"]
    assert context.state == "the stop of the Flink job failed"
    requested = "a stop of the Flink job was requested, and Flink may still stop the job"
    known.of_a_stop = _GOES_ON
    context = _context(tmp_path, url, timeouts={"stop": "200ms"})
    with pytest.raises(CutOverStopped):
        act(context, "stop")
    assert context.state == requested == _context(tmp_path, url).state
    done = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
    known.of_a_stop = json.dumps(done)
    known.known = dict.fromkeys(known.known, known.of_a_stop)
    act(context, "stop")
    state = "the Flink job has stopped, and this run has not written the target"
    assert context.state == state == _context(tmp_path, url).state


def test_stop_forgotten_by_flink_raises_error(flink: tuple[Flink, str], tmp_path: Path) -> None:
    known, url = flink
    known.post = lambda path, body: None  # type: ignore[method-assign]
    with pytest.raises(FlinkRestError) as forgotten:
        act(_context(tmp_path, url), "stop")
    assert forgotten.value.codes == ["stop-request-lost"]


def test_stop_is_awaited_despite_invalid_jobmanager_answer(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    done = {"status": {"id": "COMPLETED"}, "operation": {"location": "file:/s/savepoint-1"}}
    # The answers are: no such stop, in progress, invalid JSON, and completed.
    told = iter([None, _GOES_ON, "no JSON", json.dumps(done)])
    known.of_a_trigger = lambda trigger_id: next(told)  # type: ignore[method-assign]
    assert act(_context(tmp_path, url), "stop") == "stopped with file:/s/savepoint-1"


@pytest.mark.parametrize(
    ("state", "left", "code"),
    [
        ("CANCELED", False, "no-final-savepoint"),
        ("CANCELED", True, "final-savepoint-unknown"),
        (None, False, "no-final-savepoint"),
        (None, True, "job-not-listed"),
    ],
)
def test_stop_step_refuses_job_that_ended_without_reported_savepoint(
    state: str | None, left: bool, code: str, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """No stop is requested. If the folder contains a savepoint, the message contains its path."""
    known, url = flink
    known.state = state
    context = _context(tmp_path, url)
    context.record.change_flink(job_id=_JOB, job_name="orders")
    if left:
        shutil.copytree(_golden("2.2/stop"), tmp_path / "savepoints" / _JOB / "savepoint-1")
    with pytest.raises(CutOverStopped) as refused:
        act(context, "stop")
    ((found, facts),) = _codes_and_facts(refused.value)
    assert (found, facts["job_id"]) == (code, _JOB)
    assert facts.get("state", "not listed") == (state or "not listed")
    savepoint = f"{tmp_path}/savepoints/{_JOB}/savepoint-1"
    assert (savepoint in str(refused.value)) == left
    assert not known.asked


class Clock:
    """A clock that advances only during ``sleep``."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.slow
@pytest.mark.parametrize(
    ("interval", "old_for", "found"),
    [
        ({}, 3, True),
        ({}, 60, False),
        ({"refresh-interval": 1_000}, 60, False),
        ({"refresh-interval": 60_000}, 60, True),
    ],
)
def test_manual_stop_is_recognized_within_flink_refresh_interval(
    interval: dict[str, int],
    old_for: float,
    found: bool,
    flink: tuple[Flink, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Flink serves outdated answers for up to its web.refresh-interval."""
    known, url = flink
    clock = Clock()
    monkeypatch.setattr("migrate.inputs.watch.time", clock)
    known.state = "FINISHED"
    known.answers["/config"] = json.dumps({"flink-version": "2.2.0", **interval})
    shutil.copytree(_golden("2.2/stop"), tmp_path / "savepoints" / _JOB / "savepoint-1")
    context = _context(tmp_path, url)
    there = read_savepoint(context, str(tmp_path / "savepoints" / _JOB / "savepoint-1"))

    def answer(path: str) -> str | None:
        if clock.now >= old_for:
            end = {"id": there.checkpoint_id, "external_path": there.pointer}
            known.checkpoints(None, savepoint=end)
        return Flink.answer(known, path)

    known.answer = answer  # type: ignore[method-assign]
    if found:
        assert act(context, "stop") == f"already stopped by another client with {there.pointer}"
        return
    with pytest.raises(Refused) as refused:
        reason_done(context, "stop")
    assert refused.value.codes == ["savepoint-missing-after-end"]


def test_refusal_contains_path_of_savepoint_in_different_folder(
    flink: tuple[Flink, str], tmp_path: Path
) -> None:
    known, url = flink
    known.state = "FINISHED"
    known.checkpoints(None, savepoint={"id": 7, "external_path": "file:/other/savepoint-1"})
    with pytest.raises(Refused) as refused:
        reason_done(_context(tmp_path, url), "stop")
    ((code, facts),) = _codes_and_facts(refused.value)
    assert code == "savepoint-in-other-folder"
    assert facts["savepoint"] == "file:/other/savepoint-1"


@pytest.mark.parametrize("is_finished", [True, False])
def test_stop_of_different_cut_over_in_different_folder_is_refused(
    is_finished: bool, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """Regression: A second spec found the stop by its trigger ID, and the job was moved twice."""
    known, url = flink
    (tmp_path / "first").mkdir()
    savepoint = f"file:{tmp_path}/first/savepoints/{_JOB}/savepoint-1"
    done = json.dumps({"status": {"id": "COMPLETED"}, "operation": {"location": savepoint}})
    known.of_a_stop = done
    act(_context(tmp_path / "first", url), "stop")
    known.state = "FINISHED"
    known.checkpoints(None, savepoint={"id": 7, "external_path": savepoint})
    context = _context(tmp_path, url)
    if not is_finished:  # the second run sees the end of the stop
        told = iter([_GOES_ON, done])
        known.of_a_trigger = lambda trigger_id: next(told)  # type: ignore[method-assign]
    for step in ("check", "stop") if is_finished else ("stop",):
        with pytest.raises(Refused) as refused:
            act(context, step)
        facts = {
            "job": "orders",
            "job_id": _JOB,
            "state": "FINISHED",
            "folder": f"file://{tmp_path}/savepoints/{_JOB}",
            "savepoint": savepoint,
        }
        assert _codes_and_facts(refused.value) == [("savepoint-in-other-folder", facts)]
    assert context.record.model.flink.job_id is None
    assert len(known.asked) == 1


# -- clean stop ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("savepoint", "told"),
    [
        ("2.2/stop", "the savepoint is complete"),
        ("2.2/drain", "the savepoint is complete"),
        ("1.15/stop", "the savepoint is complete"),  # 1.15 does not record the kind of stop
        ("2.2/savepoint", None),
    ],
)
def test_clean_step_refuses_savepoint_if_job_kept_running(
    savepoint: str, told: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("WARNING")
    context = _context(tmp_path, None, savepoint=_golden(savepoint))
    if told is None:
        with pytest.raises(Refused) as refused:
            act(context, "clean")
        assert refused.value.codes == ["savepoint-without-stop"]
        return
    assert act(context, "clean") == told
    codes = [message.rpartition(" ")[2] for message in caplog.messages]
    assert codes == (["[stop-unknown]"] if savepoint.startswith("1.15") else [])
    assert reason_done(context, "clean") is None  # the state of the job is unknown


@pytest.mark.parametrize(
    ("state", "finished", "clean"),
    [
        ("FINISHED", True, True),
        (None, True, True),  # Flink no longer lists the job
        ("FINISHED", False, False),
        ("FAILED", True, False),
    ],
)
def test_clean_step_requires_finished_job(
    state: str | None, finished: bool, clean: bool, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """If Flink no longer lists the job, the record has to show that the job finished."""
    known, url = flink
    known.state = state
    context = _context(tmp_path, url)
    pointer = str(_golden("2.2/stop"))
    told = {"job_id": _JOB, "job_name": "orders", "savepoint": pointer, "finished": finished}
    context.record.change_flink(**told)
    if clean:
        assert act(context, "clean") == "the savepoint is complete, and the job has FINISHED"
        assert (
            reason_done(context, "clean") == "the savepoint was complete, and the job has FINISHED"
        )
        return
    with pytest.raises(CutOverStopped) as refused:
        act(context, "clean")
    assert _codes_and_facts(refused.value) == [("job-not-finished", {"state": state})]


@pytest.mark.parametrize("began", ["start", "written"])
@pytest.mark.parametrize(
    ("target", "restored", "again"),
    [
        ({"group": "g"}, None, False),  # the consumers that the start command started
        ({"group": "g"}, "savepoint", True),
        ({"checkpoint-dir": "query"}, None, True),
    ],
)
def test_job_that_reads_target_group_counts_as_restarted_only_if_it_restored_savepoint(
    target: dict[str, str],
    restored: str | None,
    again: bool,
    began: str,
    flink: tuple[Flink, str],
    tmp_path: Path,
) -> None:
    """Regression: Without a ``start`` command, new consumers were mistaken for the restarted job.

    The group's new consumers can belong to a Flink job with the same name as the stopped job.
    """
    known, url = flink
    savepoint = _golden("2.2/stop")
    job = {"jid": "b" * 32, "name": "orders", "state": "RUNNING", "start-time": 2**42}
    known.answers["/jobs/overview"] = json.dumps({"jobs": [{**job, "end-time": -1}]})
    known.answers[f"/jobs/{'b' * 32}"] = json.dumps({"now": round(1000 * time.time())})
    path = None if restored is None else {"id": 1, "external_path": f"file:{savepoint}"}
    known.answers[f"/jobs/{'b' * 32}/checkpoints"] = json.dumps({"latest": {"restored": path}})
    known.answer = lambda path: known.answers.get(path)  # type: ignore[method-assign]
    flink_of_others = {"rest": url, "job": "orders"}
    context = _context(tmp_path, url, savepoint=savepoint, flink=flink_of_others, target=target)
    at = "2026-01-01T00:00:00+00:00"
    if began == "written":
        context.record.change(written=at)
    else:
        context.record.change(start=StartReport(at=at, returned=None))
    started_again = observe(context, "started again").started_again
    assert (started_again is not None) == again


@pytest.mark.parametrize("ahead_s", [-600, 0, 600])
@pytest.mark.parametrize("is_consumer", [True, False])
def test_start_time_of_job_is_compared_using_clock_of_jobmanager(
    ahead_s: int, is_consumer: bool, tmp_path: Path
) -> None:
    """Regression: If the JobManager's clock was ahead, the restarted job was not recognized."""
    with recorded_flink() as (recorded, url):
        recorded.ahead_ms = 1000 * ahead_s
        recorded.began_at(seconds_ago=100)
        flink_of_others = {"rest": url, "job": "the job that moves"}
        context = _context(
            tmp_path,
            url,
            savepoint=_golden("2.2/stop"),
            flink=flink_of_others,
            target={"group": "g"},
        )
        began_ago = 105 if is_consumer else 95
        at = datetime.now(timezone.utc) - timedelta(seconds=began_ago)
        context.record.change(start=StartReport(at=at.isoformat(), returned=None))
        started_again = observe(context, "started again").started_again
    assert (started_again is None) == is_consumer, started_again


def test_recovered_job_counts_as_possibly_restarted_job(tmp_path: Path) -> None:
    """Regression: With high availability, the job had recovered, but the query was started."""
    with recorded_flink() as (recorded, url):
        recorded.began_at(seconds_ago=0)
        path = recorded.recovered()
        flink_of_others = {"rest": url, "job": "orders"}
        context = _context(tmp_path, url, savepoint=_golden("2.2/stop"), flink=flink_of_others)
        started_again = observe(context, "started again").started_again
    assert isinstance(started_again, Unavailable)
    told = f"{recorded.reading} (the job that moves) started later, and has recovered from {path}"
    assert told in str(started_again.error)


@pytest.mark.parametrize("name", ["orders", "another"])
def test_job_restored_from_original_of_copied_savepoint_counts_as_restarted(
    name: str, flink: tuple[Flink, str], tmp_path: Path
) -> None:
    """Regression: The job was older than the copy of the savepoint and had a different name."""
    known, url = flink
    savepoint, copy = _golden("2.2/stop"), tmp_path / "backup"
    shutil.copytree(savepoint, copy)
    job = {"jid": "b" * 32, "name": name, "state": "CANCELED", "start-time": 1, "end-time": 2}
    known.answers["/jobs/overview"] = json.dumps({"jobs": [job]})
    known.answer = lambda path: known.answers.get(path)  # type: ignore[method-assign]
    context = _context(tmp_path, url, savepoint=copy, flink={"rest": url, "job": "orders"})
    for random, again in (("", True), ("0", False)):
        directory = f"file:/flink/checkpoints/2.2/stop/{savepoint.name}{random}"
        path = {"id": 1, "external_path": directory}
        known.answers[f"/jobs/{'b' * 32}/checkpoints"] = json.dumps({"latest": {"restored": path}})
        started_again = observe(context, "started again").started_again
        assert isinstance(started_again, FlinkJob) == again


def test_cut_over_record_keeps_latest_attempt_of_each_step(tmp_path: Path) -> None:
    record = _context(tmp_path, None, savepoint=_golden("2.2/stop")).record
    record.begin_run("execute")
    record.add_step("check", "done", "well", 1.23456)
    record.add_step("stop", "failed", "no answer", 0.5)
    record.add_step("plan", "done", "later", 0.25)
    record.begin_run("execute")
    record.add_step("stop", "done", "stopped", 2)
    record.add_done_step("stop", "seen")
    record.add_done_step("clean", "clean")
    told = [(one.name, one.state, one.told, one.seconds, one.run) for one in record.model.steps]
    assert told == [
        ("check", "done", "well", 1.235, 1),
        ("stop", "done", "stopped", 2.0, 2),
        ("plan", "done", "later", 0.25, 1),
        ("clean", "done", "clean", 0.0, 2),
    ]
