"""Streams of keyed state in files. Large streams are read in parts on demand."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from struct import pack
from typing import Any

import pytest

from decoder import state_files as locate
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state import KeyedStates, heap, parts, read_keyed_states, streams
from decoder.keyed_state.entries import Readers
from tests.golden.state.generate import STATE as GOLDEN
from tests.support.compare_readers import compare_readers
from tests.support.encoder import (
    FileHandle,
    KeyGroupsHandle,
    Metadata,
    Operator,
    Subtask,
    encode_metadata,
)
from tests.support.encoder.keyed_state import Entry, Kind, encode_head, encode_heap, key_group_of
from tests.support.encoder.keyed_state import KeyedState as Encoded
from tests.support.encoder.keyed_values import (
    BYTES,
    LONG,
    STRING,
    VOID_NAMESPACE,
    ListOf,
    MapOf,
    Serializer,
)
from tests.support.keyed_bytes import OPERATOR, POINTER, canonical_group, json_entries, only
from tests.support.memory_files import MemoryFiles

_FILE = "/flink/checkpoints/chk-1/state"
_MIB = 1024 * 1024
# The sizes of values in a stream of more than 8 MiB.
_SIZES = (5 * _MIB, 4 * _MIB, 10)


class Counted(MemoryFiles):
    """Record the number of bytes of each read of the file."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(files)
        self.reads: list[int] = []

    def read_range(self, path: str, start: int, size: int) -> bytes:
        data = bytes(bytearray(self.files[path][start : start + size]))  # a copy
        if path == _FILE:
            self.reads.append(len(data))
        return data


def _keys() -> list[int]:
    """Return one key for each of three key groups."""
    return [
        next(key for key in range(9999) if key_group_of(key, 128) == group) for group in (7, 8, 9)
    ]


def _keys_of(group: int, count: int) -> list[int]:
    return [key for key in range(99_999) if key_group_of(key, 128) == group][:count]


def _stream(sizes: tuple[int, ...]) -> tuple[bytes, tuple[int, ...]]:
    head = encode_head(LONG, [Encoded("blob", "VALUE", VOID_NAMESPACE, BYTES, ())])
    parts, offsets = [head], []
    for group, key, size in zip((7, 8, 9), _keys(), sizes, strict=True):
        offsets.append(sum(map(len, parts)))
        name = bytes((group,)) + pack(">q", key) + b"\0"
        parts.append(canonical_group((0, name, pack(">i", size) + bytes(size))))
    return b"".join(parts), tuple(offsets)


def _read(
    data: bytes, offsets: tuple[int, ...], size: int | None = None, *, heap: bool = False
) -> tuple[KeyedStates, Counted]:
    told_size = len(data) if size is None else size
    file = FileHandle(f"file:{_FILE}", told_size)
    handle = KeyGroupsHandle(7, offsets, file, "handle" if heap else None, not heap)
    operator = Operator(OPERATOR, 1, 128, subtasks=(Subtask(0, managed_keyed=handle),))
    metadata = encode_metadata(Metadata(1, (operator,)), 3)
    files = Counted({POINTER: metadata, _FILE: data})
    return read_keyed_states(POINTER, files), files


