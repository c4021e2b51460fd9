"""The only room that talks to Kafka, and the only confluent_kafka import.

Takes a ClusterSnapshot, and reads and writes consumer groups, one request at a time: what may be
written, and when again, is decided by those who ask.
"""

from __future__ import annotations

import logging
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from migrate.kafka_config import ConfigError, KafkaConfig, without_secrets, without_values
from migrate.snapshot import (
    BrokerError,
    ClusterSnapshot,
    Committed,
    GroupView,
    LogRange,
    Member,
)
from migrate.wording import alike

# How long one request may take, in seconds. A healthy cluster answers in milliseconds; a leader
# election or a slow link takes a few seconds.
REQUEST_TIMEOUT = 15.0

# librdkafka tells a broker that is not there on stderr, again and again; the one line that
# matters is told by BrokerError.
_SILENT = logging.getLogger("migrate.broker.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

_DEFAULTS = {
    # librdkafka 2.16 forgets the brokers it knows when its last connection ends ("rebootstrap");
    # where a request is made at that moment, no later one is ever answered, and a thread of it
    # runs hot.
    "metadata.recovery.strategy": "none",
    # A broker that restarts is back in seconds: do not wait for longer than that in between.
    "reconnect.backoff.max.ms": "1000",
}

# What confluent-kafka takes among the properties, as Python objects, and drops or fails of as text.
_NO_PROPERTIES = frozenset({"logger", "default.topic.config"})

# What access was denied to. All that is asked for here needs DESCRIBE (Kafka's AclOperation);
# commits and deletions, which need more, name it themselves.
_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
}
_UNREACHABLE = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)

# How often librdkafka is asked what went wrong while an answer is out, in seconds.
_POLL_INTERVAL = 0.05
# Where librdkafka's errors say which connection they are of, and when it failed.
_CONNECTION = re.compile(r"^\S+://\S+: |\s*\(after [^()]*\)$")

# What is answered while a group's coordinator moves to another broker, or loads what it holds.
_COORDINATOR_AWAY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)
# How long to wait before it is asked again, in seconds.
_COORDINATOR_PAUSE = 0.25
# The same, and what librdkafka says where the answer was lost.
_TRANSIENT = _COORDINATOR_AWAY | {
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

# A topic's id is 16 bytes in base 64: librdkafka takes the ordinary alphabet, Kafka that of URLs.
_NO_TOPIC_ID = "A" * 22
_URL_ALPHABET = str.maketrans("+/", "-_")

# RecordBatch.NO_PARTITION_LEADER_EPOCH @ kafka-clients 4.1.1
_NO_EPOCH = -1

_GROUP_TYPES = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}
_GROUP_STATES = {
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}


