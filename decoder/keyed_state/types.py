"""The types of keyed state, a small, closed set of classes created from serializer snapshots.

A type represents one of Flink's serializers, or several that write the same bytes. The
``snapshots`` and ``logical_types`` modules list the serializers. "Read as" refers to the Python
value; classes such as Instant and Pairs are in the ``java_values`` module.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import NamedTuple

from decoder.avro.types import AvroType


class Kind(Enum):
    """The kinds of atomic values; the comments list the types of the Python values."""

    BOOLEAN = auto()  # bool
    BYTE = auto()  # int, like the next three
    SHORT = auto()
    INT = auto()
    LONG = auto()
    FLOAT = auto()  # float
    DOUBLE = auto()  # float
    CHAR = auto()  # str of one UTF-16 unit
    STRING = auto()  # str; an unpaired surrogate becomes U+FFFD, here and in CHAR
    STRING_VALUE = auto()  # like STRING, but never null: org.apache.flink.types.StringValue
    BIG_INTEGER = auto()  # Decimal without digits after the decimal point
    BIG_DECIMAL = auto()  # Decimal
    DATE = auto()  # Instant
    SQL_DATE = auto()  # SqlDate, an Instant
    SQL_TIME = auto()  # SqlTime, an Instant
    SQL_TIMESTAMP = auto()  # Instant
    INSTANT = auto()  # Instant
    LOCAL_DATE = auto()  # LocalDate
    LOCAL_TIME = auto()  # LocalTime
    LOCAL_DATE_TIME = auto()  # LocalDateTime
    VOID = auto()  # None, like the next three
    NULL_VALUE = auto()
    VOID_NAMESPACE = auto()
    GLOBAL_WINDOW = auto()
    TIME_WINDOW = auto()  # {"start", "end"}: int, epoch milliseconds
    COUNT_WINDOW = auto()  # {"id"}: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """An atomic value."""

    kind: Kind
    # A class such as org.apache.flink.types.IntValue has the bytes of an Integer. Such a class may
    # have a different hash code and therefore a different key group.
    mutable: bool = False


@dataclass(frozen=True, slots=True)
class PrimitiveArray:
    """A boolean[], int[], …, String[]: ``i32 n``, n elements. Read as a list, byte[] as bytes."""

    element: Kind


@dataclass(frozen=True, slots=True)
class JavaEnum:
    """An enum: ``i32`` index of a constant in the snapshot. Read as the constant's name."""

    class_name: str
    constants: tuple[str, ...]


class Field(NamedTuple):
    """A part of a struct."""

    name: str
    type: Type


