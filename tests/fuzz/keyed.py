"""Fuzz the parsers of keyed state, and create their seeds.

The parsers read handles, heads of streams, streams, and values. The fuzzed values are binary rows,
Avro values, and Kryo objects, because their bytes determine most of the control flow. The docstring
of each function describes the layout of its input.
"""

from __future__ import annotations

import struct
from pathlib import Path

from decoder import DecodeError, ErrorKind
from decoder.avro.schema import avro_schema
from decoder.checkpoint import read_metadata
from decoder.cursor import Cursor
from decoder.keyed_state import Entry, KeyedState, Part, parts
from decoder.keyed_state.kryo import kryo_type
from decoder.keyed_state.parts import KeyGroupsSource
from decoder.keyed_state.stream_head import read_head
from decoder.keyed_state.streams import KeyGroupsStream, Stream
from decoder.keyed_state.types import (
    Avro,
    Sql,
    SqlArray,
    SqlDecimal,
    SqlKind,
    SqlMap,
    SqlRow,
    SqlScalar,
    SqlTimestamp,
)
from decoder.keyed_state.values import reader
from decoder.metadata.keyed import KeyGroupsState, read_keyed_handle
from decoder.metadata.model import InlineState
from decoder.state_files import StateFiles
from tests.support.compare_readers import compare_readers
from tests.support.memory_files import MemoryFiles

_MAX_PARALLELISMS = (128, 16, 8, 4, 64, 300)
_TORN = (IndexError, struct.error)

_SCALARS = tuple((kind.name, SqlScalar(kind)) for kind in SqlKind)
_ROW = SqlRow(
    (
        *_SCALARS,
        ("short_decimal", SqlDecimal(10, 2)),
        ("decimal", SqlDecimal(38, 10)),
        ("millis", SqlTimestamp(3, False)),
        ("nanos", SqlTimestamp(9, True)),
        ("array", SqlArray(SqlScalar(SqlKind.STRING))),
        ("map", SqlMap(SqlScalar(SqlKind.INT), SqlRow(_SCALARS[:3]))),
        ("row", SqlRow(_SCALARS)),
    )
)
_AVRO_SCHEMA = """{"type": "record", "name": "Tree", "fields": [
  {"name": "name", "type": ["null", "string"]},
  {"name": "left", "type": ["null", "Tree"]},
  {"name": "nothing", "type": {"type": "array", "items": "null"}},
  {"name": "counts", "type": {"type": "map", "values": "long"}},
  {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
  {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
  {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}}]}"""
_KRYO = {
    version: kryo_type("java.lang.Object", [("java.lang.Object", True)], (), version)
    for version in (2, 5)
}


def fuzz_head(data: bytes) -> object:
    """Read ``u8 version`` (odd for Kryo 2.24, even for 5.6), and then the head."""
    return read_head(Cursor(data, "head", min(1, len(data))), _kryo(data))


def fuzz_handle(data: bytes) -> object:
    return read_keyed_handle(Cursor(data, "_metadata"), "handle")


def _source(data: bytes) -> KeyGroupsSource | None:
    """Return the source of a stream, or None if the input is too short.

    The input consists of:

    - ``u8``: the lowest bit is 1 for a savepoint. The other bits select the maximum parallelism.
    - ``u8``: the lowest bit is 1 for Kryo 2.24, and 0 for 5.6. The other bits are the key group.
    - ``u16``: the offset at which the key group starts.
    - the stream
    """
    if len(data) < 4:
        return None
    (start,) = struct.unpack_from(">H", data, 2)
    handle = KeyGroupsState(data[0] & 1 == 1, data[1] >> 1, (start,), InlineState("", data[4:]))
    files = StateFiles("/chk-1", MemoryFiles({}))
    stream = KeyGroupsStream(handle, Stream(handle.stream, files, "state"))
    most = _MAX_PARALLELISMS[(data[0] >> 1) % len(_MAX_PARALLELISMS)]
    return KeyGroupsSource(stream, stream.head(_kryo(data[1:])), most, "state")


def _entries(source: KeyGroupsSource) -> list[list[Entry]]:
    (key_group,) = source.key_groups
    return [
        [entry for batch in source.batches(number, key_group) for entry in batch]
        for number in range(len(source.head.states))
    ]


def fuzz_stream(data: bytes) -> object:
    """Read all entries of the stream; ``_source`` describes the input."""
    source = _source(data)
    if source is None:
        return None
    source.blocked_reasons()
    return _entries(source)


def fuzz_parts(data: bytes) -> object:
    """Check that a key group has the same entries if it is read in parts; input: ``_source``."""
    source = _source(data)
    if source is None or source.head.compressed:
        return None
    whole = _entries(source)
    sizes = parts._BLOCK_BYTES, parts._HEAP_BLOCK_BYTES, parts._MAX_WHOLE_BYTES
    try:
        parts._BLOCK_BYTES, parts._HEAP_BLOCK_BYTES, parts._MAX_WHOLE_BYTES = 16, 16, 0
        assert repr(_entries(source)) == repr(whole)
    finally:
        parts._BLOCK_BYTES, parts._HEAP_BLOCK_BYTES, parts._MAX_WHOLE_BYTES = sizes
    return whole


