"""Snapshots of a cluster, with its ID, topics, log ranges, groups, and transactions.

This module changes nothing in the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec, TopicDescription

from migrate.kafka.client import Connection, answer_of, kafka_error
from migrate.kafka.config import KafkaConfig
from migrate.kafka.describe_group import describe_group
from migrate.kafka.transactions import transaction_outcomes
from migrate.model.cluster_snapshot import BrokerError, ClusterSnapshot, LogRange, Question
from migrate.model.topic_pattern import TopicPattern
from migrate.model.wording import similar_names

# The maximum number of missing topics for which to search for similar names.
_MAX_MISSPELT = 5

# A topic ID is 16 bytes in base64. librdkafka writes it with the standard alphabet, and the Kafka
# tools write it with the URL-safe alphabet.
_NO_TOPIC_ID = "A" * 22
_URL_ALPHABET = str.maketrans("+/", "-_")


def take_snapshot(config: KafkaConfig, question: Question) -> ClusterSnapshot:
    """Take a snapshot of a cluster without creating any topic or group.

    Args:
        config: librdkafka properties, including ``bootstrap.servers``.
        question: the topics, groups, and transactions for the snapshot.

    Raises:
        BrokerError: no broker answered in time, or access was denied.
        ConfigError: librdkafka does not accept the properties.
    """
    connection = Connection(config)
    answer = snapshot_topics(
        connection,
        question.topics,
        question.since,
        question.at,
        question.pattern,
        partial=question.partial,
    )
    outcomes, transactions_error = {}, ""
    try:
        outcomes = transaction_outcomes(connection, question.transactions)
    except BrokerError as error:  # not fatal, because few users have READ on the transaction log
        transactions_error = str(error)
    source, target = question.source_group, question.target_group
    return replace(
        answer,
        transactions=outcomes,
        transactions_error=transactions_error,
        source_group=describe_group(connection, source) if source is not None else None,
        target_group=describe_group(connection, target) if target is not None else None,
    )


# Unless their docstrings say otherwise, the functions below raise BrokerError if the broker does
# not answer or denies access.


def snapshot_topics(
    connection: Connection,
    topics: Iterable[str],
    since: int | None = None,
    at: int | None = None,
    pattern: TopicPattern | None = None,
    *,
    partial: bool = False,
) -> ClusterSnapshot:
    """Return a snapshot without groups and transactions; ``Question`` explains the arguments."""
    names = set(topics)
    matching: set[str] = set()
    if pattern is not None:
        matching = set(pattern.matching(connection.topics())) - names
    descriptions = _describe_topics(connection, names | matching)
    partitions = [
        TopicPartition(name, partition.id)
        for name, topic in descriptions.items()
        for partition in topic.partitions
    ]
    logs: dict[str, dict[int, LogRange]] = {name: {} for name in descriptions}
    missing = sorted(names - descriptions.keys())
    unreachable = _unreachable(connection, partitions) if partial else {}
    partitions = [
        partition
        for partition in partitions
        if (partition.topic, partition.partition) not in unreachable
    ]
    for (name, partition), log in _log_ranges(connection, partitions, since, at).items():
        logs[name][partition] = log
    return ClusterSnapshot(
        logs,
        cluster_id=cluster_id(connection),
        topic_ids=_ids(descriptions),
        alike=_similar_topics(connection, missing) if missing else {},
        matched_topics=_first_times(
            connection, [partition for partition in partitions if partition.topic in matching]
        ),
        unreachable=unreachable,
    )


def cluster_id(connection: Connection) -> str | None:
    """Return the cluster's ID, which stays the same if the broker addresses change."""
    answer = connection.admin.describe_cluster(request_timeout=connection.timeout)
    own_id: str | None = connection.wait("the cluster", answer).cluster_id
    return own_id


def topic_ids(connection: Connection, topics: Iterable[str]) -> dict[str, str]:
    """Return the IDs of the topics that exist (``ClusterSnapshot.topic_ids``)."""
    return _ids(_describe_topics(connection, topics))


def _ids(topics: Mapping[str, TopicDescription]) -> dict[str, str]:
    ids = {name: _topic_id(topic.topic_id) for name, topic in topics.items()}
    return {name: topic_id for name, topic_id in ids.items() if topic_id is not None}


def _topic_id(uuid: Uuid) -> str | None:
    """Format an ID as the Kafka tools do.

    The result is None for the ID zero, which brokers before Kafka 2.8 report.
    """
    text = str(uuid)
    return None if text == _NO_TOPIC_ID else text.translate(_URL_ALPHABET)


