"""``read_keyed_state``: keyed state as a DataFrame of Spark 3.5 or later.

PySpark's ``from_arrow_schema`` is not used for the types: in Spark 3.5 it returns TIMESTAMP for a
TIMESTAMP_NTZ inside another type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from migrate.spark.checkpoint_frame import read_shares
from migrate.spark.transfer.origin import metadata_of
from migrate.state.column_types import (
    ArrayOf,
    ColumnType,
    DecimalOf,
    Leaf,
    MapOf,
    PairsOf,
    StructOf,
)
from migrate.state.views import Table, open_table, parse_state_options, read_share

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LEAVES: dict[str, DataType] = {
    "BOOLEAN": BooleanType(),
    "TINYINT": ByteType(),
    "SMALLINT": ShortType(),
    "INT": IntegerType(),
    "BIGINT": LongType(),
    "FLOAT": FloatType(),
    "DOUBLE": DoubleType(),
    "STRING": StringType(),
    "BINARY": BinaryType(),
    "VOID": NullType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
    "TIMESTAMP_NTZ": TimestampNTZType(),
}


def struct_type(table: Table) -> StructType:
    """Return a table's schema; the metadata of its columns names the savepoint."""
    metadata = metadata_of(table)
    return StructType(
        [
            StructField(column.name, _spark_type(column.type), metadata=metadata)
            for column in table.columns
        ]
    )


def _spark_type(type_: ColumnType) -> DataType:
    match type_:
        case Leaf(ddl):
            return _LEAVES[ddl]
        case DecimalOf(precision, scale):
            return DecimalType(precision, scale)
        case ArrayOf(element):
            return ArrayType(_spark_type(element))
        case MapOf(key, value):
            return MapType(_spark_type(key), _spark_type(value))
        case PairsOf():
            return _spark_type(type_.stored)
        case StructOf(fields):
            return StructType([StructField(name, _spark_type(part)) for name, part in fields])


def read_keyed_state(spark: SparkSession, chk: str, **options: str | bool) -> DataFrame:
    """Return a keyed state of a checkpoint.

    This call opens the checkpoint; the executors read the state when the DataFrame is used.

    Args:
        spark: the session.
        chk: the checkpoint, as for ``migrate.inspect``.
        options: the options of the data source (``migrate.state.views``): ``operator=…, state=…``.

    Raises:
        DecodeError: the checkpoint, or the state, cannot be read.
        UsageError: an option is unknown, there is no such operator or state, or an extra is not
            installed.
        Refused: several operators have a state of this name.
    """
    table = open_table(
        chk, parse_state_options({name: str(value) for name, value in options.items()})
    )
    return read_shares(spark, table.shares(), read_share, struct_type(table))
