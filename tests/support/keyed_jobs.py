"""Runs our Flink jobs with keyed state, and asks Flink what their snapshots hold.

The jobs are in `java/keyed`; the same sources compile against every Flink version, but for the
folders in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.support.flink import metadata_part
from tests.support.jars import classpath
from tests.support.jdk import compile_java, java_lines, run_java

_JAVA = Path(__file__).parent / "java"
_SHARED = ("LocalFlink.java", "Parts.java", "Progress.java")
_HEAP = "1g"
# Those whose set of jars has the ForSt state backend.
ASYNC_STATE = ("2.2",)


def keyed_classpath(version: str, pojo: str = "pojo_2") -> list[Path]:
    """Return the compiled jobs and jars of a Flink version; `pojo` is the version of a class."""
    jars = classpath(f"flink-{version}-state")
    span = "time" if version.startswith("1.") else "duration"
    sources = [
        *(_JAVA / "flink" / name for name in _SHARED),
        _JAVA / "flink" / metadata_part(version) / "MetadataView.java",
        *(_JAVA / "keyed").glob("*.java"),
        *(_JAVA / "keyed" / span).glob("*.java"),
        *(_JAVA / "keyed" / pojo).glob("*.java"),
        *((_JAVA / "keyed" / "async").glob("*.java") if version in ASYNC_STATE else ()),
    ]
    return [compile_java(sources, jars), *jars]


def keyed_jobs(
    version: str, root: Path, names: Iterable[str], pojo: str = "pojo_2"
) -> Iterator[dict[str, Any]]:
    """Run jobs of KeyedJobs in one JVM; what it told of each, as soon as it is done.

    Keys: `job`, `snapshots` (form -> its directory) and `operators`, in the words of
    `tests.golden.state`.
    """
    jars = keyed_classpath(version, pojo)
    yield from java_lines("testjobs.KeyedJobs", jars, [str(root), *names], _HEAP)


def dump_keyed_state(version: str, checkpoints: Iterable[Path]) -> list[list[dict[str, Any]]]:
    """Restore checkpoints with Flink's heap backend; the rows are those of `tests.golden.state`.

    It restores canonical savepoints and what that backend itself wrote.
    """
    paths = [str(checkpoint.absolute()) for checkpoint in checkpoints]
    printed = run_java("testjobs.KeyedDump", keyed_classpath(version), paths, _HEAP)
    values: list[list[dict[str, Any]]] = json.loads(printed)
    return values


def serializers(version: str) -> list[dict[str, Any]]:
    """Return one value written by each of Flink's serializers: see Serializers.java."""
    jobs, *jars = keyed_classpath(version)
    program = compile_java([_JAVA / "serializers" / "Serializers.java"], [jobs, *jars])
    values: list[dict[str, Any]] = json.loads(
        run_java("testjobs.Serializers", [program, jobs, *jars], (), _HEAP)
    )
    return values
