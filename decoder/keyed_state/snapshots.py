"""Snapshots of a state's serializer and of the serializers nested in it.

A snapshot is ``UTF class, i32 version``, and content that depends on the class. The content has no
stored length. After a snapshot of an unknown class, the reader can continue only if the snapshot is
in a frame (a field of a POJO). Classes in Flink's package are identified by the last part of their
name.

- *simple*: no content, except for the ``UTF class`` of the serializer in version 2.
- *composite*, version 3: ``i32 911108, i32 outerVersion``, the class's content, *nested*.
- *nested*: ``i32 1333245, i32 1, i32 n`` x snapshot.
- *optional map*: ``i64 0x4F2C69A3D70, i32 n`` x {``UTF name``, key, value}; key and value are each
  ``bool present`` and, if true, ``i32 length`` and a frame of this length.

The docstrings of the functions below describe the content of each class.

Source: TypeSerializerSnapshot, SimpleTypeSerializerSnapshot, CompositeTypeSerializerSnapshot,
NestedSerializersSnapshotDelegate, LinkedOptionalMapSerializer, and the snapshot classes named in
the tables @ Flink 1.15.4, 1.20.3, 2.2.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from decoder.avro.schema import avro_schema
from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.kryo import kryo_type
from decoder.keyed_state.logical_types import logical_type
from decoder.keyed_state.strings import read_string
from decoder.keyed_state.types import (
    Avro,
    Either,
    Field,
    JavaEnum,
    Kind,
    LinkedList,
    List,
    Map,
    Nullable,
    NullableList,
    Pojo,
    PrimitiveArray,
    Row,
    Scalar,
    Sql,
    SqlArray,
    SqlDecimal,
    SqlKind,
    SqlMap,
    SqlRow,
    SqlScalar,
    SqlTimestamp,
    StreamRecord,
    Struct,
    TaggedUnion,
    Timer,
    Ttl,
    Type,
    Unreadable,
)
from decoder.metadata.java_stream import read_object_stream

_FLINK = "org.apache.flink."
_COMPOSITE_MAGIC = 911108
_COMPOSITE_VERSION = 3
_NESTED_MAGIC = 1333245
_NESTED_VERSION = 1
_OPTIONAL_MAP_MAGIC = 0x4F2C69A3D70

# The maximum depth of nested serializers; the Python stack allows more.
_MAX_DEPTH = 32
# The maximum number of bytes to which Flink pads a null if all values of a type have the same
# length.
_MAX_PADDING = 1 << 16
# DecimalType, TimestampType @ 2.2.0
_MAX_PRECISION = 38
_MAX_TIME_PRECISION = 9

_PRIMITIVES = ("Boolean", "Byte", "Char", "Double", "Float", "Int", "Long", "Short")


def _name(serializer: str) -> str:
    """Return the name of the snapshot class nested in a serializer class."""
    return f"{serializer}${serializer}Snapshot"


def _scala(class_name: str) -> Unreadable:
    """Return the type of a Scala class whose values are not read."""
    return Unreadable(
        f"scala.{class_name}",
        "it is not supported; let the job store a case class, a POJO, or a Java tuple",
    )


def _cep(class_name: str) -> Unreadable:
    """Return the type of a CEP class, used in state that contains a pattern's partial matches."""
    return Unreadable(
        f"org.apache.flink.cep {class_name}", "partial matches of a pattern are not supported"
    )


