"""Checkpoints of a few jobs of several kinds, and their topic on a real broker."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import uuid
from pathlib import Path

from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.command import Result
from tests.support.kafka import Broker

JOB = "{:032x}".format
_WITHOUT_SPARK = (
    "import sys; sys.modules['pyspark'] = None; sys.argv[0] = 'migrate'\n"
    "from migrate.cli import main\nmain()"
)


def write_job(root: Path, job: int, number: int, topic: str, starts: list[int]) -> Path:
    """Write a job's directory with one checkpoint of one KafkaSource."""
    state = SourceState({0: splits(topic, starts)})
    return write_checkpoint(
        root / JOB(job) / f"chk-{number}", source_operator(state), checkpoint_id=number
    )


class FewJobs:
    """A few jobs, and their topic.

    The topic has two partitions of 40 and 10 records; the first 5 of the 40 are deleted. One job
    reads the topic `gone`, but this topic does not exist.
    """

    def __init__(self, root: Path, broker: Broker) -> None:
        self.root = root
        self.broker = ("--bootstrap-servers", broker.bootstrap_servers)
        self.topic = f"scan-{uuid.uuid4().hex[:8]}"
        self.gone = f"gone-{uuid.uuid4().hex[:8]}"
        broker.create_topic(self.topic, 2)
        broker.produce(self.topic, 0, map(str, range(40)))
        broker.produce(self.topic, 1, map(str, range(10)))
        broker.delete_records(self.topic, 0, 5)
        write_job(root, 1, 8, self.topic, [10, 10])
        self.newest = write_job(root, 1, 9, self.topic, [30, 4])
        self.earliest = write_job(root, 2, 1, self.topic, [-2, 10])
        self.expired = write_job(root, 3, 1, self.topic, [4, 10])
        self.beyond_end = write_job(root, 4, 1, self.topic, [41, 10])
        self.without_topic = write_job(root, 5, 1, self.gone, [1, 1])
        self.unaligned = write_checkpoint(
            root / JOB(6) / "chk-1",
            source_operator(SourceState({0: splits(self.topic, [30, 4])})),
            in_flight_operator(7),
            checkpoint_id=1,
        )
        self.savepoint = write_checkpoint(
            root / "savepoints" / "savepoint-abcdef-0123456789ab",
            source_operator(SourceState({0: splits(self.topic, [30, 4])})),
        )
        self.corrupt = root / JOB(7) / "chk-3"
        self.corrupt.mkdir(parents=True)
        (self.corrupt / "_metadata").write_bytes(b"not one")
        self.half_written = root / JOB(1) / "chk-10"
        self.half_written.mkdir()


def scan(*arguments: str | Path) -> Result:
    """Run ``migrate scan`` as a separate process without PySpark and Java.

    In this process, the scan would use an existing Spark session.
    """
    nowhere = {name: os.environ[name] for name in os.environ if name not in ("PATH", "JAVA_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_SPARK, "scan", *map(str, arguments)],
        capture_output=True,
        text=True,
        env=nowhere,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def lines(result: Result) -> dict[str, list[str]]:
    """Return the cells of each job's line in the table, by checkpoint."""
    assert result.code == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines()[1:]]
    return {row[1]: [row[0], *row[2:]] for row in rows if row[0] != "total"}


def csv_rows(file: Path) -> list[dict[str, str]]:
    with file.open(newline="") as text:
        return list(csv.DictReader(text))
