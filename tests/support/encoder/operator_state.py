"""Encode the stream that a partitionable operator-state handle refers to.

The stream starts with a header. The header has its own version, and describes the states and their
serializers. The elements of the list states and the broadcast states follow. Elements are byte
arrays, as in every FLIP-27 source.

The layouts follow `OperatorBackendSerializationProxy`, `StateMetaInfoSnapshotReadersWriters`,
`LegacyStateMetaInfoReaders`, `PartitionableListState`, `HeapBroadcastState` and
`CompressibleFSDataOutputStream` (flink-runtime 1.15.4, 1.20.3, 2.2.0), and flink-core's
`TypeSerializerSnapshotSerializationUtil` and `TypeSerializerSerializationUtil` (1.15.4, 2.2.0).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import cramjam

from tests.support.encoder.data_output import DataOutput
from tests.support.encoder.metadata import DistributionMode, StateOffsets

PROXY_VERSIONS = (1, 2, 3, 4, 5, 6)

# Ordinals of `StateMetaInfoSnapshot.BackendStateType`.
_OPERATOR = 1
_BROADCAST = 2

_SERIALIZER = "org.apache.flink.api.common.typeutils.base.array.BytePrimitiveArraySerializer"
# Class and serialVersionUID of the serializer and its superclasses, for Java serialization.
_SERIALIZER_CLASSES = (
    (_SERIALIZER, 1),
    ("org.apache.flink.api.common.typeutils.base.TypeSerializerSingleton", 8766687317209282373),
    ("org.apache.flink.api.common.typeutils.TypeSerializer", 1),
)
_SERIALIZER_SNAPSHOT = f"{_SERIALIZER}$BytePrimitiveArraySerializerSnapshot"
_SERIALIZER_SNAPSHOT_VERSION = 3
_CONFIG_SNAPSHOT = "org.apache.flink.api.common.typeutils.ParameterlessTypeSerializerConfig"

# The framing format of Snappy, with the two settings of Flink's `SnappyStreamCompressionDecorator`.
_STREAM_IDENTIFIER = b"\xff\x06\x00\x00sNaPpY"
_COMPRESSED_CHUNK = 0
_UNCOMPRESSED_CHUNK = 1
_BLOCK_SIZE = 64 * 1024
_MIN_COMPRESSION_RATIO = 0.85


@dataclass(frozen=True, slots=True)
class ListState:
    """A list state and its elements.

    An element is a byte array. If `sized` is false, it is written without its length.
    """

    name: str
    mode: DistributionMode
    elements: tuple[bytes, ...]
    sized: bool = True


@dataclass(frozen=True, slots=True)
class BroadcastState:
    """A broadcast state and its entries, with byte arrays as keys and values."""

    name: str
    entries: tuple[tuple[bytes, bytes], ...]


def encode_operator_state_stream(
    proxy_version: int,
    compressed: bool,
    list_states: Sequence[ListState],
    broadcast_states: Sequence[BroadcastState] = (),
    *,
    header_per_state: bool = False,
) -> tuple[bytes, tuple[StateOffsets, ...]]:
    """Encode the stream; return it with the offsets of every state for the handle.

    Broadcast states exist since version 3, and compression since version 6. A compressed stream has
    one Snappy header, before the first state. With `header_per_state` it has one before each state,
    as in Flink 1.18.0 and 1.18.1 (DefaultOperatorStateBackendSnapshotStrategy @ 1.18.1, 1.18.2,
    1.19.3, 1.20.3, 2.0.0 to 2.3.0).
    """
    if proxy_version not in PROXY_VERSIONS:
        raise ValueError(f"no operator-state stream of version {proxy_version}")
    if compressed and proxy_version < 6:
        raise ValueError(f"version {proxy_version} is never compressed")
    if broadcast_states and proxy_version < 3:
        raise ValueError(f"version {proxy_version} has no broadcast states")

    out = DataOutput()
    out.i32(proxy_version)
    if proxy_version >= 6:
        out.boolean(compressed)
    out.i16(len(list_states))
    for state in list_states:
        _write_meta_info(out, proxy_version, state.name, state.mode, _OPERATOR)
    if proxy_version >= 3:
        out.i16(len(broadcast_states))
        for broadcast in broadcast_states:
            _write_meta_info(
                out, proxy_version, broadcast.name, DistributionMode.BROADCAST, _BROADCAST
            )
    if compressed and not header_per_state:
        out.raw(_STREAM_IDENTIFIER)
    head = _STREAM_IDENTIFIER if compressed and header_per_state else b""

    located = []
    for state in list_states:
        out.raw(head)
        offsets = []
        for element in state.elements:
            offsets.append(out.position)
            out.raw(_data(compressed, _byte_array(element) if state.sized else element))
        located.append(StateOffsets(state.name, state.mode, tuple(offsets)))
    for broadcast in broadcast_states:
        out.raw(head)
        located.append(StateOffsets(broadcast.name, DistributionMode.BROADCAST, (out.position,)))
        out.raw(_data(compressed, _entries(broadcast)))
    return out.to_bytes(), tuple(located)


def _entries(state: BroadcastState) -> bytes:
    out = DataOutput()
    out.i32(len(state.entries))
    for key, value in state.entries:
        out.raw(_byte_array(key) + _byte_array(value))
    return out.to_bytes()


def _byte_array(element: bytes) -> bytes:
    """Encode an element like `BytePrimitiveArraySerializer`."""
    out = DataOutput()
    out.sized(element)
    return out.to_bytes()


# ---- meta info: name, mode and serializers of a state ------------------------------------------


def _write_meta_info(
    out: DataOutput, proxy_version: int, name: str, mode: DistributionMode, kind: int
) -> None:
    serializer_keys = ["VALUE_SERIALIZER"]
    if kind == _BROADCAST:
        serializer_keys.insert(0, "KEY_SERIALIZER")
    out.utf(name)
    if proxy_version <= 3:
        out.i8(mode)
        if proxy_version == 1:
            out.raw(_java_serialized_serializer())
        else:
            _write_serializers_with_resilience(out, len(serializer_keys))
        return
    out.i32(kind)
    out.i32(1)
    out.utf("OPERATOR_STATE_DISTRIBUTION_MODE")
    out.utf(mode.name)
    out.i32(len(serializer_keys))
    for key in serializer_keys:
        out.utf(key)
        if proxy_version >= 5:
            _write_serializer_snapshot(out)
    if proxy_version == 4:
        _write_serializers_with_resilience(out, len(serializer_keys))


def _write_serializer_snapshot(out: DataOutput) -> None:
    """Write a serializer as Flink 1.7 and later do: the class of its snapshot, without content."""
    out.i32(2)
    out.utf(_SERIALIZER_SNAPSHOT)
    out.i32(_SERIALIZER_SNAPSHOT_VERSION)


def _write_serializers_with_resilience(out: DataOutput, count: int) -> None:
    """Write serializers as Flink 1.6 does: offsets, Java-serialized objects and snapshots."""
    buffer = DataOutput()
    out.i32(count)
    for _ in range(count):
        out.i32(buffer.position)
        buffer.i32(1)
        buffer.sized(_java_serialized_serializer())
        out.i32(buffer.position)
        buffer.i32(1)
        buffer.utf(_CONFIG_SNAPSHOT)
        buffer.i32(1)
        buffer.utf(_SERIALIZER)
    out.sized(buffer.to_bytes())


def _java_serialized_serializer() -> bytes:
    """Return the serializer, an object without fields, as `ObjectOutputStream` writes it."""
    out = DataOutput()
    out.raw(b"\xac\xed\x00\x05")
    out.raw(b"s")  # TC_OBJECT
    for name, serial_version_uid in _SERIALIZER_CLASSES:
        out.raw(b"r")  # TC_CLASSDESC
        out.utf(name)
        out.i64(serial_version_uid)
        out.i8(2)  # SC_SERIALIZABLE
        out.i16(0)
        out.raw(b"x")  # TC_ENDBLOCKDATA
    out.raw(b"p")  # TC_NULL: no further superclass
    return out.to_bytes()


# ---- Snappy framing ----------------------------------------------------------------------------


def _data(compressed: bool, element: bytes) -> bytes:
    """Encode an element or a broadcast state, with separate chunks if it is compressed."""
    if not compressed:
        return element
    blocks = (element[i : i + _BLOCK_SIZE] for i in range(0, len(element), _BLOCK_SIZE))
    return b"".join(map(_chunk, blocks))


def _chunk(block: bytes) -> bytes:
    packed = bytes(cramjam.snappy.compress_raw(block))
    worth_it = len(packed) <= _MIN_COMPRESSION_RATIO * len(block)
    kind, payload = (_COMPRESSED_CHUNK, packed) if worth_it else (_UNCOMPRESSED_CHUNK, block)
    header = struct.pack("<I", kind | (len(payload) + 4) << 8)
    return header + struct.pack("<I", _masked(_crc32c(block))) + payload


def _masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC32C_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _crc32c_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return tuple(table)


_CRC32C_TABLE = _crc32c_table()