_SIMPLE: dict[str, Type] = {
    "BigDecSerializer$BigDecSerializerSnapshot": Scalar(Kind.BIG_DECIMAL),
    "BigIntSerializer$BigIntSerializerSnapshot": Scalar(Kind.BIG_INTEGER),
    "DateSerializer$DateSerializerSnapshot": Scalar(Kind.DATE),
    "InstantSerializer$InstantSerializerSnapshot": Scalar(Kind.INSTANT),
    "LocalDateSerializer$LocalDateSerializerSnapshot": Scalar(Kind.LOCAL_DATE),
    "LocalDateTimeSerializer$LocalDateTimeSerializerSnapshot": Scalar(Kind.LOCAL_DATE_TIME),
    "LocalTimeSerializer$LocalTimeSerializerSnapshot": Scalar(Kind.LOCAL_TIME),
    "NullSerializer$NullSerializerSnapshot": Scalar(Kind.VOID),
    "NullValueSerializer$NullValueSerializerSnapshot": Scalar(Kind.NULL_VALUE, mutable=True),
    "SqlDateSerializer$SqlDateSerializerSnapshot": Scalar(Kind.SQL_DATE),
    "SqlTimeSerializer$SqlTimeSerializerSnapshot": Scalar(Kind.SQL_TIME),
    "SqlTimestampSerializer$SqlTimestampSerializerSnapshot": Scalar(Kind.SQL_TIMESTAMP),
    "StringSerializer$StringSerializerSnapshot": Scalar(Kind.STRING),
    "StringValueSerializer$StringValueSerializerSnapshot": Scalar(Kind.STRING_VALUE, mutable=True),
    "VoidSerializer$VoidSerializerSnapshot": Scalar(Kind.VOID),
    "VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot": Scalar(Kind.VOID_NAMESPACE),
    "GlobalWindow$Serializer$GlobalWindowSerializerSnapshot": Scalar(Kind.GLOBAL_WINDOW),
    "TimeWindow$Serializer$TimeWindowSerializerSnapshot": Scalar(Kind.TIME_WINDOW),
    "CountWindow$Serializer$CountWindowSerializerSnapshot": Scalar(Kind.COUNT_WINDOW),
    "StringDataSerializer$StringDataSerializerSnapshot": Sql(SqlScalar(SqlKind.STRING)),
    "Tuple0SerializerSnapshot": Struct("org.apache.flink.api.java.tuple.Tuple0", ()),
    "JavaSerializer$JavaSerializerSnapshot": Unreadable(
        "a java.io.Serializable", "written by Java's own serialization"
    ),
    "VariantSerializer$VariantSerializerSnapshot": Unreadable(
        "org.apache.flink.types.variant.Variant", "SQL's VARIANT is not supported"
    ),
    # Numbers encoded so that their bytes sort like the numbers, in process table functions of Flink
    # 2.3.
    "SortedLongSerializer$SortedLongSerializerSnapshot": Unreadable(
        "SortedLongSerializer", "the buffer of sorted inputs is not supported"
    ),
    # CEP operators (MATCH_RECOGNIZE in SQL).
    "DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot": _cep("DeweyNumber"),
    "EventId$EventIdSerializer$EventIdSerializerSnapshot": _cep("EventId"),
    **{_name(f"{n}Serializer"): Scalar(Kind[n.upper()]) for n in _PRIMITIVES},
    **{_name(f"{n}ValueSerializer"): Scalar(Kind[n.upper()], mutable=True) for n in _PRIMITIVES},
    **{_name(f"{n}PrimitiveArraySerializer"): PrimitiveArray(Kind[n.upper()]) for n in _PRIMITIVES},
    "StringArraySerializer$StringArraySerializerSnapshot": PrimitiveArray(Kind.STRING),
}


# Flink's Scala API (until 1.20), and flink-scala-api, its successor.
_SCALA = ("org.apache.flink.api.scala.", "org.apache.flinkx.api.")


