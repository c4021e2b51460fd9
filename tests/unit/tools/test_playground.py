"""Stop and start the playground without Kafka and Flink."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.playground import __main__ as playground
from examples.playground.__main__ import PlaygroundError, main, start, stop
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


def test_playground_suggests_free_port_if_port_of_kafka_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused = rf"port {port} is in use; choose another for Kafka: make playground PORT=(\d+)"
        with pytest.raises(PlaygroundError, match=refused) as raised:
            start(tmp_path / "playground", port)
        found = re.search(refused, str(raised.value))
        assert found is not None
        with socket.create_server(("127.0.0.1", int(found[1]))):
            pass
    assert not (tmp_path / "playground").exists()


def test_playground_reports_free_port_that_flink_uses_if_its_default_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setattr(playground, "_FLINK_PORT", port)
        flink_port = playground._flink_port()
        with socket.create_server(("127.0.0.1", flink_port)):
            pass
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Port {port} is in use, so Flink uses port {flink_port}." in shown
    assert playground._flink_port() == port
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("port", ["0", "-1", "65536", "abc"])
def test_playground_refuses_invalid_port(
    port: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: Port 65536 ended with a traceback, and port 0 started Kafka somewhere."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["playground", "start", f"--port={port}"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = f"argument --port: {port!r} is not a port; pass a number from 1 to 65535"
    assert error in capsys.readouterr().err
    assert not (tmp_path / "playground").exists()
