"""Run a stateful query over files with rows, so that the query's state equals the Flink state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from migrate.extensions.stateful_query.catalog import FILES_NOT_SHARED
from migrate.extensions.stateful_query.primed_log import write_watermark
from migrate.extensions.stateful_query.transfer.origin import contradictions
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.extensions.stateful_query.transfer.spark_state import run_available, temporary_setting
from migrate.extensions.stateful_query.transfer.time_to_live import check_time_to_live
from migrate.extensions.stateful_query.transfer.watermark import check_watermark
from migrate.inputs.offsets_json import NextOffsets
from migrate.model.errors import Refused, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# This setting enables batches without data. Spark adds such a batch after a new watermark, to close
# windows.
_NO_DATA_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

Query = Callable[..., "DataFrame"]
Rows = Sequence["StateRows | DataFrame"]
# A function that receives the output of a batch and the batch's number.
Sink = Callable[["DataFrame", int], None]


class EventTime(NamedTuple):
    """The event times of a query's last batch, as observed by ``withWatermark``.

    Attributes:
        last_ms: the latest event time, in epoch milliseconds; None if the batch has no event times.
    """

    last_ms: int | None

    @classmethod
    def parse(cls, times: Mapping[str, str]) -> EventTime:
        """Parse ``eventTime`` in a query's progress."""
        last = times.get("max")
        if last is None:
            return cls(None)
        return cls(round(datetime.fromisoformat(last.replace("Z", "+00:00")).timestamp() * 1000))


@dataclass(frozen=True, slots=True)
class FileQuery:
    """A query that reads each of its streams from a directory of files instead of Kafka.

    Attributes:
        query: the user's query, a function of its streams.
        location: the query's checkpoint location.
        files: the directory with a subdirectory for each stream, named by the stream's number.
        names: the names of the streams; empty for streams without a name.
    """

    query: Query
    location: Path
    files: Path
    output_mode: str
    names: Sequence[str] = ()

    def run(
        self, frames: Sequence[DataFrame], *, sink: Sink | None = None, empty_batch: bool = False
    ) -> EventTime | None:
        """Write rows to new files, run the query, and return the event times of its last batch.

        Return None if the query has no watermark.

        Args:
            frames: the rows of each stream.
            sink: the function that receives the query's output; by default, the output is dropped.
            empty_batch: True to let Spark add a batch without data, which closes windows.
        """
        spark = frames[0].sparkSession
        streams = []
        for number, frame in enumerate(frames):
            files = str(self.files / str(number))
            frame.write.mode("append").parquet(files)
            reader = spark.readStream.schema(frame.schema)
            if self.names:
                if not hasattr(reader, "name"):
                    raise UsageError(
                        "`names` requires Spark 4.2 or later, because older releases do not name "
                        "streams; omit `names`, or use Spark 4.2"
                    )
                reader = reader.name(self.names[number])
            streams.append(reader.parquet(files))
        writer = self.query(*streams).writeStream.outputMode(self.output_mode)
        writer = writer.format("noop") if sink is None else writer.foreachBatch(sink)
        with temporary_setting(spark, _NO_DATA_BATCHES, str(empty_batch).lower()):
            progress = run_available(writer, self.location)
        check_shared(self.location)
        # Spark 3.5 omits ``eventTime`` if it is empty.
        times = progress.get("eventTime") if progress else None
        return EventTime.parse(times) if times else None


def check_shared(location: Path) -> None:
    """Check that this process and Spark use the same disk, after Spark has run a query.

    Spark may have written the query's files elsewhere. For example, Spark Connect runs on a server,
    and Spark may use HDFS as its default file system.

    Raises:
        Refused: the query's log is not on this disk.
    """
    if not (location / "offsets").is_dir():
        raise Refused(FILES_NOT_SHARED(location=str(location)))


def frames_of(rows: Rows) -> list[DataFrame]:
    """Return the rows of each stream as DataFrames."""
    return [stream.rows if isinstance(stream, StateRows) else stream for stream in rows]


def state_rows_of(rows: Rows) -> list[StateRows]:
    """Return the elements of ``rows`` that are StateRows, without the user's own DataFrames."""
    return [stream for stream in rows if isinstance(stream, StateRows)]


def check_rows(rows: Rows, starts: Iterable[NextOffsets]) -> None:
    """Check the TTL and the savepoint of the rows.

    If a DataFrame of the user comes from a state with a TTL, the user must have filtered the state
    with ``unexpired``. If rows come from a Flink state, the state's savepoint must contain the
    offsets in ``starts``.

    Raises:
        Refused: the TTL of a state is missing, or ``starts`` and the rows' savepoint contain
            different offsets for a partition.
        DecodeError: a savepoint cannot be read.
    """
    for stream in rows:
        if not isinstance(stream, StateRows):
            check_time_to_live(stream)
    if problems := list(contradictions((item.origin for item in state_rows_of(rows)), starts)):
        raise Refused(problems)


def fill_state(
    file_query: FileQuery, rows: Rows, watermark_ms: int | None, *, may_lack_watermark: bool = False
) -> tuple[int, bool]:
    """Run a query over the rows of the Flink state; write Flink's watermark to the query's logs.

    Args:
        file_query: the query, with a new checkpoint location.
        rows: the rows of each stream.
        watermark_ms: Flink's watermark; without it, 0 is written.
        may_lack_watermark: True to accept a query without a watermark even if ``watermark_ms`` is
            set.

    Returns:
        The number of batches, and whether the query has a watermark.

    Raises:
        UsageError, Refused: as in ``check_watermark``.
    """
    batches = [frames_of(rows)]
    if any(stream.overlapping for stream in state_rows_of(rows)):
        # Rows may be in windows that Flink has already fired. Spark must drop such rows as late.
        # Therefore, an empty batch comes first, and its log entry gets Flink's watermark, which
        # determines which rows of the next batch are late.
        batches.insert(0, [frame.limit(0) for frame in batches[0]])
    for number, frames in enumerate(batches):
        has_watermark = file_query.run(frames) is not None
        if has_watermark or not may_lack_watermark:
            check_watermark(has_watermark, watermark_ms, state_rows_of(rows))
        write_watermark(file_query.location, number, watermark_ms or 0)
    return len(batches), has_watermark
