"""Run real Flink jobs with keyed state, and stop them with a savepoint."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.jars import classpath
from tests.support.jdk import JavaError, compile_java, java_command, run_java, tail

_JAVA = Path(__file__).parent / "java"
START = 1_700_000_000_000
_SHARED = ("LocalFlink.java", "Progress.java", "KafkaLines.java")


def run_stateful_job(
    version: str, bootstrap_servers: str, topic: str, records: int, workdir: Path
) -> tuple[Path, list[str]]:
    """Run StatefulJob.java, and return its savepoint and the lines that its sink has committed.

    The job processes at least ``records`` records of each of the topic's two partitions.
    """
    jars = classpath(f"flink-{version}-table")
    span = "time" if version.startswith("1.") else "duration"
    sources = [
        *(_JAVA / "flink" / name for name in _SHARED),
        _JAVA / "keyed" / span / "Span.java",
        _JAVA / "stateful" / "StatefulJob.java",
    ]
    sink = workdir / "sink"
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        arguments = [bootstrap_servers, topic, str(records), checkpoints]
        printed = run_java(
            "testjobs.StatefulJob",
            [compile_java(sources, jars), *jars],
            [*arguments, str((workdir / "savepoints").absolute()), str(sink.absolute())],
            "1g",
        )
    lines = [line for file in sink.rglob("part-*") for line in file.read_text().splitlines()]
    return Path(printed.strip()), lines


@dataclass(frozen=True, slots=True)
class RehearsedJob:
    """A running RehearsedJob.java, and two snapshots of this job."""

    earlier: Path
    later: Path
    sink: Path

    def lines(self, kind: str) -> list[list[str]]:
        """Return the fields of the lines of a kind that the sink has committed."""
        files = (file for file in self.sink.rglob("part-*") if ".inprogress" not in file.name)
        lines = (line.split(",") for file in files for line in file.read_text().splitlines())
        return [fields[1:] for fields in lines if fields[0] == kind]


@contextmanager
def rehearsed_job(
    version: str,
    bootstrap_servers: str,
    topic: str,
    records: tuple[int, int],
    kind: str,
    workdir: Path,
) -> Iterator[RehearsedJob]:
    """Run RehearsedJob.java until the end of the block.

    Args:
        version: the version of Flink.
        bootstrap_servers: the brokers.
        topic: a topic of two partitions.
        records: the minimum number of records of each partition that the job has read before the
            first snapshot, and between the two.
        kind: ``savepoint``, or ``checkpoint`` for retained checkpoints.
        workdir: an empty directory.
    """
    jars = classpath(f"flink-{version}")
    span = "time" if version.startswith("1.") else "duration"
    sources = [
        *(_JAVA / "flink" / name for name in _SHARED),
        _JAVA / "keyed" / span / "Span.java",
        _JAVA / "stateful" / "RehearsedJob.java",
    ]
    folders = [str((workdir / name).absolute()) for name in ("checkpoints", "savepoints", "sink")]
    command = java_command(
        "testjobs.RehearsedJob",
        [compile_java(sources, jars), *jars],
        [bootstrap_servers, topic, *map(str, records), kind, *folders],
        "1g",
    )
    with (workdir / "log").open("w+") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            assert process.stdout is not None
            paths = [Path(process.stdout.readline().strip()) for _ in range(2)]
            if not all(path.name for path in paths):
                raise JavaError(tail((workdir / "log").read_text()))
            yield RehearsedJob(paths[0], paths[1], workdir / "sink")
            process.communicate(timeout=60)
        finally:
            process.kill()
            process.wait()


def run_idle_keys_job(
    version: str, bootstrap_servers: str, topic: str, ttl_seconds: int, workdir: Path
) -> tuple[Path, dict[str, dict[int, tuple[int, int]]]]:
    """Run IdleKeysJob.java with a TTL on its state.

    Returns:
        The savepoint, and the counts and sums by kind of state (``function`` or ``sql``) and by
        user. Flink computes them after it has restarted from the savepoint and read new records of
        all users.
    """
    jars = classpath(f"flink-{version}-table")
    span = "time" if version.startswith("1.") else "duration"
    sources = [
        *(_JAVA / "flink" / name for name in _SHARED),
        _JAVA / "keyed" / span / "Span.java",
        _JAVA / "stateful" / "IdleKeysJob.java",
    ]
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        arguments = [bootstrap_servers, topic, str(ttl_seconds), checkpoints]
        printed = run_java(
            "testjobs.IdleKeysJob",
            [compile_java(sources, jars), *jars],
            [*arguments, str((workdir / "savepoints").absolute())],
            "1g",
        )
    savepoint, *lines = printed.strip().splitlines()
    counted: dict[str, dict[int, tuple[int, int]]] = {"function": {}, "sql": {}}
    for line in lines:
        kind, user, count, total = line.split(",")
        counted[kind][int(user)] = (int(count), int(total))
    return Path(savepoint), counted


def run_case_class_job(workdir: Path) -> Path:
    """Run CaseClassJob.java with Flink's Scala API, and return its savepoint."""
    jars = classpath("flink-1.20-scala")
    sources = [
        *(_JAVA / "flink" / name for name in ("LocalFlink.java", "Progress.java")),
        _JAVA / "stateful" / "CaseClassJob.java",
    ]
    with tempfile.TemporaryDirectory(prefix="flink-checkpoints-") as checkpoints:
        arguments = [checkpoints, str((workdir / "savepoints").absolute())]
        program = [compile_java(sources, jars), *jars]
        return Path(run_java("testjobs.CaseClassJob", program, arguments, "1g").strip())


def event(random_: random.Random, number: int) -> str:
    """Return a record ``user,amount,id,millis``. The numbers 2n and 2n + 1 have the same id."""
    at = START + number * 100 - random_.randrange(1000)
    return f"{random_.randrange(40)},{random_.randrange(-50, 100)},id-{number // 2},{at}"


def order(random_: random.Random, number: int) -> str:
    """Return a record ``name,amount,id,millis``; the amount may be missing or negative.

    Some names differ only in case. The numbers 2n and 2n + 1 have the same id.
    """
    name = random_.choice(["ann", "Ann", "bob", "cas", "dora", "Emil", "fay", "gus"])
    amount = random_.choice(["", *map(str, range(-20, 100))])
    at = START + number * 100 - random_.randrange(1000)
    return f"{name}-{random_.randrange(5)},{amount},id-{number // 2},{at}"


def totals_processor() -> Any:
    """Return a Spark stateful processor that continues from each user's count and sum."""
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    # A class inside a function is pickled by value, so workers need no import.
    class Totals(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "n BIGINT, total BIGINT")

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            row = initialState.iloc[0]
            self.total.update((int(row["n"]), int(row["total"])))

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas as pd

            n, total = self.total.get() if self.total.exists() else (0, 0)
            for frame in rows:
                n, total = n + len(frame), total + int(frame["amount"].sum())
            self.total.update((n, total))
            yield pd.DataFrame({"user": [key[0]], "n": [n], "total": [total]})

        def close(self) -> None: ...

    return Totals()
