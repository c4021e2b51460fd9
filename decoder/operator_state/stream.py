"""The elements of list state in an operator-state stream.

The stream starts with ``i32 proxyVersion`` (1 to 6) and, in version 6, ``bool compressed``. It
continues with an ``i16`` count and the meta info of that many list states. From version 3 on, an
``i16`` count and the meta info of that many broadcast states follow. The data is last. The reader
uses only the first five bytes of the header, because the handle contains the offset of each element
in the stream. A state ends at the start of the next state or at the end of the stream, so it can be
fetched separately. An element of a ``byte[]`` list is ``i32 n`` and n bytes. In any other list, the
serializer determines the layout of an element.

Source: OperatorBackendSerializationProxy, PartitionableListState, CompressibleFSDataInputStream @
Flink 2.2.0; BytePrimitiveArraySerializer @ 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.metadata.model import (
    EmptySegment,
    FileState,
    InlineState,
    NamedState,
    OperatorStateHandle,
    RelativeFileState,
    SegmentState,
)
from decoder.snappy import next_chunk
from decoder.state_files import StateFiles

_PROXY_VERSIONS = range(1, 7)
_FIRST_COMPRESSIBLE_VERSION = 6
_HEADER_BYTES = 5
# The headers of versions 1 to 5, and of version 6 without compression.
_PLAIN_HEADERS = (*(bytes((0, 0, 0, version)) for version in range(1, 6)), b"\0\0\0\6\0")
# The largest decompressed size of an element; the Snappy ratio is up to 21 to 1. A Kafka split
# takes about a hundred bytes, and a split of another source takes at most a few megabytes.
MAX_DECOMPRESSED_BYTES = 32 * 1024 * 1024
# If the gap between the header and the state is smaller than this, one request reads the header,
# the gap, and the state.
_MIN_SKIPPED_BYTES = 64 * 1024


class Excerpt(NamedTuple):
    """A part of a stream, with the stream's header and ``data`` from byte ``start`` on."""

    header: bytes
    data: bytes
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.data)


class PlainElements(NamedTuple):
    """The positions of elements in ``data`` (each element's start, and the end of the last)."""

    data: bytes
    starts: Sequence[int]
    end: int


class ByteArrays(Iterable[bytes]):
    """The elements of one ``byte[]`` list state, in the order of its offsets.

    Iteration raises DecodeError for an unknown version, or for an element that is corrupt, overlaps
    the previous element, or is outside the stream.

    Attributes:
        byte_offsets: the start of each element in the stream.
        end: the end of the state in the stream.
        label: the stream's name in error messages.
    """

    __slots__ = ("byte_offsets", "end", "label", "part")

    def __init__(self, part: Excerpt, byte_offsets: tuple[int, ...], end: int, label: str) -> None:
        self.part = part
        self.byte_offsets = byte_offsets
        self.end = end
        self.label = label

    def __iter__(self) -> Iterator[bytes]:
        for cursor, compressed in _element_cursors(self.part, self.byte_offsets, self.label):
            yield _read_compressed(cursor) if compressed else cursor.blob("element")

    @property
    def plain(self) -> PlainElements | None:
        """The positions of the elements, or None if the elements must be read by iteration.

        The elements may overlap or have gaps; the caller must check this.
        """
        header, start = self.part.header, self.part.start
        if not self.byte_offsets or not header.startswith(_PLAIN_HEADERS):
            return None
        if self.byte_offsets[0] < max(_HEADER_BYTES, start):
            return None
        if start == 0:
            return PlainElements(self.part.data, self.byte_offsets, self.end)
        starts = [byte_offset - start for byte_offset in self.byte_offsets]
        return PlainElements(self.part.data, starts, self.end - start)


class Extent(NamedTuple):
    """The range of a stream to read for one state."""

    stream: FileState | RelativeFileState | SegmentState
    start: int
    end: int


def extent(handle: OperatorStateHandle, state: NamedState) -> Extent | None:
    """Return the extent of a non-empty state, or None if the stream is not a file of known size."""
    match handle.stream:
        case InlineState() | EmptySegment():
            return None
        case FileState(stored_size=None) | RelativeFileState(stored_size=None):
            return None
        case stream:
            start = min(state.byte_offsets)
            if start < _MIN_SKIPPED_BYTES:
                start = 0
            return Extent(stream, start, _end(handle, state, stream.size))


