"""Run ``migrate`` as a user runs it, and return its exit code, stdout, and stderr."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrate.cli import main
from migrate.model.explanations import read_explanations


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run of ``migrate``."""

    code: int
    stdout: str
    stderr: str
    # stdout and stderr together, as on a terminal; empty for a separate process.
    output: str = ""


class _SharedStream(io.StringIO):
    """A text stream that also appends each write to a list shared by two streams."""

    def __init__(self, writes: list[str]) -> None:
        super().__init__()
        self._writes = writes

    def write(self, text: str) -> int:
        length = super().write(text)  # raises for bytes; some callers try bytes first
        self._writes.append(text)
        return length


# A process is killed after this time.
_SECONDS = 600


@contextlib.contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Run ``migrate`` as a separate process with a readable stderr; kill it after the block."""
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
    """Run ``migrate`` in this process, without a terminal.

    A new process would take half a second. ``running`` starts one.
    """
    written: list[str] = []
    stdout, stderr = _SharedStream(written), _SharedStream(written)
    code = 0
    before, sys.argv = sys.argv, ["migrate", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    check_warnings(stderr.getvalue())
    messages, output = map(without_progress, (stderr.getvalue(), "".join(written)))
    return Result(code, stdout.getvalue(), messages, output)


def without_progress(text: str) -> str:
    """Remove progress lines, because on a slow machine any step may take over ten seconds."""
    return re.sub(r"^    \.\.\. .*: \d+ s(?:; .*)?\n", "", text, flags=re.MULTILINE)


def check_warnings(stderr: str) -> None:
    """Check that each warning ends with its code, and is shown once."""
    warnings = [line for line in stderr.splitlines() if line.startswith("warning: ")]
    codes = read_explanations() if warnings else {}
    for warning in warnings:
        code = re.search(r" \[([a-z-]+)\]$", warning)
        assert code is not None and code[1] in codes, warning
    assert len(warnings) == len(set(warnings)), warnings
