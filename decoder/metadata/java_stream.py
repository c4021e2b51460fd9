"""A reader of Java object streams that does not instantiate Java classes.

Objects, enums, strings, arrays, classes, references, and null are read into names and values. If a
class's own ``writeObject`` or ``writeExternal`` adds data, only the objects in this data are
returned. Other elements, such as proxies, are refused, because CheckpointProperties, the logical
types of Flink SQL, and Beam sources do not contain them.

Source: the Java Object Serialization Specification, version 6.0, section 6.4 (grammar).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.errors import ErrorKind

_MAGIC_AND_VERSION = bytes.fromhex("aced0005")

_FIRST_HANDLE = 0x7E0000


class _Tag:
    """The first byte of each element: java.io.ObjectStreamConstants.

    The constants are in a class, because a ``case`` compares a value with a name only if the name
    is dotted.
    """

    NULL = 0x70
    REFERENCE = 0x71
    CLASS_DESCRIPTOR = 0x72
    OBJECT = 0x73
    STRING = 0x74
    ARRAY = 0x75
    CLASS = 0x76
    BLOCK_DATA = 0x77
    END_BLOCK_DATA = 0x78
    LONG_BLOCK_DATA = 0x7A
    LONG_STRING = 0x7C
    ENUM = 0x7E


_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA = 0x01, 0x02, 0x04, 0x08

# The size of a primitive field in bytes, by type code.
_PRIMITIVES = {"B": 1, "C": 2, "D": 8, "F": 4, "I": 4, "J": 8, "S": 2, "Z": 1}
# The type codes of the primitive fields whose values ``JavaObject`` contains.
_INTEGERS = "BIJSZ"

_BYTES = "[B"

# The maximum nesting depth, to protect the Python stack from hostile input. CheckpointProperties
# has three levels; a SQL logical type has six for each level of nested ROW types.
_MAX_DEPTH = 64
# The maximum number of ancestors of a class; Flink's classes have one. An object has the fields of
# all ancestors, so a small file could take a very long time to read.
_MAX_ANCESTORS = 16

_FIELD = "Java object"


class JavaEnum(NamedTuple):
    """A constant of an enum class."""

    class_name: str
    constant: str


class JavaClass(NamedTuple):
    """A java.lang.Class."""

    name: str


@dataclass(frozen=True, slots=True)
class JavaObject:
    """An object with its class, its fields, and the objects that its class wrote after the fields.

    Fields of type float, double, and char are omitted; a boolean is 0 or 1. An object may contain
    itself, so callers must bound their recursion.
    """

    class_name: str
    fields: dict[str, JavaValue]
    written: list[JavaValue]


class JavaArray(NamedTuple):
    """An array of objects or of bytes; the elements of other primitive types are omitted."""

    elements: list[JavaValue]
    data: bytes = b""


class _ClassDescriptor(NamedTuple):
    name: str
    flags: int
    fields: tuple[tuple[str, str], ...]  # (type code, field name)
    ancestors: tuple[_ClassDescriptor, ...]  # furthest ancestor first


JavaValue = JavaObject | JavaArray | JavaEnum | JavaClass | str | int | None
_Handle = JavaValue | _ClassDescriptor


def read_object_stream(cursor: Cursor) -> JavaValue:
    """Read ``AC ED 00 05`` and one object.

    Raises:
        DecodeError: the bytes are truncated, are not a Java object stream, or contain an element
            that is not supported here.
    """
    if cursor.raw(4, _FIELD) != _MAGIC_AND_VERSION:
        cursor.fail("not a Java object stream", _FIELD, back=4)
    return _Reader(cursor).value(0)


class _Reader:
    """A reader of one stream, with the objects read so far."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._handles: list[_Handle] = []

    def value(self, depth: int) -> JavaValue:
        cursor = self._cursor
        if depth > _MAX_DEPTH:
            cursor.fail(f"objects nested more than {_MAX_DEPTH} deep", _FIELD)
        match cursor.u8(_FIELD):
            case _Tag.NULL:
                return None
            case _Tag.REFERENCE:
                referred = self._reference()
                if isinstance(referred, _ClassDescriptor):
                    cursor.fail("a reference to a class where an object belongs", _FIELD, back=4)
                return referred
            case _Tag.OBJECT:
                return self._object(depth)
            case _Tag.STRING:
                return self._string(cursor.utf(_FIELD))
            case _Tag.LONG_STRING:
                # A string of 64 KiB or more, after an i64 length. Skip it, because no caller needs
                # it.
                cursor.skip(cursor.i64(_FIELD), _FIELD)
                return self._string("")
            case _Tag.ENUM:
                return self._enum(depth)
            case _Tag.ARRAY:
                return self._array(depth)
            case _Tag.CLASS:
                return self._class(depth)
            case kind:
                cursor.fail(
                    f"unexpected element 0x{kind:02x} of an object stream",
                    _FIELD,
                    ErrorKind.UNSUPPORTED,
                    back=1,
                )

    def _reference(self) -> _Handle:
        handle = self._cursor.i32(_FIELD) - _FIRST_HANDLE
        if not 0 <= handle < len(self._handles):
            self._cursor.fail("a reference to nothing", _FIELD, back=4)
        return self._handles[handle]

    def _string(self, text: str) -> str:
        self._handles.append(text)
        return text

    def _enum(self, depth: int) -> JavaEnum:
        descriptor = self._class_descriptor(depth + 1)
        index = len(self._handles)
        self._handles.append(None)
        constant = self.value(depth + 1)
        if descriptor is None or not isinstance(constant, str):
            self._cursor.fail("an enum without a class or a name", _FIELD)
        enum = JavaEnum(descriptor.name, constant)
        self._handles[index] = enum
        return enum

    def _class(self, depth: int) -> JavaClass:
        descriptor = self._class_descriptor(depth + 1)
        if descriptor is None:
            self._cursor.fail("a class without a name", _FIELD)
        result = JavaClass(descriptor.name)
        self._handles.append(result)
        return result

    def _array(self, depth: int) -> JavaArray:
        """Read a class descriptor (with the element type in its name), ``i32 n``, n elements."""
        descriptor = self._class_descriptor(depth + 1)
        if descriptor is None or descriptor.name[:1] != "[":
            self._cursor.fail("an array without a class", _FIELD)
        index = len(self._handles)
        result = JavaArray([])
        self._handles.append(result)
        size = _PRIMITIVES.get(descriptor.name[1:2], 0)
        count = self._cursor.count(_FIELD, size or 1)
        if descriptor.name == _BYTES:
            result = JavaArray([], self._cursor.raw(count, _FIELD))
            self._handles[index] = result
        elif size:
            self._cursor.skip(size * count, _FIELD)
        else:
            result.elements.extend(self.value(depth + 1) for _ in range(count))
        return result

    def _object(self, depth: int) -> JavaObject:
        descriptor = self._class_descriptor(depth + 1)
        if descriptor is None:
            self._cursor.fail("an object without a class", _FIELD)
        result = JavaObject(descriptor.name, {}, [])
        self._handles.append(result)
        for level in (*descriptor.ancestors, descriptor):
            self._class_data(level, result, depth)
        return result

    def _class_data(self, level: _ClassDescriptor, result: JavaObject, depth: int) -> None:
        cursor = self._cursor
        if level.flags & _EXTERNALIZABLE and level.flags & _BLOCK_DATA:
            self._annotation(depth, result.written)
            return
        if level.flags & _EXTERNALIZABLE or not level.flags & _SERIALIZABLE:
            cursor.fail(f"{level.name} is not plainly serializable", _FIELD, ErrorKind.UNSUPPORTED)
        for type_code, name in level.fields:
            if type_code in _INTEGERS:
                value = cursor.raw(_PRIMITIVES[type_code], _FIELD)
                result.fields[name] = int.from_bytes(value, "big", signed=True)
            elif type_code in _PRIMITIVES:
                cursor.skip(_PRIMITIVES[type_code], _FIELD)
            else:
                result.fields[name] = self.value(depth + 1)
        if level.flags & _WRITE_METHOD:
            self._annotation(depth, result.written)

    def _annotation(self, depth: int, written: list[JavaValue]) -> None:
        """Step over data up to the end mark, and append the objects in it to ``written``."""
        cursor = self._cursor
        while True:
            match cursor.peek(_FIELD):
                case _Tag.END_BLOCK_DATA:
                    cursor.skip(1, _FIELD)
                    return
                case _Tag.BLOCK_DATA:
                    cursor.skip(1, _FIELD)
                    cursor.skip(cursor.u8(_FIELD), _FIELD)
                case _Tag.LONG_BLOCK_DATA:
                    cursor.skip(1, _FIELD)
                    cursor.skip_blob(_FIELD)
                case _:
                    written.append(self.value(depth + 1))

    def _class_descriptor(self, depth: int) -> _ClassDescriptor | None:
        cursor = self._cursor
        if depth > _MAX_DEPTH:
            cursor.fail(f"classes nested more than {_MAX_DEPTH} deep", _FIELD)
        match cursor.u8(_FIELD):
            case _Tag.NULL:
                return None
            case _Tag.REFERENCE:
                referred = self._reference()
                if not isinstance(referred, _ClassDescriptor):
                    cursor.fail("a reference to an object where a class belongs", _FIELD, back=4)
                return referred
            case _Tag.CLASS_DESCRIPTOR:
                return self._new_class_descriptor(depth)
            case kind:
                cursor.fail(
                    f"unexpected class descriptor 0x{kind:02x}",
                    _FIELD,
                    ErrorKind.UNSUPPORTED,
                    back=1,
                )

    def _new_class_descriptor(self, depth: int) -> _ClassDescriptor:
        """Read a class descriptor.

        ``UTF name, i64 serialVersionUID, u8 flags, i16 n``, n fields, annotation, parent.
        """
        cursor = self._cursor
        name = cursor.utf(_FIELD)
        cursor.i64(_FIELD)
        index = len(self._handles)
        self._handles.append(None)
        flags = cursor.u8(_FIELD)
        count = cursor.i16(_FIELD)
        if count < 0:
            cursor.fail(f"a count cannot be negative: {count}", _FIELD, back=2)
        fields = []
        for _ in range(count):
            type_code = chr(cursor.u8(_FIELD))
            fields.append((type_code, cursor.utf(_FIELD)))
            if type_code in ("L", "["):
                self.value(depth + 1)  # the field's class name, a string or a reference to one
            elif type_code not in _PRIMITIVES:
                cursor.fail(f"unknown type code {type_code!r} of a field", _FIELD)
        self._annotation(depth, [])
        parent = self._class_descriptor(depth + 1)
        ancestors = (*parent.ancestors, parent) if parent is not None else ()
        if len(ancestors) > _MAX_ANCESTORS:
            cursor.fail(f"a class with more than {_MAX_ANCESTORS} ancestors", _FIELD)
        descriptor = _ClassDescriptor(name, flags, tuple(fields), ancestors)
        self._handles[index] = descriptor
        return descriptor
