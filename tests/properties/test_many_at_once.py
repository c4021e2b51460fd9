"""Compare bulk reads with sequential reads: values, ends, and errors.

A bulk read decodes a run of similar files (``metadata.incremental``) or a column of splits
(``kafka.bulk``). Both accept only input that the strict readers accept, and must return the same
values.
"""

from __future__ import annotations

import pickle
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from decoder import DecodeError, KafkaSource
from decoder.cursor import Cursor
from decoder.kafka.bulk import element_topics, read_uniform_entries, read_uniform_splits
from decoder.kafka.enumerator import EnumeratorEntry, read_entries, read_enumerator
from decoder.kafka.reader_state import read_reader_element
from decoder.kafka.source import recognise_source
from decoder.metadata import incremental
from decoder.metadata.handles import skip_incremental, skip_keyed_state
from decoder.metadata.model import DistributionMode, InlineState, NamedState, OperatorStateHandle
from decoder.operator_state.stream import ByteArrays, Excerpt, byte_arrays
from tests.support.encoder import (
    COMMITTED,
    EARLIEST,
    LATEST,
    MIGRATED,
    NO_STOPPING_OFFSET,
    ByteStreamHandle,
    DataOutput,
    EmptySegmentHandle,
    EnumeratorSplit,
    FileHandle,
    IncrementalHandle,
    KafkaSplit,
    RelativeFileHandle,
    SegmentHandle,
    StreamHandle,
    encode_enumerator,
    encode_reader_element,
    encode_split,
)

_T = TypeVar("_T")
_Change = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Refused:
    """The message of an error, and the field and byte in it."""

    text: str
    field: str | None
    byte_offset: int | None


def _outcome(read: Callable[[], _T]) -> _T | Refused:
    try:
        return read()
    except DecodeError as error:
        return Refused(str(error), error.field, error.byte_offset)


# -- damage --------------------------------------------------------------------------------------

_bytes_that_hurt = st.sampled_from((0, 1, 2, 6, 0x0A, 0x7F, 0x80, 0xFF)) | st.integers(0, 0xFF)
# The distances from a name to lengths, types, and the first and last bytes of numbers.
_NAMES = re.compile(rb"\.sst|s3:|orders|events")
_DISTANCES = (-14, -11, -10, -8, -7, -6, -3, -2, -1, 0, 4, 5, 6, 9, 10, 12, 13, 14, 18, 26)
_places = st.tuples(st.integers(0, 1 << 16), st.sampled_from(_DISTANCES))


@st.composite
def _changes(draw: st.DrawFn) -> _Change:
    """Return a change that sets a few bytes and sometimes truncates the data."""
    flips = draw(st.lists(st.tuples(_places, _bytes_that_hurt), max_size=2))
    cut = draw(st.sampled_from((None,) * 9 + (1, 9, 100)))

    def change(data: bytes) -> bytes:
        changed = bytearray(data)
        names = [name.start() for name in _NAMES.finditer(data)] or [0]
        for (name, distance), byte in flips:
            changed[(names[name % len(names)] + distance) % len(changed)] = byte
        return bytes(changed if cut is None else changed[:-cut])

    return change


# -- incremental keyed state ---------------------------------------------------------------------

_UUID = "b5b75f8e-835b-443c-a0e5-948ab73131fd"
_sizes = st.integers(0, 1 << 40) | st.just(-1)
_uris = st.sampled_from((f"s3://b/shared/{_UUID}", "file:/f/é", "x" * 300, ""))
_plain_files: st.SearchStrategy[StreamHandle] = st.one_of(
    st.builds(FileHandle, st.just(f"s3://b/shared/{_UUID}"), st.integers(0, 1 << 55)),
    st.builds(RelativeFileHandle, st.just(_UUID), st.integers(0, 1 << 55)),
    st.builds(ByteStreamHandle, st.just("000012.sst"), st.binary(max_size=20)),
)
_any_files: st.SearchStrategy[StreamHandle] = st.one_of(
    _plain_files,
    st.builds(FileHandle, _uris, _sizes),
    st.builds(SegmentHandle, _uris, st.just(0), st.just(5), st.just(0), st.just("id")),
    st.builds(EmptySegmentHandle),
)
_some_sizes = st.lists(st.integers(0, 1 << 50), min_size=1, max_size=4)
_paths = st.sampled_from(("000123.sst", "1000123.sst", "CURRENT", "MANIFEST-000004", "é", ""))


