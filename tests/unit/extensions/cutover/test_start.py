"""The start command of a query runs once, even if the run of the cut-over ends early."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from migrate.extensions.cutover import observe
from migrate.extensions.cutover.command import Command
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.record import locked, now
from migrate.extensions.cutover.report import StartReport
from migrate.extensions.cutover.start import await_first_batch, warn_of_failed_command
from migrate.extensions.cutover.steps import STEPS
from migrate.model.errors import CutOverStopped, InputError, Refused
from migrate.model.message import Message
from migrate.moves.plan import plan
from migrate.moves.to_spark import to_spark
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.cut_over import act, open_context, reason_done

_SECONDS = 60
# This run is killed immediately after it has started the command.
_KILLED = """
import os, signal, sys
from pathlib import Path
from migrate.extensions.cutover import start
from tests.support.cut_over import facts_of, open_context
context = open_context(Path(sys.argv[1]))
print(start.start(context, facts_of(context, "start")), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def _spec(folder: Path, command: str) -> Path:
    path = folder / "orders.yaml"
    spec = {
        "version": 1,
        "flink": {"savepoint": "savepoint-1"},
        "kafka": {"bootstrap-servers": "127.0.0.1:1"},
        "target": {"checkpoint-dir": "query"},
        "start": command,
        "timeouts": {"first-batch": "2m"},
    }
    path.write_text(yaml.safe_dump(spec))
    return path


def _seeded(folder: Path, command: str) -> Path:
    """Write a spec and its target, as after the apply step."""
    spec = _spec(folder, command)
    context = open_context(spec)
    savepoint = write_source(folder / "savepoint-1", {0: splits("orders", [5, 6])})
    plan(savepoint).save(context.record.plan_path)
    to_spark(plan=context.record.plan_path, checkpoint_dir=folder / "query")
    query_id = json.loads((folder / "query/metadata").read_text())["id"]
    context.record.change(
        moved_with=context.file.deciding_values(), query_id=query_id, written="now"
    )
    return spec


@pytest.mark.parametrize("way", ["..", "link"])
@pytest.mark.parametrize("arguments", [(), ("--back",)])
def test_spec_passed_under_different_path_resumes_same_cut_over(
    tmp_path: Path, way: str, arguments: tuple[str, ...]
) -> None:
    """Regression: The spec was refused, because the path of its target was A/../A instead of A."""
    folder = tmp_path / "orders"
    folder.mkdir()
    spec = _seeded(folder, "true")
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    other = folder / ".." / "orders" / spec.name if way == ".." else tmp_path / "link" / spec.name
    assert other.samefile(spec) and str(other) != str(spec)
    named, other_named = (migrate("cut-over", path, *arguments) for path in (spec, other))
    assert "; restore the old value" not in other_named.stderr
    assert other_named.code == named.code, other_named.stderr
    # A different folder is still a different target.
    spec.write_text(spec.read_text().replace("checkpoint-dir: query", "checkpoint-dir: query-2"))
    changed = migrate("cut-over", other, *arguments)
    assert (changed.code, "query-2; restore the old value" in changed.stderr) == (4, True)


@pytest.mark.slow
def test_start_command_counts_as_running_while_its_child_process_runs(tmp_path: Path) -> None:
    """The run that started the command was killed.

    The child process survives, as Spark's JVM does under spark-submit.
    """
    pid = tmp_path / "pid"
    spec = _seeded(tmp_path, f"sleep 300 & echo $! >{pid}; wait $!")
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, spec], capture_output=True, text=True, timeout=_SECONDS
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    context = open_context(spec)
    assert context.start_command.status() == "running"
    assert reason_done(context, "start") == "the command of an earlier run is running"

    deadline = time.monotonic() + _SECONDS
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(int(pid.read_text()), signal.SIGTERM)
    _await_end(context)
    assert reason_done(context, "start") is None


