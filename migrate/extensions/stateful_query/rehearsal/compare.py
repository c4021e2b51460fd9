"""Compare the state and output of a rehearsed query with Flink's state and output.

Flink's watermark at a checkpoint cannot be determined. It may be lower or higher than Spark's
watermark. The comparison therefore uses a Spark state that still contains the windows that the
query has just fired: the state after the batch with the records, before Spark removes the windows.
Every window in Flink's state is compared.

A window that is only in Spark's state counts as unexpected, unless Flink may have fired it. Windows
that meet both of these conditions are not compared:

- The window ends before every window in Flink's state.
- The query has fired the window, or the output mode is ``complete``, in which a query never removes
  windows.

If the state has a TTL, Flink drops expired entries between the checkpoints, but Spark keeps them.
Keys that may have expired are not compared (see ``expiry``).

Two floating-point sums match if they differ by at most the rounding error (see ``rounding``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from migrate.extensions.stateful_query.catalog import EARLY_WINDOWS
from migrate.extensions.stateful_query.rehearsal.coverage import NotCompared, Notes
from migrate.extensions.stateful_query.rehearsal.expiry import (
    StateTimeToLive,
    expiry_of,
    last_accesses,
    without_dropped,
)
from migrate.extensions.stateful_query.rehearsal.lateness import LateRecords, WindowGrid
from migrate.extensions.stateful_query.transfer.exact_cast import cast_exactly
from migrate.extensions.stateful_query.transfer.filled_state import Rows, state_rows_of
from migrate.extensions.stateful_query.transfer.flat_state import Field, SparkState
from migrate.extensions.stateful_query.transfer.proof import (
    Comparison,
    compare,
    compare_with_expected,
    to_spark_columns,
)
from migrate.extensions.stateful_query.transfer.rounding import Rounding
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.extensions.stateful_query.transfer.watermark import first_pending_end
from migrate.model.column_types import quoted
from migrate.model.errors import UsageError
from migrate.model.warning import WarningText
from migrate.model.wording import counted, iso_time

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


class FlinkState(NamedTuple):
    """The state of a checkpoint.

    Attributes:
        rows: the rows from which the query computes this state.
        expected: as in ``prime``.
        time_to_live: the TTL of the state, or None.
    """

    rows: Rows
    expected: DataFrame | None
    time_to_live: StateTimeToLive | None


def compare_state(
    state: SparkState,
    later: FlinkState,
    earlier: FlinkState,
    earlier_entries: DataFrame,
    watermark_ms: int | None,
    rounding: Rounding,
    notes: Notes,
    *,
    keeps_windows: bool,
    output_is_given: bool,
    output_shows_fired: bool,
) -> Comparison:
    """Compare the state of a rehearsed query with the state in the later checkpoint.

    Args:
        state: the Spark state after the records.
        later: the state of the later checkpoint.
        earlier: the state of the earlier checkpoint.
        earlier_entries: the entries of ``earlier``, with the columns of the Spark state.
        watermark_ms: the query's watermark after the records; None if the query has no watermark.
        rounding: how to compare floating-point sums.
        notes: the object to which this function adds warnings and the keys that were not compared.
        keeps_windows: True if the output mode is ``complete``, in which a query never removes
            windows.
        output_is_given: True if the query's output is also compared.
        output_shows_fired: True if the compared output has a row for each fired window.

    Raises:
        Refused, UsageError: as in ``compare_with_expected``.
    """
    rows, expected, _ = later
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
            which = "stores (output mode complete)" if keeps_windows else "has fired"
            notes.not_compared.append(
                NotCompared(
                    fired,
                    f"{counted(fired, 'window')} that the query {which} and that Flink does "
                    "not store; pass the argument output to compare the rows that Flink "
                    "wrote for these windows",
                )
            )
    comparison = compare_with_expected(state, rows, expected, rounding)
    notes.changed, removed = _count_changes(earlier_entries, comparison.flink, state)
    if not (output_is_given or notes.changed or removed):
        notes.undetermined.append(
            "the correctness of the query, because no key of Flink's state changed between "
            "the checkpoints; choose a later checkpoint"
        )
    notes.not_compared.extend(_entries_without_rows(state_rows_of(rows)))
    notes.not_compared.extend(
        NotCompared(
            None, f"fields of Flink's values that rows does not use: {', '.join(stream.unused)}"
        )
        for stream in state_rows_of(rows)
        if stream.unused
    )
    expiry = expiry_of(earlier.time_to_live, later.time_to_live)
    if comparison.proof.unexpected and expiry is not None:
        accesses = None
        if expected is None:
            accesses = last_accesses(state_rows_of(earlier.rows), state)
        state, dropped = without_dropped(
            state,
            earlier_entries,
            earlier_entries if accesses is None else accesses,
            comparison.flink,
            expiry,
        )
        comparison = compare_with_expected(state, rows, expected, rounding)
        for number, reason in dropped.reasons(expiry):
            notes.not_compared.append(NotCompared(number, reason))
        if dropped.unknown:
            notes.undetermined.append("the expiry of keys")
    if first_kept_end is not None and fired_to_ms is not None and fired_to_ms >= first_kept_end:
        end = F.unix_millis("window.end")
        early = comparison.flink.where(end <= fired_to_ms).count()
        notes.warnings.append(
            WarningText(
                EARLY_WINDOWS(
                    count=early,
                    watermark=iso_time(fired_to_ms),
                    window_end=iso_time(first_kept_end),
                )
            )
        )
    return comparison


def _count_changes(earlier: DataFrame, later: DataFrame, state: SparkState) -> tuple[int, int]:
    """Return how many entries are only in the later checkpoint, and how many only in the earlier.

    An entry is a key with its value. If the value of a key changes, both numbers include the key.
    """
    entry = F.struct(*state.key_columns, *state.value_columns)
    before, after = earlier.select(entry.alias("entry")), later.select(entry.alias("entry"))
    changed, removed = (
        one.join(
            other.select(F.col("entry").alias("other")),
            F.col("entry").eqNullSafe(F.col("other")),
            "left_anti",
        ).count()
        for one, other in ((after, before), (before, after))
    )
    return changed, removed


def _entries_without_rows(rows: Sequence[StateRows]) -> Iterator[NotCompared]:
    """Yield, for each stream, a note on the Flink entries for which the user made no rows."""
    for stream in rows:
        left_out = stream.left_out
        if left_out:
            entries = counted(left_out, "entry", "entries")
            yield NotCompared(
                left_out,
                f"{entries} of Flink's {stream.held} for which the function rows made no rows",
            )


def end_of_first_kept(state: SparkState, rows: Rows, expected: DataFrame | None) -> int | None:
    """Return the earliest end of a window that Flink stores, in epoch milliseconds, or None."""
    if expected is not None:
        frame = to_spark_columns(expected, state)
        end: int | None = frame.agg(F.min(F.unix_millis("window.end"))).collect()[0][0]
        return end
    return first_pending_end(state_rows_of(rows))


def compare_output(spark_rows: DataFrame, flink_rows: DataFrame, rounding: Rounding) -> Comparison:
    """Compare two multisets of rows.

    Columns match by name. The result contains keys and values, like a comparison of states:

    - If the rows contain no floating-point sums, each distinct row is a key. The value is the
      number of times that the row occurs.
    - Otherwise, the columns with these sums are the value, and the other columns are the key.
      Several rows may have the same key, so the key has an additional column, ``occurrence``. This
      column numbers the rows of a key in the order of their values.

    Raises:
        UsageError: the column names differ, or a type cannot be cast exactly.
    """
    names = spark_rows.columns
    if sorted(names) != sorted(flink_rows.columns):
        raise UsageError(
            f"`output` has the columns {', '.join(flink_rows.columns)}, but the query writes the "
            f"columns {', '.join(names)}; rename or select the columns of `output`"
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


def doubt_of_output(
    comparison: Comparison,
    output_mode: str,
    keys: Comparison | None,
    late: LateRecords | None,
    windows: WindowGrid | None,
    *,
    fires_windows: bool,
) -> str | None:
    """Return the reason why a correct query may write output that differs from Flink's output.

    Return None if the output does not differ, or if no reason explains the whole difference.

    Args:
        comparison: the comparison of a stateful query's output.
        output_mode: the query's output mode.
        keys: for a deduplication, the comparison of only the key columns in the output. None for
            other queries, or if the output lacks these columns.
        late: the late records; None if unknown.
        windows: the query's windows; None if unknown.
        fires_windows: True if the query has windows and a watermark.
    """
    proof = comparison.proof
    if proof.is_right:
        return None
    if output_mode.lower() != "append":
        return (
            f"the correctness of the output, because in output mode {output_mode} the query "
            "writes a key once in each batch, but Flink writes the key at each change"
        )
    if keys is not None and keys.proof.is_right:
        return (
            "the correctness of the output; its keys match, but the other columns are from "
            "the first record of each key, and the order of records from several partitions "
            "cannot be determined"
        )
    if not fires_windows:
        return None
    if late is None or windows is None:
        return (
            "the correctness of the output, because late records may explain the "
            "difference; late records can be determined only for one stream with the columns "
            "topic, partition, and offset"
        )
    rows = proof.wrong + max(proof.missing, proof.unexpected or 0)
    if rows > late.number * windows.per_record:
        return None
    return (
        "the correctness of the output, because Flink dropped "
        f"{counted(late.number, 'late record')} that the query accepts in one batch; this "
        f"may explain the difference in {counted(rows, 'row')}"
    )


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
