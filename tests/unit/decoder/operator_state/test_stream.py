"""Read operator-state streams and locate state files, for cases without golden checkpoints."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import cramjam
import pytest

from decoder import DecodeError, ErrorKind, UnknownSource, read_checkpoint
from decoder.kafka.reader_state import read_reader_element
from decoder.metadata.model import FileState, RelativeFileState
from decoder.operator_state.stream import MAX_DECOMPRESSED_BYTES, ByteArrays, Excerpt
from decoder.snappy import decompress_blocks, decompress_stream
from decoder.state_files import StateFiles
from decoder.storage import LocalFiles
from tests.support.checkpoints import operator_with_states, write_checkpoint
from tests.support.coordinator import read_coordinator_state
from tests.support.encoder import (
    READER_STATE,
    DistributionMode,
    EnumeratorSplit,
    KafkaSplit,
    ListState,
    encode_coordinator,
    encode_enumerator,
    encode_operator_state_stream,
    encode_reader_element,
    encode_split,
)
from tests.support.hostile import chunk
from tests.support.memory_files import MemoryFiles

_JOB = "0123456789abcdef0123456789abcdef"
_OTHER_JOB = "f" * 32


def _stream(elements: list[bytes], compressed: bool) -> tuple[bytes, tuple[int, ...]]:
    state = ListState("s", DistributionMode.SPLIT_DISTRIBUTE, tuple(elements))
    stream, (located,) = encode_operator_state_stream(6, compressed, [state])
    return stream, located.offsets


def _elements(stream: bytes, offsets: tuple[int, ...]) -> ByteArrays:
    return ByteArrays(Excerpt(stream, stream), offsets, len(stream), "s")


@pytest.mark.parametrize("compressed", [False, True])
def test_operator_state_elements_of_every_size_are_read(compressed: bool) -> None:
    elements = [b"", b"x", bytes(range(256)) * 1000, b"y" * 65536]
    stream, offsets = _stream(elements, compressed)
    assert list(_elements(stream, offsets)) == elements


@pytest.mark.parametrize("compressed", [False, True])
def test_overlapping_elements_are_refused_in_bounded_memory(compressed: bool) -> None:
    stream, offsets = _stream([bytes(200_000)], compressed)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="after one that ends at byte"):
            for _ in _elements(stream, offsets * 10_000):
                pass
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_length_of_element_may_span_chunks() -> None:
    """The writer's buffer determines the chunk boundaries, here after each byte."""
    stream, (place,) = _stream([b"abc"], True)
    chunked = stream[:place] + b"".join(chunk(bytes([byte])) for byte in b"\0\0\0\3abc")
    assert list(_elements(chunked, (place,))) == [b"abc"]


@pytest.mark.parametrize("size", [-1, -(1 << 31)])
def test_compressed_element_with_negative_length_is_refused(size: int) -> None:
    stream, (place,) = _stream([b""], True)
    with pytest.raises(DecodeError, match="a length cannot be negative") as refused:
        list(_elements(stream[:place] + chunk(size.to_bytes(4, "big", signed=True)), (place,)))
    assert refused.value.kind is ErrorKind.CORRUPT


@pytest.mark.parametrize(
    ("size", "kind", "problem"),
    [
        (
            MAX_DECOMPRESSED_BYTES + 1,
            ErrorKind.UNSUPPORTED,
            f"a compressed element of at least {MAX_DECOMPRESSED_BYTES + 1} bytes; the limit "
            f"is {MAX_DECOMPRESSED_BYTES} bytes",
        ),
        (MAX_DECOMPRESSED_BYTES, ErrorKind.TRUNCATED, None),
    ],
)
def test_compressed_element_is_read_up_to_size_limit(
    size: int, kind: ErrorKind, problem: str | None
) -> None:
    stream, (place,) = _stream([b""], True)
    with pytest.raises(DecodeError) as refused:
        list(_elements(stream[:place] + chunk(size.to_bytes(4, "big")), (place,)))
    assert refused.value.kind is kind
    if problem is not None:
        assert (refused.value.problem, refused.value.field) == (problem, "element")


