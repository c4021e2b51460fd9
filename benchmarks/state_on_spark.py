"""Reads a keyed state on a Spark of so many cores, whose start is told apart: a line of JSON.

python -m benchmarks.state_on_spark CHECKPOINT STATE SMALL_CHECKPOINT CORES
"""

from __future__ import annotations

import json
import os
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import count, sum

from migrate.spark import FlinkStateDataSource
from tests.support.jdk import find_jdk


def measure(directory: str, state: str, small: str, cores: int) -> dict[str, float]:
    """The wall time of the read in seconds, after one of a small state; entries, and their sum."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.dataSource.register(FlinkStateDataSource)
    reader = spark.read.format("flink_state").option("state", state)
    entries = total = 0
    begun = ended = 0.0
    for chk in (small, directory):
        begun = time.perf_counter()
        ((entries, total),) = reader.load(chk).agg(count("*"), sum("value")).collect()
        ended = time.perf_counter()
    spark.stop()
    return {"entries": entries, "total": total, "seconds": ended - begun}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
