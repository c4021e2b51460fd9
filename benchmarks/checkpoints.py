"""The checkpoints that are read, written by Flink's own serializers and kept in the cache."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.support.jars import cache_dir, classpath
from tests.support.jdk import compile_java, run_java

FLINK = "2.2.0"
CONNECTOR = "5.0.0-2.2"
_JARS = "flink-2.2-state-processor"
_JAVA = Path(__file__).parent / "java"
# The tests have it too, for states that no run leaves.
_SOURCE_STATES = Path(__file__).parents[1] / "tests/support/java/flink/encoded/SourceStates.java"
_GENERATOR = (
    *(_JAVA / name for name in ("Generator.java", "KafkaSourceStates.java", "KeyedStates.java")),
    _SOURCE_STATES,
)
# Flink holds the whole metadata as objects before it writes them: two million handles.
_HEAP = "5g"
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Made:
    """What Generator.java is asked for.

    Attributes:
        name: its folder below the cache's.
        spec: the kind of job and its numbers, as Generator.java takes them.
        uids: of its Kafka sources.
        jobs: how many; of several, all are read.
    """

    name: str
    spec: tuple[str | int, ...]
    uids: tuple[str, ...]
    jobs: int = 1

    @property
    def folder(self) -> Path:
        return cache_dir() / "bench" / self.name

    @property
    def target(self) -> Path:
        """What a reader is pointed at: the checkpoint, or the folder of all jobs."""
        return self.folder if self.jobs > 1 else self.files()[0].parent

    def files(self) -> list[Path]:
        """Every ``_metadata``."""
        return sorted(self.folder.glob("*/chk-*/_metadata"))

    def size(self) -> int:
        """Of all ``_metadata`` in bytes."""
        return sum(file.stat().st_size for file in self.files())


def source(name: str, partitions: int, parallelism: int) -> Made:
    """A job with one KafkaSource of many partitions, its state inline."""
    return Made(name, ("sources", partitions, parallelism), ("orders-source",))


def handles(name: str, operators: int, parallelism: int, files: int = 40) -> Made:
    """A job whose keyed operators have so many RocksDB files per subtask, and a small source."""
    return Made(name, ("handles", operators, parallelism, files), ("orders-source",))


def everyday(name: str, jobs: int = 1) -> Made:
    """Jobs with two sources, some keyed state and a sink."""
    return Made(name, ("everyday", jobs), ("orders", "payments"), jobs)


# The four of docs/performance.md.
A = source("a", 100_000, 1_000)
B = handles("b", 50, 512)
C = everyday("c")
D = everyday("d", 10_000)


def make(wanted: Iterable[Made]) -> None:
    """Write those that are not there yet, or were written by another Generator.java."""
    generator = sha256(b"".join(file.read_bytes() for file in _GENERATOR)).hexdigest()
    for made in wanted:
        kind, *numbers = made.spec
        asked = ":".join(map(str, (kind, made.folder, *numbers)))
        stamp = made.folder / ".made-by"
        if not stamp.is_file() or stamp.read_text() != f"{generator} {asked}":
            shutil.rmtree(made.folder, ignore_errors=True)
            run_java("bench.Generator", java_classpath(), [asked], _HEAP, _TIMEOUT_SECONDS)
            stamp.write_text(f"{generator} {asked}")


@cache
def java_classpath() -> Sequence[Path]:
    """The generator and Flink's readers, compiled, and Flink's jars."""
    jars = classpath(_JARS)
    return [compile_java([*_JAVA.glob("*.java"), _SOURCE_STATES], jars), *jars]
