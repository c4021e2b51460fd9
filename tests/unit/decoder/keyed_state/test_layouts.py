"""Layouts of keyed state by Flink's classes: heads, serializer snapshots, key groups, and timers.

The tests read each layout undamaged and with damage in a single place. The errors contain the
problem and its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import KeyedState, KeyedStates
from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_state import (
    Entry,
    encode_canonical,
    encode_head,
    encode_heap,
    key_group_of,
)
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.encoder.keyed_values import (
    INT,
    LONG,
    STRING,
    VOID_NAMESPACE,
    ListOf,
    MapOf,
    Serializer,
    TupleOf,
)
from tests.support.keyed_bytes import (
    MAX_PARALLELISM,
    BytesSerializer,
    Handle,
    canonical_group,
    handle_of_states,
    handle_of_value,
    json_entries,
    only,
    read,
)

_SERIALIZERS = Path(__file__).parents[3] / "golden" / "synthetic" / "serializers.json"
CORRUPT, TRUNCATED, UNSUPPORTED = ErrorKind.CORRUPT, ErrorKind.TRUNCATED, ErrorKind.UNSUPPORTED
_ENDS = "the bytes end inside of an entry"
_TIMER = "org.apache.flink.streaming.api.operators.TimerSerializerSnapshot"
_MAGIC, _NESTED = 911108, 1333245
_NOTHING = (0,) * MAX_PARALLELISM
_GROUP = key_group_of(1, MAX_PARALLELISM)


def i32(*numbers: int) -> bytes:
    return pack(f">{len(numbers)}i", *numbers)


def i64(*numbers: int) -> bytes:
    return pack(f">{len(numbers)}q", *numbers)


def utf(text: str) -> bytes:
    return pack(">H", len(text)) + text.encode("ascii")


def of(serializer: Serializer) -> bytes:
    out = DataOutput()
    serializer.write_snapshot(out)
    return out.to_bytes()


def composite(name: str, outer: int, *nested: bytes, content: bytes = b"") -> bytes:
    head = utf(name) + i32(3, _MAGIC, outer) + content
    return head + i32(_NESTED, 1, len(nested)) + b"".join(nested)


@cache
def _written() -> dict[str, dict[str, Any]]:
    """Return the serializers by name, from the newest Flink version."""
    return {one["name"]: one for one in json.loads(_SERIALIZERS.read_text())}


def flinks(name: str) -> bytes:
    return bytes.fromhex(_written()[name]["snapshot"])


def refused(found: KeyedStates) -> DecodeError:
    """Return the error of an operator whose states cannot be listed."""
    assert not found.states
    (unread,) = found.unread
    return unread.error


# -- heads ----------------------------------------------------------------------------------------

_KIND = {"KEYED_STATE_TYPE": "VALUE"}


def state(
    name: str,
    value: bytes | None,
    kind: int = 0,
    options: dict[str, str] = _KIND,
    namespace: bytes | None = of(VOID_NAMESPACE),
) -> bytes:
    out = utf(name) + i32(kind, len(options))
    out += b"".join(utf(option) + utf(text) for option, text in options.items())
    roles = (("NAMESPACE_SERIALIZER", namespace), ("VALUE_SERIALIZER", value))
    given = [(role, snapshot) for role, snapshot in roles if snapshot is not None]
    out += i32(len(given))
    return out + b"".join(utf(role) + i32(2) + snapshot for role, snapshot in given)


def head(*states: bytes, key: bytes = of(LONG), count: int | None = None) -> bytes:
    told_count = len(states) if count is None else count
    return i32(6) + b"\0" + i32(2) + key + pack(">h", told_count) + b"".join(states)


def listed(head_bytes: bytes) -> KeyedStates:
    return read(Handle(head_bytes, _NOTHING))


_ONE = state("one", of(LONG))
_PRELUDE = len(i32(6) + b"\0" + i32(2) + of(LONG)) + 2  # up to the first state


@pytest.mark.parametrize(
    ("data", "kind", "problem", "field", "at"),
    [
        (i32(5), UNSUPPORTED, "keyed state version 5 is not supported", "keyed state version", 0),
        (i32(6) + b"\2", CORRUPT, "a boolean is 0 or 1, not 2", "compressed", 4),
        (
            i32(6) + b"\0" + i32(1),
            UNSUPPORTED,
            "serializer's snapshot version 1 is not supported",
            "serializer's snapshot version",
            5,
        ),
        (
            head(_ONE, count=-1),
            CORRUPT,
            "a count cannot be negative: -1",
            "number of states",
            _PRELUDE - 2,
        ),
        (
            head(state("one", of(LONG), kind=1)),
            CORRUPT,
            "not a kind of keyed state: 1",
            "kind of state 'one'",
            _PRELUDE + 5,
        ),
        (
            head(_ONE, _ONE),
            CORRUPT,
            "two states have the same name",
            "states",
            _PRELUDE + 2 * len(_ONE),
        ),
        (
            head(state("l", of(LONG), options={"KEYED_STATE_TYPE": "LIST"})),
            CORRUPT,
            "the serializer of a list state is not a serializer for a list",
            "state 'l'",
            None,
        ),
        (
            head(state("m", of(LONG), options={"KEYED_STATE_TYPE": "MAP"})),
            CORRUPT,
            "the serializer of a map state is not a serializer for a map",
            "state 'm'",
            None,
        ),
        (head(_ONE) + b"\0", CORRUPT, "1 bytes are left over after the head", "head of a", None),
    ],
)
def test_error_for_damaged_head_of_keyed_state_contains_field_and_byte(
    data: bytes, kind: ErrorKind, problem: str, field: str, at: int | None
) -> None:
    error = refused(listed(data))
    assert problem in error.problem
    assert error.kind is kind
    assert error.field is not None and error.field.startswith(field)
    assert error.file == "operator 000102030405060708090a0b0c0d0e0f subtask 0 keyed state"
    if at is not None:
        assert error.byte_offset == at


def test_truncated_head_of_keyed_state_is_reported_as_truncated() -> None:
    data = head(_ONE, state("two", of(STRING)))
    assert [one.name for one in listed(data).states] == ["one", "two"]
    for end in range(len(data)):
        assert refused(listed(data[:end])).kind is TRUNCATED


_UNKNOWN = utf("com.user.TheirSnapshot") + i32(1)


def test_states_after_unknown_serializer_are_reported_as_unread() -> None:
    theirs = state("theirs", _UNKNOWN)
    found = listed(head(_ONE, theirs, state("lost", of(LONG))))
    one, other = found.states
    assert (one.name, one.reason) == ("one", None)
    assert other.name == "theirs" and other.reason is not None
    assert "unknown serializer snapshot com.user.TheirSnapshot" in other.reason
    (unread,) = found.unread
    error = unread.error
    assert (error.kind, error.field) == (UNSUPPORTED, "serializer snapshot's class")
    # If it is the last state, only this state is unreadable.
    found = listed(head(_ONE, theirs))
    assert [one.readable for one in found.states] == [True, False]
    assert found.unread == ()


def test_unknown_key_serializer_makes_every_state_unreadable() -> None:
    error = refused(listed(head(_ONE, key=_UNKNOWN)))
    assert error.kind is UNSUPPORTED
    assert "unknown serializer snapshot com.user.TheirSnapshot" in error.problem


@pytest.mark.parametrize(
    ("written", "kind", "reason"),
    [
        (state("s", of(LONG), options={}), "value", "a state of the kind '' is not supported"),
        (
            state("s", of(LONG), options={"KEYED_STATE_TYPE": "TIMERS"}),
            "value",
            "a state of the kind 'TIMERS' is not supported",
        ),
        (state("s", None), "value", "it has no serializer"),
        (state("s", of(LONG), namespace=None), "value", "it has no serializer"),
        (state("s", of(LONG), kind=3), "timers", "a priority queue whose elements are not timers"),
        (
            state("s", of(LONG), kind=4, options={"KEYED_STATE_TYPE": "MAP"}),
            "map",
            "it has no serializer for the map's keys",
        ),
        (state("s", None, kind=3), "timers", "it has no serializer"),
        (
            state("s", composite(_TIMER, 1, of(LONG), of(VOID_NAMESPACE)), kind=3),
            "timers",
            None,
        ),
        (
            state("s", of(ListOf(LONG)), options={"KEYED_STATE_TYPE": "LIST"}),
            "list",
            None,
        ),
        (state("s", None, options={"KEYED_STATE_TYPE": "LIST"}), "list", "it has no serializer"),
        (
            state("s", of(MapOf(LONG, STRING)), options={"KEYED_STATE_TYPE": "MAP"}),
            "map",
            None,
        ),
        (state("s", of(LONG), options={"KEYED_STATE_TYPE": "REDUCING"}), "reducing", None),
        (
            state(
                "s",
                composite(
                    "org.apache.flink.ListSerializerSnapshot",
                    1,
                    utf("org.apache.flink.runtime.state.JavaSerializer$JavaSerializerSnapshot")
                    + i32(3),
                ),
            ),
            "value",
            "a java.io.Serializable: written by Java's own serialization",
        ),
    ],
)
def test_state_is_listed_with_kind_and_with_reason_if_unreadable(
    written: bytes, kind: str, reason: str | None
) -> None:
    found = only(listed(head(written)))
    assert (found.kind.value, found.reason, found.ttl) == (kind, reason, False)
    if reason is not None:
        with pytest.raises(DecodeError) as error:
            json_entries(found)
        assert (error.value.kind, error.value.problem) == (UNSUPPORTED, reason)


# -- snapshots of serializers ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(_written()))
def test_unknown_serializer_version_is_refused_with_its_number(name: str) -> None:
    whole = flinks(name)
    own = whole[: 2 + int.from_bytes(whole[:2], "big")]
    class_name = own[2:].decode()
    handle = handle_of_value(own + i32(99) + whole[len(own) + 4 :], b"")
    at = handle.stream.index(own) + len(own)
    error = read(handle).states[0].reason or ""
    assert f"version 99 of {class_name} is not supported" in error
    # If the key's serializer is unknown, no state is listed, and the error contains the byte.
    failed = refused(listed(head(key=own + i32(99) + whole[len(own) + 4 :])))
    assert failed.field is not None and failed.field.startswith("version of ")
    assert failed.byte_offset == at - handle.stream.index(own) + len(i32(6, 2)) + 1


@pytest.mark.parametrize("name", sorted(_written()))
@pytest.mark.slow
def test_truncated_serializer_snapshot_is_refused(name: str) -> None:
    whole = head(key=flinks(name))
    ends = range(len(whole)) if len(whole) < 400 else range(0, len(whole), len(whole) // 97)
    for end in ends:
        failed = refused(listed(whole[:end]))
        assert failed.kind in (TRUNCATED, CORRUPT)
    assert listed(whole).unread == ()


@pytest.mark.parametrize(
    ("name", "old", "new", "kind", "problem", "field"),
    [
        ("tuple", i32(_MAGIC), i32(1), CORRUPT, "its magic number is missing", "org.apache"),
        ("tuple", i32(_NESTED), i32(1), CORRUPT, "their magic number is missing", "serializers"),
        ("External", i32(_NESTED), i32(1), CORRUPT, "their magic number is", "serializers in"),
        ("nullable", i32(0, _NESTED), i32(-1, _NESTED), CORRUPT, "between 0 and 65536", "padding"),
        (
            "nullable",
            i32(0, _NESTED),
            i32(65537, _NESTED),
            CORRUPT,
            "0 and 65536: 65537",
            "padding",
        ),
        ("DecimalData", i32(19, 3), i32(39, 3), CORRUPT, "not between 0 and 38: 39", "precision"),
        ("DecimalData", i32(19, 3), i32(-1, 3), CORRUPT, "not between 0 and 38: -1", "precision"),
        ("pojo", i64(0x4F2C69A3D70), i64(1), CORRUPT, "its magic number is missing", "map in"),
        ("row", i32(4) + b"\1", i32(4) + b"\2", CORRUPT, "a boolean is 0 or 1, not 2", None),
        ("tuple", i32(_NESTED, 1, 2), i32(_NESTED, 1, -1), CORRUPT, "negative", "serializers in"),
    ],
)
def test_error_for_damaged_serializer_snapshot_contains_field_and_byte(
    name: str, old: bytes, new: bytes, kind: ErrorKind, problem: str, field: str | None
) -> None:
    whole = flinks(name)
    at = whole.index(old)
    failed = refused(listed(head(key=whole[:at] + new + whole[at + len(old) :])))
    assert problem in failed.problem
    assert failed.kind is kind
    if field is not None:
        assert failed.field is not None and failed.field.startswith(field)
    base = len(i32(6, 2)) + 1
    if field != "serializers in" or "negative" not in problem:
        assert failed.byte_offset == base + at + (4 if field is None else 0)


def _key_error(key: bytes) -> DecodeError:
    return refused(listed(head(key=key)))


def test_serializer_snapshot_with_invalid_counts_or_scale_is_refused() -> None:
    failed = _key_error(flinks("tuple").replace(i32(_NESTED, 1), i32(_NESTED, 2)))
    assert (failed.kind, failed.problem) == (UNSUPPORTED, "their version is not supported")
    assert failed.byte_offset == 9 + flinks("tuple").index(i32(_NESTED)) + 4
    failed = _key_error(flinks("DecimalData")[:-4] + i32(20))
    assert "not between 0 and 19: 20" in failed.problem
    assert failed.field is not None and failed.field.startswith("scale of org.apache.flink")
    failed = _key_error(flinks("TimestampData")[:-4] + i32(10))
    assert "not between 0 and 9: 10" in failed.problem
    for count in (0, 2):
        inside = [of(LONG)] * count
        failed = _key_error(composite("org.apache.flink.ListSerializerSnapshot", 1, *inside))
        assert failed.problem == f"it contains {count} serializers, not 1"
        assert failed.field == "org.apache.flink.ListSerializerSnapshot"
    failed = _key_error(composite("org.apache.flink.MapSerializerSnapshot", 1, of(LONG)))
    assert failed.problem == "it contains 1 serializers, not 2"


@pytest.mark.parametrize(
    "name",
    ["org.apache.other.LongSerializer$LongSerializerSnapshot", "org.apache.flink.Unknown", "Long"],
)
def test_refusal_of_unknown_serializer_snapshot_includes_its_name(name: str) -> None:
    failed = _key_error(utf(name) + i32(3))
    assert f"unknown serializer snapshot {name}" in failed.problem
    assert failed.kind is UNSUPPORTED
    assert failed.byte_offset == len(i32(6, 2)) + 1 + len(utf(name))


def test_serializer_nesting_is_limited_to_32_levels() -> None:
    nested: Serializer = LONG
    for _ in range(32):
        nested = ListOf(nested)
    assert listed(head(key=of(nested))).unread == ()
    failed = _key_error(of(ListOf(nested)))
    assert "serializers nested more than 32 deep" in failed.problem
    assert failed.field == "serializer snapshot"


def test_older_versions_of_serializer_snapshots_are_read() -> None:
    """Version 2 of a simple snapshot contains its class name.

    The snapshots of rows and linked lists also have older versions.
    """
    simple = of(LONG)
    named = simple[:-4] + i32(2) + utf("org.apache.flink.LongSerializer")
    assert _only_value(named, i64(-7)) == -7
    row = flinks("row that was deleted")
    written = i32(4) + b"\1"
    at = row.index(written)
    for outer, value in (
        (i32(2), b"\x40" + b"\2a"),
        (i32(3), b"\x10" + b"\2a"),
        (i32(4) + b"\0", b"\x40" + b"\2a"),
    ):
        snapshot = row[:at] + outer + row[at + len(written) :]
        assert _only_value(snapshot, value) == {"f0": "a", "f1": None}
    linked = flinks("LinkedList")
    written = i32(_MAGIC, 3) + b"\1"
    for outer, value, elements in (
        (i32(1), i32(1, 5), [5]),
        (i32(2), i32(2) + b"\x80" + i32(5), [None, 5]),
        (i32(3) + b"\0", i32(1, 5), [5]),
    ):
        snapshot = linked.replace(written, i32(_MAGIC) + outer)
        assert snapshot != linked
        assert _only_value(snapshot, value) == elements
        assert _only_value(of(ListOf(BytesSerializer(snapshot))), i32(1) + value) == [elements]


def _only_value(snapshot: bytes, value: bytes) -> Any:
    (line,) = json_entries(only(read(handle_of_value(snapshot, value))))
    (alike,) = json_entries(only(read(handle_of_value(snapshot, value, heap=True))))
    assert line == alike
    return line["value"]


@pytest.mark.parametrize(
    ("snapshot", "reason"),
    [
        (
            utf("org.apache.flink.ValueSerializer$ValueSerializerSnapshot")
            + i32(2)
            + utf("com.user.Own"),
            "com.user.Own: it serializes itself (org.apache.flink.types.Value)",
        ),
        (
            utf("org.apache.flink.CopyableValueSerializer$CopyableValueSerializerSnapshot")
            + i32(2)
            + utf("com.user.Own"),
            "com.user.Own: it serializes itself (org.apache.flink.types.Value)",
        ),
        (
            utf("org.apache.flink.VariantSerializer$VariantSerializerSnapshot") + i32(3),
            "org.apache.flink.types.variant.Variant: SQL's VARIANT is not supported",
        ),
        (
            utf("org.apache.flink.KryoSerializerSnapshot")
            + i32(2)
            + utf("com.user.Own")
            + (i64(0x4F2C69A3D70) + i32(0)) * 3,
            "com.user.Own: Kryo writes it, and no snapshot contains its fields",
        ),
        (
            utf("org.apache.flink.KryoSerializerSnapshot")
            + i32(2)
            + utf("java.lang.Object")
            + (i64(0x4F2C69A3D70) + i32(0)) * 2
            + i64(0x4F2C69A3D70)
            + i32(1)
            + utf("com.user.Own")
            + b"\0\0",
            "java.lang.Object: Kryo writes it, with the job's own serializer for com.user.Own",
        ),
    ],
)
def test_state_with_unsupported_serializer_is_listed_with_reason(
    snapshot: bytes, reason: str
) -> None:
    found = only(read(handle_of_value(snapshot, b"")))
    assert found.reason == reason
    assert only(read(handle_of_value(of(ListOf(BytesSerializer(snapshot))), b""))).reason == reason


def test_row_key_serializer_with_generated_code_is_read() -> None:
    """A RowDataKey snapshot has two blobs of generated code before the row's own snapshot."""
    row = flinks("WindowKey")
    inner = row[row.index(i32(_NESTED)) + 12 :]
    snapshot = utf("org.apache.flink.RowDataKeySerializerSnapshot") + i32(0)
    snapshot += i32(3) + b"abc" + i32(1) + b"d" + inner
    data = bytes.fromhex(_written()["WindowKey"]["value"])[8:]
    assert _only_value(snapshot, data) == {"f0": 7}