@pytest.mark.slow
def test_start_command_is_not_rerun_if_run_that_started_it_was_killed(tmp_path: Path) -> None:
    """The next run waits for the command, and then reads the exit code that the command saved."""
    spec = _seeded(tmp_path, "while ! test -e go; do sleep 0.05; done")
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, spec], capture_output=True, text=True, timeout=_SECONDS
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    context = open_context(spec)
    assert reason_done(context, "start") == "the command of an earlier run is running"
    (tmp_path / "go").touch()
    _await_end(context)
    assert reason_done(context, "start") == (
        "the command of an earlier run succeeded, and is not run again"
    )


def test_start_command_with_unknown_result_is_not_rerun(tmp_path: Path) -> None:
    """After a power failure, the command may have submitted the query before its run ended."""
    context = open_context(_seeded(tmp_path, "true"))
    (context.record.folder / "query.state").write_text("began\n")
    with pytest.raises(CutOverStopped) as stopped:
        reason_done(context, "start")
    assert stopped.value.codes == ["start-exit-code-missing"]
    # The file may also be missing. The record then shows that the command was run.
    (context.record.folder / "query.state").unlink()
    assert reason_done(context, "start") is None
    context.record.change(start=StartReport(at=now(), returned=None))
    with pytest.raises(CutOverStopped) as stopped:
        reason_done(context, "start")
    assert stopped.value.codes == ["start-exit-code-missing"]
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    (tmp_path / "query" / "offsets" / "0").write_text("v1\n{}\n{}")
    assert reason_done(context, "start") == f"the query in {tmp_path / 'query'} has planned batch 0"


def test_start_command_is_rerun_if_query_failed_in_first_batch(tmp_path: Path) -> None:
    context = open_context(
        _seeded(tmp_path, "mkdir -p query/offsets; printf 'v1\\n{}\\n{}' >query/offsets/0; exit 7")
    )
    act(context, "start")
    _await_end(context)
    assert reason_done(context, "start") is None
    # A planned batch without a start command belongs to another client's running query.
    (context.record.folder / "query.state").unlink()
    assert reason_done(context, "start") == f"the query in {tmp_path / 'query'} has planned batch 0"


def test_start_command_is_rerun_if_log_file_could_not_be_opened(tmp_path: Path) -> None:
    context = open_context(_seeded(tmp_path, "true"))
    (context.record.folder / "query.log").mkdir()
    with pytest.raises(CutOverStopped) as stopped:
        act(context, "start")
    assert stopped.value.codes == ["start-command-not-run"]
    assert context.record.model.start is None
    assert reason_done(context, "start") is None


def _await_end(context: CutOverContext) -> None:
    deadline = time.monotonic() + _SECONDS
    while context.start_command.status() == "running":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("code", [0, 7])
def test_first_batch_step_reports_exit_code_and_log_of_failed_command(
    tmp_path: Path, code: int
) -> None:
    committed = tmp_path / "query" / "commits"
    command = f"echo hello; echo '26/11/29 21:02:10 INFO Executor: stopped'; exit {code}"
    if code == 0:  # the query runs in the background and commits a batch later
        command = f"(sleep 0.5; mkdir -p {committed}; printf 'v1\\n{{}}' >{committed}/0) & exit 0"
    context = open_context(_seeded(tmp_path, command))
    act(context, "start")
    if code == 0:
        assert act(context, "first-batch") == "batch 0 is committed"
        return
    with pytest.raises(CutOverStopped) as failed:
        act(context, "first-batch")
    (reason,) = failed.value.reasons
    assert isinstance(reason, Message)
    assert (reason.code, reason.facts) == ("start-command-failed", {"exit_code": code})
    assert failed.value.details == (f"{context.record.folder / 'query.log'}:", "  hello")
    assert reason_done(context, "start") is None


