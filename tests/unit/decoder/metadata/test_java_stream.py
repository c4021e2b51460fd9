"""Java's object streams, case by case, by the grammar of section 6.4 of the specification.

Streams written by Flink are in tests/golden, but they cover the grammar only by chance.
"""

from __future__ import annotations

from struct import pack

import pytest

from decoder import DecodeError, ErrorKind
from decoder.cursor import Cursor
from decoder.metadata.java_stream import (
    JavaArray,
    JavaClass,
    JavaEnum,
    JavaObject,
    JavaValue,
    read_object_stream,
)
from tests.support.hostile import java_class, java_object, utf

_HEAD = b"\xac\xed\0\5"
_SERIALIZABLE, _WITH_ANNOTATION, _EXTERNALIZABLE, _BLOCK_EXTERNALIZABLE = 2, 3, 4, 12


def _text(value: str) -> bytes:
    return b"\x74" + utf(value)


def _field(code: str, name: str) -> bytes:
    return code.encode() + utf(name) + (_text("Lany;") if code in "L[" else b"")


def _object(data: bytes, *fields: bytes, flags: int = _SERIALIZABLE, parent: bytes = b"") -> bytes:
    return b"\x73" + java_class("A", flags, fields, parent) + data


def _read(data: bytes) -> JavaValue:
    cursor = Cursor(_HEAD + data, "stream")
    value = read_object_stream(cursor)
    cursor.finish("stream")
    return value


def _fields(data: bytes) -> dict[str, JavaValue]:
    found = _read(data)
    assert isinstance(found, JavaObject)
    return found.fields


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\x70", None),
        (_text("é"), "é"),
        (b"\x7c" + pack(">q", 3) + b"abc", ""),  # a long string is skipped
        (b"\x7e" + java_class("E", 0x12) + _text("ONE"), JavaEnum("E", "ONE")),
        (_object(b""), JavaObject("A", {}, [])),
    ],
)
def test_values_of_java_stream_are_read(value: bytes, expected: JavaValue) -> None:
    assert _read(value) == expected
    assert _fields(_object(value, _field("L", "held"))) == {"held": expected}


@pytest.mark.parametrize(
    ("code", "data", "value"),
    [
        ("B", b"\xfe", -2),
        ("I", pack(">i", -70_000), -70_000),
        ("J", pack(">q", 1 << 40), 1 << 40),
        ("S", pack(">h", -300), -300),
        ("Z", b"\1", 1),
        ("C", b"ab", None),  # these three are skipped
        ("D", bytes(8), None),
        ("F", bytes(4), None),
    ],
)
def test_primitive_fields_of_java_stream_are_read(
    code: str, data: bytes, value: int | None
) -> None:
    fields = _fields(_object(data + _text("behind"), _field(code, "a"), _field("L", "b")))
    assert fields == ({"b": "behind"} if value is None else {"a": value, "b": "behind"})


@pytest.mark.parametrize(
    ("name", "data", "elements"),
    [
        ("[Lany;", pack(">i", 2) + _text("x") + b"\x70", ["x", None]),
        ("[[I", pack(">i", 1) + b"\x70", [None]),
        ("[I", pack(">i", 3) + bytes(12), []),  # primitives are skipped
        ("[J", pack(">i", 2) + bytes(16), []),
        ("[B", pack(">i", 0), []),
    ],
)
def test_arrays_of_java_stream_are_read(name: str, data: bytes, elements: list[JavaValue]) -> None:
    assert _read(b"\x75" + java_class(name) + data) == JavaArray(elements)


def test_java_byte_array_is_kept_and_can_be_referenced() -> None:
    data = b"\x75" + java_class("[B") + pack(">i", 3) + b"abc" + b"\x71" + pack(">i", 0x7E0003)
    fields = _fields(_object(data, _field("[", "a"), _field("L", "b")))
    assert fields["a"] == JavaArray([], b"abc")


def test_java_class_object_is_read() -> None:
    assert _read(b"\x76" + java_class("A")) == JavaClass("A")


@pytest.mark.parametrize("code", ["L", "["])
def test_null_in_java_object_or_array_field_is_read(code: str) -> None:
    assert _fields(_object(b"\x70", _field(code, "a"))) == {"a": None}


def test_java_superclass_fields_precede_subclass_fields() -> None:
    grandparent = java_class("C", 2, [_field("L", "c")])
    parent = java_class("B", 2, [_field("L", "b")], grandparent)
    data = _text("of C") + _text("of B") + _text("of A")
    fields = _fields(_object(data, _field("L", "a"), parent=parent))
    assert fields == {"c": "of C", "b": "of B", "a": "of A"}


@pytest.mark.parametrize(
    ("written", "objects"),
    [
        (b"", []),
        (b"\x77\x03abc", []),  # a block with its length in one byte
        (b"\x77\xff" + bytes(255), []),
        (b"\x7a" + pack(">i", 300) + bytes(300), []),  # a block with its length in four bytes
        (b"\x77\x01x" + _text("text") + b"\x7a" + pack(">i", 0) + b"\x70", ["text", None]),
    ],
)
def test_java_objects_written_by_custom_method_are_read_and_bytes_are_skipped(
    written: bytes, objects: list[JavaValue]
) -> None:
    """A class can write additional objects and bytes in ``writeObject`` or ``writeExternal``."""
    data = _text("held") + written + b"\x78"
    found = _read(_object(data, _field("L", "a"), flags=_WITH_ANNOTATION))
    assert found == JavaObject("A", {"a": "held"}, objects)
    external = _read(_object(written + b"\x78", flags=_BLOCK_EXTERNALIZABLE))
    assert external == JavaObject("A", {}, objects)


