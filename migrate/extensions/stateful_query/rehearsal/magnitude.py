"""Compute the magnitude of a floating-point sum: the sum of the absolute values of its terms.

The rounding error of a sum depends on the magnitude. If the terms have different signs, the
magnitude is larger than the sum's absolute value and must be computed from the records. Only one
magnitude is computed for each key, over all floating-point columns and all windows of the key. It
is an upper bound for each column in each window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, FloatType

from migrate.extensions.stateful_query.transfer.flat_state import SparkState
from migrate.extensions.stateful_query.transfer.proof import key_order
from migrate.extensions.stateful_query.transfer.rows import StateRows
from migrate.model.column_types import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_magnitudes(
    state: SparkState, rows: Sequence[StateRows], events: Sequence[DataFrame]
) -> SparkState:
    """Return the Spark state with a ``magnitude`` column, if the column can be computed.

    The query starts with an initial sum ``S`` and adds the records. Let ``R`` be the sum of the
    records' absolute values, and ``T`` the final sum. The magnitude is ``|S| + R``, which is at
    most ``|T| + 2 R``, because ``|S|`` is at most ``|T| + R``. The column contains ``2 R``, and
    ``compare`` adds ``|T|``.
    """
    if len(rows) != 1 or len(events) != 1:
        return state
    (stream,), (frame,) = rows, events
    types = {field.name: field.dataType for field in frame.schema.fields}
    summed = {
        value.column
        for value in stream.values
        if value.kind == "sum"
        and isinstance(types.get(value.column or ""), (DoubleType, FloatType))
    }
    if not summed or not set(stream.keys) <= types.keys():
        return state
    keys = [stream.keys[number] for number in key_order(stream.keys, state)]
    absolute = [
        F.coalesce(F.abs(F.col(quoted(name)).cast("double")), F.lit(0.0))
        for name in sorted(filter(None, summed))
    ]
    total = absolute[0]
    for part in absolute[1:]:
        total = total + part
    sums = frame.groupBy(
        *(F.col(quoted(name)).alias(f"of k{number}") for number, name in enumerate(keys))
    ).agg((2 * F.sum(total)).alias("magnitude"))
    same = F.lit(True)
    for number in range(len(keys)):
        same &= F.col(f"k{number}").eqNullSafe(F.col(f"`of k{number}`"))
    columns = [F.col(name) for name in state.frame.columns]
    magnitude = F.coalesce("magnitude", F.lit(0.0)).alias("magnitude")
    return replace(
        state, frame=state.frame.join(sums, same, "left_outer").select(*columns, magnitude)
    )