def test_kryo_class_with_own_serializer_is_refused_but_next_registered_class_is_read() -> None:
    """Kryo refers to registered classes by ID, so a refused class must not change the next ID."""
    magic = i64(0x4F2C69A3D70)

    def registration(name: str, kind: int) -> bytes:
        frame = utf(name) + i32(kind)
        return utf(name) + b"\0\1" + i32(len(frame)) + frame

    snapshot = utf("org.apache.flink.KryoSerializerSnapshot") + i32(2) + utf("java.lang.Object")
    snapshot += magic + i32(3)
    snapshot += registration("java.util.LinkedList", 1) + registration("java.util.Vector", 0)
    snapshot += utf("java.util.Stack") + b"\0\0"
    snapshot += (magic + i32(0)) * 2
    assert _only_value(snapshot, b"\x58\1\1\2\2") == [1]
    for identifier in (85, 87, 88):
        with pytest.raises(DecodeError, match=f"Kryo's id {identifier}"):
            _only_value(snapshot, bytes((identifier + 2,)) + b"\1\1\2\2")


# -- key groups -----------------------------------------------------------------------------------

_LONG_1 = i64(1)


def value_state(name: str, value: Serializer = LONG, kind: Any = "VALUE") -> Encoded:
    return Encoded(name, kind, VOID_NAMESPACE, value, ())


