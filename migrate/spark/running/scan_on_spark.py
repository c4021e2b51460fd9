"""An estate read on Spark: by the functions of ``migrate.fleet.estate``, on its executors.

A task reads a share of the checkpoints once, and Spark keeps what it made of them: the rows of each
table as a list in a column of its own, which the JVM writes without Python. The last row of a share
answers the first question about it, as a task of Python costs a start.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from migrate.fleet.candidates import Marked, pack, read_marked
from migrate.fleet.estate import (
    Progress,
    Scanned,
    Told,
    Wanted,
    lags_of,
    rows_of,
    scanned,
    together,
)
from migrate.fleet.lag import Lag, topics_to_ask
from migrate.fleet.tables import Output, TableFormat, already_there, arrow_schema, batches
from migrate.fleet.views import View
from migrate.spark.running.checkpoint_frame import over_shares, struct_type
from migrate.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate.cluster_snapshot import ClusterSnapshot

# Of all views together, what a task holds before it goes to Spark; a giant may have more.
_ROWS_AT_ONCE = 10_000
# Of what Spark has kept: to lay out the rows of a share takes less than the start of a task.
_SHARES_OF_A_TASK = 8
# In seconds, between two looks at how far it has come.
_EVERY = 0.2


@contextmanager
def spark_estate(
    spark: SparkSession, marked: Sequence[Marked], wanted: Wanted, progress: Progress | None = None
) -> Iterator[SparkEstate]:
    """An estate of which nothing is read before something is asked."""
    shares = pack(marked)
    schema = _schema(_read_whole(wanted), wanted)
    read = over_shares(spark, shares, partial(_read, wanted), schema).persist()
    try:
        with _watched(spark, progress):
            yield SparkEstate(read, max(1, -(-len(shares) // _SHARES_OF_A_TASK)), wanted)
    finally:
        read.unpersist()


@contextmanager
def _watched(spark: SparkSession, progress: Progress | None) -> Iterator[None]:
    """Tell, now and then, how many of the tasks of what Spark is at are done, and how many it has.

    Spark Connect does not tell.
    """
    if progress is None or "connect" in type(spark).__module__:
        yield
        return
    tracker = spark.sparkContext.statusTracker()
    done = Event()

    def watch() -> None:
        while not done.wait(_EVERY):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            there = [stage for stage in stages if stage is not None]
            if there:
                progress(
                    "read",
                    sum(stage.numCompletedTasks for stage in there),
                    sum(stage.numTasks for stage in there),
                )

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class SparkEstate:
    """An ``Estate`` on Spark; it is Spark that writes its tables.

    ``files``: in how many each table is written.
    """

    def __init__(self, read: DataFrame, files: int, wanted: Wanted) -> None:
        self._read = read
        self._files = files
        self._wanted = wanted

    def topics(self) -> set[str]:
        return set().union(*_answers(self._read))

    def finish(self, snapshot: ClusterSnapshot | None) -> Told:
        whole = _read_whole(self._wanted)
        if snapshot is None:
            told = together(_answers(self._read))
            self._write(self._read, whole)
            return told
        with_lag = _with_lag(self._wanted)
        compared = (
            self._read.coalesce(self._files)
            .select("scanned")
            .mapInArrow(partial(_compared, snapshot, self._wanted), _schema(with_lag, self._wanted))
            .persist()
        )
        try:
            told = together(_answers(compared))
            self._write(self._read, whole)
            self._write(compared, with_lag)
        finally:
            compared.unpersist()
        return told

    def _write(self, kept: DataFrame, views: Iterable[View]) -> None:
        for view in views:
            rows = kept.coalesce(self._files).select(F.inline(view.value))
            fields = struct_type(self._wanted.columns(view)).fields
            commented = [F.col(one.name).alias(one.name, metadata=one.metadata) for one in fields]
            assert self._wanted.output is not None  # as there are tables
            _save(rows.select(*commented), view, self._wanted.output)


def _save(table: DataFrame, view: View, output: Output) -> None:
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
        raise already_there(path) from error


def _with_lag(wanted: Wanted) -> list[View]:
    """The tables that wait for what a broker says."""
    return [view for view in View if wanted.output is not None and wanted.has_lag(view)]


def _read_whole(wanted: Wanted) -> list[View]:
    """The tables whose rows are known once a checkpoint is read."""
    return [view for view in View if wanted.output is not None and not wanted.has_lag(view)]


def _schema(views: Iterable[View], wanted: Wanted) -> str:
    """What was read, for a broker's answer; an answer; and of each view some rows."""
    rows = {view.value: struct_type(wanted.columns(view)).simpleString() for view in views}
    parts = (
        "scanned BINARY",
        "answer BINARY",
        *(f"{name} array<{row}>" for name, row in rows.items()),
    )
    return ", ".join(parts)