def take_snapshot(
    config: KafkaConfig,
    topics: Iterable[str],
    source_group: str | None = None,
    target_group: str | None = None,
    since: int | None = None,
    at: int | None = None,
) -> ClusterSnapshot:
    """Ask for the partitions of topics, their log ranges, and two consumer groups.

    Nothing is changed, and a topic or group that is not there is not created by asking for it.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        topics: the topics to ask for.
        source_group: Flink's own consumer group.
        target_group: the consumer group that offsets are to be committed for.
        since: milliseconds of the epoch: ask for the first record since then as well.
        at: the same, of a second time (``LogRange.first_at``).

    Raises:
        BrokerError: no broker answered in time, or access was denied.
        ConfigError: librdkafka does not take the properties.
    """
    broker = _Broker(config)
    return replace(
        broker.snapshot(topics, since, at),
        source_group=broker.group(source_group) if source_group is not None else None,
        target_group=broker.group(target_group) if target_group is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Failure:
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


class ConsumerGroups:
    """The consumer groups of a cluster.

    One connection serves as long as it answers; after any failure the next request has a new one.
    """

    def __init__(self, config: KafkaConfig) -> None:
        self.bootstrap_servers = str(config.get("bootstrap.servers", ""))
        self._config = config
        self._connected: _Broker | None = None

    def cluster_id(self) -> str | None:
        """Raises BrokerError."""
        with self._broker() as broker:
            return broker.cluster_id()

    def view(self, group: str) -> GroupView:
        """The group as it is now. Raises BrokerError."""
        with self._broker() as broker:
            return broker.group(group)

    def topic_ids(self, topics: Iterable[str]) -> dict[str, str]:
        """``ClusterSnapshot.topic_ids`` of those that exist. Raises BrokerError."""
        with self._broker() as broker:
            return _ids(broker.topics(sorted(topics)))

    def snapshot(self, topics: Iterable[str]) -> ClusterSnapshot:
        """Topics and their log ranges as they are now. Raises BrokerError."""
        with self._broker() as broker:
            return broker.snapshot(topics)

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], Failure]:
        """Commit offsets of a group without members, once; the partitions that failed.

        After a request without an answer the rest is not sent: it would only wait as long again.
        """
        failures: dict[tuple[str, int], Failure] = {}
        unanswered: Failure | None = None
        for request in _requests(group, offsets):
            if unanswered is None:
                failed = self._commit(group, request)
                failures |= failed
                if failed.keys() == request.keys():
                    unanswered = next((f for f in failed.values() if f.transient), None)
            else:
                failures |= dict.fromkeys(request, unanswered)
        return failures

    def _commit(
        self, group: str, request: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], Failure]:
        try:
            with self._broker() as broker:
                failed = broker.commit(group, request)
        except BrokerError as error:
            return dict.fromkeys(request, Failure("_TRANSPORT", str(error), transient=True))
        self._drop_after(failed.values())
        return failed

    def delete(self, group: str) -> Failure | None:
        """Delete a group without members, and with it every offset it holds, once."""
        try:
            with self._broker() as broker:
                failure = broker.delete_group(group)
        except BrokerError as error:
            return Failure("_TRANSPORT", str(error), transient=True)
        if failure is not None:
            self._drop_after([failure])
        return failure

    def _drop_after(self, failures: Iterable[Failure]) -> None:
        if any(failure.transient for failure in failures):
            self._connected = None

    @contextmanager
    def _broker(self) -> Iterator[_Broker]:
        """The connection at hand, or a new one.

        librdkafka 2.16 aborts the whole process (``eonce->refcnt > 0``) where a request about a
        group is made on a client whose connection to the group's coordinator has failed.
        """
        try:
            if self._connected is None:
                self._connected = _Broker(self._config)
            yield self._connected
        except BrokerError:
            self._connected = None
            raise


