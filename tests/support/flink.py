"""Run small Flink jobs on a real local mini-cluster, and read checkpoints with Flink itself.

Most jobs are in `java/flink`. The sources directly in it compile against every version of Flink in
`_FOLDERS`, a list of the subfolders for each version.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.jars import classpath
from tests.support.jdk import JavaError, compile_java, java_command, java_lines, run_java, tail
from tests.support.kafka import Record

_JAVA = Path(__file__).parent / "java" / "flink"
_HEAP = "1g"
# The exit code of DiesAfterTheSavepoint.java.
_DIED = 42

# Flink version, or Beam job -> (Flink release, connector or Beam release), as jars.toml pins them.
# Flink 2.3 runs with the connector for 2.2, because there is no connector for 2.3 yet.
RELEASES = {
    "1.10": ("1.10.3", "1.10.3"),
    "1.12": ("1.12.0", "1.12.0"),
    "1.15": ("1.15.4", "1.15.4"),
    "1.16": ("1.16.3", "1.16.3"),
    "1.17": ("1.17.2", "3.0.2-1.17"),
    "1.18": ("1.18.1", "3.2.0-1.18"),
    "1.19": ("1.19.3", "3.3.0-1.19"),
    "1.20": ("1.20.3", "3.4.0-1.20"),
    "1.20.5": ("1.20.5", "3.4.0-1.20"),
    "2.0": ("2.0.0", "4.0.1-2.0"),
    "2.0.2": ("2.0.2", "4.0.1-2.0"),
    "2.1": ("2.1.3", "5.0.0-2.1"),
    "2.2": ("2.2.0", "5.0.0-2.2"),
    "2.2.1": ("2.2.1", "5.0.0-2.2"),
    "2.3": ("2.3.0", "5.0.0-2.2"),
    "beam": ("1.19.0", "Beam 2.62.0"),
    "beam-2.50": ("1.16.0", "Beam 2.50.0"),
    "beam-sdf": ("1.19.0", "Beam 2.62.0"),
}

# The versions that `make test` runs. They are the oldest in `_FOLDERS`, the last minor version
# before 2.0, and the newest minor version with its own connector. For the other versions,
# `make test` reads golden checkpoints.
RUN_BY_TESTS = ("1.15", "1.20", "2.2")


@dataclass(frozen=True, slots=True)
class StandaloneJob:
    """A program that runs a single job, with its own set of jars.

    Attributes:
        jars: the name of its set of jars.
        kind: the kind of its source, from `KINDS` or BEAM_SOURCES.
        reader: the version of Flink whose classes read its checkpoint.
        main: its main class, from `sources`.
        arguments: the topics that it reads; for Beam, preceded by the experiment.
        records: the minimum number of records that it processes.
    """

    jars: str
    kind: str
    reader: str
    main: str
    sources: tuple[str, ...]
    arguments: tuple[str, ...] = ("orders",)
    records: int = 40


# The kind of source that BeamDump reads. BeamDump runs with the jars of Beam.
BEAM_SOURCES = "beam_sources"
_BEAM = ("beam/BeamJob.java", "beam/BeamDump.java")


def _beam_job(jars: str, reader: str, experiment: str = "use_deprecated_read") -> StandaloneJob:
    # The source reads the six partitions of the topics as two splits of three partitions each.
    arguments = (experiment, "orders", "payments", "x")
    return StandaloneJob(jars, BEAM_SOURCES, reader, "BeamJob", _BEAM, arguments, records=80)


# Jobs by name in RELEASES: jobs that write layouts of old versions of Flink, and Beam's jobs.
STANDALONE_JOBS = {
    "1.10": StandaloneJob(
        "flink-1.10",
        "legacy_sources",
        "1.15",
        "OldJob",
        ("flink_old/OldJob.java", "flink_old/v1_10/OldSource.java"),
    ),
    "1.12": StandaloneJob(
        "flink-1.12",
        "kafka_sources",
        "1.15",
        "OldJob",
        ("flink_old/OldJob.java", "flink_old/v1_12/OldSource.java"),
    ),
    "beam": _beam_job("beam-flink-1.19", "1.19"),
    "beam-2.50": _beam_job("beam-flink-1.16", "1.16"),
    "beam-sdf": _beam_job("beam-flink-1.19", "1.19", "use_sdf_read"),
}

# Flink version -> its folders of java/flink.
_FOLDERS = {
    "1.15": ("metadata_3", "sink_1", "enumerator_1", "legacy"),
    "1.16": ("metadata_4", "sink_2", "enumerator_1", "legacy"),
    "1.17": ("metadata_4", "sink_2", "enumerator_1", "legacy", "datagen"),
    "1.18": ("metadata_4", "sink_2", "enumerator_2", "legacy", "datagen", "dynamic", "dynamic_1"),
    "1.19": ("metadata_4", "sink_2", "enumerator_2", "legacy", "datagen", "dynamic", "dynamic_1"),
    "1.20": (
        "metadata_4",
        "sink_2",
        "enumerator_2",
        "legacy",
        "datagen",
        "dynamic",
        "dynamic_1",
        "encoded",
    ),
    "2.0": ("metadata_5", "sink_2", "enumerator_2", "datagen", "dynamic", "dynamic_1"),
    "2.1": ("metadata_5", "sink_2", "enumerator_3", "datagen", "dynamic", "dynamic_2"),
    "2.2": ("metadata_5", "sink_2", "enumerator_3", "datagen", "dynamic", "dynamic_2", "encoded"),
    "2.3": ("metadata_5", "sink_2", "enumerator_3", "datagen", "dynamic", "dynamic_2"),
}


# Patch releases that also have golden checkpoints, with the folders of their minor version.
PATCHES = ("1.20.5", "2.0.2", "2.2.1")
_FOLDERS |= {patch: _FOLDERS[patch.rpartition(".")[0]] for patch in PATCHES}


def additional_source_kinds(version: str) -> list[str]:
    """Return the kinds of source that `run_count_job` can run in addition to a KafkaSource."""
    kinds = {"Legacy": "legacy", "Dynamic": "dynamic", "Hybrid": None}
    return [kind for kind, part in kinds.items() if part is None or part in _FOLDERS[version]]


def metadata_folder(version: str) -> str:
    """Return the folder of java/flink for the metadata of a Flink version."""
    return next(part for part in _FOLDERS[version] if part.startswith("metadata_"))


# The kinds of operators. StateDump takes them as input, because a checkpoint does not contain them.
KINDS = (
    "kafka_sources",
    "dynamic_sources",
    "hybrid_sources",
    "legacy_sources",
    "sink_operators",
    "async_operators",
    "file_operators",
)

# The folders for each additional set of jars.
_FOLDERS_OF_EXTRA: Mapping[str | None, tuple[str, ...]] = {"table": ("table",)}


@dataclass(frozen=True, slots=True)
class MissionRun:
    """The result of MissionJob, with its savepoint and the records that its sink committed."""

    savepoint: Path
    committed: list[Record]


def java_classpath(version: str, extra: str | None = None) -> list[Path]:
    """Return the compiled jobs and jars of a Flink version; `extra` is an additional set."""
    jars = classpath(f"flink-{version}-{extra}" if extra else f"flink-{version}")
    parts = (*_FOLDERS[version], *_FOLDERS_OF_EXTRA.get(extra, ()))
    folders = [_JAVA, *(_JAVA / part for part in parts)]
    sources = [file for folder in folders for file in folder.glob("*.java")]
    return [compile_java(sources, jars), *jars]


@dataclass(frozen=True, slots=True)
class CountedRecord:
    """A record that CountJob processed, with the count of its partition up to this record."""

    topic: str
    partition: int
    offset: int
    count: int


@dataclass(frozen=True, slots=True)
class CountRun:
    """The result of CountJob, with the processed records in order within each partition."""

    snapshot: Path
    counted: list[CountedRecord]


def run_count_job(
    *,
    version: str,
    bootstrap_servers: str,
    topics: Iterable[str],
    until: Mapping[tuple[str, int], int],
    workdir: Path,
    stopped: bool = True,
    restored: Path | None = None,
    options: Mapping[str, str] | None = None,
    extra: str | None = None,
    parallelism: int = 2,
) -> CountRun:
    """Run CountJob until it has processed `until` records per (topic, partition), then stop it.

    The job is stopped with a savepoint, or cancelled with a retained checkpoint. A restored job
    must use the complete state, and runs for two more seconds.

    Args:
        version: the version of Flink.
        bootstrap_servers: the brokers.
        topics: a plain name is read by a KafkaSource. `Legacy=topic`, `Dynamic=topic` and
            `Hybrid=topic` add a source of a different kind, if the version has it.
            `Second=host:port/topic` adds a second KafkaSource; its records are counted under the
            topic `second-topic`.
        until: the number of records by topic and partition.
        workdir: the directory for checkpoints and savepoints.
        stopped: True for a stop-with-savepoint.
        restored: the checkpoint or savepoint to start from.
        options: further settings of the job.
        extra: the name of an additional set of jars.
        parallelism: the parallelism of the job.
    """
    savepoints = workdir / "savepoints"
    arguments = [
        *(bootstrap_servers, ",".join(topics)),
        ",".join(f"{topic}:{partition}={n}" for (topic, partition), n in until.items()),
        *(str(parallelism), str((workdir / "checkpoints").absolute())),
        str(savepoints.absolute()) if stopped else "",
        str(restored.absolute()) if restored else "",
        *(f"{name}={value}" for name, value in (options or {}).items()),
    ]
    printed = run_java("testjobs.CountJob", java_classpath(version, extra), arguments, _HEAP)
    snapshot, *lines = printed.splitlines()
    counted = []
    for line in lines:
        record, _, count = line.rpartition(" ")
        topic, partition, offset, _ = record.split(",", 3)
        counted.append(CountedRecord(topic, int(partition), int(offset), int(count)))
    return CountRun(Path(snapshot), counted)


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
    """Run MissionJob until `until` records per (topic, partition), then stop it with a savepoint.

    The source starts at the earliest offset, and reads a few records of each partition in turn.
    When every count is reached, each subtask slows down to four records a second until the job is
    stopped. If a partition has about twenty records more than the largest count, it is therefore
    read only in part.

    Raises:
        JavaError: the job failed, or did not reach the counts in time.
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


