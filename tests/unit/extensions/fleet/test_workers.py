"""Distribute work among local processes, even if some of the processes end early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from migrate.extensions.fleet import scan_run, workers
from migrate.extensions.fleet.candidates import mark_newest
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.workers import WorkerPool, cores
from migrate.model.errors import ServiceError
from migrate.model.option_names import (
    Notation,
    command_line,
    option,
    process_notation,
    python_call,
)
from migrate.storage.files import Files
from tests.support.many_jobs import generate

pytestmark = pytest.mark.slow  # each test starts processes

ROOT = Path(__file__).parents[4]
_SECONDS = 60


def square_and_process(number: int) -> tuple[int, int]:
    time.sleep(0.01)
    print("what a library prints is no answer")
    return number**2, os.getpid()


def test_worker_results_are_in_order_of_items() -> None:
    told: list[int] = []
    with WorkerPool(3) as some:
        made = some.map(square_and_process, range(200), told.append)
        again = some.map(square_and_process, range(50))
    assert [square for square, _ in made] == [number**2 for number in range(200)]
    assert sorted(told) == list(range(200))
    used = {process for _, process in made}
    assert 1 < len(used) <= 3
    assert os.getpid() in used
    assert {process for _, process in again} <= used  # the workers are reused
    assert not [process for process in used - {os.getpid()} if _runs(process)]


def test_pool_of_single_process_starts_no_worker() -> None:
    with WorkerPool(1) as alone:
        assert {process for _, process in alone.map(square_and_process, range(5))} == {os.getpid()}


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a zombie has ended


def killed_elsewhere(caller: int, folder: Path, times: int, number: int) -> int:
    """Kill this process, at most ``times`` times in total, unless it is the calling process."""
    if os.getpid() != caller:
        tries = len(list(folder.iterdir()))
        if tries < times:
            (folder / str(tries)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    else:
        time.sleep(0.2)  # leaves items to the workers
    return number


def test_item_of_killed_worker_is_processed_by_another_worker(tmp_path: Path) -> None:
    function = partial(killed_elsewhere, os.getpid(), tmp_path, 3)
    with WorkerPool(2) as two:
        assert two.map(function, range(20)) == list(range(20))
    assert len(list(tmp_path.iterdir())) == 3


def test_work_fails_if_every_worker_is_killed(tmp_path: Path) -> None:
    function = partial(killed_elsewhere, os.getpid(), tmp_path, 1_000)
    with (
        WorkerPool(2) as two,
        pytest.raises(ServiceError, match=r"^4 successive worker processes.*killed by signal 9"),
    ):
        two.map(function, range(20))
    assert len(list(tmp_path.iterdir())) == 4


def raises(caller: int, number: int) -> int:
    if os.getpid() != caller:
        raise FileExistsError(17, "File exists", "/there")
    time.sleep(0.2)
    return number


def test_error_of_worker_is_raised_with_its_traceback() -> None:
    with WorkerPool(2) as two, pytest.raises(FileExistsError, match="/there") as raised:
        two.map(partial(raises, os.getpid()), range(20))
    assert "in raises" in str(raised.value.__cause__)


def named_option(_: int) -> tuple[str, int]:
    time.sleep(0.01)
    return option("one_cluster", True), os.getpid()


@pytest.mark.parametrize(
    ("notation", "expected"), [(command_line, "--one-cluster"), (python_call, "one_cluster=True")]
)
def test_message_of_worker_contains_option_in_notation_of_caller(
    notation: Notation, expected: str
) -> None:
    """The notation is ``--one-cluster`` on the command line, and ``one_cluster=True`` in Python."""
    with WorkerPool(2) as two:
        for before in (python_call, command_line):  # workers forget the earlier notation
            with process_notation(before):
                two.map(named_option, range(10))
        with process_notation(notation):
            made = two.map(named_option, range(50))
    assert {text for text, _ in made} == {expected}
    assert len({process for _, process in made}) == 2


@pytest.mark.parametrize(
    ("notation", "expected"),
    [(command_line, "add --one-cluster"), (python_call, "add one_cluster=True")],
)
def test_scan_returns_same_messages_with_and_without_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notation: Notation, expected: str
) -> None:
    generate(tmp_path, 300)
    candidates = mark_newest(discover([str(tmp_path)], Files()))
    found = []
    for processes in (1, 3):
        monkeypatch.setattr(scan_run, "cores", lambda processes=processes: processes)
        with process_notation(notation):
            found.append(scan_run.scan_locally(candidates).jobs)
    assert found[0] == found[1]
    assert any(expected in text for job in found[1] for text in job.why_not)


_SLEEPS = """
import sys
from functools import partial
from tests.unit.extensions.fleet.test_workers import sleeps
from migrate.extensions.fleet.workers import WorkerPool
with WorkerPool(2) as two:
    two.map(partial(sleeps, float(sys.argv[1])), ["a", "b"])