def read_snapshot(cursor: Cursor, kryo_version: int, depth: int = 0) -> Type:
    """Read a snapshot; return the type of its serializer's values.

    ``kryo_version`` is the major version of Kryo in the job's Flink release.

    Raises:
        DecodeError: the snapshot is truncated or corrupt, or it has an unknown class or version.
    """
    if depth > _MAX_DEPTH:
        cursor.fail(f"serializers nested more than {_MAX_DEPTH} deep", "serializer snapshot")
    name = cursor.utf("serializer snapshot's class")
    version = cursor.i32(f"version of {name}")
    short_name = name[len(_FLINK) :].rpartition(".")[2] if name.startswith(_FLINK) else ""
    reader = _Reader(cursor, kryo_version, name, version, depth)
    if short_name in _SIMPLE:
        reader.check_version(2, 3)
        if version == 2:
            cursor.skip_utf("serializer's class")
        return _SIMPLE[short_name]
    if short_name in _COMPOSITES:
        return reader.composite(_COMPOSITES[short_name])
    if short_name in _OTHERS:
        return _OTHERS[short_name](reader)
    problem = f"unknown serializer snapshot {name}; the data after it cannot be read"
    if name.startswith(_SCALA):
        problem = (
            f"{name} belongs to Flink's Scala API; case classes, options, and collections of "
            "Scala are not supported, and the data after them cannot be read; let the job "
            "store this state as a POJO, a record, or a Java tuple, and take a new savepoint"
        )
    cursor.fail(problem, "serializer snapshot's class", ErrorKind.UNSUPPORTED, back=4)


class _Reader:
    """A reader of one snapshot's content."""

    def __init__(self, cursor: Cursor, kryo: int, name: str, version: int, depth: int) -> None:
        self.cursor = cursor
        self.kryo = kryo
        self.name = name
        self.version = version
        self.depth = depth

    def check_version(self, *versions: int) -> None:
        if self.version not in versions:
            self.cursor.fail(
                f"version {self.version} of {self.name} is not supported",
                f"version of {self.name}",
                ErrorKind.UNSUPPORTED,
                back=4,
            )

    def snapshot(self) -> Type:
        return read_snapshot(self.cursor, self.kryo, self.depth + 1)

    def nested(self) -> tuple[Type, ...]:
        cursor = self.cursor
        field = f"serializers in {self.name}"
        if cursor.i32(field) != _NESTED_MAGIC:
            cursor.fail("their magic number is missing", field, back=4)
        if cursor.i32(field) != _NESTED_VERSION:
            cursor.fail("their version is not supported", field, ErrorKind.UNSUPPORTED, back=4)
        return tuple(self.snapshot() for _ in range(cursor.count(field)))

    def composite(self, make: Callable[[_Reader, int], Type]) -> Type:
        self.check_version(_COMPOSITE_VERSION)
        if self.cursor.i32(self.name) != _COMPOSITE_MAGIC:
            self.cursor.fail("its magic number is missing", self.name, back=4)
        return make(self, self.cursor.i32(f"outer version of {self.name}"))

    def parts(self, count: int) -> tuple[Type, ...]:
        serializers = self.nested()
        if len(serializers) != count:
            self.cursor.fail(f"it contains {len(serializers)} serializers, not {count}", self.name)
        return serializers

    def part(self) -> Type:
        return self.parts(1)[0]

    def two_parts(self) -> tuple[Type, Type]:
        first, second = self.parts(2)
        return first, second

    def number(self, label: str, highest: int) -> int:
        field = f"{label} of {self.name}"
        value = self.cursor.i32(field)
        if not 0 <= value <= highest:
            self.cursor.fail(f"not between 0 and {highest}: {value}", field, back=4)
        return value

    def optional_map(self) -> Iterator[tuple[str, Cursor | None, Cursor | None]]:
        cursor = self.cursor
        field = f"map in {self.name}"
        if cursor.i64(field) != _OPTIONAL_MAP_MAGIC:
            cursor.fail("its magic number is missing", field, back=8)
        for _ in range(cursor.count(field)):
            name = cursor.utf(f"name in the {field}")
            frames = [
                cursor.frame(cursor.i32(f"length in the {field}"), field)
                if cursor.boolean(f"presence in the {field}")
                else None
                for _ in range(2)
            ]
            yield name, frames[0], frames[1]


# -- composites: ``outer`` is the version of the class's content ----------------------------------


