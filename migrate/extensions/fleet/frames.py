"""Define ``read_checkpoints``, which returns DataFrames in Spark 3.5 or later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from migrate.extensions.fleet.candidates import Candidate, split_candidates
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.options import CheckpointOptions, parse_options, selected_rows
from migrate.extensions.fleet.view_columns import VIEWS, ViewColumn
from migrate.extensions.fleet.write_tables import batches
from migrate.spark.frames import read_chunks, spark_field
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


def read_checkpoints(spark: SparkSession, *paths: str, **options: str | bool | int) -> DataFrame:
    """Return Flink checkpoints and savepoints under ``paths``, in one of four views.

    This call finds the checkpoints; the executors read them when the DataFrame is used.

    Args:
        spark: the session.
        paths: the paths, as in ``migrate.extensions.fleet.discovery.discover``.
        options: the options of the data source (``migrate.extensions.fleet.options``), such as
            ``latestOnly=True``.

    Raises:
        UsageError: an option or its value is not valid.
        MissingExtra: the library that a path's URL scheme requires is not installed.
    """
    parsed = parse_options({name: str(value) for name, value in options.items()})
    chunks = find_candidates(paths, parsed)
    return read_chunks(
        spark, chunks, partial(read_candidates, parsed), checkpoint_schema(VIEWS[parsed.view])
    )


def find_candidates(paths: Sequence[str], options: CheckpointOptions) -> list[list[Candidate]]:
    """Return the checkpoints under ``paths``, as one list per task."""
    candidates = discover(paths, Files(), latest_only=options.latest_only)
    # The list is never empty. Without a partition, Spark itself creates one, and the value that it
    # passes to the reader depends on the Spark version.
    return split_candidates(candidates, options.partitions) or [[]]


def read_candidates(
    options: CheckpointOptions, candidates: list[Candidate]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of checkpoints in the view that the options specify."""
    return batches(VIEWS[options.view], selected_rows(candidates, Files(), options))


def checkpoint_schema(columns: Sequence[ViewColumn]) -> StructType:
    """Return the schema of a checkpoint table, with a comment for each column."""
    return StructType([spark_field(column, {"comment": column.comment}) for column in columns])
