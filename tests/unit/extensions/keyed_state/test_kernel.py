"""The compiled kernel: supported input, fallback to the plain reader, and checks of lengths."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pytest

from decoder import DecodeError
from decoder.cursor import Cursor
from decoder.keyed_state import KeyedState, canonical
from decoder.keyed_state import heap as heap_form
from decoder.metadata.java_stream import read_object_stream
from migrate.extensions.keyed_state import arrow
from migrate.extensions.keyed_state.arrow import record_batches
from migrate.extensions.keyed_state.kernel import kernel, operations
from migrate.extensions.keyed_state.kernel import read as fast_read
from migrate.extensions.keyed_state.type_mapping import columns
from migrate.model.column_types import arrow_schema
from tests.golden.synthetic.test_serializers import WRITTEN
from tests.support.compare_readers import compare_readers
from tests.support.encoder import keyed_values as of
from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.keyed_state import Entry, Kind, key_group_of
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.keyed_bytes import (
    MAX_PARALLELISM,
    BytesSerializer,
    Handle,
    canonical_group,
    handle_of_states,
    handle_of_value,
    only,
    read,
)
from tests.support.keyed_checkpoint import write_totals
from tests.unit.decoder.keyed_state.test_refusals import snapshot

ROOT = Path(__file__).parents[4]

_FORMS = pytest.mark.parametrize("heap", [False, True], ids=["canonical", "heap"])
_PLACE = of.Pojo("x.Place", (("name", of.STRING), ("at", of.TupleOf((of.LONG, of.DOUBLE)))))
_TEXT = "customer \u00e9 \u20ac \U0001f600"
_LONG_TEXTS = ["a" * size for size in (0, 126, 127, 128, 16_382, 16_383, 16_384, 70_000)]


def _state(kind: Kind, value: of.Serializer, values: list[Any], name: str = "state") -> Encoded:
    entries = tuple(
        Entry(key_group_of(f"key-{n}", MAX_PARALLELISM), f"key-{n}", None, item)
        for n, item in enumerate(values)
    )
    return Encoded(name, kind, of.VOID_NAMESPACE, value, entries)


def _read(*states: Encoded, heap: bool) -> dict[str, KeyedState]:
    found = read(handle_of_states(states, heap=heap, key=of.STRING))
    assert not found.unread
    return {state.name: state for state in found.states}


def _by_the_kernel(state: KeyedState, rows: int) -> None:
    (way,) = compare_readers(state)
    assert way == (True, [], rows)


@_FORMS
@pytest.mark.parametrize(
    ("kind", "value", "values", "rows"),
    [
        ("VALUE", of.LONG, [1, -1, 2**63 - 1], 3),
        ("VALUE", of.STRING, [_TEXT, "", None, "\x7f\x80\u07ff\u0800\uffff"], 4),
        ("VALUE", of.STRING, _LONG_TEXTS, len(_LONG_TEXTS)),
        ("VALUE", of.BYTES, [b"", b"\xff\x00\x80", bytes(300)], 3),
        ("VALUE", _PLACE, [None, {"name": None, "at": None}, {"name": "a", "at": (1, 0.5)}], 3),
        ("VALUE", of.ListOf(of.ListOf(of.INT)), [[], [[]], [[1], [], [2, 3]]], 3),
        (
            "VALUE",
            of.MapOf(of.STRING, _PLACE),
            [{}, {"a": None, "b": {"name": "c", "at": None}}],
            2,
        ),
        ("LIST", of.ListOf(of.STRING), [["a", ",", "", "b"], [","]], 2),
        ("MAP", of.MapOf(of.STRING, of.ListOf(of.LONG)), [{"a": [1], "b": None, "c": []}], 3),
        ("VALUE", of.NullableOf(of.LONG, 8), [None, 4], 2),
    ],
)
def test_compiled_kernel_reads_values_of_supported_types(
    heap: bool, kind: Kind, value: of.Serializer, values: list[Any], rows: int
) -> None:
    state = _read(_state(kind, value, values), heap=heap)["state"]
    _by_the_kernel(state, rows)


def test_compiled_kernel_skips_empty_list_of_heap_backend() -> None:
    state = _state("LIST", of.ListOf(of.LONG), [[1, 2], [], [3], []])
    _by_the_kernel(_read(state, heap=True)["state"], 2)


def test_compiled_kernel_reads_state_after_preceding_states() -> None:
    first = _state("MAP", of.MapOf(of.LONG, of.STRING), [{1: "a", 2: None}] * 40, "first")
    second = _state("VALUE", of.LONG, list(range(40)), "second")
    found = _read(first, second, heap=True)
    _by_the_kernel(found["second"], 40)
    _by_the_kernel(found["first"], 80)


def test_plain_reader_reads_state_that_follows_unsupported_state() -> None:
    """In the heap format, the kernel cannot skip the entries of the unsupported state."""
    first = _state("VALUE", of.BIG_INTEGER, [10**30] * 40, "first")
    found = _read(first, _state("VALUE", of.LONG, list(range(40)), "second"), heap=True)
    assert [way.supported for way in compare_readers(found["first"])] == [False]
    (way,) = compare_readers(found["second"])
    assert way.rows == 40
    first_held = way.handed_over[0][0]  # earlier key groups are empty
    assert way.handed_over == [(n, 0) for n in range(first_held, MAX_PARALLELISM)]


def test_compiled_kernel_reads_state_next_to_map_with_kryo_serializer() -> None:
    own = BytesSerializer(
        snapshot("Kryo Integer").replace(b"java.lang.Object", b"a.private.Object")
    )
    states = (
        Encoded("first", "MAP", of.VOID_NAMESPACE, own, ()),
        _state("VALUE", of.LONG, [7], "second"),
    )
    found = read(handle_of_states(states, heap=True, key=of.STRING))
    (second,) = (state for state in found.states if state.name == "second")
    _by_the_kernel(second, 1)


# Flink's own serializers that the kernel supports.
_KNOWN = [
    *("boolean", "byte", "short", "int", "long", "float", "double", "string", "date", "sql date"),
    *("sql time", "sql timestamp", "instant", "enum", "byte[]", "boolean[]", "double[]", "float[]"),
    *("int[]", "long[]", "short[]", "String[]", "Integer[]", "tuple", "list", "set", "map", "pojo"),
    *("nullable", "nullable, padded", "list of nullable, padded", "void namespace"),
    *("time window", "time window of SQL", "count window", "global window", "SortedMap"),
    *("StringData", "DecimalData", "TimestampData", "RawValue", "BinaryRow", "ListView", "MapView"),
    *("MetaSqnInfo", "RowSqnInfo", "WindowKey", "Node", "TtlAware"),
]


@pytest.mark.parametrize("name", _KNOWN)
def test_compiled_kernel_reads_supported_flink_serializers(name: str) -> None:
    for one in (one for one in WRITTEN if one["name"] == name):
        value = bytes.fromhex(one["value"])
        state = only(
            read(handle_of_value(bytes.fromhex(one["snapshot"]), value), flink=one["flink"][-1])
        )
        (way,) = compare_readers(state)
        assert way.supported
        if "\ufffd" not in str(one["told"]):  # the plain reader reads lone surrogates
            assert (way.rows, way.handed_over) == (1, []) or way.rows is None  # over 64 bits


# -- rows of SQL jobs ------------------------------------------------------------------------------


def _row_of(*elements: str) -> bytes:
    """Return the snapshot of a RowData with these types, taken from snapshots of ArrayData."""
    types = b""
    for element in elements:
        cursor = Cursor(snapshot(f"ArrayData of {element}"), "snapshot")
        cursor.skip_utf("class")
        cursor.i32("version")
        begin = cursor.byte_offset
        read_object_stream(cursor)
        types += snapshot(f"ArrayData of {element}")[begin : cursor.byte_offset]
    out = DataOutput()
    out.utf(_ROW)
    out.i32(3)
    out.i32(len(elements))
    out.raw(types)
    out.i32(1333245)  # magic number of NestedSerializersSnapshotDelegate
    out.i32(1)
    out.i32(0)
    return out.to_bytes()


_ROW = "org.apache.flink.table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot"
_FIELDS = ("STRING", "INT", "TIMESTAMP(6)", "DECIMAL(20, 1)")


def _slot(beside: int, at: int) -> bytes:
    """Return a slot with a size (or nanoseconds) and the offset of a field in the row."""
    return beside.to_bytes(4, "little", signed=True) + at.to_bytes(4, "little", signed=True)


def _inside(text: bytes) -> bytes:
    return text.ljust(7, b"\0") + bytes((0x80 | len(text),))


_SEVEN = (7).to_bytes(8, "little")
_MILLIS = (5).to_bytes(8, "little")
_DECIMAL = (-12345).to_bytes(16, "big", signed=True)
# The head has 8 bytes, and each of the 4 slots has 8. The variable-length fields follow.
_AT = 40


def _row(text: bytes, stamp: bytes, decimal: bytes, beside: bytes, nulls: int = 0) -> bytes:
    row = bytes((0, nulls)).ljust(8, b"\0") + text + _SEVEN + stamp + decimal + beside
    return len(row).to_bytes(4, "big") + row


_GOOD = (_inside(b"abc"), _slot(999_999, _AT), _slot(16, _AT + 8), _MILLIS + _DECIMAL)


_SQL_ROWS = [
    (_row(*_GOOD), True),
    (_row(_inside(b""), *_GOOD[1:]), True),
    (_row(_inside(b"1234567"), *_GOOD[1:]), True),
    (_row(_slot(8, _AT + 24), *_GOOD[1:3], _GOOD[3] + b"12345678"), True),
    (_row(_slot(0, _AT + 24), *_GOOD[1:]), True),
    (_row(*_GOOD, nulls=0b0101), True),
    (_row(*_GOOD, nulls=0b1010), True),
    # A slot has room for at most seven bytes.
    (_row(b"1234567\x88", *_GOOD[1:]), False),
    (_row(_slot(9, _AT + 24), *_GOOD[1:3], _GOOD[3] + b"12345678"), False),
    (_row(_slot(8, _AT + 25), *_GOOD[1:3], _GOOD[3] + b"12345678"), False),
    (_row(_slot(-1, _AT), *_GOOD[1:]), False),
    # The 8 bytes of the timestamp end after the row.
    (_row(b"a\0\0\0\0\0\0\x81", _slot(0, _AT + 17), *_GOOD[2:]), False),
    # Two fields that share bytes need more bytes than the row has.
    (_row(_slot(8, _AT), *_GOOD[1:]), False),
    (_row(_inside(b"abc"), _slot(1_000_000, _AT), *_GOOD[2:]), False),
    (_row(_inside(b"abc"), _slot(-1, _AT), *_GOOD[2:]), False),
    (_row(*_GOOD[:2], _slot(17, _AT + 8), _GOOD[3]), False),
    # The absolute value of the smallest number does not fit into 64 bits.
    (_row(*_GOOD[:3], (1 << 63).to_bytes(8, "little") + _DECIMAL), False),
    (_row(*_GOOD[:3], _MILLIS + (10**20).to_bytes(16, "big")), False),
    (_row(*_GOOD[:3], _MILLIS + (10**20 - 1).to_bytes(16, "big")), True),
    ((39).to_bytes(4, "big") + bytes(39), False),
]


@_FORMS
@pytest.mark.parametrize(("row", "is_one"), _SQL_ROWS, ids=range(len(_SQL_ROWS)))
def test_compiled_kernel_reads_valid_binary_rows_and_refuses_invalid_ones(
    heap: bool, row: bytes, is_one: bool
) -> None:
    (way,) = compare_readers(
        only(read(handle_of_value(_row_of(*_FIELDS), row, heap=heap), flink="2.2"))
    )
    assert (way.supported, way.handed_over == [], way.rows) == (True, is_one, 1 if is_one else None)


@_FORMS
@pytest.mark.parametrize("number", [10**18 - 1, 1 - 10**18, 10**18, -(10**18), -(2**63)])
def test_compiled_kernel_reads_compact_decimal_with_up_to_18_digits(
    heap: bool, number: int
) -> None:
    twenty, eighteen = (n.to_bytes(4, "big") + (1).to_bytes(4, "big") for n in (20, 18))
    short = _row_of("DECIMAL(20, 1)").replace(twenty, eighteen)
    row = bytes(8) + number.to_bytes(8, "little", signed=True)
    value = len(row).to_bytes(4, "big") + row
    (way,) = compare_readers(only(read(handle_of_value(short, value, heap=heap), flink="2.2")))
    is_one = abs(number) < 10**18
    assert (way.supported, way.handed_over == [], way.rows) == (True, is_one, 1 if is_one else None)


# -- batches ---------------------------------------------------------------------------------------


@_FORMS
def test_compiled_kernel_continues_in_next_batch_after_full_batch(
    heap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_read, "_ROWS", 4)
    monkeypatch.setattr(fast_read, "_TEXT_BYTES", 64)
    _by_the_kernel(_read(_state("VALUE", of.LONG, list(range(300))), heap=heap)["state"], 300)
    texts = ["", "a" * 1200, "b", "c" * 63, "d" * 64]
    _by_the_kernel(_read(_state("VALUE", of.STRING, texts), heap=heap)["state"], 5)
    maps = [{f"{n}-{m}": m for m in range(n)} for n in range(60)]
    state = _read(_state("MAP", of.MapOf(of.STRING, of.LONG), maps), heap=heap)["state"]
    _by_the_kernel(state, sum(range(60)))


@_FORMS
def test_compiled_kernel_splits_rows_with_long_strings_across_batches(
    heap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_read, "_TEXT_BYTES", 64)
    rows = []
    for size in (8, 40, 64, 0, 65, 63, 1, 200):
        text = bytes(97 + n % 26 for n in range(size))
        row = bytes(8) + (_slot(size, 24) if size > 7 else _inside(text)) + _inside(b"after")
        row += text if size > 7 else b""
        rows.append(len(row).to_bytes(4, "big") + row)
    two = BytesSerializer(_row_of("STRING", "STRING"))
    _by_the_kernel(_read(_state("VALUE", two, rows), heap=heap)["state"], len(rows))


@pytest.mark.parametrize(("fields", "most"), [(20, 256), (400, 64)])
def test_batch_of_many_columns_has_fewer_rows(
    fields: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fast_read, "_ROWS", 256)
    wide = of.Pojo("x.Wide", tuple((f"field{n}", of.LONG) for n in range(fields)))
    state = _read(_state("VALUE", wide, [None] * 600), heap=False)["state"]
    sizes = [batch.num_rows for batch in record_batches(state)]
    assert (sum(sizes), max(sizes)) == (600, most)


@pytest.fixture
def small_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_read, "_ROWS", 4)
    monkeypatch.setattr(fast_read, "_TEXT_BYTES", 64)
    monkeypatch.setattr(fast_read, "_MAX_DOUBLINGS", 1)


def test_string_larger_than_maximum_buffer_is_read_by_plain_reader(small_buffers: None) -> None:
    state = _read(_state("VALUE", of.STRING, ["a", "b" * 5000, "c"]), heap=False)["state"]
    (way,) = compare_readers(state)
    assert way.rows == 3
    assert way.handed_over == [(key_group_of("key-1", MAX_PARALLELISM), 0)]


def test_plain_reader_skips_entries_that_compiled_kernel_has_returned(small_buffers: None) -> None:
    texts = ["a" if n % 5 else "b" * 5000 for n in range(300)]
    (way,) = compare_readers(_read(_state("VALUE", of.STRING, texts), heap=False)["state"])
    assert way.rows == 300
    assert any(skipped for _, skipped in way.handed_over)


# -- input that the kernel refuses ---------------------------------------------------------------

_KEY = b"\x04abc"
_GROUP = key_group_of("abc", MAX_PARALLELISM)
_OTHER = b"\x04abd"


def _group(*entries: tuple[int, bytes, bytes]) -> KeyedState:
    """Return a value state with string keys in one key group."""
    return _of_group(canonical_group(*entries))


def _of_group(data: bytes) -> KeyedState:
    head = handle_of_states(
        [Encoded("state", "VALUE", of.VOID_NAMESPACE, of.LONG, ())], key=of.STRING
    )
    offsets = tuple(len(head.stream) if n == _GROUP else 0 for n in range(MAX_PARALLELISM))
    return only(read(Handle(head.stream + data, offsets)))


def _key(text: bytes) -> bytes:
    return bytes((_GROUP,)) + text + b"\0"


_VALUE = (7).to_bytes(8, "big")


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (_key(_OTHER), _VALUE, "a key of key group"),
        (bytes((_GROUP ^ 1,)) + _KEY + b"\0", _VALUE, "a key of key group"),
        (_key(b"\x84\x00abc"), _VALUE, "the length of a string"),  # length 4 in two bytes
        (_key(b"\x84\x80\x80\x80\x80\x00abc"), _VALUE, "the length of a string"),
        (_key(b"\xff\xff\xff\xff\x07abc"), _VALUE, "end inside"),
        (_key(b"\x05abc"), _VALUE, "end inside|left over|key group"),
        (_key(b"\x04\xe1\x00bc"), _VALUE, "a character of a string"),  # character a in two bytes
        (_key(b"\x04\xff\xff\x7fbc"), _VALUE, "more than 16 bits|not one that Flink"),
        (_key(_KEY) + b"\0", _VALUE, "left over after a key"),
        (_key(_KEY)[:-1], _VALUE, "end inside|length"),
        (_key(_KEY), _VALUE[:-1], "end inside"),
        (_key(_KEY), _VALUE + b"\0", "left over after a value"),
    ],
)
def test_plain_reader_raises_error_for_bytes_that_flink_never_writes(
    key: bytes, value: bytes, problem: str
) -> None:
    good = (0, _key(_KEY), _VALUE)
    state = _group(good, (0, key, value), good)
    (way,) = compare_readers(state)
    # The entry before was already returned, unless a check of the whole column found the error.
    assert way.handed_over in ([(_GROUP, 1)], [(_GROUP, 0)])
    with pytest.raises(DecodeError, match=problem):
        list(record_batches(state))


@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
def test_compiled_kernel_checks_lengths_against_enclosing_bytes(byte: int) -> None:
    """Every byte of a key group is replaced in turn.

    The result is the same as with the plain reader.
    """
    good = canonical_group(*[(0, _key(_KEY), _VALUE)] * 2)
    for at in range(len(good)):
        compare_readers(_of_group(good[:at] + bytes((byte,)) + good[at + 1 :]))
    compare_readers(_of_group(good[:-1]))


@_FORMS
@pytest.mark.parametrize(
    ("written", "value"),
    [
        (of.BOOLEAN, b"\2"),
        (of.STRING, b"\x84\x00abc"),
        (of.ListOf(of.LONG), b"\xff\xff\xff\xff"),
        (of.ListOf(of.LONG), b"\x7f\xff\xff\xff" + bytes(16)),
        (of.MapOf(of.STRING, of.LONG), b"\0\0\0\1\0\0" + bytes(8)),  # a null key
        (of.MapOf(of.STRING, of.LONG), b"\0\0\0\1\2a\2" + bytes(8)),
        (_PLACE, b"\4\0\1x"),
        (_PLACE, b"\2\2"),
        (of.NullableOf(of.LONG, 8), b"\1\0"),
    ],
)
def test_compiled_kernel_leaves_invalid_values_to_plain_reader(
    heap: bool, written: of.Serializer, value: bytes
) -> None:
    """Flink never writes these values, so the plain reader raises an error."""
    out = DataOutput()
    written.write_snapshot(out)
    state = _state("VALUE", BytesSerializer(out.to_bytes(), written.length), [value])
    (way,) = compare_readers(_read(state, heap=heap)["state"])
    assert way.handed_over
    assert way.rows is None


@_FORMS
@pytest.mark.parametrize("flag", [0, 1, 2, 255])
def test_compiled_kernel_distinguishes_null_flag_of_field_from_value(heap: bool, flag: int) -> None:
    """If the flag is 0, the value follows.

    With any other flag, the bytes in this test are invalid.
    """
    written = DataOutput()
    _PLACE.write_snapshot(written)
    good = b"\2\0\2a\0" + bytes(16)
    values = [good, good[:1] + bytes((flag,)) + good[2:], good]
    raw = BytesSerializer(written.to_bytes(), _PLACE.length)
    (way,) = compare_readers(_read(_state("VALUE", raw, values), heap=heap)["state"])
    assert bool(way.handed_over) == (flag != 0)


@pytest.mark.parametrize("number", [0, 2, 0xFFFF])
def test_compiled_kernel_leaves_repeated_or_unknown_state_number_to_plain_reader(
    number: int,
) -> None:
    states = [_state("VALUE", of.LONG, [7], name) for name in ("first", "second")]
    stream = handle_of_states(states, heap=True, key=of.STRING)
    begin = stream.offsets[key_group_of("key-0", MAX_PARALLELISM)]
    one = stream.stream.index(b"\0\1\0\0\0\1", begin)
    changed = stream.stream[:one] + number.to_bytes(2, "big") + stream.stream[one + 2 :]
    for state in read(replace(stream, stream=changed)).states:
        (way,) = compare_readers(state)
        assert way.handed_over
        assert way.rows is None or state.name == "first"


def _numbers(number: int, *small: int) -> bytes:
    return number.to_bytes(8, "big", signed=True) + b"".join(
        one.to_bytes(4, "big", signed=True) for one in small
    )


def _sized(number: int, size: int) -> bytes:
    return size.to_bytes(4, "big") + number.to_bytes(size, "big", signed=True)


@_FORMS
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("boolean", [b"\0", b"\1"], [b"\2", b"\xff"]),
        (
            "TimestampData",
            [_numbers(7, 0), _numbers(-7, 999_999)],
            [_numbers(7, -1), _numbers(7, 1_000_000)],
        ),
        (
            "instant",
            [_numbers(7, 0), _numbers(-7, 999_999_999)],
            [_numbers(7, -1), _numbers(7, 1_000_000_000)],
        ),
        (
            "sql timestamp",
            [_numbers(7, 7_000_000), _numbers(-1, 999_000_000)],
            [_numbers(7, -1), _numbers(7, 1_000_000_000)],
        ),
        (
            "the first DecimalData",  # of 18 digits
            [_numbers(10**18 - 1), _numbers(1 - 10**18)],
            [_numbers(10**18), _numbers(-(10**18)), _numbers(-(2**63))],
        ),
        (
            "DecimalData",
            [_sized(10**19 - 1, 9), _sized(1 - 10**19, 9), _sized(7, 16), _sized(-7, 1)],
            [_sized(10**19, 9), _sized(-(10**19), 9), _sized(2**64, 9), _sized(0, 0)],
        ),
    ],
)
def test_compiled_kernel_enforces_numeric_bounds(
    heap: bool, name: str, good: list[bytes], bad: list[bytes]
) -> None:
    first = next((one for one in WRITTEN if name == f"the first {one['name']}"), None)
    written = bytes.fromhex(first["snapshot"]) if first is not None else snapshot(name)
    for value, is_one in [(one, True) for one in good] + [(one, False) for one in bad]:
        (way,) = compare_readers(
            only(read(handle_of_value(written, value, heap=heap), flink="2.2"))
        )
        assert (way.supported, way.handed_over == [], way.rows) == (
            True,
            is_one,
            1 if is_one else None,
        )


def test_compiled_kernel_continues_after_refused_key_group() -> None:
    """The kernel may have appended entries before the refusal, for example for an invalid enum."""
    state = _read(_state("VALUE", of.BOOLEAN, [True] * 300), heap=False)["state"]
    (part,) = state.parts
    asked: list[int] = []

    def plain(key_group: int, skip: int) -> Iterator[pa.RecordBatch]:
        asked.append(key_group)
        return arrow.plain_batches(state, part, [key_group], made, skip=skip)

    made = columns(state)
    reader = fast_read.FastReader(state, part, arrow_schema(made), {}, plain)
    walk = reader._walk

    def refuses_once(data: bytes) -> int:
        return 2 if not asked else walk(data)

    reader._walk = refuses_once  # type: ignore[method-assign]
    found = pa.Table.from_batches(reader.batches(part.key_groups))
    told = pa.Table.from_batches(arrow.plain_batches(state, part, part.key_groups, made))
    assert found.equals(told)
    assert len(asked) == 1


# -- the plain reader ---------------------------------------------------------------------------


@_FORMS
def test_plain_reader_uses_small_batches_for_large_values(
    heap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canonical, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(heap_form, "BATCH_BYTES", 10_000)
    monkeypatch.setattr(arrow, "_BYTES", 20_000)
    entries = tuple(
        Entry(7, f"key-{n}", None, bytes(1000))
        for n in range(30_000)
        if key_group_of(f"key-{n}", MAX_PARALLELISM) == 7
    )
    written = Encoded("state", "VALUE", of.VOID_NAMESPACE, of.BYTES, entries)
    state = only(read(handle_of_states([written], heap=heap, key=of.STRING)))
    (part,) = state.parts
    batches = list(arrow.plain_batches(state, part, part.key_groups, columns(state)))
    assert sum(batch.num_rows for batch in batches) == len(entries) > 200
    assert max(batch.nbytes for batch in batches) < 35_000


def test_plain_reader_is_used_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    state = _read(_state("VALUE", of.STRING, ["a" * 4000] * 200), heap=False)["state"]
    told = pa.Table.from_batches(record_batches(state))

    def refuse(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(fast_read, "FastReader", refuse)
    monkeypatch.setattr(
        arrow, "find_spec", lambda name: None if name == "numba" else find_spec(name)
    )
    assert pa.Table.from_batches(record_batches(state)).equals(told)


# -- compilation and cache ----------------------------------------------------------------------


_READ = """
import sys, migrate
print(sum(batch.num_rows for batch in migrate.read_state(sys.argv[1], state="total")))
assert "numba" in sys.modules
"""


@pytest.mark.slow  # compiles the kernel
def test_numba_kernel_is_compiled_without_writable_cache(tmp_path: Path) -> None:
    chk = write_totals(tmp_path / "chk", 100)
    (tmp_path / "file").touch()
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(chk)],
        cwd=ROOT,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file" / "cache")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "100\n"), done.stderr


def test_checksum_in_kernel_file_matches_operation_codes() -> None:
    """The cache of numba depends only on the kernel's own file.

    If the operation codes change, the checksum in this file must change too, so numba recompiles
    the kernel.
    """
    found = sorted((name, value) for name, value in vars(operations).items() if name.isupper())
    assert crc32(repr(found).encode()) == kernel.OPERATIONS


_COMPILED = """
from numba.core.dispatcher import Dispatcher
from migrate.extensions.keyed_state.kernel import kernel
functions = [one for one in vars(kernel).values() if isinstance(one, Dispatcher)]
assert len(functions) > 5
print(sum(sum(one.stats.cache_misses.values()) for one in functions))
"""


@pytest.mark.slow  # compiles the kernel
def test_numba_kernel_is_loaded_from_cache_by_second_process(tmp_path: Path) -> None:
    """The first process compiles the kernel with its callees, and the second loads the cache."""
    compiled = [
        int(
            subprocess.run(
                [sys.executable, "-c", _COMPILED],
                cwd=ROOT,
                env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
        )
        for _ in range(2)
    ]
    assert compiled[0] > 5
    assert compiled[1] == 0
