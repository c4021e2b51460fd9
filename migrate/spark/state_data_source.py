"""``spark.read.format("flink_state")``: keyed state as a data source of Spark 4.

    spark.dataSource.register(FlinkStateDataSource)
    spark.read.format("flink_state").option("operator", S).option("state", NAME).load(CHK)

The driver reads the checkpoint's metadata and the heads of its state; the executors read ranges of
key groups. Columns that are not selected are read all the same: an entry is read whole.

The option ``key`` reads the key group of one key alone. Filters are not pushed down
(``pushFilters``, from Spark 4.1 on): 4.1.1 read a DataFrame with a filter and then without one, and
read the key groups of the filter alone the second time too. It keeps what is left to read with the
source, which every scan of it shares (``PythonDataSourceV2.setReadInfo``); only Spark's sources
after 4.1.1 keep it with the scan.

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
    read_share,
)

if TYPE_CHECKING:
    import pyarrow as pa


class FlinkStateDataSource(DataSource):
    """Keyed state of the loaded checkpoint.

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
        # Spark pickles this object to the processes that come after the one that opened it.
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
        return [InputPartition(share) for share in self._table.shares()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_share(partition.value)
