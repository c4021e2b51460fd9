"""``read_checkpoints``: the views of checkpoints as DataFrames of Spark 3.5 or later."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.types import StructType

from migrate.fleet.candidates import Candidate, split_candidates
from migrate.fleet.discovery import discover
from migrate.fleet.options import CheckpointOptions, parse_options, selected_rows
from migrate.fleet.view_columns import VIEWS, ViewColumn
from migrate.fleet.write_tables import batches
from migrate.spark.schema import struct_field
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Chunk = TypeVar("_Chunk")


def struct_type(columns: Sequence[ViewColumn]) -> StructType:
    """Return a table's schema, with a comment for each column."""
    return StructType([struct_field(column, {"comment": column.comment}) for column in columns])


def read_checkpoints(spark: SparkSession, *paths: str, **options: str | bool | int) -> DataFrame:
    """Return Flink checkpoints and savepoints below ``paths``, in one of four views.

    This call finds the checkpoints; the executors read them when the DataFrame is used.

    Args:
        spark: the session.
        paths: the paths, as for ``migrate.fleet.discovery.discover``.
        options: the options of the data source (``migrate.fleet.options``), such as
            ``latestOnly=True``.

    Raises:
        UsageError: an option, or the value of an option, is unknown.
        MissingExtra: the library for a path's kind of URL is not installed.
    """
    parsed = parse_options({name: str(value) for name, value in options.items()})
    chunks = split_candidates(
        discover(paths, Files(), latest_only=parsed.latest_only), parsed.partitions
    )
    return read_chunks(spark, chunks, partial(_read, parsed), struct_type(VIEWS[parsed.view]))


def read_chunks(
    spark: SparkSession,
    chunks: Sequence[_Chunk],
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Return a DataFrame of the batches that executors read, with one task for each chunk.

    Args:
        spark: the session.
        chunks: the chunks to read; each is pickled.
        read: the function that reads a chunk; it is pickled too.
        schema: the schema of the batches.
    """
    rows = [(number, pickle.dumps(chunk)) for number, chunk in enumerate(chunks)]
    work = spark.createDataFrame(rows, "number INT, chunk BINARY")
    # Partitioned by range, because a hash could put several chunks into one task. An RDD is not
    # used, because Spark Connect has none.
    work = work.repartitionByRange(max(len(rows), 1), "number")
    return work.mapInArrow(partial(_unpacked, read), schema)


def _unpacked(
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]], work: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in work:
        for chunk in batch.column("chunk"):
            yield from read(pickle.loads(chunk.as_py()))


def _read(options: CheckpointOptions, candidates: list[Candidate]) -> Iterator[pa.RecordBatch]:
    return batches(VIEWS[options.view], selected_rows(candidates, Files(), options))
