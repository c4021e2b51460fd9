"""Waits over two seconds show a progress line on the terminal, and the line disappears."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.checkpoints import splits, write_source

pytestmark = pytest.mark.slow  # each test starts processes and takes more than two seconds

_SECONDS = 30.0


@contextmanager
def _silent_broker() -> Iterator[str]:
    """Yield an address that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def _asking(
    chk: Path, servers: str, *options: str
) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start a command that waits for the broker, with a terminal as stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "migrate", "to-spark", str(chk), "-b", servers, *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    try:
        yield ours, process
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _shown(terminal: int, until: bytes, seconds: float) -> bytes:
    """Return the terminal's output up to ``until``, or after ``seconds``."""
    shown = b""
    end = time.monotonic() + seconds
    while until not in shown and (left := end - time.monotonic()) > 0:
        if select.select([terminal], [], [], left)[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # the process has ended
                break
    return shown


def test_terminal_shows_progress_line_during_wait_for_unresponsive_broker(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    with _silent_broker() as servers, _asking(chk, servers) as (loud, process):
        with _asking(chk, servers, "-q") as (quiet, _):
            shown = _shown(loud, b" 3 s", _SECONDS).decode()
            assert f"\r\x1b[Kasking {servers} about 1 topic: 2 s" in shown
            assert " 1 s" not in shown
            assert _shown(quiet, b"asking", 0.2) == b""
        process.send_signal(signal.SIGINT)
        process.wait(_SECONDS)
        assert _shown(loud, b"never", 0.2).endswith(b"\r\x1b[K")