def _struct(class_name: str, names: tuple[str, ...], reader: _Reader, outer: int) -> Type:
    return Struct(class_name, tuple(map(Field, names, reader.parts(len(names)))))


def _tuple(reader: _Reader, outer: int) -> Type:
    """Read ``UTF class``, then the nested snapshots of the fields."""
    class_name = reader.cursor.utf("class of a tuple")
    return Struct(
        class_name, tuple(Field(f"f{index}", type_) for index, type_ in enumerate(reader.nested()))
    )


def _row(reader: _Reader, outer: int) -> Type:
    """Read ``bool supportsRowKind`` and the field snapshots.

    Version 4 and later store the bool. Version 3 implies true, and older versions imply false.
    """
    has_kind = reader.cursor.boolean("RowKind in a row") if outer >= 4 else outer == 3
    return Row(reader.nested(), has_kind)


def _array(reader: _Reader, outer: int) -> Type:
    """Read ``UTF componentClass``, then the snapshot of the components."""
    reader.cursor.skip_utf("class of an array's components")
    return NullableList(reader.part(), null=0)


def _nullable(reader: _Reader, outer: int) -> Type:
    """Read ``i32 padding``, then the snapshot of the value."""
    padding = reader.number("padding", _MAX_PADDING)
    return Nullable(reader.part(), padding)


def _linked_list(reader: _Reader, outer: int) -> Type:
    """Read ``bool hasNullMask`` and the element snapshot.

    Version 3 and later store the bool. Version 2 implies true, and version 1 implies false.
    """
    has_nulls = reader.cursor.boolean("nulls in a list") if outer >= 3 else outer == 2
    return LinkedList(reader.part(), has_nulls)


def _external(reader: _Reader, outer: int) -> Type:
    """Read a DataType (Java object), ``bool isInternalInput``, and the internal type's snapshot."""
    read_object_stream(reader.cursor)
    reader.cursor.boolean("internal input")
    return reader.part()


def _raw_value(reader: _Reader, outer: int) -> Type:
    reader.part()
    return Sql(SqlScalar(SqlKind.RAW))


def _buffer_entry(reader: _Reader, outer: int) -> Type:
    """Read the element's snapshot; an entry is ``bool hasBeenJoined`` and the element."""
    joined = Field("hasBeenJoined", Scalar(Kind.BOOLEAN))
    return Struct("IntervalJoinOperator$BufferEntry", (joined, Field("element", reader.part())))


def _traversable(reader: _Reader, outer: int) -> Type:
    """Read the ``UTF code`` that creates the collection, then the snapshot of the elements."""
    reader.cursor.skip_utf("code of a collection of Scala")
    return NullableList(reader.part(), null=0)


def _nfa_state(reader: _Reader, outer: int) -> Type:
    """Read the nested snapshots; version 2 starts with ``bool supportsPreviousTimestamp``."""
    if outer >= 2:
        reader.cursor.boolean("previous timestamp in NFAState")
    return _opaque(_cep("NFAState"), reader, outer)


def _opaque(type_: Unreadable, reader: _Reader, outer: int) -> Type:
    """Read the nested snapshots of a class whose values cannot be decoded."""
    reader.nested()
    return type_


def _window_key(reader: _Reader, outer: int) -> Type:
    """Read the snapshot of the key. A window key is the window (``i64``) and the plain key."""
    window = Field("window", Scalar(Kind.LONG))
    return Struct("WindowKey", (window, Field("key", reader.part())))


