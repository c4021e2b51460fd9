"""Encode the state of a KafkaSource: splits in its readers, assignments in its enumerator.

The layouts follow the connector's `KafkaPartitionSplitSerializer` and
`KafkaSourceEnumStateSerializer` (1.15.4, 3.4.0-1.20, 5.0.0-2.2), and Flink's `SourceCoordinator`,
`SimpleVersionedSerialization` and `SerdeUtils`. DynamicKafkaSource has the layouts of
`DynamicKafkaSourceSplitSerializer` and `DynamicKafkaSourceEnumStateSerializer`
(connectors 3.4.0-1.20 and 5.0.0-2.2). Its split version 2 and enumerator version 3 are unreleased,
and follow the connector's main branch of June 2026.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.support.encoder.data_output import DataOutput

# The name of the operator state in which every FLIP-27 source stores its splits (`SourceOperator`).
READER_STATE = "SourceReaderState"

# Markers instead of a starting offset. LATEST and COMMITTED may also replace a stopping offset.
LATEST = -1
EARLIEST = -2
COMMITTED = -3
MIGRATED = -(2**63)
NO_STOPPING_OFFSET = -(2**63)

# Codes of `AssignmentStatus`.
ASSIGNED = 0
UNASSIGNED = 1

_SPLIT_SERIALIZER_VERSION = 0


@dataclass(frozen=True, slots=True)
class KafkaSplit:
    """A topic-partition with its starting and its stopping offset."""

    topic: str
    partition: int
    starting_offset: int
    stopping_offset: int = NO_STOPPING_OFFSET


@dataclass(frozen=True, slots=True)
class EnumeratorSplit:
    """A split in the enumerator's state; only version 0 stores the subtask."""

    split: KafkaSplit
    status: int = ASSIGNED
    subtask: int = 0


@dataclass(frozen=True, slots=True)
class StreamCluster:
    """A cluster of a DynamicKafkaSource's stream: topics, servers, serialized initializers."""

    topics: Sequence[str]
    bootstrap_servers: str
    starting_initializer: bytes | None = None
    stopping_initializer: bytes | None = None


def encode_split(topic: str, partition: int, start: int, stop: int = NO_STOPPING_OFFSET) -> bytes:
    """Encode a split like `KafkaPartitionSplitSerializer` in version 0, its only version."""
    out = DataOutput()
    out.utf(topic)
    out.i32(partition)
    out.i64(start)
    out.i64(stop)
    return out.to_bytes()


def encode_reader_element(split: bytes, version: int = _SPLIT_SERIALIZER_VERSION) -> bytes:
    """Encode an element of SourceReaderState with a split of any kind of source and its version."""
    out = DataOutput()
    out.i32(version)
    out.sized(split)
    return out.to_bytes()


def encode_enumerator(
    version: int, splits: Sequence[EnumeratorSplit], initial_discovery_finished: bool = True
) -> bytes:
    """Encode an enumerator as `KafkaSourceEnumStateSerializer` versions 0 to 3 do.

    A status and `initial_discovery_finished` exist from version 2 on. Only versions 0 and 3 have
    offsets.
    """
    out = DataOutput()
    match version:
        case 0:
            _write_split_assignments(out, splits)
        case 1:
            out.counted(splits, lambda entry: _write_topic_partition(out, entry.split))
        case 2:
            out.i32(len(splits))
            for entry in splits:
                _write_topic_partition(out, entry.split)
                out.i32(entry.status)
            out.boolean(initial_discovery_finished)
        case 3:
            out.i32(len(splits))
            out.i32(_SPLIT_SERIALIZER_VERSION)
            for entry in splits:
                out.sized(_encode(entry.split))
                out.i32(entry.status)
            out.boolean(initial_discovery_finished)
        case _:
            raise ValueError(f"no enumerator state of version {version}")
    return out.to_bytes()


