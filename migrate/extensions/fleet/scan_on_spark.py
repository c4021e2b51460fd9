"""Run a scan on Spark; the executors call functions in ``migrate.extensions.fleet.scan_run``.

Spark reads the checkpoints into a DataFrame of pickled checkpoints, and persists the DataFrame, so
that each checkpoint is read only once. Each row of a chunk contains a checkpoint, except that the
last row contains the chunk's answer. If a broker is queried, the answer is the set of the chunk's
topics. Otherwise, the answer is the chunk's summary. Computing the answers later would require more
Python tasks, which are slow to start.
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

from migrate.extensions.fleet.candidates import Candidate, split_candidates
from migrate.extensions.fleet.frames import checkpoint_schema
from migrate.extensions.fleet.lag import topics_to_ask
from migrate.extensions.fleet.scan_run import (
    AskBroker,
    Progress,
    ScannedCheckpoint,
    ScanRequest,
    ScanSummary,
    merge_summaries,
    read_chunk,
)
from migrate.extensions.fleet.view_columns import CheckpointView
from migrate.extensions.fleet.write_tables import Output, TableFormat, batches
from migrate.model.option_names import Notation, notation, process_notation
from migrate.spark.frames import read_chunks
from migrate.spark.session import is_connect
from migrate.storage.files import Files
from migrate.storage.new_file import already_there

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from migrate.model.cluster_snapshot import ClusterSnapshot

_SCHEMA = "scanned BINARY, answer BINARY"
_ANSWER = "answer BINARY"
# The size in bytes at which an Arrow batch is complete and passed to Spark.
_BATCH_BYTES = 4 * 1024 * 1024
# The number of persisted chunks that a task reads. Starting a task takes longer than reading the
# rows of a chunk.
_CHUNKS_PER_TASK = 8
# The interval between progress reports, in seconds.
_INTERVAL = 0.2


def scan_on_spark(
    spark: SparkSession,
    candidates: Sequence[Candidate],
    output: Output | None = None,
    ask_broker: AskBroker | None = None,
    progress: Progress | None = None,
) -> ScanSummary:
    """Read checkpoints on Spark, and let Spark write the tables.

    The arguments after ``spark`` are the same as in ``scan_locally``.

    Raises:
        Refused: one of the tables already exists.
        ConfigError, BrokerError: as in ``ask_broker``.
    """
    request = ScanRequest(ask_broker is not None, output)
    chunks = split_candidates(candidates)
    read = read_chunks(spark, chunks, partial(_read, request, notation()), _SCHEMA).persist()
    persisted = read.coalesce(max(1, -(-len(chunks) // _CHUNKS_PER_TASK)))
    snapshot = None
    try:
        with _report_progress(spark, progress):
            if ask_broker is None:
                summary = merge_summaries(_answers(read))
            else:
                snapshot = ask_broker(set().union(*_answers(read)))
                compared = persisted.mapInArrow(partial(_compare, snapshot), _ANSWER)
                summary = merge_summaries(_answers(compared))
            if output is not None:
                for view in request.views:
                    columns = checkpoint_schema(request.columns(view))
                    table = persisted.mapInArrow(partial(_table, view, request, snapshot), columns)
                    _write(table, view, output)
            return summary
    finally:
        read.unpersist()


@contextmanager
def _report_progress(spark: SparkSession, progress: Progress | None) -> Iterator[None]:
    """Report, at regular intervals, the number of completed tasks in Spark's active stages.

    With Spark Connect, nothing is reported, because it has no status tracker.
    """
    if progress is None or is_connect(spark):
        yield
        return
    tracker = spark.sparkContext.statusTracker()
    done = Event()

    def watch() -> None:
        while not done.wait(_INTERVAL):
            infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            stages = [stage for stage in infos if stage is not None]
            if stages:
                progress(
                    "read",
                    sum(stage.numCompletedTasks for stage in stages),
                    sum(stage.numTasks for stage in stages),
                )

    thread = Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _write(table: DataFrame, view: CheckpointView, output: Output) -> None:
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
        raise already_there(path, "directory") from error


def _answers(frame: DataFrame) -> Iterator[Any]:
    """Yield the answers: one for each chunk or, after ``_compare``, one for each task."""
    for row in frame.where("answer IS NOT NULL").select("answer").collect():
        yield pickle.loads(row.answer)


def _read(
    request: ScanRequest, driver_notation: Notation, chunk: list[Candidate]
) -> Iterator[pa.RecordBatch]:
    """Yield the pickled checkpoints of a chunk, and then the chunk's answer.

    If a broker is queried, the answer is the chunk's topics. Otherwise, it is the chunk's summary.
    Messages show options in the same notation as the driver's messages.
    """
    topics: set[str] = set()
    summary = ScanSummary()
    pickled: list[bytes] = []
    size = 0
    with process_notation(driver_notation):
        for checkpoint in read_chunk(Files(), request, chunk):
            topics |= topics_to_ask(checkpoint.positions)
            summary.add(checkpoint, None, 0)
            pickled.append(pickle.dumps(checkpoint))
            size += len(pickled[-1])
            if size >= _BATCH_BYTES:
                yield _batch(scanned=pickled, answer=[None] * len(pickled))
                pickled, size = [], 0
    answer = pickle.dumps(topics if request.with_lag else summary)
    yield _batch(scanned=[*pickled, None], answer=[*[None] * len(pickled), answer])


def _compare(snapshot: ClusterSnapshot, read: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    summary = ScanSummary()
    for checkpoint in _unpickle(read):
        summary.add(checkpoint, checkpoint.lags(snapshot), checkpoint.unlisted(snapshot))
    yield _batch(answer=[pickle.dumps(summary)])


def _table(
    view: CheckpointView,
    request: ScanRequest,
    snapshot: ClusterSnapshot | None,
    read: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    if not request.has_lag(view):
        snapshot = None
    rows = (
        row
        for checkpoint in _unpickle(read)
        for row in checkpoint.table_rows(view, request, checkpoint.lags(snapshot))
    )
    return batches(request.columns(view), rows)


def _unpickle(read: Iterable[pa.RecordBatch]) -> Iterator[ScannedCheckpoint]:
    for batch in read:
        for pickled in batch.column("scanned").drop_null():
            yield pickle.loads(pickled.as_py())


def _batch(**columns: Sequence[bytes | None]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, pa.binary()) for name, values in columns.items()}
    )
