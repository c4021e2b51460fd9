"""Define checkpoints and keyed state as data sources of Spark 4.

    spark.dataSource.register(FlinkCheckpointDataSource)
    spark.read.format("flink_checkpoint").option("view", "positions").load("s3://bucket/flink")

    spark.dataSource.register(FlinkStateDataSource)
    spark.read.format("flink_state").option("operator", S).option("state", NAME).load(CHK)

When Spark plans a query, the driver finds the checkpoints (``flink_checkpoint``). For
``flink_state``, it reads a checkpoint's metadata and the headers of its state files. The executors
then read the checkpoints, or ranges of key groups. An entry is always read completely.

Filters are not pushed down. To read less, use the options. In Spark 4.1.1, pushed filters
(``pushFilters``, since 4.1) would also apply to later reads of the same DataFrame without a filter.
The cause is that the filters are stored in the source object (``PythonDataSourceV2.setReadInfo``),
and all scans share this object. Later source code stores the filters in each scan.

Source: pyspark.sql.datasource @ Spark 4.0.0, 4.1.1; PythonScanBuilder @ apache/spark 0d46458.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from migrate.extensions.fleet.options import parse_options
from migrate.extensions.fleet.view_columns import VIEWS
from migrate.extensions.keyed_state.views import Table, open_table, parse_state_options, read_chunk
from migrate.model.errors import UsageError
from migrate.spark.frames import checkpoint_schema, find_candidates, read_candidates, state_schema

if TYPE_CHECKING:
    import pyarrow as pa


class FlinkCheckpointDataSource(DataSource):
    """The Flink checkpoints and savepoints under the loaded paths, in one of four views.

    Options (``fleet.options``): ``view``, ``mode``, ``topic``, ``uid``, ``latestOnly``,
    ``allowExternalFiles``, ``numPartitions``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_checkpoint"

    def schema(self) -> StructType:
        return checkpoint_schema(VIEWS[parse_options(self.options).view])

    def reader(self, schema: StructType) -> DataSourceReader:
        _check_schema(schema, self.schema())
        options = parse_options(self.options)
        chunks = partial(find_candidates, _paths(self.options), options)
        return _Reader(chunks, partial(read_candidates, options))


class FlinkStateDataSource(DataSource):
    """A keyed state of the loaded checkpoint, a list of its states, or its timers.

    Options (``keyed_state.views``): ``operator``, ``state``, ``view`` (``entries``, ``states``,
    ``timers``), ``key``, ``allowExternalFiles``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_state"

    def schema(self) -> StructType:
        return state_schema(self._table)

    def reader(self, schema: StructType) -> DataSourceReader:
        _check_schema(schema, self.schema())
        return _Reader(self._table.split, read_chunk)

    @cached_property
    def _table(self) -> Table:
        # Spark pickles this object with the opened table, so other processes do not reopen it.
        return _open(self.options)


class _Reader(DataSourceReader):
    """A reader with a task for each chunk."""

    def __init__(
        self, chunks: Callable[[], list[Any]], read: Callable[[Any], Iterator[pa.RecordBatch]]
    ) -> None:
        self._chunks = chunks
        self._read = read

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(chunk) for chunk in self._chunks()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._read(partition.value)


def _check_schema(schema: StructType, own: StructType) -> None:
    if schema != own:
        raise UsageError("the options determine the schema: choose columns by select")


def _paths(options: Mapping[str, str]) -> list[str]:
    """Return the loaded paths from one path or, for several paths, from Spark's JSON."""
    paths: list[str] = json.loads(options.get("paths", "[]"))
    if (path := options.get("path")) is not None:
        paths.append(path)
    if not paths:
        raise UsageError("no path: load(ROOT), or load([ROOT, …])")
    return paths


def _open(options: Mapping[str, str]) -> Table:
    options = {name.lower(): value for name, value in options.items()}
    path = options.pop("path", None)
    if path is None or "paths" in options:
        raise UsageError("one path: load(CHK)")
    return open_table(path, parse_state_options(options))