def test_damaged_chunk_fails_its_checksum() -> None:
    stream, offsets = _stream([b"a" * 100], True)
    damaged = bytearray(stream)
    damaged[-1] ^= 0xFF
    with pytest.raises(DecodeError, match="snappy"):
        list(_elements(bytes(damaged), offsets))


@pytest.mark.parametrize("kind", [0x80, 0xFD, 0xFE])
def test_skippable_chunk_is_skipped(kind: int) -> None:
    """Sections 4.4 and 4.6 of snappy's framing_format.txt define skippable chunks and padding."""
    stream, (place,) = _stream([b"abc"], True)
    element = stream[:place] + bytes([kind, 2, 0, 0]) + b"no" + stream[place:]
    assert list(_elements(element, (place,))) == [b"abc"]


@pytest.mark.parametrize("kind", [0x02, 0x7F])
def test_unknown_chunk_that_must_not_be_skipped_is_refused(kind: int) -> None:
    """Section 4.5 of framing_format.txt defines such chunks as reserved and not skippable."""
    stream, (place,) = _stream([b"abc"], True)
    element = stream[:place] + bytes([kind, 2, 0, 0]) + b"no" + stream[place:]
    with pytest.raises(DecodeError, match=f"unknown type of snappy chunk: {kind} ") as refused:
        list(_elements(element, (place,)))
    assert refused.value.byte_offset == place


def test_varint_of_chunk_size_is_limited_to_35_bits() -> None:
    """A varint has at most 5 bytes of 7 bits (format_description.txt of snappy)."""
    start, checksum = b"\xff\x06\0\0sNaPpY", bytes(4)
    chunk_ = b"\0\x09\0\0" + checksum + b"\x80" * 5
    with pytest.raises(DecodeError, match="a varint is longer than 35 bits") as refused:
        decompress_stream(start + chunk_, "it", 100)
    assert refused.value.kind is ErrorKind.CORRUPT


def _snappy(*chunks: bytes) -> bytes:
    return b"\xff\x06\0\0sNaPpY" + b"".join(chunks)


def _plain_chunk(data: bytes) -> bytes:
    """Return an uncompressed chunk (section 4.3). A compressed chunk has the same checksum."""
    body = bytes(cramjam.snappy.compress(data))[10:]
    checksum = body[4:8]
    return b"\1" + (len(data) + 4).to_bytes(3, "little") + checksum + data


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 4, 5, 100])
def test_empty_padding_chunk_can_end_stream(block_bytes: int) -> None:
    """Section 4.6 of framing_format.txt allows padding without bytes."""
    whole = _snappy(chunk(b"abc"), b"\xfe\0\0\0")
    blocks = (whole[at : at + block_bytes] for at in range(0, len(whole), block_bytes))
    assert b"".join(decompress_blocks(blocks, "it")) == b"abc"


def test_decompressed_size_of_stream_is_limited() -> None:
    """The limit uses the sizes stated in the chunks, whether or not the chunks are compressed."""
    whole = _snappy(chunk(b"a" * 300), b"\xfe\3\0\0" + bytes(3), _plain_chunk(b"b" * 7))
    assert decompress_stream(whole, "it", 307) == b"a" * 300 + b"b" * 7
    assert decompress_stream(whole + _snappy(chunk(b"c")), "it", 308)[-1:] == b"c"
    with pytest.raises(DecodeError) as refused:
        decompress_stream(whole, "it", 306)
    assert refused.value.kind is ErrorKind.TOO_LARGE
    assert str(refused.value) == "it: it decompresses to 307 bytes; the limit is 306 bytes"
    assert decompress_stream(b"", "it", 0) == b""


def test_damaged_stream_is_reported_with_its_name() -> None:
    damaged = bytearray(_snappy(chunk(b"a" * 300)))
    damaged[-1] ^= 0xFF
    with pytest.raises(DecodeError) as refused:
        decompress_stream(bytes(damaged), "it", 300)
    assert refused.value.kind is ErrorKind.CORRUPT
    assert str(refused.value).startswith("it: it does not decompress: ")
    with pytest.raises(DecodeError) as refused:
        decompress_stream(_snappy(chunk(b"a" * 300))[:-1], "it", 300)
    assert refused.value.kind is ErrorKind.TRUNCATED