"""


def raises_here(caller: int, folder: Path, number: int) -> None:
    """Raise an error in the calling process after a worker has an item, or create a file."""
    if os.getpid() == caller:
        _wait(lambda: any(folder.iterdir()))
        raise ValueError("here")
    (folder / str(number)).touch()
    time.sleep(0.05)


def test_error_in_calling_process_stops_work_on_remaining_items(tmp_path: Path) -> None:
    with WorkerPool(3) as some:
        with pytest.raises(ValueError, match="here"):
            some.map(partial(raises_here, os.getpid(), tmp_path), range(500))
        time.sleep(1)
        # Each of the two workers may have started an item. In one second, it could do twenty.
        assert len(list(tmp_path.iterdir())) <= 2


def sleeps(seconds: float, name: str) -> None:
    Path(f"{name}-{os.getpid()}").touch()
    time.sleep(seconds)


@pytest.mark.parametrize(("ended_by", "seconds"), [(signal.SIGINT, _SECONDS), (signal.SIGKILL, 3)])
def test_worker_ends_with_its_caller(
    tmp_path: Path, ended_by: signal.Signals, seconds: int
) -> None:
    """Ctrl-C ends the current items. If the caller is killed, a worker ends at its next result."""
    caller = subprocess.Popen(
        [sys.executable, "-c", _SLEEPS, str(seconds)],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    _wait(lambda: len(list(tmp_path.iterdir())) == 2)
    (helper,) = {int(one.name[2:]) for one in tmp_path.iterdir()} - {caller.pid}
    assert _runs(helper)
    # Ctrl-C in a terminal interrupts the process group of the caller. A worker in this group would
    # also print a traceback.
    assert os.getpgid(helper) != os.getpgid(caller.pid)
    begun = time.monotonic()
    os.killpg(caller.pid, ended_by)  # like Ctrl-C in a terminal
    _, told = caller.communicate(timeout=_SECONDS)
    _wait(lambda: not _runs(helper))
    assert time.monotonic() - begun < _SECONDS / 2
    assert told.count("Traceback") == (ended_by is signal.SIGINT)  # only from the caller


def test_workers_do_not_run_script_that_calls_scan(tmp_path: Path) -> None:
    """The script has no ``if __name__`` guard, so multiprocessing would run it in each process."""
    generate(tmp_path / "estate", 250)
    script = tmp_path / "script.py"
    script.write_text(
        "import migrate, sys\nprint('once')\nprint(migrate.scan(sys.argv[1]).checkpoints)\n"
    )
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "estate")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.stdout, done.stderr) == ("once\n250\n", "")


def test_number_of_workers_respects_container_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "cpu.max"
    monkeypatch.setattr(workers, "_CGROUP_V2", limit)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    for told, expected in (
        ("max 100000", 8),
        ("250000 100000", 3),
        ("50000 100000", 1),
        ("9900000 100000", 8),
    ):
        limit.write_text(told)
        assert cores() == expected
    limit.unlink()
    old = (tmp_path / "quota", tmp_path / "period")
    monkeypatch.setattr(workers, "_CGROUP_V1", old)
    assert cores() == 8
    for quota, expected in (("-1", 8), ("200000", 2)):
        for file, text in zip(old, (quota, "100000"), strict=True):
            file.write_text(text)
        assert cores() == expected


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)
