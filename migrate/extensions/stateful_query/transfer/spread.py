"""Compute the values in the rows that represent one state entry.

A query with aggregates computes every value in its state, such as a sum, from rows. Each entry of
the Flink state therefore becomes several rows. The aggregates over these rows are equal to the
values of the entry.

The sum of an integer or DECIMAL column is divided evenly among the rows, so that each row's value
fits into the column's type. A floating-point sum is not divided: the first row has the entire sum.
The minimum and the maximum get separate rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DecimalType, DoubleType, FloatType, LongType, StringType

from migrate.extensions.stateful_query.transfer.exact_cast import WHOLE, cast_exactly
from migrate.model.column_types import quoted
from migrate.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROUNDED = (FloatType, DoubleType)
_UNSCALED = "DECIMAL(38,0)"
_OWN_ROWS = "create the rows yourself, and pass the expected Spark state as expected"


@dataclass(frozen=True, slots=True)
class AggregateValue:
    """One of the aggregate values that each entry of the Flink state contains.

    Attributes:
        kind: ``count``, ``sum``, ``min``, or ``max``; the field in the Spark state has the same
            name.
        column: the aggregated column of the stream; None for ``count(*)``.
        in_average: True if the value is the sum or the count of an average.
    """

    kind: str
    column: str | None = None
    in_average: bool = False

    def __str__(self) -> str:
        return f"{self.kind} of {self.column or 'records'}"


@dataclass(frozen=True, slots=True)
class ColumnAggregates:
    """The aggregate values that Flink stores for one column of the stream.

    Attributes:
        by_kind: for each kind of value (``count``, ``sum``, ``min``, ``max``), the name of the
            column with this value in the entries.
    """

    column: str
    type: DataType
    by_kind: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.column} {self.type.simpleString()}"

    @property
    def extremes(self) -> list[str]:
        """Return the columns of the minimum and of the maximum, if they exist."""
        return [self.by_kind[kind] for kind in ("min", "max") if kind in self.by_kind]

    @property
    def value_count(self) -> str:
        """Return an expression for the number of rows with a value, the first rows of an entry."""
        return f"coalesce({self.by_kind['count']}, 0)" if "count" in self.by_kind else "n"

    @property
    def value(self) -> str:
        """Return the name of the column that ``add_value`` adds."""
        return f"value of {self.column}"

    @property
    def scale(self) -> int:
        return self.type.scale if isinstance(self.type, DecimalType) else 0

    def unscaled(self, part: str) -> str:
        """Return an expression for ``part`` without a decimal point: 150 for 1.50 with scale 2.

        ``part`` is the name of an entry column that contains a sum, minimum, or maximum.
        """
        return f"CAST({part} * {10**self.scale}BD AS {_UNSCALED})"


def type_of(value: AggregateValue, types: Mapping[str, DataType]) -> DataType:
    """Return the type of a value; for an exact sum, this is a DECIMAL with 38 digits."""
    if value.kind == "count" or value.column is None:
        return LongType()
    type_ = types[value.column]
    if value.kind == "sum" and isinstance(type_, (*WHOLE, DecimalType)):
        return DecimalType(38, type_.scale if isinstance(type_, DecimalType) else 0)
    return type_


def group_by_column(
    types: Mapping[str, DataType], values: Sequence[AggregateValue]
) -> list[ColumnAggregates]:
    """Group the values by column; if a column has several values of a kind, use the first."""
    has_row_count = AggregateValue("count") in values
    columns: dict[str, ColumnAggregates] = {}
    for number, value in enumerate(values):
        if value.column is not None:
            new = ColumnAggregates(value.column, types[value.column])
            columns.setdefault(value.column, new).by_kind.setdefault(value.kind, f"v{number}")
    for column in columns.values():
        if "sum" not in column.by_kind:
            continue
        if not isinstance(column.type, (*WHOLE, *_ROUNDED, DecimalType)):
            raise UsageError(
                f"column {column} is not a number, so its sum cannot be computed; remove {column} "
                "from `sums`"
            )
        if column.extremes and isinstance(column.type, _ROUNDED):
            raise UsageError(
                f"{column}: the sum would be rounded, because the column also has a minimum or a "
                f"maximum; {_OWN_ROWS}"
            )
        if column.extremes and not (has_row_count or "count" in column.by_kind):
            raise UsageError(
                f"{column}: the sum requires the number of records, because the column also has a "
                f"minimum or a maximum; pass `count` or `counts`, or {_OWN_ROWS}"
            )
    return list(columns.values())


def row_count(values: Sequence[AggregateValue], columns: Sequence[ColumnAggregates]) -> str:
    """Return an expression for the number of rows that an entry becomes.

    This number is the entry's ``count(*)``. Without ``count(*)``, it is the smallest number of rows
    that can contain all values.
    """
    if values and values[0] == AggregateValue("count"):
        return "v0"
    counts = [column.by_kind["count"] for column in columns if "count" in column.by_kind]
    rows = max([1, *(len(column.extremes) for column in columns)])
    return f"greatest({', '.join([f'{rows}L', '0L', *counts])})"


def divide_sum(entries: DataFrame, column: ColumnAggregates) -> DataFrame:
    """Add columns with the quotient and the remainder of a sum that is divided among rows.

    ``add_value`` puts the minimum and the maximum into the first rows of an entry, and the quotient
    into each of the other rows. The remainder r is less than the number of these other rows, so
    ``add_value`` adds 1 to each of the first r of them. All numbers are unscaled (see
    ``unscaled``). A floating-point sum is not divided.
    """
    if "sum" not in column.by_kind or isinstance(column.type, _ROUNDED):
        return entries
    extremes = [column.unscaled(extreme) for extreme in column.extremes]
    rest, remainder = quoted(f"rest of {column.column}"), quoted(f"remainder of {column.column}")
    others = f"CAST(greatest({column.value_count} - {len(extremes)}, 1) AS {_UNSCALED})"
    for name, expression in (
        (rest, " - ".join([column.unscaled(column.by_kind["sum"]), *extremes])),
        (remainder, f"pmod({rest}, {others})"),
        (quoted(f"quotient of {column.column}"), f"({rest} - {remainder}) / {others}"),
    ):
        entries = entries.withColumn(name.strip("`"), F.expr(f"CAST({expression} AS {_UNSCALED})"))
    return entries


def add_value(rows: DataFrame, column: ColumnAggregates) -> DataFrame:
    """Add a column with the value for row ``i`` of an entry, in the type of the stream's column."""
    extremes, total = column.extremes, column.by_kind.get("sum")
    if total is None:
        value = f"IF(i = 0, {extremes[0]}, {extremes[-1]})" if extremes else _any_value(column.type)
    elif isinstance(column.type, _ROUNDED):
        # The first row gets the entire sum, and the other rows get 0, so that nothing is rounded.
        zero = f"CAST(0 AS {column.type.simpleString()})"
        value = f"IF({total} IS NULL OR i = 0, {total}, {zero})"
    else:
        quotient, remainder = (
            quoted(f"{name} of {column.column}") for name in ("quotient", "remainder")
        )
        cases = "".join(
            f" WHEN i = {number} THEN {column.unscaled(extreme)}"
            for number, extreme in enumerate(extremes)
        )
        value = (
            f"CASE WHEN {column.value_count} = 1 THEN {column.unscaled(total)}{cases} "
            f"ELSE {quotient} + IF(i - {len(extremes)} < {remainder}, 1, 0) END"
        )
        if scale := column.scale:
            # Do not divide by 10**scale, because Spark would keep only six digits after the decimal
            # point.
            value = (
                f"CAST(concat(CAST({value} AS {_UNSCALED}), 'E-{scale}') AS DECIMAL(38,{scale}))"
            )
    rows = rows.withColumn(column.value, F.expr(f"IF(i < {column.value_count}, {value}, NULL)"))
    return cast_exactly(rows, column.value, column.type, column.column)


def _any_value(type_: DataType) -> str:
    """Return an arbitrary value for a column of which Flink stores only the count."""
    if isinstance(type_, (*WHOLE, *_ROUNDED, DecimalType)):
        return f"CAST(0 AS {type_.simpleString()})"
    if isinstance(type_, StringType):
        return "''"
    raise UsageError(
        f"for a column of type {type_.simpleString()}, Flink stores only the count of its values, "
        f"and the values cannot be recreated from a count; {_OWN_ROWS}"
    )
