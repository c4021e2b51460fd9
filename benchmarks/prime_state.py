"""Moves a keyed state of Flink's into Spark's, in a process of its own: a savepoint, `prime` or
`initial`, how many keys of it. Prints as JSON how long it took, and the most memory of Spark's JVM.
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
    savepoint, way, keys = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with Spark() as spark, tempfile.TemporaryDirectory() as folder:
        session = spark.session
        session.conf.set("spark.sql.streaming.stateStore.providerClass", STORE)
        session.conf.set("spark.sql.shuffle.partitions", "2")
        session.range(10).count()  # Spark's own start is no part of it
        state = read_keyed_state(session, savepoint, state="state")
        began = time.perf_counter()
        if way == "prime":
            moved = _prime(state, Path(folder))
        else:
            state = state.limit(keys).persist()
            moved = _initial(session, state, Path(folder))
        figures = {"seconds": time.perf_counter() - began, "peak_bytes": peak_memory(session)}
        (records,) = state.agg(F.sum("value")).collect()[0]
    print(json.dumps({**figures, "keys": moved, "records": records}))


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
    """Without Kafka: a stream of one row, of a key of its own."""
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
    kept = session.read.format("statestore").option("stateVarName", "count")
    return kept.load(str(folder / "checkpoint")).count()


def peak_memory(session: SparkSession) -> int:
    """Return the largest resident set of the JVM so far, in bytes."""
    jvm = session.sparkContext._jvm
    assert jvm is not None
    return peak_of_process(jvm.java.lang.ProcessHandle.current().pid())


if __name__ == "__main__":
    main()
