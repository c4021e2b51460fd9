"""Rehearse a query that counts and sums, as a command.

python -m benchmarks.rehearse_state BOOTSTRAP_SERVERS EARLIER_CHECKPOINT LATER_CHECKPOINT

Prints the numbers of keys and records, the duration, and the peak memory of Spark's JVM and of this
process as JSON.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.machine import peak_of_process
from benchmarks.prime_state import STORE, STREAM, peak_memory
from migrate.spark import StateRows, aggregate_rows, read_keyed_state, rehearse
from tests.support.spark import Spark

TOPIC = "bench"


def main() -> None:
    servers, earlier, later = sys.argv[1:]
    with Spark() as spark:
        session = spark.session
        session.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.range(10).count()  # so that Spark's start is not measured

        def rows(checkpoint: str) -> list[StateRows]:
            state = read_keyed_state(session, checkpoint, state="state")
            keys, sums = {"customer": "key"}, {"amount": "value"}
            return [aggregate_rows(state, STREAM, keys=keys, count="value", sums=sums)]

        start = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            result = rehearse(
                lambda stream: stream.groupBy("customer").agg(F.count("*"), F.sum("amount")),
                rows,
                earlier=earlier,
                later=later,
                stream=_parsed,
                kafka={"kafka.bootstrap.servers": servers, "subscribe": TOPIC},
                output_mode="update",
            )
        figures = {
            "keys": result.proof.right,
            "records": result.records,
            "seconds": time.perf_counter() - start,
            "peak_bytes": peak_memory(session),
            "python_peak_bytes": peak_of_process(),
        }
    print(json.dumps(figures))


def _parsed(kafka: DataFrame) -> DataFrame:
    fields = F.split(F.col("value").cast("STRING"), ",")
    return kafka.select(
        fields[0].alias("customer"), fields[1].cast("BIGINT").alias("amount"), "offset"
    )


if __name__ == "__main__":
    main()
