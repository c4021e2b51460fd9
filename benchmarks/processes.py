"""Run commands as processes, and measure their time and memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.jars import cache_dir

_LAUNCH = Path(__file__).with_name("launch.py")
_TIMEOUT_SECONDS = 1_800


class BenchmarkError(RuntimeError):
    """A command failed, or it did not have the expected result."""


@dataclass(frozen=True, slots=True)
class Run:
    """The resource usage of a process.

    Attributes:
        seconds: the wall-clock time from its start to its end.
        cpu_seconds: the CPU time of all threads, in user and kernel mode.
        peak_bytes: the largest resident set.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run(command: Sequence[str], stdout: Path) -> Run:
    """Run a command in the project's root, and return its resource usage.

    Args:
        command: the command; its first word is a path.
        stdout: the absolute path of the file for the command's standard output.

    Raises:
        BenchmarkError: the command failed.
    """
    # As for an installed package, Python must save the modules that it compiles, even if the user's
    # environment forbids it. Otherwise, it would compile them at each start.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache_dir() / "bench" / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    launch = [sys.executable, "-I", "-S", str(_LAUNCH), str(stdout), *command]
    done = _run_in_root(launch, environment)
    if done.returncode:
        raise BenchmarkError(f"{command[0]}: cannot be started\n{done.stderr}")
    figures = json.loads(done.stdout)
    if figures.pop("exit_code"):
        raise BenchmarkError(f"{' '.join(command)[-500:]}: failed\n{done.stderr[-4000:]}")
    return Run(**figures)


def output_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Run a command in the project's root, and return its standard output.

    Args:
        command: the command; its first word is a path.
        environment: variables that are set in addition to the variables of this process.

    Raises:
        BenchmarkError: the command failed.
    """
    done = _run_in_root(command, {**os.environ, **(environment or {})})
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command)[-300:]}: failed\n{done.stderr[-4000:]}")
    return done.stdout


def pin_to(cores: int) -> list[str]:
    """Return the start of a command that may use only this number of cores."""
    numbers = sorted(os.sched_getaffinity(0))[:cores]
    return [str(shutil.which("taskset")), "-c", ",".join(map(str, numbers))]


def _run_in_root(
    command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_SECONDS,
        check=False,
        cwd=Path(__file__).parents[1],
        env=environment,
    )