_COMPOSITES: dict[str, Callable[[_Reader, int], Type]] = {
    "TupleSerializerSnapshot": _tuple,
    # A Scala case class or tuple; the field names are in the class.
    "ScalaCaseClassSerializerSnapshot": _tuple,
    "TraversableSerializerSnapshot": _traversable,
    "ScalaOptionSerializerSnapshot": partial(_opaque, _scala("Option")),
    "ScalaEitherSerializerSnapshot": partial(_opaque, _scala("util.Either")),
    "ScalaTrySerializerSnapshot": partial(_opaque, _scala("util.Try")),
    "RowSerializer$RowSerializerSnapshot": _row,
    "ListSerializerSnapshot": lambda reader, _: List(reader.part()),
    "ArrayListSerializerSnapshot": lambda reader, _: List(reader.part()),
    "MapSerializerSnapshot": lambda reader, _: Map(*reader.two_parts()),
    "SetSerializerSnapshot": lambda reader, _: NullableList(reader.part(), null=1),
    "JavaEitherSerializerSnapshot": lambda reader, _: Either(*reader.two_parts()),
    "GenericArraySerializerSnapshot": _array,
    "NullableSerializer$NullableSerializerSnapshot": _nullable,
    # The two nested serializers write the time of the last access and the value.
    "TtlStateFactory$TtlSerializerSnapshot": lambda reader, _: Ttl(reader.two_parts()[1]),
    "TimerSerializerSnapshot": lambda reader, _: Timer(*reader.two_parts()),
    "CoGroupedStreams$UnionSerializerSnapshot": lambda reader, _: TaggedUnion(*reader.two_parts()),
    "IntervalJoinOperator$BufferEntrySerializerSnapshot": _buffer_entry,
    # View serializers write the same bytes as their only nested serializer.
    "ListViewSerializerSnapshot": lambda reader, _: reader.part(),
    "MapViewSerializerSnapshot": lambda reader, _: reader.part(),
    "NullAwareMapSerializerSnapshot": lambda reader, _: Map(*reader.two_parts(), null_keys=True),
    "LinkedListSerializer$LinkedListSerializerSnapshot": _linked_list,
    "ExternalSerializer$ExternalSerializerSnapshot": _external,
    "RawValueDataSerializer$RawValueDataSerializerSnapshot": _raw_value,
    # The only stream elements in state are records.
    "StreamElementSerializer$StreamElementSerializerSnapshot": (
        lambda reader, _: StreamRecord(reader.part())
    ),
    "WindowKeySerializer$WindowKeySerializerSnapshot": _window_key,
    "MetaSqnInfoSerializer$MetaSqnInfoSerializerSnapshot": partial(
        _struct, "MetaSqnInfo", ("highSqn", "size")
    ),
    "RowSqnInfoSerializer$RowSqnInfoSerializerSnapshot": partial(
        _struct, "RowSqnInfo", ("firstSqn", "lastSqn")
    ),
    # CEP state is not read, but its snapshots are, so that the states after it can be listed.
    "NFAStateSerializerSnapshot": _nfa_state,
    "NodeId$NodeIdSerializer$NodeIdSerializerSnapshot": partial(_opaque, _cep("NodeId")),
    "LockableTypeSerializerSnapshot": partial(_opaque, _cep("Lockable")),
    "SharedBufferNodeSerializerSnapshot": partial(_opaque, _cep("SharedBufferNode")),
    "SharedBufferNodeSerializerSnapshotV2": partial(_opaque, _cep("SharedBufferNode")),
    "SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot": partial(
        _opaque, _cep("SharedBufferEdge")
    ),
    "NodeSerializer$NodeSerializerSnapshot": partial(
        _struct,
        "Node",
        ("row", "sqn", "prevSqn", "nextSqn", "nextSqnForRecord", "timestamp"),
    ),
}


# -- other snapshots ------------------------------------------------------------------------------


def _enum(reader: _Reader) -> Type:
    """Read ``UTF class, i32 n`` x ``UTF constant``."""
    reader.check_version(3)
    cursor = reader.cursor
    name = cursor.utf("class of an enum")
    field = f"constants of {name}"
    return JavaEnum(name, tuple(cursor.utf(field) for _ in range(cursor.count(field))))