def test_numbering_of_java_references_includes_classes_objects_strings_and_enums() -> None:
    """Items are numbered in the order of their first bytes.

    A reference to a number finds the item with this number.
    """
    values = [
        (_text("one"), "one"),
        (b"\x7c" + pack(">q", 2) + b"xy", ""),
        (b"\x7e" + java_class("E", 0x12) + _text("ONE"), JavaEnum("E", "ONE")),
        (_object(b""), JavaObject("A", {}, [])),
    ]
    names = [f"f{n}" for n in range(len(values))]
    fields = [_field("L", name) for name in names]
    # The class, the field types, and the object come first. The values follow them. An enum has a
    # class and a name.
    first = 1 + len(fields) + 1
    handles = [first, first + 1, first + 3, first + 6]
    for handle, (_, expected) in zip(handles, values, strict=True):
        data = b"".join(encoded for encoded, _ in values)
        again = b"\x71" + pack(">i", 0x7E0000 + handle + 1)
        whole = _object(data + again, *fields, _field("L", "again"))
        assert _fields(whole)["again"] == expected


def test_java_class_can_be_referenced() -> None:
    inner = b"\x73\x71" + pack(">i", 0x7E0000)  # of the enclosing class
    assert _fields(_object(_text("x"), _field("L", "a"))) == {"a": "x"}
    nested = _fields(_object(inner + b"\x70", _field("L", "a")))
    assert nested == {"a": JavaObject("A", {"a": None}, [])}


def test_java_object_may_contain_itself() -> None:
    fields = _fields(_object(b"\x71" + pack(">i", 0x7E0002), _field("L", "me")))
    assert fields["me"] is not None
    assert isinstance(fields["me"], JavaObject)
    assert fields["me"].fields["me"] is fields["me"]


@pytest.mark.parametrize(
    ("data", "told", "kind"),
    [
        (_object(b"", flags=_EXTERNALIZABLE), "A is not plainly serializable", "UNSUPPORTED"),
        (_object(b"", flags=_SERIALIZABLE | _EXTERNALIZABLE), "not plainly", "UNSUPPORTED"),
        (_object(b"", flags=0), "A is not plainly serializable", "UNSUPPORTED"),
        (_object(b"", flags=1), "A is not plainly serializable", "UNSUPPORTED"),
        (b"\x73\x70", "an object without a class", "CORRUPT"),
        (b"\x75\x70", "an array without a class", "CORRUPT"),
        (b"\x75" + java_class("A") + pack(">i", 0), "an array without a class", "CORRUPT"),
        (b"\x75" + java_class("[J") + pack(">i", 2) + bytes(15), "cannot fit", "TRUNCATED"),
        (b"\x75" + java_class("[Lany;") + pack(">i", -1), "cannot be negative", "CORRUPT"),
        (b"\x76\x70", "a class without a name", "CORRUPT"),
        (b"\x7e\x70" + _text("ONE"), "an enum without a class or a name", "CORRUPT"),
        (b"\x7e" + java_class("E") + b"\x70", "an enum without a class or a name", "CORRUPT"),
        (_object(b"", b"Q" + utf("a")), "unknown type code 'Q' of a field", "CORRUPT"),
        (b"\x7c" + pack(">q", -1), "a length cannot be negative: -1", "CORRUPT"),
    ],
)
def test_unsupported_or_corrupt_java_stream_is_refused(data: bytes, told: str, kind: str) -> None:
    with pytest.raises(DecodeError, match=told) as refused:
        _read(data)
    assert refused.value.kind is ErrorKind[kind]


@pytest.mark.parametrize(("ancestors", "fits"), [(16, True), (17, False)])
def test_java_class_may_have_at_most_16_ancestors(ancestors: int, fits: bool) -> None:
    """With back references, each object's class is the parent of the next object's class."""
    # Each object adds two reference numbers: its class and itself. The first class has an
    # annotation, so the data of each object ends with an end mark.
    held = b"".join(
        b"\x73" + java_class(f"C{n}", 2, (), b"\x71" + pack(">i", 0x7E0000 + 2 * (n - 1))) + b"\x78"
        for n in range(1, ancestors + 1)
    )
    stream = _HEAD + b"\x73" + java_class("C0", 3) + held + b"\x78"
    if fits:
        found = read_object_stream(Cursor(stream, "stream"))
        assert isinstance(found, JavaObject)
        assert found.written == [JavaObject(f"C{n}", {}, []) for n in range(1, ancestors + 1)]
        return
    with pytest.raises(DecodeError, match="a class with more than 16 ancestors"):
        read_object_stream(Cursor(stream, "stream"))


def test_java_object_helper_of_tests_builds_readable_stream() -> None:
    found = read_object_stream(Cursor(java_object(_text("x")), "stream"))
    assert found == JavaObject("A", {}, ["x"])