def _answers(made: DataFrame) -> Iterator[Any]:
    """What is told of each share."""
    for row in made.where("answer IS NOT NULL").select("answer").collect():
        yield pickle.loads(row.answer)


def _read(wanted: Wanted, share: list[Marked]) -> Iterator[pa.RecordBatch]:
    """The answer is what topics there are, where a broker is to be asked; else all that is told."""
    kept = _Kept(_read_whole(wanted), wanted)
    needed = {View.CHECKPOINTS, *_with_lag(wanted)}
    topics: set[str] = set()
    told = Told()
    for some in _some(scanned(read, wanted) for read in read_marked(share, Files())):
        for one in some:
            topics |= topics_to_ask(one.positions)
            told.add(one, None)
        yield from kept.rows([(one, None) for one in some])
        if wanted.broker:
            rows = [{view: one.rows[view] for view in needed} for one in some]
            again = [one._replace(rows=its) for one, its in zip(some, rows, strict=True)]
            yield kept.row(scanned=pa.array([pickle.dumps(again)], pa.binary()))
    yield kept.answer(topics if wanted.broker else told)


def _compared(
    snapshot: ClusterSnapshot, wanted: Wanted, read: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    kept = _Kept(_with_lag(wanted), wanted)
    told = Told()
    for batch in read:
        for held in batch.column("scanned").drop_null():
            some = [(one, lags_of(one, snapshot)) for one in pickle.loads(held.as_py())]
            for one, lags in some:
                told.add(one, lags)
            yield from kept.rows(some)
    yield kept.answer(told)


def _some(read: Iterable[Scanned]) -> Iterator[list[Scanned]]:
    """Some at a time; one at least."""
    some: list[Scanned] = []
    size = 0
    for one in read:
        some.append(one)
        size += sum(map(len, one.rows.values())) + len(one.positions)
        if size >= _ROWS_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


class _Kept:
    """Lays out what Spark keeps: rows of which each has one value."""

    def __init__(self, views: Sequence[View], wanted: Wanted) -> None:
        self._columns = {view: wanted.columns(view) for view in views}
        self._wanted = wanted
        lists = {
            view.value: pa.list_(pa.struct(list(arrow_schema(columns))))
            for view, columns in self._columns.items()
        }
        self._schema = pa.schema({"scanned": pa.binary(), "answer": pa.binary(), **lists})

    def rows(
        self, some: Sequence[tuple[Scanned, Sequence[Lag] | None]]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of each view, as a list of some thousands at a time."""
        for view, columns in self._columns.items():
            rows = (row for one, lags in some for row in rows_of(one, view, self._wanted, lags))
            for batch in batches(columns, rows):
                structs = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
                yield self.row(**{view.value: pa.ListArray.from_arrays([0, len(structs)], structs)})

    def answer(self, answer: object) -> pa.RecordBatch:
        return self.row(answer=pa.array([pickle.dumps(answer)], pa.binary()))

    def row(self, **value: pa.Array) -> pa.RecordBatch:
        arrays = [value.get(field.name, pa.nulls(1, field.type)) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
