"""Encode the state of a Kafka source's readers and enumerator.

The sources are KafkaSource and DynamicKafkaSource (including inside a HybridSource), and
FlinkKafkaConsumer. FlinkKafkaConsumer has no enumerator. ``decoder.kafka`` describes the layouts.

Every kind of split ends with the starting and the stopping offset of a KafkaPartitionSplit. If a
position changes, only the split in the reader changes. The enumerator's entry stays the same,
because it contains either no offset, or the starting offset at which the partition was discovered.

A partition that is added to a reader also needs an assigned entry in the enumerator. Otherwise,
Flink would discover the partition and assign it again, from its log start offset.

Source: KafkaPartitionSplitSerializer, DynamicKafkaSourceSplitSerializer @ connector 5.0.0-2.2;
HybridSourceSplitSerializer, SourceCoordinatorSerdeUtils @ Flink 2.2.0; KafkaTopicPartition @
connector 3.4.0-1.20; Output @ kryo 2.24.0; KafkaSourceEnumStateSerializer,
KafkaSourceEnumerator.getPartitionChange @ connector 1.15.4 to 5.0.0-2.2.
"""

from __future__ import annotations

from decoder.cursor import Cursor, RecordingCursor
from decoder.java import signed_32, string_hash
from decoder.kafka.dynamic import read_dynamic_enumerator
from decoder.kafka.enumerator import (
    ENUMERATOR_LAYOUTS,
    AssignmentStatus,
    EnumeratorLayout,
    read_entries,
)
from decoder.kafka.hybrid import read_hybrid_enumerator
from decoder.kafka.operator import Source
from decoder.kafka.source import DynamicKafkaSource, HybridSource
from decoder.kafka.split import NOT_SET, SPLIT_VERSION
from migrate.extensions.savepoints.catalog import ENUMERATOR_TOO_OLD, NO_ENUMERATOR_FOR_CLUSTER
from migrate.extensions.savepoints.layouts import blob, i32, i64, u8, utf
from migrate.extensions.savepoints.positions import OffsetChanges
from migrate.model.errors import Refused
from migrate.model.positions import ClusterPartition

_OFFSET_BYTES = 8
# Kryo writes no length for an ASCII string whose length is in this range.
_SHORTEST_ASCII, _LONGEST_ASCII = 2, 63
_NEW_OBJECT = 1


# -- readers ---------------------------------------------------------------------------------------


def owner(topic: str, partition: int, readers: int) -> int:
    """Return the subtask to which Flink assigns a partition.

    Source: KafkaSourceEnumerator.getSplitOwner @ connector 5.0.0-2.2. The result is the same as
    with KafkaTopicPartitionAssigner.assign @ 3.4.0-1.20.
    """
    first = ((string_hash(topic) * 31) & 0x7FFFFFFF) % readers
    return (first + partition) % readers


def split(topic: str, partition: int, next_offset: int) -> bytes:
    """Return a KafkaPartitionSplit of version 0 without a stopping offset."""
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
    """Return an element of SourceReaderState: ``i32 version, i32 length``, and the split.

    ``cluster`` and ``cluster_version`` (1 or 2) belong to a DynamicKafkaSource's split.
    ``source_index`` is the index of the source inside a HybridSource.
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


def move_split(element: bytes, next_offset: int) -> bytes:
    """Return an element of SourceReaderState with a different starting offset."""
    return element[: -2 * _OFFSET_BYTES] + i64(next_offset) + element[-_OFFSET_BYTES:]


def move_legacy(element: bytes, next_offset: int) -> bytes:
    """Return a FlinkKafkaConsumer's element with a new last read offset (``next_offset - 1``)."""
    return element[:-_OFFSET_BYTES] + i64(next_offset - 1)


