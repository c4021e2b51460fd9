"""Compute the revenue of windows, as the job of windows/flink.sql does.

A move of only its positions would lose Flink's contents of the windows that had not ended. The
query therefore starts at an earlier savepoint. It reads these windows from their start, and writes
their rows a second time. In `revenue`, only the newest record of a key counts, so the new rows
replace Flink's rows of these windows with the same values. `--from` is the start of the first of
these windows. The query would read earlier windows only in part. Flink has written these earlier
windows completely, so the query omits them.
"""

from __future__ import annotations

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import (
    col,
    count,
    date_format,
    from_json,
    lit,
    struct,
    sum,
    timestamp_millis,
    to_json,
    window,
)
from pyspark.sql.streaming.readwriter import DataStreamWriter

WINDOW = "4 seconds"


def revenue(spark: SparkSession, bootstrap_servers: str, since_ms: int) -> DataFrame:
    """Return a row per customer and window; the first window starts at `since_ms`."""
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("subscribe", "orders")
        .load()
        .select(
            from_json(col("value").cast("string"), "customer STRING, cents LONG").alias("order"),
            col("timestamp").alias("ordered_at"),
        )
    )
    return (
        orders.where(col("ordered_at") >= timestamp_millis(lit(since_ms)))
        .withWatermark("ordered_at", "10 seconds")
        .groupBy(window("ordered_at", WINDOW), col("order.customer").alias("customer"))
        .agg(count("*").alias("orders"), sum("order.cents").alias("cents"))
        .select(
            date_format("window.start", "yyyy-MM-dd HH:mm:ss").alias("window_start"),
            "customer",
            "orders",
            "cents",
        )
    )


def upsert(
    rows: DataFrame, bootstrap_servers: str, topic: str, checkpoint: str
) -> DataStreamWriter:
    """Return a writer of the rows into a topic, under the keys of Flink's upsert-kafka."""
    return (
        rows.select(
            to_json(struct("window_start", "customer")).alias("key"),
            to_json(struct("window_start", "customer", "orders", "cents")).alias("value"),
        )
        .writeStream.format("kafka")
        .outputMode("update")
        .option("kafka.bootstrap.servers", bootstrap_servers)
        .option("topic", topic)
        .option("checkpointLocation", checkpoint)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Revenue per customer and window.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--checkpoint", required=True, help="the query's checkpointLocation")
    parser.add_argument(
        "--from", dest="since_ms", type=int, required=True, help="milliseconds of the epoch"
    )
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("windows").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    rows = revenue(spark, arguments.bootstrap_servers, arguments.since_ms)
    upsert(
        rows, arguments.bootstrap_servers, "revenue", arguments.checkpoint
    ).start().awaitTermination()


if __name__ == "__main__":
    main()