def run_copy_job(
    *,
    version: str,
    bootstrap_servers: str,
    topic: str,
    copies: Mapping[str, int],
    until: int,
    savepoint_dir: Path,
    restored: Path | None = None,
    dies: bool = False,
) -> Path:
    """Run CopyJob until it has copied `until` records, stop it, and return its savepoint.

    `copies` are the target topics, each with a transaction timeout in milliseconds. With `dies`,
    the job exits after the savepoint, before it commits any transaction.
    """
    before = set(savepoint_dir.glob("savepoint-*"))
    command = java_command(
        "testjobs.CopyJob",
        java_classpath(version),
        [
            *(bootstrap_servers, topic, str(until), str(savepoint_dir.absolute())),
            *(str(restored.absolute()) if restored else "", str(dies).lower()),
            *(f"{copy}={timeout}" for copy, timeout in copies.items()),
        ],
        _HEAP,
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode != (_DIED if dies else 0):
        raise JavaError(f"CopyJob: exit code {done.returncode}\n{tail(done.stderr)}")
    (savepoint,) = set(savepoint_dir.glob("savepoint-*")) - before
    return savepoint


def committed_lines(sink_dir: Path) -> list[Record]:
    """Return the records in a FileSink's committed files."""
    records: list[Record] = []
    for file in sink_dir.rglob("part-*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            topic, partition, offset, value = line.split(",", 3)
            records.append((topic, int(partition), int(offset), value))
    return sorted(records)


def run_golden_jobs(
    *,
    version: str,
    bootstrap_servers: str,
    second_servers: str,
    checkpoint_root: Path,
    input_dir: Path,
    scenarios: Iterable[str],
    extra: str | None = None,
) -> Iterator[dict[str, Any]]:
    """Run scenarios of GoldenJobs in one JVM; yield each result as soon as it is available.

    `second_servers` are the brokers of a second cluster; empty if no scenario needs one.
    The keys of a result are `scenario`, `checkpoint` (its directory), `operators` (kind ->
    operator ids) and `dump` (see `dump_states`).
    """
    arguments = [
        bootstrap_servers,
        second_servers,
        str(checkpoint_root),
        str(input_dir),
        *scenarios,
    ]
    yield from java_lines("testjobs.GoldenJobs", java_classpath(version, extra), arguments, _HEAP)


def run_standalone_job(
    version: str, bootstrap_servers: str, checkpoint_root: Path
) -> dict[str, Any]:
    """Run one of STANDALONE_JOBS until it has processed enough records, then cancel it.

    The last checkpoint is retained. The keys are the same as in `run_golden_jobs`, without
    `scenario`.
    """
    job = STANDALONE_JOBS[version]
    jars = classpath(job.jars)
    compiled = compile_java([_JAVA.parent / source for source in job.sources], jars)
    arguments = [bootstrap_servers, str(checkpoint_root), str(job.records), *job.arguments]
    printed = run_java(f"testjobs.{job.main}", [compiled, *jars], arguments, _HEAP)
    operator_id, checkpoint = printed.split()
    operators = {job.kind: [operator_id]} if operator_id != "-" else {}
    (dump,) = dump_states(job.reader, {Path(checkpoint): operators})
    if job.kind == BEAM_SOURCES:
        dumped = json.loads(run_java("testjobs.BeamDump", [compiled, *jars], [checkpoint], _HEAP))
        operators = {job.kind: [*dumped]}
        for operator in dump["operators"]:
            if operator["operator_id"] in dumped:
                operator["beam"] = dumped[operator["operator_id"]]
    return {"checkpoint": checkpoint, "operators": operators, "dump": dump}


def encode_sources(version: str, name: str, directory: Path) -> dict[str, Any]:
    """Write a state that no test job can produce, with the serializers of Flink.

    `name` is a state of EncodedSources. The keys are the same as in `run_golden_jobs`, without
    `scenario` and `checkpoint`.
    """
    arguments = [str(directory), name]
    printed = run_java("testjobs.EncodedSources", java_classpath(version), arguments, _HEAP)
    dumped: dict[str, Any] = json.loads(printed)
    return dumped


def dump_states(
    version: str, checkpoints: Mapping[Path, Mapping[str, Sequence[str]]]
) -> list[dict[str, Any]]:
    """Read checkpoints with Flink itself, and return one JSON object for each checkpoint.

    `checkpoints` are operator ids by directory and kind (see `KINDS`). An object has ids, sizes and
    state names, and the stored state of the operators in `checkpoints`.
    """
    arguments = [
        f"{path.absolute()}="
        + ",".join(f"{kind}:{name}" for kind, names in kinds.items() for name in names)
        for path, kinds in checkpoints.items()
    ]
    printed = run_java("testjobs.StateDump", java_classpath(version), arguments, _HEAP)
    dumps: list[dict[str, Any]] = json.loads(printed)
    return dumps
