"""The command as a user runs it: arguments in; exit code, stdout and stderr out, kept apart."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of ``migrate`` ended."""

    code: int
    stdout: str
    stderr: str
    # Both, in the order in which a terminal shows them; nothing of a process of its own.
    output: str = ""


class _Kept(io.StringIO):
    """What is written is kept here and, in the order in which it comes, with what others write."""

    def __init__(self, all_of_it: list[str]) -> None:
        super().__init__()
        self._all_of_it = all_of_it

    def write(self, text: str) -> int:
        length = super().write(text)  # raises for bytes, which some try first
        self._all_of_it.append(text)
        return length


# How long a process may take; whoever reads from one does not wait for longer.
_SECONDS = 240


@contextlib.contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """``migrate`` as a process of its own, whose stderr is read; killed at the end."""
    command = [sys.executable, "-m", "migrate", *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        late = threading.Timer(_SECONDS, process.kill)
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            process.kill()


def migrate(*arguments: str | Path) -> Result:
    """Run ``migrate`` with these arguments and no terminal.

    In this process, as a new one takes half a second; ``tests/unit/test_process.py`` has the ones
    that matter as processes of their own.
    """
    written: list[str] = []
    stdout, stderr = _Kept(written), _Kept(written)
    code = 0
    before, sys.argv = sys.argv, ["migrate", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return Result(code, stdout.getvalue(), stderr.getvalue(), "".join(written))
