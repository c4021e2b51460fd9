"""An estate read on Spark: by the functions of ``migrate.fleet.scan_run``, on its executors.

A row of the DataFrame is what was read of one checkpoint, pickled: read once, and kept by Spark.
The last row of each share answers the first question about it, as a task of Python costs a start.
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
from migrate.fleet.lag import topics_to_ask
from migrate.fleet.scan_run import (
    Progress,
    Scanned,
    Told,
    Wanted,
    lags_of,
    rows_of,
    scanned,
    together,
)
from migrate.fleet.tables import Output, TableFormat, already_there, batches
from migrate.fleet.views import View
from migrate.spark.checkpoint_frame import read_shares, struct_type
from migrate.storage.files import Files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate.model.cluster_snapshot import ClusterSnapshot

_SCHEMA = "scanned BINARY, answer BINARY"
_ANSWER = "answer BINARY"
# What goes to Spark at a time; a giant may be more.
_BYTES_AT_ONCE = 4 * 1024 * 1024
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
    read = read_shares(spark, shares, partial(_read, wanted), _SCHEMA).persist()
    kept = read.coalesce(max(1, -(-len(shares) // _SHARES_OF_A_TASK)))
    try:
        with _watched(spark, progress):
            yield SparkEstate(read, kept, wanted)
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
    """An ``Estate`` on Spark; it is Spark that writes its tables."""

    def __init__(self, to_read: DataFrame, kept: DataFrame, wanted: Wanted) -> None:
        self._to_read = to_read
        self._kept = kept
        self._wanted = wanted

    def topics(self) -> set[str]:
        return set().union(*_answers(self._to_read))

    def finish(self, snapshot: ClusterSnapshot | None) -> Told:
        if snapshot is None:
            whole = together(_answers(self._to_read))
        else:
            compared = self._kept.mapInArrow(partial(_compared, snapshot), _ANSWER)
            whole = together(_answers(compared))
        if self._wanted.output is not None:
            for view in self._wanted.views:
                self._write(view, snapshot, self._wanted.output)
        return whole

    def _write(self, view: View, snapshot: ClusterSnapshot | None, output: Output) -> None:
        columns = self._wanted.columns(view)
        table = self._kept.mapInArrow(
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
            raise already_there(path) from error


def _answers(made: DataFrame) -> Iterator[Any]:
    """What is told of each share."""
    for row in made.where("answer IS NOT NULL").select("answer").collect():
        yield pickle.loads(row.answer)


def _read(wanted: Wanted, share: list[Marked]) -> Iterator[pa.RecordBatch]:
    """The answer is what topics there are, where a broker is to be asked; else all that is told."""
    topics: set[str] = set()
    told = Told()
    some: list[bytes] = []
    size = 0
    for read in read_marked(share, Files()):
        one = scanned(read, wanted)
        topics |= topics_to_ask(one.positions)
        told.add(one, None)
        some.append(pickle.dumps(one))
        size += len(some[-1])
        if size >= _BYTES_AT_ONCE:
            yield _batch(scanned=some, answer=[None] * len(some))
            some, size = [], 0
    answer = pickle.dumps(topics if wanted.broker else told)
    yield _batch(scanned=[*some, None], answer=[*[None] * len(some), answer])


def _compared(
    snapshot: ClusterSnapshot, read: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    told = Told()
    for one in _kept(read):
        told.add(one, lags_of(one, snapshot))
    yield _batch(answer=[pickle.dumps(told)])


def _table(
    view: View,
    wanted: Wanted,
    snapshot: ClusterSnapshot | None,
    read: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    asked = snapshot if wanted.has_lag(view) else None
    rows = (row for one in _kept(read) for row in rows_of(one, view, wanted, lags_of(one, asked)))
    return batches(wanted.columns(view), rows)


def _kept(read: Iterable[pa.RecordBatch]) -> Iterator[Scanned]:
    for batch in read:
        for one in batch.column("scanned").drop_null():
            yield pickle.loads(one.as_py())


def _batch(**columns: Sequence[bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, pa.binary()) for name, values in columns.items()}
    )
