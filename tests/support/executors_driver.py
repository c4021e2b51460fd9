"""A Spark driver that reads checkpoints with and without `add_package`."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from migrate.spark import add_package, read_checkpoints, read_keyed_state


def read_outcomes(spark: SparkSession, root: str) -> list[Any]:
    """Read the checkpoints with the function and with the data source, and return both outcomes.

    An outcome is the number of rows by kind of error, or the message of an error. Before Spark 4
    there is no data source, and its outcome is None.
    """
    return [_outcome(read, spark, root) for read in (_function, _data_source)]


def _function(spark: SparkSession, root: str) -> DataFrame:
    return read_checkpoints(spark, root, numPartitions=4)


def _data_source(spark: SparkSession, root: str) -> DataFrame | None:
    if find_spec("pyspark.sql.datasource") is None:
        return None
    from migrate.spark import FlinkCheckpointDataSource

    spark.dataSource.register(FlinkCheckpointDataSource)
    return spark.read.format("flink_checkpoint").option("numPartitions", "4").load(root)


def _outcome(read: Any, spark: SparkSession, root: str) -> Any:
    try:
        frame = read(spark, root)
        if frame is None:
            return None
        counted = frame.groupBy("error_kind").count().collect()
        return {str(row["error_kind"]): row["count"] for row in counted}
    except PySparkException as error:
        missing = re.search(r"No module named '(\w+)'", str(error))
        return missing[0] if missing else str(error)


def totals(spark: SparkSession, state: str) -> list[int | None]:
    """Count the entries of the state `total` with the function and, if any, the data source."""
    counts: list[int | None] = [read_keyed_state(spark, state, state="total").count(), None]
    if find_spec("pyspark.sql.datasource") is not None:
        from migrate.spark import FlinkStateDataSource

        spark.dataSource.register(FlinkStateDataSource)
        loaded = spark.read.format("flink_state").option("state", "total").load(state)
        counts[1] = loaded.count()
    return counts


def main(root: str, state: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    outcomes: dict[str, Any] = {"as it is": read_outcomes(spark, root)}
    if "No module named 'migrate'" in outcomes["as it is"]:
        add_package(spark)
        outcomes["add_package"] = read_outcomes(spark, root)
        outcomes["state"] = totals(spark, state)
    spark.stop()
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
