"""Continue the counts of the job of totals/flink.sql from the point where Flink stopped.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 \
        examples/totals/spark_query.py --bootstrap-servers kafka:9092 \
        --checkpoint /lake/queries/totals --savepoint s3://flink/savepoints/savepoint-...

On its first run, the query copies the savepoint's counts and positions into its checkpoint
location. The location then contains the query's positions, and the savepoint is not needed. With
`--prime`, the query stops after this first step, as `migrate cut-over` requires (cut-over.yaml).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, from_json, struct, sum, to_json

from migrate import to_spark
from migrate.spark import FlinkStateDataSource, aggregate_rows, prime

ORDER = "customer STRING, cents BIGINT"


def totals(orders: DataFrame) -> DataFrame:
    """Return the query, with a row per customer as in the job's GROUP BY."""
    return orders.groupBy("customer").agg(count("*").alias("orders"), sum("cents").alias("cents"))


def take_over(spark: SparkSession, savepoint: str, positions: str, checkpoint: str) -> None:
    """Put the job's counts and positions into the query's checkpoint location."""
    spark.dataSource.register(FlinkStateDataSource)
    state = spark.read.format("flink_state").option("state", "accState").load(savepoint)
    rows = aggregate_rows(
        state, ORDER, keys={"customer": "key.f0"}, count="value.f0", sums={"cents": "value.f1"}
    )
    primed = prime(
        totals,
        [rows],
        positions=positions,
        checkpoint_location=checkpoint,
        output_mode="update",
    )
    print(f"Spark's state against Flink's: {primed.proof}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Totals per customer.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--checkpoint", required=True, help="the query's checkpointLocation")
    begin = parser.add_mutually_exclusive_group()
    begin.add_argument("--savepoint", help="the savepoint of Flink's job, for the first run")
    begin.add_argument("--prime", action="store_true", help="prime for a cut-over, and exit")
    parser.add_argument(
        "--available-now", action="store_true", help="read all available records, and exit"
    )
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("totals").getOrCreate()
    servers, checkpoint = arguments.bootstrap_servers, arguments.checkpoint
    if arguments.prime:
        plan = to_spark(plan=os.environ["CUT_OVER_PLAN"], bootstrap_servers=servers)
        savepoint = os.environ["CUT_OVER_SAVEPOINT"]
        take_over(spark, savepoint, plan.starting_offsets, checkpoint)
        return
    if arguments.savepoint and not Path(checkpoint).exists():
        start = to_spark(arguments.savepoint, bootstrap_servers=servers)
        take_over(spark, arguments.savepoint, start.starting_offsets, checkpoint)
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "orders")
        .load()
        .select(from_json(col("value").cast("string"), ORDER).alias("order"))
        .select("order.*")
    )
    writer = (
        totals(orders)
        .select(
            to_json(struct("customer")).alias("key"),
            to_json(struct("customer", "orders", "cents")).alias("value"),
        )
        .writeStream.format("kafka")
        .outputMode("update")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "totals")
        .option("checkpointLocation", checkpoint)
    )
    trigger = (
        writer.trigger(availableNow=True)
        if arguments.available_now
        else writer.trigger(processingTime="2 seconds")
    )
    trigger.start().awaitTermination()


if __name__ == "__main__":
    main()
