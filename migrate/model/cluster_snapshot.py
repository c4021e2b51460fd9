"""ClusterSnapshot: what a broker said at one moment, as plain values.

Taken by ``migrate.kafka.snapshot``, read by ``migrate.planning``; it holds no connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from migrate.model.errors import ServiceError
from migrate.model.topic_pattern import TopicPattern
from migrate.model.wording import counted


class BrokerError(ServiceError):
    """Kafka did not answer, or denied what was asked."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets a partition holds: its log start and its log end (the next to be written).

    ``first_since`` is the offset of the first record at or after the time that was asked for, the
    log end where there is none, and None where no time was asked for. ``first_at`` is the same of a
    second time: that from which the user wants to start what is not resolved.
    """

    start: int
    end: int
    first_since: int | None = None
    first_at: int | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset: the next to read, and what the committer wrote beside it.

    ``leader_epoch`` is the epoch of the leader that the last record read came from, None where the
    committer gave none, as Flink and we don't. With it a consumer that goes on there first asks
    whether the log was cut back since (KIP-320; SubscriptionState @ kafka-clients 4.1.1); without,
    it simply goes on.
    """

    next_offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A consumer that is in a group now.

    Attributes:
        assigned: the partitions that it has been assigned.
    """

    client_id: str
    host: str
    assigned: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group as its coordinator describes it.

    Attributes:
        exists: False for a group that has no members and has never committed.
        state: Kafka's name for it: Empty, Stable, Dead, PreparingRebalance, …
        type: classic or consumer; streams (Kafka Streams'); or unknown (a share group, or a streams
            group that has no offset: the client here cannot tell them apart).
        committed: every offset the group holds, of all topics; what it has none of is missing.
        alike: of a group that is not there, the names of those that it may be a misspelling of.
    """

    name: str
    exists: bool
    state: str
    type: str
    members: tuple[Member, ...] = ()
    committed: dict[tuple[str, int], Committed] = field(default_factory=dict)
    alike: tuple[str, ...] = ()

    def next_offset(self, topic: str, partition: int) -> int | None:
        """What the group would read next, or None where it has committed nothing."""
        held = self.committed.get((topic, partition))
        return held.next_offset if held is not None else None


# A producer's transaction: its transactional id, the producer's id and its epoch.
Transaction = tuple[str, int, int]


class Fate(str, Enum):
    """What became of a transaction, as far as the cluster knows of it."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # never had, of another cluster, or forgotten


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The topics asked for and, where asked, two consumer groups.

    ``topics`` maps each topic that exists to the log ranges of all its partitions; a topic asked
    for and not there is missing from it. ``topic_ids`` holds Kafka's own id of each, which a topic
    created again under the same name does not keep; empty where the brokers are too old to give any
    (Kafka < 2.8). ``source_group`` is Flink's own; ``target_group`` the one that offsets are to be
    committed for. ``alike`` holds, of a topic that is not there, the names of those that it may be
    a misspelling of. ``found`` holds the topics that were not asked for by name and match the
    pattern that was: the time of the first record that has one, in milliseconds of the epoch.
    ``transactions`` holds what became of each that was asked for; where that could not be told it
    is empty, and ``transactions_untold`` says why.
    """

    topics: dict[str, dict[int, LogRange]]
    cluster_id: str | None = None
    topic_ids: dict[str, str] = field(default_factory=dict)
    source_group: GroupView | None = None
    target_group: GroupView | None = None
    alike: dict[str, tuple[str, ...]] = field(default_factory=dict)
    found: dict[str, int | None] = field(default_factory=dict)
    transactions: Mapping[Transaction, Fate] = field(default_factory=dict)
    transactions_untold: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a broker is asked at one moment, by ``broker.take_snapshot``.

    Attributes:
        topics: their partitions and log ranges.
        source_group: Flink's own consumer group.
        target_group: the consumer group that offsets are to be committed for.
        since: milliseconds of the epoch: ask for the first record since then as well.
        at: the same, of a second time (``LogRange.first_at``).
        pattern: ask for the topics that match it as well (``ClusterSnapshot.found``).
        transactions: those of which to tell what became; that it cannot be told is no error.
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
        asked = [counted(len(self.topics), "topic"), *(f"group {group}" for group in groups)]
        if self.transactions:
            asked.append(counted(len(self.transactions), "transaction"))
        return ", ".join(asked)
