"""Values of Flink's in the types of a stream: the same ones, or none."""

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

from migrate.model.errors import UsageError
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WHOLE = (ByteType, ShortType, IntegerType, LongType)
# Of these a value that comes back from a cast unchanged is the same value. It is not so of times:
# 1700000000000 becomes a time of seconds and comes back, and others hang on the session's time
# zone. A FLOAT 0.1 comes back from DOUBLE, where the stream's 0.1 is another number.
_TOLD_BY_THE_WAY_BACK = (*WHOLE, DecimalType, DoubleType, StringType)


def schema_of(spark: SparkSession, schema: StructType | str) -> StructType:
    """A schema, also where it is given as DDL."""
    return schema if isinstance(schema, StructType) else spark.createDataFrame([], schema).schema


def may_be_cast(own: DataType, target: DataType) -> bool:
    """Whether a cast and the way back tell that a value is the same in both types."""
    match own, target:
        case StructType(), StructType():
            return len(own) == len(target) and all(
                may_be_cast(one.dataType, other.dataType)
                for one, other in zip(own.fields, target.fields, strict=True)
            )
        case ArrayType(), ArrayType():
            return may_be_cast(own.elementType, target.elementType)
    if own == target or isinstance(own, NullType):
        return True
    return isinstance(own, _TOLD_BY_THE_WAY_BACK) and isinstance(target, _TOLD_BY_THE_WAY_BACK)


def exactly(frame: DataFrame, column: str, type_: DataType, name: str) -> DataFrame:
    """A column as a type. A value that is not exactly one of it is an error when Spark comes to it:
    a key that were cast into another would be lost in silence.

    Raises:
        UsageError: between these types no cast tells whether a value stays the same.
    """
    own, name = frame.schema[column].dataType, name.replace("'", "")
    if own == type_:
        return frame
    value, target, origin = quoted(column), type_.simpleString(), own.simpleString()
    if not may_be_cast(own, type_):
        raise UsageError(
            f"{name}: of type {origin} in Flink, and {target} in the stream: say by an expression "
            "what it is there, as timestamp_millis(key) or CAST(key AS DOUBLE)"
        )
    cast = f"try_cast({value} AS {target})"
    problem = f"{name}: of type {origin} in Flink, not exactly {target}: "
    return frame.withColumn(
        column,
        F.expr(
            f"CASE WHEN {value} IS NULL OR try_cast({cast} AS {origin}) <=> {value} THEN {cast} "
            f"ELSE CAST(raise_error(concat('{problem}', CAST({value} AS STRING))) AS {target}) END"
        ),
    )
