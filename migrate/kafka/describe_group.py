"""Descriptions of consumer groups: state, members, and committed offsets."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupType,
    KafkaError,
    KafkaException,
)

from migrate.kafka.client import Connection, answer_of, kafka_error
from migrate.model.catalog import (
    COORDINATOR_NOT_READY,
    GROUP_OFFSET_UNREADABLE,
    GROUP_TRANSACTION_OPEN,
)
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView, Member
from migrate.model.errors import UsageError
from migrate.model.offset_metadata import is_of_kafka_streams
from migrate.model.wording import similar_names

_Answer = TypeVar("_Answer")

# In the Kafka protocol, the length of a string is an int16, in UTF-8 bytes.
_LONGEST_NAME = 32_767
# Errors that requests return while a group coordinator is moving to another broker or loading the
# offsets.
COORDINATOR_AWAY = frozenset(
    {
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError._WAIT_COORD,
    }
)
# The number of seconds to wait before resending a request if the coordinator was not ready, or if
# an open transaction may change the offsets.
_PAUSE = 0.25

# StreamsPartitionAssignor.name @ kafka-streams 4.1.1
_STREAMS_ASSIGNOR = "stream"
_GROUP_TYPES = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}
_GROUP_STATES = {
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}


def describe_group(connection: Connection, group: str) -> GroupView:
    """Return the current description and the committed offsets of a consumer group.

    Raises:
        UsageError: Kafka cannot have a group with this name.
        BrokerError: the broker did not answer, or it denied access; or a transaction that contains
            the group's offsets has not ended in time.
    """
    _check_name(group)
    admin, timeout = connection.admin, connection.timeout

    def describe() -> Any:
        return _ask_coordinator(
            connection,
            group,
            lambda: answer_of(
                admin.describe_consumer_groups([group], request_timeout=timeout)[group]
            ),
        )

    description = describe()
    committed = _stable_offsets(connection, group)
    exists = True
    if description.state is ConsumerGroupState.DEAD:
        exists = bool(committed) or _is_listed(connection, group)
        if exists:
            description = describe()  # the group may have been created after the first request
    kind = _GROUP_TYPES.get(description.type, "unknown")
    if exists and description.state is ConsumerGroupState.DEAD:
        # In the answer, share groups and streams groups are DEAD, like missing groups. A share
        # group commits no offsets, so a group with offsets is a streams group.
        kind = "streams" if committed else "unknown"
    elif kind == "classic" and _is_streams_application(group, description, committed):
        kind = "streams"
    members = tuple(
        Member(
            member.client_id,
            member.host.lstrip("/"),
            frozenset(
                (place.topic, place.partition) for place in member.assignment.topic_partitions
            ),
        )
        for member in description.members
    )
    state = _GROUP_STATES.get(description.state, "Unknown")
    alike = () if exists else similar_names(group, _group_names(connection))
    return GroupView(group, exists, state, kind, members, committed, alike)


def _check_name(group: str) -> None:
    """Check that a group name can be sent to Kafka.

    confluent_kafka 2.16.1 crashes (SIGSEGV) if the name cannot be encoded in UTF-8. A NUL character
    would truncate the name, because it ends a string in C.
    """
    try:
        name = group.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the group name {group!r} is not valid UTF-8") from error
    if b"\0" in name:
        raise UsageError(f"the group name {group!r} contains a NUL character")
    if len(name) > _LONGEST_NAME:
        raise UsageError(
            f"the group name {group[:20]}… is {len(name)} bytes long, but Kafka allows at most "
            f"{_LONGEST_NAME} bytes"
        )


def _is_streams_application(
    group: str, description: Any, committed: Mapping[tuple[str, int], Committed]
) -> bool:
    """Return whether a classic protocol group belongs to a Kafka Streams application.

    The members of such a group use the ``stream`` assignor. An empty group is recognized by an
    offset's metadata, or by an offset for a repartition topic. The name of such a topic starts with
    the application ID (the group).
    """
    return (
        description.partition_assignor == _STREAMS_ASSIGNOR
        or any(is_of_kafka_streams(offset.metadata) for offset in committed.values())
        or any(
            topic.startswith(f"{group}-") and topic.endswith("-repartition")
            for topic, _ in committed
        )
    )


def _stable_offsets(connection: Connection, group: str) -> dict[tuple[str, int], Committed]:
    """Wait until no open transaction can change a group's committed offsets, and return them.

    A producer may commit a group's offsets in a transaction. Until the transaction ends, Kafka
    returns the older offsets, or an error if the request requires stable offsets. This function
    waits for each partition separately, because the offsets of a group with busy producers are
    never all stable at the same time.

    Raises:
        BrokerError: a transaction has not ended in time, or ``_ask_coordinator`` raises it.
    """
    timeout = connection.timeout
    deadline = time.monotonic() + timeout
    stable: dict[tuple[str, int], Committed | None] = {}
    while True:
        answer = _ask_coordinator(
            connection, group, lambda: connection.offsets.read(group, stable=True)
        )
        pending = set()
        for partition, entry in answer.items():
            if entry.error and entry.error.code() == KafkaError.UNSTABLE_OFFSET_COMMIT:
                pending.add(partition)
            elif entry.error:
                name = f"{partition[0]}-{partition[1]}"
                raise BrokerError(
                    GROUP_OFFSET_UNREADABLE(group=group, partition=name, reason=entry.error.str())
                )
            else:
                stable[partition] = entry.committed
        pending -= stable.keys()
        if not pending:
            return {
                partition: committed
                for partition, committed in stable.items()
                if committed is not None
            }
        if time.monotonic() + _PAUSE > deadline:
            topic, number = min(pending)
            raise BrokerError(
                GROUP_TRANSACTION_OPEN(
                    group=group,
                    count=len(pending),
                    partition=f"{topic}-{number}",
                    seconds=round(timeout),
                )
            )
        time.sleep(_PAUSE)


def _ask_coordinator(connection: Connection, group: str, request: Callable[[], _Answer]) -> _Answer:
    """Send a request about a group, and resend it until the group coordinator is ready.

    librdkafka does not retry such requests itself.

    Raises:
        BrokerError: the request failed, or the coordinator was not ready in time.
    """
    what = f"group {group}"
    deadline = time.monotonic() + connection.timeout
    while True:
        try:
            return request()
        except KafkaException as exception:
            error = kafka_error(exception)
            if error.code() not in COORDINATOR_AWAY:
                raise connection.error(what, exception) from exception
            if time.monotonic() + _PAUSE > deadline:
                raise BrokerError(
                    COORDINATOR_NOT_READY(
                        group=group, seconds=round(connection.timeout), reason=error.name()
                    )
                ) from exception
        time.sleep(_PAUSE)


def _is_listed(connection: Connection, group: str) -> bool:
    """Return whether a group that Kafka describes as DEAD is an existing share or streams group.

    The deprecated ``list_groups`` is the only call that lists such a group. If the request fails,
    the group counts as missing. This is safe, because Kafka refuses commits for a share group
    (GROUP_ID_NOT_FOUND).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return bool(connection.admin.list_groups(group, timeout=connection.timeout))
        except KafkaException:
            return False


def _group_names(connection: Connection) -> list[str]:
    """Return the consumer groups that this user can see; empty if groups cannot be listed."""
    try:
        answer = connection.admin.list_consumer_groups(request_timeout=connection.timeout)
        return [group.group_id for group in answer_of(answer).valid]
    except KafkaException:
        return []
