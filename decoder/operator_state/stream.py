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
from decoder.operator_state.snappy import decompress_at_least

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
    for byte_offset in byte_offsets:
        if not header.byte_offset <= byte_offset < len(stream):
            header.fail(
                f"an element at byte {byte_offset} of a stream of {len(stream)} bytes", "element"
            )
        yield _element(stream, byte_offset, compressed, what)


def _element(stream: bytes, byte_offset: int, compressed: bool, what: str) -> bytes:
    if not compressed:
        return Cursor(stream, what, byte_offset).blob("element")
    head = Cursor(decompress_at_least(stream, byte_offset, 4, what), what)
    size = head.i32("element length")
    if size < 0:
        head.fail(f"a length cannot be negative: {size}", "element length", back=4)
    if size <= head.remaining:
        return head.raw(size, "element")
    return Cursor(decompress_at_least(stream, byte_offset, 4 + size, what), what, 4).raw(
        size, "element"
    )
