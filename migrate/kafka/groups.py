"""Read a cluster's consumer groups, commit offsets for them, and remove offsets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from migrate.kafka import snapshot as snapshots
from migrate.kafka.client import Connection, kafka_error
from migrate.kafka.config import KafkaConfig, redact_secrets
from migrate.kafka.describe_group import COORDINATOR_AWAY, describe_group
from migrate.kafka.group_offsets import GroupOffset
from migrate.model.cluster_snapshot import BrokerError, ClusterSnapshot, Committed, GroupView

# Errors after which the broker may still execute the request, because only the answer was lost.
_ANSWER_LOST = {
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
}
# Errors that may disappear without user action.
_TRANSIENT = (
    COORDINATOR_AWAY | _ANSWER_LOST | {KafkaError._TIMED_OUT_QUEUE, KafkaError._ALL_BROKERS_DOWN}
)
_COMMIT_MEANINGS = {
    KafkaError.UNKNOWN_MEMBER_ID: "the group is active; stop its consumers",
    KafkaError.GROUP_ID_NOT_FOUND: "it is not a consumer group; it may be a share group",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "access denied; grant this user READ on the group",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "access denied; grant this user READ on the topic",
}
_DELETE_MEANINGS = {
    KafkaError.NON_EMPTY_GROUP: "the group is active; stop its consumers",
    KafkaError.GROUP_SUBSCRIBED_TO_TOPIC: "the group is active; stop its consumers",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "access denied; grant this user DELETE on the group",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "access denied; grant this user READ on the topic",
    KafkaError._UNSUPPORTED_FEATURE: "these brokers cannot remove single offsets (Kafka 2.4 and "
    "newer can)",
}

# The coordinator writes a commit request as one record batch to __consumer_offsets, and refuses a
# batch larger than this topic's max.message.bytes. This number is about half of the default
# max.message.bytes, 1048588.
_REQUEST_BYTES = 500_000
# The size, in bytes, of a record without its strings: framing, lengths, partition, offset, and
# times.
_RECORD_OVERHEAD = 100


@dataclass(frozen=True, slots=True)
class CommitFailure:
    """A failed change of a group or of one partition's offset.

    Attributes:
        code: Kafka's name for the error, such as UNKNOWN_MEMBER_ID.
        transient: True if the same request might succeed later. Lost answers also count as
            transient.
        answer_lost: True if the broker may still execute this request or an earlier one. In this
            case, an unchanged group does not prove that the requests had no effect.
    """

    code: str
    reason: str
    transient: bool
    answer_lost: bool = False


class ConsumerGroups:
    """The consumer groups of a cluster.

    Requests share one connection. After a BrokerError or a transient failure, the next request
    opens a new connection. If the broker does not answer, the methods that only read raise
    BrokerError; ``commit`` and ``remove`` return the failure.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.bootstrap_servers = str(config.get("bootstrap.servers", ""))
        self._config = config
        self._connected: Connection | None = None

    def cluster_id(self) -> str | None:
        with self._connection() as connection:
            return snapshots.cluster_id(connection)

    def view(self, group: str) -> GroupView:
        with self._connection() as connection:
            return describe_group(connection, group)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """Return the IDs of the topics that exist (``ClusterSnapshot.topic_ids``)."""
        with self._connection() as connection:
            return snapshots.topic_ids(connection, topics)

    def snapshot(self, topics: Iterable[str]) -> ClusterSnapshot:
        with self._connection() as connection:
            return snapshots.snapshot_topics(connection, topics)

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], CommitFailure]:
        """Commit offsets for an empty group; return the partitions that failed.

        Failed requests are not retried. If all partitions in a request fail, and at least one
        failure is transient, the remaining requests are not sent, because each request might take
        its full timeout. Their partitions count as failed.
        """
        failures: dict[tuple[str, int], CommitFailure] = {}
        transient_failure: CommitFailure | None = None
        for request in _requests(group, offsets):
            if transient_failure is None:
                commit = partial(_commit_once, group=group, offsets=request)
                failed = self._change(request, commit, _COMMIT_MEANINGS)
                failures |= failed
                if failed.keys() == request.keys():
                    transient_failure = next(
                        (
                            replace(failure, answer_lost=False)  # the later requests were not sent
                            for failure in failed.values()
                            if failure.transient
                        ),
                        None,
                    )
            else:
                failures |= dict.fromkeys(request, transient_failure)
        return failures

    def remove(
        self, group: str, partitions: Iterable[tuple[str, int]]
    ) -> dict[tuple[str, int], CommitFailure]:
        """Remove committed offsets of an empty group; return the partitions that failed.

        Failed requests are not retried.
        """
        failures: dict[tuple[str, int], CommitFailure] = {}
        for request in _requests(group, dict.fromkeys(partitions, Committed(0))):
            remove = partial(_remove_once, group=group, partitions=request.keys())
            failures |= self._change(request, remove, _DELETE_MEANINGS)
        return failures

    def removal_denied(self, group: str) -> CommitFailure | None:
        """Return a failure if this user lacks DELETE on a group, else None.

        Kafka requires this permission to remove a group's offsets.

        Raises:
            BrokerError: the broker did not answer.
        """
        with self._connection() as connection:
            answer = connection.admin.describe_consumer_groups(
                [group], include_authorized_operations=True, request_timeout=connection.timeout
            )[group]
            allowed = connection.wait(f"group {group}", answer).authorized_operations
        if not allowed or AclOperation.DELETE in allowed:
            return None  # without an answer, the removal itself reports the failure
        code = KafkaError.GROUP_AUTHORIZATION_FAILED
        return CommitFailure(KafkaError(code).name(), _DELETE_MEANINGS[code], transient=False)

    def _change(
        self,
        partitions: Collection[tuple[str, int]],
        request: Callable[[Connection], Mapping[tuple[str, int], GroupOffset]],
        meanings: Mapping[int, str],
    ) -> dict[tuple[str, int], CommitFailure]:
        """Send a request that changes offsets; return the partitions that failed."""
        try:
            with self._connection() as connection:
                config = connection.config
                answer = request(connection)
        except KafkaException as error:
            failed = dict.fromkeys(partitions, _failure(kafka_error(error), meanings, config))
        except BrokerError as error:
            return dict.fromkeys(partitions, _no_answer(error))
        else:
            # The request succeeds even if the changes to all of its partitions failed.
            failed = {
                partition: _failure(entry.error, meanings, config)
                for partition, entry in answer.items()
                if entry.error is not None
            }
        self._drop_connection_after(failed.values())
        return failed

    def _drop_connection_after(self, failures: Iterable[CommitFailure]) -> None:
        if any(failure.transient for failure in failures):
            self._connected = None

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Yield the current connection, or a new one.

        A failed connection is not reused. After a failed connection to a group coordinator,
        librdkafka 2.16 aborts the process (``eonce->refcnt > 0``) at the next request about the
        group.
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
    """Divide offsets into requests of about ``_REQUEST_BYTES`` bytes or less."""
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
) -> Mapping[tuple[str, int], GroupOffset]:
    return connection.offsets.commit(group, offsets)


def _remove_once(
    connection: Connection, group: str, partitions: Collection[tuple[str, int]]
) -> Mapping[tuple[str, int], GroupOffset]:
    return connection.offsets.remove(group, partitions)


def _failure(error: KafkaError, meanings: Mapping[int, str], config: KafkaConfig) -> CommitFailure:
    meaning = meanings.get(error.code())
    reason = meaning if meaning is not None else redact_secrets(error.str(), config)
    code = error.code()
    return CommitFailure(error.name(), reason, code in _TRANSIENT, code in _ANSWER_LOST)


def _no_answer(error: BrokerError) -> CommitFailure:
    return CommitFailure("_TRANSPORT", str(error), transient=True)
