"""Values written by Kryo: objects of the JDK classes in ``_CLASSES``.

An object with its class: *varint* class ID, varint reference, the object's content. The class ID is
0 for null and 1 for a class written by name (a varint name ID follows and, at its first use, the
name). Any other class ID is the ID of a registered class plus 2. The reference is 1 for a new
object, otherwise the index of an earlier object plus 2. If only one class is possible, the class ID
is omitted, and the reference can be 0 (null). Boxed primitives and, in Kryo 5.6, enums have no
reference. If they are nullable elements of a single class in a collection or an array, they have 0
(null) or 1 (a value follows) in place of the reference. No length precedes an object, so an object
of an unknown class makes the value unreadable.

A varint has 7 bits per byte, lowest first, and the high bit is set in all bytes except the last. A
signed varint is zig-zag encoded. Text is written in one of two formats. Short ASCII is stored as
its bytes, with the high bit set in the last byte. Other text is stored as a varint with the number
of UTF-16 units plus one (0 is null), followed by each unit in 1 to 3 bytes of UTF-8. In the first
byte of this varint, bit 0x80 is set, bit 0x40 is set if more bytes follow, and the other 6 bits
belong to the number.

Flink 1.x uses Kryo 2.24. Flink 2.x uses Kryo 5.6. The two versions write different bytes. The
version of ``_metadata`` shows which Kryo wrote the state; serializer snapshots do not.

Source: Kryo, DefaultClassResolver, Input, DefaultSerializers, DefaultArraySerializers,
CollectionSerializer, MapSerializer, FieldSerializer, ObjectField @ kryo 2.24.0; the same,
TimeSerializers and ImmutableCollectionsSerializers @ 5.6.2; FlinkChillPackageRegistrar,
KryoSerializer, KryoUtils @ Flink 1.20.3, 2.2.0.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, NoReturn, TypeVar

from decoder.errors import DecodeError, ErrorKind
from decoder.java import signed_32
from decoder.keyed_state.java_values import (
    Instant,
    LocalDate,
    LocalDateTime,
    LocalTime,
    Pairs,
    SqlDate,
    SqlTime,
    duration_text,
    offset_text,
)
from decoder.keyed_state.numbers import big_integer, scaled
from decoder.keyed_state.strings import decode_text
from decoder.keyed_state.types import Kryo, Type, Unreadable, parts

KRYO_2, KRYO_5 = 2, 5

_Time = TypeVar("_Time", LocalDate, LocalTime, Instant)

_F32_BE, _F64_BE = struct.Struct(">f"), struct.Struct(">d")
_F32_LE, _F64_LE = struct.Struct("<f"), struct.Struct("<d")

# The maximum nesting depth of objects, to protect the Python stack from hostile input.
_MAX_DEPTH = 64
# The maximum number of objects in one value, and of nulls in one collection. Without a limit, a few
# bytes could represent any number of objects or nulls (through repeated references, or through a
# collection's count).
_MAX_OBJECTS = 10_000_000
_MAX_NULLS = 1 << 16

# java.time.Duration, ZoneOffset; TimeSerializers.ZoneOffsetSerializer
_NANOS = 1_000_000_000
_MAX_OFFSET = 18 * 3600
_SECONDS_FOLLOW = 127

_NULL, _BY_NAME = 0, 1
_REFERENCE, _NEW = 2, 1
# Flink's registrar uses the IDs 73 to 84. The job's classes have IDs from 85 on.
_FIRST_OF_JOB = 85

_DEFAULT_REGISTERED = (
    "java.lang.Integer",
    "java.lang.String",
    "java.lang.Float",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.Character",
    "java.lang.Short",
    "java.lang.Long",
    "java.lang.Double",
)
# The classes that Kryo or Flink's registrar registers, by ID.
_REGISTERED = {
    **dict(enumerate(_DEFAULT_REGISTERED)),
    73: "java.util.Arrays$ArrayList",
    74: "java.util.BitSet",
    75: "java.util.PriorityQueue",
    76: "java.util.regex.Pattern",
    77: "java.sql.Date",
    78: "java.sql.Time",
    79: "java.sql.Timestamp",
    80: "java.net.URI",
    81: "java.net.InetSocketAddress",
    82: "java.util.UUID",
    83: "java.util.Locale",
    84: "java.text.SimpleDateFormat",
}
_WRAPPERS = frozenset(_DEFAULT_REGISTERED) - {"java.lang.String"}
# The class of the elements, by array class. The serializer registered for the element class writes
# the elements.
_ARRAYS = {f"[L{name};": name for name in _DEFAULT_REGISTERED}
# For each class, the classes of its fields, and of the fields inside these fields. Kryo 2.24 writes
# each field with the serializer that is registered for the field's class; Kryo 5.6 does not.
_PARTS = {
    "java.time.LocalDateTime": ("java.time.LocalDate", "java.time.LocalTime"),
    "java.time.OffsetDateTime": (
        "java.time.LocalDateTime",
        "java.time.LocalDate",
        "java.time.LocalTime",
        "java.time.ZoneOffset",
    ),
    "java.time.OffsetTime": ("java.time.LocalTime", "java.time.ZoneOffset"),
}
# Interfaces, abstract classes, and Object. A value declared as one of these is stored with its
# actual class, by ID or by name.
_ABSTRACT = frozenset(
    {
        "java.lang.Object",
        "java.lang.Comparable",
        "java.lang.CharSequence",
        "java.lang.Number",
        "java.lang.Iterable",
        "java.io.Serializable",
        "java.util.Collection",
        "java.util.List",
        "java.util.AbstractList",
        "java.util.Set",
        "java.util.SortedSet",
        "java.util.NavigableSet",
        "java.util.Queue",
        "java.util.Deque",
        "java.util.Map",
        "java.util.SortedMap",
        "java.util.NavigableMap",
        "java.util.concurrent.ConcurrentMap",
    }
)


def kryo_type(
    name: str, registered: Sequence[tuple[str, bool]], defaults: Sequence[str], version: int
) -> Type:
    """Return the type of values of the class ``name``.

    Args:
        name: the class.
        registered: (class, whether Kryo's own serializer writes it) for each registered class.
        defaults: the classes for which the job has default serializers. For such a class, the
            result is ``Unreadable``.
        version: ``KRYO_2`` or ``KRYO_5``.
    """
    replaced = frozenset(class_name for class_name, by_kryo in registered if not by_kryo)
    part_classes = _PARTS.get(name, ()) if version == KRYO_2 else ()
    if name in _ARRAYS:
        part_classes = (_ARRAYS[name],)
    replaced_parts = (part for part in part_classes if part in replaced)
    if replaced_class := next(iter(defaults), None) or next(replaced_parts, None):
        problem = f"Kryo writes it, with the job's own serializer for {replaced_class}"
        return Unreadable(name, problem)
    if name not in _ABSTRACT and name not in _CLASSES:
        return Unreadable(name, "Kryo writes it, and no snapshot contains its fields")
    # The classes with IDs from 85 on. If the job registers a class in ``_REGISTERED`` without a
    # serializer, the class keeps its ID. A class with one of the job's own serializers gets an
    # empty name.
    known = _REGISTERED.values()
    names = (
        class_name if by_kryo else ""
        for class_name, by_kryo in registered
        if not (by_kryo and class_name in known)
    )
    return Kryo(name, tuple(names), replaced, version)


def find_open_class(type_: Type) -> str | None:
    """Return the first open class in a type, or None.

    A class is open if it is Object, an interface, an abstract class, or a container. Some values of
    an open class may be readable and others not.
    """
    if isinstance(type_, Kryo):
        class_name = type_.class_name
        return class_name if class_name in _ABSTRACT or class_name in _CONTAINERS else None
    return next((name for part in parts(type_) if (name := find_open_class(part))), None)


def read_kryo(type_: Kryo, data: bytes, position: int) -> tuple[Any, int]:
    """Read the object at ``position``; return it and its end.

    Raises:
        DecodeError: an object cannot be read here, or Kryo never writes such bytes.
        IndexError, struct.error: an object continues past the end of ``data``.
    """
    reader = _Reader(type_, data, position)
    value = reader.object(0)
    return value, reader.position


class _Reader:
    """A reader of one value."""

    def __init__(self, type_: Kryo, data: bytes, position: int) -> None:
        self.data = data
        self.position = position
        self._type = type_
        self._is_kryo_5 = type_.version == KRYO_5
        self._names: list[str] = []
        # Each object that has a reference, with the number of objects in it, itself included. The
        # number is 0 until the object has been read to its end.
        self._objects: list[tuple[Any, int]] = []
        self._count = 0

    def object(self, depth: int) -> Any:
        """Read an object with its class."""
        name = self.class_name()
        return None if name is None else self.object_of_class(name, depth)

    def object_of_class(self, name: str, depth: int, nullable: bool = False) -> Any:
        """Read an object of the class ``name``; if ``nullable``, the object may be null (0)."""
        self._count += 1
        if depth > _MAX_DEPTH or self._count > _MAX_OBJECTS:
            self.fail(
                f"objects nested more than {_MAX_DEPTH} deep, or more than {_MAX_OBJECTS} objects"
            )
        read = _CLASSES.get(name)
        if read is None:
            self.fail(f"objects of type {name} are not supported", ErrorKind.UNSUPPORTED)
        if name in self._type.replaced:
            # ``class_name()`` refuses such a class too, but it is not called if the class is
            # predetermined.
            problem = f"an object of {name} is written by the job's own serializer"
            self.fail(problem, ErrorKind.UNSUPPORTED)
        if name in _WRAPPERS or (self._is_kryo_5 and name in _ENUMS):
            if nullable and self.varint() == _NULL:
                return None
            return read(self, depth)
        reference = self.varint()
        if reference == _NULL and nullable:
            return None
        if reference != _NEW:
            return self._earlier_object(reference - _REFERENCE)
        index, before = len(self._objects), self._count
        self._objects.append((None, 0))
        value = read(self, depth)
        self._objects[index] = (value, self._count - before + 1)
        return value

    def _earlier_object(self, index: int) -> Any:
        if not 0 <= index < len(self._objects):
            self.fail("a reference to nothing")
        value, count = self._objects[index]
        if count == 0:
            self.fail("an object that contains itself", ErrorKind.UNSUPPORTED)
        self._count += count
        if self._count > _MAX_OBJECTS:
            self.fail(f"more than {_MAX_OBJECTS} objects in one value")
        return value

    def class_name(self) -> str | None:
        """Read the class of the object that follows; return None if the object is null."""
        identifier = self.varint()
        if identifier == _NULL:
            return None
        if identifier == _BY_NAME:
            return self._name()
        identifier -= 2
        registered = self._type.registered
        if 0 <= identifier - _FIRST_OF_JOB < len(registered):
            name = registered[identifier - _FIRST_OF_JOB]
        else:
            name = _REGISTERED.get(identifier, "")
        if not name:
            self.fail(
                f"an object of an unsupported class (Kryo's id {identifier})",
                ErrorKind.UNSUPPORTED,
            )
        return name

    def _name(self) -> str:
        index = self.varint()
        if index < len(self._names):
            return self._names[index]
        name = self.text() if index == len(self._names) else None
        if name is None:
            self.fail("a class without a name")
        self._names.append(name)
        return name

    # -- primitives ------------------------------------------------------------------------------

    def fail(self, problem: str, kind: ErrorKind = ErrorKind.CORRUPT) -> NoReturn:
        raise DecodeError(kind, f"Kryo: {problem}", byte_offset=self.position)

    def raw(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self.data):
            raise IndexError
        data = self.data[self.position : end]
        self.position = end
        return data

    def u8(self) -> int:
        value = self.data[self.position]
        self.position += 1
        return value

    def i8(self) -> int:
        value = self.u8()
        return value - 256 if value > 127 else value

    def varint(self, first: int = 0x7F) -> int:
        """Read an unsigned varint of at most 32 bits; ``first`` masks its first byte.

        This method repeats the code of ``Cursor.varint``, because calling a shared function would
        double the time.
        """
        byte = self.u8()
        value, more = byte & first, byte & (first + 1)
        shift = first.bit_length()
        while more:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            more = byte & 0x80
            shift += 7
            if value >> 32 or shift > 41:
                self.fail("a varint is longer than 32 bits")
        return value

    def signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """Read an unsigned varint of at most 64 bits; a ninth byte has 8 bits, the others 7."""
        value = 0
        for shift in range(0, 56, 7):
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        return value | self.u8() << 56

    def signed_long(self) -> int:
        value = self.varlong()
        return (value >> 1) ^ -(value & 1)

    def java_long(self) -> int:
        """Read an unsigned varlong as a signed Java long."""
        value = self.varlong()
        return value - (1 << 64) if value >> 63 else value

    def fixed(self, size: int) -> int:
        return int.from_bytes(self.raw(size), "little" if self._is_kryo_5 else "big", signed=True)

    def real(self, big: struct.Struct, little: struct.Struct) -> float:
        layout = little if self._is_kryo_5 else big
        (value,) = layout.unpack(self.raw(layout.size))
        return float(value)

    def count(self) -> int:
        """Read the number of elements; refuse a number that exceeds the number of remaining bytes.

        Each element takes at least one byte.
        """
        value = self.varint()
        self.check_count(value)
        return value

    def check_count(self, value: int) -> None:
        if value > len(self.data) - self.position:
            raise IndexError

    def text(self) -> str | None:
        start = self.position
        if not self.data[start] & 0x80:
            while not self.u8() & 0x80:
                pass
            end = self.position
            return (self.data[start : end - 1] + bytes((self.data[end - 1] & 0x7F,))).decode(
                "ascii"
            )
        count = self.varint(0x3F)
        if count == 0:
            return None
        self.check_count(count - 1)
        return self._units(count - 1)

    def _units(self, count: int) -> str:
        text = self.data[self.position : self.position + count]
        if text.isascii():
            self.position += count
            return text.decode("ascii")
        units = bytearray()
        for _ in range(count):
            unit = self.u8()
            if unit >> 4 in (12, 13):
                unit = (unit & 0x1F) << 6 | self.u8() & 0x3F
            elif unit >> 4 == 14:
                unit = (unit & 0x0F) << 12 | (self.u8() & 0x3F) << 6 | self.u8() & 0x3F
            elif unit > 0x7F:
                self.fail("a character that Kryo never writes")
            units += unit.to_bytes(2, "big")
        return decode_text(units, "utf-16-be")

    def unit(self) -> str:
        """Read a UTF-16 unit."""
        return decode_text(self.raw(2), "utf-16-le" if self._is_kryo_5 else "utf-16-be")

    def unscaled(self) -> int | None:
        """Read the bytes of an integer: varint n + 1 (0 is null), n bytes of two's complement."""
        size = self.varint()
        return None if size == 0 else big_integer(self.raw(size - 1))

    # -- collections -----------------------------------------------------------------------------

    def elements(self, depth: int, sorted_: bool = False, nulls: bool = True) -> list[Any]:
        """Read a collection.

        In 2.24: comparator if the collection is sorted, varint n, n objects with their classes. In
        5.6: varint n + 1, comparator if the collection is sorted, n objects with their classes. If
        the high bit of the varint's first byte is set, all non-null objects have the same class. In
        that case, the last part is: their class; a ``bool`` for whether some objects are null (only
        if the collection can have ``nulls``); and n objects without their classes. If all objects
        are null, the class ID is 0, and nothing follows.
        """
        if not self._is_kryo_5:
            if sorted_:
                self._refuse_comparator(depth)
            return [self.object(depth + 1) for _ in range(self.count())]
        one_class = self.data[self.position] & 0x80 != 0
        count = self.varint(0x3F) - 1
        if count < 0:
            self.fail("a collection is null")
        if sorted_:
            self._refuse_comparator(depth)
        if count == 0:
            return []
        if not one_class:
            self.check_count(count)
            return [self.object(depth + 1) for _ in range(count)]
        name = self.class_name()
        if name is None:
            if count > _MAX_NULLS:
                self.fail(f"more than {_MAX_NULLS} nulls in one collection", ErrorKind.UNSUPPORTED)
            return [None] * count
        nullable = nulls and self.boolean()
        self.check_count(count)
        return [self.object_of_class(name, depth + 1, nullable) for _ in range(count)]

    def pairs(self, depth: int, sorted_: bool = False) -> Pairs:
        """Read a map.

        In 2.24: comparator if the map is sorted, varint n, n x {key, value}, each with its class.
        In 5.6: varint n + 1, comparator if the map is sorted, n x {key, value}, each with its
        class.
        """
        if not self._is_kryo_5 and sorted_:
            self._refuse_comparator(depth)
        count = self.varint() - self._is_kryo_5
        if count < 0:
            self.fail("a map is null")
        if self._is_kryo_5 and sorted_:
            self._refuse_comparator(depth)
        self.check_count(count)
        return Pairs((self.object(depth + 1), self.object(depth + 1)) for _ in range(count))

    def array(self, element: Callable[[], Any]) -> list[Any]:
        """Read varint n + 1, n elements of at least one byte each."""
        count = self.varint() - 1
        if count < 0:
            self.fail("an array is null")
        self.check_count(count)
        return [element() for _ in range(count)]

    def bytes_(self, depth: int) -> bytes:
        """Read a varint, n + 1, and then n bytes."""
        count = self.varint() - 1
        if count < 0:
            self.fail("an array is null")
        return self.raw(count)

    def array_as_list(self, depth: int) -> list[Any]:
        """Read an Arrays.asList list.

        2.24: varint n, the class of the array's elements, n objects with their classes. 5.6: see
        ``elements``.
        """
        if self._is_kryo_5:
            return self.elements(depth)
        count = self.count()
        self.class_name()
        return [self.object(depth + 1) for _ in range(count)]

    def _refuse_comparator(self, depth: int) -> None:
        name = self.class_name()
        if name is not None:
            self.fail(f"the comparator {name} is not supported", ErrorKind.UNSUPPORTED)

    def boolean(self) -> bool:
        value = self.u8()
        if value > 1:
            self.fail(f"a boolean is 0 or 1, not {value}")
        return value == 1

    # -- java.time -------------------------------------------------------------------------------

    def check(self, value: _Time) -> _Time:
        """Refuse a date or time that does not exist; return any other date or time."""
        if not value.exists:
            self.fail("an invalid date or time")
        return value

    def date(self, depth: int) -> LocalDate:
        """Read a LocalDate.

        2.24, by field: ``i16 day, i16 month``, signed varint year. 5.6: varint year, ``i8 month,
        i8 day``.
        """
        if not self._is_kryo_5:
            day, month = self.fixed(2), self.fixed(2)
            return self.check(LocalDate(self.signed(), month, day))
        return self.check(LocalDate(signed_32(self.varint()), self.i8(), self.i8()))

    def time_of_day(self, depth: int) -> LocalTime:
        """Read a LocalTime.

        2.24, by field: ``i8 hour, i8 minute``, signed varint nano, ``i8 second``. 5.6: ``i8`` hour,
        minute, and second, varint nano. Trailing zeros are omitted, and the number before them is
        inverted (``~``).
        """
        if not self._is_kryo_5:
            hour, minute, nano = self.i8(), self.i8(), self.signed()
            return self.check(LocalTime(hour, minute, self.i8(), nano))
        parts: list[int] = []
        while len(parts) < 3:
            part = self.i8()
            parts.append(part if part >= 0 else ~part)
            if part < 0:
                break
        else:
            parts.append(self.varint())
        hour, minute, second, nano = (*parts, 0, 0, 0)[:4]
        return self.check(LocalTime(hour, minute, second, nano))

    def date_time(self, depth: int) -> LocalDateTime:
        """Read a LocalDateTime: date and time; in 2.24, each with a reference."""
        if self._is_kryo_5:
            return LocalDateTime(self.date(depth), self.time_of_day(depth))
        # ``depth`` stays the same, because dates and times contain no objects.
        date = self.object_of_class("java.time.LocalDate", depth)
        time = self.object_of_class("java.time.LocalTime", depth)
        return LocalDateTime(date, time)

    def instant(self, depth: int) -> Instant:
        """Read an Instant.

        2.24, by field: signed varint nanos, signed varlong seconds. 5.6: varlong seconds, varint
        nanos.
        """
        if self._is_kryo_5:
            return self.check(Instant(self.java_long(), self.varint()))
        nanos = self.signed()
        return self.check(Instant(self.signed_long(), nanos))

    def duration(self, depth: int) -> str:
        """Read a Duration.

        2.24, by field: signed varint nanos, signed varlong seconds. 5.6: ``i64`` seconds, varint
        nanos.
        """
        if self._is_kryo_5:
            seconds, nanos = self.fixed(8), self.varint()
        else:
            nanos = self.signed()
            seconds = self.signed_long()
        if not 0 <= nanos < _NANOS:
            self.fail("an invalid duration")
        return duration_text(seconds, nanos)

    def zone_offset(self, depth: int) -> str:
        """Read a ZoneOffset.

        2.24, by field: signed varint seconds. 5.6: an ``i8`` with quarters of an hour, or 127
        followed by an ``i32`` with seconds.
        """
        if self._is_kryo_5:
            quarters = self.i8()
            seconds = self.fixed(4) if quarters == _SECONDS_FOLLOW else quarters * 900
        else:
            seconds = self.signed()
        if not -_MAX_OFFSET <= seconds <= _MAX_OFFSET:
            self.fail("an invalid time zone offset")
        return offset_text(seconds)

    def offset_date_time(self, depth: int) -> str:
        """Read an OffsetDateTime: date-time and offset; in 2.24, each with a reference."""
        if self._is_kryo_5:
            return f"{self.date_time(depth)}{self.zone_offset(depth)}"
        date_time = self.object_of_class("java.time.LocalDateTime", depth)
        return f"{date_time}{self.object_of_class('java.time.ZoneOffset', depth)}"

    def offset_time(self, depth: int) -> str:
        """Read an OffsetTime.

        2.24: offset, then time, each with a reference. 5.6: time, then offset.
        """
        if self._is_kryo_5:
            return f"{self.time_of_day(depth)}{self.zone_offset(depth)}"
        offset = self.object_of_class("java.time.ZoneOffset", depth)
        return f"{self.object_of_class('java.time.LocalTime', depth)}{offset}"

    def timestamp(self, depth: int) -> Instant:
        """Read a Timestamp: varlong epoch milliseconds, varint nanoseconds of the second.

        The nanoseconds include the milliseconds, so only the seconds of the first number are used.
        """
        millis = self.java_long()
        return self.check(Instant(millis // 1000, self.varint()))

    def uuid(self, depth: int) -> str:
        """Read a UUID: the high and low 64 bits; in 2.24 as signed varlongs, in 5.6 as ``i64``."""
        parts = (self.fixed(8) if self._is_kryo_5 else self.signed_long() for _ in range(2))
        most, least = (f"{part & (1 << 64) - 1:016x}" for part in parts)
        return f"{most[:8]}-{most[8:12]}-{most[12:]}-{least[:4]}-{least[4:]}"

    def constant(self, names: Sequence[str]) -> str | None:
        """Read an enum: varint ordinal plus one; 0 is null."""
        number = self.varint()
        if number > len(names):
            self.fail("an enum has no such constant")
        return names[number - 1] if number else None

    def integer(self, depth: int) -> Decimal | None:
        value = self.unscaled()
        return None if value is None else Decimal(value)

    def decimal(self, depth: int) -> Decimal | None:
        """Read a BigDecimal as its unscaled value and signed varint scale."""
        unscaled = self.unscaled()
        return None if unscaled is None else scaled(unscaled, self.signed())


_Read = Callable[[_Reader, int], Any]


def _constant(names: Sequence[str]) -> _Read:
    return lambda reader, _: reader.constant(names)


def _array(element: Callable[[_Reader, int], Any]) -> _Read:
    return lambda reader, depth: reader.array(lambda: element(reader, depth + 1))


def _array_of(name: str) -> _Read:
    """Return the reader for an array with elements of one final class."""
    return _array(lambda reader, depth: reader.object_of_class(name, depth, nullable=True))


# The constants of these enums. Other enums cannot be read, because the bytes contain only the
# ordinals.
_ENUMS: dict[str, Sequence[str]] = {
    "java.time.DayOfWeek": (
        *("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"),
    ),
    "java.time.Month": (
        *("JANUARY", "FEBRUARY", "MARCH", "APRIL", "MAY", "JUNE"),
        *("JULY", "AUGUST", "SEPTEMBER", "OCTOBER", "NOVEMBER", "DECEMBER"),
    ),
    "java.util.concurrent.TimeUnit": (
        *("NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"),
    ),
}
# Classes that can contain objects of any class.
_CONTAINERS: dict[str, _Read] = {
    **dict.fromkeys(
        (
            "java.util.ArrayList",
            "java.util.LinkedList",
            "java.util.Vector",
            "java.util.Stack",
            "java.util.ArrayDeque",
            "java.util.HashSet",
            "java.util.LinkedHashSet",
            "java.util.concurrent.CopyOnWriteArrayList",
            "java.util.Collections$UnmodifiableCollection",
            "java.util.Collections$UnmodifiableList",
            "java.util.Collections$UnmodifiableRandomAccessList",
            "java.util.Collections$UnmodifiableSet",
            "java.util.Collections$UnmodifiableSortedSet",
        ),
        _Reader.elements,
    ),
    **dict.fromkeys(
        (
            "java.util.ImmutableCollections$List12",
            "java.util.ImmutableCollections$ListN",
            "java.util.ImmutableCollections$SubList",
            "java.util.ImmutableCollections$Set12",
            "java.util.ImmutableCollections$SetN",
        ),
        partial(_Reader.elements, nulls=False),
    ),
    **dict.fromkeys(
        (
            "java.util.HashMap",
            "java.util.LinkedHashMap",
            "java.util.Hashtable",
            "java.util.concurrent.ConcurrentHashMap",
            "java.util.ImmutableCollections$Map1",
            "java.util.ImmutableCollections$MapN",
            "java.util.Collections$UnmodifiableMap",
            "java.util.Collections$UnmodifiableSortedMap",
        ),
        _Reader.pairs,
    ),
    "java.util.Arrays$ArrayList": _Reader.array_as_list,
    "java.util.TreeSet": partial(_Reader.elements, sorted_=True),
    "java.util.TreeMap": partial(_Reader.pairs, sorted_=True),
    "java.util.Collections$SingletonList": lambda reader, depth: [reader.object(depth + 1)],
    "java.util.Collections$SingletonSet": lambda reader, depth: [reader.object(depth + 1)],
    "java.util.Collections$SingletonMap": lambda reader, depth: Pairs(
        [(reader.object(depth + 1), reader.object(depth + 1))]
    ),
    "[Ljava.lang.Object;": _array(lambda reader, depth: reader.object(depth)),
}
_CLASSES: dict[str, _Read] = {
    "java.lang.Integer": lambda reader, _: reader.signed(),
    "java.lang.String": lambda reader, _: reader.text(),
    "java.lang.Float": lambda reader, _: reader.real(_F32_BE, _F32_LE),
    "java.lang.Boolean": lambda reader, _: reader.boolean(),
    "java.lang.Byte": lambda reader, _: reader.i8(),
    "java.lang.Character": lambda reader, _: reader.unit(),
    "java.lang.Short": lambda reader, _: reader.fixed(2),
    "java.lang.Long": lambda reader, _: reader.signed_long(),
    "java.lang.Double": lambda reader, _: reader.real(_F64_BE, _F64_LE),
    "java.lang.StringBuilder": lambda reader, _: reader.text(),
    "java.lang.StringBuffer": lambda reader, _: reader.text(),
    "java.math.BigInteger": _Reader.integer,
    "java.math.BigDecimal": _Reader.decimal,
    "java.util.Date": lambda reader, _: Instant.of_millis(reader.java_long()),
    "java.sql.Date": lambda reader, _: SqlDate.of_millis(reader.java_long()),
    "java.sql.Time": lambda reader, _: SqlTime.of_millis(reader.java_long()),
    "java.sql.Timestamp": _Reader.timestamp,
    "java.time.LocalDate": _Reader.date,
    "java.time.LocalTime": _Reader.time_of_day,
    "java.time.LocalDateTime": _Reader.date_time,
    "java.time.Instant": _Reader.instant,
    "java.time.Duration": _Reader.duration,
    "java.time.OffsetDateTime": _Reader.offset_date_time,
    "java.time.OffsetTime": _Reader.offset_time,
    "java.time.ZoneOffset": _Reader.zone_offset,
    "java.util.UUID": _Reader.uuid,
    "java.util.Collections$EmptyList": lambda _reader, _: [],
    "java.util.Collections$EmptySet": lambda _reader, _: [],
    "java.util.Collections$EmptyMap": lambda _reader, _: Pairs(),
    **{name: _constant(constants) for name, constants in _ENUMS.items()},
    "[Z": _array(lambda reader, _: reader.boolean()),
    "[B": _Reader.bytes_,
    "[C": _array(lambda reader, _: reader.unit()),
    "[S": _array(lambda reader, _: reader.fixed(2)),
    "[I": _array(lambda reader, _: reader.signed()),
    "[J": _array(lambda reader, _: reader.signed_long()),
    "[F": _array(lambda reader, _: reader.real(_F32_BE, _F32_LE)),
    "[D": _array(lambda reader, _: reader.real(_F64_BE, _F64_LE)),
    **{array: _array_of(name) for array, name in _ARRAYS.items()},
    **_CONTAINERS,
}