def fuzz_kernel(data: bytes) -> object:
    """Check that the kernel and the plain reader read the same entries; input: ``_source``."""
    source = _source(data)
    if source is None:
        return None
    blocked = source.blocked_reasons()
    return [
        compare_readers(
            KeyedState(
                *(info.name, info.kind, info.key, info.namespace, info.map_key, info.value),
                *(info.ttl, None, "0" * 32, None, None, source.max_parallelism),
                (Part(0, source, number, info),),
            )
        )
        for number, info in enumerate(source.head.states)
        if info.reason is None and number not in blocked
    ]


def fuzz_row(data: bytes) -> object:
    """Read a binary row with a field for every SQL type."""
    return _value(reader(Sql(_ROW)), struct.pack(">i", len(data)) + data)


def fuzz_avro(data: bytes) -> object:
    return _value(reader(Avro("Tree", avro_schema(_AVRO_SCHEMA, Cursor(b"", "")))), data)


def fuzz_avro_schema(data: bytes) -> object:
    """Parse an Avro schema, but no value."""
    schema = avro_schema(data.decode("utf-8", "replace"), Cursor(b"", ""))
    return reader(Avro("", schema))


def fuzz_kryo(data: bytes) -> object:
    """Read ``u8 version`` (odd for Kryo 2.24, even for 5.6), and then an object."""
    return _value(reader(_KRYO[_kryo(data)]), data[1:])


def _kryo(data: bytes) -> int:
    return 2 if data and data[0] & 1 else 5


def _value(read: object, data: bytes) -> object:
    assert callable(read)
    try:
        return read(data, 0)
    except _TORN as error:  # as the reader of the enclosing frame does
        raise DecodeError(ErrorKind.TRUNCATED, "torn") from error


def keyed_seeds(golden: Path) -> dict[str, list[bytes]]:
    """Return the seeds of each target, by the target's name.

    The seeds are handles, heads, and key groups from the golden snapshots, a binary row of nulls,
    an Avro tree and its schema, and Kryo objects.
    """
    handles: list[bytes] = []
    heads: list[bytes] = []
    streams: list[bytes] = []
    for path in sorted(golden.glob("state/*/*/*/**/_metadata")):
        file = read_metadata(path)
        kryo = bytes((file.metadata.version <= 4,))
        for operator in file.metadata.operators:
            for subtask in operator.subtasks:
                if subtask.managed_keyed_state_at is None:
                    continue
                cursor = Cursor(file.data, str(path), subtask.managed_keyed_state_at)
                handle = read_keyed_handle(cursor, "handle")
                handles.append(file.data[subtask.managed_keyed_state_at : cursor.byte_offset])
                if isinstance(handle, KeyGroupsState) and isinstance(handle.stream, InlineState):
                    head, group = _parts(handle, handle.stream.data)
                    heads.append(kryo + head)
                    if operator.max_parallelism in _MAX_PARALLELISMS:
                        place = _MAX_PARALLELISMS.index(operator.max_parallelism)
                        streams.append(bytes((group[0] | place << 1,)) + group[1:])
    empty_row = bytearray(8 * (len(_ROW.fields) + 1))
    empty_row[: (len(_ROW.fields) + 71) // 64 * 8] = b"\xff" * ((len(_ROW.fields) + 71) // 64 * 8)
    tree = struct.pack(">ii1si", 1, 1, b"a", 0) + b"\0\0"
    tree += struct.pack(">i1sqi3s", 1, b"\5", 7, 1, b"abc")
    return {
        "keyed-handle": handles,
        "keyed-head": heads,
        "keyed-stream": streams,
        "keyed-parts": streams,
        "keyed-kernel": streams,
        "binary-row": [bytes(empty_row) + bytes(8)],
        "avro": [tree],
        "avro-schema": [_AVRO_SCHEMA.encode(), b'{"type": "map", "values": ["int", "bytes"]}'],
        "kryo": [
            b"\1\2\x54",  # Kryo 2.24: an Integer
            b"\1\1\0java.util.ArrayLis\xf4\1\2\2\2\3\1\x82a",  # Kryo 2.24: a list of 1 and "a"
            b"\0\1\0java.util.ArrayLis\xf4\1\x82\2\0\4",  # Kryo 5.6: a list of one Integer
            b"\0\1\0java.util.HashMa\xf0\1\2\3\1\x82a\2\4",
        ],
    }


def _parts(handle: KeyGroupsState, data: bytes) -> tuple[bytes, bytes]:
    """Return the head, and the input for ``_source`` with the longest key group."""
    offsets = [offset for offset in handle.byte_offsets if offset]
    if not offsets:
        return data, b"\1\0\0\0" + data
    ends = [*offsets[1:], len(data)]
    start, end = max(zip(offsets, ends, strict=True), key=lambda part: part[1] - part[0])
    key_group = handle.first + handle.byte_offsets.index(start)
    head = data[: offsets[0]]
    flags = bytes((handle.savepoint, key_group << 1 & 0xFE | 1))
    return head, flags + struct.pack(">H", len(head)) + head + data[start:end]
