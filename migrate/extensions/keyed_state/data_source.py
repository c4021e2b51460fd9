"""Define the ``flink_state`` data source, which provides keyed state in Spark 4.

    spark.dataSource.register(FlinkStateDataSource)
    spark.read.format("flink_state").option("operator", S).option("state", NAME).load(CHK)

When Spark plans a query, the driver reads a checkpoint's metadata and the headers of its state
files. The executors then read ranges of key groups. Even if the query selects only some columns,
the executors read complete entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from migrate.extensions.keyed_state.frames import state_schema
from migrate.extensions.keyed_state.views import Table, open_table, parse_state_options, read_chunk
from migrate.model.errors import UsageError
from migrate.spark.data_sources import ChunkReader, check_schema


class FlinkStateDataSource(DataSource):
    """One keyed state of the loaded checkpoint, the list of all keyed states, or the timers.

    Options (``keyed_state.views``): ``operator``, ``state``, ``view`` (``entries``, ``states``,
    ``timers``), ``key``, ``allowExternalFiles``, ``truncateKeys``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_state"

    def schema(self) -> StructType:
        return state_schema(self._table)

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(schema, self.schema())
        return ChunkReader(self._table.split, read_chunk)

    @cached_property
    def _table(self) -> Table:
        # Spark pickles this object together with the opened table, so other processes do not open
        # the checkpoint again.
        return _open(self.options)


def _open(options: Mapping[str, str]) -> Table:
    options = {name.lower(): value for name, value in options.items()}
    path = options.pop("path", None)
    if path is None or "paths" in options:
        raise UsageError("exactly one path is required: load(CHK)")
    return open_table(path, parse_state_options(options))
