"""Read SQL's logical types in the snapshot of a row.

The Java objects are built by Java's own protocol (Object Serialization Stream Protocol, JDK 17).
"""

from __future__ import annotations

from struct import pack

import pytest

from decoder.errors import DecodeError, ErrorKind
from tests.support.keyed_bytes import handle_of_value, json_entries, only, read

_ROW = "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot"
_NULL = b"\x70"


def utf(text: str) -> bytes:
    return pack(">H", len(text)) + text.encode("ascii")


def text(value: str) -> bytes:
    return b"\x74" + utf(value)


def described(name: str, flags: int = 2, fields: bytes = b"\0\0", parent: bytes = _NULL) -> bytes:
    return b"\x72" + utf(name) + bytes(8) + bytes((flags,)) + fields + b"\x78" + parent


def java(written: bytes = b"", /, **fields: int | bytes) -> bytes:
    """Encode an object with these fields, numbers first. Its class also wrote ``written``."""
    numbers = {name: value for name, value in fields.items() if isinstance(value, int)}
    objects = {name: value for name, value in fields.items() if isinstance(value, bytes)}
    named = b"".join(b"I" + utf(name) for name in numbers)
    named += b"".join(b"L" + utf(name) + text("LT;") for name in objects)
    class_ = described("T", 3 if written else 2, pack(">H", len(fields)) + named)
    values = b"".join(pack(">i", value) for value in numbers.values()) + b"".join(objects.values())
    return b"\x73" + class_ + values + (written + b"\x78" if written else b"")


def root(name: str) -> bytes:
    enum = described("java.lang.Enum", 0x12)
    return b"\x7e" + described("R", 0x12, parent=enum) + text(name)


def logical(name: str, **fields: int | bytes) -> bytes:
    return java(typeRoot=root(name), **fields)


INT = logical("INTEGER")


def array_list(*elements: bytes) -> bytes:
    return java(b"\x77\4\0\0\0\1" + b"".join(elements), size=len(elements))


def array(*elements: bytes) -> bytes:
    return b"\x75" + described("[LT;") + pack(">i", len(elements)) + b"".join(elements)


def field(name: str, type_: bytes) -> bytes:
    return java(name=text(name), type=type_)


def row_of(*types: bytes) -> bytes:
    streams = b"".join(b"\xac\xed\0\5" + type_ for type_ in types)
    return utf(_ROW) + pack(">ii", 3, len(types)) + streams + pack(">iii", 1333245, 1, 0)


def value_of(type_: bytes, slot: bytes, beside: bytes = b"") -> object:
    """Return the value of a row's only field with these bytes in its slot."""
    data = bytes(8) + slot + beside
    (line,) = json_entries(only(read(handle_of_value(row_of(type_), pack(">i", len(data)) + data))))
    return line["value"]["f0"]


def place(length: int) -> bytes:
    """Encode the place of the variable-length part of a row with one field."""
    return pack("<ii", length, 16)


@pytest.mark.parametrize(
    "fields",
    [
        array_list(field("a", INT), field("b", INT)),
        java(a=array(field("a", INT), field("b", INT))),
        java(list=java(a=array(field("a", INT), field("b", INT)))),
        java(list=java(list=array_list(field("a", INT), field("b", INT)))),
    ],
    ids=["ArrayList", "Arrays.asList", "unmodifiableList", "twice unmodifiable"],
)
def test_row_fields_are_read_from_every_list_class(fields: bytes) -> None:
    """Java serializes the fields in a list of a class such as ArrayList."""
    inner = bytes(8) + pack("<q", 5) + pack("<q", 6)
    found = value_of(logical("ROW", fields=fields), place(len(inner)), inner)
    assert found == {"a": 5, "b": 6}


def test_logical_row_type_without_fields_has_empty_value() -> None:
    assert value_of(logical("ROW", fields=java(size=0)), place(8), bytes(8)) == {}


def test_attributes_of_structured_supertype_precede_attributes_of_subtype() -> None:
    top = logical("STRUCTURED_TYPE", attributes=array_list(field("a", INT)), superType=_NULL)
    middle = logical("STRUCTURED_TYPE", attributes=array_list(field("b", INT)), superType=top)
    low = logical("STRUCTURED_TYPE", attributes=array_list(field("c", INT)), superType=middle)
    inner = bytes(8) + pack("<qqq", 5, 6, 7)
    assert value_of(low, place(len(inner)), inner) == {"a": 5, "b": 6, "c": 7}