def test_reader_state_with_union_distribution_is_not_read_as_kafka_source(tmp_path: Path) -> None:
    """A Kafka source never uses this distribution mode.

    The operator is reported as an unknown source.
    """
    element = encode_reader_element(encode_split("t", 0, 1))
    operator = operator_with_states({READER_STATE: [element]}, DistributionMode.UNION)
    checkpoint = read_checkpoint(write_checkpoint(tmp_path / "c", operator))
    (source,) = checkpoint.sources.values()
    assert isinstance(source, UnknownSource)
    assert "UNION" in source.reason


@pytest.mark.parametrize("stop", [-2, -4, -(1 << 62)])
def test_invalid_stopping_offset_is_refused(stop: int) -> None:
    with pytest.raises(DecodeError):
        read_reader_element(encode_reader_element(encode_split("t", 0, 1, stop)), "s")


def test_bytes_after_enumerator_are_refused_in_coordinator_state_version_1() -> None:
    """In version 0, the state of a tracker follows the enumerator."""
    enumerator = encode_enumerator(2, [EnumeratorSplit(KafkaSplit("t", 0, 1))])
    state = encode_coordinator(1, 2, enumerator)
    assert read_coordinator_state(state, "c").entries
    with pytest.raises(DecodeError, match="left over"):
        read_coordinator_state(state + b"\0", "c")
    tracked = encode_coordinator(0, 2, enumerator, b"what the tracker knew")
    assert read_coordinator_state(tracked, "c").entries


# -- locations of state files --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "uri"),
    [
        (f"/new/{_JOB}/chk-1/file", "s3://b/_entropy_/chk-1/file"),
        (f"/new/{_JOB}/shared/x/file", f"hdfs:///old/{_OTHER_JOB}/shared/x/file"),
        (f"/new/{_JOB}/shared/file", f"s3://b/{_OTHER_JOB}/deeper/{_JOB}/shared/file"),
        ("/old/dir/file", "file:/old/dir/file"),
        ("/old/a%41#1?/file", "file:/old/a%41#1?/file"),
        ("/old/dir/file", "file://localhost/old/dir/file"),
        ("/old/dir/file", "file:///old/dir/file"),
        ("/old/dir/file", "/old/dir/file"),
    ],
)
def test_moved_state_file_is_found_relative_to_checkpoint(place: str, uri: str) -> None:
    class Files(MemoryFiles):
        def from_uri(self, uri: str) -> str | None:
            return LocalFiles().from_uri(uri)

    files = Files({place: b"state"})
    moved = StateFiles(f"/new/{_JOB}/chk-1", files, allow_external=True)
    assert moved.read(FileState(uri, 5), "it") == b"state"


def test_state_file_at_new_location_is_preferred_to_old_location() -> None:
    uri = "/old/file"
    files = MemoryFiles({"/new/chk-1/file": b"today", uri: b"stale"})
    assert StateFiles("/new/chk-1", files).read(FileState(uri, 5), "it") == b"today"


def test_file_shorter_than_size_in_its_handle_is_refused() -> None:
    files = MemoryFiles({"/c/file": b"four"})
    assert StateFiles("/c", files).read(RelativeFileState("file", None), "it") == b"four"
    with pytest.raises(DecodeError, match="ends early"):
        StateFiles("/c", files).read(RelativeFileState("file", 5), "it")


def test_first_denied_location_is_reported_if_no_file_is_found() -> None:
    """A store can deny access to a missing file, so a denial is reported only as a last resort."""

    class Denied(MemoryFiles):
        def read_range(self, path: str, start: int, size: int) -> bytes:
            if path not in self.files:
                raise PermissionError(13, "Permission denied", path)
            return super().read_range(path, start, size)

    stream = RelativeFileState("a/file", 5)
    with pytest.raises(PermissionError) as refused:
        StateFiles("/c", Denied({})).read(stream, "it")
    assert refused.value.filename == "/c/a/file"
    assert StateFiles("/c", Denied({"/c/file": b"state"})).read(stream, "it") == b"state"


def test_missing_file_reports_tried_locations() -> None:
    with pytest.raises(DecodeError, match="'/c/a/file', '/c/file'"):
        StateFiles("/c", MemoryFiles({})).read(RelativeFileState("a/file", 5), "it")