def legacy_element(template: bytes, topic: str, partition: int, next_offset: int) -> bytes:
    """Return a new element of a FlinkKafkaConsumer; copy the class ID from the old ``template``."""
    end = next(index for index, byte in enumerate(template) if byte < 0x80) + 1
    cached_hash = (31 * string_hash(topic) + partition) & 0xFFFFFFFF
    return (
        template[:end]
        + u8(_NEW_OBJECT)
        + _signed_varint(signed_32(cached_hash))
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
    length = len(data) + 1  # the low 6 bits are in the first byte, the others in a varint
    if length < 0x40:
        return u8(0x80 | length) + data
    return u8(0xC0 | length & 0x3F) + _varint(length >> 6) + data


# -- the enumerator ------------------------------------------------------------------------------


def changed_coordinator(data: bytes, source: Source, changes: OffsetChanges) -> bytes:
    """Return a source's coordinator state after entries have been added and removed.

    ``changes`` contains the next offset of each added partition, and None for each removed
    partition.

    Raises:
        Refused: the enumerator's state has version 0, or there is no enumerator for the cluster
            of an added partition.
    """
    cursor = Cursor(data, "coordinator state")
    head = cursor.raw(4, "coordinator version")
    version = cursor.i32("enumerator version")
    body = cursor.blob("enumerator state")
    rest = cursor.raw(cursor.remaining, "split assignment")
    return head + i32(version) + blob(_changed(body, version, source, changes)) + rest


def _changed(body: bytes, version: int, source: Source, changes: OffsetChanges) -> bytes:
    match source:
        case HybridSource():
            inner = read_hybrid_enumerator(Cursor(body, "enumerator state"), version)
            wrapped = _changed(inner.wrapped, inner.version, source.current, changes)
            return i32(inner.source_index) + i32(inner.version) + blob(wrapped)
        case DynamicKafkaSource():
            return _changed_clusters(body, version, changes)
        case _:
            return _changed_entries(body, version, None, changes)


def _changed_clusters(body: bytes, version: int, changes: OffsetChanges) -> bytes:
    cursor = RecordingCursor(body, "enumerator state")
    state = read_dynamic_enumerator(cursor, version)
    clusters = {**state.retained, **state.clusters}
    missing = sorted(
        str(key.cluster)
        for key, next_offset in changes.items()
        if next_offset is not None and key.cluster not in clusters
    )
    if missing:
        raise Refused(NO_ENUMERATOR_FOR_CLUSTER(cluster=missing[0]))
    spans = {id(span.value): span for span in cursor.spans}
    out, end = b"", 0
    for span, name in sorted((spans[id(frame)], name) for name, frame in clusters.items()):
        frame = body[span.start + 4 : span.end]
        new = _changed_entries(frame, clusters[name].version, name, changes)
        out += body[end : span.start] + blob(new)
        end = span.end
    return out + body[end:]


def _changed_entries(
    body: bytes, version: int, cluster: str | None, changes: OffsetChanges
) -> bytes:
    own = {key: next_offset for key, next_offset in changes.items() if key.cluster == cluster}
    if not own:
        return body
    layout = ENUMERATOR_LAYOUTS[version]
    if layout.by_subtask:
        raise Refused(ENUMERATOR_TOO_OLD())
    cursor = Cursor(body, "enumerator state")
    count = cursor.i32("partitions")
    head = cursor.raw(4, "split version") if layout.has_splits else b""
    entries: list[bytes] = []
    for _ in range(count):
        start = cursor.byte_offset
        (entry,) = read_entries(cursor, version, 1)
        data = body[start : cursor.byte_offset]
        key = ClusterPartition(cluster, entry.topic, entry.partition)
        if key in own:
            if own.pop(key) is None:
                continue
            if layout.has_status:
                data = data[:-4] + _ASSIGNED
        entries.append(data)
    entries += [
        _entry(key, next_offset, layout)
        for key, next_offset in sorted(own.items())
        if next_offset is not None
    ]
    return i32(len(entries)) + head + b"".join(entries) + body[cursor.byte_offset :]


_ASSIGNED = i32(AssignmentStatus.ASSIGNED.value)


def _entry(key: ClusterPartition, next_offset: int, layout: EnumeratorLayout) -> bytes:
    if layout.has_splits:
        entry = blob(split(key.topic, key.partition, next_offset))
    else:
        entry = utf(key.topic) + i32(key.partition)
    return entry + (_ASSIGNED if layout.has_status else b"")
