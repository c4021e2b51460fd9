"""The metadata of committed offsets, which belongs to the group's client."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping

from migrate.model.cluster_snapshot import Committed
from migrate.model.positions import TopicPartition

# Kafka Streams encodes a magic byte and the partition time (a long) in Base64; from magic byte 2
# on, the processor metadata follows (StreamTask @ kafka-streams 2.8.2, TopicPartitionMetadata @
# kafka-streams 4.1.1).
_STREAMS_MAGIC_BYTES = (1, 2)
_STREAMS_BYTES = 9

# The maximum length of the metadata in UTF-8 bytes. The length is an int16 in the Kafka protocol.
# Brokers may allow less: offset.metadata.max.bytes, by default 4,096.
LONGEST_METADATA = 32_767


def is_of_kafka_streams(metadata: str) -> bool:
    """Return whether Kafka Streams (2.4 or newer) wrote this metadata."""
    try:
        decoded = base64.b64decode(metadata, validate=True)
    except (binascii.Error, ValueError):
        return False
    if len(decoded) < _STREAMS_BYTES or decoded[0] not in _STREAMS_MAGIC_BYTES:
        return False
    return decoded[0] != 1 or len(decoded) == _STREAMS_BYTES


def holds_offset(held: Committed | None, wanted: Committed) -> bool:
    """Return whether the group already has the wanted offset, so that no commit is needed.

    Even if the offset is the same, metadata from another client may change its meaning, so such
    metadata must be replaced. A different leader epoch must also be replaced, because a Java
    consumer waits forever if the epoch belongs to a recreated topic.
    """
    if held is None or held.next_offset != wanted.next_offset:
        return False
    if held.leader_epoch not in (None, wanted.leader_epoch):
        return False
    return held.metadata == wanted.metadata or not _may_mean_more(held.metadata)


def _may_mean_more(metadata: str) -> bool:
    return bool(metadata) and not is_of_kafka_streams(metadata)


def with_client_metadata(
    committed: Mapping[TopicPartition, Committed],
) -> list[TopicPartition]:
    """Return the sorted list of partitions whose metadata may contain progress beyond the offset.

    The metadata of Parallel Consumer encodes which records beyond the offset were already
    processed. The timestamps in the metadata of Kafka Streams do not contain such information.
    """
    return sorted(
        partition for partition, offset in committed.items() if _may_mean_more(offset.metadata)
    )
