"""Bound the rounding error of floating-point sums in hopping windows.

The values in the rows of a pane are differences between the sums of Flink's windows
(``split_into_panes``). Spark adds the panes of each window again. If the state has ``m`` windows
for a key, a pane requires at most ``2 m`` additions, and a window at most ``m`` panes. The error of
a window's sum is therefore at most ``3 m² u`` times the sum of the absolute values of the key's
windows, with ``u`` as in ``rounding``.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from pyspark.sql import Window
from pyspark.sql import functions as F

from migrate.extensions.stateful_query.transfer.flat_state import AGGREGATE, SparkState
from migrate.extensions.stateful_query.transfer.rounding import UNIT, Rounding


def with_hop_rounding(state: SparkState) -> tuple[SparkState, Rounding | None]:
    """Return the state with a ``magnitude`` column, and the rule for comparing its sums.

    If the state has no hopping windows or no floating-point sums, return the same state and None.
    The rows of such a state contain Flink's sums exactly.
    """
    rounding = Rounding(0, float_error=2 * UNIT)
    sums = rounding.fields(state.values)
    if not (sums and state.has_window and state.operator == AGGREGATE and _overlap(state)):
        return state, None
    key = Window.partitionBy(*(f"k{number}" for number in range(len(state.keys))))
    absolute = [f"coalesce(abs({state.value_columns[number]}), 0D)" for number in sums]
    windows, total = F.count("*").over(key), F.sum(F.expr(" + ".join(absolute))).over(key)
    magnitude = (3 * windows * windows * total).alias("magnitude")
    return replace(state, frame=state.frame.select("*", magnitude)), rounding


def _overlap(state: SparkState) -> bool:
    """Return whether a window starts before the previous one ends."""
    bounds = state.frame.selectExpr("unix_micros(window.start)", "unix_micros(window.end)")
    windows = sorted(tuple(row) for row in bounds.distinct().collect())
    return any(start < end for (_, end), (start, _) in pairwise(windows))
