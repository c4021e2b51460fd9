"""The processes that read positions: ours, Flink's own, and one that only reads the bytes.

Each of them tells how many partitions it found and the sum of their offsets; what does not tell
the same as the others is no measurement.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checkpoints import Made, java_classpath
from tests.support.jdk import find_jdk


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader found: how many partitions, and the sum of their next offsets."""

    partitions: int
    offsets: int


@dataclass(frozen=True, slots=True)
class Reader:
    """A whole process that reads what was made.

    Attributes:
        name: in docs/performance.json.
        command: what runs it.
        answer: what it found, from its standard output; None of one that looks for nothing.
    """

    name: str
    command: Callable[[Made], list[str]]
    answer: Callable[[str], Answer] | None


def _inspect(made: Made) -> list[str]:
    migrate = Path(sys.executable).with_name("migrate")
    return [str(migrate), "inspect", str(made.target), "--format", "json"]


def _inspected(stdout: str) -> Answer:
    sources = json.loads(stdout)["sources"]
    offsets = [position["next_offset"] for source in sources for position in source["positions"]]
    return Answer(len(offsets), sum(offsets))


def _java(main: str, arguments: Sequence[str]) -> list[str]:
    # As anybody would run it: the JVM's own choice of heap and collector. Only the log is off.
    java = find_jdk() / "bin" / "java"
    classpath = os.pathsep.join(map(str, java_classpath()))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"
    return [str(java), quiet, "-cp", classpath, f"bench.{main}", *arguments]


def _two_numbers(stdout: str) -> Answer:
    partitions, offsets = stdout.split()
    return Answer(int(partitions), int(offsets))


def _script(name: str) -> Callable[[Made], list[str]]:
    return lambda made: [sys.executable, "-m", f"benchmarks.{name}", str(made.target)]


OURS = Reader("ours", _inspect, _inspected)
OURS_MANY = Reader("ours", _script("read_positions"), _two_numbers)
BARE = Reader("bare", lambda made: _java("BareReader", [str(made.target)]), _two_numbers)
PROCESSOR = Reader(
    "processor",
    lambda made: _java("StateProcessorReader", [str(made.target), *made.uids]),
    _two_numbers,
)
BYTES = Reader("bytes", _script("read_bytes"), None)