def _describe_topics(connection: Connection, topics: Iterable[str]) -> dict[str, TopicDescription]:
    """Return the descriptions of the topics that exist."""
    descriptions: dict[str, TopicDescription] = {}
    names = sorted(topics)
    if not names:
        return descriptions
    futures = connection.admin.describe_topics(
        TopicCollection(names), request_timeout=connection.timeout
    )
    for topic, future in futures.items():
        try:
            descriptions[topic] = answer_of(future)
        except KafkaException as error:
            if kafka_error(error).code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise connection.error(f"topic {topic}", error) from error
    return descriptions


def _similar_topics(connection: Connection, missing: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For each missing topic, return the existing topics with similar names.

    Return an empty result if more than ``_MAX_MISSPELT`` topics are missing, or if the cluster's
    topics cannot be listed.
    """
    if len(missing) > _MAX_MISSPELT:
        return {}
    try:
        known = connection.topics()
    except BrokerError:
        return {}
    return {name: similar_names(name, known) for name in missing}


def _first_times(
    connection: Connection, partitions: Sequence[TopicPartition]
) -> dict[str, int | None]:
    """Return each topic's first timestamp in milliseconds; None if no record has a timestamp."""
    times: dict[str, int | None] = dict.fromkeys(partition.topic for partition in partitions)
    results = list_offsets(connection, dict.fromkeys(partitions, OffsetSpec.for_timestamp(0)))
    for (topic, _), result in results.items():
        earliest = times[topic]
        if result.timestamp >= 0 and (earliest is None or result.timestamp < earliest):
            times[topic] = result.timestamp
    return times


def _log_ranges(
    connection: Connection, partitions: list[TopicPartition], since: int | None, at: int | None
) -> dict[tuple[str, int], LogRange]:
    """Return the log range of each partition; see ``Question`` for the times."""

    def results(spec: OffsetSpec) -> dict[tuple[str, int], ListOffsetsResultInfo]:
        return list_offsets(connection, dict.fromkeys(partitions, spec))

    def offsets(spec: OffsetSpec) -> dict[tuple[str, int], int]:
        return {topic_partition: result.offset for topic_partition, result in results(spec).items()}

    starts, latest = offsets(OffsetSpec.earliest()), results(OffsetSpec.latest())
    ends = {topic_partition: result.offset for topic_partition, result in latest.items()}

    def firsts(time: int | None) -> Mapping[tuple[str, int], int]:
        if time is None:
            return {}
        # Kafka returns -1 if there is no record at or after the time.
        return {
            topic_partition: offset if offset >= 0 else ends[topic_partition]
            for topic_partition, offset in offsets(OffsetSpec.for_timestamp(time)).items()
        }

    since_offsets, at_offsets = firsts(since), firsts(at)
    return {
        key: LogRange(
            start, ends[key], since_offsets.get(key), at_offsets.get(key), _epoch(latest[key])
        )
        for key, start in starts.items()
    }


def log_ends(
    connection: Connection, partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], int]:
    """Return the log end offset of each partition."""
    specs = {TopicPartition(*partition): OffsetSpec.latest() for partition in partitions}
    return {key: result.offset for key, result in list_offsets(connection, specs).items()}


def _epoch(result: ListOffsetsResultInfo) -> int | None:
    """Return a partition's current leader epoch, or None if the broker does not report it."""
    epoch: int | None = result.leader_epoch
    return epoch if epoch is not None and epoch >= 0 else None


def _unreachable(
    connection: Connection, partitions: Sequence[TopicPartition]
) -> dict[tuple[str, int], str]:
    """Return each partition whose broker does not answer, with the reason.

    Raises:
        BrokerError: there are partitions, and none of their brokers answers.
    """
    futures = _ask_offsets(connection, dict.fromkeys(partitions, OffsetSpec.latest()))
    reasons: dict[tuple[str, int], str] = {}
    for partition, future in futures.items():
        try:
            connection.wait(f"{partition.topic}-{partition.partition}", future)
        except BrokerError as error:
            reasons[partition.topic, partition.partition] = str(error)
            last = error
    if reasons and len(reasons) == len(partitions):
        raise last
    return reasons


def list_offsets(
    connection: Connection,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[tuple[str, int], ListOffsetsResultInfo]:
    """Return the offset that each partition's spec selects (-1 if none), with its timestamp."""
    futures = _ask_offsets(connection, specs, isolation)
    return {
        (partition.topic, partition.partition): connection.wait(
            f"{partition.topic}-{partition.partition}", future
        )
        for partition, future in futures.items()
    }


def _ask_offsets(
    connection: Connection,
    specs: Mapping[TopicPartition, OffsetSpec],
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> Mapping[TopicPartition, Future[ListOffsetsResultInfo]]:
    """Query the broker for the offset that each partition's spec selects."""
    if not specs:
        return {}
    asked: Mapping[TopicPartition, Future[ListOffsetsResultInfo]] = connection.admin.list_offsets(
        dict(specs), isolation_level=isolation, request_timeout=connection.timeout
    )
    return asked