def test_decimals_and_timestamps_are_read_up_to_their_bounds() -> None:
    slot = pack("<q", 5)
    assert value_of(logical("DECIMAL", precision=1, scale=0), slot) == "5"
    assert value_of(logical("DECIMAL", precision=18, scale=18), slot) == f"0.{'0' * 17}5"
    large = logical("DECIMAL", precision=38, scale=38)
    assert value_of(large, place(1), b"\5") == f"0.{'0' * 37}5"
    stamp = logical("TIMESTAMP_WITHOUT_TIME_ZONE", precision=0)
    assert value_of(stamp, slot) == "1970-01-01T00:00:00.005"
    stamp = logical("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=9)
    found = value_of(stamp, pack("<ii", 999_999, 16), pack("<q", 5))
    assert found == "1970-01-01T00:00:00.005999999Z"


def nested(depth: int, name: str, part: str, **more: bytes) -> bytes:
    found = INT
    for _ in range(depth):
        found = logical(name, **{part: found}, **more)
    return found


_DEEP = "more than 24 nested types, or 10000 types in all"


@pytest.mark.parametrize(
    ("type_", "kind", "problem"),
    [
        (text("INTEGER"), ErrorKind.CORRUPT, "not a logical type"),
        (java(typeRoot=text("INTEGER")), ErrorKind.CORRUPT, "not a logical type"),
        (logical("SYMBOL"), ErrorKind.UNSUPPORTED, "the logical type SYMBOL is not supported"),
        (logical("ARRAY"), ErrorKind.CORRUPT, "not a logical type"),
        (logical("ROW"), ErrorKind.CORRUPT, "not a list of fields"),
        (logical("ROW", fields=text("a")), ErrorKind.CORRUPT, "not a list of fields"),
        (
            logical("ROW", fields=array_list(java(type=INT))),
            ErrorKind.CORRUPT,
            "a field of a row without a name",
        ),
        (
            logical("ROW", fields=array_list(text("a"))),
            ErrorKind.CORRUPT,
            "a field of a row without a name",
        ),
        (
            logical("DECIMAL", precision=39, scale=0),
            ErrorKind.CORRUPT,
            "the precision of a type is not between 0 and 38: 39",
        ),
        (
            logical("DECIMAL", precision=5, scale=6),
            ErrorKind.CORRUPT,
            "the scale of a type is not between 0 and 5: 6",
        ),
        (
            logical("DECIMAL", precision=text("5"), scale=0),
            ErrorKind.CORRUPT,
            "the precision of a type is not between 0 and 38: '5'",
        ),
        (
            logical("TIMESTAMP_WITHOUT_TIME_ZONE", precision=10),
            ErrorKind.CORRUPT,
            "the precision of a type is not between 0 and 9: 10",
        ),
        (
            logical("TIMESTAMP_WITH_LOCAL_TIME_ZONE", precision=-1),
            ErrorKind.CORRUPT,
            "the precision of a type is not between 0 and 9: -1",
        ),
        (nested(25, "ARRAY", "elementType"), ErrorKind.CORRUPT, _DEEP),
        (nested(25, "MULTISET", "elementType"), ErrorKind.CORRUPT, _DEEP),
        (nested(25, "DISTINCT_TYPE", "sourceType"), ErrorKind.CORRUPT, _DEEP),
        (nested(25, "MAP", "keyType", valueType=INT), ErrorKind.CORRUPT, _DEEP),
        (nested(25, "MAP", "valueType", keyType=INT), ErrorKind.CORRUPT, _DEEP),
    ],
)
def test_invalid_or_unsupported_logical_type_is_refused(
    type_: bytes, kind: ErrorKind, problem: str
) -> None:
    found = read(handle_of_value(row_of(type_), b""))
    if kind is ErrorKind.UNSUPPORTED:
        (unknown,) = found.states
        assert unknown.reason is not None and problem in unknown.reason
        return
    with pytest.raises(DecodeError) as refused:
        only(found)
    error = refused.value
    assert error.problem == problem
    assert (error.kind, error.field) == (kind, "logical type")


def test_fields_of_logical_row_type_add_a_nesting_level() -> None:
    found = logical("ROW", fields=array_list(field("f", INT)))
    for _ in range(23):
        found = logical("ARRAY", elementType=found)
    assert only(read(handle_of_value(row_of(found), b""))).readable
    with pytest.raises(DecodeError, match=_DEEP):
        only(read(handle_of_value(row_of(logical("ARRAY", elementType=found)), b"")))


def test_nesting_of_logical_types_is_limited() -> None:
    for name, part in (("DISTINCT_TYPE", "sourceType"), ("ARRAY", "elementType")):
        found = only(read(handle_of_value(row_of(nested(24, name, part)), b"")))
        assert found.readable
    assert value_of(nested(24, "DISTINCT_TYPE", "sourceType"), pack("<q", 5)) == 5


@pytest.mark.slow
def test_total_number_of_logical_types_is_limited() -> None:
    def row(fields: int) -> bytes:
        return logical("ROW", fields=array_list(*(field(f"f{n}", INT) for n in range(fields))))

    assert only(read(handle_of_value(row_of(row(9_999)), b""))).readable
    with pytest.raises(DecodeError, match="or 10000 types in all"):
        only(read(handle_of_value(row_of(row(10_000)), b"")))
