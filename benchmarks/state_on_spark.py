"""Read a keyed state on Spark, and print the duration as JSON, as a command.

python -m benchmarks.state_on_spark CHECKPOINT STATE SMALL_CHECKPOINT CORES

The start of Spark and the read of the small checkpoint are not counted.
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


def measure(checkpoint: str, state: str, small: str, cores: int) -> dict[str, float]:
    """Return a state's number of entries, their sum, and the wall-clock time of reading them."""
    os.environ.update(JAVA_HOME=str(find_jdk()), SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.dataSource.register(FlinkStateDataSource)
    reader = spark.read.format("flink_state").option("state", state)
    entries = total = 0
    seconds = 0.0
    for path in (small, checkpoint):
        start = time.perf_counter()
        ((entries, total),) = reader.load(path).agg(count("*"), sum("value")).collect()
        seconds = time.perf_counter() - start
    spark.stop()
    return {"entries": entries, "total": total, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
