"""``read_keyed_state``: keyed state as a DataFrame of Spark 3.5 or later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from migrate.spark.checkpoint_frame import read_chunks
from migrate.spark.schema import struct_field
from migrate.spark.transfer.origin import metadata_of
from migrate.state.views import Table, open_table, parse_state_options, read_chunk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def struct_type(table: Table) -> StructType:
    """Return a table's schema; for a single state, the columns' metadata names the savepoint."""
    metadata = metadata_of(table)
    return StructType([struct_field(column, metadata) for column in table.columns])


def read_keyed_state(spark: SparkSession, chk: str, **options: str | bool) -> DataFrame:
    """Return a keyed state of a checkpoint, a list of its states, or its timers as a DataFrame.

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
    return read_chunks(spark, table.split(), read_chunk, struct_type(table))