@dataclass(frozen=True, slots=True)
class Struct:
    """A tuple (fields f0, f1, …) or a value of CompositeSerializer, read as a dict by field."""

    class_name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An org.apache.flink.types.Row, read as a dict with the keys f0, f1, and so on."""

    fields: tuple[Type, ...]
    has_kind: bool  # True if two bits for the RowKind precede the null bits


@dataclass(frozen=True, slots=True)
class Either:
    """An Either, read as a dict with "left" and "right"; one of them is None."""

    left: Type
    right: Type


@dataclass(frozen=True, slots=True)
class TaggedUnion:
    """An element of CoGroupedStreams, read as a dict with "one" and "two"; one of them is None."""

    one: Type
    two: Type


@dataclass(frozen=True, slots=True)
class StreamRecord:
    """A record in a window with an evictor, read as a dict with "timestamp" and "value".

    ``u8`` 0 and ``i64`` epoch milliseconds, or ``u8`` 1 without a timestamp; then the value.
    """

    value: Type


@dataclass(frozen=True, slots=True)
class List:
    """A List: ``i32 n``, n elements. Read as a list."""

    element: Type


@dataclass(frozen=True, slots=True)
class NullableList:
    """A Set or T[]: like a List, but with a byte before each element. Read as a list.

    ``null`` is the value of this byte before a null element: 1 in a Set, 0 in a T[].
    """

    element: Type
    null: int


@dataclass(frozen=True, slots=True)
class LinkedList:
    """A LinkedList: ``i32 n``, null bits if ``has_nulls``, non-null elements. Read as a list."""

    element: Type
    has_nulls: bool


@dataclass(frozen=True, slots=True)
class Map:
    """A Map: ``i32 n`` x {key, ``bool valueIsNull``, value}. Read as Pairs."""

    key: Type
    value: Type
    null_keys: bool = False  # ``bool keyIsNull`` precedes each key (NullAwareMapSerializer)


@dataclass(frozen=True, slots=True)
class Nullable:
    """A nullable value: ``bool null``, then the value or, for null, ``padding`` bytes."""

    type: Type
    padding: int


# The prefix of the name of a field that is no longer in its class
# (PojoSerializerSnapshotData.getDummyNameForMissingField @ Flink 2.2.0).
MISSING_FIELD = "missing-field-at-"


@dataclass(frozen=True, slots=True)
class Pojo:
    """A POJO or a Java record: flags, then the fields. Read as a dict by field.

    Fields whose names start with ``MISSING_FIELD`` are omitted.
    """

    class_name: str
    fields: tuple[Field, ...]
    # Subclasses as Field(class name, type). A value refers to a registered subclass by index, and
    # to any other subclass by class name.
    registered: tuple[Field, ...] = ()
    subclasses: tuple[Field, ...] = ()


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


@dataclass(frozen=True, slots=True)
class Avro:
    """A value of Flink's AvroSerializer with its schema; see ``decoder.keyed_state.avro``."""

    class_name: str
    schema: AvroType


# -- SQL -----------------------------------------------------------------------------------------


class SqlKind(Enum):
    """A logical type whose parameters, if any, do not change the bytes of its values."""

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
    RAW = auto()  # bytes, in the format of the type's own serializer
    NULL = auto()  # None


@dataclass(frozen=True, slots=True)
class SqlScalar:
    kind: SqlKind


@dataclass(frozen=True, slots=True)
class SqlDecimal:
    """A DECIMAL, read as Decimal."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class SqlTimestamp:
    """A TIMESTAMP, read as LocalDateTime; a TIMESTAMP_LTZ is read as Instant."""

    precision: int
    local_zone: bool


@dataclass(frozen=True, slots=True)
class SqlArray:
    element: SqlType


@dataclass(frozen=True, slots=True)
class SqlMap:
    """A MAP, or a MULTISET (its values are counts). Read as Pairs."""

    key: SqlType
    value: SqlType


@dataclass(frozen=True, slots=True)
class SqlRow:
    """A ROW, read as a dict by field; a state's outermost row has the fields f0, f1, and so on."""

    fields: tuple[tuple[str, SqlType], ...]


SqlType = SqlScalar | SqlDecimal | SqlTimestamp | SqlArray | SqlMap | SqlRow


@dataclass(frozen=True, slots=True)
class Sql:
    """A value of a SQL type, in the layout of InternalSerializers."""

    type: SqlType


# -- Kryo, and unreadable values -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kryo:
    """A value that Kryo wrote.

    Attributes:
        class_name: the declared class. It is a class that the ``kryo`` module can read, or an
            abstract class, such as List. Values of an abstract class contain their own class.
        registered: the classes registered after Flink's own classes, by ID; a class in ``replaced``
            has an empty name.
        replaced: the classes with the job's own serializers.
        version: 2 for Kryo 2.24 (Flink 1.x), 5 for Kryo 5.6 (Flink 2.x).
    """

    class_name: str
    registered: tuple[str, ...]
    replaced: frozenset[str]
    version: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value with an unknown layout; ``field`` is the path to the value, joined by dots."""

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
    """Return the types inside a type, without the subclasses of a POJO."""
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
    """Return the first unreadable part of a type, with its path, or None."""
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
