"""A fast way to step over incremental keyed state in the layout that Flink usually writes.

A job with a lot of state in RocksDB may have a million file handles, but only the sum of their
sizes is needed. Consecutive handles often have local paths of equal length and URIs of equal
length. Such a run is checked column by column, and its sizes are added up in C.

The strict functions in ``handles`` read handles with any other layout. Their errors contain the
field and its position.

Source: MetadataV2V3SerializerBase.serializeHandleAndLocalPathList @ Flink 2.2.0.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from struct import Struct

_U16 = Struct(">H")
_I32 = Struct(">i")
_I64 = Struct(">q")
_FILE = Struct(">BqH")  # type, size, length of the URI
# The types of incremental handles.
_VERSION_1, _VERSION_2 = bytes((5,)), bytes((11,))

# The maximum number of handles to check as one run. If the check fails, the handles are reread one
# by one.
_MAX_RUN = 128
_MAX_RUN_BYTES = 64 * 1024
_MIN_RUN = 4


class _NeedsStrictReader(Exception):
    """The strict functions in ``handles`` must read the handle."""


def skip_incremental_fast(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Step over an incremental handle.

    ``start`` is the position of the type byte. ``handles.skip_incremental`` describes the rest.

    Returns:
        The handle's end and the size of its state in bytes, or None if ``handles`` must read it.
    """
    kind = data[start : start + 1]
    if kind not in (_VERSION_1, _VERSION_2):
        return None
    version2 = kind == _VERSION_2
    position = start + 1 + 8  # type, checkpoint ID
    try:
        # backend ID, key groups, version 2: checkpointed size
        position += 2 + _U16.unpack_from(data, position)[0] + (16 if version2 else 8)
        position, total = _skip_stream(data, position)
        for _ in range(2):  # shared files, and private files
            count: int = _I32.unpack_from(data, position)[0]
            position, size = _skip_files(data, position + 4, count)
            total += size
        if version2:
            position += 2 + _U16.unpack_from(data, position)[0]  # handle ID
    except (_NeedsStrictReader, struct.error, IndexError):
        return None
    # A slice or a step past ``end`` raises no error, so check the end here.
    return (position, total) if position <= end else None


def _skip_files(data: bytes, position: int, count: int) -> tuple[int, int]:
    """Step over ``count`` x {``UTF localPath``, stream handle}; return their end and total size."""
    if count < 0:
        raise _NeedsStrictReader
    total = 0
    while count:
        run = min(count, _MAX_RUN)
        skipped = _skip_run(data, position, run) if run >= _MIN_RUN else None
        position, size = skipped or _skip_one_by_one(data, position, run)
        total += size
        count -= run
    return position, total


def _skip_one_by_one(data: bytes, position: int, count: int) -> tuple[int, int]:
    total = 0
    for _ in range(count):
        position, size = _skip_stream(data, position + 2 + _U16.unpack_from(data, position)[0])
        total += size
    return position, total


def _skip_stream(data: bytes, start: int) -> tuple[int, int]:
    """Step over a FILE, RELATIVE, or BYTE_STREAM handle; return its end and the state's size."""
    size: int
    kind, size, length = _FILE.unpack_from(data, start)
    if kind == 2:  # FILE: size, URI
        name = start + _FILE.size
        end = after = name + length
    else:
        name = start + 3
        end = name + _U16.unpack_from(data, start + 1)[0]
        if kind == 6:  # RELATIVE: path, size
            size = _I64.unpack_from(data, end)[0]
            after = end + 8
        elif kind == 1:  # BYTE_STREAM: name, i32 n, n bytes
            size = _I32.unpack_from(data, end)[0]
            after = end + 4 + size
        else:
            raise _NeedsStrictReader
    if size < 0 or not data[name:end].isascii():
        raise _NeedsStrictReader
    return after, size


def _skip_run(data: bytes, start: int, count: int) -> tuple[int, int] | None:
    """Step over a run of ``count`` files; return None if they must be read one by one."""
    type_offset = 2 + _U16.unpack_from(data, start)[0]
    uri_bytes = _U16.unpack_from(data, start + type_offset + 9)[0]
    stride = type_offset + _FILE.size + uri_bytes
    size = count * stride
    if size > _MAX_RUN_BYTES:
        return None
    run = data[start : start + size]
    if len(run) != size:
        return None
    layout, columns = _run_layout(type_offset, uri_bytes, count)
    for offset, column in columns:
        if run[offset::stride] != column:
            return None
    sizes_and_uris = layout.unpack(run)
    if not b"".join(sizes_and_uris[1::2]).isascii():
        return None
    return start + size, sum(sizes_and_uris[::2])


@lru_cache(256)
def _run_layout(
    type_offset: int, uri_bytes: int, count: int
) -> tuple[Struct, list[tuple[int, bytes]]]:
    """Return (a struct that unpacks (size, URI) for each handle of a run, the constant columns).

    A column is (offset in an entry, the bytes at this offset in all entries); an entry is a local
    path and its handle. The constant columns are: length of the local path; type; the highest byte
    of the size (0 for a non-negative size); length of the URI.
    """
    constants = _U16.pack(type_offset - 2) + b"\2\0" + _U16.pack(uri_bytes)
    offsets = (0, 1, type_offset, type_offset + 1, type_offset + 9, type_offset + 10)
    columns = [
        (offset, bytes((byte,)) * count) for offset, byte in zip(offsets, constants, strict=True)
    ]
    return Struct(">" + f"{type_offset + 1}xq2x{uri_bytes}s" * count), columns
