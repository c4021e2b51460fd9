"""``prime``: a checkpoint location from which a stateful query goes on as Flink left off.

The user's own query runs one batch over rows that leave in its state what Flink's state says, from
files that stand in Kafka's place, into a sink that writes nothing. Then Kafka takes that place in
the checkpoint location, at Flink's positions (``migrate.targets.primed_log``). The query that
is started on it begins with the batch after.

    def query(orders):                       # the very function that runs afterwards, with Kafka
        return orders.groupBy("user").agg(F.count("*").alias("orders"))

    rows = aggregate_rows(state, "user BIGINT", keys={"user": "key"}, count="value")
    prime(
        query,
        [rows],
        positions=to_spark(SAVEPOINT, bootstrap_servers=B).starting_offsets,
        checkpoint_location="/checkpoints/orders",
        output_mode="update",
    )
    query(parsed(kafka)).writeStream.outputMode("update").option(
        "checkpointLocation", "/checkpoints/orders"
    )…

Nothing stands at the location before Spark's own state has been read back and compared with Flink's
key by key.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from migrate.inputs.offsets_json import NextOffsets, NotOffsets, parse_json, topic_offsets
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log, timed
from migrate.model.wording import counted
from migrate.planning.state_proof import StateProof
from migrate.spark.session import failure_of
from migrate.spark.transfer.origin import contradictions
from migrate.spark.transfer.proof import prove
from migrate.spark.transfer.rows import StateRows
from migrate.spark.transfer.spark_state import read_spark_state, setting
from migrate.spark.transfer.time_to_live import check_time_to_live
from migrate.storage.new_file import new_directory, unfinished
from migrate.targets.location import LocalDirectory, location
from migrate.targets.primed_log import put_kafka, set_watermark, source_of_rows, sources_of
from migrate.targets.seed import check_free

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Off for the one batch: a batch without rows after it would close windows.
_NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

Query = Callable[..., "DataFrame"]
Positions = str | NextOffsets | Sequence[str | NextOffsets]


@dataclass(frozen=True, slots=True)
class Primed:
    """A checkpoint location that a query goes on from.

    Attributes:
        checkpoint_location: what the query is to be told.
        positions: where each Kafka source goes on, in the order of the query's plan.
        proof: Spark's state beside Flink's.
        pinned: settings that the checkpoint location keeps, whatever a later session says: the
            number of shuffle partitions and the state store among them.
        warnings: what is not refused, and must be known.
    """

    checkpoint_location: str
    positions: tuple[NextOffsets, ...]
    proof: StateProof
    pinned: Mapping[str, str]
    warnings: tuple[str, ...]


def prime(
    query: Query,
    rows: Sequence[StateRows | DataFrame],
    *,
    positions: Positions,
    checkpoint_location: str,
    output_mode: str = "append",
    watermark_ms: int | None = None,
    expected: DataFrame | None = None,
    names: Sequence[str] = (),
) -> Primed:
    """Make a checkpoint location that holds Flink's state and positions.

    Args:
        query: what is written, made from the query's streams: a function of as many DataFrames as
            there are ``rows``, in their order. Afterwards it is called with Kafka's.
        rows: for each stream the rows that leave Flink's values in the state; their schema is what
            ``query`` gets. ``aggregate_rows`` and ``seen_rows`` make them of Flink's state.
        positions: where Kafka goes on, for each stream in the order of ``rows``:
            ``startingOffsets`` as ``to_spark`` gives it, a line each, or a mapping from topic and
            partition to the next offset. From the savepoint that the rows are from.
        checkpoint_location: a new or empty directory, on a disk that Spark's executors share.
        output_mode: the one that the query will have.
        watermark_ms: where event time stood in Flink, in epoch milliseconds; of a query with a
            watermark. It is not in a savepoint. Too low, and a late record opens a window again
            that Flink has fired; too high, and records are dropped that Flink would have taken.
        expected: what Spark's state must hold, where the rows do not say it: the columns of the
            state's key and then of its value, in their order.
        names: of each stream in the order of ``rows``, where Kafka's have names
            (``readStream.name(…)`` of Spark 4.2, with
            ``spark.sql.streaming.queryEvolution.enableSourceEvolution``).

    Raises:
        Refused: Spark's state is not what it must be, key by key; the rows hold no key, and
            ``expected`` does not say so; the query cannot be primed; or the positions are not those
            of the rows' savepoint.
        Refused: rows of your own are of a state with a time to live: see ``unexpired``.
        Refused: the directory holds something already.
        UsageError: arguments that do not go together.
        OSError: the directory cannot be written.
    """
    if not rows:
        raise UsageError("no rows: give those of each stream of the query")
    starts = _positions(positions, len(rows))
    if names and len(names) != len(rows):
        raise UsageError(f"names of {len(names)} streams, and rows of {len(rows)}")
    target = _target(checkpoint_location)
    frames = [one.rows if isinstance(one, StateRows) else one for one in rows]
    spark = frames[0].sparkSession
    told = [one for one in rows if isinstance(one, StateRows)]
    check_time_to_live([one for one in rows if not isinstance(one, StateRows)])
    if problems := list(contradictions((one.origin for one in told), starts)):
        raise Refused(problems)
    for path in unfinished(target.path):
        log.warning(
            f"{path}: left by a run that was killed while it primed or read {target.name}; remove "
            "it, unless such a run is still at work"
        )
    parent = target.path.parent
    parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{target.path.name}.rows.", dir=parent))
    try:
        with new_directory(target.path, target.name) as stage:
            with timed("running the query over Flink's state"):
                batch = _Batch(spark, query, frames, work, stage, output_mode, names)
                batches = 1
                if any(one.overlapping for one in told):
                    # What rows add to windows that have fired is late, and dropped.
                    _check_watermark(batch.run(empty=True), watermark_ms, told)
                    set_watermark(stage, 0, watermark_ms or 0)
                    batches = 2
                _check_watermark(batch.run(), watermark_ms, told)
            found = [starts[stream] for stream in _by_source(stage, len(rows))]
            pinned = put_kafka(stage, found, watermark_ms, batches)
            with timed("comparing Spark's state with Flink's"):
                proof = prove(
                    read_spark_state(spark, stage, batches - 1, work / "state"), rows, expected
                )
            if not proof.is_right:
                raise Refused([*proof.problems(), *_hint(proof, told)])
            if not proof.right and expected is None:
                raise Refused(
                    "no key of Flink's state is among the rows: the query would begin with an "
                    "empty state; did a filter or a join remove them all? If Flink's state is "
                    "empty, say so: expected, a DataFrame without rows"
                )
    except PySparkException as error:
        raise Refused(f"Spark did not run the query over the rows: {failure_of(error)}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    log.info(f"wrote {target.name}: {proof}; use it as checkpointLocation")
    warnings = tuple(_warnings(told, watermark_ms, empty=not proof.right))
    for warning in warnings:
        log.warning(warning)
    return Primed(target.for_spark, tuple(found), proof, pinned, warnings)


def _positions(given: Positions, streams: int) -> list[NextOffsets]:
    if isinstance(given, str):
        given = [line for line in given.splitlines() if line.strip()]
    elif isinstance(given, Mapping):
        given = [given]
    found = [_topic_positions(one) if isinstance(one, str) else one for one in given]
    if len(found) != streams:
        raise UsageError(
            f"positions of {counted(len(found), 'source')}, and rows of "
            f"{counted(streams, 'stream')}"
        )
    for one in found:
        bad = next((f"{place[0]}-{place[1]}" for place, at in one.items() if at < 0), None)
        if bad is not None or not one:
            raise UsageError(
                f"positions: {bad or 'a source without partitions'}: each partition needs the "
                "offset of its next record; earliest and latest have none"
            )
    return found


def _topic_positions(text: str) -> NextOffsets:
    """``startingOffsets`` as next offsets.

    Raises:
        UsageError: it is not that.
    """
    try:
        return topic_offsets(parse_json(text))
    except NotOffsets as error:
        raise UsageError(f"positions: {error}") from error


def _target(checkpoint_location: str) -> LocalDirectory:
    try:
        target = location(checkpoint_location)
    except UsageError as error:
        raise UsageError(f"checkpoint_location: {error}") from error
    if not isinstance(target, LocalDirectory) or target.mounted:
        raise UsageError(
            f"checkpoint_location {target.name}: a store without a rename cannot be given a state "
            "whole; prime a directory on a disk that the executors share, and copy it there whole "
            "before the query's first start"
        )
    check_free(target)
    return target


# -- batch 0 -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Batch:
    """Runs the query over rows of files, which lie in a directory for each stream."""

    spark: SparkSession
    query: Query
    frames: Sequence[DataFrame]
    work: Path
    stage: Path
    output_mode: str
    names: Sequence[str]

    def run(self, empty: bool = False) -> bool:
        """One batch over the rows, or over none of them; whether the query has a watermark."""
        streams = []
        for number, frame in enumerate(self.frames):
            files = str(self.work / str(number))
            (frame.limit(0) if empty else frame).write.mode("append").parquet(files)
            reader = self.spark.readStream.schema(frame.schema)
            if self.names:
                if not hasattr(reader, "name"):
                    raise UsageError("names: streams have names from Spark 4.2 on")
                reader = reader.name(self.names[number])
            streams.append(reader.parquet(files))
        with setting(self.spark, _NO_DATA_BATCHES, "false"):
            running = (
                self.query(*streams)
                .writeStream.format("noop")
                .outputMode(self.output_mode)
                .option("checkpointLocation", str(self.stage))
                .trigger(availableNow=True)
                .start()
            )
            try:
                running.awaitTermination()
                progress = running.lastProgress
            finally:
                running.stop()
        return bool(progress and progress.get("eventTime"))  # Spark 3.5 leaves it out


def _by_source(stage: Path, streams: int) -> list[int]:
    """The stream that each source of the plan reads."""
    found: list[int] = []
    for source in sources_of(stage):
        rows = source_of_rows(stage, source)
        if rows is None:
            raise Refused(f"source {source} of the query has read none of the rows")
        found.append(int(rows))
    unread = set(range(streams)) - set(found)
    if unread:
        raise Refused(f"the query does not read stream {min(unread)} of those that it is given")
    return found


# -- the watermark -------------------------------------------------------------------------------


def _check_watermark(event_time: bool, watermark_ms: int | None, rows: Sequence[StateRows]) -> None:
    if not event_time:
        if watermark_ms is not None:
            raise UsageError("watermark_ms: the query has no watermark (withWatermark)")
        return
    pending = _pending(rows)
    if watermark_ms is None:
        known = ""
        if pending is not None:
            known = f"; the first window that Flink still keeps ends at {pending}"
        raise UsageError(
            "the query has a watermark, and Flink's is not in a savepoint: give watermark_ms, at "
            f"least the end of the last window that Flink has fired{known}"
        )
    if pending is not None and watermark_ms >= pending:
        raise Refused(
            f"watermark_ms {watermark_ms}: Flink keeps a window that ends at {pending}, so its "
            "watermark was lower; Spark would close that window at once and drop its later "
            "records"
        )
    fired = max((one.fired.last_end for one in rows if one.fired.last_end), default=None)
    if fired is not None and watermark_ms < fired:
        raise Refused(
            f"watermark_ms {watermark_ms}: Flink has fired a window that ends at {fired}, so "
            "its watermark was there; a late record would have Spark fire it again"
        )


def _pending(rows: Sequence[StateRows]) -> int | None:
    """When the first pending window ends, in epoch milliseconds."""
    return min((one.first_end for one in rows if one.first_end is not None), default=None)


def _hint(proof: StateProof, rows: Sequence[StateRows]) -> Iterator[str]:
    if proof.unexpected and _pending(rows) is not None:
        yield (
            "a row lies in every window that covers its time: hopping windows need slide_ms, and a "
            "watermark_ms at which the windows that Flink has fired are over"
        )


def _warnings(
    rows: Sequence[StateRows], watermark_ms: int | None, empty: bool = False
) -> Iterator[str]:
    pending = _pending(rows)
    if watermark_ms is not None and pending is not None:
        yield (
            f"watermark_ms {watermark_ms}: a window that ends between it and {pending}, where the "
            "first pending one does, is opened again by a late record, if Flink has fired it"
        )
    if watermark_ms is not None and pending is None:
        yield (
            f"watermark_ms {watermark_ms}: no window is pending that would bound it from above; if "
            "Flink's was lower, Spark drops records that Flink would have taken"
        )
    if fired := sum(one.fired.number for one in rows):
        yield (
            f"{counted(fired, 'window')} that Flink has fired and keeps for late records stay "
            "behind: Flink would fire such a window again for a late record, and Spark drops it"
        )
    for one in rows:
        if one.expired is not None:
            yield from one.expired.warnings()
            if one.expired.ttl_ms is not None:
                yield (
                    f"Flink forgets an entry {one.expired.ttl_ms} ms after its last access, and "
                    "Spark never does: from now on a key that is idle for longer keeps its value"
                )
    if empty:
        yield "no key is expected: the query begins with an empty state"
