"""The comparisons of a rehearsal: the query's state and output with those of Flink.

The query's state is compared as it is after the batch that reads the records, before Spark removes
the windows that it fires. Flink's watermark at a checkpoint is not known, and may be lower or
higher than Spark's. So a window that Flink still keeps is compared even if the query has fired it.
A window that only Spark has counts as unexpected, except if it ends before every window that Flink
keeps, and the query has fired it or the output mode is ``complete``.

If the state has a time to live, Flink drops entries between the checkpoints, and Spark does not.
Their keys are not compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from migrate.model.errors import UsageError
from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted, iso_time
from migrate.spark.transfer.exact_cast import cast_exactly
from migrate.spark.transfer.filled_state import Rows, state_rows_of
from migrate.spark.transfer.flat_state import Field, SparkState
from migrate.spark.transfer.proof import (
    Comparison,
    compare,
    compare_with_expected,
    to_spark_columns,
)
from migrate.spark.transfer.watermark import first_pending_end
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Notes:
    """Warnings about a comparison, and what was not compared."""

    warnings: list[WarningText] = field(default_factory=list)
    not_compared: list[str] = field(default_factory=list)


def compare_state(
    state: SparkState,
    rows: Rows,
    expected: DataFrame | None,
    earlier: DataFrame,
    watermark_ms: int | None,
    notes: Notes,
    *,
    keeps_windows: bool,
) -> Comparison:
    """Compare the state of a rehearsed query with that of the later checkpoint.

    Args:
        state: Spark's state after the records.
        rows: the rows of the later checkpoint's state.
        expected: the expected state; None to compute it from the rows.
        earlier: Flink's state at the earlier checkpoint, with the columns of Spark's state.
        watermark_ms: the query's watermark after the records; None if it has none.
        notes: gets the warnings, and what was not compared.
        keeps_windows: whether the output mode is complete, which removes no window.

    Raises:
        Refused, UsageError: as for ``compare_with_expected``.
    """
    first_kept_end = None
    fired_to_ms = None if keeps_windows else watermark_ms
    if state.has_window and (keeps_windows or watermark_ms is not None):
        first_kept_end = _first_kept_end(state, rows, expected)
        limits = [] if first_kept_end is None else [first_kept_end - 1]
        if fired_to_ms is not None:
            limits.append(fired_to_ms)
        is_fired = F.unix_millis("window.end") <= min(limits) if limits else F.lit(True)
        fired = state.frame.where(is_fired).count()
        state = replace(state, frame=state.frame.where(~is_fired))
        if fired:
            which = "keeps (output mode complete)" if keeps_windows else "has fired"
            notes.not_compared.append(
                f"{counted(fired, 'window')} that the query {which}, and Flink does not keep: "
                "only the argument output compares the rows that Flink wrote for them"
            )
    comparison = compare_with_expected(state, rows, expected)
    unexpected = comparison.proof.unexpected or 0
    if unexpected and any(stream.expired is not None for stream in state_rows_of(rows)):
        state = _without_expired(state, earlier, comparison.flink)
        comparison = compare_with_expected(state, rows, expected)
        if expired := unexpected - (comparison.proof.unexpected or 0):
            notes.not_compared.append(
                f"{counted(expired, 'key')} of the earlier checkpoint that the query still has: "
                "Flink has dropped them since, as the state has a time to live"
            )
    if first_kept_end is not None and fired_to_ms is not None and fired_to_ms >= first_kept_end:
        end = F.unix_millis("window.end")
        early = comparison.flink.where(end <= fired_to_ms).count()
        notes.warnings.append(
            warning_text(
                WarningCode.EARLY_WINDOWS,
                f"the query has fired {counted(early, 'window')} that Flink still keeps: its "
                f"watermark is {iso_time(fired_to_ms)}, and Flink's was before "
                f"{iso_time(first_kept_end)}; Spark would drop a record for them that Flink takes",
            )
        )
    return comparison


def _without_expired(state: SparkState, flink_then: DataFrame, flink_now: DataFrame) -> SparkState:
    """Return Spark's state without the keys that are in ``flink_then`` and not in ``flink_now``."""
    key = F.struct(*state.key_columns)
    same_key = F.col("expired_key").eqNullSafe(F.col("later_key"))
    expired = flink_then.select(key.alias("expired_key")).join(
        flink_now.select(key.alias("later_key")), same_key, "left_anti"
    )
    kept = state.frame.join(expired, key.eqNullSafe(F.col("expired_key")), "left_anti")
    return replace(state, frame=kept)


def _first_kept_end(state: SparkState, rows: Rows, expected: DataFrame | None) -> int | None:
    """Return the earliest end of a window that Flink keeps, in epoch milliseconds, or None."""
    if expected is not None:
        frame = to_spark_columns(expected, state)
        end: int | None = frame.agg(F.min(F.unix_millis("window.end"))).collect()[0][0]
        return end
    return first_pending_end(state_rows_of(rows))


def compare_output(spark_rows: DataFrame, flink_rows: DataFrame) -> Comparison:
    """Compare two multisets of rows.

    In the result, a row is a key, and its value is how often it occurs. Columns match by name.

    Raises:
        UsageError: the names of the columns differ, or a type cannot be cast exactly.
    """
    names = spark_rows.columns
    if sorted(names) != sorted(flink_rows.columns):
        raise UsageError(
            f"output has the columns {', '.join(flink_rows.columns)}, and the query writes "
            f"{', '.join(names)}"
        )
    fields = tuple(Field(field.name, field.dataType) for field in spark_rows.schema.fields)
    for column in fields:
        flink_rows = cast_exactly(flink_rows, column.name, column.type, column.name)
    spark, flink = (
        frame.groupBy(*(F.col(quoted(name)).alias(f"k{n}") for n, name in enumerate(names))).agg(
            F.count("*").alias("v0")
        )
        for frame in (spark_rows, flink_rows)
    )
    return compare(SparkState("output", spark, fields, False, (Field("times", LongType()),)), flink)