def encode_dynamic_split(
    cluster: str, split: KafkaSplit, version: int = 1, retained_until: int | None = None
) -> bytes:
    """Encode a split as `DynamicKafkaSourceSplitSerializer` versions 1 and 2 do."""
    out = DataOutput()
    out.utf(cluster)
    if version == 2:
        out.boolean(retained_until is not None)
        if retained_until is not None:
            out.i64(retained_until)
    elif retained_until is not None:
        raise ValueError(f"splits of version {version} are not retained")
    out.i32(_SPLIT_SERIALIZER_VERSION)
    out.raw(_encode(split))
    return out.to_bytes()


def encode_dynamic_reader_element(
    cluster: str, split: KafkaSplit, version: int = 1, retained_until: int | None = None
) -> bytes:
    """Encode an element of a DynamicKafkaSource's SourceReaderState."""
    encoded = encode_dynamic_split(cluster, split, version, retained_until)
    return encode_reader_element(encoded, version)


def encode_dynamic_enumerator(
    version: int,
    streams: Mapping[str, Mapping[str, StreamCluster]],
    cluster_version: int,
    clusters: Mapping[str, bytes],
    retained: Mapping[str, tuple[int, bytes]] | None = None,
) -> bytes:
    """Encode an enumerator as `DynamicKafkaSourceEnumStateSerializer` versions 1 to 3 do.

    Version 1 has no initializers.

    Args:
        version: the version of this enumerator.
        streams: by stream id, the clusters by cluster id.
        cluster_version: the version of the enumerators in `clusters`.
        clusters: the results of `encode_enumerator`, by cluster id.
        retained: for version 3, an end time and a result of `encode_enumerator`, by cluster id.
    """
    if retained is not None and version < 3:
        raise ValueError(f"version {version} retains no clusters")
    out = DataOutput()
    out.i32(len(streams))
    for stream_id, stream in streams.items():
        out.utf(stream_id)
        out.i32(len(stream))
        for cluster, metadata in stream.items():
            out.utf(cluster)
            out.counted(metadata.topics, out.utf)
            out.utf(metadata.bootstrap_servers)
            if version >= 2:
                _write_initializer(out, metadata.starting_initializer)
                _write_initializer(out, metadata.stopping_initializer)
    out.i32(cluster_version)
    out.i32(len(clusters))
    for cluster, enumerator in clusters.items():
        out.utf(cluster)
        out.sized(enumerator)
    if version >= 3:
        out.i32(len(retained or {}))
        for cluster, (until, enumerator) in (retained or {}).items():
            out.utf(cluster)
            out.i64(until)
            out.sized(enumerator)
    return out.to_bytes()


def _write_initializer(out: DataOutput, initializer: bytes | None) -> None:
    out.boolean(initializer is not None)
    if initializer is not None:
        out.sized(initializer)


def encode_coordinator(
    version: int, enumerator_version: int, enumerator: bytes, assignment_tracker: bytes = b""
) -> bytes:
    """Encode the coordinator state of a source operator, as `SourceCoordinator` writes it.

    Only version 0 ends with a `SplitAssignmentTracker`, which Flink no longer reads.
    """
    if assignment_tracker and version != 0:
        raise ValueError(f"coordinator state of version {version} holds no assignment tracker")
    out = DataOutput()
    out.i32(version)
    out.i32(enumerator_version)
    out.sized(enumerator)
    out.raw(assignment_tracker)
    return out.to_bytes()


def _write_split_assignments(out: DataOutput, splits: Sequence[EnumeratorSplit]) -> None:
    by_subtask: dict[int, list[KafkaSplit]] = defaultdict(list)
    for entry in splits:
        by_subtask[entry.subtask].append(entry.split)
    out.i32(len(by_subtask))
    out.i32(_SPLIT_SERIALIZER_VERSION)
    for subtask, assigned in by_subtask.items():
        out.i32(subtask)
        out.counted(assigned, lambda split: out.sized(_encode(split)))


def _write_topic_partition(out: DataOutput, split: KafkaSplit) -> None:
    out.utf(split.topic)
    out.i32(split.partition)


def _encode(split: KafkaSplit) -> bytes:
    return encode_split(split.topic, split.partition, split.starting_offset, split.stopping_offset)
