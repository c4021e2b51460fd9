"""Copies of the working tree, in which faults are put: the tree itself is never touched."""

from __future__ import annotations

import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

from tests.mutants.forks import MEMORY_BYTES, Answer, Job
from tests.mutants.mutations import Mutant

PYTEST = ("pytest", "-q", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider", "-p", "no:xdist")
FAST = ("-m", "not integration and not slow", "--ignore", "tests/integration")
# A fault may make a test wait without an end; for one that computes without an end see the plugin.
# A busy machine may make all of them take an hour.
_EACH = ("--timeout=900", "--tb=no")
_FAST_SECONDS = 7200.0

_NO_TESTS = 5  # pytest's exit code


@dataclass(frozen=True, slots=True)
class Run:
    """The tests that a fault is tried with: pytest's arguments, and how long it may take.

    ``in_order``: of these tests only, in this order.
    """

    arguments: tuple[str, ...]
    seconds: float
    in_order: list[str] | None = None


def run_of(tests: list[str]) -> Run:
    """These fast tests, as they are named by pytest."""
    modules = dict.fromkeys(test.partition("::")[0] for test in tests)
    arguments = (*FAST, *_EACH, *modules)
    return Run(arguments, _FAST_SECONDS, tests)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a fault: ``killed_by`` is the test that failed, or mypy; None where none
    did."""

    killed_by: str | None
    seconds: float


class Tree:
    """A copy of what git knows of the working tree, changed files as they are."""

    _times = itertools.count(1_000_000_000)

    def __init__(self, source: Path, root: Path) -> None:
        self.root = root / "tree"
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(listed, cwd=source, check=True, capture_output=True).stdout
        for name in filter(None, files.decode().split("\0")):
            if (source / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source / name, self.root / name, follow_symlinks=False)
        # Processes that tests start find the copy's packages, not those that are installed.
        self.environment = {**os.environ, "PYTHONPATH": str(self.root)}

    def beside(self, name: str) -> Path:
        return self.root.parent / name

    def fast_test_modules(self) -> list[str]:
        """The files that hold fast tests."""
        told = subprocess.run(
            [sys.executable, "-m", *PYTEST, *FAST, "--collect-only"],
            cwd=self.root,
            env=self.environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        return sorted({line.partition("::")[0] for line in told.splitlines() if "::" in line})

    @cached_property
    def _forks(self) -> tuple[IO[str], IO[str]]:
        """Where a pytest that has collected the fast tests is asked, and answers."""
        asked, asking = os.pipe()
        answered, answering = os.pipe()
        with self.beside("log-of-forks").open("w") as out:
            subprocess.Popen(
                [sys.executable, "-m", *PYTEST, *FAST, *_EACH, "--hypothesis-seed=0"],
                cwd=self.root,
                env={**self.environment, "MUTANTS_SERVE": f"{asked},{answering}"},
                stdout=out,
                stderr=subprocess.STDOUT,
                pass_fds=(asked, answering),
            )
        os.close(asked)
        os.close(answering)
        return os.fdopen(asking, "w"), os.fdopen(answered)

    def try_in_fork(self, mutant: Mutant, tests: list[str]) -> Verdict | None:
        """As ``try_out`` with these fast tests, and faster; None where this cannot tell."""
        begun = time.monotonic()
        asking, answered = self._forks
        job = Job(mutant.path, mutant.source, mutant.applied, tests, _FAST_SECONDS)
        asking.write(json.dumps(job) + "\n")
        asking.flush()
        line = answered.readline()
        if not line:
            raise SystemExit(self.beside("log-of-forks").read_text()[-4000:])
        answer = Answer(*json.loads(line))
        return Verdict(answer.killed_by, time.monotonic() - begun) if answer.tried else None

    def try_out(self, mutant: Mutant, run: Run) -> Verdict:
        """Put a fault in, run tests until one fails, and take it out again."""
        file = self.root / mutant.path
        try:
            self._write(file, mutant.applied)
            return self._run(run)
        finally:
            self._write(file, mutant.source)

    def try_types(self, mutant: Mutant) -> Verdict:
        """As ``try_out``, with the type checker instead of tests."""
        if not self._types_hold:
            raise SystemExit("mypy finds errors where there is no fault")
        begun = time.monotonic()
        file = self.root / mutant.path
        try:
            self._write(file, mutant.applied)
            holds = self._mypy()
        finally:
            self._write(file, mutant.source)
        return Verdict(None if holds else "mypy", time.monotonic() - begun)

    @cached_property
    def _types_hold(self) -> bool:
        return self._mypy()

    def _mypy(self) -> bool:
        command = [sys.executable, "-m", "mypy"]
        return not subprocess.run(
            command, cwd=self.root, capture_output=True, check=False
        ).returncode

    def _write(self, file: Path, text: str) -> None:
        """With a time of its own: Python compares those, in seconds, with what it has compiled."""
        file.write_text(text)
        changed = next(self._times)
        os.utime(file, (changed, changed))

    def _run(self, run: Run) -> Verdict:
        begun = time.monotonic()
        asked, log = self.beside("tests.json"), self.beside("log")
        environment = self.environment
        if run.in_order is not None:
            asked.write_text(json.dumps(run.in_order))
            environment = {**environment, "MUTANTS_TESTS": str(asked)}
        with log.open("w") as out:
            process = subprocess.Popen(
                [sys.executable, "-m", *PYTEST, "-x", "--hypothesis-seed=0", *run.arguments],
                cwd=self.root,
                env=environment,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_bound_memory if run.in_order is not None else None,
            )
            try:
                code = process.wait(run.seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Verdict(f"no end within {run.seconds:.0f} s", time.monotonic() - begun)
        seconds = time.monotonic() - begun
        if code == _NO_TESTS:
            raise AssertionError(f"there are no such tests: {run.arguments}")
        return Verdict(_first_failure(log.read_text()) if code else None, seconds)


def _first_failure(log: str) -> str:
    for line in log.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" ", 1)[1].split(" - ")[0]
    return "pytest did not end as it should"


def _bound_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
