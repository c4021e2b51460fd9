"""The only room that talks to Kafka: takes a ClusterSnapshot. The only confluent_kafka import."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from migrate.kafka_config import ConfigError
from migrate.snapshot import BrokerError, ClusterSnapshot, Committed, GroupView, LogRange

# How long one request may take, in seconds. A healthy cluster answers in milliseconds; a leader
# election or a slow link takes a few seconds.
REQUEST_TIMEOUT = 15.0

# librdkafka tells a broker that is not there on stderr, again and again; the one line that
# matters is told by BrokerError.
_SILENT = logging.getLogger("migrate.broker.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
_UNREACHABLE = frozenset(
    {
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._RESOLVE,
    }
)

_Result = TypeVar("_Result")


def take_snapshot(
    config: Mapping[str, str], topics: Iterable[str], group: str | None = None
) -> ClusterSnapshot:
    """Ask for the partitions of topics, their log ranges, and what a group has committed.

    Nothing is changed, and a topic that is not there is not created by asking for it.

    Args:
        config: librdkafka properties, ``bootstrap.servers`` among them.
        topics: the topics to ask for.
        group: the consumer group whose committed offsets are wanted.

    Raises:
        BrokerError: no broker answered in time, or access was denied.
        ConfigError: librdkafka does not take the properties.
    """
    broker = _Broker(config)
    partitions = broker.partitions(sorted(topics))
    return ClusterSnapshot(
        broker.log_ranges(partitions),
        source_group=broker.group(group) if group is not None else None,
    )


class _Broker:
    def __init__(self, config: Mapping[str, str]) -> None:
        self._servers = config.get("bootstrap.servers", "")
        try:
            self._admin = AdminClient(dict(config), logger=_SILENT)
        except (KafkaException, ValueError) as error:
            raise ConfigError(f"not a usable Kafka configuration: {_reason(error)}") from error

    def partitions(self, topics: list[str]) -> dict[str, list[int]]:
        """The partitions of each topic that exists."""
        found: dict[str, list[int]] = {}
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
            found[topic] = [partition.id for partition in description.partitions]
        return found

    def log_ranges(self, partitions: Mapping[str, list[int]]) -> dict[str, dict[int, LogRange]]:
        """The log start and log end of every partition."""
        asked = [
            TopicPartition(topic, partition)
            for topic, ids in partitions.items()
            for partition in ids
        ]
        starts = self._offsets(asked, OffsetSpec.earliest())
        ends = self._offsets(asked, OffsetSpec.latest())
        return {
            topic: {
                partition: LogRange(starts[topic, partition], ends[topic, partition])
                for partition in ids
            }
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
        """What a group has committed; nothing where there is no such group."""
        futures = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)], request_timeout=REQUEST_TIMEOUT
        )
        answer = self._wait(f"group {group}", futures[group])
        committed = {
            (place.topic, place.partition): Committed(place.offset, place.metadata or "")
            for place in answer.topic_partitions
            if place.offset >= 0
        }
        return GroupView(group, bool(committed), "unknown", "unknown", (), committed)

    def _wait(self, what: str, future: Future[Any]) -> Any:
        try:
            return future.result()
        except KafkaException as error:
            raise self._error(what, error) from error

    def _error(self, what: str, error: KafkaException) -> BrokerError:
        code = error.args[0].code()
        if code in _UNREACHABLE:
            return BrokerError(
                f"no broker answered at {self._servers} within {REQUEST_TIMEOUT:.0f} s; check the "
                "address, and that it is reachable from here"
            )
        if code in _DENIED:
            return BrokerError(
                f"{what}: access denied; grant this user DESCRIBE on it ({_reason(error)})"
            )
        return BrokerError(f"{what}: {_reason(error)}")


def _reason(error: KafkaException | ValueError) -> str:
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(first, KafkaError) else str(first)