def test_exit_code_of_start_command_is_reported_while_its_query_runs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: The exit code of a command was not reported if its query kept running."""
    committed = tmp_path / "query" / "commits"
    batch = f"mkdir -p {committed}; printf 'v1\\n{{}}' >{committed}/0"
    command = f"({batch}; sleep 3) & sleep 0.5; exit 1"
    context = open_context(_seeded(tmp_path, command))
    act(context, "start")
    deadline = time.monotonic() + _SECONDS
    while context.start_command.exit_code() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert context.start_command.status() == "running"  # the child process
    warn_of_failed_command(context)
    (warning,) = [line for line in caplog.messages if "[start-command-failed-later]" in line]
    assert "ended with exit code 1" in warning
    _await_end(context)


@pytest.mark.parametrize("step", ["the step", "the observation"])
def test_first_batch_step_waits_for_partially_written_log_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Regression: On a busy machine, an empty ``commits/0`` failed with "log version ''"."""
    is_step = step == "the step"
    monkeypatch.setattr(observe, "_WRITING_SECONDS", 0.0 if is_step else _SECONDS)
    commits = tmp_path / "query" / "commits"
    write = f"mkdir -p {commits}; : >{commits}/0; sleep 1; printf 'v1\\n{{}}' >{commits}/0"
    context = open_context(_seeded(tmp_path, f"({write}) & exit 0"))
    act(context, "start")
    if is_step:
        # The decision of the step is skipped, because it also reads the entry.
        facts = observe.observe(context)
        assert await_first_batch(context, facts) == "batch 0 is committed"
        return
    deadline = time.monotonic() + _SECONDS
    while not (commits / "0").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert reason_done(context, "first-batch") == "batch 0 is committed"


def test_first_batch_step_fails_if_log_entry_stays_empty(tmp_path: Path) -> None:
    commits = tmp_path / "query" / "commits"
    spec = _seeded(
        tmp_path, f"mkdir -p query/offsets {commits}; : >query/offsets/0; : >{commits}/0"
    )
    spec.write_text(spec.read_text().replace("2m", "50ms"))
    context = open_context(spec)
    act(context, "start")
    _await_end(context)
    with pytest.raises(InputError) as refused:
        act(context, "first-batch")
    assert refused.value.codes == ["log-entry-empty"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("true", "start-command-without-query"),
        ("mkdir query/offsets", "no-batch-in-time"),
        (
            "mkdir query/offsets; printf 'v1\\n{}\\n{}' >query/offsets/0",
            "first-batch-not-committed",
        ),
    ],
)
def test_timeout_of_first_batch_step_explains_missing_batch(
    tmp_path: Path, command: str, code: str
) -> None:
    """Regression: The message blamed missing records for a query of a different location."""
    spec = _seeded(tmp_path, command)
    spec.write_text(spec.read_text().replace("2m", "50ms"))
    context = open_context(spec)
    said = act(context, "start")
    assert re.fullmatch(
        r"the command is running, and keeps running after migrate exits "
        r"\(process (\d+); to stop it, run kill -- -\1\); .*log",
        said,
    )
    _await_end(context)
    with pytest.raises(CutOverStopped) as late:
        act(context, "first-batch")
    (reason,) = late.value.reasons
    assert isinstance(reason, Message)
    assert (reason.code, reason.facts["limit"]) == (code, "50ms")


def _rerun_start(spec: Path) -> str | None:
    """Run the start step of a new run, and return the reason that it has nothing to do, or None."""
    context = open_context(spec)
    if (reason := reason_done(context, "start")) is None:
        act(context, "start")
        _await_end(context)
    return reason


