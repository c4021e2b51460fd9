"""Windows in Flink's state: which have fired, under which the contents of sessions lie, and the
panes that hopping windows are made of.

Source: WindowOperator (registerCleanupTimer), EventTimeTrigger, MergingWindowSet, TimeWindowUtil
(toUtcTimestampMills, toEpochMillsForTimer) @ Flink 1.20, 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from migrate.model.errors import Refused, UsageError
from migrate.model.wording import counted
from migrate.spark.state_frame import read_keyed_state

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from migrate.spark.transfer.origin import StateOrigin


@dataclass(frozen=True, slots=True)
class FiredWindows:
    """Windows that have fired, and are kept as the job allows records to be late.

    Attributes:
        number: how many.
        last_end: when the last of them ends, in epoch milliseconds; None without one.
    """

    number: int = 0
    last_end: int | None = None


# Of DataStream's windows; of SQL's there are others.
_CONTENTS = "window-contents"


def session_windows(contents: DataFrame, windows: DataFrame) -> DataFrame:
    """The contents of sessions, with the window that each is now as their ``namespace``.

    Where sessions have become one, Flink keeps its contents under one of them.

    Args:
        contents: the state ``window-contents``.
        windows: the state ``merging-window-set`` of the same operator.
    """
    pairs = windows.select(F.col("key").alias("its"), F.explode("value").alias("pair"))
    same = F.col("key").eqNullSafe(F.col("its")) & (F.col("pair.f1") == F.col("namespace"))
    return contents.join(pairs, same).select("key", F.col("pair.f0").alias("namespace"), "value")


def unfired(state: DataFrame, origin: StateOrigin) -> tuple[DataFrame, FiredWindows]:
    """The windows that wait to fire, and what is told of the others.

    A window that waits has a timer at its last millisecond. One that has fired is kept for late
    records until a later timer, which cleans it up: Spark would fire it again.

    Raises:
        Refused: there are such windows, and the state's columns do not show which; or none waits.
    """
    timers = _timers(state, origin)
    if origin.state != _CONTENTS or timers is None:
        return state, FiredWindows()
    (lateness,) = timers.agg(F.max(F.expr("value - namespace.end + 1"))).collect()[0]
    if not lateness:
        return state, FiredWindows()
    if not {"key", "namespace"} <= set(state.columns):
        raise Refused(
            f"the job allows records to be {lateness} ms late, and keeps windows that have "
            "fired so long: keep the columns key and namespace, which tell them"
        )
    waiting = timers.where("value = namespace.end - 1").select(
        F.col("key").alias("its"), F.col("namespace").alias("of")
    )
    same = F.col("key").eqNullSafe(F.col("its")) & (F.col("namespace") == F.col("of"))
    (told,) = (
        state.join(waiting, same, "left_anti")
        .agg(F.count("*").alias("number"), F.max("namespace.end").alias("last"))
        .collect()
    )
    kept = state.join(waiting, same, "left_semi")
    if told["number"] and kept.isEmpty():
        raise Refused(
            f"of {counted(told['number'], 'window')} none waits for its end: either Flink has "
            "fired all of them, and there is nothing to take along, or their trigger does not "
            "fire at the end (a CountTrigger, say), and Spark has no such windows"
        )
    return kept, FiredWindows(told["number"], told["last"])


def check_instants(state: DataFrame, origin: StateOrigin, first_end: int | None) -> None:
    """SQL keeps windows over a TIMESTAMP_LTZ by the wall clock of the job's time zone, and their
    timers by the instants: the first window must end at an instant.

    Args:
        first_end: when it ends, as the rows tell it.

    Raises:
        Refused: it ends elsewhere.
    """
    timers = _timers(state, origin)
    if origin.state == _CONTENTS or timers is None:
        return
    end = (
        "namespace.end"
        if isinstance(timers.schema["namespace"].dataType, StructType)
        else ("namespace")
    )
    (told,) = timers.agg(
        F.min("value").alias("first"), F.max(F.expr(f"abs(value + 1 - {end})")).alias("apart")
    ).collect()
    if told["apart"] and first_end != told["first"] + 1:
        raise Refused(
            f"the first window ends at {first_end}, and Flink's timer for it is at "
            f"{told['first']}: over a TIMESTAMP_LTZ SQL keeps windows by the wall clock of "
            "table.local-time-zone; let window give the instants, by to_utc_timestamp"
        )


def _timers(state: DataFrame, origin: StateOrigin) -> DataFrame | None:
    """The pending timers of event-time windows; None of an operator that has none."""
    timers = read_keyed_state(
        state.sparkSession,
        origin.savepoint,
        operator=origin.operator_id,
        view="timers",
        allowExternalFiles=origin.allow_external_files,
    ).where("state LIKE '%event_window-timers'")
    window = timers.schema["namespace"].dataType
    of_windows = isinstance(window, LongType) or (
        isinstance(window, StructType) and window.names == ["start", "end"]
    )
    return timers if of_windows else None


def panes(entries: DataFrame, keys: Sequence[str], sums: Sequence[str], slide_ms: int) -> DataFrame:
    """Windows that hop, as the panes between their starts, which do not overlap.

    The window that starts at p is the panes from p on, the next one all of those but the first, and
    one more. So pane p is window p less the next window, and the pane a window's size later: a sum
    over windows, with signs. Windows before the first that is kept have fired.
    """
    (bounds,) = entries.agg(
        F.min("start").alias("first"),
        F.min(F.expr("end - start")).alias("size"),
        F.max(F.expr("end - start")).alias("largest"),
    ).collect()
    first, size = bounds["first"] or 0, bounds["size"] or slide_ms
    if bounds["largest"] not in (None, size) or size % slide_ms:
        raise UsageError(f"slide_ms {slide_ms}: windows of {size} ms are not made of whole panes")
    # 0 is a window's own pane, and those whole sizes before; 1 is the pane before it, and so on.
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