def one_group(
    group: bytes,
    *states: Encoded,
    heap: bool = False,
    key: Serializer = LONG,
    at: int = _GROUP,
    max_parallelism: int = MAX_PARALLELISM,
) -> tuple[KeyedState, ...]:
    """Return the states of a stream whose only key group has these bytes."""
    start = encode_head(key, states)
    handle = Handle(start + group, (len(start),), at, savepoint=not heap)
    found = read(handle, max_parallelism=max_parallelism)
    assert found.unread == ()
    return found.states


def fails(state_: KeyedState) -> DecodeError:
    with pytest.raises(DecodeError) as error:
        json_entries(state_)
    return error.value


_KEY = bytes((_GROUP,)) + _LONG_1 + b"\0"
_WHERE = f"operator 000102030405060708090a0b0c0d0e0f subtask 0 keyed state key group {_GROUP}"


@pytest.mark.parametrize(
    ("group", "kind", "problem", "at"),
    [
        (b"\0", TRUNCATED, _ENDS, 0),
        (b"\0\0" + i32(10), TRUNCATED, _ENDS, 2),
        (canonical_group((0, _KEY, _LONG_1))[:-1], TRUNCATED, _ENDS, 28),
        (canonical_group((0, _KEY, _LONG_1))[:-2], TRUNCATED, _ENDS, 28),
        (
            canonical_group((0, _KEY, _LONG_1)) + b"ab",
            CORRUPT,
            "2 bytes are left over after the key group",
            30,
        ),
        (b"\0\0" + i32(0, 0) + b"\xff\xff", TRUNCATED, _ENDS, 2),
        (b"\0\0" + i32(10) + _KEY + i32(-1) + b"\xff\xff", TRUNCATED, _ENDS, 2),
        (
            canonical_group((0, _KEY, _LONG_1 + b"c")),
            CORRUPT,
            "1 bytes are left over after a value",
            6,
        ),
        (
            canonical_group((0, _KEY + b"c", _LONG_1)),
            CORRUPT,
            "1 bytes are left over after a key",
            6,
        ),
        (canonical_group((0, _KEY, _LONG_1[1:])), TRUNCATED, _ENDS, 6),
        (canonical_group((0, _KEY[:-1], _LONG_1)), TRUNCATED, _ENDS, 6),
        (
            canonical_group((0, bytes((_GROUP ^ 1,)) + _KEY[1:], _LONG_1)),
            CORRUPT,
            f"a key of key group {_GROUP ^ 1} is in key group {_GROUP}",
            6,
        ),
    ],
)
def test_error_for_damaged_canonical_key_group_contains_key_group_and_byte(
    group: bytes, kind: ErrorKind, problem: str, at: int
) -> None:
    error = fails(one_group(group, value_state("one"))[0])
    assert error.problem.partition(": it is not")[0] == problem
    assert (error.kind, error.file, error.byte_offset) == (kind, _WHERE, at)