@st.composite
def _runs(
    draw: st.DrawFn, files: st.SearchStrategy[StreamHandle]
) -> tuple[tuple[str, StreamHandle], ...]:
    """Return similar files, like those of RocksDB, with different files before or after them."""
    path = draw(_paths)
    uri = f"s3://b/shared/{_UUID}"
    sizes = islice(cycle(draw(_some_sizes)), draw(st.sampled_from((0, 1, 4, 5, 40, 128, 130))))
    alike = [(path, FileHandle(uri, size)) for size in sizes]
    others = draw(st.lists(st.tuples(_paths, files), max_size=3))
    place = draw(st.integers(0, len(alike)))
    return (*alike[:place], *others, *alike[place:])


def _handles(
    files: st.SearchStrategy[StreamHandle],
) -> st.SearchStrategy[IncrementalHandle]:
    return st.builds(
        lambda version2, meta, shared, private: IncrementalHandle(
            7,
            _UUID,
            0,
            64,
            99 if version2 else None,
            meta,
            shared,
            private,
            _UUID if version2 else None,
        ),
        st.booleans(),
        files,
        _runs(files),
        _runs(files),
    )


def _encoded(handle: IncrementalHandle) -> bytes:
    out = DataOutput()
    handle.write(out)
    return out.to_bytes()


def _quick(data: bytes, end: int) -> tuple[int, int] | None:
    return incremental.skip_incremental_fast(data, 0, end)


def bulk_reader_accepts_incremental_state(draw: st.DataObject) -> None:
    handle = draw.draw(_handles(_plain_files))
    data = _encoded(handle)
    assert _quick(data, len(data)) == (len(data), handle.state_size)


def bulk_read_of_incremental_state_matches_sequential_read(draw: st.DataObject) -> None:
    files = draw.draw(st.sampled_from((_plain_files,) * 4 + (_any_files,)))
    handle, change = draw.draw(_handles(files)), draw.draw(_changes())
    behind = draw.draw(st.binary(max_size=40))
    whole = _encoded(handle)
    # The readers must ignore the bytes after the end.
    _incremental_agrees(whole[:1] + change(whole[1:]), behind)


def _incremental_agrees(data: bytes, behind: bytes = b"") -> None:
    file, end = data + behind, len(data)

    def strictly() -> tuple[int, int]:
        cursor = Cursor(file, "_metadata", 1, end)
        size = skip_incremental(cursor, "keyed state", version2=data[0] == 11)
        return cursor.byte_offset, size

    def as_read() -> tuple[int, int]:
        cursor = Cursor(file, "_metadata", 0, end)
        size = skip_keyed_state(cursor, "keyed state")
        return cursor.byte_offset, size

    strict = _outcome(strictly)
    assert _quick(file, end) in (None, strict)
    assert _outcome(as_read) == strict


# -- enumerators ---------------------------------------------------------------------------------

_topics = st.sampled_from(("orders", "events", "a", "t" * 249))
_starts = st.integers(0, 1 << 62) | st.sampled_from((EARLIEST, LATEST, COMMITTED, MIGRATED))
_stops = st.just(NO_STOPPING_OFFSET) | st.sampled_from((LATEST, COMMITTED)) | st.integers(0, 9)
_splits = st.builds(KafkaSplit, _topics, st.integers(0, 1 << 31 - 1), _starts, _stops)
_odd_splits = _splits | st.builds(
    KafkaSplit,
    st.sampled_from(("orders", "", "..", "not legal", "é", "t" * 250)),
    st.sampled_from((0, -1)),
    st.sampled_from((5, -4)),
    st.sampled_from((NO_STOPPING_OFFSET, -2)),
)
_versions = st.sampled_from((1, 2, 3))
_entries = st.builds(EnumeratorSplit, _splits, st.sampled_from((0, 1)))
_odd_entries = st.builds(EnumeratorSplit, _odd_splits, st.sampled_from((0, 2)))


def _distinct(entries: list[EnumeratorSplit]) -> list[EnumeratorSplit]:
    return list({(e.split.topic, e.split.partition): e for e in entries}.values())


def _counted(version: int, data: bytes) -> tuple[int, int]:
    """Return the number of entries in the header of an enumerator, and their start."""
    count: int = struct.unpack_from(">i", data)[0]
    return count, 8 if version == 3 else 4


def bulk_reader_accepts_enumerators(draw: st.DataObject) -> None:
    version = draw.draw(_versions)
    entries = _distinct(draw.draw(st.lists(_entries, min_size=1, max_size=50)))
    data = encode_enumerator(version, entries)
    count, start = _counted(version, data)
    found = read_uniform_entries(data, start, len(data), version=version, count=count)
    assert found is not None
    state = read_enumerator(Cursor(data, "enumerator"), version)
    one_by_one = read_entries(Cursor(data, "enumerator", start), version, count)
    assert state.entries == one_by_one
    assert (len(state.entries), state.entries[-1]) == (count, one_by_one[-1])
    assert pickle.loads(pickle.dumps(state)) == state


