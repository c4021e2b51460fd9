"""Define ``read_keyed_state``, which returns DataFrames in Spark 3.5 or later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from migrate.extensions.keyed_state.column_metadata import metadata_of
from migrate.extensions.keyed_state.views import Table, open_table, parse_state_options, read_chunk
from migrate.spark.frames import read_chunks, spark_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_keyed_state(spark: SparkSession, chk: str, **options: str | bool) -> DataFrame:
    """Return one keyed state of a checkpoint, the list of all keyed states, or the timers.

    This call opens the checkpoint; the executors read the state when the DataFrame is used.

    Args:
        spark: the session.
        chk: the checkpoint, as in ``migrate.inspect``.
        options: the options of the data source (``keyed_state.views``), such as ``operator=…``.

    Raises:
        DecodeError: the checkpoint or the state cannot be read.
        UsageError: an option is not valid, the operator or the state does not exist, or an extra is
            not installed.
        Refused: several operators have a state with this name.
    """
    parsed = parse_state_options({name: str(value) for name, value in options.items()})
    table = open_table(chk, parsed)
    return read_chunks(spark, table.split(), read_chunk, state_schema(table))


def state_schema(table: Table) -> StructType:
    """Return a table's schema; for a single state, the columns have the state's metadata."""
    metadata = metadata_of(table)
    return StructType([spark_field(column, metadata) for column in table.columns])