def _lengths(found: KeyedStates) -> list[int]:
    return [len(line["value"]) // 2 for line in json_entries(only(found))]


def test_small_stream_of_keyed_state_is_read_with_single_request() -> None:
    found, files = _read(*_stream((30, 20, 10)))
    assert _lengths(found) == [30, 20, 10]
    assert len(files.reads) == 1


@pytest.mark.parametrize("known", [True, False], ids=["size known", "size not known"])
def test_large_stream_of_keyed_state_is_read_in_parts(known: bool) -> None:
    data, offsets = _stream(_SIZES)
    found, files = _read(data, offsets, None if known else -1)
    assert sum(files.reads) == offsets[0]
    (part,) = only(found).parts
    (entry,) = (entry for batch in part.batches([9]) for entry in batch)
    assert (entry.key, len(entry.value)) == (_keys()[2], 10)
    assert sum(files.reads) == offsets[0] + len(data) - offsets[2]
    assert _lengths(found) == list(_SIZES)
    assert max(files.reads) < len(data) - offsets[0]


def test_adjacent_key_groups_are_read_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MAX_WHOLE_BYTES", 1)
    monkeypatch.setattr(streams, "_MIN_READ_BYTES", 2000)
    sizes = (100, 200, 2500)
    data, offsets = _stream(sizes)
    found, files = _read(data, offsets)
    assert _lengths(found) == list(sizes)
    assert files.reads == [offsets[0], 2000, len(data) - offsets[2]]


def test_buffers_are_released_after_streams_of_keyed_state_are_read() -> None:
    data, offsets = _stream((_MIB, 10, 10))
    names = [f"{_FILE}-{subtask}" for subtask in range(64)]
    handles = (
        KeyGroupsHandle(7, offsets, FileHandle(f"file:{name}", len(data)), None, True)
        for name in names
    )
    subtasks = tuple(Subtask(n, managed_keyed=handle) for n, handle in enumerate(handles))
    operator = Operator(OPERATOR, 64, 128, subtasks=subtasks)
    metadata = encode_metadata(Metadata(1, (operator,)), 3)
    files = Counted({POINTER: metadata, **dict.fromkeys(names, data)})
    tracemalloc.start()
    try:
        state = only(read_keyed_states(POINTER, files))
        entries = sum(len(batch) for part in state.parts for batch in part.batches())
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert entries == 3 * 64
    assert kept < 2 * _MIB


def test_large_stream_of_keyed_state_is_divided_by_key_groups() -> None:
    data, offsets = _stream(_SIZES)
    found, _ = _read(data, offsets)
    (part,) = only(found).parts
    ends = (*offsets[1:], len(data))
    sizes = [end - start for start, end in zip(offsets, ends, strict=True)]
    assert part.key_group_ranges(6 * _MIB) == [
        (range(7, 8), sizes[0]),
        (range(8, 10), sizes[1] + sizes[2]),
    ]
    assert part.key_group_ranges(len(data)) == [(range(7, 10), sum(sizes))]
    assert part.key_group_ranges(sizes[0] + sizes[1]) == [
        (range(7, 9), sizes[0] + sizes[1]),
        (range(9, 10), sizes[2]),
    ]


def test_empty_key_groups_are_assigned_to_no_reader() -> None:
    data, offsets = _stream((30, 20, 10))
    found, _ = _read(data, (0, *offsets, 0))
    with pytest.raises(DecodeError, match="a key of key group 7 is in key group 8"):
        json_entries(only(found))
    (part,) = only(found).parts
    assert [key_groups for key_groups, _ in part.key_group_ranges(1)] == [
        range(8, 9),
        range(9, 10),
        range(10, 11),
    ]


def test_truncated_large_stream_of_keyed_state_is_refused() -> None:
    data, offsets = _stream(_SIZES)
    for kept in (len(data) - 1, offsets[2] - 1):
        found, _ = _read(data[:kept], offsets, len(data))
        with pytest.raises(DecodeError) as refused:
            json_entries(only(found))
        assert refused.value.kind in (ErrorKind.TRUNCATED, ErrorKind.CORRUPT)


def _blobs(count: int, size: int) -> tuple[bytes, tuple[int, ...]]:
    """Return a stream with one key group that has this number of entries."""
    head = encode_head(LONG, [Encoded("blob", "VALUE", VOID_NAMESPACE, BYTES, ())])
    keys = _keys_of(7, count)
    value = pack(">i", size) + bytes(size)
    rows = [(0, b"\7" + pack(">q", key) + b"\0", value) for key in keys]
    return head + canonical_group(*rows), (len(head),)


def test_canonical_key_group_over_read_limit_is_read_in_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key group of a large RocksDB savepoint can have 300 MB.

    The limits in this test are lower.
    """
    monkeypatch.setattr(locate, "MAX_STATE_BYTES", _MIB)
    monkeypatch.setattr(parts, "_BLOCK_BYTES", _MIB // 2)
    monkeypatch.setattr(streams, "_MAX_WHOLE_BYTES", _MIB)
    monkeypatch.setattr(streams, "_MIN_READ_BYTES", _MIB // 4)
    found, files = _read(*_blobs(30, _MIB // 8))
    assert _lengths(found) == [_MIB // 8] * 30
    assert max(files.reads) <= _MIB // 2


def test_keyed_entry_over_size_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_MAX_ENTRY_BYTES", 4000)
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 1000)
    found, _ = _read(*_blobs(3, 5000))
    with pytest.raises(DecodeError, match="larger than 4000 bytes") as caught:
        _lengths(found)
    assert caught.value.kind is ErrorKind.TOO_LARGE


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 3, 11, 64, 200])
@pytest.mark.parametrize(
    ("job", "form"),
    [
        *((job, "canonical") for job in ("files", "compressed-files", "wide")),
        *((job, "native") for job in ("compressed", "kinds", "namespaces")),
    ],
)
def test_block_boundaries_do_not_change_keyed_entries(
    job: str, form: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (GOLDEN / "1.20" / job / form).iterdir()
    whole = [list(state.entries()) for state in read_keyed_states(path).states]
    monkeypatch.setattr(parts, "_BLOCK_BYTES", block)
    monkeypatch.setattr(parts, "_HEAP_BLOCK_BYTES", block)
    monkeypatch.setattr(parts, "_COMPRESSED_BLOCK_BYTES", block)
    monkeypatch.setattr(parts, "_MAX_WHOLE_BYTES", 0)
    states = read_keyed_states(path).states
    assert [list(state.entries()) for state in states] == whole
    for state in states if block == 64 else ():
        assert all(not way.handed_over for way in compare_readers(state) if way.supported)


@pytest.mark.parametrize("left_over", [b"", b"\0"])
@pytest.mark.parametrize("cut", range(1, 30))
@pytest.mark.slow
def test_truncated_key_group_is_refused_if_read_in_blocks(
    cut: int, left_over: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "_BLOCK_BYTES", 10)
    data, offsets = _blobs(2, 3)
    end = len(data) if left_over else len(data) - cut
    found, _ = _read(data[:end] + left_over * cut, offsets)
    with pytest.raises(DecodeError) as caught:
        _lengths(found)
    assert caught.value.kind in (ErrorKind.CORRUPT, ErrorKind.TRUNCATED)


_MAP = MapOf(STRING, LONG)
_ENTRIES: tuple[tuple[Kind, Serializer, Any], ...] = (
    ("VALUE", STRING, "some text"),
    ("MAP", _MAP, {"a": 1, "bc": None}),
    ("LIST", ListOf(LONG), [1, 2, 3]),
)


@pytest.mark.slow
@pytest.mark.parametrize("wanted", range(3))
@pytest.mark.parametrize("block", [1, 30])
def test_truncated_heap_key_group_leads_to_same_result_if_read_in_parts(
    wanted: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [
        Encoded(
            *(f"state{number}", kind, VOID_NAMESPACE, value),
            tuple(Entry(7, key, None, item) for key in _keys_of(7, 3)),
        )
        for number, (kind, value, item) in enumerate(
            (*_ENTRIES[wanted + 1 :], *_ENTRIES[: wanted + 1])
        )
    ]
    data, offsets = encode_heap(LONG, states, range(7, 8))

    def made(end: int, changed: bool) -> object:
        held = data[: end - 1] + bytes((data[end - 1] ^ 0x81,)) if changed else data[:end]
        try:
            found, _ = _read(held, offsets, len(held), heap=True)
            return list(found.states[-1].entries())
        except DecodeError as error:
            return error.kind, error.problem

    # The decoder recognizes the layout by the key group's number.
    ends = range(offsets[0] + 5, len(data) + 1)
    whole = [made(end, changed) for end in ends for changed in (False, True)]
    monkeypatch.setattr(parts, "_HEAP_BLOCK_BYTES", block)
    monkeypatch.setattr(parts, "_MAX_WHOLE_BYTES", 0)
    assert [made(end, changed) for end in ends for changed in (False, True)] == whole


def test_reader_restarts_few_times_for_entry_that_spans_many_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blob = Entry(7, _keys()[0], None, bytes(_MIB))
    state = Encoded("blob", "VALUE", VOID_NAMESPACE, BYTES, (blob,))
    data, offsets = encode_heap(LONG, [state], range(7, 8))
    monkeypatch.setattr(streams, "_MAX_WHOLE_BYTES", 0)
    monkeypatch.setattr(parts, "_MAX_WHOLE_BYTES", 0)
    monkeypatch.setattr(parts, "_HEAP_BLOCK_BYTES", 1024)
    begun: list[int] = []
    reader = heap._choose_reader

    def counted(readers: Readers) -> heap._Read:
        read = reader(readers)

        def begin(*arguments: Any) -> int:
            begun.append(1)
            return read(*arguments)

        return begin

    monkeypatch.setattr(heap, "_choose_reader", counted)
    found, _ = _read(data, offsets, heap=True)
    (part,) = only(found).parts
    (frame,) = part.frames(7)
    assert len(frame) > _MIB
    assert len(begun) < 15


def test_heap_key_group_over_memory_limit_is_read_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The code is for key groups of several gigabytes, but the test uses four megabytes."""
    blobs = tuple(Entry(7, key, None, bytes(_MIB // 16)) for key in _keys_of(7, 64))
    state = Encoded("blob", "VALUE", VOID_NAMESPACE, BYTES, blobs)
    monkeypatch.setattr(locate, "MAX_STATE_BYTES", _MIB)
    monkeypatch.setattr(streams, "_MAX_WHOLE_BYTES", 0)
    monkeypatch.setattr(streams, "_MIN_READ_BYTES", 0)
    monkeypatch.setattr(parts, "_HEAP_BLOCK_BYTES", _MIB // 8)
    monkeypatch.setattr(parts, "_MAX_WHOLE_BYTES", _MIB // 4)
    data, offsets = encode_heap(LONG, [state], range(7, 8))
    found, files = _read(data, offsets, heap=True)
    tracemalloc.start()
    try:
        sizes = [
            len(frame)
            for part in only(found).parts
            for n in part.key_groups
            for frame in part.frames(n)
        ]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) > 64 * _MIB // 16
    assert max(sizes) < _MIB // 2
    assert peak < 2 * _MIB
    assert max(files.reads) <= _MIB // 8
    assert _lengths(found) == [_MIB // 16] * 64
    monkeypatch.setattr(parts, "_MAX_ENTRY_BYTES", _MIB // 32)
    monkeypatch.setattr(parts, "_HEAP_BLOCK_BYTES", 1000)
    with pytest.raises(DecodeError, match=f"larger than {_MIB // 32} bytes") as caught:
        _lengths(found)
    assert caught.value.kind is ErrorKind.TOO_LARGE
