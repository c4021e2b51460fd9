"""Define the commands that read positions, by migrate or Flink, and one that only reads bytes.

All except the last one print the number of partitions and the sum of the offsets, or all positions.
These must be equal for all readers of a dataset.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checkpoints import Dataset, java_classpath
from tests.support.jdk import find_jdk


@dataclass(frozen=True, slots=True)
class Answer:
    """The number of partitions that a reader found, and the sum of their next offsets."""

    partitions: int
    offsets: int


@dataclass(frozen=True, slots=True)
class Reader:
    """A command that reads a dataset.

    Attributes:
        name: the name in docs/performance.json.
        command: a function that returns the command for a dataset.
        answer: a function that parses the command's output; None without an answer to compare.
    """

    name: str
    command: Callable[[Dataset], list[str]]
    answer: Callable[[str], Answer] | None


def _inspect_command(dataset: Dataset) -> list[str]:
    migrate = Path(sys.executable).with_name("migrate")
    return [str(migrate), "inspect", str(dataset.target), "--format", "json"]


def _parse_inspect(stdout: str) -> Answer:
    sources = json.loads(stdout)["sources"]
    offsets = [position["next_offset"] for source in sources for position in source["positions"]]
    return Answer(len(offsets), sum(offsets))


def _java_command(main: str, arguments: Sequence[str]) -> list[str]:
    # With the JVM's default heap and collector, but without a log.
    java = find_jdk() / "bin" / "java"
    classpath = os.pathsep.join(map(str, java_classpath()))
    no_log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return [str(java), no_log, "-cp", classpath, f"bench.{main}", *arguments]


def _parse_numbers(stdout: str) -> Answer:
    partitions, offsets = stdout.split()
    return Answer(int(partitions), int(offsets))


def _module_command(name: str) -> Callable[[Dataset], list[str]]:
    return lambda dataset: [sys.executable, "-m", f"benchmarks.{name}", str(dataset.target)]


OURS = Reader("ours", _inspect_command, _parse_inspect)
OURS_MANY = Reader("ours", _module_command("read_positions"), _parse_numbers)
BARE = Reader(
    "bare", lambda dataset: _java_command("BareReader", [str(dataset.target)]), _parse_numbers
)
PROCESSOR = Reader(
    "processor",
    lambda dataset: _java_command("StateProcessorReader", [str(dataset.target), *dataset.uids]),
    _parse_numbers,
)
BYTES = Reader("bytes", _module_command("read_bytes"), None)
