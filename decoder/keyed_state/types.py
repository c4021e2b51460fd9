"""What a keyed state's bytes stand for: a small closed set of types, made from snapshots.

A type tells both how a value is laid out and what it means. Each is a serializer of Flink's, or a
few that write the same bytes; the classes are named in ``snapshots`` and ``logical_types``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """A value without parts. The comments say what comes out of the decoder."""

    BOOLEAN = auto()  # bool
    BYTE = auto()  # int, as the next three
    SHORT = auto()
    INT = auto()
    LONG = auto()
    FLOAT = auto()  # float
    DOUBLE = auto()  # float
    CHAR = auto()  # str of one UTF-16 unit
    STRING = auto()  # str; an unpaired surrogate comes out as U+FFFD, here and in CHAR
    STRING_VALUE = auto()  # as STRING, but never null: org.apache.flink.types.StringValue
    BIG_INTEGER = auto()  # Decimal, of no digits behind the point
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
    """boolean[], int[], …, String[]: ``i32 n``, n elements. A list; ``bytes`` of byte[]."""

    element: Kind


@dataclass(frozen=True, slots=True)
class JavaEnum:
    """``i32`` ordinal into the constants of the snapshot. The constant's name."""

    class_name: str
    constants: tuple[str, ...]


class Field(NamedTuple):
    """A part of a struct."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """Fields one after another, none of them null unless its own type can tell: a tuple, and what
    CompositeSerializer writes. A dict by name; a tuple's fields are f0, f1, …"""

    class_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """org.apache.flink.types.Row. A dict of f0, f1, …: its snapshot keeps no names."""

    fields: tuple[Type, ...]
    has_kind: bool  # two bits of a RowKind before the null bits


@dataclass(frozen=True, slots=True)
class Either:
    """{"left", "right"}, one of them None."""

    left: Type
    right: Type


@dataclass(frozen=True, slots=True)
class TaggedUnion:
    """CoGroupedStreams' element: {"one", "two"}, one of them None."""

    one: Type
    two: Type


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """What a window with an evictor keeps: ``u8`` 0 and ``i64`` epoch milliseconds, or 1 without a
    timestamp; the value. {"timestamp", "value"}."""

    value: Type


@dataclass(frozen=True, slots=True)
class List:
    """``i32 n``, n elements. A list."""

    element: Type


@dataclass(frozen=True, slots=True)
class NullableList:
    """As List, each element after a byte that tells whether there is one: a Set (it is null: 1), a
    T[] (it is null: 0). A list."""

    element: Type
    null: int


@dataclass(frozen=True, slots=True)
class LinkedList:
    """``i32 n``, null bits, the elements that are not null. A list."""

    element: Type
    has_nulls: bool


@dataclass(frozen=True, slots=True)
class Map:
    """``i32 n`` x {key, ``bool valueIsNull``, value}. Pairs."""

    key: Type
    value: Type
    null_keys: bool = False  # a ``bool keyIsNull`` before each key: SQL's NullAwareMapSerializer


@dataclass(frozen=True, slots=True)
class Nullable:
    """``bool null``, then the value or its padding."""

    type: Type
    padding: int


# What the name begins with of a field that has gone from its class
# (PojoSerializerSnapshotData.getDummyNameForMissingField @ Flink 2.2.0); no Java name holds a "-".
MISSING_FIELD = "missing-field-at-"


@dataclass(frozen=True, slots=True)
class Pojo:
    """A POJO or a Java record: flags, then the fields. A dict of the fields of its own class; one
    that the class had no more when it was written (``MISSING_FIELD``) is left out."""

    class_name: str
    fields: tuple[Field, ...]
    registered: tuple[Field, ...] = ()  # subclasses by tag: class name, type
    subclasses: tuple[Field, ...] = ()  # subclasses by class name


@dataclass(frozen=True, slots=True)
class Ttl:
    """``i64 lastAccess`` in epoch milliseconds, value."""

    type: Type


@dataclass(frozen=True, slots=True)
class Timer:
    """``i64 timestamp`` with its sign bit flipped, key, namespace."""

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
    """A primitive, with its logical type where Avro's specification has it for this primitive:
    decimal -> Decimal; date -> LocalDate; time-millis, time-micros -> LocalTime; timestamp-* ->
    Instant; local-timestamp-* -> LocalDateTime."""

    kind: AvroKind
    logical: str | None = None
    scale: int = 0
    precision: int | None = None  # of a decimal, where the schema tells it


@dataclass(frozen=True, slots=True)
class AvroFixed:
    """bytes; Decimal where it is one."""

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
    """A dict by field."""

    name: str
    fields: tuple[tuple[str, AvroType], ...]


@dataclass(frozen=True, slots=True)
class AvroReference:
    """A record, enum or fixed that its own definition, or an earlier one, is named by."""

    name: str


@dataclass(frozen=True, slots=True)
class AvroUnion:
    """The value of its branch."""

    branches: tuple[AvroType, ...]


@dataclass(frozen=True, slots=True)
class AvroArray:
    element: AvroType


@dataclass(frozen=True, slots=True)
class AvroMap:
    """Pairs, keys are text."""

    value: AvroType


AvroType = (
    AvroScalar | AvroFixed | AvroEnum | AvroRecord | AvroReference | AvroUnion | AvroArray | AvroMap
)


@dataclass(frozen=True, slots=True)
class Avro:
    """What AvroSerializer writes with a schema: not Avro's own binary form."""

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
    """Decimal."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class SqlTimestamp:
    """LocalDateTime; Instant of TIMESTAMP_LTZ."""

    precision: int
    local_zone: bool


@dataclass(frozen=True, slots=True)
class SqlArray:
    element: SqlType


@dataclass(frozen=True, slots=True)
class SqlMap:
    """MAP; MULTISET, whose values are counts. Pairs."""

    key: SqlType
    value: SqlType


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A dict by field; a state's own row has no names: f0, f1, …"""

    fields: tuple[tuple[str, SqlType], ...]


SqlType = SqlScalar | SqlDecimal | SqlTimestamp | SqlArray | SqlMap | SqlRow


@dataclass(frozen=True, slots=True)
class Sql:
    """An internal value of SQL by itself: as InternalSerializers' serializer of its type writes."""

    type: SqlType


# -- what is not read, or not by its type alone --------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kryo:
    """A value that Kryo wrote.

    Attributes:
        class_name: one of those in ``kryo``; the type of another class is Unreadable.
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
    """A value whose layout its serializer alone knows.

    ``field`` is its place in the fields of what it is a part of: names with dots between them.
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
    """The types inside of one; of a POJO without its subclasses, which a value may never be of."""
    match type_:
        case Struct(_, fields) | Pojo(_, fields):
            return tuple(field.type for field in fields)
        case Row(types):
            return types
        case Either(one, two) | TaggedUnion(one, two) | Map(one, two) | Timer(one, two):
            return (one, two)
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
                if found := unreadable(part):
                    return replace(found, field=f"{name}.{found.field}".rstrip("."))
            return None
        case _:
            return next((found for part in parts(type_) if (found := unreadable(part))), None)
