"""The state of one operator of Spark, flat: each part of a key and of a value is a column.

Source: StateStoreSaveExec, SessionWindowStateStoreSaveExec
(StreamingSessionWindowStateManagerImplV1), StreamingAggregationStateManagerImplV2,
StreamingDeduplicateExec @ Spark 3.5.1, 4.0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, TimestampType

from migrate.model.errors import Refused
from migrate.model.wording import counted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The names of operators in Spark's state metadata.
AGGREGATE, SESSIONS, DEDUPLICATE = "stateStoreSave", "sessionWindowStateStoreSaveExec", "dedupe"
JOIN, DEDUPLICATE_WITHIN, LIMIT = "symmetricHashJoin", "dedupeWithinWatermark", "globalLimit"
# Operators whose values rows can say; of others the user says what is expected.
PROVABLE_OPERATORS = {AGGREGATE, SESSIONS, DEDUPLICATE}
_DESCRIPTIONS = {
    JOIN: "a join of two streams",
    DEDUPLICATE_WITHIN: "dropDuplicatesWithinWatermark, which keeps until when it keeps",
    LIMIT: "a limit",
}
# Fields of a value that are none of the query's.
NO_VALUE, _IS_EMPTY = "__dummy__", "isEmpty"


class Field(NamedTuple):
    """A field of a key or of a value.

    Attributes:
        name: Spark's name.
        type: its type.
        of_an_average: whether it is the sum or the count of an average.
    """

    name: str
    type: DataType
    of_an_average: bool = False

    def __str__(self) -> str:
        average = " of an average" if self.of_an_average else ""
        return f"{self.name} {self.type.simpleString()}{average}"


@dataclass(frozen=True, slots=True)
class SparkState:
    """The state of one operator, flat.

    Its columns are ``k0``, ``k1``… of the key, ``window`` where it has one, and ``v0``, ``v1``….
    """

    operator: str
    frame: DataFrame
    keys: tuple[Field, ...]
    window: bool
    values: tuple[Field, ...]

    @property
    def description(self) -> str:
        """The operator in words."""
        return _DESCRIPTIONS.get(self.operator, self.operator)

    @property
    def key_columns(self) -> list[str]:
        """The names of the key's columns, a window's among them."""
        return [f"k{number}" for number in range(len(self.keys))] + ["window"] * self.window

    @property
    def value_columns(self) -> list[str]:
        return [f"v{number}" for number in range(len(self.values))]


class _Part(NamedTuple):
    """A field of the stored key or value, and its path in the numbered structs."""

    path: str
    name: str
    type: DataType


def check_one_operator(operators: Sequence[str]) -> str:
    """Return the query's only stateful operator.

    Raises:
        Refused: it has none, or several.
    """
    if len(operators) != 1:
        names = sorted({_DESCRIPTIONS.get(name, name) for name in operators})
        raise Refused(
            f"the query keeps state in {counted(len(operators), 'store')} "
            f"({', '.join(names) or 'none'}); one can be primed"
        )
    return operators[0]


def flatten(operator: str, state: DataFrame, key: StructType, value: StructType) -> SparkState:
    """Return a state with a column for each part.

    Args:
        operator: the operator.
        state: the columns ``key`` and ``value``, structs with the fields ``_0``, ``_1``….
        key: the stored schema of the key.
        value: the stored schema of the value.
    """
    key_parts = _parts("key", key)
    value_parts = _parts("value", value)
    # A DECIMAL sum that has added nothing up is stored as 0 with a flag after it.
    flags = {
        value_parts[number - 1].path: part.path
        for number, part in enumerate(value_parts)
        if part.name == _IS_EMPTY
    }
    averages = _averages(value)
    if operator == SESSIONS:
        # The value has the whole group, the window among it.
        key_parts, value_parts = value_parts[: len(key_parts)], value_parts[len(key_parts) :]
    windows = [part for part in key_parts if is_window(part.type)]
    keys = [part for part in key_parts if part not in windows]
    values = [part for part in value_parts if part.name not in (NO_VALUE, _IS_EMPTY)]
    if len(windows) > 1:
        raise Refused("the query groups by several windows")
    columns = [F.col(part.path).alias(f"k{number}") for number, part in enumerate(keys)]
    for part in windows:
        bounds = (F.col(f"{part.path}.{bound}").alias(bound) for bound in ("start", "end"))
        columns.append(F.struct(*bounds).alias("window"))
    for number, part in enumerate(values):
        column: Column = F.col(part.path)
        if part.path in flags:
            column = F.when(~F.col(flags[part.path]), column)
        columns.append(column.alias(f"v{number}"))
    return SparkState(
        operator,
        state.select(*columns),
        tuple(Field(part.name, part.type) for part in keys),
        bool(windows),
        tuple(Field(part.name, part.type, part.path in averages) for part in values),
    )


def _parts(column: str, schema: StructType) -> list[_Part]:
    return [
        _Part(f"{column}._{number}", field.name, field.dataType)
        for number, field in enumerate(schema.fields)
    ]


def _averages(value: StructType) -> set[str]:
    """Return the fields that an average keeps: a sum, and after it a count that may be NULL.

    The count of ``count`` may not be NULL (Average, Count: ``aggBufferAttributes`` @ Spark 3.5.1,
    4.0.0), which distinguishes an average from a sum and a count beside each other.
    """
    return {
        f"value._{part}"
        for number, field in enumerate(value.fields)
        if field.name == "count" and field.nullable
        if number > 0 and value.fields[number - 1].name == "sum"
        for part in (number - 1, number)
    }


def is_window(type_: DataType) -> bool:
    """Return whether a type is Spark's window: a struct of start and end."""
    return isinstance(type_, StructType) and [
        (field.name, field.dataType) for field in type_.fields
    ] == [("start", TimestampType()), ("end", TimestampType())]
