"""The views of ``migrate.fleet`` as Spark's types and as Arrow's, and rows as batches of Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa
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

from migrate.fleet import VIEWS, Column, ColumnType, View

# As many rows as Spark itself puts into a batch (spark.sql.execution.arrow.maxRecordsPerBatch).
_ROWS_OF_A_BATCH = 10_000

_SPARK: dict[ColumnType, DataType] = {
    ColumnType.STRING: StringType(),
    ColumnType.INT: IntegerType(),
    ColumnType.LONG: LongType(),
    ColumnType.BOOLEAN: BooleanType(),
    ColumnType.TIMESTAMP: TimestampType(),
    ColumnType.STRINGS: ArrayType(StringType()),
    ColumnType.INTS: ArrayType(IntegerType()),
}
_ARROW = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.TIMESTAMP: pa.timestamp("us", tz="UTC"),  # the one unit that Spark takes
    ColumnType.STRINGS: pa.list_(pa.string()),
    ColumnType.INTS: pa.list_(pa.int32()),
}


def struct_type(view: View) -> StructType:
    """A view's schema, with a comment for each column."""
    return StructType(
        [
            StructField(column.name, _SPARK[column.type], True, {"comment": column.comment})
            for column in VIEWS[view]
        ]
    )


def batches(view: View, rows: Iterable[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Rows of a view, some thousands at a time."""
    columns = VIEWS[view]
    names = [column.name for column in columns]
    remaining = iter(rows)
    while batch := list(islice(remaining, _ROWS_OF_A_BATCH)):
        arrays = [
            _array(column, values)
            for column, values in zip(columns, zip(*batch, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(arrays, names)


def _array(column: Column, values: Sequence[Any]) -> pa.Array:
    if column.type is ColumnType.TIMESTAMP:
        values = [value * 1000 if value is not None else None for value in values]
    try:
        return pa.array(values, _ARROW[column.type])
    except UnicodeEncodeError:
        # A name in a checkpoint, or of a file, may hold half of a surrogate pair.
        return pa.array([_encodable(value) for value in values], _ARROW[column.type])


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return [_encodable(each) for each in value] if isinstance(value, tuple) else value
