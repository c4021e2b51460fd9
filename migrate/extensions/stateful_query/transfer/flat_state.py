"""Flatten the state of a Spark operator into one column per part of the key and the value.

Source: StateStoreSaveExec, SessionWindowStateStoreSaveExec
(StreamingSessionWindowStateManagerImplV1), StreamingAggregationStateManagerImplV2,
StreamingDeduplicateExec @ Spark 3.5.1, 4.0.0.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType, TimestampType

from migrate.extensions.stateful_query.catalog import (
    JOIN_STATE,
    NO_STATE_STORE,
    PROCESSOR_STATE,
    SEVERAL_STATE_STORES,
    SEVERAL_WINDOWS,
)
from migrate.model.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# The names of operators in Spark's state metadata.
AGGREGATE, SESSIONS, DEDUPLICATE = "stateStoreSave", "sessionWindowStateStoreSaveExec", "dedupe"
JOIN, DEDUPLICATE_WITHIN, LIMIT = "symmetricHashJoin", "dedupeWithinWatermark", "globalLimit"
# The operator name of a stateful processor starts with this prefix, in every language.
_PROCESSOR = "transformWithState"
# For these operators, the expected state is ``StateRows.expected`` by default. For other operators,
# the user must pass the expected state.
OPERATORS_WITH_COMPUTED_EXPECTATION = {AGGREGATE, SESSIONS, DEDUPLICATE}
_DESCRIPTIONS = {
    DEDUPLICATE_WITHIN: "dropDuplicatesWithinWatermark (with the expiry of each key)",
    LIMIT: "a limit",
}
# Fields that Spark adds to stored values.
NO_VALUE, _IS_EMPTY = "__dummy__", "isEmpty"


class Field(NamedTuple):
    """A field of a key or of a value.

    Attributes:
        name: Spark's name for the field.
        in_average: True if the field is the sum or the count of an average.
        path: the path of the stored field, such as ``key._0``; stored fields are numbered.
    """

    name: str
    type: DataType
    in_average: bool = False
    path: str = ""

    def __str__(self) -> str:
        average = " of an average" if self.in_average else ""
        return f"{self.name} {self.type.simpleString()}{average}"


@dataclass(frozen=True, slots=True)
class SparkState:
    """The flat state of one operator.

    Attributes:
        operator: the operator's name in the Spark state metadata.
        frame: the state. Its columns are ``k0``, ``k1``… for the key, ``window`` if the key has a
            window, and ``v0``, ``v1``… for the value.
        keys: the fields of the key, without the window.
        has_window: True if the key has a window.
        values: the fields of the value.
    """

    operator: str
    frame: DataFrame
    keys: tuple[Field, ...]
    has_window: bool
    values: tuple[Field, ...]

    @property
    def description(self) -> str:
        return _DESCRIPTIONS.get(self.operator, self.operator)

    @property
    def key_columns(self) -> list[str]:
        """Return the names of the key columns, including the window column."""
        return [f"k{number}" for number in range(len(self.keys))] + ["window"] * self.has_window

    @property
    def value_columns(self) -> list[str]:
        return [f"v{number}" for number in range(len(self.values))]


def only_operator(operators: Sequence[str]) -> str:
    """Return the query's only stateful operator.

    Raises:
        Refused: the query has no stateful operator, has several stateful operators, or has an
            operator that cannot be primed.
    """
    if any(name.startswith(_PROCESSOR) for name in operators):
        raise Refused(PROCESSOR_STATE())
    # A join may have just one store (state format 3, Spark 4.1), so check for it by name.
    if JOIN in operators:
        raise Refused(JOIN_STATE())
    if not operators:
        raise Refused(NO_STATE_STORE())
    if len(operators) > 1:
        names = sorted({_DESCRIPTIONS.get(name, name) for name in operators})
        raise Refused(SEVERAL_STATE_STORES(stores=len(operators), operators=names))
    return operators[0]


def flatten(
    operator: str, state: DataFrame, key: StructType, value: StructType, *, key_in_value: bool
) -> SparkState:
    """Return a flat state, in which each part of the key and of the value is a column.

    Args:
        operator: the operator's name in the Spark state metadata.
        state: the state in the ``key`` and ``value`` columns, which are structs with the fields
            ``_0``, ``_1``….
        key: the stored schema of the key.
        value: the stored schema of the value.
        key_in_value: True if the stored value starts with all fields of the grouping key. Sessions
            are stored this way, and aggregates in state format 1.

    Raises:
        Refused: the key has several windows.
    """
    keys, values = _fields("key", key), _fields("value", value, _average_fields(value))
    # If a DECIMAL sum has no values, Spark stores 0, and sets a flag in the next field.
    flags = {
        values[number - 1].path: field.path
        for number, field in enumerate(values)
        if field.name == _IS_EMPTY
    }
    if key_in_value:
        keys, values = values[: len(keys)], values[len(keys) :]
    windows = [field for field in keys if is_window(field.type)]
    keys = [field for field in keys if field not in windows]
    values = [field for field in values if field.name not in (NO_VALUE, _IS_EMPTY)]
    if len(windows) > 1:
        raise Refused(SEVERAL_WINDOWS(windows=len(windows)))
    columns = [F.col(field.path).alias(f"k{number}") for number, field in enumerate(keys)]
    for field in windows:
        bounds = (F.col(f"{field.path}.{bound}").alias(bound) for bound in ("start", "end"))
        columns.append(F.struct(*bounds).alias("window"))
    for number, field in enumerate(values):
        column: Column = F.col(field.path)
        if field.path in flags:
            column = F.when(~F.col(flags[field.path]), column)
        columns.append(column.alias(f"v{number}"))
    return SparkState(operator, state.select(*columns), tuple(keys), bool(windows), tuple(values))


def _fields(
    column: str, schema: StructType, averages: Collection[int] = frozenset()
) -> list[Field]:
    return [
        Field(field.name, field.dataType, number in averages, f"{column}._{number}")
        for number, field in enumerate(schema.fields)
    ]


def _average_fields(value: StructType) -> set[int]:
    """Return the indexes of the fields that belong to an average.

    An average consists of two fields: a sum, and then a count. This count is nullable, unlike the
    count of the ``count`` aggregate (Average, Count: ``aggBufferAttributes`` @ Spark 3.5.1, 4.0.0).
    """
    return {
        part
        for number, field in enumerate(value.fields)
        if field.name == "count" and field.nullable
        if number > 0 and value.fields[number - 1].name == "sum"
        for part in (number - 1, number)
    }


def is_window(type_: DataType) -> bool:
    """Return whether a type is the Spark window type, a struct of start and end."""
    return isinstance(type_, StructType) and [
        (field.name, field.dataType) for field in type_.fields
    ] == [("start", TimestampType()), ("end", TimestampType())]
