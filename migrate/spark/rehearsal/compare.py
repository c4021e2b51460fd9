"""Compare the state and output of a rehearsed query with Flink's state and output.

The comparison uses the query's state after the batch that reads the records, before Spark removes
the windows that it fires. Flink's watermark at a checkpoint cannot be determined. It may be lower
or higher than Spark's watermark. A window that Flink still keeps is therefore compared even if the
query has fired it. A window that only Spark has usually counts as unexpected. It does not count if
it ends before every window that Flink keeps, and the query has fired it or the output mode is
``complete``.

If the state has a TTL, Flink drops entries between the checkpoints, and Spark does not. Keys with
an expired TTL are not compared (see ``expiry``).

Sums of floating-point numbers are compared within their rounding error (see ``rounding``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from migrate.model.errors import UsageError
from migrate.model.warning import WarningCode, warning_text
from migrate.model.wording import counted, iso_time
from migrate.spark.rehearsal.coverage import NotCompared, Notes
from migrate.spark.rehearsal.expiry import expiry_of, last_accesses, without_dropped
from migrate.spark.transfer.exact_cast import cast_exactly
from migrate.spark.transfer.filled_state import Rows, state_rows_of
from migrate.spark.transfer.flat_state import Field, SparkState
from migrate.spark.transfer.proof import (
    Comparison,
    compare,
    compare_with_expected,
    to_spark_columns,
)
from migrate.spark.transfer.rounding import Rounding
from migrate.spark.transfer.watermark import first_pending_end
from migrate.state.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def compare_state(
    state: SparkState,
    rows: Rows,
    expected: DataFrame | None,
    earlier: DataFrame,
    earlier_rows: Rows,
    watermark_ms: int | None,
    rounding: Rounding,
    notes: Notes,
    *,
    keeps_windows: bool,
    output_shows_fired: bool,
) -> Comparison:
    """Compare the state of a rehearsed query with the state in the later checkpoint.

    Args:
        state: Spark's state after the records.
        rows: the rows of the later checkpoint's state.
        expected: the expected state; None to compute it from the rows.
        earlier: Flink's state at the earlier checkpoint, with the columns of Spark's state.
        earlier_rows: the rows of the earlier checkpoint's state.
        watermark_ms: the query's watermark after the records; None if it has none.
        rounding: the comparison of floating-point sums.
        notes: the object that gets the warnings, and the keys that were not compared.
        keeps_windows: True if the output mode is complete, because this mode removes no window.
        output_shows_fired: True if the output is compared, because it has a row for each fired
            window.

    Raises:
        Refused, UsageError: as for ``compare_with_expected``.
    """
    first_kept_end = None
    fired_to_ms = None if keeps_windows else watermark_ms
    if state.has_window and (keeps_windows or watermark_ms is not None):
        first_kept_end = end_of_first_kept(state, rows, expected)
        limits = [] if first_kept_end is None else [first_kept_end - 1]
        if fired_to_ms is not None:
            limits.append(fired_to_ms)
        is_fired = F.unix_millis("window.end") <= min(limits) if limits else F.lit(True)
        fired = state.frame.where(is_fired).count()
        state = replace(state, frame=state.frame.where(~is_fired))
        if fired and not output_shows_fired:
            which = "keeps (output mode complete)" if keeps_windows else "has fired"
            notes.not_compared.append(
                NotCompared(
                    fired,
                    f"{counted(fired, 'window')} that the query {which}, and Flink does not keep: "
                    "only the argument output compares the rows that Flink wrote for them",
                )
            )
    comparison = compare_with_expected(state, rows, expected, rounding)
    expiry = expiry_of(state_rows_of(earlier_rows), state_rows_of(rows))
    if comparison.proof.unexpected and expiry is not None:
        accesses = None
        if expected is None:
            accesses = last_accesses(state_rows_of(earlier_rows), state)
        known = earlier if accesses is None else accesses
        state, dropped = without_dropped(state, known, comparison.flink, expiry)
        comparison = compare_with_expected(state, rows, expected, rounding)
        for number, reason in dropped.reasons(expiry):
            notes.not_compared.append(NotCompared(number, reason))
        if dropped.unknown:
            notes.undetermined.append("whether keys have expired")
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


def end_of_first_kept(state: SparkState, rows: Rows, expected: DataFrame | None) -> int | None:
    """Return the earliest end of a window that Flink keeps, in epoch milliseconds, or None."""
    if expected is not None:
        frame = to_spark_columns(expected, state)
        end: int | None = frame.agg(F.min(F.unix_millis("window.end"))).collect()[0][0]
        return end
    return first_pending_end(state_rows_of(rows))


def compare_output(spark_rows: DataFrame, flink_rows: DataFrame, rounding: Rounding) -> Comparison:
    """Compare two multisets of rows.

    In the result, a row is a key, and its value is the number of its occurrences. Columns match by
    name. If the rows have floating-point numbers, the value is these numbers. The key is then the
    other columns and ``occurrence``. This column numbers equal keys in the order of the numbers.

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
    sums = [fields[number] for number in rounding.fields(fields)]
    keys = tuple(field for field in fields if field not in sums)
    if sums:
        values = tuple(sums)
        spark, flink = (
            _number_occurrences(frame, keys, sums) for frame in (spark_rows, flink_rows)
        )
        keys = (*keys, Field("occurrence", LongType()))
    else:
        values = (Field("times", LongType()),)
        spark, flink = (
            frame.groupBy(*_numbered("k", keys)).agg(F.count("*").alias("v0"))
            for frame in (spark_rows, flink_rows)
        )
    comparison = compare(SparkState("output", spark, keys, False, values), flink, rounding=rounding)
    return replace(comparison, proof=replace(comparison.proof, entries=None))


def _number_occurrences(
    rows: DataFrame, keys: Sequence[Field], values: Sequence[Field]
) -> DataFrame:
    order = Window.partitionBy(*(F.col(quoted(key.name)) for key in keys), F.lit(0)).orderBy(
        *(F.col(quoted(value.name)) for value in values)
    )
    number = F.row_number().over(order).cast("bigint").alias(f"k{len(keys)}")
    return rows.select(*_numbered("k", keys), number, *_numbered("v", values))


def _numbered(letter: str, fields: Sequence[Field]) -> list[Column]:
    return [F.col(quoted(field.name)).alias(f"{letter}{n}") for n, field in enumerate(fields)]
