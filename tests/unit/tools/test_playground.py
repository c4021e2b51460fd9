"""Stop and start the playground without Kafka and Flink."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.playground.__main__ import PlaygroundError, start, stop
from tests.support.kafka import free_ports

_SLEEP = "import time; time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "playground"
    for name in ("kafka", "flink", "clicks"):
        (folder / name).mkdir(parents=True)
    return folder


@pytest.fixture
def processes(home: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that sleep; only the first has the folder on its command line."""
    started = [
        subprocess.Popen([sys.executable, "-c", _SLEEP, *words])
        for words in ([str(home / "kafka/server.properties")], [])
    ]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_stopping_playground_ends_only_its_own_processes(
    home: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    ours, other = processes
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (home / "kafka/pid").write_text(f"{ours.pid}\n")
    (home / "flink/pid").write_text(f"{other.pid}\n")  # a different process reused its ID
    (home / "clicks/query.pid").write_text(f"{ended.pid}\n")
    stop(home)
    assert ours.wait(timeout=10) == -signal.SIGTERM
    assert other.poll() is None
    assert not home.exists()
    with pytest.raises(PlaygroundError, match="the playground does not exist"):
        stop(home)


def test_second_start_of_playground_is_refused(
    home: Path, processes: list[subprocess.Popen[bytes]]
) -> None:
    ours, _ = processes
    (home / "kafka/pid").write_text(f"{ours.pid}\n")
    (port,) = free_ports(1)
    with pytest.raises(PlaygroundError, match="is running already; to stop it: make playground-st"):
        start(home, port)
    ours.kill()
    ours.wait()
    with pytest.raises(PlaygroundError, match="it has ended, and left the folder"):
        start(home, port)
    assert home.exists()
