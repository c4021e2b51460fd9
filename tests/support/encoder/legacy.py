"""Encode the state of a FlinkKafkaConsumer: partitions, encoded by Kryo, each with an offset.

The layouts follow `FlinkKafkaConsumerBase` and `KafkaTopicPartition` (connector 1.15.4),
`KryoSerializer` (flink-core 1.15.4) and Kryo's `Output` (2.24.0).
"""

from __future__ import annotations

from tests.support.encoder.data_output import DataOutput

LEGACY_STATE = "topic-partition-offset-states"

# `KafkaTopicPartitionStateSentinel`.
LEGACY_NOT_SET = -915623761776
LEGACY_EARLIEST = -915623761775
LEGACY_LATEST = -915623761774
LEGACY_GROUP = -915623761773

_FIRST_OCCURRENCE = 1
# ASCII strings of these lengths have a shorter form in Kryo.
_SHORT_ASCII = range(2, 64)


def encode_legacy_element(topic: str, partition: int, offset: int, class_id: int = 0x57) -> bytes:
    """Encode an element of the state; Kryo's `class_id` depends on the job's types."""
    out = DataOutput()
    out.raw(_varint(class_id) + _varint(_FIRST_OCCURRENCE))
    out.raw(_signed_varint(_hash_code(topic) * 31 + partition))
    out.raw(_signed_varint(partition))
    out.raw(_varint(_FIRST_OCCURRENCE) + _string(topic))
    out.i64(offset)
    return out.to_bytes()


def _hash_code(text: str) -> int:
    """Return Java's `String.hashCode` before it is reduced to 32 bits."""
    length = len(text)
    return sum(ord(char) * 31 ** (length - 1 - index) for index, char in enumerate(text))


def _varint(value: int) -> bytes:
    groups = [value & 0x7F]
    while value := value >> 7:
        groups.append(value & 0x7F)
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _signed_varint(value: int) -> bytes:
    """Encode the low 32 bits of a value as a zig-zag varint."""
    value &= 0xFFFFFFFF
    negative = value >> 31
    return _varint((value << 1 & 0xFFFFFFFF) ^ (0xFFFFFFFF if negative else 0))


def _string(text: str) -> bytes:
    encoded = text.encode("ascii")
    if len(text) in _SHORT_ASCII:
        return encoded[:-1] + bytes([encoded[-1] | 0x80])
    count = len(text) + 1
    first = count & 0x3F | 0x80
    rest = count >> 6
    return (bytes([first | 0x40]) + _varint(rest) if rest else bytes([first])) + encoded
