"""A snapshot of a Kafka cluster's logs, groups, and transactions.

``migrate.kafka.snapshot`` takes the snapshot, and ``migrate.planning`` uses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from migrate.model.errors import ServiceError
from migrate.model.topic_pattern import TopicPattern
from migrate.model.wording import counted


class BrokerError(ServiceError):
    """Kafka did not answer, or it denied access."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets of a partition's log.

    Attributes:
        start: the log start offset.
        end: the log end offset. The next record will get this offset.
        first_since: the offset of the first record at or after ``Question.since``, or the log end
            offset if there is no such record; None if ``since`` is None.
        first_at: like ``first_since``, but for ``Question.at``.
        leader_epoch: the current leader epoch of the partition, if the broker reports it. Ranges
            are compared without the epoch, because it changes with each election.
    """

    start: int
    end: int
    first_since: int | None = None
    first_at: int | None = None
    leader_epoch: int | None = field(default=None, compare=False)

    def covers(self, offset: int) -> bool:
        """Return whether a reader can start at an offset (in the log, or at the end of the log)."""
        return self.start <= offset <= self.end


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset.

    Attributes:
        next_offset: the offset of the next record to read.
        metadata: the string that the committing client stored with the offset, up to
            ``offset.metadata.max.bytes`` bytes of UTF-8. The string belongs to the group's client.
        leader_epoch: the leader epoch of the last record that the committing client read, if the
            client stored it. Flink does not store it. A consumer that starts from an offset with an
            epoch first checks with the broker whether the log was truncated (KIP-320;
            SubscriptionState @ kafka-clients 4.1.1).
    """

    next_offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a consumer group.

    Attributes:
        assigned: the partitions that are assigned to the member.
    """

    client_id: str
    host: str
    assigned: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupView:
    """A consumer group, as described by its coordinator.

    Attributes:
        exists: True if the group exists.
        state: Kafka's name for the state: Empty, Stable, Dead, PreparingRebalance, …
        type: classic, consumer, streams (Kafka Streams, with either protocol), or unknown. An
            existing group of type unknown is a share group or a streams group without committed
            offsets.
        alike: the existing groups with a similar name, if the group does not exist.
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


# A transaction as (transactional ID, producer ID, producer epoch).
Transaction = tuple[str, int, int]


class TxnOutcome(str, Enum):
    """The outcome of a transaction, according to the cluster's transaction log."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # in another cluster, or no longer in the transaction log


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The answer to a ``Question``.

    Attributes:
        topics: the log ranges of all partitions of each topic that exists.
        topic_ids: the IDs of the topics; empty for brokers without topic IDs (Kafka < 2.8). A
            recreated topic has a new ID.
        source_group: the consumer group from which to read offsets: the Flink job's group, the
            group to move from, or the group that ``verify`` checks.
        target_group: the consumer group for which to commit offsets.
        alike: for each topic that does not exist, the existing topics with a similar name.
        matched_topics: for each topic that matches ``Question.pattern`` and is not one of
            ``Question.topics``, the time of its first record with a timestamp, in epoch
            milliseconds; None if the topic has no such record.
        transactions: the outcome of each transaction; empty if the outcomes could not be read.
        transactions_error: the reason that the outcomes could not be read; empty if they were read.
        unreachable: for each partition without an answer, the reason, such as a missing leader.
            Empty unless ``Question.partial`` is set. ``topics`` lacks these partitions.
    """

    topics: dict[str, dict[int, LogRange]]
    cluster_id: str | None = None
    topic_ids: dict[str, str] = field(default_factory=dict)
    source_group: GroupView | None = None
    target_group: GroupView | None = None
    alike: dict[str, tuple[str, ...]] = field(default_factory=dict)
    matched_topics: dict[str, int | None] = field(default_factory=dict)
    transactions: Mapping[Transaction, TxnOutcome] = field(default_factory=dict)
    transactions_error: str = ""
    unreachable: Mapping[tuple[str, int], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a cluster, answered by ``migrate.kafka.snapshot.take_snapshot``.

    Attributes:
        source_group, target_group: as in ``ClusterSnapshot``.
        since: the time at which the checkpoint was written, in epoch milliseconds; see
            ``LogRange.first_since``.
        at: the time of ``--unresolved timestamp:T`` or of ``broker:TIME``, in epoch milliseconds;
            see ``LogRange.first_at``.
        pattern: a topic pattern; the log ranges of matching topics are also required. See
            ``ClusterSnapshot.matched_topics``.
        partial: True if an answer for only some of the partitions is sufficient.
    """

    topics: frozenset[str]
    source_group: str | None = None
    target_group: str | None = None
    since: int | None = None
    at: int | None = None
    pattern: TopicPattern | None = None
    transactions: frozenset[Transaction] = frozenset()
    partial: bool = False

    def __str__(self) -> str:
        groups = [group for group in (self.source_group, self.target_group) if group is not None]
        parts = [counted(len(self.topics), "topic"), *(f"group {group}" for group in groups)]
        if self.transactions:
            parts.append(counted(len(self.transactions), "transaction"))
        return ", ".join(parts)
