"""The command as a user runs it: arguments in; exit code, stdout and stderr out, kept apart."""

from __future__ import annotations

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path

from migrate.cli import main


@dataclass(frozen=True, slots=True)
class Result:
    """How a run of ``migrate`` ended."""

    code: int
    stdout: str
    stderr: str


def migrate(*arguments: str | Path) -> Result:
    """Run ``migrate`` with these arguments and no terminal.

    In this process, as a new one takes half a second; ``tests/unit/test_process.py`` has the ones
    that matter as processes of their own.
    """
    stdout, stderr = io.StringIO(), io.StringIO()
    code = 0
    before, sys.argv = sys.argv, ["migrate", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            main()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.argv = before
    return Result(code, stdout.getvalue(), stderr.getvalue())