def test_zero_length_value_is_read_as_null_in_canonical_layout() -> None:
    (found,) = one_group(
        canonical_group((0, _KEY, b"")), value_state("none", BytesSerializer(flinks("null value")))
    )
    assert [line["value"] for line in json_entries(found)] == [None]


def test_several_states_in_canonical_key_group_are_separated() -> None:
    group = canonical_group((0, _KEY, _LONG_1), (2, _KEY, i64(2)), (0, _KEY, i64(3)))
    found = one_group(group, value_state("a"), value_state("b"), value_state("c"))
    assert [[line["value"] for line in json_entries(one)] for one in found] == [[1, 3], [], [2]]


def test_lengths_of_key_and_namespace_are_checked_in_canonical_layout() -> None:
    """If neither the key nor the namespace has a fixed length, both lengths are stored after them.

    Each length is stored with its least significant byte first.
    """
    long = "x" * 300
    group = key_group_of(long, MAX_PARALLELISM)
    out = DataOutput()
    STRING.write(out, long)
    key = out.to_bytes()
    assert len(key) == 302
    whole = bytes((group,)) + key + b"\x2e\1" + b"\3ns" + b"\3"
    named = Encoded("s", "VALUE", STRING, LONG, ())
    (found,) = one_group(canonical_group((0, whole, _LONG_1)), named, key=STRING, at=group)
    assert [(line["key"], line["namespace"]) for line in json_entries(found)] == [(long, "ns")]
    problem = "the stored length of a part of a key is different"
    for place, byte in ((303, 0x2F), (304, 2), (304, 0), (308, 4)):
        damaged = whole[:place] + bytes((byte,)) + whole[place + 1 :]
        (found,) = one_group(canonical_group((0, damaged, _LONG_1)), named, key=STRING, at=group)
        assert fails(found).problem == problem


