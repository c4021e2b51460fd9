"""Code shared by the Spark 4 data sources, which read data in chunks.

When Spark plans a query, the driver finds the chunks: checkpoints for ``flink_checkpoint``, and
ranges of key groups for ``flink_state``. The executors then read the chunks.

Filters are not pushed down. To read less data, use the options. In Spark 4.1.1, pushed filters
(``pushFilters``, since 4.1) would also apply to later unfiltered reads of the same DataFrame. The
reason is that the filters are stored in the source object (``PythonDataSourceV2.setReadInfo``),
which all scans share. In newer Spark source code, each scan stores its own filters.

Source: pyspark.sql.datasource @ Spark 4.0.0, 4.1.1; PythonScanBuilder @ apache/spark 0d46458.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from migrate.model.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


class ChunkReader(DataSourceReader):
    """A reader with one task per chunk."""

    def __init__(
        self, chunks: Callable[[], list[Any]], read: Callable[[Any], Iterator[pa.RecordBatch]]
    ) -> None:
        self._chunks = chunks
        self._read = read

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(chunk) for chunk in self._chunks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value)


def check_schema(schema: StructType, own: StructType) -> None:
    """Refuse a user's schema that differs from the data source's own schema.

    Raises:
        UsageError: the schemas differ.
    """
    if schema != own:
        raise UsageError(
            "`schema` differs from the schema of the data source, which depends only on the "
            "options; omit `schema`, and choose columns with `select`"
        )
