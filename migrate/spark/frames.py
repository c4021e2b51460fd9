"""DataFrames for Spark 3.5 or later, built from batches that executors read."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import types

from migrate.model.column_types import ArrayOf, Column, ColumnType, DecimalOf, Leaf, MapOf, StructOf
from migrate.spark.session import send_package_to_server

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Chunk = TypeVar("_Chunk")


def read_chunks(
    spark: SparkSession,
    chunks: Sequence[_Chunk],
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]],
    schema: types.StructType | str,
) -> DataFrame:
    """Return a DataFrame of the batches that executors read, with one task per chunk.

    The chunks and ``read``, a function that reads one chunk, are pickled.
    """
    send_package_to_server(spark)
    rows = [(number, pickle.dumps(chunk)) for number, chunk in enumerate(chunks)]
    work = spark.createDataFrame(rows, "number INT, chunk BINARY")
    # Partition by range, because a hash could put several chunks into one task. An RDD would have
    # exact partitions, but Spark Connect has no RDDs.
    work = work.repartitionByRange(max(len(rows), 1), "number")
    return work.mapInArrow(partial(_unpacked, read), schema)


def _unpacked(
    read: Callable[[_Chunk], Iterator[pa.RecordBatch]], work: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in work:
        for chunk in batch.column("chunk"):
            yield from read(pickle.loads(chunk.as_py()))


def spark_field(column: Column, metadata: Mapping[str, Any]) -> types.StructField:
    """Return a column as a Spark schema field, with metadata.

    PySpark's ``from_arrow_schema`` is not used, because in Spark 3.5 it returns TIMESTAMP for a
    TIMESTAMP_NTZ that is nested in another type.
    """
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
