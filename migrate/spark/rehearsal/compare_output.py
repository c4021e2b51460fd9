"""What a query has written, compared with what Flink wrote: as rows in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from migrate.model.errors import UsageError
from migrate.spark.rehearsal.differences import Comparison, named_comparison
from migrate.spark.transfer.exact_cast import cast_exactly
from migrate.spark.transfer.flat_state import Field, SparkState
from migrate.spark.transfer.proof import Expectation, compare
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIMES = "times"


def compare_output(spark_rows: DataFrame, flink_rows: DataFrame) -> Comparison:
    """Compare two multisets of rows; a key is a distinct row, and its value how often it occurs.

    Columns are matched by name.

    Raises:
        UsageError: the columns have other names, or a type cannot be cast exactly.
    """
    names = spark_rows.columns
    if sorted(names) != sorted(flink_rows.columns):
        raise UsageError(
            f"output has the columns {', '.join(flink_rows.columns)}, and the query writes "
            f"{', '.join(names)}"
        )
    for field in spark_rows.schema.fields:
        flink_rows = cast_exactly(flink_rows, field.name, field.dataType, field.name)
    fields = tuple(Field(field.name, field.dataType) for field in spark_rows.schema.fields)
    state = SparkState(
        "output", _counted(spark_rows, names), fields, False, (Field(_TIMES, LongType()),)
    )
    flink = _counted(flink_rows, names)
    return named_comparison(state, Expectation(flink, compare(state, flink)), names, [_TIMES])


def _counted(rows: DataFrame, names: list[str]) -> DataFrame:
    keys = [F.col(quoted(name)).alias(f"k{number}") for number, name in enumerate(names)]
    return rows.groupBy(*keys).agg(F.count("*").alias("v0"))
