"""The column types in tables of keyed state and of scans.

A column type has a DDL string (in the format of Spark's ``DataType.sql``), an Arrow type, and a
function that converts a value for Arrow. The pyarrow extra is imported only for Arrow output.
Listing tables and writing them as CSV do not require pyarrow.

Source: DataType.sql, QuotingUtils.quoteIfNeeded @ Spark 4.0.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A type without nested types; ``convert`` is None if Arrow accepts the values unchanged."""

    ddl: str
    convert: Convert | None = None


@dataclass(frozen=True, slots=True)
class DecimalOf:
    precision: int
    scale: int

    @property
    def ddl(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    @property
    def convert(self) -> Convert | None:
        return None


@dataclass(frozen=True, slots=True)
class ArrayOf:
    element: ColumnType

    @property
    def ddl(self) -> str:
        return f"ARRAY<{self.element.ddl}>"

    @property
    def convert(self) -> Convert | None:
        convert = self.element.convert
        if convert is None:
            return None
        return lambda value: [None if part is None else convert(part) for part in value]


@dataclass(frozen=True, slots=True)
class MapOf:
    key: ColumnType
    value: ColumnType

    @property
    def ddl(self) -> str:
        return f"MAP<{self.key.ddl}, {self.value.ddl}>"

    @property
    def convert(self) -> Convert | None:
        if self.key.convert is None and self.value.convert is None:
            return None
        convert_key, convert_value = _nullable_convert(self.key), _nullable_convert(self.value)
        return lambda pairs: [(convert_key(key), convert_value(value)) for key, value in pairs]


@dataclass(frozen=True, slots=True)
class StructOf:
    fields: tuple[tuple[str, ColumnType], ...]

    @property
    def ddl(self) -> str:
        fields = ", ".join(f"{quoted(name)}: {type_.ddl}" for name, type_ in self.fields)
        return f"STRUCT<{fields}>"

    @property
    def convert(self) -> Convert | None:
        converts = {name: part.convert for name, part in self.fields if part.convert is not None}
        if not converts:
            return None

        def convert(value: Mapping[str, Any]) -> dict[str, Any]:
            converted = dict(value)
            for name, convert_part in converts.items():
                if (part := converted.get(name)) is not None:
                    converted[name] = convert_part(part)
            return converted

        return convert


@dataclass(frozen=True, slots=True)
class PairsOf(ArrayOf):
    """A map as an array of (key, value) structs, for keys that Spark maps do not support."""

    @property
    def convert(self) -> Convert:
        convert = self.element.convert or dict
        return lambda pairs: [convert({"key": key, "value": value}) for key, value in pairs]


ColumnType = Leaf | DecimalOf | ArrayOf | MapOf | StructOf

BOOLEAN, INT, BIGINT, STRING = map(Leaf, ("BOOLEAN", "INT", "BIGINT", "STRING"))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    type: ColumnType


def quoted(name: str) -> str:
    """Return a name in DDL format, in backticks if necessary."""
    return name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def _nullable_convert(type_: ColumnType) -> Convert:
    """Return a function that converts a value of this type and returns None for None."""
    convert = type_.convert
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)


def arrow_type(type_: ColumnType) -> pa.DataType:
    import pyarrow as pa

    match type_:
        case Leaf("TIMESTAMP"):
            return pa.timestamp("us", tz="UTC")  # Spark accepts only microseconds
        case Leaf(ddl):
            return pa.type_for_alias(_ALIASES[ddl])
        case DecimalOf(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayOf(element):
            return pa.list_(arrow_type(element))
        case MapOf(key, value):
            return pa.map_(arrow_type(key), arrow_type(value))
        case StructOf(fields):
            return pa.struct([(name, arrow_type(part)) for name, part in fields])


# Arrow type names, by the DDL of a leaf type.
_ALIASES = {
    "BOOLEAN": "bool",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BINARY": "binary",
    "VOID": "null",
    "DATE": "date32",
    "TIMESTAMP_NTZ": "timestamp[us]",
}


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(column.name, arrow_type(column.type)) for column in columns])


def arrow_array(column: Column, values: Sequence[Any]) -> pa.Array:
    """Return the values of a column as an Arrow array."""
    import pyarrow as pa

    convert = column.type.convert
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, arrow_type(column.type))