def bulk_read_of_enumerators_matches_sequential_read(draw: st.DataObject) -> None:
    version, change = draw.draw(_versions), draw.draw(_changes())
    entries = draw.draw(st.lists(_entries | _odd_entries, max_size=20))
    _enumerator_agrees(version, change(encode_enumerator(version, entries)))


def _enumerator_agrees(version: int, data: bytes) -> None:
    if len(data) < 8:
        return
    count, start = _counted(version, data)
    if not 0 < count < 1000:
        return
    found = read_uniform_entries(data, start, len(data), version=version, count=count)
    if found is None:
        return

    def strictly() -> tuple[int, tuple[EnumeratorEntry, ...]]:
        cursor = Cursor(data, "enumerator", start)
        entries = read_entries(cursor, version, count)
        return cursor.byte_offset, entries

    strict = _outcome(strictly)
    assert not isinstance(strict, Refused)
    end, one_by_one = strict
    stop, columns = found
    assert stop == end
    assert list(columns.topics) == [entry.topic for entry in one_by_one]
    assert list(columns.partitions) == [entry.partition for entry in one_by_one]
    assert list(columns.statuses or (0,) * count) == [entry.status.value for entry in one_by_one]
    splits = list(columns.splits.make_items()) if columns.splits is not None else [None] * count
    assert splits == [entry.split for entry in one_by_one]
    assert len({entry[:2] for entry in one_by_one}) == count


# -- readers -------------------------------------------------------------------------------------


def _stream(splits: list[KafkaSplit], version: int) -> tuple[bytes, tuple[int, ...]]:
    out = DataOutput()
    out.i32(version)
    out.i8(0)
    offsets = []
    for split in splits:
        offsets.append(out.position)
        encoded = encode_split(
            split.topic, split.partition, split.starting_offset, split.stopping_offset
        )
        out.sized(encode_reader_element(encoded))
    return out.to_bytes(), tuple(offsets)


def _state(data: bytes, start: int, offsets: tuple[int, ...], following: int) -> ByteArrays:
    """Return a list state in a stream whose bytes are available from ``start``.

    A different state starts ``following`` bytes before the end of the stream.
    """
    state = NamedState("SourceReaderState", DistributionMode.SPLIT_DISTRIBUTE, offsets)
    others = (len(data) - following,) if following else ()
    other = NamedState("other", DistributionMode.SPLIT_DISTRIBUTE, others)
    handle = OperatorStateHandle((state, other), InlineState("state", data))
    part = Excerpt(data[:5], data[start:], start) if start else Excerpt(data, data)
    return byte_arrays(part, handle, state, "reader state")


def bulk_reader_accepts_reader_state(draw: st.DataObject) -> None:
    splits = draw.draw(st.lists(_splits, min_size=1, max_size=50))
    stream, offsets = _stream(splits, draw.draw(st.sampled_from((5, 6))))
    partly, following = draw.draw(st.booleans()), draw.draw(st.binary(max_size=9))
    state = _state(stream + following, offsets[0] * partly, offsets, len(following))
    assert state.plain is not None
    alike = read_uniform_splits(state.plain, element_topics())
    assert alike is not None
    assert list(alike.make_items()) == [
        read_reader_element(element, "element") for element in state
    ]


def bulk_read_of_reader_state_matches_sequential_read(draw: st.DataObject) -> None:
    splits = draw.draw(st.lists(_odd_splits, min_size=1, max_size=20))
    whole, offsets = _stream(splits, draw.draw(st.sampled_from((1, 5, 6, 7))))
    shifts, change = draw.draw(st.lists(st.integers(-3, 3), max_size=3)), draw.draw(_changes())
    following = draw.draw(st.integers(0, 9))
    stream = change(whole)
    places = list(offsets)
    for index, shift in enumerate(shifts):
        places[-1 - index % len(places)] = max(0, places[-1 - index % len(places)] + shift)
    _reader_state_agrees(_state(stream, 0, tuple(places), min(following, len(stream))))


