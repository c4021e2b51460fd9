"""Queries to the user's broker, about log ranges and groups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from decoder.kafka.split import is_legal_topic
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView, Question
from migrate.model.errors import UsageError
from migrate.model.log import timed
from migrate.model.option_names import option
from migrate.model.positions import Logs

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig


def ask_broker(broker: KafkaConfig, question: Question) -> ClusterSnapshot:
    """Take a snapshot of the cluster.

    Raises:
        ConfigError: the properties cannot be used.
        BrokerError: the broker did not answer, or denied access.
    """
    from migrate.kafka import snapshot

    with timed(f"asking {broker['bootstrap.servers']} about {question}"):
        return snapshot.take_snapshot(broker, question)


def ask_logs(
    broker: KafkaConfig | None,
    topics: Iterable[str],
    at: int | None = None,
    since: int | None = None,
) -> Logs:
    """Return the log ranges of the topics on the broker; empty if no broker is set.

    Invalid names are skipped. ``at`` and ``since`` are the times for ``LogRange.first_at`` and
    ``LogRange.first_since``, in epoch milliseconds.

    Raises:
        ConfigError, BrokerError: as in ``ask_broker``.
    """
    possible = valid_topics(topics)
    if broker is None or not possible:
        return {}
    return ask_broker(broker, Question(possible, at=at, since=since)).topics


def valid_topics(topics: Iterable[str]) -> frozenset[str]:
    """Return the valid topic names; one invalid name makes a broker refuse the whole request."""
    return frozenset(filter(is_legal_topic, topics))


def ask_group(broker: KafkaConfig | None, name: str) -> GroupView:
    """Query the broker for a consumer group.

    Raises:
        UsageError: the user did not specify a broker.
        ConfigError: the properties cannot be used.
        BrokerError: the broker did not answer, or denied access.
    """
    if broker is None:
        raise broker_needed(f"group:{name}")
    group = ask_broker(broker, Question(frozenset(), name)).source_group
    assert group is not None  # the question includes a group
    return group


def broker_needed(label: str) -> UsageError:
    """Return the error for a side, an option, or a command that needs a broker."""
    add = option("bootstrap_servers", "HOST:PORT")
    return UsageError(f"{label} requires a broker; add {add}")
