"""The elements of list state in an operator-state stream.

The stream: ``i32 proxyVersion`` (1 to 6); version 6: ``bool compressed``; ``i16 n`` list states'
meta info; from version 3 on ``i16 n`` broadcast states'; then the data. A handle's offsets are
absolute positions in the stream, one per element, so that of the header only the first five bytes
are read. An element of a ``byte[]`` list is ``i32 n`` and n bytes.

Source: OperatorBackendSerializationProxy, PartitionableListState, CompressibleFSDataInputStream @
Flink 2.2.0; BytePrimitiveArraySerializer @ 2.2.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.operator_state.snappy import next_chunk

_NEWEST_PROXY_VERSION = 6
_FIRST_COMPRESSIBLE_VERSION = 6


def byte_array_elements(stream: bytes, byte_offsets: tuple[int, ...], what: str) -> Iterator[bytes]:
    """The elements of one ``byte[]`` list state, in the order of its offsets.

    ``what`` names the stream in errors, whose byte offsets count from the stream's start.

    Raises:
        DecodeError: an unknown version, or an element that does not lie inside the stream.
    """
    if not byte_offsets:
        return
    header = Cursor(stream, what)
    version = header.i32("operator state version")
    if not 1 <= version <= _NEWEST_PROXY_VERSION:
        header.fail(
            f"operator state version {version} is not read here (known: 1 to "
            f"{_NEWEST_PROXY_VERSION})",
            "operator state version",
            ErrorKind.UNSUPPORTED,
            back=4,
        )
    compressed = version >= _FIRST_COMPRESSIBLE_VERSION and header.boolean("compressed")
    end = header.byte_offset
    for byte_offset in byte_offsets:
        # Elements follow each other, as they were written: read once, never over one another, so
        # that what they hold together is bounded by the stream.
        if not end <= byte_offset < len(stream):
            header.fail(
                f"an element at byte {byte_offset} of a stream of {len(stream)} bytes, after one "
                f"that ends at byte {end}",
                "element",
            )
        cursor = Cursor(stream, what, byte_offset)
        yield _decompressed(cursor) if compressed else cursor.blob("element")
        end = cursor.byte_offset


def _decompressed(cursor: Cursor) -> bytes:
    """An element that begins at a chunk's start and may go on over several."""
    data = bytearray()
    while len(data) < 4:
        data += next_chunk(cursor)
    size = int.from_bytes(data[:4], "big", signed=True)
    if size < 0:
        cursor.fail(f"a length cannot be negative: {size}", "element length")
    while len(data) < 4 + size:
        data += next_chunk(cursor)
    return bytes(data[4 : 4 + size])