def test_corrected_start_command_is_run_if_earlier_command_started_no_query(
    tmp_path: Path,
) -> None:
    """Regression: A command that had exited with 0 was never rerun, even after a correction."""
    spec = _seeded(tmp_path, "echo A >>ran")
    spec.write_text(spec.read_text().replace("2m", "50ms"))
    first, not_again = (
        spec.read_text(),
        "the command of an earlier run succeeded, and is not run again",
    )
    assert _rerun_start(spec) is None
    assert _rerun_start(spec) == not_again
    with pytest.raises(CutOverStopped) as stopped:
        act(open_context(spec), "first-batch")
    assert stopped.value.codes == ["start-command-without-query"]
    assert stopped.value.details[:2] == ("the start command:", "  echo A >>ran")
    assert "echo A" not in open_context(spec).record.path.read_text()
    assert (tmp_path / "ran").read_text() == "A\n"

    spec.write_text(first.replace("echo A", "echo B"))
    assert _rerun_start(spec) is None
    assert _rerun_start(spec) == not_again
    assert (tmp_path / "ran").read_text() == "A\nB\n"

    # As soon as a query has started, no command is run, even if it has changed again.
    (tmp_path / "query" / "offsets").mkdir()
    spec.write_text(first)
    assert _rerun_start(spec) == not_again
    assert (tmp_path / "ran").read_text() == "A\nB\n"


def test_changed_start_command_is_refused_while_earlier_command_is_running(
    tmp_path: Path,
) -> None:
    """Regression: Each rerun waited for the first batch of the wrong command, without end."""
    spec = _seeded(tmp_path, "sleep 60")
    context = open_context(spec)
    act(context, "start")
    process = _process(context)
    spec.write_text(spec.read_text().replace("sleep 60", "echo B >>ran"))
    with pytest.raises(CutOverStopped) as stopped:
        reason_done(open_context(spec), "start")
    assert stopped.value.codes == ["start-changed-while-running"]
    assert f"(process {process}; to stop it, run kill -- -{process})" in str(stopped.value)
    os.killpg(process, signal.SIGTERM)  # as the message says
    _await_end(context)
    assert _rerun_start(spec) is None
    assert (tmp_path / "ran").read_text() == "B\n"


def _process(context: CutOverContext) -> int:
    """Return the process of the start command as soon as its shell has written it."""
    until = time.monotonic() + _SECONDS
    while (process := context.start_command.process_id()) is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    return process


def test_changed_start_command_is_not_run_if_earlier_release_already_ran_a_command(
    tmp_path: Path,
) -> None:
    """The record of an earlier release does not show which command was run."""
    spec = _seeded(tmp_path, "echo A >>ran")
    assert _rerun_start(spec) is None
    context = open_context(spec)
    context.record.change(start=StartReport(at=now(), returned=0))
    spec.write_text(spec.read_text().replace("echo A", "echo B"))
    assert _rerun_start(spec) is not None
    assert (tmp_path / "ran").read_text() == "A\n"


def test_first_batch_step_reports_that_no_query_started_if_command_is_still_running(
    tmp_path: Path,
) -> None:
    spec = _seeded(tmp_path, "while ! test -e go; do sleep 0.05; done")
    spec.write_text(spec.read_text().replace("2m", "50ms"))
    context = open_context(spec)
    act(context, "start")
    with pytest.raises(CutOverStopped) as stopped:
        act(context, "first-batch")
    (tmp_path / "go").touch()
    assert stopped.value.codes == ["no-query-started"]
    _await_end(context)


def test_first_batch_step_reports_that_no_query_started_if_spec_has_no_start_command(
    tmp_path: Path,
) -> None:
    """Regression: The output had "the query was started …" before "no query has started"."""
    spec = _seeded(tmp_path, "true")
    text = spec.read_text().replace("start: 'true'\n", "").replace("2m", "50ms")
    spec.write_text(text)
    assert "start" not in yaml.safe_load(text)
    context = open_context(spec)
    with pytest.raises(CutOverStopped) as stopped:
        act(context, "first-batch")
    assert stopped.value.codes == ["no-query-started"]
    (step,) = (step for step in STEPS if step.name == "first-batch")
    assert step.state == "the target was written, but this run has not seen a batch or commit"


def test_concurrent_cut_over_is_refused_by_record_lock(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "record"),
        pytest.raises(Refused, match=rf"active \(process {os.getpid()} on "),
        locked(tmp_path / "record"),
    ):
        pass
    with locked(tmp_path / "record"):
        pass


