"""The Spark types of the columns in ``migrate.state.column_types``.

PySpark's ``from_arrow_schema`` is not used: in Spark 3.5 it returns TIMESTAMP for a TIMESTAMP_NTZ
inside another type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import types

from migrate.state.column_types import ArrayOf, Column, ColumnType, DecimalOf, Leaf, MapOf, StructOf

_LEAVES = {
    leaf.simpleString().upper(): leaf
    for leaf in (
        *(types.BooleanType(), types.ByteType(), types.ShortType(), types.IntegerType()),
        *(types.LongType(), types.FloatType(), types.DoubleType(), types.StringType()),
        *(types.BinaryType(), types.NullType(), types.DateType()),
        *(types.TimestampType(), types.TimestampNTZType()),
    )
}


def struct_field(column: Column, metadata: Mapping[str, Any]) -> types.StructField:
    """Return a column as a field of a schema."""
    return types.StructField(column.name, _spark_type(column.type), metadata=dict(metadata))


def _spark_type(type_: ColumnType) -> types.DataType:
    match type_:
        case Leaf(ddl):
            return _LEAVES[ddl]
        case DecimalOf(precision, scale):
            return types.DecimalType(precision, scale)
        case ArrayOf(element):
            return types.ArrayType(_spark_type(element))
        case MapOf(key, value):
            return types.MapType(_spark_type(key), _spark_type(value))
        case StructOf(fields):
            return types.StructType(
                [types.StructField(name, _spark_type(part)) for name, part in fields]
            )