def _reader_state_agrees(state: ByteArrays) -> None:
    in_bulk = _outcome(lambda: recognise_source([(3, state)], None))
    # The bulk reader does not support a different iterable.
    one_by_one = _outcome(lambda: recognise_source([(3, iter(state))], None))
    assert in_bulk == one_by_one
    if isinstance(in_bulk, KafkaSource):
        assert isinstance(one_by_one, KafkaSource)
        assert list(in_bulk.reader_splits) == list(one_by_one.reader_splits)


@pytest.mark.parametrize("examples", [20, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "holds",
    [
        bulk_reader_accepts_incremental_state,
        bulk_read_of_incremental_state_matches_sequential_read,
        bulk_reader_accepts_enumerators,
        bulk_read_of_enumerators_matches_sequential_read,
        bulk_reader_accepts_reader_state,
        bulk_read_of_reader_state_matches_sequential_read,
    ],
    ids=lambda holds: holds.__name__,
)
def test_bulk_reads_of_state_match_sequential_reads(
    holds: Callable[[st.DataObject], None], examples: int
) -> None:
    """A bulk read decodes many entries in one step. A sequential read decodes them one by one."""

    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def test(data: st.DataObject) -> None:
        holds(data)

    test()


# -- every byte ----------------------------------------------------------------------------------


def _damaged(data: bytes, first: int) -> Iterator[bytes]:
    for place in range(first, len(data)):
        for byte in (0, 1, 6, 0x7F, 0x80, 0xFF):
            yield data[:place] + bytes((byte,)) + data[place + 1 :]


def test_bulk_read_of_incremental_handle_with_damaged_byte_matches_sequential_read() -> None:
    shared = (("000123.sst", FileHandle("s3://b/1", 5)),) * 4
    private = (("CURRENT", RelativeFileHandle("c", 16)), ("1", ByteStreamHandle("m", b"abc")))
    meta = FileHandle("s3://b/m", 9)
    handle = IncrementalHandle(7, "id", 0, 64, 99, meta, shared, private, "h")
    for data in _damaged(_encoded(handle), 1):
        _incremental_agrees(data)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_bulk_read_of_enumerator_with_damaged_byte_matches_sequential_read(version: int) -> None:
    splits = [KafkaSplit("orders", 0, 5), KafkaSplit("orders", 1, 5, 9), KafkaSplit("a", 0, 5)]
    entries = [EnumeratorSplit(split) for split in splits]
    for data in _damaged(encode_enumerator(version, entries), 0):
        _enumerator_agrees(version, data)


def test_bulk_read_of_reader_state_with_damaged_byte_matches_sequential_read() -> None:
    stream, offsets = _stream([KafkaSplit("orders", 0, 5), KafkaSplit("a", 1, 5, 9)], 6)
    for data in _damaged(stream, 0):
        _reader_state_agrees(_state(data, 0, offsets, 0))


@pytest.mark.parametrize(
    ("version", "entries"),
    [
        (1, [EnumeratorSplit(KafkaSplit("orders", 0, 5))] * 2),
        (2, [EnumeratorSplit(KafkaSplit("orders", 0, 5), status=2)]),
        (3, [EnumeratorSplit(KafkaSplit("orders", 0, -4))]),
    ],
    ids=["twice", "unknown status", "unknown marker"],
)
def test_bulk_reader_leaves_invalid_enumerator_to_sequential_reader(
    version: int, entries: list[EnumeratorSplit]
) -> None:
    """The sequential reader then returns the error."""
    data = encode_enumerator(version, entries)
    count, start = _counted(version, data)
    assert read_uniform_entries(data, start, len(data), version=version, count=count) is None


@pytest.mark.parametrize("version", [1, 2, 3])
def test_enumerator_entries_beyond_end_of_enumerator_are_refused(version: int) -> None:
    entries = [EnumeratorSplit(KafkaSplit(topic, 0, 5)) for topic in ("orders", "a")]
    data = encode_enumerator(version, entries)
    count, start = _counted(version, data)
    end = len(data) - 2
    assert read_uniform_entries(data, start, end, version=version, count=count) is None
    with pytest.raises(DecodeError, match=r"end inside a field|cannot fit"):
        read_enumerator(Cursor(data, "enumerator", 0, end), version)


def test_reader_state_element_that_starts_inside_header_is_refused() -> None:
    """The first bytes of an element of 256 to 511 bytes look like a header of version 1."""
    encoded = encode_reader_element(encode_split("t" * 240, 0, 5))
    stream = b"\0" + struct.pack(">i", len(encoded)) + encoded
    assert stream.startswith(b"\0\0\0\1")
    state = _state(stream, 0, (1,), 0)
    assert state.plain is None
    with pytest.raises(DecodeError, match="after one that ends at byte 4"):
        list(state)