_FAILED_QUERY = """\
WARNING: Using incubator modules: jdk.incubator.vector
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
26/11/29 21:02:09 INFO ConsumerConfig: ConsumerConfig values:
\tallow.auto.create.topics = true
\tauto.commit.interval.ms = 5000

26/11/29 21:02:09 ERROR MicroBatchExecution: Query ended with error
Traceback (most recent call last):
  File "/lake/orders.py", line 12, in <module>
    .start()
pyspark.errors.exceptions.captured.AnalysisException: [PATH_NOT_FOUND] no path
java.lang.IllegalStateException: gone
\tat org.apache.spark.sql.Dataset.start(Dataset.scala:90)
\t... 23 more
Caused by: java.io.IOException: no such file
\tat java.base/java.io.FileInputStream.open0(Native Method)
Nov 29, 2026 9:02:10 PM org.apache.x.Closer close
INFO: closed
21:02:10.123 [main] WARN  o.a.s.Utils - slow
26/11/29 21:02:10 INFO ShutdownHookManager: Deleting directory /tmp/spark-1
"""


def test_error_of_failed_command_is_shown_instead_of_shutdown_log(tmp_path: Path) -> None:
    """Regression: Only the last lines of Spark's shutdown log were shown instead of the error."""
    command = Command(tmp_path, "query")
    assert command.error_lines() == ()
    shutdown = "26/11/29 21:02:10 INFO SparkContext: Successfully stopped\n"
    command.log.write_text(_FAILED_QUERY + 20 * shutdown)
    assert command.error_lines() == (
        f"{command.log}:",
        "  26/11/29 21:02:09 ERROR MicroBatchExecution: Query ended with error",
        "  Traceback (most recent call last):",
        '    File "/lake/orders.py", line 12, in <module>',
        "      .start()",
        "  pyspark.errors.exceptions.captured.AnalysisException: [PATH_NOT_FOUND] no path",
        "  java.lang.IllegalStateException: gone",
        "  Caused by: java.io.IOException: no such file",
    )
    command.log.write_text("".join(f"line {n}\n" for n in range(30)) + shutdown)
    assert command.error_lines()[1:] == tuple(f"  line {n}" for n in range(15, 30))


def test_tail_of_log_is_shown_if_log_contains_no_error(tmp_path: Path) -> None:
    command = Command(tmp_path, "query")
    lines = [f"26/11/29 21:02:10 INFO Executor: {n}" for n in range(20)]
    command.log.write_text("\n".join(lines) + "\n")
    assert command.error_lines() == (f"{command.log}:", *(f"  {line}" for line in lines[5:]))
    command.log.write_text("")
    assert command.error_lines() == (f"{command.log}: empty",)


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("26/11/29 21:01:51 INFO Executor: Finished\n\n", "INFO Executor: Finished"),
        ("[2026-11-29 21:01:51,123] a\n2026-11-29T21:01:51.123Z b\n", "b"),
        ("2026-11-29T21:01:51+0100 c", "c"),
        (
            "\tfound org.apache.spark#x;4.0.0 in central",
            "found org.apache.spark#x;4.0.0 in central",
        ),
        ("12 records of 2026-11-29 21:01:51", "12 records of 2026-11-29 21:01:51"),
    ],
)
def test_last_line_of_command_log_is_shown_without_timestamp(
    log: str, line: str, tmp_path: Path
) -> None:
    """Regression: On a terminal, the progress ended with the timestamp or the path of the log."""
    command = Command(tmp_path, "query")
    assert (command.last_line(), command.last_lines()) == ("", ())
    command.log.write_text(log)
    assert command.last_line() == line
    # Regression: At a timeout, 15 long lines hid the message.
    command.log.write_text("".join(f"{n} {'x' * 200}\n" for n in range(20)))
    path, *shown = command.last_lines()
    assert (path, [line[:5] for line in shown]) == (
        f"{command.log}:",
        [f"  {n} " for n in range(15, 20)],
    )
    assert {len(line) for line in shown} == {2 + 120 + 1}
    command.log.write_text(log)
    if not log:
        assert command.last_lines() == (f"{command.log}: empty",)