def _requests(
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


@dataclass(frozen=True, slots=True)
class _Topic:
    """A topic's own id, None where the broker gives none, and the numbers of its partitions."""

    id: str | None
    partitions: list[int]


def _ids(topics: Mapping[str, _Topic]) -> dict[str, str]:
    return {name: topic.id for name, topic in topics.items() if topic.id is not None}


def _topic_id(uuid: Uuid) -> str | None:
    """As Kafka's own tools print it. Brokers older than 2.8 answer zero: they have none."""
    text = str(uuid)
    return None if text == _NO_TOPIC_ID else text.translate(_URL_ALPHABET)


class _Broker:
    def __init__(self, config: KafkaConfig) -> None:
        self._config = config
        self._servers = str(config.get("bootstrap.servers", ""))
        # What went wrong with connections, filled by poll().
        self._failures: list[KafkaError] = []
        for name in sorted(_NO_PROPERTIES & config.keys()):
            raise ConfigError(f'not a usable Kafka configuration: no such property: "{name}"')
        settings: dict[str, Any] = {**_DEFAULTS, "error_cb": self._failures.append, **config}
        try:
            self._admin = AdminClient(settings, logger=_SILENT)
        except (KafkaException, TypeError, ValueError) as error:
            reason = without_values(_reason(error), config)
            raise ConfigError(f"not a usable Kafka configuration: {reason}") from None
        self._log_in()

    def _log_in(self) -> None:
        """Wait until a broker has let us in.

        librdkafka tries for ever: a wrong password would look like a broker that does not answer.
        """
        # Needs no permission at all.
        answer = self._admin.describe_cluster(request_timeout=REQUEST_TIMEOUT)
        while not wait([answer], timeout=_POLL_INTERVAL).done:
            if refusal := self._refusal():
                raise refusal
        self._wait("the cluster", answer)
        # Let in: what failed on the way there explains nothing that fails later.
        self._failures.clear()

    def _refusal(self) -> BrokerError | None:
        """What the last broker said that did not let us in, where all of them are out of reach."""
        self._admin.poll(0)
        if all(failure.code() != KafkaError._ALL_BROKERS_DOWN for failure in self._failures):
            return None
        for failure in reversed(self._failures):
            text = failure.str()
            reason = without_secrets(_CONNECTION.sub("", text), self._config)
            if failure.code() == KafkaError._AUTHENTICATION:
                return BrokerError(
                    f"access denied at {self._servers}: {reason}; check the user name, the "
                    "password and the mechanism"
                )
            if "certificate verify failed" in text:
                return BrokerError(
                    f"TLS verification failed at {self._servers}: {reason}; check that "
                    "ssl.ca.location holds the authority, and that the certificate is for this host"
                )
            # An alert of the broker's, as for want of a client certificate, is no _SSL error.
            if failure.code() == KafkaError._SSL or "SSL routines:" in text:
                return BrokerError(f"TLS failed at {self._servers}: {reason}")
        return None

    def _last_failure(self) -> str:
        """What a connection last failed of, in brackets; nothing where librdkafka does not say."""
        for failure in reversed(self._failures):
            if failure.code() != KafkaError._ALL_BROKERS_DOWN:
                reason = _CONNECTION.sub("", failure.str())
                return f" ({without_secrets(reason, self._config)})"
        return ""

    def snapshot(
        self, topics: Iterable[str], since: int | None = None, at: int | None = None
    ) -> ClusterSnapshot:
        """The topics alone, without any group."""
        found = self.topics(sorted(topics))
        partitions = {name: topic.partitions for name, topic in found.items()}
        return ClusterSnapshot(
            self.log_ranges(partitions, since, at),
            cluster_id=self.cluster_id(),
            topic_ids=_ids(found),
        )

    def topics(self, topics: list[str]) -> dict[str, _Topic]:
        """Each of the topics that exists."""
        found: dict[str, _Topic] = {}
        if not topics:
            return found
        futures = self._admin.describe_topics(
            TopicCollection(topics), request_timeout=REQUEST_TIMEOUT
        )
        for topic, future in futures.items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                    continue
                raise self._error(f"topic {topic}", error) from error
            found[topic] = _Topic(
                _topic_id(description.topic_id),
                [partition.id for partition in description.partitions],
            )
        return found

    def cluster_id(self) -> str | None:
        """The cluster's own id, which outlives every address of it."""
        description = self._wait(
            "the cluster", self._admin.describe_cluster(request_timeout=REQUEST_TIMEOUT)
        )
        found: str | None = description.cluster_id
        return found

    def log_ranges(
        self, partitions: Mapping[str, list[int]], since: int | None, at: int | None
    ) -> dict[str, dict[int, LogRange]]:
        """The log start and log end of every partition, and its first records since two times."""
        asked = [
            TopicPartition(topic, partition)
            for topic, ids in partitions.items()
            for partition in ids
        ]
        starts = self._offsets(asked, OffsetSpec.earliest())
        ends = self._offsets(asked, OffsetSpec.latest())
        firsts_since, firsts_at = (
            self._offsets(asked, OffsetSpec.for_timestamp(time)) if time is not None else {}
            for time in (since, at)
        )

        def first(firsts: Mapping[tuple[str, int], int], place: tuple[str, int]) -> int | None:
            found = firsts.get(place)
            # -1: no record is that young.
            return ends[place] if found is not None and found < 0 else found

        def log_range(place: tuple[str, int]) -> LogRange:
            return LogRange(
                starts[place], ends[place], first(firsts_since, place), first(firsts_at, place)
            )

        return {
            topic: {partition: log_range((topic, partition)) for partition in ids}
            for topic, ids in partitions.items()
        }

    def _offsets(self, asked: list[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
        if not asked:
            return {}
        futures = self._admin.list_offsets(
            dict.fromkeys(asked, spec), request_timeout=REQUEST_TIMEOUT
        )
        return {
            (place.topic, place.partition): self._wait(
                f"{place.topic}-{place.partition}", future
            ).offset
            for place, future in futures.items()
        }

    def group(self, group: str) -> GroupView:
        """A consumer group: its state, members, and every offset it holds."""
        what = f"group {group}"
        described = self._ask_coordinator(
            what,
            lambda: self._admin.describe_consumer_groups([group], request_timeout=REQUEST_TIMEOUT)[
                group
            ],
        )
        answer = self._ask_coordinator(
            what,
            lambda: self._admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=REQUEST_TIMEOUT
            )[group],
        )
        committed = {
            (place.topic, place.partition): Committed(
                place.offset, place.metadata or "", place.leader_epoch
            )
            for place in answer.topic_partitions
            if place.offset >= 0
        }
        exists, kind = True, _GROUP_TYPES.get(described.type, "unknown")
        if described.state is ConsumerGroupState.DEAD and not committed:
            exists = self._is_listed(group)
            kind = "unknown" if exists else kind
        members = tuple(
            Member(member.client_id, member.host.lstrip("/")) for member in described.members
        )
        state = _GROUP_STATES.get(described.state, "Unknown")
        similar = () if exists else alike(group, self._names_of_groups())
        return GroupView(group, exists, state, kind, members, committed, similar)

    def _ask_coordinator(self, what: str, request: Callable[[], Future[Any]]) -> Any:
        """The answer, asked for again while the group's coordinator moves or loads its offsets.

        librdkafka passes those errors on as they come.
        """
        deadline = time.monotonic() + REQUEST_TIMEOUT
        while True:
            try:
                return request().result()
            except KafkaException as error:
                failed = _kafka_error(error)
                if failed.code() not in _COORDINATOR_AWAY:
                    raise self._error(what, error) from error
                if time.monotonic() + _COORDINATOR_PAUSE > deadline:
                    raise BrokerError(
                        f"{what}: its coordinator was not ready within {REQUEST_TIMEOUT:.0f} s "
                        f"({failed.name()}); try again"
                    ) from error
            time.sleep(_COORDINATOR_PAUSE)

    def _is_listed(self, group: str) -> bool:
        """Whether there is a group of this name that is no consumer group (a share group, say).

        Kafka describes it as it does a group that is not there, and only this request, which is
        deprecated without a successor, lists it. Where it fails, the group passes for not there:
        Kafka itself then refuses to commit for it (GROUP_ID_NOT_FOUND).
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                return bool(self._admin.list_groups(group, timeout=REQUEST_TIMEOUT))
            except KafkaException:
                return False

    def _names_of_groups(self) -> list[str]:
        """The consumer groups that this user may see; none where they cannot be listed."""
        try:
            listed = self._admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT).result()
        except KafkaException:
            return []
        return [group.group_id for group in listed.valid]

    def commit(
        self, group: str, offsets: Mapping[tuple[str, int], Committed]
    ) -> dict[tuple[str, int], Failure]:
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
        future = self._admin.alter_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=REQUEST_TIMEOUT
        )[group]
        try:
            answer = future.result()
        except KafkaException as error:
            failure = _failure(_kafka_error(error), _COMMIT_MEANINGS, self._config)
            return dict.fromkeys(offsets, failure)
        # The request as a whole succeeds even where every partition of it has failed.
        return {
            (place.topic, place.partition): _failure(place.error, _COMMIT_MEANINGS, self._config)
            for place in answer.topic_partitions
            if place.error is not None
        }

    def delete_group(self, group: str) -> Failure | None:
        future = self._admin.delete_consumer_groups([group], request_timeout=REQUEST_TIMEOUT)[group]
        try:
            future.result()
        except KafkaException as error:
            return _failure(_kafka_error(error), _DELETE_MEANINGS, self._config)
        return None

    def _wait(self, what: str, future: Future[Any]) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise self._error(what, error) from error

    def _error(self, what: str, error: KafkaException) -> BrokerError:
        code = error.args[0].code()
        reason = without_secrets(_reason(error), self._config)
        if code in _UNREACHABLE:
            return self._refusal() or BrokerError(
                f"no broker answered at {self._servers} within {REQUEST_TIMEOUT:.0f} s"
                f"{self._last_failure()}; check the address and security.protocol, and that it is "
                "reachable from here"
            )
        if denied := _DENIED.get(code):
            # Describing a group of the `consumer` protocol takes its members' topics as well.
            to = what if what.startswith(denied) else f"each {denied} of {what}"
            return BrokerError(f"{what}: access denied; grant this user DESCRIBE on {to}")
        return BrokerError(f"{what}: {reason}")


def _reason(error: KafkaException | TypeError | ValueError) -> str:
    first = error.args[0] if error.args else error
    text = first.str() if isinstance(first, KafkaError) else str(first)
    return " ".join(text.split())


def _kafka_error(error: KafkaException) -> KafkaError:
    found: KafkaError = error.args[0]
    return found


def _failure(error: KafkaError, meanings: Mapping[int, str], config: KafkaConfig) -> Failure:
    meaning = meanings.get(error.code())
    reason = meaning if meaning is not None else without_secrets(error.str(), config)
    return Failure(error.name(), reason, error.code() in _TRANSIENT)
