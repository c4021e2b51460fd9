"""One run of a command, as a whole process: its time, start-up included, and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.jars import cache_dir

_LAUNCH = Path(__file__).with_name("launch.py")
_TIMEOUT_SECONDS = 1_800


class BenchmarkError(RuntimeError):
    """A command that failed, or one that read something else than the others."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the kernel counted of one process.

    Attributes:
        seconds: from its start to its end, by the clock.
        cpu_seconds: of all its threads, its own and the kernel's for it.
        peak_bytes: the most of its memory that was resident at once.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(command: Sequence[str], stdout: Path) -> Run:
    """Run a command to its end; the first word is a path.

    Raises:
        BenchmarkError: it failed.
    """
    launch = [sys.executable, "-I", "-S", str(_LAUNCH), str(stdout), *command]
    done = subprocess.run(
        launch,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        env=_environment(),
    )
    if done.returncode:
        raise BenchmarkError(f"{command[0]}: cannot be started\n{done.stderr}")
    counted = json.loads(done.stdout)
    if counted.pop("exit_code"):
        raise BenchmarkError(f"{' '.join(command)[-500:]}: failed\n{done.stderr[-4000:]}")
    return Run(**counted)


def output_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command in the project's root, and return its standard output.

    Args:
        command: the command; its first word is a path.
        environment: variables beside those of this process.

    Raises:
        BenchmarkError: it failed.
    """
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        cwd=Path(__file__).parents[1],
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command)[-300:]}: failed\n{done.stderr[-4000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Ours, but that Python keeps the modules it has compiled, as for an installed package: where
    this runs it may have been told not to, and would compile them at every start."""
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(cache_dir() / "bench" / "pyc")
    return environment
