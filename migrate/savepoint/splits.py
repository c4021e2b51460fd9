"""Splits as readers hold them, changed and made: of a KafkaSource, a DynamicKafkaSource, and of
either inside of a HybridSource; and the elements of a FlinkKafkaConsumer.

All kinds of splits end with the starting and the stopping offset of a KafkaPartitionSplit, whatever
they are wrapped in. The layouts are those of ``decoder.kafka``.

Source: KafkaPartitionSplitSerializer, DynamicKafkaSourceSplitSerializer @ connector 5.0.0-2.2;
HybridSourceSplitSerializer @ Flink 2.2.0; KafkaTopicPartition @ connector 3.4.0-1.20; Output @ kryo
2.24.0.
"""

from __future__ import annotations

from decoder.kafka.split import NOT_SET, SPLIT_VERSION
from migrate.savepoint.data_output import blob, i32, i64, u8, utf

_OFFSET_BYTES = 8
# Kryo's own form of ASCII has no length; a string of another length is written with one.
_SHORTEST_ASCII, _LONGEST_ASCII = 2, 63
_NEW_OBJECT = 1


def java_hash(text: str) -> int:
    """``String.hashCode``, as an unsigned number of 32 bits; of a topic's name, which is ASCII."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value


def owner(topic: str, partition: int, readers: int) -> int:
    """The subtask to which Flink gives a partition.

    Source: KafkaSourceEnumerator.getSplitOwner @ connector 5.0.0-2.2, which is that of
    KafkaTopicPartitionAssigner.assign @ 3.4.0-1.20.
    """
    first = ((java_hash(topic) * 31) & 0x7FFFFFFF) % readers
    return (first + partition) % readers


def split(topic: str, partition: int, next_offset: int) -> bytes:
    """A KafkaPartitionSplit of version 0 without an end."""
    return utf(topic) + i32(partition) + i64(next_offset) + i64(NOT_SET)


def reader_element(
    topic: str,
    partition: int,
    next_offset: int,
    *,
    cluster: str | None = None,
    cluster_version: int = 1,
    source_index: int | None = None,
) -> bytes:
    """An element of SourceReaderState: ``i32 version``, and the split with its length.

    Args:
        cluster: of a DynamicKafkaSource's split, its cluster.
        cluster_version: ... and the version of such splits, 1 or 2.
        source_index: of a HybridSource's split, the number of the source that it is of.
    """
    version, data = SPLIT_VERSION, split(topic, partition, next_offset)
    name = f"{topic}-{partition}"
    if cluster is not None:
        retained = u8(0) if cluster_version >= 2 else b""
        version, data = cluster_version, utf(cluster) + retained + i32(SPLIT_VERSION) + data
        name = f"{cluster}-{name}"
    if source_index is not None:
        version, data = 0, i32(source_index) + utf(name) + i32(version) + blob(data)
    return i32(version) + blob(data)


def moved(element: bytes, next_offset: int) -> bytes:
    """An element of SourceReaderState with another starting offset."""
    return element[: -2 * _OFFSET_BYTES] + i64(next_offset) + element[-_OFFSET_BYTES:]


def moved_legacy(element: bytes, next_offset: int) -> bytes:
    """An element of a FlinkKafkaConsumer, which holds the offset of the last record processed."""
    return element[:-_OFFSET_BYTES] + i64(next_offset - 1)


def legacy_element(like: bytes, topic: str, partition: int, next_offset: int) -> bytes:
    """An element of a FlinkKafkaConsumer; of ``like`` it has the class id, which the job chose."""
    end = next(index for index, byte in enumerate(like) if byte < 0x80) + 1
    cached_hash = (31 * java_hash(topic) + partition) & 0xFFFFFFFF
    return (
        like[:end]
        + u8(_NEW_OBJECT)
        + _signed_varint(cached_hash - (1 << 32) if cached_hash >> 31 else cached_hash)
        + _signed_varint(partition)
        + u8(_NEW_OBJECT)
        + _kryo_ascii(topic)
        + i64(next_offset - 1)
    )


def _signed_varint(value: int) -> bytes:
    return _varint(((value << 1) ^ (value >> 31)) & 0xFFFFFFFF)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _kryo_ascii(text: str) -> bytes:
    data = text.encode("ascii")
    if _SHORTEST_ASCII <= len(data) <= _LONGEST_ASCII:
        return data[:-1] + u8(data[-1] | 0x80)
    length = len(data) + 1  # six bits in the first byte, which is marked, and the rest as a varint
    if length < 0x40:
        return u8(0x80 | length) + data
    return u8(0xC0 | length & 0x3F) + _varint(length >> 6) + data
