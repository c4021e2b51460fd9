"""``spark.read.format("flink_state")``: keyed state as a data source of Spark 4.

    spark.dataSource.register(FlinkStateDataSource)
    spark.read.format("flink_state").option("operator", S).option("state", NAME).load(CHK)

The driver reads the checkpoint's metadata and the headers of its state files; the executors read
ranges of key groups. An entry is always read completely, even if not all columns are selected.

With the option ``key`` only the key group of that key is read. A bug in Spark 4.1.1 prevents the
use of pushed filters (``pushFilters``, from Spark 4.1 on): they also apply to later reads of the
same DataFrame without a filter. Spark 4.1.1 keeps the filters with the source,
which all scans share (``PythonDataSourceV2.setReadInfo``); later source code keeps them with each
scan.

Source: pyspark.sql.datasource @ Spark 4.0.0, 4.1.1; PythonScanBuilder @ apache/spark 0d46458.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from migrate.model.errors import UsageError
from migrate.spark.state_frame import struct_type
from migrate.state.views import (
    Table,
    open_table,
    parse_state_options,
    read_chunk,
)

if TYPE_CHECKING:
    import pyarrow as pa


class FlinkStateDataSource(DataSource):
    """A keyed state of the loaded checkpoint, a list of its states, or its timers.

    Options (``migrate.state.views``): ``operator``, ``state``, ``view`` (``entries``, ``states``,
    ``timers``), ``key``, ``allowExternalFiles``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_state"

    def schema(self) -> StructType:
        return struct_type(self._table())

    def reader(self, schema: StructType) -> DataSourceReader:
        table = self._table()
        if schema != struct_type(table):
            raise UsageError("the schema is the state's: choose of its columns by select")
        return _Reader(table)

    def _table(self) -> Table:
        # The opened table is kept in this object, which Spark pickles for its later processes.
        table: Table | None = vars(self).get("_opened")
        if table is None:
            table = self._opened = _open(self.options)
        return table


def _open(options: Mapping[str, str]) -> Table:
    options = {name.lower(): value for name, value in options.items()}
    path = options.pop("path", None)
    if path is None or "paths" in options:
        raise UsageError("one path: load(CHK)")
    return open_table(path, parse_state_options(options))


class _Reader(DataSourceReader):
    def __init__(self, table: Table) -> None:
        self._table = table

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(chunk) for chunk in self._table.split()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_chunk(partition.value)
