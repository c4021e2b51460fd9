"""Define the ``flink_checkpoint`` data source for Spark 4.

    spark.dataSource.register(FlinkCheckpointDataSource)
    spark.read.format("flink_checkpoint").option("view", "positions").load("s3://bucket/flink")

The driver finds the checkpoints when Spark plans the query. The executors read the checkpoints when
the query runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from migrate.extensions.fleet.frames import checkpoint_schema, find_candidates, read_candidates
from migrate.extensions.fleet.options import parse_options
from migrate.extensions.fleet.view_columns import VIEWS
from migrate.model.errors import UsageError
from migrate.spark.data_sources import ChunkReader, check_schema


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
        check_schema(schema, self.schema())
        options = parse_options(self.options)
        chunks = partial(find_candidates, _paths(self.options), options)
        return ChunkReader(chunks, partial(read_candidates, options))


def _paths(options: Mapping[str, str]) -> list[str]:
    """Return the paths that the user passed to ``load``.

    Spark passes a single path unchanged, and several paths as a JSON list.
    """
    paths: list[str] = json.loads(options.get("paths", "[]"))
    if (path := options.get("path")) is not None:
        paths.append(path)
    if not paths:
        raise UsageError("the path is missing; call load(ROOT) or load([ROOT, …])")
    return paths
