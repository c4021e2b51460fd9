"""Generate datasets of checkpoints with Flink's own serializers, and store them in the cache."""

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
# Shared with the tests.
_SOURCE_STATES = Path(__file__).parents[1] / "tests/support/java/flink/encoded/SourceStates.java"
_GENERATOR = (
    *(_JAVA / name for name in ("Generator.java", "KafkaSourceStates.java", "KeyedStates.java")),
    _SOURCE_STATES,
)
# Enough for two million handles, because Flink creates all objects before it writes them.
_HEAP = "5g"
_TIMEOUT_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Dataset:
    """One generated checkpoint, or a folder of jobs with one checkpoint each.

    Attributes:
        name: the name of its folder in the cache.
        spec: the kind of job and its numbers, in the form that Generator.java takes.
        uids: the uids of the Kafka sources.
        jobs: the number of jobs; if there are several, the checkpoints of all jobs are read.
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
        """Return the path that a reader gets: the checkpoint, or the folder of all jobs."""
        return self.folder if self.jobs > 1 else self.files()[0].parent

    def files(self) -> list[Path]:
        """Return the paths of all ``_metadata`` files."""
        return sorted(self.folder.glob("*/chk-*/_metadata"))

    def size(self) -> int:
        """Return the total size of the ``_metadata`` files in bytes."""
        return sum(file.stat().st_size for file in self.files())


def source(name: str, partitions: int, parallelism: int) -> Dataset:
    """Return a job with one KafkaSource of many partitions and inline state."""
    return Dataset(name, ("sources", partitions, parallelism), ("orders-source",))


def handles(name: str, operators: int, parallelism: int, files: int = 40) -> Dataset:
    """Return a job with a small source, and keyed operators with RocksDB files per subtask."""
    return Dataset(name, ("handles", operators, parallelism, files), ("orders-source",))


def everyday(name: str, jobs: int = 1) -> Dataset:
    """Return jobs with two sources, some keyed state and a sink."""
    return Dataset(name, ("everyday", jobs), ("orders", "payments"), jobs)


# The four cases of docs/performance.md.
A = source("a", 100_000, 1_000)
B = handles("b", 50, 512)
C = everyday("c")
D = everyday("d", 10_000)


def create_missing(datasets: Iterable[Dataset]) -> None:
    """Create the datasets that are missing, or from a different version of the generator."""
    generator = sha256(b"".join(file.read_bytes() for file in _GENERATOR)).hexdigest()
    for dataset in datasets:
        kind, *numbers = dataset.spec
        argument = ":".join(map(str, (kind, dataset.folder, *numbers)))
        stamp = dataset.folder / ".made-by"
        if not stamp.is_file() or stamp.read_text() != f"{generator} {argument}":
            shutil.rmtree(dataset.folder, ignore_errors=True)
            run_java("bench.Generator", java_classpath(), [argument], _HEAP, _TIMEOUT_SECONDS)
            stamp.write_text(f"{generator} {argument}")


@cache
def java_classpath() -> Sequence[Path]:
    """Compile the generator and the Java readers; return the paths of both and of Flink's jars."""
    jars = classpath(_JARS)
    return [compile_java([*_JAVA.glob("*.java"), _SOURCE_STATES], jars), *jars]
