"""Values that Flink never writes are refused, and values within the bounds are read exactly.

The serializers are Flink's own, listed in tests/golden/synthetic/serializers.json. The damaged
values are derived from the layouts of Flink's classes.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import kryo, types
from decoder.keyed_state.values import reader
from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_state import Entry, KeyedState, key_group_of
from tests.support.encoder.keyed_values import (
    BIG_INTEGER,
    STRING,
    VOID_NAMESPACE,
    ListOf,
    MapOf,
    Pojo,
)
from tests.support.keyed_bytes import (
    MAX_PARALLELISM,
    BytesSerializer,
    Handle,
    handle_of_states,
    handle_of_value,
    json_entries,
    only,
    read,
)

_SERIALIZERS = Path(__file__).parents[3] / "golden" / "synthetic" / "serializers.json"
CORRUPT, TRUNCATED, UNSUPPORTED, TOO_LARGE = (
    ErrorKind.CORRUPT,
    ErrorKind.TRUNCATED,
    ErrorKind.UNSUPPORTED,
    ErrorKind.TOO_LARGE,
)
_ENDS = "the bytes end inside of an entry"
_LEFT = "bytes are left over after a value"
_NO_TIME = "an invalid date or time"
_NEGATIVE = "a count cannot be negative: -1"
_NO_BOOLEAN = "a boolean is 0 or 1, not 2"
# The start of the only entry's key in its key group.
_KEY_AT = 6


def i32(*numbers: int) -> bytes:
    return pack(f">{len(numbers)}i", *numbers)


@cache
def _snapshots() -> dict[tuple[str, str], bytes]:
    written: list[dict[str, Any]] = json.loads(_SERIALIZERS.read_text())
    return {
        (one["name"], flink): bytes.fromhex(one["snapshot"])
        for one in written
        for flink in one["flink"]
    }


def snapshot(name: str, flink: str = "2.2") -> bytes:
    return _snapshots()[name, flink]


def composed(serializer: Any) -> bytes:
    out = DataOutput()
    serializer.write_snapshot(out)
    return out.to_bytes()


def value_of(serializer: bytes, value: bytes, *, heap: bool = False, flink: str = "2.2") -> Any:
    (line,) = json_entries(only(read(handle_of_value(serializer, value, heap=heap), flink=flink)))
    return line["value"]


def refuse(serializer: bytes, value: bytes, kind: ErrorKind, problem: str, flink: str) -> None:
    # In the heap layout, no bytes follow the last value.
    with pytest.raises(DecodeError) as refused:
        value_of(serializer, value, heap=kind is TRUNCATED, flink=flink)
    error = refused.value
    assert problem in error.problem
    assert error.kind is kind
    assert error.file is not None and error.file.endswith("subtask 0 keyed state key group 86")
    assert error.field == "state 'state'"


def test_error_for_keyed_value_contains_state_and_key_group() -> None:
    with pytest.raises(DecodeError) as refused:
        value_of(snapshot("boolean"), b"\2", heap=True)
    error = refused.value
    assert (error.kind, error.problem, error.field) == (CORRUPT, _NO_BOOLEAN, "state 'state'")
    assert error.file is not None and error.file.endswith("subtask 0 keyed state key group 86")


_JAN = i32(1_000_000_000)


@pytest.mark.parametrize(
    ("name", "value", "kind", "problem"),
    [
        ("boolean", b"\2", CORRUPT, _NO_BOOLEAN),
        ("boolean", b"", TRUNCATED, _ENDS),
        ("boolean", b"\1\0", CORRUPT, f"1 {_LEFT}"),
        ("byte", b"", TRUNCATED, _ENDS),
        ("long", bytes(7), TRUNCATED, _ENDS),
        ("long", bytes(10), CORRUPT, f"2 {_LEFT}"),
        ("void", b"", TRUNCATED, _ENDS),
        ("byte[]", i32(-1), CORRUPT, _NEGATIVE),
        ("byte[]", i32(3) + b"ab", TRUNCATED, _ENDS),
        ("list", i32(-1), CORRUPT, _NEGATIVE),
        ("list", i32(3) + b"\1\1", TRUNCATED, _ENDS),
        ("Integer[]", i32(1) + b"\2", CORRUPT, _NO_BOOLEAN),
        ("Integer[]", i32(2) + b"\0", TRUNCATED, _ENDS),
        ("set", i32(1) + b"\2", CORRUPT, _NO_BOOLEAN),
        ("LinkedList", i32(-1), CORRUPT, _NEGATIVE),
        ("LinkedList", i32(9) + b"\0", TRUNCATED, _ENDS),
        ("map", i32(-1), CORRUPT, _NEGATIVE),
        ("map", i32(2, 7) + b"\1" + i32(7), TRUNCATED, _ENDS),
        ("map", i32(1, 7) + b"\2", CORRUPT, _NO_BOOLEAN),
        ("NullAwareMap", i32(1) + b"\2", CORRUPT, _NO_BOOLEAN),
        ("NullAwareMap", i32(2) + b"\1\1\1", TRUNCATED, _ENDS),
        ("nullable", b"\2", CORRUPT, _NO_BOOLEAN),
        ("nullable, padded", b"\1" + bytes(7), TRUNCATED, _ENDS),
        ("nullable, padded", b"\1" + bytes(9), CORRUPT, f"1 {_LEFT}"),
        ("either", b"\2", CORRUPT, "a tag must be 1 or 0, not 2"),
        ("tagged union", b"\0", CORRUPT, "a tag must be 1 or 2, not 0"),
        ("tagged union", b"\3", CORRUPT, "a tag must be 1 or 2, not 3"),
        ("enum", i32(3), CORRUPT, "constant 3 of an enum with 3 constants"),
        ("enum", i32(-1), CORRUPT, "constant -1 of an enum with 3 constants"),
        ("row", b"\1", TRUNCATED, _ENDS),
        ("tuple0", b"", TRUNCATED, _ENDS),
        ("pojo", b"\3", CORRUPT, "unknown flags of a POJO: 3"),
        ("pojo", b"\2\2", CORRUPT, _NO_BOOLEAN),
        ("pojo", b"\4\0\5Other", UNSUPPORTED, "Other is a subclass of testjobs.Things$Address"),
        ("pojo", b"\x08\0", CORRUPT, "subclass 0 of 0 registered ones"),
        ("big integer", i32(-1), CORRUPT, "a length cannot be negative: -1"),
        ("big integer", i32(4), CORRUPT, "a number without digits"),
        ("big integer", i32(6) + b"\1", TRUNCATED, _ENDS),
        ("big integer", i32(4 + 1025) + bytes(1025), TOO_LARGE, "a number of 1025 bytes"),
        ("big decimal", i32(1) + b"\0\0", TRUNCATED, _ENDS),
        ("local date", i32(2023) + b"\2\x1d", CORRUPT, _NO_TIME),
        ("local date", i32(2023) + b"\0\1", CORRUPT, _NO_TIME),
        ("local time", b"\x18\0\0" + i32(0), CORRUPT, _NO_TIME),
        ("local time", b"\0\0\0" + _JAN, CORRUPT, _NO_TIME),
        ("local date-time", i32(-(1 << 31)) + bytes(9), CORRUPT, "a date without a time, or"),
        (
            "local date-time",
            i32(2024) + b"\1\1\x80" + bytes(6),
            CORRUPT,
            "a date without a time, or",
        ),
        ("instant", bytes(8) + _JAN, CORRUPT, _NO_TIME),
        ("instant", b"\x7f" + bytes(11), CORRUPT, _NO_TIME),
        ("instant", b"\x80" + bytes(11), CORRUPT, _NO_TIME),
        ("sql timestamp", bytes(8) + i32(-1), CORRUPT, _NO_TIME),
        # Lengths and characters of strings with more bytes than Flink writes, or in other forms.
        ("string", b"\x80\0", CORRUPT, "the length of a string is not one that Flink writes"),
        ("string", b"\x81\0", CORRUPT, "the length of a string is not one that Flink writes"),
        ("string", b"\x81\x80\x80\x80\x08", CORRUPT, "the length of a string is not one"),
        ("string", b"\x80\x80\x80\x80\x80\1", CORRUPT, "the length of a string is not one"),
        ("string", b"\xff\xff\xff\xff\7ab", TRUNCATED, _ENDS),
        ("string", b"\x81", TRUNCATED, _ENDS),
        ("string", b"\3a", TRUNCATED, _ENDS),
        ("string", b"\3\x80\1", TRUNCATED, _ENDS),
        ("string", b"\2\x80\x80", TRUNCATED, _ENDS),
        ("string", b"\2\x80\x80\x80", CORRUPT, "a character of a string takes more than 16 bits"),
        ("string", b"\2\xff\xff\4", CORRUPT, "a character of a string is not one that Flink"),
        ("string", b"\2\x80\0", CORRUPT, "a character of a string is not one that Flink writes"),
        ("string value", b"\2a", TRUNCATED, _ENDS),
    ],
)
def test_value_never_written_by_flink_is_refused(
    name: str, value: bytes, kind: ErrorKind, problem: str
) -> None:
    refuse(snapshot(name), value, kind, problem, "2.2")


def test_big_integer_of_maximum_size_is_read() -> None:
    value = value_of(snapshot("big integer"), i32(4 + 1024) + b"\x7f" + bytes(1023))
    assert value == str(0x7F << 8 * 1023)


def test_number_of_zero_length_values_is_limited() -> None:
    nothings = composed(ListOf(BytesSerializer(snapshot("null value"))))
    assert value_of(nothings, i32(1 << 16)) == [None] * (1 << 16)
    problem = "more than 65536 values without bytes"
    refuse(nothings, i32((1 << 16) + 1), CORRUPT, problem, "2.2")


def test_error_for_keyed_value_contains_offset_of_entry() -> None:
    for heap, at in ((False, _KEY_AT), (True, 6)):
        with pytest.raises(DecodeError) as refused:
            value_of(snapshot("boolean"), b"\2", heap=heap)
        assert refused.value.byte_offset == at
        with pytest.raises(DecodeError) as refused:
            value_of(snapshot("long"), bytes(7), heap=heap)
        assert (refused.value.kind, refused.value.byte_offset) == (TRUNCATED, at)


# -- SQL's binary rows, arrays, and maps: little-endian ------------------------------------------

_ARRAY = "ArrayData"  # of BIGINT
_TEXTS = "ArrayData of STRING"
_STAMPS = "ArrayData of TIMESTAMP(6)"
_TIMES = "ArrayData of TIME(0)"


def le(*numbers: int) -> bytes:
    return pack(f"<{len(numbers)}i", *numbers)


def sized(data: bytes) -> bytes:
    return i32(len(data)) + data


@pytest.mark.parametrize(
    ("name", "data", "kind", "problem"),
    [
        (_ARRAY, le(-1, 0), CORRUPT, "-1 elements in an array of 8 bytes"),
        (_ARRAY, le(1, 0, 1), CORRUPT, "1 elements in an array of 12 bytes"),
        (_ARRAY, b"\0\0", TRUNCATED, _ENDS),
        (_TEXTS, le(1, 0, 8, 16), CORRUPT, "a part of 8 bytes at byte 16 of 16"),
        (_TEXTS, le(1, 0, 1, -1), CORRUPT, "127 bytes in a slot of 7"),
        (_TEXTS, le(1, 0, -4, 16), CORRUPT, "a part of -4 bytes at byte 16 of 16"),
        (_TEXTS, le(1, 0) + b"abcdefg\x88", CORRUPT, "8 bytes in a slot of 7"),
        # Two strings in the same place.
        (
            _TEXTS,
            le(2, 0, 8, 24, 8, 24) + b"abcdefgh",
            CORRUPT,
            "its parts are longer than its bytes",
        ),
        (_STAMPS, le(1, 0, 0, 9) + bytes(0), CORRUPT, "a timestamp at byte 9 of 16"),
        (_STAMPS, le(1, 0, 0, -1), CORRUPT, "a timestamp at byte -1 of 16"),
        (_STAMPS, le(1, 0, 1_000_000, 8), CORRUPT, "does not have 1000000 nanoseconds"),
        (_STAMPS, le(1, 0, -1, 8), CORRUPT, "does not have -1 nanoseconds"),
        (_TIMES, le(1, 0, 86_400_000), CORRUPT, "a time of day cannot be 86400000 ms"),
        (_TIMES, le(1, 0, -1), CORRUPT, "a time of day cannot be -1 ms"),
        ("MapData", le(-1), CORRUPT, "keys of -1 bytes in a map of 4"),
        ("MapData", le(1), CORRUPT, "keys of 1 bytes in a map of 4"),
        ("MapData", le(12, 1, 0, 5, 0, 0), CORRUPT, "1 keys and 0 values in a map"),
        ("row of nulls", bytes(8 * 28), TRUNCATED, _ENDS),
        ("ArrayData of DECIMAL(20, 1)", le(1, 0, 0, 16), CORRUPT, "a number without digits"),
    ],
)
def test_sql_value_never_written_by_flink_is_refused(
    name: str, data: bytes, kind: ErrorKind, problem: str
) -> None:
    refuse(snapshot(name), sized(data), kind, problem, "2.2")


def test_sql_row_parts_must_not_overlap() -> None:
    """Two strings of the row are stored in the same place."""
    row = snapshot("row of every type of SQL's")
    nulls = bytearray(b"\0" + b"\xff" * 7)
    nulls[2] &= ~1  # f8, a text
    nulls[1] &= ~0x80  # f7, a text
    slots = bytearray(8 * 28)
    slots[7 * 8 : 9 * 8] = le(8, 8 * 29, 8, 8 * 29)
    value = bytes(nulls) + bytes(slots) + b"abcdefgh"
    refuse(row, sized(value), CORRUPT, "its parts are longer than its bytes", "2.2")
    slots[8 * 8 : 9 * 8] = b"abc" + bytes(4) + b"\x83"
    found = value_of(row, sized(bytes(nulls) + bytes(slots) + b"abcdefgh"))
    assert (found["f7"], found["f8"]) == ("abcdefgh", "abc")


# -- Kryo -----------------------------------------------------------------------------------------

# A new ArrayList, whose class is named for the first time.
_LIST = b"\1\0java.util.ArrayLis\xf4\1"
_MANY = b"\xff\xff\xff\xff\x0f"
_DEEP = "objects nested more than 64 deep"


def _kryo_name(name: str) -> bytes:
    return b"\1\0" + name[:-1].encode() + bytes((ord(name[-1]) | 0x80,)) + b"\1"


@pytest.mark.parametrize(
    ("flink", "value", "kind", "problem"),
    [
        (
            None,
            b"\1\0com.user.Thin\xe7\1",
            UNSUPPORTED,
            "objects of type com.user.Thing are not supported",
        ),
        (None, b"\x52\1", UNSUPPORTED, "objects of type java.net.URI are not supported"),
        (None, b"\x48\1", UNSUPPORTED, "an unsupported class (Kryo's id 70)"),
        (None, b"\x58\1", UNSUPPORTED, "an unsupported class (Kryo's id 86)"),
        (None, b"\1\1", CORRUPT, "a class without a name"),
        (None, b"\1\0\x80", CORRUPT, "a class without a name"),
        (None, b"\3\2", CORRUPT, "a reference to nothing"),
        (None, b"\2\x80\x80\x80\x80\x10", CORRUPT, "a varint is longer than 32 bits"),
        (None, b"\2\x80\x80\x80\x80\x80\0", CORRUPT, "a varint is longer than 32 bits"),
        (None, b"\5\2", CORRUPT, _NO_BOOLEAN),
        (None, b"\3\1ab", TRUNCATED, _ENDS),
        (None, b"\3\1\x84ab", TRUNCATED, _ENDS),
        (None, b"\3\1\x82\x80", CORRUPT, "a character that Kryo never writes"),
        (None, b"\3\1\x82\xf0", CORRUPT, "a character that Kryo never writes"),
        (None, b"\x0a" + bytes(7), TRUNCATED, _ENDS),
        (None, b"\2", TRUNCATED, _ENDS),
        (None, b"\2\2\2", CORRUPT, f"1 {_LEFT}"),
        # A list that contains itself. The decoder has not finished the inner list.
        ("1.20", _LIST + b"\1" + b"\1\0\2", UNSUPPORTED, "an object that contains itself"),
        ("2.2", _LIST + b"\2" + b"\1\0\2", UNSUPPORTED, "an object that contains itself"),
        ("1.20", _LIST + b"\1" + b"\1\0\3", CORRUPT, "a reference to nothing"),
        ("1.20", _LIST + b"\2" + b"\0", TRUNCATED, _ENDS),
        ("2.2", _LIST + b"\0", CORRUPT, "a collection is null"),
        ("2.2", _LIST + b"\x83\2\2", CORRUPT, _NO_BOOLEAN),
        ("2.2", _LIST + b"\x83\2\0\2", TRUNCATED, _ENDS),
        ("2.2", _kryo_name("java.util.HashMap") + b"\0", CORRUPT, "a map is null"),
        ("1.20", _kryo_name("java.util.HashMap") + b"\1\0", TRUNCATED, _ENDS),
        (
            "1.20",
            _kryo_name("java.util.TreeSet") + b"\1\1com.user.Orde\xf2\1",
            UNSUPPORTED,
            "the comparator com.user.Order is not supported",
        ),
        (
            "2.2",
            _kryo_name("java.util.TreeMap") + b"\1\1\1com.user.Orde\xf2\1",
            UNSUPPORTED,
            "the comparator com.user.Order is not supported",
        ),
        (
            "1.20",
            _kryo_name("java.time.LocalDate") + b"\0\x1e\0\2\2",
            CORRUPT,
            "an invalid date or time",
        ),
        (
            "2.2",
            _kryo_name("java.time.LocalDate") + b"\1\2\x1e",
            CORRUPT,
            "an invalid date or time",
        ),
        (
            "1.20",
            _kryo_name("java.time.LocalTime") + b"\x18\0\0\0",
            CORRUPT,
            "an invalid date or time",
        ),
        ("2.2", _kryo_name("java.time.LocalTime") + b"\xe7", CORRUPT, "an invalid date or time"),
        (
            "2.2",
            _kryo_name("java.time.Instant") + b"\0\xff\xff\xff\xff\x0f",
            CORRUPT,
            "an invalid date or time",
        ),
        ("1.20", _kryo_name("java.time.Instant") + b"\1\0", CORRUPT, "an invalid date or time"),
        (None, _kryo_name("[I") + b"\0", CORRUPT, "an array is null"),
        (None, _kryo_name("[B") + b"\0", CORRUPT, "an array is null"),
        (None, _kryo_name("[I") + b"\3\0", TRUNCATED, _ENDS),
        (None, _kryo_name("[B") + b"\3\0", TRUNCATED, _ENDS),
        (
            None,
            _kryo_name("[Lcom.user.Thing;") + b"\1",
            UNSUPPORTED,
            "objects of type [Lcom.user.Th",
        ),
        ("1.20", _kryo_name("java.time.Month") + b"\x0d", CORRUPT, "an enum has no such constant"),
        ("2.2", _kryo_name("java.time.Month")[:-1] + b"\x0d", CORRUPT, "no such constant"),
        ("1.20", _kryo_name("java.time.Duration") + b"\1\0", CORRUPT, "an invalid duration"),
        (
            "2.2",
            _kryo_name("java.time.Duration") + bytes(8) + _MANY,
            CORRUPT,
            "an invalid duration",
        ),
        (
            "1.20",
            _kryo_name("java.time.ZoneOffset") + _MANY,
            CORRUPT,
            "an invalid time zone offset",
        ),
        (
            "2.2",
            _kryo_name("java.time.ZoneOffset") + b"\x49",
            CORRUPT,
            "an invalid time zone offset",
        ),
        ("2.2", b"\x54\1" + bytes(15), TRUNCATED, _ENDS),
        (
            "2.2",
            b"\x51\1\0\xff\xff\xff\xff\x0f",
            CORRUPT,
            "an invalid date or time",
        ),
    ],
)
def test_value_that_kryo_never_writes_is_refused(
    flink: str | None, value: bytes, kind: ErrorKind, problem: str
) -> None:
    for version in (flink,) if flink else ("1.20", "2.2"):
        refuse(snapshot("Kryo Integer", version), value, kind, problem, version)


def _nested(lists: int, flink: str) -> bytes:
    """Encode an Integer in this number of nested lists."""
    one = b"\1" if flink == "1.20" else b"\2"
    first = _LIST + one
    return first + (b"\1\0\1" + one) * (lists - 1) + b"\2\2"


@pytest.mark.parametrize("flink", ["1.20", "2.2"])
def test_nesting_of_kryo_objects_is_limited_to_64_levels(flink: str) -> None:
    serializer = snapshot("Kryo Integer", flink)
    value = value_of(serializer, _nested(64, flink), flink=flink)
    for _ in range(64):
        (value,) = value
    assert value == 1
    refuse(serializer, _nested(65, flink), CORRUPT, _DEEP, flink)


@pytest.mark.parametrize("flink", ["1.20", "2.2"])
@pytest.mark.parametrize("half", ["key", "value"])
def test_nesting_of_kryo_maps_is_limited_to_64_levels(flink: str, half: str) -> None:
    serializer = snapshot("Kryo Integer", flink)
    one = b"\1" if flink == "1.20" else b"\2"
    new, again = _kryo_name("java.util.HashMap") + one, b"\1\0\1" + one
    if half == "key":
        value = new + again * 64 + b"\2\2" * 66
    else:
        value = new + (b"\2\2" + again) * 64 + b"\2\2\2\2"
    refuse(serializer, value, CORRUPT, _DEEP, flink)


@pytest.mark.parametrize("flink", ["1.20", "2.2"])
@pytest.mark.parametrize("name", ["SingletonList", "SingletonSet", "SingletonMap"])
def test_nesting_of_kryo_singleton_collections_is_limited_to_64_levels(
    name: str, flink: str
) -> None:
    serializer = snapshot("Kryo Integer", flink)
    new, again = _kryo_name(f"java.util.Collections${name}"), b"\1\0\1"
    halves = (b"", b"\2\2") if name == "SingletonMap" else (b"",)
    for before in halves:
        after = b"\2\2" if halves[1:] and not before else b""

        def lists(depth: int, before: bytes = before, after: bytes = after) -> bytes:
            return new + (before + again) * (depth - 1) + before + b"\2\2" + after * depth

        value_of(serializer, lists(64), flink=flink)
        refuse(serializer, lists(65), CORRUPT, _DEEP, flink)


@pytest.mark.parametrize(
    ("name", "version", "part"),
    [
        ("java.time.LocalDateTime", 2, "java.time.LocalDate"),
        ("java.time.LocalDateTime", 2, "java.time.LocalTime"),
        ("java.time.OffsetDateTime", 2, "java.time.LocalDateTime"),
        ("java.time.OffsetDateTime", 2, "java.time.LocalDate"),
        ("java.time.OffsetDateTime", 2, "java.time.ZoneOffset"),
        ("java.time.OffsetTime", 2, "java.time.LocalTime"),
        ("java.time.OffsetTime", 2, "java.time.ZoneOffset"),
        ("[Ljava.lang.String;", 2, "java.lang.String"),
        ("[Ljava.lang.String;", 5, "java.lang.String"),
        ("[Ljava.lang.Integer;", 5, "java.lang.Integer"),
    ],
)
def test_kryo_type_is_unreadable_if_job_registers_serializer_for_one_of_its_parts(
    name: str, version: int, part: str
) -> None:
    """Kryo uses the registered serializer for each field or element whose class is final."""
    refused = kryo.kryo_type(name, [(part, False)], (), version)
    assert refused == types.Unreadable(
        name, f"Kryo writes it, with the job's own serializer for {part}"
    )
    assert isinstance(kryo.kryo_type(name, [(part, True)], (), version), types.Kryo)
    other = [("java.util.UUID", False)]
    assert isinstance(kryo.kryo_type(name, other, (), version), types.Kryo)


def test_kryo_5_date_time_is_readable_even_if_job_registers_serializer_for_date() -> None:
    """Kryo 5 does not use the registered serializer to write the date within a date-time."""
    own = [("java.time.LocalDate", False)]
    assert isinstance(kryo.kryo_type("java.time.LocalDateTime", own, (), 5), types.Kryo)


def test_kryo_object_is_refused_if_job_registers_serializer_for_one_of_its_parts() -> None:
    """The job's LocalDate serializer writes the month first, so 6 May looks like 5 June."""
    own = kryo.kryo_type("java.lang.Object", [("java.time.LocalDate", False)], (), 2)
    assert isinstance(own, types.Kryo)
    written = _kryo_name("java.time.LocalDateTime") + b"\1\0\5\0\6\xd0\x1f\1\x17\x3b\0\0"
    with pytest.raises(DecodeError) as refused:
        kryo.read_kryo(own, written, 0)
    problem = "Kryo: an object of java.time.LocalDate is written by the job's own serializer"
    assert (refused.value.kind, refused.value.problem) == (UNSUPPORTED, problem)


