"""The command that starts the query is run once, whatever becomes of the run that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from migrate.cutover import start
from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.record import Record, locked
from migrate.cutover.spec import read_spec
from migrate.errors import Refused

_SECONDS = 60
# A run that is killed the moment it has started the command.
_KILLED = """
import os, signal, sys
from pathlib import Path
from migrate.cutover import start
from migrate.cutover.night import Night
from migrate.cutover.record import Record
from migrate.cutover.spec import read_spec
file = read_spec(Path(sys.argv[1]))
file.folder.mkdir(exist_ok=True)
print(start.start(Night(file, Record(file, keep=True, anew=True))), flush=True)
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


def _night(spec: Path) -> Night:
    file = read_spec(spec)
    file.folder.mkdir(exist_ok=True)
    return Night(file, Record(file, keep=True, anew=True))


def test_a_command_that_outlives_its_run_is_not_started_again(tmp_path: Path) -> None:
    """It is the command's child that lives on, as Spark's JVM does below spark-submit."""
    pid = tmp_path / "pid"
    spec = _spec(tmp_path, f"sleep 300 & echo $! >{pid}; wait $!")
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, spec], capture_output=True, text=True, timeout=_SECONDS
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    night = _night(spec)
    assert night.starting.runs()
    assert start.started(night) == "an earlier run has started it, and the command runs"

    deadline = time.monotonic() + _SECONDS
    while not (pid.exists() and pid.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(int(pid.read_text()), signal.SIGTERM)
    _await_end(night)
    assert start.started(night) is None


def test_a_command_that_has_handed_the_query_over_is_not_run_again(tmp_path: Path) -> None:
    """It ends well after the run that started it was killed: nobody waits for its exit code."""
    spec = _spec(tmp_path, "while ! test -e go; do sleep 0.05; done")
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, spec], capture_output=True, text=True, timeout=_SECONDS
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    night = _night(spec)
    assert start.started(night) == "an earlier run has started it, and the command runs"
    (tmp_path / "go").touch()
    _await_end(night)
    assert start.started(night) == "an earlier run has started it, and the command has ended well"


def test_where_nobody_knows_how_the_command_ended_it_is_not_run_again(tmp_path: Path) -> None:
    """As after a power cut: it may have handed the query over by then."""
    night = _night(_spec(tmp_path, "true"))
    (night.record.folder / "query.state").write_text("began\n")
    with pytest.raises(CutOverStopped, match="see whether the query runs"):
        start.started(night)
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    (tmp_path / "query" / "offsets" / "0").touch()
    assert start.started(night) == "an earlier run has started it, and it has begun"


def test_a_query_that_failed_in_its_first_batch_is_started_again(tmp_path: Path) -> None:
    night = _night(_spec(tmp_path, "mkdir -p query/offsets; echo v1 >query/offsets/0; exit 7"))
    start.start(night)
    _await_end(night)
    assert night.begun()
    assert start.started(night) is None
    # A batch that is planned, and no start of ours: somebody else's query, that runs.
    (night.record.folder / "query.state").unlink()
    assert start.started(night) == "it has begun already"


def _await_end(night: Night) -> None:
    deadline = time.monotonic() + _SECONDS
    while night.starting.runs():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("code", "told"), [(0, None), (7, "exit code 7")])
def test_how_the_command_ended_is_known(tmp_path: Path, code: int, told: str | None) -> None:
    committed = tmp_path / "query" / "commits"
    command = f"echo hello; exit {code}"
    if code == 0:  # it hands the query over, which commits a batch later
        command = f"(sleep 0.5; mkdir -p {committed}; echo v1 >{committed}/0) & exit 0"
    night = _night(_spec(tmp_path, command))
    start.start(night)
    if told is None:
        assert start.await_begin(night) == "batch 0 is committed"
        return
    with pytest.raises(CutOverStopped, match=told) as failed:
        start.await_begin(night)
    assert failed.value.details == [f"{night.record.folder / 'query.log'}:", "  hello"]
    assert start.started(night) is None


def test_two_runs_at_once_are_refused(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "record"),
        pytest.raises(Refused, match=rf"at work \(process {os.getpid()} on "),
        locked(tmp_path / "record"),
    ):
        pass
    with locked(tmp_path / "record"):
        pass
