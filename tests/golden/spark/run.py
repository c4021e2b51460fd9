"""Run the queries with the PySpark of this process.

    python -m tests.golden.spark.run BOOTSTRAP_SERVERS DIRECTORY

The program writes the checkpoint locations into the directory, and prints Spark's report on each of
them as JSON.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.version import __version__ as pyspark_version

from tests.golden.spark.jobs import STARTS, Job, jobs_of
from tests.support.spark import Spark

_SECONDS = 120
_RECORDS = 20  # in each partition, before the query's first run


class _Runner:
    def __init__(self, session: SparkSession, servers: str, work: Path) -> None:
        self._session = session
        self._servers = servers
        self._work = work
        self._produced = 0

    def run(self, job: Job, checkpoint: Path) -> dict[str, Any]:
        """Run a query, and then restart it from a copy of its checkpoint location.

        Return the start offsets of both, each in the format ``{topic: {partition: offset}}``.
        """
        for key, value in (job.conf or {}).items():
            self._session.conf.set(key, value)
        try:
            topics = {topic: f"{job.name}-{topic}" for topic in job.topics}
            for topic, own in topics.items():
                self._produce(own, STARTS[topic])
            self._first_run(job, topics, checkpoint)
            if job.repartitions:
                self._repartition(job, checkpoint)
            for topic, own in topics.items():
                self._produce(own, STARTS[topic])
            copy = self._work / f"{job.name}-copy"
            shutil.copytree(checkpoint, copy)
            goes_on_at = self._restart(job, topics, copy)
        finally:
            for key in job.conf or {}:
                self._session.conf.unset(key)
        started_at = {topics[topic]: dict(STARTS[topic]) for topic in topics}
        return {"started_at": started_at, "goes_on_at": goes_on_at}

    def _produce(self, topic: str, partitions: Mapping[str, int]) -> None:
        rows = [
            (topic, int(partition), str(number).encode())
            for partition in partitions
            for number in range(_RECORDS + int(partition))
        ]
        (
            self._session.createDataFrame(rows, "topic STRING, partition INT, value BINARY")
            .write.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .save()
        )

    def _first_run(self, job: Job, topics: Mapping[str, str], checkpoint: Path) -> None:
        if job.options is not None:
            query = self._start(
                job, topics, checkpoint, trigger={"processingTime": "200 milliseconds"}
            )
            self._wait_for_end(query, topics)
            query.stop()
            return
        query = self._start(job, topics, checkpoint, trigger={"availableNow": True})
        try:
            assert query.awaitTermination(_SECONDS)
        except StreamingQueryException:
            assert job.fails_in is not None
        else:
            assert job.fails_in is None

    def _repartition(self, job: Job, checkpoint: Path) -> None:
        """Repartition like StreamingCheckpointManager.repartition, which PySpark does not have."""
        java: Any = self._session._jvm
        state = java.org.apache.spark.sql.execution.streaming.state
        exactly_once = job.fails_in is None
        state.OfflineStateRepartitionRunner(
            self._session._jsparkSession, str(checkpoint), 2, exactly_once
        ).run()

    def _wait_for_end(self, query: StreamingQuery, topics: Mapping[str, str]) -> None:
        """Wait until the query has read all records."""
        deadline = time.monotonic() + _SECONDS
        wanted = sum(
            _RECORDS + int(partition) - start
            for topic in topics
            for partition, start in STARTS[topic].items()
        )
        while sum(progress["numInputRows"] for progress in query.recentProgress) < wanted:
            assert query.isActive and time.monotonic() < deadline
            time.sleep(0.2)

    def _restart(self, job: Job, topics: Mapping[str, str], checkpoint: Path) -> dict[str, Any]:
        """Return the start offsets of the restarted query's first batch, from its progress."""
        query = self._start(
            replace(job, fails_in=None),
            topics,
            checkpoint,
            trigger={"processingTime": "1 hour"},
        )
        deadline = time.monotonic() + _SECONDS
        try:
            while not query.recentProgress:
                assert query.isActive and time.monotonic() < deadline, query.exception()
                time.sleep(0.2)
            # Read the progress from the JVM, because PySpark's format of offsets depends on its
            # version.
            progress = json.loads(query._jsq.recentProgress()[0].json())
        finally:
            query.stop()
        found: dict[str, Any] = {}
        for source in progress["sources"]:
            if source["description"].startswith("KafkaV2"):
                found |= source["startOffset"]
        return found

    def _start(
        self, job: Job, topics: Mapping[str, str], checkpoint: Path, trigger: Mapping[str, Any]
    ) -> StreamingQuery:
        streams = [self._kafka(job, topics[topic], STARTS[topic]) for topic in topics]
        if job.file_source:
            streams.insert(0, self._files(job))
        records = streams[0]
        for stream in streams[1:]:
            records = records.union(stream)
        if job.stateful:
            records = records.dropDuplicates(["topic", "partition", "offset"])
        writer = records.writeStream.option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(**trigger).options(**(job.options or {}))
        if job.names_sink:
            writer._jwrite.name("sink")  # Spark 4.2 has no public method for it
        if job.fails_in is not None:
            return writer.foreachBatch(_failing_in(job.fails_in)).start()
        return writer.format("noop").start()

    def _kafka(self, job: Job, topic: str, starts: Mapping[str, int]) -> DataFrame:
        reader = self._session.readStream
        if job.names:
            reader = reader.name(topic.replace("-", "_"))  # type: ignore[attr-defined]
        return (
            reader.format("kafka")
            .option("kafka.bootstrap.servers", self._servers)
            .option("subscribe", topic)
            .option("startingOffsets", json.dumps({topic: starts}))
            .option("maxOffsetsPerTrigger", str(job.records_per_batch))
            .load()
            .selectExpr("topic", "partition", "offset", "CAST(value AS STRING) AS value")
        )

    def _files(self, job: Job) -> DataFrame:
        folder = self._work / f"{job.name}-files"
        if not folder.exists():
            folder.mkdir()
            (folder / "one.json").write_text('{"value": "1"}\n', encoding="ascii")
        reader = self._session.readStream
        if job.names:
            reader = reader.name("files")  # type: ignore[attr-defined]
        schema = "topic STRING, partition INT, offset LONG, value STRING"
        return reader.format("json").schema(schema).load(str(folder))


def _failing_in(batch_id: int) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        if number == batch_id:
            raise RuntimeError("as it was told to")
        batch.write.format("noop").mode("append").save()

    return write


def main(servers: str, directory: str) -> None:
    told = {}
    with tempfile.TemporaryDirectory(prefix="spark-golden-") as work, Spark() as spark:
        runner = _Runner(spark.session, servers, Path(work))
        for job in jobs_of(pyspark_version):
            told[job.name] = runner.run(job, Path(directory, job.name).absolute())
    json.dump({"spark": pyspark_version, "jobs": told}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
