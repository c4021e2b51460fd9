"""KafkaPartitionSplit: a topic-partition of a KafkaSource, with its starting and stopping offset.

Version 0: ``UTF topic, i32 partition, i64 startingOffset, i64 stoppingOffset``.

Source: org.apache.flink.connector.kafka.source.split.{KafkaPartitionSplit,
KafkaPartitionSplitSerializer} @ connector 1.15.4 to 5.0.0-2.2.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from decoder.cursor import Cursor

SPLIT_VERSION = 0

# Markers that replace a starting offset until the split's first record is read. LATEST and
# COMMITTED can also replace a stopping offset.
EARLIEST = -2
LATEST = -1
COMMITTED = -3
# A starting offset that has not been initialized yet, or the stopping offset of an unbounded split.
NOT_SET = -(1 << 63)

# The rule for topic names. JSON schemas also use this pattern; it matches "." and "..", which Kafka
# refuses. Source: org.apache.kafka.common.internals.Topic @ kafka-clients 4.1.1.
LONGEST_TOPIC = 249
TOPIC_PATTERN = rf"^[A-Za-z0-9._-]{{1,{LONGEST_TOPIC}}}$"
_LEGAL_TOPIC = re.compile(TOPIC_PATTERN)

# The minimum size in bytes of a topic (its length and one character) with a partition, and of a
# split, which also contains two offsets.
MIN_TOPIC_PARTITION_BYTES = 2 + 1 + 4
MIN_SPLIT_BYTES = MIN_TOPIC_PARTITION_BYTES + 8 + 8


class Split(NamedTuple):
    """A split as it is stored; an offset can be a marker.

    ``starting_offset`` is the next offset to read; ``stopping_offset`` is None if the split has no
    end (Long.MIN_VALUE in the state).
    """

    topic: str
    partition: int
    starting_offset: int
    stopping_offset: int | None


def read_topic(cursor: Cursor) -> str:
    """Read ``UTF topic``; refuse an illegal topic name."""
    topic = cursor.utf("topic")
    check_topic(cursor, topic)
    return topic


def is_legal_topic(name: str) -> bool:
    """Return whether Kafka allows this topic name."""
    return _LEGAL_TOPIC.fullmatch(name) is not None and name not in (".", "..")


def check_topic(cursor: Cursor, topic: str) -> None:
    """Refuse an illegal topic name."""
    if not is_legal_topic(topic):
        cursor.fail(f"not a legal topic name: {topic!r}", "topic")


def read_topic_partition(cursor: Cursor) -> tuple[str, int]:
    """Read ``UTF topic, i32 partition``; refuse values that Kafka refuses."""
    topic = read_topic(cursor)
    partition = cursor.i32("partition")
    if partition < 0:
        cursor.fail(f"a partition cannot be negative: {partition}", "partition", back=4)
    return topic, partition


def read_split(cursor: Cursor, version: int) -> Split:
    """Read one split that extends to the end of ``cursor``.

    Raises:
        DecodeError: the bytes are not exactly a KafkaPartitionSplit.
    """
    cursor.check_version(version, "KafkaPartitionSplit", (SPLIT_VERSION,), back=0)
    topic, partition = read_topic_partition(cursor)
    starting = cursor.i64("starting offset")
    if starting < COMMITTED and starting != NOT_SET:
        cursor.fail(f"not an offset or a marker: {starting}", "starting offset", back=8)
    stopping = cursor.i64("stopping offset")
    if stopping < 0 and stopping not in (LATEST, COMMITTED, NOT_SET):
        cursor.fail(f"not an offset or a marker: {stopping}", "stopping offset", back=8)
    cursor.finish("split")
    return Split(topic, partition, starting, None if stopping == NOT_SET else stopping)
