"""The types of Avro values, created from an Avro schema.

In the docstrings, "read as" precedes the Python type that ``decoder.keyed_state.avro`` returns for
the values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class AvroKind(Enum):
    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class AvroScalar:
    """A primitive, with its logical type unless ``avro_schema`` ignores it.

    A decimal is read as Decimal, date as LocalDate, time-millis and time-micros as LocalTime,
    timestamp-* as Instant, and local-timestamp-* as LocalDateTime.
    """

    kind: AvroKind
    logical: str | None = None
    scale: int = 0
    precision: int | None = None  # the precision of a decimal, if the schema contains it


@dataclass(frozen=True, slots=True)
class AvroFixed:
    """A fixed, read as bytes, or as Decimal if its logical type is decimal."""

    name: str
    size: int
    scale: int | None = None
    precision: int | None = None


@dataclass(frozen=True, slots=True)
class AvroEnum:
    name: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """A record, read as a dict by field."""

    name: str
    fields: tuple[tuple[str, AvroType], ...]


@dataclass(frozen=True, slots=True)
class AvroReference:
    """A reference, by name, to a record, an enum, or a fixed; a record may contain itself."""

    name: str


@dataclass(frozen=True, slots=True)
class AvroUnion:
    """A union, read as the value of its branch."""

    branches: tuple[AvroType, ...]


@dataclass(frozen=True, slots=True)
class AvroArray:
    element: AvroType


@dataclass(frozen=True, slots=True)
class AvroMap:
    """A map, read as Pairs whose keys are str."""

    value: AvroType


AvroType = (
    AvroScalar | AvroFixed | AvroEnum | AvroRecord | AvroReference | AvroUnion | AvroArray | AvroMap
)
