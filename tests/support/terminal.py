"""Run ``migrate`` on a terminal, and answer its question."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_SECONDS = 90


class Session:
    """A run of ``migrate`` whose stdin is a terminal, and whose stdout and stderr are pipes."""

    def __init__(self, process: subprocess.Popen[str], terminal: int) -> None:
        self.process = process
        self._terminal = terminal

    def await_question(self) -> None:
        """Read stderr until the command has asked its question."""
        assert self.process.stderr is not None
        while "[y/N]" not in (line := self.process.stderr.readline()):
            assert line, "it ended without asking"

    def answer(self, text: str) -> tuple[int, str]:
        """Type a line, and return the exit code and the rest of stderr."""
        os.write(self._terminal, f"{text}\n".encode())
        _, stderr = self.process.communicate(timeout=_SECONDS)
        return self.process.returncode, stderr


@contextmanager
def on_terminal(*arguments: str | Path) -> Iterator[Session]:
    """Start ``migrate`` with these arguments, and kill it at the end if it still runs."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "migrate", *map(str, arguments)],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
    )
    try:
        yield Session(process, ours)
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)