def _scala_enum(reader: _Reader) -> Type:
    """Read ``UTF class, i32 n`` x {``UTF constant, i32 id``}; a value is the ID of a constant."""
    reader.check_version(3)
    cursor = reader.cursor
    name = cursor.utf("class of an enum")
    field = f"constants of {name}"
    constants = [(cursor.utf(field), cursor.i32(field)) for _ in range(cursor.count(field))]
    if [number for _, number in constants] != list(range(len(constants))):
        return Unreadable(name, "an Enumeration of Scala whose ids are not 0, 1, 2 and so on")
    return JavaEnum(name, tuple(constant for constant, _ in constants))


def _pojo(reader: _Reader) -> Type:
    """Read ``UTF class``, then three optional maps from names to snapshots.

    The maps: fields, registered subclasses, other subclasses.
    """
    reader.check_version(2)
    name = reader.cursor.utf("class of a POJO")
    fields, registered, others = (
        tuple(
            Field(key, _read_framed(reader, key, value)) for key, _, value in reader.optional_map()
        )
        for _ in range(3)
    )
    return Pojo(name, fields, registered, others)


def _read_framed(reader: _Reader, name: str, frame: Cursor | None) -> Type:
    """Read the snapshot in a frame; return Unreadable for a missing or unsupported snapshot."""
    if frame is None:
        return Unreadable(name, "the job that wrote it did not have its serializer")
    try:
        type_ = read_snapshot(frame, reader.kryo, reader.depth + 1)
        frame.finish("serializer snapshot")
    except DecodeError as error:
        if error.kind is not ErrorKind.UNSUPPORTED:
            raise
        return Unreadable(name, error.problem)
    return type_


def _kryo(reader: _Reader) -> Type:
    """Read a Kryo snapshot.

    ``UTF class``, then three optional maps: registrations, default serializers, default
    serializers' classes. A registration is ``UTF class, i32 kind`` and content that depends on the
    kind. For kind 0, the job specifies no serializer for the class, so Kryo uses its own.
    """
    reader.check_version(2)
    name = reader.cursor.utf("class of Kryo's")
    registered: list[tuple[str, bool]] = []
    for class_name, _, value in reader.optional_map():
        by_kryo = False
        if value is not None:
            value.skip_utf("registered class")
            by_kryo = value.i32("kind of a registration") == 0
        registered.append((class_name, by_kryo))
    defaults = [class_name for _ in range(2) for class_name, _, _ in reader.optional_map()]
    return kryo_type(name, registered, defaults, reader.kryo)


def _avro(reader: _Reader) -> Type:
    """Read an Avro snapshot.

    Version 3: class and schema, both in the encoding of ``decoder.keyed_state.strings``.
    Version 2: ``UTF class, UTF schema``. Version 1: ``UTF schema``.
    """
    reader.check_version(1, 2, 3)
    cursor = reader.cursor
    name = ""
    if reader.version == 3:
        name, schema = _flink_string(cursor), _flink_string(cursor)
    else:
        if reader.version == 2:
            name = cursor.utf("Avro class")
        schema = cursor.utf("Avro schema")
    return Avro(name, avro_schema(schema, cursor))


def _flink_string(cursor: Cursor) -> str:
    def read(data: bytes, start: int, end: int) -> tuple[int, str | None]:
        text, position = read_string(data, start)
        if position > end:
            raise IndexError
        return position, text

    try:
        text = cursor.attempt(read)
    except IndexError:
        cursor.fail("it ends inside of a string", "Avro schema", ErrorKind.TRUNCATED)
    if text is None:
        cursor.fail("a string is null", "Avro schema")
    return text


def _row_data(reader: _Reader) -> Type:
    """Read ``i32 n`` x LogicalType (Java object), then the nested snapshots."""
    reader.check_version(3)
    cursor = reader.cursor
    types = [
        logical_type(read_object_stream(cursor), cursor)
        for _ in range(cursor.count("fields of a row"))
    ]
    reader.nested()
    return Sql(SqlRow(tuple((f"f{index}", type_) for index, type_ in enumerate(types))))


