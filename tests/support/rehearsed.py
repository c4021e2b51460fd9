"""The records of ``RehearsedJob``, as a Spark query parses them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def parse_orders(kafka: DataFrame) -> DataFrame:
    """Return the orders of a stream of Kafka records, with the place of each record."""
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