def test_number_of_nulls_in_kryo_collection_is_limited() -> None:
    serializer = snapshot("Kryo Integer")

    def nulls(count: int) -> bytes:
        number, data = count + 1, bytearray()
        data.append(0x80 | 0x40 | number & 0x3F)
        number >>= 6
        while number >= 0x80:
            data.append(0x80 | number & 0x7F)
            number >>= 7
        return _LIST + bytes(data) + bytes((number,)) + b"\0"

    assert value_of(serializer, nulls(1 << 16)) == [None] * (1 << 16)
    problem = "more than 65536 nulls in one collection"
    refuse(serializer, nulls((1 << 16) + 1), UNSUPPORTED, problem, "2.2")


@pytest.mark.parametrize("flink", ["1.20", "2.2"])
def test_kryo_references_count_toward_object_limit(
    flink: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three references to a list with one Integer count as three copies of the list."""
    one = b"\1" if flink == "1.20" else b"\2"
    first = _LIST + (b"\4" if flink == "1.20" else b"\5")
    value = first + b"\1\0\1" + one + b"\2\2" + b"\1\0\3" * 3
    serializer = snapshot("Kryo Integer", flink)
    monkeypatch.setattr(kryo, "_MAX_OBJECTS", 12)
    assert value_of(serializer, value, flink=flink) == [[1], [1], [1], [1]]
    monkeypatch.setattr(kryo, "_MAX_OBJECTS", 11)
    refuse(serializer, value, CORRUPT, "Kryo: more than 11 objects in one value", flink)
    # Four objects precede the first reference.
    monkeypatch.setattr(kryo, "_MAX_OBJECTS", 4)
    refuse(serializer, value, CORRUPT, "Kryo: more than 4 objects in one value", flink)
    monkeypatch.setattr(kryo, "_MAX_OBJECTS", 3)
    refuse(serializer, value, CORRUPT, "nested more than 64 deep, or more than 3 objects", flink)


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        (_TIMES, le(1, 0, 0), ["00:00"]),
        (_TIMES, le(1, 0, 86_399_999), ["23:59:59.999"]),
        (_TEXTS, le(1, 0) + b"a\xffb\0\0\0\0\x83", ["a\ufffdb"]),
        (_TEXTS, le(1, 0) + b"abcdefg\x87", ["abcdefg"]),
        (_TEXTS, le(1, 0) + bytes(7) + b"\x80", [""]),
        (_TEXTS, le(1, 0, 8, 16) + b"abcdefgh", ["abcdefgh"]),
        (_STAMPS, le(1, 0, 999_999, 16) + bytes(8), ["1970-01-01T00:00:00.000999999"]),
    ],
)
def test_sql_values_at_their_bounds_are_read(name: str, data: bytes, expected: Any) -> None:
    for heap in (False, True):
        assert value_of(snapshot(name), sized(data), heap=heap) == expected


@pytest.mark.parametrize("number", [0, 1, 7, 8, 9, 16])
def test_null_mask_has_a_bit_per_value(number: int) -> None:
    size = (number + 7) // 8
    values = b"".join(i32(n) for n in range(number))
    for heap in (False, True):
        found = value_of(snapshot("LinkedList"), i32(number) + bytes(size) + values, heap=heap)
        assert found == list(range(number))
    for skipped in (0, 2):
        fields = number - skipped
        if fields > 0:
            row = types.Row((types.Scalar(types.Kind.INT),) * fields, has_kind=skipped > 0)
            data = bytes(size) + i32(*range(fields))
            value, end = reader(row)(data, 0)
            assert (list(value.values())[:fields], end) == (list(range(fields)), len(data))


# -- Avro -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "kind", "problem"),
    [
        (b"\0", CORRUPT, "a string is null"),
        (b"\2a\0", CORRUPT, "a string is null"),
        (b"", TRUNCATED, "it ends inside of a string"),
        (b"\2a\x0a", TRUNCATED, "it ends inside of a string"),
    ],
)
def test_avro_schema_with_null_or_truncated_string_is_refused(
    texts: bytes, kind: ErrorKind, problem: str
) -> None:
    out = DataOutput()
    out.utf(AVRO)
    out.i32(3)
    head = i32(6) + b"\0" + i32(2) + out.to_bytes() + texts
    (unread,) = read(Handle(head, (0,) * MAX_PARALLELISM)).unread
    assert (unread.error.kind, unread.error.problem) == (kind, problem)
    assert unread.error.field == "Avro schema"


AVRO = "org.apache.flink.formats.avro.typeutils.AvroSerializerSnapshot"


def avro(schema: Any, *, version: int = 2) -> bytes:
    """Encode an Avro snapshot. Version 2 writes its strings with Java's writeUTF."""
    out = DataOutput()
    out.utf(AVRO)
    out.i32(version)
    if version == 2:
        out.utf("org.apache.avro.generic.GenericRecord")
    out.utf(schema if isinstance(schema, str) else json.dumps(schema))
    return out.to_bytes()


def logical(primitive: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": primitive, "logicalType": name, **more}


_TREE = {
    "type": "record",
    "name": "Tree",
    "fields": [{"name": "next", "type": ["null", "Tree"]}],
}
_DAY_MICROS = 86_400_000_000


def _item_and_items(type_: str) -> dict[str, Any]:
    """Return a schema that defines an item of one field, and refers to it in an array."""
    item = {"type": "record", "name": "Item", "fields": [{"name": "f", "type": type_}]}
    items = {"type": "array", "items": "Item"}
    fields = [{"name": "first", "type": item}, {"name": "items", "type": items}]
    return {"type": "record", "name": "Order", "fields": fields}


@pytest.mark.parametrize(
    ("schema", "value", "kind", "problem"),
    [
        ("boolean", b"\2", CORRUPT, f"Avro: {_NO_BOOLEAN}"),
        ("string", i32(-1), TRUNCATED, _ENDS),
        ("string", i32(3) + b"ab", TRUNCATED, _ENDS),
        (["null", "int"], i32(2), CORRUPT, "branch 2 of a union with 2 branches"),
        (["null", "int"], i32(-1), CORRUPT, "branch -1 of a union with 2 branches"),
        (
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            i32(2),
            CORRUPT,
            "symbol 2 of an enum with 2 symbols",
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            i32(-1),
            CORRUPT,
            "symbol -1 of an enum with 1 symbols",
        ),
        ({"type": "fixed", "name": "F", "size": 3}, b"ab", TRUNCATED, _ENDS),
        ({"type": "array", "items": "int"}, b"\2" + bytes(7), TRUNCATED, _ENDS),
        ({"type": "array", "items": "int"}, b"\1" + bytes(4), TRUNCATED, _ENDS),
        ({"type": "array", "items": "null"}, b"\x81\x80\4\0", CORRUPT, "more than 65536 items"),
        ({"type": "array", "items": "null"}, b"\1\x80\x80\4\0", CORRUPT, "more than 65536 items"),
        (_item_and_items("null"), b"\x81\x80\4\0", CORRUPT, "more than 65536 items without bytes"),
        ({"type": "array", "items": "null"}, b"\x80" * 9 + b"\1", CORRUPT, "longer than 63 bits"),
        (logical("int", "time-millis"), i32(86_400_000), CORRUPT, "a time of day cannot be"),
        (logical("int", "time-millis"), i32(-1), CORRUPT, "a time of day cannot be -1000000 ns"),
        (logical("long", "time-micros"), pack(">q", _DAY_MICROS), CORRUPT, "a time of day"),
        (_TREE, i32(1) * 67 + i32(0), CORRUPT, "records nested more than 64 deep"),
    ],
)
def test_value_that_avro_never_writes_is_refused(
    schema: Any, value: bytes, kind: ErrorKind, problem: str
) -> None:
    refuse(avro(json.dumps(schema)), value, kind, problem, "2.2")


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ("boolean", b"\0", False),
        (logical("long", "timestamp-nanos"), pack(">q", -1), "1969-12-31T23:59:59.999999999Z"),
        (logical("long", "local-timestamp-nanos"), pack(">q", 1), "1970-01-01T00:00:00.000000001"),
        (logical("int", "time-millis"), i32(0), "00:00"),
        (logical("int", "time-millis"), i32(86_399_999), "23:59:59.999"),
        (logical("long", "time-micros"), pack(">q", 1), "00:00:00.000001"),
        (logical("bytes", "decimal", precision=4), i32(2) + b"\1\0", "256"),
        ({"type": "array", "items": "null"}, b"\x80\x80\4\0", [None] * (1 << 16)),
        (
            _item_and_items("int"),
            i32(7) + b"\x81\x80\4" + i32(7) * 65_537 + b"\0",
            {"first": {"f": 7}, "items": [{"f": 7}] * 65_537},
        ),
        (
            {"type": "array", "items": "int"},
            b"\x81\x80\x04" + bytes(4 * 65_537) + b"\0",
            [0] * 65_537,
        ),
        ({"type": "array", "items": "int"}, b"\1" + i32(1) + b"\2" + i32(2, 3) + b"\0", [1, 2, 3]),
        ({"type": "array", "items": "int"}, b"\x81\0" + i32(7) + b"\0", [7]),
    ],
)
def test_avro_values_allowed_by_specification_are_read(
    schema: Any, value: bytes, expected: Any
) -> None:
    for version in (1, 2):
        for heap in (False, True):
            found = value_of(avro(json.dumps(schema), version=version), value, heap=heap)
            assert found == expected


