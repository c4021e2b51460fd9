"""The state of a FlinkKafkaConsumer (up to Flink 1.20).

The state is the ``topic-partition-offset-states`` union list state. Each subtask lists the
partitions that it reads. An element is a KafkaTopicPartition written by Kryo, followed by an
``i64`` offset; no length precedes the element. KafkaTopicPartition: varint class id (which depends
on the types that the job registers), reference marker, zig-zag varints ``cachedHash`` and
``partition``, reference marker, string ``topic``. Both reference markers are 1 (an object written
for the first time). ``cachedHash`` is the hash of the topic and the partition, so it shows whether
the bytes are a KafkaTopicPartition.

The stored offset is the offset of the last processed record, or one of four markers. It is -1 if
the next record to read is at offset 0.

Kryo writes a string in one of two formats. ASCII of 2 to 63 characters is stored as its bytes, with
the high bit set in the last byte. Any other string is stored as a varint with the number of UTF-16
units plus one, followed by each unit in 1 to 3 bytes. In the varint's first byte, bit 0x80 is set,
bit 0x40 is set if more bytes follow, and the other 6 bits belong to the number.

Source: FlinkKafkaConsumerBase, KafkaTopicPartition, KafkaTopicPartitionStateSentinel @ connector
1.15.4 and 3.4.0-1.20; KryoSerializer @ Flink 1.20.3; com.esotericsoftware.kryo.io.{Output, Input}
@ kryo 2.24.0, the version in Flink 1.x.
"""

from __future__ import annotations

from typing import NamedTuple

from decoder.cursor import Cursor
from decoder.java import signed_32, string_hash
from decoder.kafka.split import check_topic

LEGACY_CONSUMER_STATE = "topic-partition-offset-states"

# KafkaTopicPartitionStateSentinel
NOT_SET = -915623761776
EARLIEST = -915623761775
LATEST = -915623761774
GROUP = -915623761773
_MARKERS = (NOT_SET, EARLIEST, LATEST, GROUP)

_NOTHING_READ = -1
_HIGHEST_OFFSET = (1 << 63) - 2  # the next offset is one higher, and must also fit in a Java long

# Kryo class IDs: 0 means null, 1 means a class written by name, and a higher ID means a registered
# class. Flink always registers KafkaTopicPartition.
_FIRST_REGISTERED = 2
_NEW_OBJECT = 1
_LONGEST_ASCII = 63  # the longest string in Kryo's ASCII format


class LegacyOffset(NamedTuple):
    """A partition that a subtask lists. ``stored_offset`` may be a marker."""

    subtask: int
    topic: str
    partition: int
    stored_offset: int


class LegacyConsumer(NamedTuple):
    """The state of one FlinkKafkaConsumer, with the partitions that its subtasks list."""

    offsets: tuple[LegacyOffset, ...]


def read_legacy_element(cursor: Cursor, subtask: int) -> LegacyOffset:
    """Read one element that extends to the end of ``cursor``.

    Raises:
        DecodeError: the bytes are not exactly a KafkaTopicPartition and a valid offset.
    """
    class_id = cursor.varint("class of a partition")
    if class_id < _FIRST_REGISTERED:
        cursor.fail(f"not a registered class: {class_id}", "class of a partition", back=1)
    _read_new_object_marker(cursor, "partition of a topic")
    cached_hash = cursor.zigzag("hash of a partition")
    partition = cursor.zigzag("partition")
    if partition < 0:
        cursor.fail(f"a partition cannot be negative: {partition}", "partition")
    _read_new_object_marker(cursor, "topic")
    topic = read_ascii_string(cursor, "topic")
    check_topic(cursor, topic)
    if cached_hash != signed_32((31 * string_hash(topic) + partition) & 0xFFFFFFFF):
        cursor.fail("its hash does not match its topic and partition", "hash of a partition")
    offset = cursor.i64("offset")
    if not _NOTHING_READ <= offset <= _HIGHEST_OFFSET and offset not in _MARKERS:
        cursor.fail(f"not an offset or a marker: {offset}", "offset", back=8)
    cursor.finish("element of a FlinkKafkaConsumer's state")
    return LegacyOffset(subtask, topic, partition, offset)


def _read_new_object_marker(cursor: Cursor, field: str) -> None:
    marker = cursor.varint(field)
    if marker != _NEW_OBJECT:
        cursor.fail(f"a reference ({marker}) instead of an object", field, back=1)


def read_ascii_string(cursor: Cursor, field: str) -> str:
    """Read a string in either of Kryo's two formats; refuse null and non-ASCII text."""
    first = cursor.peek(field)
    text = bytearray()
    if first & 0x80:
        cursor.u8(field)
        count = first & 0x3F
        if first & 0x40:
            count = cursor.rest_of_varint(field, count, 6)
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
