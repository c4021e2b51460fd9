"""Consumer groups of a cluster, over a connection that is replaced after any failure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition

from migrate.kafka import snapshot as snapshots
from migrate.kafka.client import Connection, kafka_error
from migrate.kafka.config import KafkaConfig, redact_secrets
from migrate.kafka.describe_group import COORDINATOR_AWAY, describe_group
from migrate.model.cluster_snapshot import BrokerError, ClusterSnapshot, Committed, GroupView

# Errors that may end by themselves, and librdkafka's errors for a lost answer.
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

# A commit request becomes one record batch of the offsets topic. A batch larger than that topic's
# max.message.bytes (by default 1048588) is refused; this is half of it.
_REQUEST_BYTES = 500_000
# A record's framing, the lengths of its strings, the partition, the offset and the times.
_RECORD_OVERHEAD = 100

# RecordBatch.NO_PARTITION_LEADER_EPOCH @ kafka-clients 4.1.1
_NO_EPOCH = -1


@dataclass(frozen=True, slots=True)
class CommitFailure:
    """The reason why a group, or one partition's offset, was not changed.

    Attributes:
        code: Kafka's name of the error, such as UNKNOWN_MEMBER_ID.
        reason: its meaning here.
        transient: the error may end by itself; or the answer was lost, and only the group itself
            shows whether it was changed.
    """

    code: str
    reason: str
    transient: bool


class ConsumerGroups:
    """The consumer groups of a cluster.

    One connection is used as long as it answers; after a failure the next request has a new one.
    Methods that read raise BrokerError.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.bootstrap_servers = str(config.get("bootstrap.servers", ""))
        self._config = config
        self._connected: Connection | None = None

    def cluster_id(self) -> str | None:
        """Return the cluster's own id."""
        with self._connection() as connection:
            return snapshots.cluster_id(connection)

    def view(self, group: str) -> GroupView:
        """Return the group as it is now."""
        with self._connection() as connection:
            return describe_group(connection, group)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the ids of the topics that exist (``ClusterSnapshot.topic_ids``)."""
        with self._connection() as connection:
            return snapshots.topic_ids(connection, topics)

    def snapshot(self, topics: Iterable[str]) -> ClusterSnapshot:
        """Return topics and their log ranges as they are now."""
        with self._connection() as connection:
            return snapshots.snapshot(connection, topics)

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], CommitFailure]:
        """Commit offsets of a group without members, once; return the partitions that failed.

        After a request without an answer the rest is not sent: each would wait as long again.
        """
        failures: dict[tuple[str, int], CommitFailure] = {}
        unanswered: CommitFailure | None = None
        for request in _requests(group, offsets):
            if unanswered is None:
                failed = self._commit(group, request)
                failures |= failed
                if failed.keys() == request.keys():
                    unanswered = next(
                        (failure for failure in failed.values() if failure.transient), None
                    )
            else:
                failures |= dict.fromkeys(request, unanswered)
        return failures

    def _commit(
        self, group: str, request: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], CommitFailure]:
        try:
            with self._connection() as connection:
                failed = _commit_once(connection, group, request)
        except BrokerError as error:
            return dict.fromkeys(request, _no_answer(error))
        self._drop_after(failed.values())
        return failed

    def delete(self, group: str) -> CommitFailure | None:
        """Delete a group without members and its offsets, once; return why that failed, or None."""
        try:
            with self._connection() as connection:
                failure = _delete_once(connection, group)
        except BrokerError as error:
            return _no_answer(error)
        self._drop_after([failure] if failure is not None else [])
        return failure

    def _drop_after(self, failures: Iterable[CommitFailure]) -> None:
        if any(failure.transient for failure in failures):
            self._connected = None

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Give the current connection, or a new one.

        librdkafka 2.16 aborts the whole process (``eonce->refcnt > 0``) on a request about a group
        if the client's connection to the group's coordinator has failed before.
        """
        try:
            if self._connected is None:
                self._connected = Connection(self._config)
            yield self._connected
        except BrokerError:
            self._connected = None
            raise


def _requests(
    group: str, offsets: Mapping[tuple[str, int], Committed]
) -> Iterator[dict[tuple[str, int], Committed]]:
    """Divide offsets into requests that the coordinator can append as one record batch each."""
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


def _commit_once(
    connection: Connection, group: str, offsets: Mapping[tuple[str, int], Committed]
) -> dict[tuple[str, int], CommitFailure]:
    """Send one commit request; return the partitions that failed."""
    partitions = [
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
        [ConsumerGroupTopicPartitions(group, partitions)], request_timeout=connection.timeout
    )[group]
    try:
        answer = future.result()
    except KafkaException as error:
        failure = _failure(kafka_error(error), _COMMIT_MEANINGS, connection.config)
        return dict.fromkeys(offsets, failure)
    # The request as a whole succeeds even if every partition of it has failed.
    return {
        (place.topic, place.partition): _failure(place.error, _COMMIT_MEANINGS, connection.config)
        for place in answer.topic_partitions
        if place.error is not None
    }


def _delete_once(connection: Connection, group: str) -> CommitFailure | None:
    """Send one request to delete a group; return why it failed, or None."""
    futures = connection.admin.delete_consumer_groups([group], request_timeout=connection.timeout)
    try:
        futures[group].result()
    except KafkaException as error:
        return _failure(kafka_error(error), _DELETE_MEANINGS, connection.config)
    return None


def _failure(error: KafkaError, meanings: Mapping[int, str], config: KafkaConfig) -> CommitFailure:
    meaning = meanings.get(error.code())
    reason = meaning if meaning is not None else redact_secrets(error.str(), config)
    return CommitFailure(error.name(), reason, error.code() in _TRANSIENT)


def _no_answer(error: BrokerError) -> CommitFailure:
    return CommitFailure("_TRANSPORT", str(error), transient=True)