_NULLABLE = (
    "string",
    "big integer",
    "big decimal",
    "date",
    "sql date",
    "sql time",
    "sql timestamp",
    "instant",
    "local date",
    "local time",
    "local date-time",
)


@pytest.mark.parametrize("name", _NULLABLE)
def test_null_key_is_accepted_in_any_key_group(name: str) -> None:
    """Flink does not allow null keys.

    Its serializers can write them, but no key group is defined for them.
    """
    written = json.loads(_SERIALIZERS.read_text())
    (null,) = (one for one in written if one["name"] == name and one["told"] is None)
    key = BytesSerializer(flinks(name), 8)
    group = i32(7) + pack(">hi", 0, 1) + b"\0" + bytes.fromhex(null["value"]) + _LONG_1
    (found,) = one_group(group, value_state("one"), heap=True, key=key, at=7)
    assert [(line["key"], line["value"]) for line in json_entries(found)] == [(None, 1)]


def test_key_with_enum_is_accepted_in_any_key_group() -> None:
    """The hash of a Java enum differs in each JVM, so the key group cannot be checked."""
    enum = BytesSerializer(flinks("enum"), 4)
    either = composite("org.apache.flink.JavaEitherSerializerSnapshot", 1, flinks("enum"), of(INT))
    for key, data, expected in (
        (TupleOf((enum, INT)), i32(1, 5), {"f0": "GREEN", "f1": 5}),
        (TupleOf((INT, enum)), i32(5, 0), {"f0": 5, "f1": "RED"}),
        (BytesSerializer(either), b"\0" + i32(6), {"left": None, "right": 6}),
        (BytesSerializer(either), b"\1" + i32(2), {"left": "BLUE", "right": None}),
    ):
        group = i32(7) + pack(">hi", 0, 1) + b"\0" + data + _LONG_1
        (found,) = one_group(group, value_state("one"), heap=True, key=key, at=7)
        assert [line["key"] for line in json_entries(found)] == [expected]


def test_key_group_number_has_two_bytes_if_max_parallelism_exceeds_128() -> None:
    group = key_group_of(1, 129)
    key = pack(">H", group) + _LONG_1 + b"\0"
    (found,) = one_group(
        canonical_group((0, key, _LONG_1)), value_state("one"), at=group, max_parallelism=129
    )
    assert [line["key_group"] for line in json_entries(found)] == [group]
    key = pack(">H", group ^ 256) + _LONG_1 + b"\0"
    (found,) = one_group(
        canonical_group((0, key, _LONG_1)), value_state("one"), at=group, max_parallelism=129
    )
    assert f"a key of key group {group ^ 256} is in key group {group}" in fails(found).problem


