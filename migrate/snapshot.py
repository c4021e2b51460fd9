"""ClusterSnapshot: what a broker said at one moment, as plain values.

Taken by ``migrate.broker``, read by ``migrate.plan``; it holds no connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class BrokerError(Exception):
    """Kafka did not answer, or denied what was asked."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The offsets a partition holds: its log start and its log end (the next to be written)."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """The topics asked for and, where asked, what a consumer group has committed.

    ``topics`` maps each topic that exists to the log ranges of all its partitions; a topic asked
    for and not there is missing from it. ``committed`` maps topic-partitions to committed offsets
    (the next to read) of ``group``; what it has not committed is missing.
    """

    topics: dict[str, dict[int, LogRange]]
    group: str | None = None
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
