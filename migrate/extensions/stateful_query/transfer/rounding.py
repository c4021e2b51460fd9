"""Bound the rounding error of floating-point sums.

Spark and Flink add the same numbers in different orders, so their sums may differ in the last
digits. Regardless of the order of addition, the computed sum of n numbers differs from the exact
sum by a bounded amount. The bound is ``(n - 1) u / (1 - (n - 1) u)`` times the sum of the absolute
values, with ``u = 2**-53`` (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section
4.2). Two sums differ by at most twice this bound. For FLOAT additions, ``u = 2**-24``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DoubleType, FloatType

from migrate.extensions.stateful_query.transfer.flat_state import Field

if TYPE_CHECKING:
    from collections.abc import Sequence

# Half the distance from 1.0 to the next DOUBLE, the largest relative error of one addition.
UNIT = 2.0**-53
# The same for FLOAT. Flink adds FLOAT values as FLOAT, but Spark adds them as DOUBLE.
SINGLE_UNIT = 2.0**-24
# Spark's names for the fields that depend on the order of addition: Sum, Average, CentralMomentAgg,
# Covariance, Corr @ Spark 4.0.0. Minima and maxima are exact.
_ADDED = frozenset({"sum", "avg", "m2", "m3", "m4", "xAvg", "yAvg", "ck", "xMk", "yMk"})


def rounding_error(additions: int, magnitude: float) -> float:
    """Return the largest difference between sums of the same numbers in different orders.

    Args:
        additions: the number of additions, which is one less than the number of added numbers.
        magnitude: the sum of the numbers' absolute values.
    """
    relative = additions * UNIT
    return 2 * relative / (1 - relative) * magnitude


@dataclass(frozen=True, slots=True)
class Rounding:
    """The comparison of sums of floating-point numbers.

    Attributes:
        additions: the largest number of additions that Spark and Flink each performed separately,
            which is the number of records between the checkpoints.
        float_error: the allowed difference, relative to the sum of the absolute values; None to
            compute it from the number of additions.
        all_fields: True if all floating-point fields are such sums; False if only the fields that
            Spark aggregates add up are such sums.
        singles: the indexes of the DOUBLE fields that Flink adds up as FLOAT.
    """

    additions: int
    float_error: float | None = None
    all_fields: bool = False
    singles: frozenset[int] = frozenset()

    def fields(self, fields: Sequence[Field]) -> list[int]:
        """Return the indexes of the fields whose values may differ by a rounding error."""
        return [
            number
            for number, field in enumerate(fields)
            if isinstance(field.type, (DoubleType, FloatType))
            and (self.all_fields or field.name in _ADDED)
        ]

    def allowed(self, number: int, field: Field, magnitude: str, count: str | None) -> str:
        """Return an SQL expression for the largest difference that is not an error.

        Args:
            number: the index of the field.
            field: the field.
            magnitude: an expression for the sum of the absolute values.
            count: an expression for the number of values, if there is one.
        """
        if self.float_error is not None:
            return f"{self.float_error!r}D * {magnitude}"
        additions = f"{self.additions}L" if count is None else f"least({self.additions}L, {count})"
        is_single = number in self.singles or isinstance(field.type, FloatType)
        relative = f"({additions} * {SINGLE_UNIT if is_single else UNIT!r}D)"
        return f"2 * {relative} / (1 - {relative}) * {magnitude}"
