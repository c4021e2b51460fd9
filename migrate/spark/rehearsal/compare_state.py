"""The state of a rehearsed query, compared with that of the later checkpoint.

The state is that after the batch with the records, before windows are removed. Flink's watermark at
a checkpoint is not known, and may be before or after Spark's. So a window that Flink still keeps is
compared even if the query has fired it. A window that only Spark has is wrong if the query still
keeps it, or if it ends no earlier than the first window that Flink keeps.

If the state has a time to live, Flink drops entries between the checkpoints, and Spark does not.
Such keys are not compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from migrate.model.warning import WarningCode, WarningText, warning_text
from migrate.model.wording import counted, iso_time
from migrate.planning.state_proof import StateProof
from migrate.spark.rehearsal.differences import Comparison, named_comparison
from migrate.spark.transfer.filled_state import Rows, state_rows_of
from migrate.spark.transfer.flat_state import SparkState
from migrate.spark.transfer.proof import Expectation, find_expected, key_order, name_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class StateComparison(NamedTuple):
    """The comparison of the states, and what limits it.

    Attributes:
        start: the proof of the query's state before any record; None if it was not compared.
    """

    comparison: Comparison
    warnings: tuple[WarningText, ...]
    not_compared: tuple[str, ...]
    start: StateProof | None = None


def compare_start(
    state: SparkState, rows: Rows, expected: DataFrame | None
) -> tuple[DataFrame, Comparison]:
    """Return Flink's state at the earlier checkpoint, and its comparison with the query's state.

    Args:
        state: Spark's state before any record.
        rows: the rows of the earlier checkpoint's state.
        expected: the expected state; None if it can be computed from the rows.

    Raises:
        Refused: as for ``find_expected``.
    """
    expectation = find_expected(state, rows, expected)
    return expectation.frame, _named(state, expectation, rows, expected)


def compare_state(
    state: SparkState,
    rows: Rows,
    expected: DataFrame | None,
    earlier: DataFrame,
    watermark_ms: int | None,
    *,
    keeps_windows: bool,
) -> StateComparison:
    """Compare the state of a rehearsed query with that of the later checkpoint.

    Args:
        state: Spark's state after the batch with the records.
        rows: the rows of the later checkpoint's state.
        expected: the expected state; None if it can be computed from the rows.
        earlier: Flink's state at the earlier checkpoint, with the columns of Spark's state.
        watermark_ms: the query's watermark after the records; None if it has none.
        keeps_windows: whether the query removes no window, because its output mode is complete.

    Raises:
        Refused: as for ``find_expected``.
    """
    state_rows = state_rows_of(rows)
    warnings: list[WarningText] = []
    not_compared: list[str] = []
    first_kept_end = None
    removed_ms = None if keeps_windows else watermark_ms
    if state.has_window and (keeps_windows or watermark_ms is not None):
        first_kept_end = _first_kept_end(state, rows, expected)
        limits = [] if first_kept_end is None else [first_kept_end - 1]
        if removed_ms is not None:
            limits.append(removed_ms)
        is_fired = F.unix_millis("window.end") <= min(limits) if limits else F.lit(True)
        fired = state.frame.where(is_fired).count()
        state = replace(state, frame=state.frame.where(~is_fired))
        if fired:
            which = "keeps (output mode complete)" if keeps_windows else "has fired"
            not_compared.append(
                f"{counted(fired, 'window')} that the query {which}, and Flink does not keep: "
                "the state does not hold the rows that Flink wrote for them (the argument output "
                "compares those rows)"
            )
    expectation = find_expected(state, rows, expected)
    unexpected = expectation.proof.unexpected
    if unexpected and any(stream.expired is not None for stream in state_rows):
        state = _without_expired(state, earlier, expectation.frame)
        expectation = find_expected(state, rows, expected)
        if expired := unexpected - (expectation.proof.unexpected or 0):
            not_compared.append(
                f"{counted(expired, 'key')} of the earlier checkpoint that the query still has: "
                "Flink has dropped them since, as the state has a time to live"
            )
    if first_kept_end is not None and removed_ms is not None and removed_ms >= first_kept_end:
        end = F.unix_millis("window.end")
        early = expectation.frame.where(end <= removed_ms).count()
        warnings.append(
            warning_text(
                WarningCode.EARLY_WINDOWS,
                f"the query has fired {counted(early, 'window')} that Flink still keeps: its "
                f"watermark is {iso_time(removed_ms)}, and Flink's was before "
                f"{iso_time(first_kept_end)}; Spark would drop a record for them that Flink takes",
            )
        )
    comparison = _named(state, expectation, rows, expected)
    return StateComparison(comparison, tuple(warnings), tuple(not_compared))


def _named(
    state: SparkState, expectation: Expectation, rows: Rows, expected: DataFrame | None
) -> Comparison:
    """Return a comparison with the user's names of the key's parts."""
    state_rows = state_rows_of(rows)
    keys = [field.name for field in state.keys]
    if len(state_rows) == 1 and expected is None:
        keys = [state_rows[0].keys[number] for number in key_order(state_rows[0].keys, state)]
    times = {stream.time for stream in state_rows if stream.time is not None}
    return named_comparison(
        state,
        expectation,
        keys,
        [field.name for field in state.values],
        times.pop() if len(times) == 1 else None,
    )


def _without_expired(state: SparkState, earlier: DataFrame, later: DataFrame) -> SparkState:
    """Return Spark's state without the keys that Flink had earlier, and does not have later."""
    key = F.struct(*state.key_columns)
    same_key = F.col("expired_key").eqNullSafe(F.col("later_key"))
    expired = earlier.select(key.alias("expired_key")).join(
        later.select(key.alias("later_key")), same_key, "left_anti"
    )
    kept = state.frame.join(expired, key.eqNullSafe(F.col("expired_key")), "left_anti")
    return replace(state, frame=kept)


def _first_kept_end(state: SparkState, rows: Rows, expected: DataFrame | None) -> int | None:
    """Return the end of the first window that Flink keeps, in epoch milliseconds."""
    if expected is not None:
        frame = name_columns(expected, state)
        end: int | None = frame.agg(F.min(F.unix_millis("window.end"))).collect()[0][0]
        return end
    ends = [stream.first_end for stream in state_rows_of(rows) if stream.first_end is not None]
    return min(ends, default=None)
