"""Read a map from an Avro file by specification 1.12.0.

Covers every type that may precede the map, both sides of each bound, and every truncation.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from migrate.sinks.avro import is_avro, read_map
from migrate.sinks.directory import UnreadableSink, shorten, to_integer
from tests.unit.sinks.test_sinks import avro, long

_MAP = {"type": "map", "values": "string"}


def _text(value: bytes) -> bytes:
    return long(len(value)) + value


def _entries(**entries: str) -> bytes:
    items = b"".join(_text(k.encode()) + _text(v.encode()) for k, v in entries.items())
    return (long(len(entries)) + items if entries else b"") + long(0)


def _file(value: bytes, type_: Any = None, before: Any = None) -> bytes:
    """Return a file of a record with the map ``m``, and the field ``b`` before it."""
    fields = [{"name": "m", "type": type_ or _MAP}]
    if before is not None:
        fields.insert(0, {"name": "b", "type": before})
    return avro(json.dumps({"type": "record", "name": "r", "fields": fields}), value)


def _read(content: bytes, field: str = "m") -> dict[str, str]:
    return read_map(content, field, "it")


def _refused(content: bytes) -> str:
    with pytest.raises(UnreadableSink) as refused:
        _read(content)
    return str(refused.value)


def test_avro_map_of_strings_is_read_and_other_values_are_skipped() -> None:
    assert _read(_file(_entries(a="1", b="é"))) == {"a": "1", "b": "é"}
    assert _read(_file(_entries())) == {}
    nullable = ["null", _MAP]
    assert _read(_file(long(1) + _entries(a="1"), nullable)) == {"a": "1"}
    assert _read(_file(long(0), nullable)) == {}
    assert _read(_file(_entries(a="1")), "other") == {}
    # A block with its size in bytes, and a block without.
    items = _text(b"a") + _text(b"1")
    runs = long(-1) + long(len(items)) + items + long(1) + _text(b"b") + _text(b"2") + long(0)
    assert _read(_file(runs)) == {"a": "1", "b": "2"}
    # Values that are not strings are skipped.
    assert _read(_file(long(1) + _text(b"a") + long(7) + long(0), {**_MAP, "values": "long"})) == {}


@pytest.mark.parametrize(
    ("before", "value"),
    [
        ("null", b""),
        ("boolean", b"\1"),
        ("int", long(-300)),
        ("long", long(1 << 40)),
        ("float", bytes(4)),
        ("double", bytes(8)),
        ("bytes", _text(b"x")),
        ("string", _text(b"")),
        ({"type": "fixed", "name": "f", "size": 3}, b"abc"),
        ({"type": "fixed", "name": "f", "size": 0}, b""),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, long(0)),
        ({"type": "array", "items": "int"}, long(2) + long(1) + long(2) + long(0)),
        ({"type": "array", "items": "null"}, long(2) + long(0)),
        (_MAP, _entries(x="y")),
        (["null", "int"], long(1) + long(5)),
        (["null", "int"], long(0)),
        ({"type": {"type": "long"}}, long(5)),
        ({"type": ["null", "long"]}, long(1) + long(5)),
        (
            {"type": "record", "name": "s", "fields": [{"name": "m", "type": _MAP}]},
            _entries(not_="this"),
        ),
    ],
)
def test_reader_of_avro_map_skips_earlier_fields_and_refuses_truncated_files(
    before: Any, value: bytes
) -> None:
    whole = _file(value + _entries(a="1"), before=before)
    assert _read(whole) == {"a": "1"}
    for end in range(len(whole)):
        if end == len(whole) - len(_block(value + _entries(a="1"))):
            assert _read(whole[:end]) == {}  # a file without a block
        else:
            assert _refused(whole[:end]).startswith("it: ")


def _block(records: bytes) -> bytes:
    return long(1) + _text(records) + bytes(16)


@pytest.mark.parametrize("namespace", [None, "n"])
def test_avro_named_type_is_resolved_by_its_full_name(namespace: str | None) -> None:
    fixed: dict[str, Any] = {"type": "fixed", "name": "f", "size": 2}
    name = "f"
    if namespace is not None:
        fixed["namespace"], name = namespace, f"{namespace}.f"
    schema: dict[str, Any] = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "x", "type": fixed},
            {"name": "y", "type": name},
            {"name": "m", "type": _MAP},
        ],
    }
    assert _read(avro(json.dumps(schema), b"aabb" + _entries(a="1"))) == {"a": "1"}
    if namespace is not None:  # a short name refers to the record's namespace
        schema["fields"].insert(2, {"name": "z", "type": "f"})
        assert "no type has the name 'f'" in _refused(avro(json.dumps(schema), b"aabbcc"))


def test_last_record_of_avro_file_is_used() -> None:
    two = _file(_entries(a="1")) + _block(_entries(a="2")) + _block(_entries(a="3", b="4"))
    assert _read(two) == {"a": "3", "b": "4"}
    header = _file(b"")[: -len(_block(b""))]
    records = _entries(a="1") + _entries(a="2")
    both = header + long(2) + _text(records) + bytes(16)
    assert _read(both) == {"a": "2"}


@pytest.mark.parametrize(
    ("before", "value", "problem"),
    [
        (["null", "int"], long(2), "no branch 2 in a union"),
        (["null", "int"], long(-1), "no branch -1 in a union"),
        ([], long(0), "not an Avro schema: a union without branches"),
        ("other", b"", "not an Avro schema: no type has the name 'other'"),
        ({"name": "x"}, b"", "not an Avro schema: a type must be a name, an object, or a list"),
        (5, b"", "not an Avro schema: a type must be a name, an object, or a list"),
        ({"type": "array"}, long(1), "not an Avro schema: a type must be a name"),
        ({"type": "fixed", "name": "f"}, b"", "not an Avro schema: a fixed without a size"),
        ({"type": "record", "name": "s"}, b"", "not an Avro schema: a record without fields"),
        ({"type": "fixed", "name": "f", "size": "2"}, b"ab", "not an Avro schema: a fixed"),
        ({"type": "fixed", "name": "f", "size": -1}, b"", "not an Avro schema: a fixed"),
        ({"type": "array", "items": "null"}, long(1 << 20), "more items than there are bytes"),
        ("long", b"\x80" * 10 + b"\1", "a varint is longer than 64 bits"),
        ("bytes", long(1 << 20), "the bytes end inside a field"),
        ("bytes", long(-1), "a length cannot be negative: -1"),
    ],
)
def test_damaged_avro_schema_or_value_is_refused_with_reason(
    before: Any, value: bytes, problem: str
) -> None:
    assert _refused(_file(value + _entries(a="1"), before=before)).startswith(f"it: {problem}")


def test_avro_varint_of_ten_bytes_is_accepted() -> None:
    ten = b"\x80" * 9 + b"\1"
    assert _read(_file(ten + _entries(a="1"), before="long")) == {"a": "1"}


def test_number_of_empty_avro_items_is_limited_by_remaining_bytes() -> None:
    """Empty items consume no input, so their number must not exceed the remaining bytes."""
    for more, fine in ((0, True), (1, False)):
        before = {"type": "array", "items": "null"}
        rest = long(0) + _entries(a="1")
        left = len(rest) + 16  # the marker
        content = _file(long(left + more) + rest, before=before)
        if fine:
            assert _read(content) == {"a": "1"}
        else:
            assert _refused(content).startswith("it: more items than there are bytes")


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: {"type": inner},
        lambda inner: [inner],
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"type": "map", "values": inner},
        lambda inner: {
            "type": "record",
            "name": f"r{len(json.dumps(inner))}",
            "fields": [{"name": "f", "type": inner}],
        },
    ],
    ids=["type", "union", "array", "map", "record"],
)
def test_nesting_of_avro_schema_is_limited_to_32_levels(wrap: Any) -> None:
    nested: Any = {"type": "null"}
    values = {0: b""}
    for depth in range(1, 34):
        nested = wrap(nested)
        inner = values[depth - 1]
        values[depth] = {
            "union": long(0) + inner,
            "array": long(1) + inner + long(0),
            "map": long(1) + _text(b"k") + inner + long(0),
        }.get(_kind(nested), inner)
        content = _file(values[depth] + _entries(a="1"), before=nested)
        if depth <= 31:  # the record of the file adds one level
            assert _read(content) == {"a": "1"}
        else:
            assert "nested more than 32 deep" in _refused(content)


def _kind(schema: Any) -> str:
    if isinstance(schema, list):
        return "union"
    return str(schema["type"]) if isinstance(schema["type"], str) else "type"


def test_nesting_of_recursive_avro_type_is_limited_to_64_levels() -> None:
    node = {
        "type": "record",
        "name": "n",
        "fields": [{"name": "next", "type": ["null", "n"]}],
    }
    # Each node takes three levels: union, name, and record. The record of the file adds one.
    deepest = next(
        n for n in range(40) if "nested more than 64" in _outcome(node, long(1) * n + long(0))
    )
    assert deepest == 21


def _outcome(before: Any, value: bytes) -> str:
    try:
        return str(_read(_file(value + _entries(a="1"), before=before)))
    except UnreadableSink as error:
        return str(error)


def test_avro_file_with_compression_or_invalid_utf8_or_non_record_schema_is_refused() -> None:
    assert is_avro(b"Obj\x01") and not is_avro(b"Obj\x02")
    assert _refused(avro('"long"', long(1))).startswith("it: the schema is not a record")
    assert _refused(avro('{"type":"map","values":"long"}', b"")).startswith(
        "it: the schema is not a record"
    )
    assert "compressed" in _refused(avro("{}", b"", b"deflate"))
    assert _refused(_file(long(1) + _text(b"a") + _text(b"\xff") + long(0))).startswith("it: ")


def test_message_shortens_strings_over_60_characters() -> None:
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 60 + "…"


@pytest.mark.parametrize("value", [7, "7", "0", "9" * 19, -7])
def test_valid_integers_in_sink_log_are_parsed(value: object) -> None:
    assert to_integer(value, "it") == int(str(value))


@pytest.mark.parametrize("value", [True, 7.0, "", "-7", "9" * 20, "٣", None, [7]])
def test_invalid_integer_in_sink_log_is_refused(value: object) -> None:
    with pytest.raises(UnreadableSink, match=r"^it: .* is not an integer$"):
        to_integer(value, "it")
