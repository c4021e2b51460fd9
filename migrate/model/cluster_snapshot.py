"""Answers of a Kafka cluster at one moment, as plain values.

``migrate.kafka.snapshot`` takes them; ``migrate.planning`` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from migrate.model.errors import ServiceError
from migrate.model.topic_pattern import TopicPattern
from migrate.model.wording import counted


class BrokerError(ServiceError):
    """Kafka did not answer, or denied access."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets of a partition's log.

    Attributes:
        start: the log start.
        end: the log end: the offset of the next record to be written.
        first_since: the offset of the first record at or after ``Question.since``, or the log end;
            None if no time was asked for.
        first_at: the same for ``Question.at``: the time from which the user starts unresolved
            positions.
    """

    start: int
    end: int
    first_since: int | None = None
    first_at: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset.

    Attributes:
        next_offset: the offset of the next record to read.
        metadata: the committer's text.
        leader_epoch: the epoch of the leader that the last record read came from; None if the
            committer gave none, as Flink and this tool do. With it, a consumer first asks whether
            the log was truncated since (KIP-320; SubscriptionState @ kafka-clients 4.1.1).
    """

    next_offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a consumer group.

    Attributes:
        assigned: its assigned partitions.
    """

    client_id: str
    host: str
    assigned: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group as its coordinator describes it.

    Attributes:
        exists: False for a group that has no members and has never committed.
        state: Kafka's name: Empty, Stable, Dead, PreparingRebalance, …
        type: classic, consumer, streams (Kafka Streams'), or unknown (a share group, or a streams
            group without an offset: this client cannot distinguish them).
        committed: all committed offsets of the group, of all topics.
        alike: for a group that does not exist, the names of groups like it.
    """

    name: str
    exists: bool
    state: str
    type: str
    members: tuple[Member, ...] = ()
    committed: dict[tuple[str, int], Committed] = field(default_factory=dict)
    alike: tuple[str, ...] = ()

    def next_offset(self, topic: str, partition: int) -> int | None:
        """Return the committed offset of a partition, or None."""
        committed = self.committed.get((topic, partition))
        return committed.next_offset if committed is not None else None


# A producer's transaction: its transactional id, the producer's id and its epoch.
Transaction = tuple[str, int, int]


class Fate(str, Enum):
    """The outcome of a transaction, as far as the cluster knows it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # not of this cluster, or forgotten


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answer to a ``Question``.

    Attributes:
        topics: the log ranges of all partitions of each topic that exists.
        topic_ids: Kafka's own id of each topic, which a topic that is created again under the same
            name does not keep; empty for brokers that have none (Kafka < 2.8).
        source_group: Flink's own consumer group.
        target_group: the consumer group to commit offsets for.
        alike: for each topic that does not exist, the names of topics like it.
        matched_topics: the topics that match the pattern and were not asked for by name, each with
            the time of its first record that has one, in milliseconds of the epoch.
        transactions: the outcome of each transaction; empty if it could not be read.
        transactions_untold: why the outcomes could not be read.
    """

    topics: dict[str, dict[int, LogRange]]
    cluster_id: str | None = None
    topic_ids: dict[str, str] = field(default_factory=dict)
    source_group: GroupView | None = None
    target_group: GroupView | None = None
    alike: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matched_topics: dict[str, int | None] = field(default_factory=dict)
    transactions: Mapping[Transaction, Fate] = field(default_factory=dict)
    transactions_untold: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a broker, answered by ``migrate.kafka.snapshot.take_snapshot``.

    Attributes:
        topics: topics whose log ranges are asked for.
        source_group: Flink's own consumer group.
        target_group: the consumer group to commit offsets for.
        since: a time in milliseconds of the epoch (``LogRange.first_since``).
        at: a second time (``LogRange.first_at``).
        pattern: topics that match it are asked for, too (``ClusterSnapshot.matched_topics``).
        transactions: transactions whose outcome is asked for.
    """

    topics: frozenset[str]
    source_group: str | None = None
    target_group: str | None = None
    since: int | None = None
    at: int | None = None
    pattern: TopicPattern | None = None
    transactions: frozenset[Transaction] = frozenset()

    def __str__(self) -> str:
        groups = [group for group in (self.source_group, self.target_group) if group is not None]
        parts = [counted(len(self.topics), "topic"), *(f"group {group}" for group in groups)]
        if self.transactions:
            parts.append(counted(len(self.transactions), "transaction"))
        return ", ".join(parts)
