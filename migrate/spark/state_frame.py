"""``read_keyed_state``: keyed state as a DataFrame of any Spark from 3.5 on."""

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

from migrate.spark.checkpoint_frame import over_shares
from migrate.spark.transfer.origin import metadata_of
from migrate.state.columns import (
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
    """A table's schema; its columns tell which savepoint they are of."""
    metadata = metadata_of(table)
    return StructType(
        [
            StructField(column.name, _spark(column.type), metadata=metadata)
            for column in table.columns
        ]
    )


def _spark(type_: ColumnType) -> DataType:
    match type_:
        case Leaf(ddl):
            return _LEAVES[ddl]
        case DecimalOf(precision, scale):
            return DecimalType(precision, scale)
        case ArrayOf(element):
            return ArrayType(_spark(element))
        case MapOf(key, value):
            return MapType(_spark(key), _spark(value))
        case PairsOf(key, value):
            return ArrayType(_spark(StructOf((("key", key), ("value", value)))))
        case StructOf(fields):
            return StructType([StructField(name, _spark(part)) for name, part in fields])


def read_keyed_state(spark: SparkSession, chk: str, **options: str | bool) -> DataFrame:
    """Keyed state of a checkpoint.

    What there is, is looked at here and now; the executors read it when the DataFrame is used.

    Args:
        chk: as for ``migrate.inspect``.
        options: as for the data source (``migrate.state.views``): ``operator=…, state=…``.

    Raises:
        DecodeError: the checkpoint, or the state, cannot be read.
        UsageError: an unknown option, no such operator or state, or an extra is missing.
        Refused: several operators have such a state.
    """
    asked = parse_state_options({name: str(value) for name, value in options.items()})
    table = open_table(chk, asked)
    return over_shares(spark, table.shares(), read_share, struct_type(table))
