"""``spark.read.format("flink_checkpoint")``: Flink checkpoints as a data source of Spark 4.

    spark.dataSource.register(FlinkCheckpointDataSource)
    spark.read.format("flink_checkpoint").option("view", "positions").load("s3://bucket/flink")

The driver finds the checkpoints when a query is planned; the executors read them. Filters are not
pushed down: Spark applies them to the rows. To read less, use the options of
``migrate.fleet.options``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from migrate.fleet.candidates import split_candidates
from migrate.fleet.discovery import discover
from migrate.fleet.options import CheckpointOptions, parse_options, selected_rows
from migrate.fleet.view_columns import VIEWS
from migrate.fleet.write_tables import batches
from migrate.model.errors import UsageError
from migrate.spark.checkpoint_frame import struct_type
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa


class FlinkCheckpointDataSource(DataSource):
    """The Flink checkpoints and savepoints below the loaded paths, in one of four views.

    Options (``migrate.fleet.options``): ``view``, ``mode``, ``topic``, ``uid``, ``latestOnly``,
    ``allowExternalFiles``, ``numPartitions``.
    """

    @classmethod
    def name(cls) -> str:
        return "flink_checkpoint"

    def schema(self) -> StructType:
        return struct_type(VIEWS[parse_options(self.options).view])

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        if schema != struct_type(VIEWS[options.view]):
            raise UsageError(
                "the schema is the view's: choose a view, and of its columns by select"
            )
        return _Reader(_paths(self.options), options)


class _Reader(DataSourceReader):
    def __init__(self, paths: Sequence[str], options: CheckpointOptions) -> None:
        self._paths = paths
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        candidates = discover(self._paths, Files(), latest_only=options.latest_only)
        # For an empty list, Spark would add a partition whose value depends on Spark's version.
        chunks = split_candidates(candidates, options.partitions) or [[]]
        return [InputPartition(chunk) for chunk in chunks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return batches(
            VIEWS[self._options.view], selected_rows(partition.value, Files(), self._options)
        )


def _paths(options: Mapping[str, str]) -> list[str]:
    """Return the loaded paths: Spark passes one path, or several as JSON."""
    paths: list[str] = json.loads(options.get("paths", "[]"))
    if (path := options.get("path")) is not None:
        paths.append(path)
    if not paths:
        raise UsageError("no path: load(ROOT), or load([ROOT, …])")
    return paths
