"""Run the tests' Flink jobs with keyed state, and read their snapshots with Flink itself.

The jobs are in `java/keyed`. The sources in its subfolders compile only against some versions of
Flink.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support.flink import metadata_folder
from tests.support.jars import classpath
from tests.support.jdk import compile_java, java_lines, run_java

_JAVA = Path(__file__).parent / "java"
_SHARED = ("LocalFlink.java", "Parts.java", "Progress.java")
_HEAP = "1g"
# The versions whose set of jars has the ForSt state backend.
ASYNC_STATE = ("2.2",)


def keyed_classpath(version: str, pojo: str = "pojo_2") -> list[Path]:
    """Return the compiled jobs and jars of a Flink version; `pojo` is the folder of POJOs."""
    jars = classpath(f"flink-{version}-state")
    span = "time" if version.startswith("1.") else "duration"
    sources = [
        *(_JAVA / "flink" / name for name in _SHARED),
        _JAVA / "flink" / metadata_folder(version) / "MetadataView.java",
        *(_JAVA / "keyed").glob("*.java"),
        *(_JAVA / "keyed" / span).glob("*.java"),
        *(_JAVA / "keyed" / pojo).glob("*.java"),
        *((_JAVA / "keyed" / "async").glob("*.java") if version in ASYNC_STATE else ()),
    ]
    return [compile_java(sources, jars), *jars]


def run_keyed_jobs(
    version: str, root: Path, names: Iterable[str], pojo: str = "pojo_2"
) -> Iterator[dict[str, Any]]:
    """Run jobs of KeyedJobs in one JVM, and yield each result as soon as it is available.

    The keys of a result are `job`, `snapshots` (form -> directory) and `operators`, as in
    `tests.golden.state`.
    """
    jars = keyed_classpath(version, pojo)
    yield from java_lines("testjobs.KeyedJobs", jars, [str(root), *names], _HEAP)


def dump_keyed_state(version: str, checkpoints: Iterable[Path]) -> list[list[dict[str, Any]]]:
    """Restore checkpoints with Flink's heap backend, and return the rows of each checkpoint.

    The rows have the form of `tests.golden.state`. The heap backend restores canonical savepoints
    and its own checkpoints.
    """
    paths = [str(checkpoint.absolute()) for checkpoint in checkpoints]
    printed = run_java("testjobs.KeyedDump", keyed_classpath(version), paths, _HEAP)
    values: list[list[dict[str, Any]]] = json.loads(printed)
    return values


def serializers(version: str) -> list[dict[str, Any]]:
    """Return a value written by each of Flink's serializers (Serializers.java)."""
    jobs, *jars = keyed_classpath(version)
    program = compile_java([_JAVA / "serializers" / "Serializers.java"], [jobs, *jars])
    values: list[dict[str, Any]] = json.loads(
        run_java("testjobs.Serializers", [program, jobs, *jars], (), _HEAP)
    )
    return values
