"""Read bounded runs of records, without a consumer group.

In each partition, the read before the position is limited to a number of offsets. The read from the
position on is limited to a number of records and to ``MOST_BYTES``. The caller limits the number of
partitions. ``RecordReader.around`` returns hashes instead of keys and values. librdkafka drops
transaction markers, so there are no records at the markers' offsets.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import cast

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import ConfigResource, OffsetSpec

from migrate.kafka.client import Connection, answer_of
from migrate.kafka.config import KafkaConfig
from migrate.kafka.snapshot import list_offsets
from migrate.model.catalog import READ_DENIED, RECORDS_TIMEOUT
from migrate.model.cluster_snapshot import BrokerError
from migrate.model.record import Record, Surroundings

# Reading from a partition stops once the records that were read at or after the position exceed
# this size in bytes.
MOST_BYTES = 8 * 1024 * 1024
_MESSAGES_AT_ONCE = 1000
# The maximum number of seconds to wait for a batch of messages. It is small, because each read
# waits once for messages that do not exist.
_POLL_SECONDS = 0.02
# To find N records before a position, reading starts 2 * N offsets below it, because not every
# offset has a record. If each transaction has one record, every other offset is a transaction
# marker. A compacted log has larger gaps. If too few records are found, reading starts again 32 * N
# offsets below the position, and so on.
_STEPS_BACK = (2, 32, 1024, 32_768)

_SETTINGS = {
    "enable.auto.offset.store": False,
    "auto.offset.reset": "earliest",  # for records that retention deletes during a read
    "fetch.wait.max.ms": 100,
    # Fetch only a little ahead, because each read covers only a few records of each partition.
    "fetch.message.max.bytes": 128 * 1024,
    "fetch.max.bytes": 8 * 1024 * 1024,
    "queued.max.messages.kbytes": 8 * 1024,
    # All partitions share one queue, and nothing is fetched while the queue is full. librdkafka
    # checks the queue again after this time, instead of after a second (its default).
    "fetch.queue.backoff.ms": 10,
}

Partition = tuple[str, int]


@dataclass(slots=True)
class _Span:
    """The records to read from a partition, and the records read so far.

    Attributes:
        pivot: the offset that separates ``before`` (lower offsets) from ``after`` (this offset and
            higher).
        log_start, log_end: the log range; for ``read_committed``, the end is the last stable
            offset.
    """

    start: int
    pivot: int
    log_start: int
    log_end: int
    most_before: int
    most_after: int
    before: deque[Record] = field(init=False)
    after: list[Record] = field(default_factory=list)
    dropped: bool = False
    size: int = 0
    first_unread: int = 0
    is_to_end: bool = False

    def __post_init__(self) -> None:
        self.start = min(max(self.start, self.log_start), self.log_end)
        self.before = deque(maxlen=self.most_before)
        self.first_unread = self.start
        self.is_to_end = self.start >= self.log_end

    @property
    def is_done(self) -> bool:
        return self.is_to_end or len(self.after) >= self.most_after or self.size > MOST_BYTES

    @property
    def is_from_start(self) -> bool:
        return self.start <= self.log_start and not self.dropped

    def add(self, record: Record, size: int) -> None:
        # A record from an earlier assignment of this partition may still be delivered.
        if self.is_done or record.offset < self.first_unread:
            return
        if record.offset >= self.log_end:  # a newer record, so the range ended with a marker
            self.end(self.log_end)
            return
        self.first_unread = record.offset + 1
        if record.offset < self.pivot:
            self.dropped |= len(self.before) == self.most_before
            self.before.append(record)
        else:
            self.after.append(record)
            self.size += size
        self.is_to_end = self.first_unread >= self.log_end

    def end(self, next_offset: int) -> None:
        """Record the fact that the log has no records at or after ``next_offset``."""
        if not self.is_done:
            self.first_unread = max(self.first_unread, next_offset)
            self.is_to_end = True


class RecordReader:
    """A reader of the records in one cluster.

    With ``is_committed``, the reader omits records of aborted transactions, and stops before the
    first open transaction (``read_committed``).

    Raises:
        BrokerError: no broker answered in time, or access was denied. The methods also raise this
            error.
        ConfigError: librdkafka does not accept the properties.
    """

    def __init__(self, config: KafkaConfig, *, is_committed: bool) -> None:
        self._connection = Connection(config)
        level = "read_committed" if is_committed else "read_uncommitted"
        self._isolation = IsolationLevel[level.upper()]
        self._snapshot: dict[Partition, tuple[int, int]] = {}
        self._consumer = self._connection.consumer({**_SETTINGS, "isolation.level": level})

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def around(
        self, positions: Mapping[Partition, int], most_before: int, most_after: int
    ) -> dict[Partition, Surroundings]:
        """Return the records around each position.

        For each position, return up to ``most_before`` records before it, and up to ``most_after``
        records at or after it. All partitions are read together, so all of their records must fit
        in memory.
        """
        ranges = self._ranges(positions)
        results: dict[Partition, Surroundings] = {}
        missing = dict(positions)
        for step in _STEPS_BACK:
            spans = {
                partition: _Span(
                    at - step * most_before, at, *ranges[partition], most_before, most_after
                )
                for partition, at in missing.items()
            }
            self._read(spans)
            for partition, span in spans.items():
                results[partition] = Surroundings(
                    span.pivot,
                    tuple(span.before),
                    tuple(span.after),
                    span.first_unread,
                    span.is_from_start,
                    span.is_to_end,
                    span.log_start,
                    span.log_end,
                )
            missing = {
                partition: at
                for partition, at in missing.items()
                if len(spans[partition].before) < most_before and not spans[partition].is_from_start
            }
            if not missing:
                break
        return results

    def around_times(
        self, times: Mapping[Partition, int], most_before: int, most_after: int
    ) -> dict[Partition, Surroundings]:
        """For each partition, return the records around the first record at or after a time.

        If a partition has no such record, its result is the records around the log end offset.

        ``times`` contains a time in epoch milliseconds for each partition; for the other arguments,
        see ``around``.
        """
        firsts = list_offsets(
            self._connection,
            {TopicPartition(*p): OffsetSpec.for_timestamp(max(0, at)) for p, at in times.items()},
            self._isolation,
        )
        ends = self.log_ends(times)
        positions = {
            partition: first.offset if first.offset >= 0 else ends[partition]
            for partition, first in firsts.items()
        }
        return self.around(positions, most_before, most_after)

    def log_ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return each partition's log end offset or, for ``read_committed``, last stable offset."""
        return {partition: end for partition, (_, end) in self._ranges(partitions).items()}

    def take_snapshot(self, partitions: Collection[Partition]) -> None:
        """Query the log ranges of partitions; later reads stop at the ends of these ranges."""
        self._snapshot.clear()
        self._snapshot = self._ranges(partitions)

    def compacted_topics(self, topics: Iterable[str]) -> set[str]:
        """Return the topics that Kafka compacts, except topics whose settings cannot be read."""
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in topics]
        if not resources:
            return set()
        futures = self._connection.admin.describe_configs(
            resources, request_timeout=self._connection.timeout
        )
        compacted = set()
        for resource, future in futures.items():
            try:
                policy = answer_of(future).get("cleanup.policy")
            except KafkaException:
                continue
            if policy is not None and "compact" in str(policy.value):
                compacted.add(str(resource.name))
        return compacted

    def topics(self) -> list[str]:
        """Return the topics that this user can see."""
        return self._connection.topics()

    def partitions(self, topic: str) -> list[int]:
        """Return a topic's partition numbers."""
        return self._connection.partitions(topic)

    def newest_contents(self, partition: Partition, most: int) -> list[tuple[bytes, bytes]]:
        """Return the keys and values of the records in the last ``most`` offsets.

        Records without a key or a value are omitted. If the records exceed ``MOST_BYTES``, the
        newest records are omitted.
        """
        log_start, log_end = self._ranges([partition])[partition]
        contents: list[tuple[bytes, bytes]] = []
        span = _Span(log_end - most, -1, log_start, log_end, 0, most)

        def keep(message: Message) -> None:
            key, value = _bytes(message.key()), _bytes(message.value())
            if key is not None and value is not None:
                contents.append((key, value))

        self._read({partition: span}, keep)
        return contents

    def _ranges(self, partitions: Collection[Partition]) -> dict[Partition, tuple[int, int]]:
        """Return each partition's log start and end offsets, from the snapshot if there is one."""
        known = {p: self._snapshot[p] for p in partitions if p in self._snapshot}
        keys = [TopicPartition(*partition) for partition in partitions if partition not in known]
        if not keys:
            return known
        starts, ends = (
            list_offsets(self._connection, dict.fromkeys(keys, spec), self._isolation)
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest())
        )
        return known | {
            partition: (first.offset, ends[partition].offset) for partition, first in starts.items()
        }

    def _read(
        self, spans: Mapping[Partition, _Span], keep: Callable[[Message], None] | None = None
    ) -> None:
        """Read the records in spans; call ``keep`` with each message."""
        waiting = {partition: span for partition, span in spans.items() if not span.is_done}
        self._consumer.assign([TopicPartition(*p, span.start) for p, span in waiting.items()])
        deadline = time.monotonic() + self._connection.timeout
        while waiting:
            for partition, message in self._messages():
                deadline = time.monotonic() + self._connection.timeout
                if (span := waiting.get(partition)) is None:
                    continue
                if message.error() is None:
                    span.add(*_record_of(message))
                    if keep is not None:
                        keep(message)
                else:  # the end of the partition
                    span.end(message.offset() or 0)
                if span.is_done:
                    del waiting[partition]
                    # Do not use ``pause``, because a partition would still be paused after
                    # reassignment.
                    self._consumer.incremental_unassign([TopicPartition(*partition)])
            if time.monotonic() > deadline:
                (topic, number), *_ = waiting
                seconds = round(self._connection.timeout)
                raise BrokerError(RECORDS_TIMEOUT(partition=f"{topic}-{number}", seconds=seconds))

    def _messages(self) -> Iterator[tuple[Partition, Message]]:
        for message in self._consumer.consume(_MESSAGES_AT_ONCE, _POLL_SECONDS):
            error = message.error()
            topic, partition = message.topic(), message.partition()
            if error is None or error.code() == KafkaError._PARTITION_EOF:
                yield (str(topic), int(partition or 0)), message
            elif error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise BrokerError(READ_DENIED(topic=topic))
            elif topic is not None and not error.retriable():
                raise self._connection.error(f"{topic}-{partition}", KafkaException(error))


def _record_of(message: Message) -> tuple[Record, int]:
    """Return the record in a message, and the record's size in bytes."""
    key, value = message.key(), message.value()
    kind, timestamp = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        timestamp = -1
    headers = tuple(
        (name, _bytes(content))
        for name, content in cast("list[tuple[str, bytes | None]]", message.headers() or [])
    )
    size = len(key or b"") + len(value or b"") + sum(len(h[1] or b"") for h in headers)
    record = Record(
        int(message.offset() or 0),
        _digest(key, value, timestamp),
        _digest(key, None, 0),
        headers,
        timestamp,
        kind == TIMESTAMP_LOG_APPEND_TIME,
        value is None,
    )
    return record, size


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _digest(key: str | bytes | None, value: str | bytes | None, timestamp: int) -> bytes:
    """Return a hash of a key and a value, with their lengths (-1 for None), and a timestamp."""
    digest = blake2b(digest_size=16)
    for part in (_bytes(key), _bytes(value)):
        digest.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        digest.update(part or b"")
    digest.update(timestamp.to_bytes(8, "big", signed=True))
    return digest.digest()
