"""The state of a FlinkKafkaConsumer, the source before KafkaSource (until Flink 1.20).

Union list state ``topic-partition-offset-states``: each subtask lists the partitions it reads. An
element is a KafkaTopicPartition, written by Kryo, and ``i64`` offset; nothing tells its length.
KafkaTopicPartition: varint class id (it differs with the types a job registers), reference marker,
signed varints ``cachedHash`` and ``partition``, reference marker, string ``topic``. A marker is 1
for an object that was not written before, as both always are here. The hash is that of the topic
and the partition, so that what is not one is told from what is.

The offset is that of the last record processed, or -1 where there is none yet and the partition is
read from 0, or one of four markers.

Source: FlinkKafkaConsumerBase, KafkaTopicPartition, KafkaTopicPartitionStateSentinel @ connector
1.15.4 and 3.4.0-1.20; KryoSerializer @ Flink 1.20.3.
"""

from __future__ import annotations

from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.kafka.split import check_topic

LEGACY_CONSUMER_STATE = "topic-partition-offset-states"

# KafkaTopicPartitionStateSentinel
NOT_SET = -915623761776
EARLIEST = -915623761775
LATEST = -915623761774
GROUP = -915623761773
_MARKERS = (NOT_SET, EARLIEST, LATEST, GROUP)

_NOTHING_READ = -1
_HIGHEST_OFFSET = (1 << 63) - 2  # one more is the next offset, which is a long, too

# Kryo's class ids: 0 is null, 1 a class by its name; the type itself is always registered.
_FIRST_REGISTERED = 2
_NEW_OBJECT = 1


class LegacyOffset(NamedTuple):
    """One partition that a subtask lists. ``stored_offset`` is as stored, markers included."""

    subtask: int
    topic: str
    partition: int
    stored_offset: int


class LegacyConsumer(NamedTuple):
    """The state of one FlinkKafkaConsumer: what all of its subtasks list."""

    offsets: tuple[LegacyOffset, ...]


def read_legacy_element(cursor: Cursor, subtask: int) -> LegacyOffset:
    """One element, which must use up ``cursor``.

    Raises:
        DecodeError: not a KafkaTopicPartition and an offset, read strictly.
    """
    class_id = read_varint(cursor, "class of a partition")
    if class_id < _FIRST_REGISTERED:
        cursor.fail(f"not a registered class: {class_id}", "class of a partition", back=1)
    _read_new_object(cursor, "partition of a topic")
    cached_hash = read_signed_varint(cursor, "hash of a partition")
    partition = read_signed_varint(cursor, "partition")
    if partition < 0:
        cursor.fail(f"a partition cannot be negative: {partition}", "partition")
    _read_new_object(cursor, "topic")
    topic = read_ascii_string(cursor, "topic")
    check_topic(cursor, topic)
    if cached_hash != _hash(topic, partition):
        cursor.fail("its hash is not that of its topic and partition", "hash of a partition")
    offset = cursor.i64("offset")
    if not _NOTHING_READ <= offset <= _HIGHEST_OFFSET and offset not in _MARKERS:
        cursor.fail(f"not an offset nor a marker: {offset}", "offset", back=8)
    cursor.finish("element of a FlinkKafkaConsumer's state")
    return LegacyOffset(subtask, topic, partition, offset)


def _read_new_object(cursor: Cursor, field: str) -> None:
    marker = read_varint(cursor, field)
    if marker != _NEW_OBJECT:
        cursor.fail(f"a reference ({marker}) where an object stands", field, back=1)


def _hash(topic: str, partition: int) -> int:
    """KafkaTopicPartition's ``31 * topic.hashCode() + partition``, in 32 bits."""
    value = 0
    for character in topic:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    value = (31 * value + partition) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


# -- Kryo's primitives -----------------------------------------------------------------------------
#
# A varint is 7 bits a byte, the lowest first, the high bit set on all but the last; a signed one is
# zig-zag. (Avro's are the same, of 64 bits: Beam's marks hold some.) A string has two forms. ASCII
# of 2 to 63 characters: its bytes, the high bit set on the last. Any other: the number of
# characters plus one as a varint whose first byte holds 6 bits (80 is always set, 40 says that more
# follow), then each UTF-16 unit in 1 to 3 bytes.
#
# Objects are not built from a class that the bytes name: who reads knows what must stand there.
#
# Source: com.esotericsoftware.kryo.io.{Output, Input} @ kryo 2.24.0, which Flink 1.x is built with.

_MORE = 0x80
_LONGEST_ASCII = 63  # of the form that is ended by its last byte
_STRING_LENGTH = 0x80
_STRING_LENGTH_MORE = 0x40


def read_varint(cursor: Cursor, field: str) -> int:
    """An unsigned varint of at most 32 bits."""
    return _read_groups(cursor, field, 0, 0)


def read_signed_varint(cursor: Cursor, field: str, width: int = 32) -> int:
    """A zig-zag varint: an integer of so many bits, signed."""
    value = _read_groups(cursor, field, 0, 0, width)
    return (value >> 1) ^ -(value & 1)


def read_ascii_string(cursor: Cursor, field: str) -> str:
    """A string of either form; null and what is not ASCII are refused, as no topic is either."""
    first = cursor.peek(field)
    text = bytearray()
    if first & _STRING_LENGTH:
        cursor.u8(field)
        count = first & 0x3F
        if first & _STRING_LENGTH_MORE:
            count = _read_groups(cursor, field, count, 6)
        if count == 0:
            cursor.fail("a string is null", field, back=1)
        text += cursor.raw(count - 1, field)
        if not text.isascii():
            cursor.fail("a string is not ASCII", field, back=count - 1)
    else:
        while not (byte := cursor.u8(field)) & 0x80:
            text.append(byte)
            if len(text) == _LONGEST_ASCII:
                cursor.fail(f"a string of more than {_LONGEST_ASCII} characters", field)
        text.append(byte & 0x7F)
    return text.decode("ascii")


def _read_groups(cursor: Cursor, field: str, value: int, bits: int, width: int = 32) -> int:
    for _ in range(-(-width // 7)):
        byte = cursor.u8(field)
        value |= (byte & 0x7F) << bits
        bits += 7
        if value >> width:
            break
        if not byte & _MORE:
            return value
    cursor.fail(f"a varint is longer than {width} bits", field)