def test_nested_avro_records_are_read_up_to_limit() -> None:
    found = value_of(avro(_TREE), i32(1) * 65 + i32(0))
    for _ in range(65):
        found = found["next"]
    assert found == {"next": None}


_DEEP_SCHEMA = '{"type": "array", "items": '


def _records(depth: int) -> str:
    """Return the schema of an int in this number of nested records."""
    found = '"int"'
    for number in range(depth):
        fields = f'[{{"name": "f", "type": {found}}}]'
        found = f'{{"type": "record", "name": "R{number}", "fields": {fields}}}'
    return found


def test_nested_avro_schema_is_read_up_to_32_levels() -> None:
    found = value_of(avro(_records(32)), i32(5))
    for _ in range(32):
        found = found["f"]
    assert found == 5


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("{", "invalid JSON"),
        (_records(33), "types nested more than 32 deep"),
        ("5", "a type must be a name, an object, or a list"),
        ("[]", "a union without branches"),
        ('"Unknown"', "no type has the name 'Unknown'"),
        ('{"type": "record", "name": "R"}', "a record without fields"),
        ('{"type": "record", "name": "R", "fields": [5]}', "a field without a name"),
        ('{"type": "record", "name": "R", "fields": [{"name": 5}]}', "a field without a name"),
        ('{"type": "record", "fields": []}', "a type without a name"),
        ('{"type": "record", "name": "R", "namespace": 5, "fields": []}', "a type without a name"),
        ('{"type": "fixed", "name": "F"}', "a fixed without a size"),
        ('{"type": "fixed", "name": "F", "size": -1}', "a fixed without a size"),
        ('{"type": "fixed", "name": "F", "size": "1"}', "a fixed without a size"),
        ('{"type": "enum", "name": "E"}', "the symbols of an enum are not names"),
        ('{"type": "enum", "name": "E", "symbols": [5]}', "the symbols of an enum are not names"),
        (json.dumps(logical("bytes", "decimal", scale=-1)), "the scale of a decimal"),
        (json.dumps(logical("bytes", "decimal", scale=65_537)), "the scale of a decimal"),
        ('{"type": "bytes", "logicalType": "decimal", "scale": "2"}', "the scale of a decimal"),
        (_DEEP_SCHEMA * 33 + '"int"' + "}" * 33, "types nested more than 32 deep"),
        ('{"type": "map", "values": ' * 33 + '"int"' + "}" * 33, "types nested more than 32"),
        ("[" * 33 + '"int"' + "]" * 33, "types nested more than 32 deep"),
        ('{"type": ' * 34 + '"int"' + "}" * 34, "types nested more than 32 deep"),
    ],
)
def test_invalid_avro_schema_is_refused(schema: str, problem: str) -> None:
    with pytest.raises(DecodeError, match="not an Avro schema: ") as refused:
        only(read(handle_of_value(avro(schema), b"")))
    assert problem in refused.value.problem
    assert (refused.value.kind, refused.value.field) == (CORRUPT, "Avro schema")


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (_DEEP_SCHEMA * 31 + '"int"' + "}" * 31, b"\0", []),
        ('{"type": {"type": "int"}}', i32(5), 5),
        ('{"type": "error", "name": "R", "fields": []}', b"", {}),
        # A namespace of the enclosing record, of the type itself, and in the name.
        (
            '{"type": "record", "name": "a.R", "fields": [{"name": "f", "type":'
            ' {"type": "enum", "name": "E", "symbols": ["X"]}}, {"name": "g", "type": "a.E"},'
            ' {"name": "h", "type": "E"}]}',
            i32(0, 0, 0),
            {"f": "X", "g": "X", "h": "X"},
        ),
        (
            '[{"type": "enum", "name": "E", "namespace": "n", "symbols": ["X"]}, "n.E"]',
            i32(1, 0),
            "X",
        ),
        ('[{"type": "enum", "name": "E", "symbols": ["X"]}, "E"]', i32(1, 0), "X"),
        (json.dumps(logical("bytes", "decimal", scale=65_536)), i32(1) + b"\0", None),
        ('{"type": "fixed", "name": "F", "size": 0}', b"", ""),
    ],
)
def test_valid_avro_schema_is_accepted(schema: str, value: bytes, expected: Any) -> None:
    found = value_of(avro(schema), value)
    assert found == expected or (expected is None and isinstance(found, str))


