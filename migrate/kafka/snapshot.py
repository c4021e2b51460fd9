"""What a cluster says of itself, its topics and its consumer groups; nothing is changed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
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
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec, TopicDescription

from migrate.kafka.client import Connection, kafka_error
from migrate.kafka.config import KafkaConfig
from migrate.kafka.transactions import fates
from migrate.model.cluster_snapshot import (
    BrokerError,
    ClusterSnapshot,
    Committed,
    GroupView,
    LogRange,
    Member,
    Question,
    Transaction,
)
from migrate.model.topic_pattern import TopicPattern
from migrate.model.wording import close_names

# What is answered while a group's coordinator moves to another broker, or loads what it holds.
COORDINATOR_AWAY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)
# How long to wait before it is asked again, in seconds.
_COORDINATOR_PAUSE = 0.25

# A cluster may have many thousand topics, and each name is compared with all of them.
_MOST_MISSPELT = 5

# A topic's id is 16 bytes in base 64: librdkafka takes the ordinary alphabet, Kafka that of URLs.
_NO_TOPIC_ID = "A" * 22
_URL_ALPHABET = str.maketrans("+/", "-_")

_GROUP_TYPES = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}
_GROUP_STATES = {
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}


def take_snapshot(config: KafkaConfig, asked: Question) -> ClusterSnapshot:
    """What the cluster says at this moment.

    Nothing is changed, and a topic or group that is not there is not created by asking for it.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.

    Raises:
        BrokerError: no broker answered in time, or access was denied.
        ConfigError: librdkafka does not take the properties.
    """
    connection = Connection(config)
    taken = snapshot(connection, asked.topics, asked.since, asked.at, asked.pattern)
    taken = _with_transactions(connection, taken, asked.transactions)
    source, target = asked.source_group, asked.target_group
    return replace(
        taken,
        source_group=view(connection, source) if source is not None else None,
        target_group=view(connection, target) if target is not None else None,
    )


# Everything below raises BrokerError where it gets no answer.


def snapshot(
    connection: Connection,
    topics: Iterable[str],
    since: int | None = None,
    at: int | None = None,
    pattern: TopicPattern | None = None,
) -> ClusterSnapshot:
    """The topics alone, without any group."""
    names = set(topics)
    matching = _matching(connection, pattern) - names if pattern is not None else set()
    found = _topics(connection, names | matching)
    partitions = [
        TopicPartition(name, partition.id)
        for name, topic in found.items()
        for partition in topic.partitions
    ]
    logs: dict[str, dict[int, LogRange]] = {name: {} for name in found}
    missing = sorted(names - found.keys())
    for (name, partition), log in _log_ranges(connection, partitions, since, at).items():
        logs[name][partition] = log
    return ClusterSnapshot(
        logs,
        cluster_id=cluster_id(connection),
        topic_ids=_ids(found),
        alike=_alike(connection, missing) if missing else {},
        found=_first_times(connection, [one for one in partitions if one.topic in matching]),
    )


def _with_transactions(
    connection: Connection, taken: ClusterSnapshot, asked: Iterable[Transaction]
) -> ClusterSnapshot:
    """Few users may read the transaction log: that this one may not is told beside the rest."""
    try:
        return replace(taken, transactions=fates(connection, asked))
    except BrokerError as error:
        return replace(taken, transactions_untold=str(error))


def cluster_id(connection: Connection) -> str | None:
    """The cluster's own id, which outlives every address of it."""
    answer = connection.admin.describe_cluster(request_timeout=connection.timeout)
    found: str | None = connection.wait("the cluster", answer).cluster_id
    return found


def topic_ids(connection: Connection, topics: Iterable[str]) -> dict[str, str]:
    """``ClusterSnapshot.topic_ids`` of those that exist."""
    return _ids(_topics(connection, topics))


def _ids(topics: Mapping[str, TopicDescription]) -> dict[str, str]:
    ids = {name: _topic_id(topic.topic_id) for name, topic in topics.items()}
    return {name: topic_id for name, topic_id in ids.items() if topic_id is not None}


def _topics(connection: Connection, topics: Iterable[str]) -> dict[str, TopicDescription]:
    """Each of the topics that exists."""
    found: dict[str, TopicDescription] = {}
    names = sorted(topics)
    if not names:
        return found
    futures = connection.admin.describe_topics(
        TopicCollection(names), request_timeout=connection.timeout
    )
    for topic, future in futures.items():
        try:
            found[topic] = future.result()
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise connection.error(f"topic {topic}", error) from error
    return found


def _matching(connection: Connection, pattern: TopicPattern) -> set[str]:
    """The topics that match, of those that this user may see."""
    try:
        known = connection.admin.list_topics(timeout=connection.timeout).topics
    except KafkaException as error:
        raise connection.error("the topics", error) from error
    return set(pattern.matching(known))


def _first_times(
    connection: Connection, partitions: Sequence[TopicPartition]
) -> dict[str, int | None]:
    """The time of each topic's first record, in milliseconds of the epoch; None where no record
    has one."""
    times: dict[str, int | None] = dict.fromkeys(one.topic for one in partitions)
    for place, found in _listed(connection, partitions, OffsetSpec.for_timestamp(0)).items():
        so_far = times[place[0]]
        if found.timestamp >= 0 and (so_far is None or found.timestamp < so_far):
            times[place[0]] = found.timestamp
    return times


