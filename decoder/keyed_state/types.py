"""The types of keyed state: a small closed set, made from serializer snapshots.

A type is both the layout and the meaning of a value. Each stands for one of Flink's serializers, or
a few that write the same bytes, named in ``snapshots`` and ``logical_types``. The docstrings say
which Python value the decoder returns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """The kinds of values without parts; the comments name the Python values."""

    BOOLEAN = auto()  # bool
    BYTE = auto()  # int, as the next three
    SHORT = auto()
    INT = auto()
    LONG = auto()
    FLOAT = auto()  # float
    DOUBLE = auto()  # float
    CHAR = auto()  # str of one UTF-16 unit
    STRING = auto()  # str; an unpaired surrogate becomes U+FFFD, here and in CHAR
    STRING_VALUE = auto()  # as STRING, but never null: org.apache.flink.types.StringValue
    BIG_INTEGER = auto()  # Decimal without digits after the point
    BIG_DECIMAL = auto()  # Decimal
    DATE = auto()  # Instant
    SQL_DATE = auto()  # SqlDate, an Instant
    SQL_TIME = auto()  # SqlTime, an Instant
    SQL_TIMESTAMP = auto()  # Instant
    INSTANT = auto()  # Instant
    LOCAL_DATE = auto()  # LocalDate
    LOCAL_TIME = auto()  # LocalTime
    LOCAL_DATE_TIME = auto()  # LocalDateTime
    VOID = auto()  # None, as the next three
    NULL_VALUE = auto()
    VOID_NAMESPACE = auto()
    GLOBAL_WINDOW = auto()
    TIME_WINDOW = auto()  # {"start", "end"}: int, epoch milliseconds
    COUNT_WINDOW = auto()  # {"id"}: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without parts."""

    kind: Kind
    mutable: bool = False  # an org.apache.flink.types.Value: written alike, of another hash code


@dataclass(frozen=True, slots=True)
class PrimitiveArray:
    """A boolean[], int[], …, String[]: ``i32 n``, n elements. A list; ``bytes`` for byte[]."""

    element: Kind


@dataclass(frozen=True, slots=True)
class JavaEnum:
    """An enum: ``i32`` ordinal of a constant in the snapshot. The constant's name."""

    class_name: str
    constants: tuple[str, ...]


class Field(NamedTuple):
    """A part of a struct."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple, or a value of CompositeSerializer: its fields, null only if their types allow it.

    A dict by name; a tuple's fields are f0, f1, and so on.
    """

    class_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An org.apache.flink.types.Row. A dict of f0, f1, …: its snapshot has no names."""

    fields: tuple[Type, ...]
    has_kind: bool  # two bits of a RowKind before the null bits


@dataclass(frozen=True, slots=True)
class Either:
    """An Either. {"left", "right"}, one of them None."""

    left: Type
    right: Type


@dataclass(frozen=True, slots=True)
class TaggedUnion:
    """CoGroupedStreams' element: {"one", "two"}, one of them None."""

    one: Type
    two: Type


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A record in a window with an evictor. {"timestamp", "value"}.

    ``u8`` 0 and ``i64`` epoch milliseconds, or 1 without a timestamp; the value.
    """

    value: Type


@dataclass(frozen=True, slots=True)
class List:
    """A List: ``i32 n``, n elements. A list."""

    element: Type


@dataclass(frozen=True, slots=True)
class NullableList:
    """A Set or T[]: as List, with a byte before each element. A list.

    The byte of a null element is ``null``: 1 in a Set, 0 in a T[].
    """

    element: Type
    null: int


@dataclass(frozen=True, slots=True)
class LinkedList:
    """A LinkedList: ``i32 n``, null bits, the elements that are not null. A list."""

    element: Type
    has_nulls: bool


@dataclass(frozen=True, slots=True)
class Map:
    """A Map: ``i32 n`` x {key, ``bool valueIsNull``, value}. Pairs."""

    key: Type
    value: Type
    null_keys: bool = False  # a ``bool keyIsNull`` before each key: SQL's NullAwareMapSerializer


@dataclass(frozen=True, slots=True)
class Nullable:
    """A nullable value: ``bool null``, then the value or its padding."""

    type: Type
    padding: int


# The prefix of the name of a field that is no longer in its class
# (PojoSerializerSnapshotData.getDummyNameForMissingField @ Flink 2.2.0); no Java name holds a "-".
MISSING_FIELD = "missing-field-at-"


@dataclass(frozen=True, slots=True)
class Pojo:
    """A POJO or a Java record: flags, then the fields. A dict of its own class's fields.

    A field that the class no longer had when it was written (``MISSING_FIELD``) is left out.
    """

    class_name: str
    fields: tuple[Field, ...]
    registered: tuple[Field, ...] = ()  # subclasses by tag: class name, type
    subclasses: tuple[Field, ...] = ()  # subclasses by class name


@dataclass(frozen=True, slots=True)
class Ttl:
    """A value with TTL: ``i64 lastAccess`` in epoch milliseconds, value."""

    type: Type


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer: ``i64 timestamp`` with its sign bit flipped, key, namespace."""

    key: Type
    namespace: Type