def _binary_row_data(reader: _Reader) -> Type:
    """Read the ``i32`` number of fields; their types are not stored, so rows are read as bytes."""
    reader.check_version(3)
    reader.cursor.i32("fields of a row")
    return Sql(SqlScalar(SqlKind.RAW))


def _row_data_key(reader: _Reader) -> Type:
    """Read two pieces of generated code, each ``i32 n`` and n bytes, then the row's snapshot."""
    reader.check_version(0)
    reader.cursor.skip_blob("equalizer of a row")
    reader.cursor.skip_blob("hash function of a row")
    return reader.snapshot()


def _decimal_data(reader: _Reader) -> Type:
    """Read ``i32 precision, i32 scale``."""
    reader.check_version(3)
    precision = reader.number("precision", _MAX_PRECISION)
    return Sql(SqlDecimal(precision, reader.number("scale", precision)))


def _timestamp_data(reader: _Reader) -> Type:
    """Read ``i32 precision``.

    The snapshot does not distinguish TIMESTAMP from TIMESTAMP_LTZ, so both are read as TIMESTAMP.
    """
    reader.check_version(1)
    return Sql(SqlTimestamp(reader.number("precision", _MAX_TIME_PRECISION), local_zone=False))


def _array_data(reader: _Reader) -> Type:
    """Read the element's LogicalType and serializer (Java objects)."""
    reader.check_version(3)
    cursor = reader.cursor
    element = logical_type(read_object_stream(cursor), cursor)
    read_object_stream(cursor)
    return Sql(SqlArray(element))


def _map_data(reader: _Reader) -> Type:
    """Read the LogicalTypes of key and value, then their serializers (Java objects)."""
    reader.check_version(3)
    cursor = reader.cursor
    key, value = (logical_type(read_object_stream(cursor), cursor) for _ in range(2))
    for _ in range(2):
        read_object_stream(cursor)
    return Sql(SqlMap(key, value))


def _sorted_map(reader: _Reader) -> Type:
    """Read the comparator (Java object), then the nested snapshots of key and value."""
    reader.check_version(3)
    read_object_stream(reader.cursor)
    return Map(*reader.two_parts())


def _ttl_aware(reader: _Reader) -> Type:
    """Read ``bool isTtlEnabled``, then the snapshot of the serializer that writes the values."""
    reader.check_version(1)
    reader.cursor.boolean("TTL")
    return reader.snapshot()


def _value(reader: _Reader) -> Type:
    """Read ``UTF class``; a Value of this class writes itself in an unknown layout."""
    name = reader.cursor.utf("class of a Value")
    return Unreadable(name, "it serializes itself (org.apache.flink.types.Value)")


_OTHERS: dict[str, Callable[[_Reader], Type]] = {
    "EnumSerializer$EnumSerializerSnapshot": _enum,
    "ScalaEnumSerializerSnapshot": _scala_enum,
    "PojoSerializerSnapshot": _pojo,
    "KryoSerializerSnapshot": _kryo,
    "AvroSerializerSnapshot": _avro,
    "RowDataSerializer$RowDataSerializerSnapshot": _row_data,
    "BinaryRowDataSerializer$BinaryRowDataSerializerSnapshot": _binary_row_data,
    "RowDataKeySerializerSnapshot": _row_data_key,
    "DecimalDataSerializer$DecimalSerializerSnapshot": _decimal_data,
    "TimestampDataSerializer$TimestampDataSerializerSnapshot": _timestamp_data,
    "ArrayDataSerializer$ArrayDataSerializerSnapshot": _array_data,
    "MapDataSerializer$MapDataSerializerSnapshot": _map_data,
    "SortedMapSerializerSnapshot": _sorted_map,
    "TtlAwareSerializerSnapshot": _ttl_aware,
    "ValueSerializer$ValueSerializerSnapshot": _value,
    "CopyableValueSerializer$CopyableValueSerializerSnapshot": _value,
}