def _alike(connection: Connection, missing: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Of topics that are not there, those they may be misspellings of; none where no topics can be
    listed, or of so many that the names are no slip of the finger."""
    if len(missing) > _MOST_MISSPELT:
        return {}
    try:
        known = connection.admin.list_topics(timeout=connection.timeout).topics
    except KafkaException:
        return {}
    return {name: close_names(name, known) for name in missing}


def _topic_id(uuid: Uuid) -> str | None:
    """As Kafka's own tools print it. Brokers older than 2.8 answer zero: they have none."""
    text = str(uuid)
    return None if text == _NO_TOPIC_ID else text.translate(_URL_ALPHABET)


def _log_ranges(
    connection: Connection, asked: list[TopicPartition], since: int | None, at: int | None
) -> dict[tuple[str, int], LogRange]:
    """The log start and log end of every partition, and its first records since two times."""
    starts = _offsets(connection, asked, OffsetSpec.earliest())
    ends = _offsets(connection, asked, OffsetSpec.latest())
    firsts_since, firsts_at = (
        _offsets(connection, asked, OffsetSpec.for_timestamp(time)) if time is not None else {}
        for time in (since, at)
    )

    def first(firsts: Mapping[tuple[str, int], int], place: tuple[str, int]) -> int | None:
        found = firsts.get(place)
        # -1: no record is that young.
        return ends[place] if found is not None and found < 0 else found

    return {
        place: LogRange(start, ends[place], first(firsts_since, place), first(firsts_at, place))
        for place, start in starts.items()
    }


def _offsets(
    connection: Connection, asked: Sequence[TopicPartition], spec: OffsetSpec
) -> dict[tuple[str, int], int]:
    return {place: found.offset for place, found in _listed(connection, asked, spec).items()}


def _listed(
    connection: Connection, asked: Sequence[TopicPartition], spec: OffsetSpec
) -> dict[tuple[str, int], ListOffsetsResultInfo]:
    if not asked:
        return {}
    futures = connection.admin.list_offsets(
        dict.fromkeys(asked, spec), request_timeout=connection.timeout
    )
    return {
        (place.topic, place.partition): connection.wait(f"{place.topic}-{place.partition}", future)
        for place, future in futures.items()
    }


def view(connection: Connection, group: str) -> GroupView:
    """A consumer group: its state, members, and every offset it holds."""
    admin, timeout = connection.admin, connection.timeout

    def describe() -> Any:
        return _ask_coordinator(
            connection,
            group,
            lambda: admin.describe_consumer_groups([group], request_timeout=timeout)[group],
        )

    described = describe()
    answer = _ask_coordinator(
        connection,
        group,
        lambda: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=timeout
        )[group],
    )
    committed = {
        (place.topic, place.partition): Committed(
            place.offset, place.metadata or "", place.leader_epoch
        )
        for place in answer.topic_partitions
        if place.offset >= 0
    }
    exists = True
    if described.state is ConsumerGroupState.DEAD:
        exists = bool(committed) or _is_listed(connection, group)
        if exists:
            described = describe()  # it may have been born in between
    kind = _GROUP_TYPES.get(described.type, "unknown")
    if exists and described.state is ConsumerGroupState.DEAD:
        # Described as if it were not there. Of other kinds only streams groups have offsets.
        kind = "streams" if committed else "unknown"
    members = tuple(
        Member(
            member.client_id,
            member.host.lstrip("/"),
            frozenset(
                (place.topic, place.partition) for place in member.assignment.topic_partitions
            ),
        )
        for member in described.members
    )
    state = _GROUP_STATES.get(described.state, "Unknown")
    similar = () if exists else close_names(group, _names_of_groups(connection))
    return GroupView(group, exists, state, kind, members, committed, similar)


def _ask_coordinator(connection: Connection, group: str, request: Callable[[], Future[Any]]) -> Any:
    """The answer, asked for again while the group's coordinator moves or loads its offsets.

    librdkafka passes those errors on as they come.
    """
    what = f"group {group}"
    deadline = time.monotonic() + connection.timeout
    while True:
        try:
            return request().result()
        except KafkaException as error:
            failed = kafka_error(error)
            if failed.code() not in COORDINATOR_AWAY:
                raise connection.error(what, error) from error
            if time.monotonic() + _COORDINATOR_PAUSE > deadline:
                raise BrokerError(
                    f"{what}: its coordinator was not ready within {connection.timeout:.0f} s "
                    f"({failed.name()}); try again"
                ) from error
        time.sleep(_COORDINATOR_PAUSE)


def _is_listed(connection: Connection, group: str) -> bool:
    """Whether there is a group of this name that is no consumer group: a share or streams group.

    Kafka describes it as it does a group that is not there, and only this request, which is
    deprecated without a successor, lists it. Where it fails, the group passes for not there:
    Kafka itself then refuses to commit for a share group (GROUP_ID_NOT_FOUND).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return bool(connection.admin.list_groups(group, timeout=connection.timeout))
        except KafkaException:
            return False


def _names_of_groups(connection: Connection) -> list[str]:
    """The consumer groups that this user may see; none where they cannot be listed."""
    try:
        answer = connection.admin.list_consumer_groups(request_timeout=connection.timeout)
        return [group.group_id for group in answer.result().valid]
    except KafkaException:
        return []
