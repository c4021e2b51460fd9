"""An estate read on Spark: by the functions of ``migrate.fleet.estate``, on its executors.

A row of the DataFrame is what was read of one checkpoint, pickled: read once, and kept by Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from migrate.errors import Refused
from migrate.fleet.candidates import Marked, pack_marked
from migrate.fleet.estate import (
    Scanned,
    Told,
    Wanted,
    columns_of,
    lags_of,
    read_marked,
    rows_of,
    together,
)
from migrate.fleet.inventory import TableFormat
from migrate.fleet.lag import topics_to_ask
from migrate.fleet.options import View
from migrate.fleet.tables import Output, batches
from migrate.spark.running.dataframe import over_shares, struct_type
from migrate.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate.snapshot import ClusterSnapshot

_PICKLED = "pickled BINARY"
# What goes to Spark at a time; a giant may be more.
_BYTES_AT_ONCE = 4 * 1024 * 1024


@contextmanager
def spark_estate(
    spark: SparkSession, marked: Sequence[Marked], wanted: Wanted
) -> Iterator[SparkEstate]:
    """Begin to read; nothing is read before something is asked."""
    read = over_shares(spark, pack_marked(marked), partial(_read, wanted), _PICKLED).persist()
    try:
        yield SparkEstate(read, wanted)
    finally:
        read.unpersist()


class SparkEstate:
    """An ``Estate`` on Spark; it is Spark that writes its tables."""

    def __init__(self, read: DataFrame, wanted: Wanted) -> None:
        self._read = read
        self._wanted = wanted

    def topics(self) -> set[str]:
        return set().union(*self._collected(_topics))

    def finish(self, snapshot: ClusterSnapshot | None) -> Told:
        whole = together(self._collected(partial(_told, snapshot)))
        if self._wanted.output is not None:
            for view in self._wanted.views:
                self._write(view, snapshot, self._wanted.output)
        return whole

    def _collected(self, function: Callable[[Iterator[Scanned]], Any]) -> Iterator[Any]:
        """What the function makes of what was read, task by task."""
        made = self._read.mapInArrow(partial(_made, function), _PICKLED)
        for row in made.collect():
            yield pickle.loads(row.pickled)

    def _write(self, view: View, snapshot: ClusterSnapshot | None, output: Output) -> None:
        columns = columns_of(view, self._wanted)
        table = self._read.mapInArrow(
            partial(_table, view, self._wanted, snapshot), struct_type(columns)
        )
        if output.format is TableFormat.CSV:
            table = table.withColumns(
                {
                    field.name: F.array_join(field.name, ",")
                    for field in table.schema
                    if isinstance(field.dataType, ArrayType)
                }
            )
            writer = table.write.options(header=True, escape='"', emptyValue="")
        else:
            writer = table.write
        path = f"{output.directory.rstrip('/')}/{view.value}"
        try:
            writer.format(output.format.value).save(path)
        except AnalysisException as error:
            if "PATH_ALREADY_EXISTS" not in str(error):
                raise
            raise Refused([f"{path} is there already; name a new directory"]) from error


def _read(wanted: Wanted, share: list[Marked]) -> Iterator[pa.RecordBatch]:
    some: list[bytes] = []
    size = 0
    for one in read_marked(share, wanted, Files()):
        some.append(pickle.dumps(one))
        size += len(some[-1])
        if size >= _BYTES_AT_ONCE:
            yield _pickled(some)
            some, size = [], 0
    if some:
        yield _pickled(some)


def _topics(scanned: Iterator[Scanned]) -> set[str]:
    return {topic for one in scanned for topic in topics_to_ask(one.positions)}


def _told(snapshot: ClusterSnapshot | None, scanned: Iterator[Scanned]) -> Told:
    told = Told()
    for one in scanned:
        told.add(one, lags_of(one, snapshot))
    return told


def _made(
    function: Callable[[Iterator[Scanned]], Any], read: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    yield _pickled([pickle.dumps(function(_scanned(read)))])


def _table(
    view: View,
    wanted: Wanted,
    snapshot: ClusterSnapshot | None,
    read: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    with_lag = view is View.POSITIONS
    rows = (
        row
        for one in _scanned(read)
        for row in rows_of(one, view, wanted, lags_of(one, snapshot) if with_lag else None)
    )
    return batches(columns_of(view, wanted), rows)


def _scanned(read: Iterable[pa.RecordBatch]) -> Iterator[Scanned]:
    for batch in read:
        for one in batch.column("pickled"):
            yield pickle.loads(one.as_py())


def _pickled(some: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(some, pa.binary())], ["pickled"])