def test_canonical_map_entries_are_read() -> None:
    counts = value_state("counts", MapOf(STRING, LONG), "MAP")
    entries = [
        (0, _KEY + b"\2a", b"\0" + _LONG_1),
        (0, _KEY + b"\2b", b"\1"),
        (0, _KEY + b"\2c", b"\1" + _LONG_1),  # the bytes that the serializer writes for null
    ]
    (found,) = one_group(canonical_group(*entries), counts)
    assert [(line["map_key"], line["value"]) for line in json_entries(found)] == [
        ("a", 1),
        ("b", None),
        ("c", None),
    ]
    (found,) = one_group(canonical_group((0, _KEY + b"\2a", b"\2" + _LONG_1)), counts)
    assert fails(found).problem == "a boolean is 0 or 1, not 2"
    (found,) = one_group(canonical_group((0, _KEY + b"\2a", b"")), counts)
    assert fails(found).kind in (TRUNCATED, CORRUPT)


def test_canonical_list_elements_are_read() -> None:
    items = value_state("items", ListOf(INT), "LIST")
    (found,) = one_group(canonical_group((0, _KEY, i32(1) + b"," + i32(2))), items)
    assert [line["value"] for line in json_entries(found)] == [[1, 2]]
    (found,) = one_group(canonical_group((0, _KEY, i32(1) + b";" + i32(2))), items)
    error = fails(found)
    assert (error.kind, error.problem) == (
        CORRUPT,
        "the elements of a list are not separated by a comma",
    )
    assert error.byte_offset == 6
    for value in (i32(1) + b"," + i32(2)[:3], i32(1)[:2], i32(1) + b","):
        (found,) = one_group(canonical_group((0, _KEY, value)), items)
        assert fails(found).kind is TRUNCATED


_FEW = range(2500)


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """Compare long lists, because pytest would take minutes to describe the difference."""
    equal = found == expected
    assert equal, found[:9]


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
def test_keyed_entries_are_read_completely_in_several_batches(heap: bool) -> None:
    entries = tuple(Entry(_GROUP, 1, number, number) for number in _FEW)
    handle = handle_of_states([Encoded("many", "VALUE", LONG, LONG, entries)], heap=heap)
    found = only(read(handle))
    assert_same([line["value"] for line in json_entries(found)], list(_FEW))
    (part,) = found.parts
    sizes = [len(batch) for batch in part.batches([_GROUP])]
    assert sum(sizes) == len(_FEW)
    assert len(sizes) > 1 and max(sizes) < len(_FEW) // 2 and min(sizes) > 1


@pytest.mark.parametrize(
    ("data", "kind", "problem", "at"),
    [
        (
            i32(_GROUP) + pack(">hi", 0, 0) + b"\0",
            CORRUPT,
            "1 bytes are left over after the key group",
            6,
        ),
        (i32(_GROUP) + b"\0", TRUNCATED, _ENDS, 0),
        (i32(_GROUP), TRUNCATED, _ENDS, 0),
        (i32(_GROUP) + pack(">hi", 1, 0), CORRUPT, "state 1 of 1 is unknown or repeated", 0),
        (i32(_GROUP) + pack(">hi", 0, -1), TRUNCATED, _ENDS, 0),
        (i32(_GROUP) + pack(">hi", 0, 2) + b"\0", TRUNCATED, _ENDS, 0),
        (i32(_GROUP) + pack(">hi", 0, 1) + b"\0" + _LONG_1, TRUNCATED, _ENDS, 6),
    ],
)
def test_error_for_damaged_heap_key_group_contains_key_group_and_byte(
    data: bytes, kind: ErrorKind, problem: str, at: int
) -> None:
    error = fails(one_group(data, value_state("one"), heap=True)[0])
    assert error.problem == problem
    assert (error.kind, error.file, error.byte_offset) == (kind, _WHERE, at)


def test_heap_states_are_read_in_any_order_but_repeated_state_is_refused() -> None:
    one = pack(">hi", 1, 1) + b"\0" + _LONG_1 + i64(5)
    group = i32(_GROUP) + one + pack(">hi", 0, 0)
    found = one_group(group, value_state("a"), value_state("b"), heap=True)
    assert [[line["value"] for line in json_entries(each)] for each in found] == [[], [5]]
    found = one_group(i32(_GROUP) + one + one, value_state("a"), value_state("b"), heap=True)
    error = fails(found[0])
    assert error.problem == "state 1 of 2 is unknown or repeated"
    assert error.byte_offset == len(one)


def test_heap_key_group_must_start_with_its_number() -> None:
    """The decoder recognizes the layout by the last key group.

    A different key group can be damaged.
    """
    group = pack(">hi", 0, 0)
    start = encode_head(LONG, [value_state("one")])
    first, second = i32(7) + group, i32(8) + group
    offsets = (len(start), len(start) + len(first))
    (found,) = read(Handle(start + first + second, offsets, 7, savepoint=False)).states
    assert json_entries(found) == []
    (found,) = read(Handle(start + i32(6) + group + second, offsets, 7, savepoint=False)).states
    error = fails(found)
    assert (error.kind, error.problem) == (CORRUPT, "key group 7 does not start with its number")


def test_empty_list_in_heap_layout_is_skipped() -> None:
    group = i32(_GROUP) + pack(">hi", 0, 1) + b"\0" + _LONG_1 + i32(0)
    (found,) = one_group(group, value_state("items", ListOf(INT), "LIST"), heap=True)
    assert json_entries(found) == []


def test_full_rocksdb_checkpoint_in_canonical_form_is_read() -> None:
    entry = Entry(_GROUP, 1, None, 5)
    states = [Encoded("one", "VALUE", VOID_NAMESPACE, LONG, (entry,))]
    stream, offsets = encode_canonical(LONG, states, range(MAX_PARALLELISM), MAX_PARALLELISM)
    (found,) = read(Handle(stream, offsets, savepoint=False)).states
    assert [line["value"] for line in json_entries(found)] == [5]
    (found,) = read(Handle(encode_head(LONG, states), _NOTHING, savepoint=False)).states
    assert json_entries(found) == []