def _end(handle: OperatorStateHandle, state: NamedState, end_of_stream: int) -> int:
    """Return the end of a non-empty state (the start of the next state, or the stream's end)."""
    if len(handle.states) == 1:
        return end_of_stream
    last = max(state.byte_offsets)
    following = (
        offset for other in handle.states for offset in other.byte_offsets if offset > last
    )
    return min(end_of_stream, min(following, default=end_of_stream))


def read_excerpt(
    handle: OperatorStateHandle, span: Extent | None, files: StateFiles, label: str
) -> Excerpt:
    """Read the range ``span`` of a handle's stream, and the stream's header.

    If ``span`` is None, read the whole stream.

    Raises:
        DecodeError, OSError: as in ``StateFiles.read``.
    """
    if span is None:
        data = files.read(handle.stream, label)
        return Excerpt(data, data)
    stream, start, end = span
    data = files.read_range(stream, start, max(0, end - start), label)
    if start == 0:
        return Excerpt(data, data)
    return Excerpt(files.read_range(stream, 0, _HEADER_BYTES, label), data, start)


def byte_arrays(
    part: Excerpt, handle: OperatorStateHandle, state: NamedState, label: str
) -> ByteArrays:
    """Return the elements of a ``byte[]`` list state in ``part``."""
    return ByteArrays(part, state.byte_offsets, _end(handle, state, part.end), label)


def unsized_elements(
    part: Excerpt, handle: OperatorStateHandle, state: NamedState, label: str
) -> Iterator[bytes]:
    """Yield, in order, the elements of a list state whose serializer writes no length.

    An element ends at the start of the next element or state, or at the end of the stream.

    Raises:
        DecodeError: as in ``ByteArrays``.
    """
    ends = iter((*state.byte_offsets[1:], _end(handle, state, part.end)))
    for cursor, compressed in _element_cursors(part, state.byte_offsets, label):
        end = next(ends)
        if not compressed:
            yield cursor.raw(end - cursor.byte_offset, "element")
            continue
        data = bytearray()
        while cursor.byte_offset < end:
            data += next_chunk(cursor)
            _check_decompressed_size(cursor, len(data))
        yield bytes(data)


def _element_cursors(
    part: Excerpt, byte_offsets: tuple[int, ...], label: str
) -> Iterator[tuple[Cursor, bool]]:
    """Yield (cursor at the element's start, whether the stream is compressed) for each element.

    The caller must move the cursor to the element's end, which may be the start of the next
    element.
    """
    if not byte_offsets:
        return
    header = Cursor(part.header, label)
    version = header.version("operator state", _PROXY_VERSIONS)
    compressed = version >= _FIRST_COMPRESSIBLE_VERSION and header.boolean("compressed")
    end = max(header.byte_offset, part.start)
    for byte_offset in byte_offsets:
        # Elements must not overlap. Overlapping elements could together be much larger than the
        # stream.
        if not end <= byte_offset < part.end:
            header.fail(
                f"an element at byte {byte_offset} of a stream of {part.end} bytes, after one "
                f"that ends at byte {end}",
                "element",
            )
        cursor = Cursor(part.data, label, byte_offset - part.start, origin=part.start)
        yield cursor, compressed
        end = cursor.byte_offset


def _read_compressed(cursor: Cursor) -> bytes:
    """Read an element that starts with a Snappy chunk; the element may span several chunks."""
    data = bytearray()
    while len(data) < 4:
        data += next_chunk(cursor)
    size = int.from_bytes(data[:4], "big", signed=True)
    if size < 0:
        cursor.fail(f"a length cannot be negative: {size}", "element length")
    _check_decompressed_size(cursor, size)
    while len(data) < 4 + size:
        data += next_chunk(cursor)
    return bytes(memoryview(data)[4 : 4 + size])


def _check_decompressed_size(cursor: Cursor, size: int) -> None:
    if size > MAX_DECOMPRESSED_BYTES:
        cursor.fail(
            f"a compressed element of at least {size} bytes; the limit is "
            f"{MAX_DECOMPRESSED_BYTES} bytes",
            "element",
            ErrorKind.UNSUPPORTED,
        )
