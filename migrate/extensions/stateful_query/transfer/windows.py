"""Handle windows in the Flink state: fired windows, merged sessions, and panes of hopping windows.

Source: WindowOperator (registerCleanupTimer), EventTimeTrigger, MergingWindowSet, TimeWindowUtil
(toUtcTimestampMills, toEpochMillsForTimer) @ Flink 1.20, 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from migrate.extensions.keyed_state.frames import read_keyed_state
from migrate.extensions.keyed_state.listing import WINDOW_CONTENTS
from migrate.extensions.stateful_query.catalog import (
    FIRED_WINDOWS_UNKNOWN,
    NO_WINDOW_PENDING,
    WINDOWS_IN_LOCAL_TIME,
)
from migrate.extensions.stateful_query.transfer.origin import origin_of
from migrate.model.errors import Refused, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class FiredWindows:
    """The windows that have fired but that Flink keeps for late records.

    Attributes:
        last_end: the latest end of these windows, in epoch milliseconds; None if no such window
            exists.
    """

    number: int = 0
    last_end: int | None = None


def session_windows(contents: DataFrame, windows: DataFrame) -> DataFrame:
    """Return the contents of sessions, with each session's current window as its ``namespace``.

    When sessions merge, Flink stores the contents of the new session under the window of one of the
    old sessions. This function replaces the old window with the window of the new session.

    Args:
        contents: the ``window-contents`` state.
        windows: the ``merging-window-set`` state of the same operator.
    """
    pairs = windows.select(F.col("key").alias("pair_key"), F.explode("value").alias("pair"))
    same = F.col("key").eqNullSafe(F.col("pair_key")) & (F.col("pair.f1") == F.col("namespace"))
    return contents.join(pairs, same).select("key", F.col("pair.f0").alias("namespace"), "value")


def unfired_windows(state: DataFrame) -> tuple[DataFrame, FiredWindows]:
    """Return the windows that have not fired yet, and a summary of the fired windows.

    A window that has not fired has a timer at its last millisecond. If the job allows late records,
    Flink keeps a fired window until a later timer fires. Fired windows are omitted, because Spark
    would fire them a second time. If the job does not allow late records, or if ``_timers`` returns
    None, the state is returned unchanged.

    Raises:
        Refused: the job allows late records, but the state lacks ``key`` or ``namespace``; or the
            job allows late records, but no window in the state has a timer at the window's last
            millisecond.
        UsageError, DecodeError: as in ``read_keyed_state``.
    """
    timers = _timers(state, of_contents=True)
    if timers is None:
        return state, FiredWindows()
    (lateness,) = timers.agg(F.max(F.expr("value - namespace.end + 1"))).collect()[0]
    if not lateness:
        return state, FiredWindows()
    if not {"key", "namespace"} <= set(state.columns):
        raise Refused(FIRED_WINDOWS_UNKNOWN(lateness_ms=lateness))
    unfired = timers.where("value = namespace.end - 1").selectExpr(
        "key AS timer_key", "namespace AS timer_window"
    )
    same = F.col("key").eqNullSafe(F.col("timer_key")) & (
        F.col("namespace") == F.col("timer_window")
    )
    (fired,) = (
        state.join(unfired, same, "left_anti")
        .agg(F.count("*").alias("number"), F.max("namespace.end").alias("last"))
        .collect()
    )
    kept = state.join(unfired, same, "left_semi")
    if fired["number"] and kept.isEmpty():
        raise Refused(NO_WINDOW_PENDING(windows=fired["number"]))
    return kept, FiredWindows(fired["number"], fired["last"])


def check_instants(state: DataFrame, first_end: int | None) -> None:
    """Check that the end of the first window is an instant, not a wall-clock time.

    If the event time is a TIMESTAMP_LTZ column, Flink SQL stores windows in the wall-clock time of
    the job's time zone. However, the timers of these windows are instants.

    ``first_end`` is the end of the first window that is converted to rows, in epoch milliseconds.

    Raises:
        Refused: Flink's timer for the first window is at a different time than ``first_end``.
        UsageError, DecodeError: as in ``read_keyed_state``.
    """
    timers = _timers(state, of_contents=False)
    if timers is None:
        return
    is_struct = isinstance(timers.schema["namespace"].dataType, StructType)
    end = "namespace.end" if is_struct else "namespace"
    (timer,) = timers.agg(
        F.min("value").alias("first"), F.max(F.expr(f"abs(value + 1 - {end})")).alias("offset")
    ).collect()
    if timer["offset"] and first_end != timer["first"] + 1:
        raise Refused(WINDOWS_IN_LOCAL_TIME(window_end=first_end, timer=timer["first"]))


def _timers(state: DataFrame, *, of_contents: bool) -> DataFrame | None:
    """Return the pending timers of event-time windows, or None.

    Return None if the timers are not for windows, or if the origin of ``state`` is unknown. With
    ``of_contents``, also return None if ``state`` is not ``window-contents``. Without it, also
    return None if ``state`` is ``window-contents``.
    """
    origin = origin_of(state)
    if origin is None or (origin.state == WINDOW_CONTENTS) != of_contents:
        return None
    timers = read_keyed_state(
        state.sparkSession,
        origin.savepoint,
        operator=origin.operator_id,
        view="timers",
        allowExternalFiles=origin.allow_external_files,
        truncateKeys=origin.truncate_keys,
    ).where("state LIKE '%event_window-timers'")
    window = timers.schema["namespace"].dataType
    are_for_windows = isinstance(window, LongType) or (
        isinstance(window, StructType) and window.names == ["start", "end"]
    )
    return timers if are_for_windows else None


def split_into_panes(
    entries: DataFrame, keys: Sequence[str], sums: Sequence[str], slide_ms: int
) -> DataFrame:
    """Split hopping windows into panes.

    A pane is the time from the start of one window to the start of the next window, ``slide_ms``
    later. Panes do not overlap. Let ``W[p]`` be the sum in window number p, ``P[p]`` the sum in the
    pane with the same start, and k the number of panes in a window:

        W[p]   = P[p] + P[p+1] + … + P[p+k-1]
        W[p+1] = P[p+1] + … + P[p+k-1] + P[p+k]

    The difference of these two equations gives the sum in a pane:

        P[p] = W[p] - W[p+1] + P[p+k]

    ``P[p+k]`` is replaced using the same equation, and so on. Each pane then becomes a combination
    of sums and differences of windows.

    Flink has fired all windows before the first window in ``entries``, so no pane starts before the
    first window.

    Args:
        entries: a row for each window, with the columns of the key, ``start``, ``end``, the sums,
            and ``n``, the number of records in the window.
        keys: the columns of the key.
        sums: the columns of the sums.
        slide_ms: the distance between the starts of two consecutive windows.
    """
    (bounds,) = entries.agg(
        F.min("start").alias("first"),
        F.min(F.expr("end - start")).alias("size"),
        F.max(F.expr("end - start")).alias("largest"),
    ).collect()
    first, size = bounds["first"] or 0, bounds["size"] or slide_ms
    if bounds["largest"] not in (None, size) or size % slide_ms:
        raise UsageError(
            f"the length of the windows ({size} ms) is not a multiple of `slide_ms` ({slide_ms}); "
            "pass the job's slide"
        )
    steps = [
        f"transform(sequence(0L, (start - {shift} - {first}) div {size}), "
        f"j -> named_struct('start', start - {shift} - j * {size}, 'plus', {plus}))"
        for shift, plus in ((0, "true"), (slide_ms, "false"))
    ]
    signed = f"concat({steps[0]}, IF(start - {slide_ms} >= {first}, {steps[1]}, array()))"
    added = (F.expr(f"sum(IF(pane.plus, {name}, -{name}))").alias(name) for name in ("n", *sums))
    return (
        entries.withColumn("pane", F.explode(F.expr(signed)))
        .groupBy(*keys, F.col("pane.start").alias("start"))
        .agg(*added)
        .where("n <> 0")
        .withColumn("n", F.col("n").cast(LongType()))
    )
