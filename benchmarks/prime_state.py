"""Move a keyed state from Flink to Spark, as a command.

python -m benchmarks.prime_state SAVEPOINT METHOD KEYS

METHOD is "prime" to move all keys, or "initial" to move this number of keys. The command prints the
duration, the peak memory of Spark's JVM, and the numbers of keys and records as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.machine import peak_of_process
from migrate.spark import aggregate_rows, prime, read_keyed_state
from tests.support.spark import Spark, run_to_end

STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
STREAM = "customer STRING, amount BIGINT"


def main() -> None:
    savepoint, method, keys = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Spark() as spark, tempfile.TemporaryDirectory() as folder:
        session = spark.session
        session.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.range(10).count()  # so that Spark's start is not measured
        state = read_keyed_state(session, savepoint, state="state")
        start = time.perf_counter()
        if method == "prime":
            keys_moved = _prime(state, Path(folder))
        else:
            state = state.limit(keys).persist()
            keys_moved = _initial(session, state, Path(folder))
        figures = {"seconds": time.perf_counter() - start, "peak_bytes": peak_memory(session)}
        (records,) = state.agg(F.sum("value")).collect()[0]
    print(json.dumps({**figures, "keys": keys_moved, "records": records}))


def _prime(state: DataFrame, folder: Path) -> int:
    rows = aggregate_rows(
        state, STREAM, keys={"customer": "key"}, count="value", sums={"amount": "value"}
    )
    primed = prime(
        lambda stream: stream.groupBy("customer").agg(F.count("*"), F.sum("amount")),
        [rows],
        positions={("bench", 0): 1},
        checkpoint_location=str(folder / "checkpoint"),
        output_mode="update",
    )
    return primed.proof.right


def _initial(session: SparkSession, state: DataFrame, folder: Path) -> int:
    """Move a state as the initial state of a query; return the number of keys in Spark's state.

    The query does not read Kafka. Its stream is a file with one row, and this row has a new key.
    """
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Counts(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.count = handle.getValueState("count", "n BIGINT")

        def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:
            self.count.update((int(initialState["n"].iloc[0]),))

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:
            import pandas

            for _ in rows:
                pass
            yield pandas.DataFrame({"n": [0]})

        def close(self) -> None: ...

    initial = state.selectExpr("key AS customer", "value AS n")
    session.sql("SELECT 'none' customer").write.parquet(str(folder / "stream"))
    stream = session.readStream.schema("customer STRING").parquet(str(folder / "stream"))
    writer = (
        stream.groupBy("customer")
        .transformWithStateInPandas(
            Counts(), "n BIGINT", "Update", "None", initialState=initial.groupBy("customer")
        )
        .writeStream.format("noop")
        .outputMode("update")
    )
    run_to_end(
        writer.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    reader = session.read.format("statestore").option("stateVarName", "count")
    return reader.load(str(folder / "checkpoint")).count()


def peak_memory(session: SparkSession) -> int:
    """Return the largest resident set of the JVM so far, in bytes."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return peak_of_process(jvm.java.lang.ProcessHandle.current().pid())


if __name__ == "__main__":
    main()
