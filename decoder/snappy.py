"""Chunks of a framed Snappy stream, read from the start of any chunk.

Flink flushes the compressor before every element of list state, and stores the position of the
chunk that starts with the element. A chunk is ``u8 type, u24 length`` (little-endian) and a body.
The types: 00 compressed data and 01 uncompressed data, both after a masked CRC-32C; FF the stream
identifier; 80 to FE padding and skippable chunks. A chunk contains at most 65,536 bytes of data.

Source: SnappyStreamCompressionDecorator @ Flink 2.2.0, snappy's framing_format.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind

_STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _UNCOMPRESSED, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80
_CHECKSUM_BYTES = 4
# The highest possible ratio of decompressed to compressed bytes: a copy of 64 bytes is encoded in 3
# bytes.
_MAX_RATIO = 22


def next_chunk(cursor: Cursor) -> bytes:
    """Read the next chunk; return its data (at most 64 KiB), or b"" if its type has no data.

    Raises:
        DecodeError: the chunk is truncated, fails its checksum, or has an unknown type.
    """
    start = cursor.byte_offset
    header = cursor.raw(4, "snappy chunk")
    kind, size = header[0], int.from_bytes(header[1:], "little")
    body = cursor.raw(size, "snappy chunk")
    if kind >= _FIRST_SKIPPABLE:
        return b""
    if kind not in (_COMPRESSED, _UNCOMPRESSED):
        cursor.fail(f"unknown type of snappy chunk: {kind}", "snappy chunk", back=4 + size)
    import cramjam  # imported late: Spark executors need it only for compressed state

    try:
        # Pass the chunk as a stream, so that the library checks the checksum and the size.
        return bytes(cramjam.snappy.decompress(_STREAM_IDENTIFIER + header + body))
    except cramjam.DecompressionError as error:
        raise DecodeError(
            ErrorKind.CORRUPT,
            f"a snappy chunk does not decompress: {error}",
            file=cursor.file,
            field="snappy chunk",
            byte_offset=start,
        ) from error


def decompress_stream(data: bytes, label: str, limit: int) -> bytes:
    """Decompress one or more complete streams; ``label`` is their name in error messages.

    The declared sizes of the chunks are added up before anything is decompressed.

    Raises:
        DecodeError: ``data`` is truncated, is not such a stream, or is longer than ``limit`` bytes
            when decompressed.
    """
    cursor = Cursor(data, label)
    total = 0
    while cursor.remaining:
        header = cursor.raw(4, "snappy chunk")
        body = cursor.frame(int.from_bytes(header[1:], "little"), "snappy chunk")
        if header[0] == _COMPRESSED:
            body.skip(_CHECKSUM_BYTES, "snappy checksum")
            # Snappy refuses a chunk that does not have its declared size.
            total += body.varint("decompressed size", 35)
        elif header[0] == _UNCOMPRESSED:
            total += max(0, body.remaining - _CHECKSUM_BYTES)
    if total > limit:
        raise DecodeError(
            ErrorKind.TOO_LARGE,
            f"it decompresses to {total} bytes; the limit is {limit} bytes",
            file=label,
        )
    if not data:
        return b""
    import cramjam  # imported late, as in ``next_chunk``

    try:
        return bytes(cramjam.snappy.decompress(data))
    except cramjam.DecompressionError as error:
        raise DecodeError(
            ErrorKind.CORRUPT, f"it does not decompress: {error}", file=label
        ) from error


def compress_chunks(data: bytes) -> bytes:
    """Compress ``data`` into chunks, without the stream identifier."""
    import cramjam  # imported late, as in ``next_chunk``

    return bytes(cramjam.snappy.compress(data)).removeprefix(_STREAM_IDENTIFIER)


def decompress_blocks(blocks: Iterable[bytes], label: str) -> Iterator[bytes]:
    """Decompress streams block by block; a block can end at any byte.

    Raises:
        DecodeError: the streams are truncated or not in this format.
    """
    rest = identifier = b""
    for block in blocks:
        data = rest + block
        end = position = 0
        while len(data) - position >= 4:
            position += 4 + int.from_bytes(data[position + 1 : position + 4], "little")
            if position > len(data):
                break
            end = position
        rest = data[end:]
        if end:
            yield decompress_stream(identifier + data[:end], label, end * _MAX_RATIO)
            identifier = _STREAM_IDENTIFIER
    if rest:
        Cursor(rest, label).raw(len(rest) + 1, "snappy chunk")
