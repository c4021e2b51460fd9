"""``read_checkpoints``: the views as DataFrames of any Spark from 3.5 on, without registering."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from migrate.fleet import (
    VIEWS,
    Candidate,
    Column,
    ColumnType,
    FleetOptions,
    discover,
    pack,
    parse_options,
    scan,
)
from migrate.fleet.tables import batches
from migrate.storage.files import Files

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_Share = TypeVar("_Share")

_SPARK: dict[ColumnType, DataType] = {
    ColumnType.STRING: StringType(),
    ColumnType.INT: IntegerType(),
    ColumnType.LONG: LongType(),
    ColumnType.BOOLEAN: BooleanType(),
    ColumnType.TIMESTAMP: TimestampType(),
    ColumnType.STRINGS: ArrayType(StringType()),
    ColumnType.INTS: ArrayType(IntegerType()),
}


def struct_type(columns: Sequence[Column]) -> StructType:
    """A table's schema, with a comment for each column."""
    return StructType(
        [
            StructField(column.name, _SPARK[column.type], True, {"comment": column.comment})
            for column in columns
        ]
    )


def read_checkpoints(spark: SparkSession, *paths: str, **options: str | bool | int) -> DataFrame:
    """Flink checkpoints and savepoints below ``paths``, as one of four views.

    What there is, is found here and now; the executors read it when the DataFrame is used.

    Args:
        paths: as for ``migrate.fleet.discover``.
        options: as for the data source (``migrate.fleet.options``), ``latestOnly=True`` and so on.

    Raises:
        BadOption: an unknown option, or value of one.
        MissingExtra: the library for a path's kind of URL is not installed.
    """
    asked = parse_options({name: str(value) for name, value in options.items()})
    shares = pack(discover(paths, Files(), latest_only=asked.latest_only), asked.partitions)
    return over_shares(spark, shares, partial(_read, asked), struct_type(VIEWS[asked.view]))


def over_shares(
    spark: SparkSession,
    shares: Sequence[_Share],
    read: Callable[[_Share], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """What executors make of the shares, in a task for each; ``read`` is a function of a module."""
    rows = [(number, pickle.dumps(share)) for number, share in enumerate(shares)]
    work = spark.createDataFrame(rows, "number INT, share BINARY")
    # By range, as a hash would put several into one task; and there is no RDD in Spark Connect.
    work = work.repartitionByRange(max(len(rows), 1), "number")
    return work.mapInArrow(partial(_unpacked, read), schema)


def _unpacked(
    read: Callable[[_Share], Iterator[pa.RecordBatch]], work: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in work:
        for share in batch.column("share"):
            yield from read(pickle.loads(share.as_py()))


def _read(options: FleetOptions, candidates: list[Candidate]) -> Iterator[pa.RecordBatch]:
    return batches(VIEWS[options.view], scan(candidates, Files(), options))
