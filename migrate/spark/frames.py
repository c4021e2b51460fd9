"""Define ``read_checkpoints`` and ``read_keyed_state``, with DataFrames of Spark 3.5 or later."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import types

from migrate.extensions.fleet.candidates import Candidate, split_candidates
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.options import CheckpointOptions, parse_options, selected_rows
from migrate.extensions.fleet.view_columns import VIEWS, ViewColumn
from migrate.extensions.fleet.write_tables import batches
from migrate.extensions.keyed_state.views import Table, open_table, parse_state_options, read_chunk
from migrate.extensions.stateful_query.transfer.origin import metadata_of
from migrate.model.column_types import ArrayOf, Column, ColumnType, DecimalOf, Leaf, MapOf, StructOf
from migrate.spark.session import send_package_to_server
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Chunk = TypeVar("_Chunk")


def read_checkpoints(spark: SparkSession, *paths: str, **options: str | bool | int) -> DataFrame:
    """Return Flink checkpoints and savepoints under ``paths``, in one of four views.

    This call finds the checkpoints; the executors read them when the DataFrame is used.

    Args:
        spark: the session.
        paths: the paths, as for ``migrate.extensions.fleet.discovery.discover``.
        options: the options of the data source (``migrate.extensions.fleet.options``), such as
            ``latestOnly=True``.

    Raises:
        UsageError: an option or its value is not valid.
        MissingExtra: the library for a path's kind of URL is not installed.
    """
    parsed = parse_options({name: str(value) for name, value in options.items()})
    chunks = find_candidates(paths, parsed)
    return read_chunks(
        spark, chunks, partial(read_candidates, parsed), checkpoint_schema(VIEWS[parsed.view])
    )


def find_candidates(paths: Sequence[str], options: CheckpointOptions) -> list[list[Candidate]]:
    """Return the checkpoints under ``paths``, a list for each task."""
    candidates = discover(paths, Files(), latest_only=options.latest_only)
    # The list is never empty. Without a partition, Spark makes one itself, and passes different
    # values to the reader in different versions.
    return split_candidates(candidates, options.partitions) or [[]]


def read_candidates(
    options: CheckpointOptions, candidates: list[Candidate]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of checkpoints in the view that the options specify."""
    return batches(VIEWS[options.view], selected_rows(candidates, Files(), options))


def read_keyed_state(spark: SparkSession, chk: str, **options: str | bool) -> DataFrame:
    """Return a keyed state of a checkpoint, a list of its states, or its timers.

    This call opens the checkpoint; the executors read the state when the DataFrame is used.

    Args:
        spark: the session.
        chk: the checkpoint, as for ``migrate.inspect``.
        options: the options of the data source (``keyed_state.views``): ``operator=…, state=…``.

    Raises:
        DecodeError: the checkpoint, or the state, cannot be read.
        UsageError: an option is not valid, the operator or the state does not exist, or an extra is
            not installed.
        Refused: several operators have a state of this name.
    """
    parsed = parse_state_options({name: str(value) for name, value in options.items()})
    table = open_table(chk, parsed)
    return read_chunks(spark, table.split(), read_chunk, state_schema(table))


def read_chunks(
    spark: SparkSession,
    chunks: Sequence[_Chunk],
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]],
    schema: types.StructType | str,
) -> DataFrame:
    """Return a DataFrame of the batches that executors read, with one task for each chunk.

    The chunks are pickled, as is ``read``, a function that reads one chunk.
    """
    send_package_to_server(spark)
    rows = [(number, pickle.dumps(chunk)) for number, chunk in enumerate(chunks)]
    work = spark.createDataFrame(rows, "number INT, chunk BINARY")
    # By range, because a hash could put several chunks into one task. Spark Connect has no RDD.
    work = work.repartitionByRange(max(len(rows), 1), "number")
    return work.mapInArrow(partial(_unpacked, read), schema)


def _unpacked(
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]], work: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in work:
        for chunk in batch.column("chunk"):
            yield from read(pickle.loads(chunk.as_py()))


# -- schemas -------------------------------------------------------------------------------------
#
# PySpark's ``from_arrow_schema`` is not used, because in Spark 3.5 it returns TIMESTAMP for a
# TIMESTAMP_NTZ inside a different type.


def checkpoint_schema(columns: Sequence[ViewColumn]) -> types.StructType:
    """Return the schema of a table of checkpoints, with a comment for each column."""
    return types.StructType([_field(column, {"comment": column.comment}) for column in columns])


def state_schema(table: Table) -> types.StructType:
    """Return a table's schema; for a single state, the columns' metadata contains the savepoint."""
    metadata = metadata_of(table)
    return types.StructType([_field(column, metadata) for column in table.columns])


def _field(column: Column, metadata: Mapping[str, Any]) -> types.StructField:
    return types.StructField(column.name, _spark_type(column.type), metadata=dict(metadata))


_LEAVES = {
    leaf.simpleString().upper(): leaf
    for leaf in (
        *(types.BooleanType(), types.ByteType(), types.ShortType(), types.IntegerType()),
        *(types.LongType(), types.FloatType(), types.DoubleType(), types.StringType()),
        *(types.BinaryType(), types.NullType(), types.DateType()),
        *(types.TimestampType(), types.TimestampNTZType()),
    )
}


def _spark_type(type_: ColumnType) -> types.DataType:
    match type_:
        case Leaf(ddl):
            return _LEAVES[ddl]
        case DecimalOf(precision, scale):
            return types.DecimalType(precision, scale)
        case ArrayOf(element):
            return types.ArrayType(_spark_type(element))
        case MapOf(key, value):
            return types.MapType(_spark_type(key), _spark_type(value))
        case StructOf(fields):
            return types.StructType(
                [types.StructField(name, _spark_type(part)) for name, part in fields]
            )