@pytest.mark.parametrize(("flink", "half"), [("1.20", b"\xd8\0"), ("2.2", b"\0\xd8")])
def test_lone_surrogate_in_kryo_string_becomes_replacement_character(
    flink: str, half: bytes
) -> None:
    assert value_of(snapshot("Kryo Integer", flink), b"\7" + half, flink=flink) == "\ufffd"


# -- subclasses of a POJO -------------------------------------------------------------------------


def test_pojo_subclass_is_read_with_its_own_fields() -> None:
    group = key_group_of(1, MAX_PARALLELISM)
    base = Pojo("Base", (("a", STRING),))
    out = DataOutput()
    base.write_snapshot(out)
    # The last two maps contain a registered subclass and an unregistered subclass.
    data, empty = out.to_bytes(), pack(">qi", 0x4F2C69A3D70, 0)
    assert data.endswith(empty * 2)
    maps = DataOutput()
    for name, part in (("One", STRING), ("Two", BIG_INTEGER)):
        inner = DataOutput()
        Pojo(name, (("b", part),)).write_snapshot(inner)
        maps.i64(0x4F2C69A3D70)
        maps.i32(1)
        maps.utf(name)
        maps.boolean(False)
        maps.boolean(True)
        maps.sized(inner.to_bytes())
    serializer = data[: -2 * len(empty)] + maps.to_bytes()
    assert value_of(serializer, b"\x08\0\2\0\2x") == {"b": "x"}
    assert value_of(serializer, b"\4\0\3Two\2\0" + i32(3)) == {"b": "10"}
    assert value_of(serializer, b"\2\0\2y") == {"a": "y"}
    refuse(serializer, b"\x08\1", CORRUPT, "subclass 1 of 1 registered ones", "2.2")
    entry = Entry(group, 1, None, {"k": b"\2\0\2y"})
    of = MapOf(STRING, BytesSerializer(serializer))
    (line,) = json_entries(
        only(read(handle_of_states([KeyedState("m", "MAP", VOID_NAMESPACE, of, (entry,))])))
    )
    assert line["value"] == {"a": "y"}
