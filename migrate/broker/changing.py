"""Changes to a consumer group without members, one request each, and why one was not made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from migrate.broker.connection import Connection, kafka_error
from migrate.broker.reading import COORDINATOR_AWAY
from migrate.cluster_snapshot import Committed
from migrate.kafka_config import KafkaConfig, without_secrets

# What may go away by itself; and what librdkafka says where the answer was lost.
_TRANSIENT = COORDINATOR_AWAY | {
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
}
_COMMIT_MEANINGS = {
    KafkaError.UNKNOWN_MEMBER_ID: "the group has members; stop them",
    KafkaError.GROUP_ID_NOT_FOUND: "it is no consumer group (a share group?)",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "access denied; grant this user READ on the group",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "access denied; grant this user READ on the topic",
}
_DELETE_MEANINGS = {
    KafkaError.NON_EMPTY_GROUP: "the group has members; stop them",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "access denied; grant this user DELETE on the group",
}

# One commit request becomes one record batch of the offsets topic, and a batch larger than that
# topic's max.message.bytes (by default 1048588) is refused whole; half of that leaves room.
_REQUEST_BYTES = 500_000
# A record's own framing, the lengths of its strings, the partition, the offset and the times.
_RECORD_OVERHEAD = 100

# RecordBatch.NO_PARTITION_LEADER_EPOCH @ kafka-clients 4.1.1
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class CommitFailure:
    """Why a group, or one partition's offset, was not changed, as far as the answer tells.

    Attributes:
        code: Kafka's name of the error, such as UNKNOWN_MEMBER_ID.
        reason: what it means here.
        transient: it may go away by itself; or the answer was lost, and only reading the group
            tells whether it was changed.
    """

    code: str
    reason: str
    transient: bool


def requests(
    group: str, offsets: Mapping[tuple[str, int], Committed]
) -> Iterator[dict[tuple[str, int], Committed]]:
    """Offsets in as many requests as the coordinator can append: each becomes one record batch."""
    request: dict[tuple[str, int], Committed] = {}
    size = 0
    for (topic, partition), committed in sorted(offsets.items()):
        record = len((group + topic + committed.metadata).encode()) + _RECORD_OVERHEAD
        if request and size + record > _REQUEST_BYTES:
            yield request
            request, size = {}, 0
        request[topic, partition] = committed
        size += record
    if request:
        yield request


def commit(
    connection: Connection, group: str, offsets: Mapping[tuple[str, int], Committed]
) -> dict[tuple[str, int], CommitFailure]:
    """One request; the partitions that failed."""
    wanted = [
        TopicPartition(
            topic,
            partition,
            committed.next_offset,
            committed.metadata,
            _NO_EPOCH if committed.leader_epoch is None else committed.leader_epoch,
        )
        for (topic, partition), committed in offsets.items()
    ]
    future = connection.admin.alter_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=connection.timeout
    )[group]
    try:
        answer = future.result()
    except KafkaException as error:
        failure = _failure(kafka_error(error), _COMMIT_MEANINGS, connection.config)
        return dict.fromkeys(offsets, failure)
    # The request as a whole succeeds even where every partition of it has failed.
    return {
        (place.topic, place.partition): _failure(place.error, _COMMIT_MEANINGS, connection.config)
        for place in answer.topic_partitions
        if place.error is not None
    }


def delete(connection: Connection, group: str) -> CommitFailure | None:
    """One request; why it failed."""
    futures = connection.admin.delete_consumer_groups([group], request_timeout=connection.timeout)
    try:
        futures[group].result()
    except KafkaException as error:
        return _failure(kafka_error(error), _DELETE_MEANINGS, connection.config)
    return None


def _failure(error: KafkaError, meanings: Mapping[int, str], config: KafkaConfig) -> CommitFailure:
    meaning = meanings.get(error.code())
    reason = meaning if meaning is not None else without_secrets(error.str(), config)
    return CommitFailure(error.name(), reason, error.code() in _TRANSIENT)
