"""Runs our small Flink jobs on a real local mini-cluster, and asks Flink what a checkpoint holds.

The jobs are in `java/flink`; the same sources compile against every Flink version, but for one
class per version that hides what their classes name differently, and for what needs a connector
that has DynamicKafkaSource.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.jars import classpath
from tests.support.jdk import JavaError, compile_java, java_command, run_java, tail
from tests.support.kafka import Record

_JAVA = Path(__file__).parent / "java" / "flink"
_HEAP = "1g"

# Flink version -> (Flink release, connector release), as jars.toml pins them.
RELEASES = {
    "1.15": ("1.15.4", "1.15.4"),
    "1.20": ("1.20.3", "3.4.0-1.20"),
    "2.2": ("2.2.0", "5.0.0-2.2"),
}

# The connector of 1.15 has no DynamicKafkaSource.
DYNAMIC_VERSIONS = ("1.20", "2.2")


@dataclass(frozen=True, slots=True)
class MissionRun:
    """What a mission job left behind: its savepoint and what its sink committed."""

    savepoint: Path
    committed: list[Record]


def java_classpath(version: str, jar_set: str | None = None) -> list[Path]:
    """The compiled jobs and the jars of a Flink version; `jar_set` where it is not the usual."""
    jars = classpath(jar_set or f"flink-{version}")
    shim = _JAVA / f"v{version.replace('.', '_')}"
    folders = [_JAVA, shim]
    if version in DYNAMIC_VERSIONS:
        folders.append(_JAVA / "dynamic")
    sources = [file for folder in folders for file in folder.glob("*.java")]
    return [compile_java(sources, jars), *jars]


def run_mission(
    *,
    version: str,
    bootstrap_servers: str,
    topics: Iterable[str],
    until: Mapping[tuple[str, int], int],
    savepoint_dir: Path,
    sink_dir: Path,
    group: str = "mission",
    parallelism: int = 2,
    drain: bool = False,
) -> MissionRun:
    """Run MissionJob until it has processed `until` many records per (topic, partition), then
    stop it with a savepoint.

    The source reads from the earliest offset, its partitions in step, a few records of each in
    turn; once every count is reached it takes four records a second, so it overshoots by a few.
    To be only partly read, a partition must be longer than the largest count required by some
    twenty records. Raises JavaError where the job fails or does not get there.
    """
    counts = ",".join(f"{topic}:{partition}={n}" for (topic, partition), n in until.items())
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        arguments = [
            bootstrap_servers,
            group,
            ",".join(topics),
            counts,
            str(parallelism),
            checkpoints,
            str(savepoint_dir.absolute()),
            str(sink_dir.absolute()),
            str(drain).lower(),
        ]
        printed = run_java("testjobs.MissionJob", java_classpath(version), arguments, _HEAP)
    return MissionRun(Path(printed.strip()), committed_lines(sink_dir))


def committed_lines(sink_dir: Path) -> list[Record]:
    """The records in the committed files of a FileSink; its hidden in-progress files are not."""
    records: list[Record] = []
    for file in sink_dir.rglob("part-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            topic, partition, offset, value = line.split(",", 3)
            records.append((topic, int(partition), int(offset), value))
    return sorted(records)


def golden_jobs(
    *,
    version: str,
    bootstrap_servers: str,
    second_servers: str,
    checkpoint_root: Path,
    input_dir: Path,
    scenarios: Iterable[str],
    jar_set: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Run scenarios of GoldenJobs in one JVM; what it told of each, as soon as it is done.

    `second_servers` are those of another cluster, or empty where no scenario reads two. Keys:
    `scenario`, `checkpoint` (its directory), `kafka_sources` and `dynamic_sources` (operator ids),
    `dump` (see `dump_states`).
    """
    arguments = [
        bootstrap_servers,
        second_servers,
        str(checkpoint_root),
        str(input_dir),
        *scenarios,
    ]
    command = java_command(
        "testjobs.GoldenJobs", java_classpath(version, jar_set), arguments, _HEAP
    )
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            for line in process.stdout:
                yield json.loads(line)
            if process.wait():
                log.seek(0)
                raise JavaError(f"GoldenJobs: exit code {process.returncode}\n{tail(log.read())}")
        finally:
            process.kill()
            process.wait()


def dump_states(
    version: str,
    checkpoints: Mapping[Path, Sequence[str]],
    dynamic_sources: Mapping[Path, Sequence[str]] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """What Flink itself reads in checkpoints: checkpoint directory -> ids of its KafkaSources, and
    the same of the DynamicKafkaSources of those that have some.

    One JSON object per checkpoint, as StateDump writes it: ids, sizes, state names, and of each
    Kafka source its reader splits and its enumerator, with the numbers as they are stored.
    """
    arguments = [
        f"{path.absolute()}={','.join(ids)}/{','.join(dynamic_sources.get(path, ()))}"
        for path, ids in checkpoints.items()
    ]
    printed = run_java("testjobs.StateDump", java_classpath(version), arguments, _HEAP)
    dumps: list[dict[str, Any]] = json.loads(printed)
    return dumps
