"""Cast Flink's values to the types in a stream; a cast that changes a value is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
)

from migrate.model.column_types import quoted
from migrate.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = (ByteType, ShortType, IntegerType, LongType)
# A cast between two of these types is exact if casting the result back returns the original value.
# For other types, this round trip proves nothing:
# - Milliseconds, such as BIGINT 1700000000000, can be cast to a TIMESTAMP and back. However, the
#   TIMESTAMP is wrong, because the cast treats the number as seconds.
# - Other casts of times depend on the session's time zone.
# - FLOAT 0.1 can be cast to DOUBLE and back, but the result of the first cast is not DOUBLE 0.1.
_PROVEN_BY_CAST_BACK = (*WHOLE, DecimalType, DoubleType, StringType)


def schema_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """Return a schema as a StructType; the argument can also be a DDL string."""
    return schema if isinstance(schema, StructType) else spark.createDataFrame([], schema).schema


def may_be_cast(source: DataType, target: DataType) -> bool:
    """Return whether casting a value and casting it back can prove that the cast is exact."""
    match source, target:
        case StructType(), StructType():
            return len(source) == len(target) and all(
                may_be_cast(from_field.dataType, to_field.dataType)
                for from_field, to_field in zip(source.fields, target.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return may_be_cast(source.elementType, target.elementType)
    if source == target or isinstance(source, NullType):
        return True
    return isinstance(source, _PROVEN_BY_CAST_BACK) and isinstance(target, _PROVEN_BY_CAST_BACK)


def cast_exactly(frame: DataFrame, column: str, type_: DataType, name: str) -> DataFrame:
    """Cast a column; Spark fails on any value that the new type cannot represent exactly.

    Otherwise, an inexact cast could turn a key into a different key.

    ``name`` is the column name in error messages.

    Raises:
        UsageError: a cast between these types cannot be proved exact (see ``may_be_cast``).
    """
    source, name = frame.schema[column].dataType, name.replace("'", "")
    if source == type_:
        return frame
    value, target, origin = quoted(column), type_.simpleString(), source.simpleString()
    if not may_be_cast(source, type_):
        raise UsageError(
            f"{name} has type {origin} in Flink and {target} in the stream; pass an "
            "expression that converts it, such as timestamp_millis(key) or CAST(key AS "
            "DOUBLE)"
        )
    cast = f"try_cast({value} AS {target})"
    problem = f"{name} has type {origin} in Flink, and this value is not exactly {target}: "
    return frame.withColumn(
        column,
        F.expr(
            f"CASE WHEN {value} IS NULL OR try_cast({cast} AS {origin}) <=> {value} THEN {cast} "
            f"ELSE CAST(raise_error(concat('{problem}', CAST({value} AS STRING))) AS {target}) END"
        ),
    )
