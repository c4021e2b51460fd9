"""Bound the rounding error of floating-point sums.

Spark and Flink add the same numbers in different orders, so their sums may differ in the last
digits. For every order, the computed sum of ``n`` numbers differs from the exact sum by at most
``(n - 1) u / (1 - (n - 1) u)`` times the sum of the absolute values (Higham, Accuracy and Stability
of Numerical Algorithms, 2002, section 4.2). ``u`` is ``2**-53`` for DOUBLE additions and ``2**-24``
for FLOAT additions. Two computed sums differ by at most twice this bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.types import DoubleType, FloatType

from migrate.extensions.stateful_query.transfer.flat_state import Field

if TYPE_CHECKING:
    from collections.abc import Sequence

# The largest relative error of one DOUBLE addition: half the distance from 1.0 to the next DOUBLE.
UNIT = 2.0**-53
# The largest relative error of one FLOAT addition. Flink adds FLOAT values as FLOAT, but Spark adds
# them as DOUBLE.
SINGLE_UNIT = 2.0**-24
# The names of Spark's state fields whose values depend on the order of addition: Sum, Average,
# CentralMomentAgg, Covariance, Corr @ Spark 4.0.0. Minima and maxima do not depend on the order.
_ADDED = frozenset({"sum", "avg", "m2", "m3", "m4", "xAvg", "yAvg", "ck", "xMk", "yMk"})


def rounding_error(additions: int, magnitude: float) -> float:
    """Return the largest possible difference between two sums of the same numbers.

    The sums add the numbers in different orders.

    Args:
        additions: the number of additions, which is one less than the number of added numbers.
        magnitude: the sum of the numbers' absolute values.
    """
    relative = additions * UNIT
    return 2 * relative / (1 - relative) * magnitude


@dataclass(frozen=True, slots=True)
class Rounding:
    """The rule for comparing sums of floating-point numbers.

    Attributes:
        additions: the largest number of additions to one sum that Spark or Flink performed. This is
            the number of records between the checkpoints.
        float_error: the allowed difference, relative to the sum of the absolute values; None to
            compute the difference from the number of additions.
        all_fields: True to compare every floating-point field as a sum. False to compare a field as
            a sum only if its name shows that a Spark aggregate computes it by addition.
        singles: the indexes of the fields that are DOUBLE in Spark but that Flink adds as FLOAT.
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
            magnitude: an SQL expression for the sum of the absolute values.
            count: an SQL expression for the number of added values, or None if unknown.
        """
        if self.float_error is not None:
            return f"{self.float_error!r}D * {magnitude}"
        additions = f"{self.additions}L" if count is None else f"least({self.additions}L, {count})"
        is_single = number in self.singles or isinstance(field.type, FloatType)
        relative = f"({additions} * {SINGLE_UNIT if is_single else UNIT!r}D)"
        return f"2 * {relative} / (1 - {relative}) * {magnitude}"
