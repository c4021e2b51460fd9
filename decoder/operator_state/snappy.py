"""Chunks of a Snappy framed stream, from any chunk's start on.

Flink flushes the compressor before every element of list state, so that an element begins at a
chunk's start, and stores that raw position. A chunk is ``u8 type, u24 length`` (little-endian) and
its body: 00 compressed and 01 uncompressed, both with a masked CRC-32C first; FF the stream
identifier; 80 to FE padding and skippable. A chunk holds at most 65,536 bytes of data.

Source: SnappyStreamCompressionDecorator @ Flink 2.2.0, snappy's framing_format.txt.
"""

from __future__ import annotations

from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind

_STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED, _UNCOMPRESSED, _FIRST_SKIPPABLE = 0x00, 0x01, 0x80


def next_chunk(cursor: Cursor) -> bytes:
    """Decompress the chunk that begins here and step over it; at most 64 KiB, b"" for padding.

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
    import cramjam  # not everywhere: executors of Spark need it for compressed state alone

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
