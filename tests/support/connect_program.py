"""A program for Spark Connect with ``pyspark-client``; it reads, primes, and rehearses.

It prints one JSON object with all results. The arguments are a folder for its files, the brokers,
and the group. The savepoints are those of ``tests/golden/rehearsed``.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import migrate
from migrate.spark import (
    CommitToGroup,
    FlinkCheckpointDataSource,
    FlinkStateDataSource,
    aggregate_rows,
    prime,
    read_checkpoints,
    read_keyed_state,
    rehearse,
)
from tests.support.rehearsed import parse_orders

_GOLDEN = Path(__file__).parents[1] / "golden"
_ORDER = (
    "name STRING, amount BIGINT, id STRING, at TIMESTAMP, "
    "topic STRING, partition INT, offset BIGINT"
)
_POSITIONS = ["topic", "partition", "next_offset"]
_SECONDS = 120


def orders(events: DataFrame) -> DataFrame:
    """Return the query of the job, which ignores negative amounts."""
    return totals(events.where("amount IS NULL OR amount >= 0"))


def totals(events: DataFrame) -> DataFrame:
    """Return the query without the filter of the job."""
    return events.groupBy("name").agg(
        F.count("*").alias("n"), F.count("amount").alias("amounts"), F.sum("amount").alias("total")
    )


def main(work: Path, servers: str, group: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    kafka = {"kafka.bootstrap.servers": servers, "subscribe": "events"}
    earlier, later = sorted(
        _GOLDEN.glob("rehearsed/savepoint-*"),
        key=lambda path: migrate.inspect(path).checkpoint.checkpoint_id,
    )
    results: dict[str, Any] = {"session": type(spark).__module__, "py4j": find_spec("py4j")}

    # The first function sends the package, so that the data sources are found, too.
    by_function = {
        "positions": read_checkpoints(spark, str(earlier)).select(*_POSITIONS),
        "states": read_keyed_state(spark, str(earlier), operator="totals", state="total"),
    }
    results["functions"] = {name: rows(frame) for name, frame in by_function.items()}
    spark.dataSource.register(FlinkCheckpointDataSource)
    spark.dataSource.register(FlinkStateDataSource)
    flink = spark.read.format("flink_state").options(operator="totals", state="total")
    results["data sources"] = {
        "positions": rows(
            spark.read.format("flink_checkpoint").load(str(earlier)).select(*_POSITIONS)
        ),
        "states": rows(flink.load(str(earlier))),
    }

    def state_rows(savepoint: str) -> list[Any]:
        state = read_keyed_state(spark, savepoint, operator="totals", state="total")
        return [
            aggregate_rows(
                state,
                _ORDER,
                keys={"name": "key"},
                count="value.f0",
                counts={"amount": "value.f1"},
                sums={"amount": "IF(value.f1 = 0, NULL, value.f2)"},
            )
        ]

    # Prime in the same way as the `prime` command of a cut-over, with the positions of its plan.
    plan = work / "plan.json"
    migrate.plan(earlier, bootstrap_servers=servers).save(plan)
    location = str(work / "location")
    primed = prime(
        orders,
        state_rows(str(earlier)),
        positions=migrate.to_spark(plan=plan, bootstrap_servers=servers).starting_offsets,
        checkpoint_location=location,
        output_mode="update",
    )
    results["primed"] = primed.proof.right, primed.proof.entries

    expect = "key, value.f0, value.f1, IF(value.f1 = 0, NULL, value.f2)"
    verified = migrate.verify(
        str(earlier), f"spark:{location}", state="totals/total", expect=expect
    )
    assert verified.state is not None
    results["verified"] = verified.state.is_right, verified.state.right

    # The query without the filter of the job.
    rehearsal = rehearse(
        totals,
        state_rows,
        stream=parse_orders,
        kafka=kafka,
        earlier=earlier,
        later=later,
        output_mode="update",
        scratch=work / "scratch",
    )
    results["rehearsed"] = {
        "is_right": rehearsal.is_right,
        "records": rehearsal.records,
        "right": rehearsal.proof.right,
        "wrong": sorted(row["key"]["name"] for row in rehearsal.wrong.collect()),
    }

    listener = CommitToGroup(location, group, servers)
    spark.streams.addListener(listener)
    stream = spark.readStream.format("kafka").options(**kafka).load()
    output = str(work / "output")
    query = (
        orders(parse_orders(stream))
        .writeStream.outputMode("update")
        .foreachBatch(lambda frame, _: frame.write.mode("append").json(output))
        .option("checkpointLocation", location)
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(_SECONDS)
    # Do not remove the listener; it ends with the session. In PySpark 4.0, removeListener can wait
    # forever for the events thread, while the events thread waits for a lock that removeListener
    # holds.
    end = time.monotonic() + _SECONDS
    newest = max(int(path.name) for path in Path(location, "commits").glob("[0-9]*"))
    while listener.followed is None or listener.followed.batch != newest:
        assert time.monotonic() < end, listener.problem
        time.sleep(0.1)
    results["problem"] = listener.problem and str(listener.problem)
    results["output"] = rows(
        spark.read.schema("name STRING, n BIGINT, amounts BIGINT, total BIGINT").json(output)
    )
    results["imported"] = [name for name in sys.modules if name.partition(".")[0] == "py4j"]
    spark.stop()
    print(json.dumps(results))


def rows(frame: DataFrame) -> list[list[Any]]:
    """Return the rows as lists, sorted."""
    return sorted([list(row) for row in frame.collect()], key=repr)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
