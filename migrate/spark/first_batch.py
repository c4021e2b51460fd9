"""Run the first micro-batch of one or more queries in a separate JVM.

The program reads a request from stdin, and writes a result or an error to stdout, all as JSON::

    {"conf": {…}, "queries": [{"checkpoint": "…", "options": {…}}]}
    {"spark": "4.0.0", "batches": [{"start": {"t": {"0": 3}}, "records": 17}]}
    {"failed": "start" | "query", "message": "…"}

The trigger interval is one hour, so no second batch runs. With the ``AvailableNow`` trigger, a
query would start at the same offsets, but it would read all records, and the plan of the first
batch would then no longer be available.

Source: org.apache.spark.sql.execution.streaming.{MicroBatchExecution, StreamingQueryWrapper},
org.apache.spark.sql.execution.datasources.v2.MicroBatchScanExec @ Spark 3.5.1, 4.0.0, 4.1.1 and
4.2.0.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_SECONDS = 300
_CONNECTOR = "spark-sql-kafka-0-10"
# Settings that override the user's settings, so that the plan can be read.
_REQUIRED = {
    # An adaptive plan hides its scans.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
_DEFAULTS = {
    "spark.master": "local[2]",
    "spark.app.name": "migrate verify",
    "spark.ui.enabled": "false",
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Run the queries in a request, one after the other."""
    try:
        session = _session(request["conf"])
    except Exception as error:  # an error from py4j or Spark, or no JVM
        return {"failed": "start", "message": str(error)}
    try:
        batches = [_first_batch(session, query) for query in request["queries"]]
    except (PySparkException, TimeoutError) as error:
        return {"failed": "query", "message": str(error)}
    finally:
        session.stop()
    return {"spark": session.version, "batches": batches}


def _session(conf: dict[str, str]) -> SparkSession:
    builder = SparkSession.builder
    for key, value in {**_DEFAULTS, **_connector_package(conf), **conf, **_REQUIRED}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _connector_package(conf: dict[str, str]) -> dict[str, str]:
    """Return the setting that downloads the Kafka connector.

    Return no setting if the connector is installed, the user has set JAR files or packages, or
    Spark's version cannot be determined.
    """
    # PySpark has no types for this function.
    jars = Path(_find_spark_home(), "jars")  # type: ignore[no-untyped-call]
    if {"spark.jars", "spark.jars.packages"} & conf.keys() or any(jars.glob(f"{_CONNECTOR}*")):
        return {}
    # The name spark-core_2.13-4.0.0.jar contains the versions of Scala and Spark.
    core = next((path.stem for path in jars.glob("spark-core_*.jar")), None)
    if core is None:
        return {}
    scala, _, version = core.removeprefix("spark-core_").partition("-")
    return {"spark.jars.packages": f"org.apache.spark:{_CONNECTOR}_{scala}:{version}"}


def _first_batch(session: SparkSession, request: dict[str, Any]) -> dict[str, Any]:
    query = (
        session.readStream.format("kafka")
        .options(**request["options"])
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", request["checkpoint"])
        .trigger(processingTime="1 hour")
        .start()
    )
    try:
        deadline = time.monotonic() + _SECONDS
        while not query.recentProgress:
            if (error := query.exception()) is not None:
                raise error
            if time.monotonic() > deadline:
                raise TimeoutError(f"the first batch of the query did not end within {_SECONDS} s")
            time.sleep(0.1)
        return {
            "start": json.loads(_planned_start(query)),
            "records": query.recentProgress[0]["numInputRows"],
        }
    finally:
        query.stop()


def _planned_start(query: StreamingQuery) -> str:
    """Return the start offsets of the source's scan in the executed plan, as JSON.

    ``recentProgress`` contains start offsets only from the second batch on.
    """
    execution = query._jsq.streamingQuery().lastExecution()
    leaves = execution.executedPlan().collectLeaves()
    (scan,) = (
        leaves.apply(index)
        for index in range(leaves.size())
        if leaves.apply(index).nodeName().startswith("MicroBatchScan")
    )
    return str(scan.start().json())


def main() -> None:
    # All output of Spark and its JVM goes to stderr, so that stdout contains only the answer.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as stdout:
        os.dup2(2, 1)
        json.dump(answer(json.load(sys.stdin)), stdout)


if __name__ == "__main__":
    main()
