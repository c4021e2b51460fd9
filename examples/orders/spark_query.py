"""Read orders from Kafka into files, exactly once, as the job of orders/flink.sql does.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 \
        examples/orders/spark_query.py --bootstrap-servers kafka:9092 \
        --checkpoint /lake/queries/orders --path /lake/orders/spark

The query starts at the offsets in its checkpoint location, written by `migrate to-spark
--checkpoint-dir`. `startingOffsets` has its default, because Spark uses it only for a new
checkpoint location.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, from_json

ORDER = "order_id LONG, customer STRING, cents LONG"


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders from Kafka into files.")
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--checkpoint", required=True, help="the query's checkpointLocation")
    parser.add_argument("--path", required=True, help="the directory of its files")
    parser.add_argument(
        "--available-now",
        action="store_true",
        help="finish a started batch, read all available records, commit every batch, and exit",
    )
    arguments = parser.parse_args()

    spark = SparkSession.builder.appName("orders").getOrCreate()
    orders = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", arguments.bootstrap_servers)
        .option("subscribe", "orders")
        .load()
        .select(from_json(col("value").cast("string"), ORDER).alias("order"), "partition", "offset")
        .select("order.*", "partition", "offset")
    )
    writer = (
        orders.writeStream.format("csv")
        .option("path", arguments.path)
        .option("checkpointLocation", arguments.checkpoint)
    )
    trigger = (
        writer.trigger(availableNow=True)
        if arguments.available_now
        else writer.trigger(processingTime="2 seconds")
    )
    trigger.start().awaitTermination()


if __name__ == "__main__":
    main()
