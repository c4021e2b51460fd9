"""Cast Flink's values exactly to the types in a stream; an inexact cast is an error."""

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
# Between two of these types, a cast is exact if a cast there and back returns the same value. For
# other types, the equality of both values proves nothing:
# - Milliseconds, such as BIGINT 1700000000000, can be cast to a TIMESTAMP and back, although the
#   cast treats them as seconds.
# - Other casts of times depend on the session's time zone.
# - FLOAT 0.1 can be cast to DOUBLE and back, but is not equal to DOUBLE 0.1.
_PROVEN_BY_CAST_BACK = (*WHOLE, DecimalType, DoubleType, StringType)


def schema_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """Return a schema, which can be a DDL string, as a StructType."""
    return schema if isinstance(schema, StructType) else spark.createDataFrame([], schema).schema


def may_be_cast(source: DataType, target: DataType) -> bool:
    """Return whether a cast there and back can show that a value is the same in both types."""
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
    """Cast a column so that Spark fails on any value that the new type cannot represent exactly.

    Without this check, an inexact cast could turn a key into a different key.

    ``name`` is the column name in error messages.

    Raises:
        UsageError: a cast between these types does not show whether a value stays the same.
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