def test_unordered_or_truncated_key_groups_are_refused() -> None:
    entry = Entry(_GROUP, 1, None, 5)
    states = [Encoded("one", "VALUE", VOID_NAMESPACE, LONG, (entry,))]
    stream, offsets = encode_heap(LONG, states, range(MAX_PARALLELISM))
    swapped = (offsets[1], offsets[0], *offsets[2:])
    twice = (offsets[1], offsets[1], *offsets[2:])
    for wrong in (swapped, twice):
        error = refused(read(Handle(stream, wrong, savepoint=False)))
        assert (error.kind, error.problem) == (
            CORRUPT,
            "its key groups are not in order",
        )
    error = refused(read(Handle(stream[:10], offsets, savepoint=False)))
    assert error.kind is TRUNCATED
    assert f"it ends early: bytes 0 to {offsets[0]} expected, 10 found" in error.problem
    (found,) = read(Handle(stream[: offsets[-1] - 1], offsets, savepoint=False)).states
    assert "it ends early" in fails(found).problem


def test_heap_state_after_unreadable_state_is_unreadable() -> None:
    """In the heap layout, the end of an unreadable value cannot be determined."""
    java = BytesSerializer(
        utf("org.apache.flink.state.JavaSerializer$JavaSerializerSnapshot") + i32(3)
    )
    states = [value_state("a"), value_state("java", java), value_state("c")]
    filled = pack(">hi", 1, 1) + b"\0" + _LONG_1 + b"???"
    one = pack(">hi", 0, 1) + b"\0" + _LONG_1 + i64(4)
    last = pack(">hi", 2, 1) + b"\0" + _LONG_1 + i64(6)
    empty = pack(">hi", 1, 0)
    a, unreadable, c = one_group(i32(_GROUP) + one + filled + last, *states, heap=True)
    assert [line["value"] for line in json_entries(a)] == [4]
    assert unreadable.reason is not None and "Java's own serialization" in unreadable.reason
    assert c.reason is not None
    assert "it is stored after the state 'java'; that state cannot be read" in c.reason
    assert "take a savepoint in canonical format" in c.reason
    # The unreadable state has no entries, or it is the last state.
    for group in (one + empty + last, last + one + filled):
        a, unreadable, c = one_group(i32(_GROUP) + group, *states, heap=True)
        assert (a.reason, c.reason) == (None, None)
        assert [line["value"] for line in json_entries(c)] == [6]
        assert [line["value"] for line in json_entries(a)] == [4]


def test_state_of_several_subtasks_is_merged() -> None:
    halves = (range(0, 64), range(64, 128))
    keys = range(20)
    handles = []
    for half in halves:
        entries = tuple(
            Entry(group, key, None, key)
            for key in keys
            if (group := key_group_of(key, MAX_PARALLELISM)) in half
        )
        states = [Encoded("one", "VALUE", VOID_NAMESPACE, LONG, entries)]
        stream, offsets = encode_heap(LONG, states, half)
        handles.append(Handle(stream, offsets, half[0], savepoint=False))
    found = only(read(*handles))
    assert sorted(line["value"] for line in json_entries(found)) == list(keys)
    assert [part.subtask for part in found.parts] == [0, 1]
    assert [part.key_groups for part in found.parts] == list(halves)


def test_single_key_group_is_read_separately() -> None:
    entries = tuple(Entry(key_group_of(key, 128), key, None, key) for key in range(9))
    states = [Encoded("one", "VALUE", VOID_NAMESPACE, LONG, entries)]
    (part,) = only(read(handle_of_states(states))).parts
    wanted = key_group_of(3, 128)
    values = [entry.value for batch in part.batches([wanted]) for entry in batch]
    assert values == [entry.value for entry in entries if entry.key_group == wanted]


# -- timers ---------------------------------------------------------------------------------------


def when(timestamp: int) -> bytes:
    return i64(timestamp ^ -(1 << 63))


_TIMERS = state("timers", composite(_TIMER, 1, of(LONG), of(VOID_NAMESPACE)), kind=3)


@pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
def test_timers_in_state_backend_are_read_and_damaged_timers_are_refused(heap: bool) -> None:
    start = head(_TIMERS)
    times = (-5, 0, 1_700_000_000_000)
    timers = [when(time) + _LONG_1 + b"\0" for time in times]
    if heap:
        group = i32(_GROUP) + pack(">hi", 0, len(times)) + b"".join(timers)
    else:
        group = canonical_group(*((0, bytes((_GROUP,)) + timer, b"") for timer in timers))
    handle = Handle(start + group, (len(start),), _GROUP, savepoint=not heap)
    found = only(read(handle))
    assert [(line["key"], line["value"]) for line in json_entries(found)] == [
        (1, time) for time in times
    ]
    if not heap:
        for damaged, kind, problem in (
            (timers[0] + b"c", CORRUPT, "1 bytes are left over after a timer"),
            (timers[0][:-1], TRUNCATED, _ENDS),
        ):
            group = canonical_group((0, bytes((_GROUP,)) + damaged, b""))
            error = fails(only(read(Handle(start + group, (len(start),), _GROUP))))
            assert (error.kind, error.problem) == (kind, problem)
    wrong = when(0) + i64(2) + b"\0"
    group = (
        i32(_GROUP) + pack(">hi", 0, 1) + wrong
        if heap
        else canonical_group((0, bytes((_GROUP,)) + wrong, b""))
    )
    error = fails(only(read(Handle(start + group, (len(start),), _GROUP, savepoint=not heap))))
    assert f"a key of key group {key_group_of(2, 128)} is in key group {_GROUP}" in error.problem