# -- Avro ----------------------------------------------------------------------------------------


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
    """A primitive, with its logical type if Avro's specification has it for this primitive.

    decimal: Decimal; date: LocalDate; time-millis, time-micros: LocalTime; timestamp-*: Instant;
    local-timestamp-*: LocalDateTime.
    """

    kind: AvroKind
    logical: str | None = None
    scale: int = 0
    precision: int | None = None  # of a decimal, if the schema has it


@dataclass(frozen=True, slots=True)
class AvroFixed:
    """A fixed. bytes, or Decimal."""

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
    """A record. A dict by field."""

    name: str
    fields: tuple[tuple[str, AvroType], ...]


@dataclass(frozen=True, slots=True)
class AvroReference:
    """A reference to a record, enum or fixed by name, also within its own definition."""

    name: str


@dataclass(frozen=True, slots=True)
class AvroUnion:
    """A union. The value of its branch."""

    branches: tuple[AvroType, ...]


@dataclass(frozen=True, slots=True)
class AvroArray:
    element: AvroType


@dataclass(frozen=True, slots=True)
class AvroMap:
    """A map. Pairs, with keys of text."""

    value: AvroType


AvroType = (
    AvroScalar | AvroFixed | AvroEnum | AvroRecord | AvroReference | AvroUnion | AvroArray | AvroMap
)


@dataclass(frozen=True, slots=True)
class Avro:
    """A value of AvroSerializer with a schema, not in Avro's own binary form."""

    class_name: str
    schema: AvroType


# -- SQL -----------------------------------------------------------------------------------------


class SqlKind(Enum):
    """A logical type without parameters that change its bytes."""

    BOOLEAN = auto()  # bool
    TINYINT = auto()  # int
    SMALLINT = auto()
    INT = auto()
    BIGINT = auto()
    FLOAT = auto()  # float
    DOUBLE = auto()
    STRING = auto()  # str
    BYTES = auto()  # bytes
    DATE = auto()  # LocalDate
    TIME = auto()  # LocalTime
    INTERVAL_MONTHS = auto()  # INTERVAL YEAR TO MONTH: int, months
    INTERVAL_MILLIS = auto()  # INTERVAL DAY TO SECOND: int, milliseconds
    RAW = auto()  # bytes, as its own serializer wrote them
    NULL = auto()  # None


@dataclass(frozen=True, slots=True)
class SqlScalar:
    kind: SqlKind


@dataclass(frozen=True, slots=True)
class SqlDecimal:
    """A DECIMAL. Decimal."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class SqlTimestamp:
    """A TIMESTAMP. LocalDateTime; Instant for TIMESTAMP_LTZ."""

    precision: int
    local_zone: bool


@dataclass(frozen=True, slots=True)
class SqlArray:
    element: SqlType


@dataclass(frozen=True, slots=True)
class SqlMap:
    """A MAP, or a MULTISET, whose values are counts. Pairs."""

    key: SqlType
    value: SqlType


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A ROW. A dict by field; a state's own row has no names: f0, f1, and so on."""

    fields: tuple[tuple[str, SqlType], ...]


SqlType = SqlScalar | SqlDecimal | SqlTimestamp | SqlArray | SqlMap | SqlRow


@dataclass(frozen=True, slots=True)
class Sql:
    """A value of SQL by itself, in the form of InternalSerializers' serializer of its type."""

    type: SqlType


# -- what is not read, or not by its type alone --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kryo:
    """A value that Kryo wrote.

    Attributes:
        class_name: a class that ``kryo`` knows; the type of another class is Unreadable.
        registered: the classes that were registered after Flink's own.
        replaced: the classes that the job registered with serializers of its own.
        version: 2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5.6 (Flink 2.x).
    """

    class_name: str
    registered: tuple[str, ...]
    replaced: frozenset[str]
    version: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value whose layout only its serializer knows.

    ``field`` is its path in the fields around it: names with dots between them.
    """

    class_name: str
    reason: str
    field: str = ""


Type = (
    Scalar
    | PrimitiveArray
    | JavaEnum
    | Struct
    | Row
    | Either
    | TaggedUnion
    | StreamRecord
    | List
    | NullableList
    | LinkedList
    | Map
    | Nullable
    | Pojo
    | Ttl
    | Timer
    | Avro
    | Sql
    | Kryo
    | Unreadable
)


def parts(type_: Type) -> tuple[Type, ...]:
    """Return the types inside a type; of a POJO without its subclasses, which may never occur."""
    match type_:
        case Struct(_, fields) | Pojo(_, fields):
            return tuple(field.type for field in fields)
        case Row(types):
            return types
        case Either(left, right) | TaggedUnion(left, right) | Map(left, right) | Timer(left, right):
            return (left, right)
        case (
            List(inner)
            | NullableList(inner)
            | LinkedList(inner)
            | Nullable(inner)
            | StreamRecord(inner)
            | Ttl(inner)
        ):
            return (inner,)
        case _:
            return ()


def unreadable(type_: Type) -> Unreadable | None:
    """Return the first part of a type whose values cannot be read, or None."""
    match type_:
        case Unreadable():
            return type_
        case Struct(_, fields) | Pojo(_, fields):
            for name, part in fields:
                if inner := unreadable(part):
                    return replace(inner, field=f"{name}.{inner.field}".rstrip("."))
            return None
        case _:
            return next((inner for part in parts(type_) if (inner := unreadable(part))), None)
