"""The records of ``RehearsedJob``, as a Spark query parses them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def parse_orders(kafka: DataFrame) -> DataFrame:
    """Parse a stream of Kafka records into orders, with each record's partition and offset."""
    fields = F.split(F.col("value").cast("STRING"), ",")
    return kafka.select(
        fields[0].alias("name"),
        F.when(fields[1] != "", fields[1].cast("BIGINT")).alias("amount"),
        fields[2].alias("id"),
        F.timestamp_millis(fields[3].cast("BIGINT")).alias("at"),
        "topic",
        "partition",
        "offset",
    )