def service(
    name: str,
    event: Iterable[bytes],
    processing: Iterable[bytes],
    key: bytes = of(LONG),
    namespace: bytes = of(VOID_NAMESPACE),
) -> bytes:
    out = utf(name) + key + namespace
    for timers in (list(event), list(processing)):
        out += i32(len(timers)) + b"".join(timers)
    return out


def raw(*services: bytes, identifier: str = "f1cd859f", version: int = 2) -> bytes:
    return bytes.fromhex(identifier) + i32(version, len(services)) + b"".join(services)


def raw_states(*groups: bytes, first: int = _GROUP) -> KeyedStates:
    """Return the states of raw keyed state. The offset of an empty key group is -1."""
    offsets, stream = [], b""
    for group in groups:
        offsets.append(len(stream) if group else -1)
        stream += group
    return read(Handle(stream, tuple(offsets), first, savepoint=False, raw_keyed=True))


def timer(key: int, timestamp: int) -> bytes:
    return i64(key) + b"\0" + i64(timestamp)


_RAW_WHERE = (
    f"operator 000102030405060708090a0b0c0d0e0f subtask 0 raw keyed state key group {_GROUP}"
)


def test_timers_in_raw_keyed_state_are_read() -> None:
    next_key = next(key for key in range(2, 9999) if key_group_of(key, 128) == _GROUP + 2)
    groups = (
        raw(
            service("a", [timer(1, 5), timer(1, -6)], [timer(1, 7)]),
            service("b", [], [timer(1, time) for time in _FEW]),
        ),
        b"",
        raw(service("a", [timer(next_key, 9)], []), service("b", [], [])),
    )
    found = raw_states(*groups)
    assert found.unread == ()
    assert [(one.name, one.kind.value) for one in found.states] == [
        ("_timer_state/event_a", "timers"),
        ("_timer_state/processing_a", "timers"),
        ("_timer_state/event_b", "timers"),
        ("_timer_state/processing_b", "timers"),
    ]
    values = [[(line["key"], line["value"]) for line in json_entries(one)] for one in found.states]
    assert values[:3] == [[(1, 5), (1, -6), (next_key, 9)], [(1, 7)], []]
    assert_same(values[3], [(1, time) for time in _FEW])
    (part,) = found.states[3].parts
    sizes = [len(batch) for batch in part.batches([_GROUP])]
    assert 1 < len(sizes) < 5
    assert part.key_groups == range(_GROUP, _GROUP + 3)
    # A key group at byte 0 is not empty. Without any key group, no state is listed.
    assert [key_groups for key_groups, _ in part.key_group_ranges(1)] == [
        range(_GROUP, _GROUP + 1),
        range(_GROUP + 2, _GROUP + 3),
    ]
    assert raw_states(b"", b"").states == ()


@pytest.mark.parametrize(
    ("data", "kind", "problem", "field", "at"),
    [
        (raw(identifier="f1cd8590"), UNSUPPORTED, "raw keyed state other than timers", "timers", 0),
        (
            raw(version=1),
            UNSUPPORTED,
            "timers version 1 is not supported (supported: 2)",
            "timers version",
            4,
        ),
        (raw() + b"\0", CORRUPT, "1 bytes are left over after the timers", "timers", 12),
        (raw(service("a", [], []))[:-1], TRUNCATED, "the bytes end inside a field", "timers", None),
        (
            raw(
                service(
                    "a",
                    [timer(1, 5)],
                    [],
                    key=flinks("Kryo Integer").replace(b"java.lang.Object", b"a.private.Object"),
                )
            ),
            UNSUPPORTED,
            "a.private.Object: Kryo writes it, and no snapshot contains its fields",
            "timers",
            None,
        ),
    ],
)
def test_unsupported_or_damaged_raw_keyed_state_is_refused(
    data: bytes, kind: ErrorKind, problem: str, field: str, at: int | None
) -> None:
    error = refused(raw_states(data))
    assert problem in error.problem
    assert (error.kind, error.field, error.file) == (kind, field, _RAW_WHERE)
    if at is not None:
        assert error.byte_offset == at


def test_error_for_damaged_raw_timers_contains_key_group_and_byte() -> None:
    whole = raw(service("a", [timer(1, 5), timer(1, 6)], []))
    other = raw(service("a", [timer(2, 5)], []))
    place = whole.index(timer(1, 5))
    error = refused(raw_states(whole[: place + 25]))
    assert error.kind is TRUNCATED
    error = refused(raw_states(other))
    problem = f"a key of key group {key_group_of(2, 128)} is in key group {_GROUP}"
    assert problem in error.problem
    assert (error.file, error.byte_offset) == (_RAW_WHERE, place)
    swapped = Handle(whole * 2, (len(whole), 0), _GROUP, savepoint=False, raw_keyed=True)
    error = refused(read(swapped))
    assert error.problem == "its key groups are not in order"


def test_empty_timer_state_with_unreadable_key_type_is_listed_as_unreadable() -> None:
    """The timers after it are still read."""
    java = utf("org.apache.flink.state.JavaSerializer$JavaSerializerSnapshot") + i32(3)
    found = raw_states(raw(service("a", [], [], key=java), service("b", [timer(1, 2)], [])))
    assert [(one.name, one.readable) for one in found.states] == [
        ("_timer_state/event_a", False),
        ("_timer_state/processing_a", False),
        ("_timer_state/event_b", True),
        ("_timer_state/processing_b", True),
    ]
    assert [line["value"] for line in json_entries(found.states[2])] == [2]
