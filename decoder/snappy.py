"""Chunks of a Snappy framed stream, read from the start of any chunk.

Flink flushes the compressor before every element of list state: an element begins with a chunk, and
its raw position is stored. A chunk is ``u8 type, u24 length`` (little-endian) and a body: 00
compressed and 01 uncompressed, both with a masked CRC-32C first; FF the stream identifier; 80 to FE
padding and skippable. A chunk holds at most 65,536 bytes of data.

Source: SnappyStreamCompressionDecorator @ Flink 2.2.0, snappy's framing_format.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind

_STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _UNCOMPRESSED, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_CHECKSUM_BYTES = 4
# A copy of 64 bytes takes 3.
_MOST_OUT_OF_A_BYTE = 22


def next_chunk(cursor: Cursor) -> bytes:
    """Decompress the chunk that begins here: at most 64 KiB, b"" for padding.

    Raises:
        DecodeError: it is cut short, fails its checksum, or is of an unknown type.
    """
    start = cursor.byte_offset
    header = cursor.raw(4, "snappy chunk")
    kind, size = header[0], int.from_bytes(header[1:], "little")
    body = cursor.raw(size, "snappy chunk")
    if kind >= _FIRST_SKIPPABLE:
        return b""
    if kind not in (_COMPRESSED, _UNCOMPRESSED):
        cursor.fail(f"unknown type of snappy chunk: {kind}", "snappy chunk", back=4 + size)
    import cramjam  # imported late: Spark's executors need it for compressed state only

    try:
        # As a stream of one chunk, so that the library checks its checksum and its bound.
        return bytes(cramjam.snappy.decompress(_STREAM_IDENTIFIER + header + body))
    except cramjam.DecompressionError as error:
        raise DecodeError(
            ErrorKind.CORRUPT,
            f"a snappy chunk does not decompress: {error}",
            file=cursor.file,
            field="snappy chunk",
            byte_offset=start,
        ) from error


def decompress_stream(data: bytes, what: str, limit: int) -> bytes:
    """Decompress ``data``, one or more whole streams; ``what`` names it in errors.

    The decompressed size is added up before anything is decompressed.

    Raises:
        DecodeError: cut short, not such a stream, or more than ``limit`` bytes decompressed.
    """
    cursor = Cursor(data, what)
    total = 0
    while cursor.remaining:
        header = cursor.raw(4, "snappy chunk")
        body = cursor.frame(int.from_bytes(header[1:], "little"), "snappy chunk")
        if header[0] == _COMPRESSED:
            body.skip(_CHECKSUM_BYTES, "snappy checksum")
            # A varint; snappy itself holds the chunk to it.
            total += body.varint("decompressed size", 35)
        elif header[0] == _UNCOMPRESSED:
            total += max(0, body.remaining - _CHECKSUM_BYTES)
    if total > limit:
        raise DecodeError(
            ErrorKind.TOO_LARGE,
            f"{total} bytes come out of it: at most {limit} are read at once",
            file=what,
        )
    if not data:
        return b""
    import cramjam  # as above

    try:
        return bytes(cramjam.snappy.decompress(data))
    except cramjam.DecompressionError as error:
        raise DecodeError(
            ErrorKind.CORRUPT, f"it does not decompress: {error}", file=what
        ) from error


def compress_chunks(data: bytes) -> bytes:
    """Return chunks without the stream identifier, as one part of a stream."""
    import cramjam  # as above

    return bytes(cramjam.snappy.compress(data)).removeprefix(_STREAM_IDENTIFIER)


def decompress_blocks(blocks: Iterable[bytes], what: str) -> Iterator[bytes]:
    """Decompress streams that come in blocks, cut anywhere, block by block.

    Raises:
        DecodeError: cut short, or not such a stream.
    """
    left = begun = b""
    for block in blocks:
        data = left + block
        end = position = 0
        while len(data) - position >= 4:
            position += 4 + int.from_bytes(data[position + 1 : position + 4], "little")
            if position > len(data):
                break
            end = position
        left = data[end:]
        if end:
            yield decompress_stream(begun + data[:end], what, end * _MOST_OUT_OF_A_BYTE)
            begun = _STREAM_IDENTIFIER
    if left:
        Cursor(left, what).raw(len(left) + 1, "snappy chunk")
