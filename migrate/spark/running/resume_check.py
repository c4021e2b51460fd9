"""Starts a real Spark on a copy of a seed and sees where it plans to begin to read.

Each Kafka source of the seed becomes a query of its own, with a ``noop`` sink, over the topics of
its seed and bounded in records: what else the user's query does with them has no say in where it
starts. The copy holds the seeds alone; the directory itself is only read.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from migrate.errors import MigrateError, UsageError
from migrate.kafka_config import KafkaConfig, without_secrets
from migrate.positions import AmbiguousPositions, PositionSet, TopicPartition, UnreadableInput
from migrate.spark.offsets_json import topic_offsets
from migrate.spark.progress import kafka_seeds, seed_path
from migrate.spark.running.reader_options import kafka_options
from migrate.storage.files import Files
from migrate.storage.new_file import named

# Enough to prove that the records can be had, few enough not to be waited for.
_RECORDS = 1000
_CAUSE = "Caused by: "
_LAST_LINES = 4


class SparkNotThere(UsageError):
    """PySpark, its Java or its Kafka connector is missing, or a setting keeps it from starting."""


class QueryFailed(MigrateError):
    """Spark took the seed, and its first batch failed: so will the user's query."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Where Spark began.

    Attributes:
        spark: the version that ran.
        started: the first offset it planned to read, of every partition in the seed.
        records: how many records its first batches read.
    """

    spark: str
    started: PositionSet
    records: int


def check_there_is_pyspark() -> None:
    """Before anything else is asked.

    Raises:
        SparkNotThere: there is none.
    """
    if find_spec("pyspark") is None:
        raise SparkNotThere("--run needs PySpark: pip install 'flink-offset-migrate[spark]'")


def run_first_batch(
    label: str, directory: str, kafka: KafkaConfig, spark_conf: Mapping[str, str]
) -> Resume:
    """Run the first micro-batch of a query on a copy of the directory's seeds.

    Args:
        label: what the positions are called.
        directory: a checkpoint location; it is not touched.
        kafka: how to reach the cluster.
        spark_conf: Spark's settings, such as ``spark.jars.packages``.

    Raises:
        SparkNotThere, QueryFailed: as they say.
        ConfigError: the cluster is reached in a way that has no match in Spark here.
        UnreadableInput: the directory has no seed of a Kafka source, or a damaged one.
        AmbiguousPositions: two of its sources begin one partition at different places.
    """
    check_there_is_pyspark()
    files = Files()
    seeds = kafka_seeds(directory, files)
    if not seeds:
        raise UnreadableInput(f"{directory}: no seed of a Kafka source in it (sources/0/0)")
    options = {**kafka_options(kafka), "maxOffsetsPerTrigger": str(_RECORDS)}
    with tempfile.TemporaryDirectory(prefix="migrate-resume-") as work:
        queries = []
        for source, seed in seeds.items():
            copy = Path(work, source)
            with named(copy):
                _write_seed(files.read(seed_path(directory, source)), copy)
            topics = ",".join(sorted({topic for topic, _ in seed}))
            # The seed is what must count: were it not heeded, nothing would be read.
            asked = {**options, "subscribe": topics, "startingOffsets": "latest"}
            queries.append({"checkpoint": str(copy), "options": asked})
        known = {**kafka, **spark_conf}
        answer = _run({"conf": dict(spark_conf), "queries": queries}, known)
    starts: dict[TopicPartition, int] = {}
    for batch in answer["batches"]:
        for (topic, partition), start in topic_offsets(batch["start"]).items():
            if starts.setdefault((topic, partition), start) != start:
                raise AmbiguousPositions(f"{label}: two of its sources read {topic}-{partition}")
    records = sum(batch["records"] for batch in answer["batches"])
    return Resume(answer["spark"], PositionSet(label, starts, "as Spark planned it"), records)


def _write_seed(seed: bytes, checkpoint: Path) -> None:
    """A new checkpoint location, of a query whose one source is to start there."""
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(seed)
    metadata = json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":"))
    (checkpoint / "metadata").write_text(metadata, encoding="ascii")


def _run(request: Mapping[str, Any], known: KafkaConfig) -> dict[str, Any]:
    """Ask a process with a Spark of its own; its talk is kept for when it fails without a word, and
    told without the secrets that are ``known``."""
    done = subprocess.run(
        [sys.executable, "-m", "migrate.spark.running.first_batch"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise SparkNotThere(f"Spark did not start: {_last(done.stderr, known)}") from error
    match answer.get("failed"):
        case None:
            return answer
        case "start":
            talk = _last(done.stderr, known)
            message = f"{_reason(answer['message'], known)} ({talk})"
            raise SparkNotThere(f"Spark did not start: {message}")
        case _:
            message = _reason(answer["message"], known)
            if "Failed to find data source: kafka" in message:
                raise SparkNotThere(
                    f"{message} Name its connector: --spark-conf spark.jars.packages=…"
                )
            raise QueryFailed(message)


def _reason(message: str, known: KafkaConfig) -> str:
    """What failed, and why in the end: between the two lie Java's stack traces."""
    lines = [line.strip() for line in without_secrets(message, known).splitlines() if line.strip()]
    causes = [line for line in lines[1:] if line.startswith(_CAUSE)]
    return "; ".join([*lines[:1], *causes[-1:]]) or "no reason given"


def _last(talk: str, known: KafkaConfig) -> str:
    """The end of what it said, without Java's stack traces."""
    lines = [line.strip() for line in without_secrets(talk, known).splitlines()]
    told = [line for line in lines if line and not line.startswith("at ")]
    return "; ".join(told[-_LAST_LINES:]) or "no reason given"
