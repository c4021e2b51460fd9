"""Run the blocks of a page as a reader would, and return the lines that the page should show."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from examples.playground import CLICKS, JOBS
from tests.docs.blocks import ROOT, Block, Scene
from tests.support.command import migrate, without_progress

# The names in the pages, which a stage replaces with the actual addresses and the actual directory.
# HOME is exactly as long as the path from `new_directory`, so that tables stay aligned.
BROKER = "broker:9092"
PLAYGROUND_BROKER = "localhost:9092"
HOME = "/home/me/migration"
# The parts of the output that differ from run to run, by the string that a page shows instead:
# times, the hashes in the file names of a scan's plans, the names of the playground's savepoints,
# and the port of the playground's Flink.
_VARYING = {
    "20260102T030405.000000Z": re.compile(r"\d{8}T\d{6}\.\d{6}Z"),
    "2026-01-02T03:04:05+00:00": re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00"),
    "-0123456789abcdef.json": re.compile(r"-[0-9a-f]{16}\.json"),
    **{
        f"savepoint-{job[:6]}-0123456789ab": re.compile(rf"savepoint-{job[:6]}-[0-9a-f]{{12}}")
        for job in (JOBS[1], CLICKS)
    },
    "http://localhost:8081": re.compile(r"http://localhost:\d+"),
}
# In a page, this line matches any number of lines.
ANYTHING = "…"

_SHELL_SECONDS = 300


@contextlib.contextmanager
def new_directory() -> Iterator[Path]:
    """Yield a temporary directory for a page."""
    with tempfile.TemporaryDirectory(prefix="page-", dir="/tmp") as directory:
        assert len(directory) == len(HOME)
        yield Path(directory)


@dataclass(slots=True)
class Stage:
    """The directory in which a page's blocks run, and the systems of its scene.

    Attributes:
        actual: the actual string, such as an address, for each string that the page shows instead.
        environment: additional environment variables for the commands.
        names: the variables of Python blocks.
    """

    directory: Path
    actual: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    names: dict[str, Any] = field(default_factory=dict)
    _code: int = 0

    def lay(self, scene: Scene) -> None:
        """Copy the directories of the scene, except those with a target in an object store.

        The modification times of the copies are new. As in a real job, the checkpoints are
        therefore not older than the records in Kafka.
        """
        for source, target in scene.copies.items():
            if "://" not in target:
                copy = self.directory / target
                shutil.copytree(ROOT / source, copy, copy_function=shutil.copyfile)

    def run(self, block: Block) -> list[str]:
        """Run a ``console``, ``python``, or ``pycon`` block, and return its expected lines."""
        with self._here():
            match block.language:
                case "console":
                    return [line for command, _ in block.commands() for line in self._told(command)]
                case "python":
                    self._execute("\n".join(block.lines), block, "exec")
                    return list(block.lines)
                case "pycon":
                    return [line for said in _statements(block) for line in self._said(said, block)]
        raise ValueError(f"{block}: {block.language!r} is not run")

    def _said(self, lines: list[str], block: Block) -> Iterator[str]:
        """Yield the lines of one statement in a Python session, and then its actual output."""
        yield from lines
        with contextlib.redirect_stdout(io.StringIO()) as output:
            self._execute("\n".join(line[4:] for line in lines) + "\n", block, "single")
        yield from (self._shown(line) for line in output.getvalue().splitlines())

    def _execute(self, source: str, block: Block, mode: str) -> None:
        exec(compile(self._actual(source), str(block), mode), self.names)

    def _told(self, command: str) -> Iterator[str]:
        yield from f"$ {command}".split("\n")
        if command == "echo $?":
            yield str(self._code)
            return
        actual = self._actual(command)
        if command.startswith("migrate ") and not re.search(r"[|<>;&$*]", command):
            with mock.patch.dict(os.environ, self.environment):
                result = migrate(*shlex.split(actual)[1:])
            self._code, output = result.code, result.output
        else:
            output = self._shell(actual)
        yield from (self._shown(line) for line in output.splitlines())

    def _shell(self, command: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            env={**os.environ, **self.environment, "PATH": path, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SHELL_SECONDS,
            check=False,
        )
        self._code = done.returncode
        return without_progress(done.stdout)

    @contextlib.contextmanager
    def _here(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.directory)
        try:
            yield
        finally:
            os.chdir(before)

    def _actual(self, text: str) -> str:
        for shown, actual in self.actual.items():
            text = text.replace(shown, actual)
        return text if self.directory == ROOT else text.replace(HOME, str(self.directory))

    def _shown(self, line: str) -> str:
        for shown, actual in self.actual.items():
            line = line.replace(actual, shown)
        if self.directory != ROOT:
            line = line.replace(str(self.directory), HOME)
        for shown, varying in _VARYING.items():
            line = varying.sub(shown, line)
        return line.rstrip()


def _statements(block: Block) -> Iterator[list[str]]:
    """Yield the lines of each statement in a Python session, with the prompts."""
    statement: list[str] = []
    for line in block.lines:
        if line.startswith(">>> ") and statement:
            yield statement
            statement = []
        if line.startswith((">>> ", "...")):
            statement.append(line)
    if statement:
        yield statement


def agree(page: Sequence[str], actual: Sequence[str], numbers_vary: bool = False) -> bool:
    """Return whether a page's lines match the actual lines.

    A line ``…`` in the page matches any number of lines. With ``numbers_vary``, numbers match if
    they differ in their values or in the number of spaces before them.
    """
    if numbers_vary:
        page, actual = ([re.sub(r" *\d+", " 0", line) for line in text] for text in (page, actual))
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANYTHING else re.escape(line.rstrip()) + r"\n"
        for line in page
    )
    return re.fullmatch(pattern, "".join(f"{line.rstrip()}\n" for line in actual)) is not None
