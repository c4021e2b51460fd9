"""Find records that the query would drop as late if it read them in small batches.

Spark drops a record as late only because of the watermark of an earlier batch. A rehearsal reads
all records in one batch, so none of these records makes a later record late. If the delay of
``withWatermark`` is too short, the state of the rehearsed query does not show this problem.

Therefore, the late records are determined from the records themselves. The watermark for a record
is computed from the earlier records of its partition. The record is late if its first window ends
at or below this watermark. With the smallest batches, Spark drops all late records. With larger
batches, Spark drops fewer of them.

Source: WatermarkTracker (the latest event time minus the delay), WatermarkSupport (``end <=
watermark`` is late) @ Spark 4.0.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from migrate.extensions.stateful_query.catalog import LATE_RECORDS
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.model.column_types import quoted
from migrate.model.message import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("topic", "partition", "offset")
_MOST_SHOWN = 3


@dataclass(frozen=True, slots=True)
class WindowGrid:
    """The ends of a query's windows, in epoch milliseconds.

    Attributes:
        step_ms: the distance between the ends of two consecutive windows; for sessions, the gap.
        phase_ms: the end of any window; None for sessions, because each record opens a new window.
        per_record: the maximum number of windows that differ if Spark drops one record. This number
            is 2 for sessions, because a session may split into two without the record.
    """

    step_ms: int
    phase_ms: int | None
    per_record: int = 1

    def first_end(self, time_ms: int) -> int:
        """Return the end of the first window of a record."""
        if self.phase_ms is None:
            return time_ms + self.step_ms
        return self.phase_ms + ((time_ms - self.phase_ms) // self.step_ms + 1) * self.step_ms

    def first_end_sql(self, time: str) -> str:
        """Return ``first_end`` as an SQL expression."""
        if self.phase_ms is None:
            return f"({time} + {self.step_ms}L)"
        steps = f"CAST(floor(({time} - {self.phase_ms}L) / {self.step_ms}) AS BIGINT)"
        return f"({self.phase_ms}L + ({steps} + 1) * {self.step_ms}L)"


@dataclass(frozen=True, slots=True)
class LateRecords:
    """The records that are late with a given delay.

    Attributes:
        number: the number of late records.
        delay_ms: the query's delay, in milliseconds.
        needed_ms: the shortest delay without late records, in milliseconds.
        examples: the positions of the first late records, such as ``orders-0 at 17``.
    """

    number: int
    delay_ms: int
    needed_ms: int
    examples: tuple[str, ...]

    def message(self) -> Message:
        """Return the warning about these records."""
        more = ("…",) if self.number > len(self.examples) else ()
        return LATE_RECORDS(
            count=self.number,
            delay_ms=self.delay_ms,
            needed_ms=self.needed_ms,
            examples=(*self.examples, *more),
        )


def grid_of(rows: StateRows) -> WindowGrid | None:
    """Return the grid of a state's windows, or None if the state has no windows."""
    if rows.time is None:
        return None
    if rows.session_gap_ms is not None:
        return WindowGrid(rows.session_gap_ms, None, 2)
    start, end = (F.unix_millis(f"window.{bound}") for bound in ("start", "end"))
    (found,) = rows.expected.agg(
        F.min(end).alias("end"), F.min(end - start).alias("size")
    ).collect()
    if found["end"] is None:
        return None
    step = rows.slide_ms or found["size"]
    return WindowGrid(step, found["end"], -(-found["size"] // step))


def late_records(
    events: DataFrame, time: str, grid: WindowGrid, delay_ms: int, watermark_ms: int
) -> LateRecords | None:
    """Return the late records, or None if the order of the records cannot be determined.

    Args:
        events: the parsed records; rows created from state have no offset and are skipped.
        time: the column of event time.
        grid: the query's windows.
        delay_ms: the query's delay, in milliseconds.
        watermark_ms: the watermark before the first record, in epoch milliseconds. If the first
            window of a record ends at or below this watermark, the record is late even in one
            batch. Such records are not counted.
    """
    if not {*_PLACE, time} <= set(events.columns):
        return None
    at = F.unix_millis(F.col(quoted(time))).alias("at")
    records = events.where("offset IS NOT NULL").select(*_PLACE, at).where("at IS NOT NULL")
    before = (
        Window.partitionBy("topic", "partition")
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    ended = records.select(
        *_PLACE,
        F.expr(grid.first_end_sql("at")).alias("end"),
        F.max("at").over(before).alias("seen"),
    )
    late = ended.where((F.col("end") <= F.col("seen") - delay_ms) & (F.col("end") > watermark_ms))
    (found,) = late.agg(
        F.count("*").alias("number"), F.max(F.expr("seen - end + 1")).alias("needed")
    ).collect()
    examples = late.orderBy(*_PLACE).limit(_MOST_SHOWN).collect() if found["number"] else []
    return LateRecords(
        found["number"],
        delay_ms,
        found["needed"] or delay_ms,
        tuple(f"{row['topic']}-{row['partition']} at {row['offset']}" for row in examples),
    )
