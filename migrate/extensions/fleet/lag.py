"""Compute a position's lag on a broker, and any obstacle to resuming from this position."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.model.positions import Position
from migrate.planning import Verdict
from migrate.planning.partition import plan_position

TOPIC_GONE = "topic-gone"
UNREACHABLE = "unreachable"
UNREACHABLE_WORDS = "with unknown lag, because the broker did not answer for the partition"
# For each verdict: the code of the obstacle, and the text after a count such as "3 positions".
OBSTACLES = {
    Verdict.EXPIRED: ("expired", "below the log start offset; Kafka has deleted records"),
    Verdict.BEYOND_END: (
        "beyond-end",
        "beyond the log end offset; the topic was recreated, or this is a different cluster",
    ),
    Verdict.TOPIC_GONE: (TOPIC_GONE, "in topics that the broker does not have"),
    Verdict.PARTITION_GONE: ("partition-gone", "in partitions that the broker does not have"),
}
# The default policies, which refuse loss and duplication.
_POLICIES = Policies()


class Lag(NamedTuple):
    """The lag of one position.

    If the checkpoint stores the position's cluster, only ``topic`` is set, because the broker may
    belong to a different cluster.

    Attributes:
        log_start, log_end: the bounds of the partition's log; None if the broker does not have the
            partition.
        records: the log end offset minus the next offset; None if either offset is missing, or if
            the next offset is beyond the log end offset. The log may contain fewer records, because
            transaction markers and compaction leave gaps.
        obstacle: the reason that no reader can resume from the position: ``expired``,
            ``beyond-end``, ``topic-gone``, ``partition-gone``, or ``unreachable``; None without an
            obstacle.
        unknown: the reason that the broker did not answer for the partition; None if the broker
            answered.
    """

    topic: str = ""
    log_start: int | None = None
    log_end: int | None = None
    records: int | None = None
    obstacle: str | None = None
    unknown: str | None = None


def topics_to_ask(positions: Iterable[Position]) -> set[str]:
    """Return the topics for the broker query: the topics of positions without a named cluster."""
    return {position.topic for position in positions if position.cluster is None}


def count_unlisted(positions: Sequence[Position], snapshot: ClusterSnapshot) -> int:
    """Count the partitions with records but without a position, in the topics of the positions.

    A topic can get new partitions after the checkpoint. The lags of the positions do not include
    these partitions.
    """
    listed = {position.topic_partition for position in positions}
    return sum(
        log.end > log.start
        for topic in topics_to_ask(positions)
        for partition, log in (snapshot.topics.get(topic) or {}).items()
        if (topic, partition) not in listed
    )


def lag_of(position: Position, snapshot: ClusterSnapshot) -> Lag:
    """Return the lag of a position, computed as in a plan.

    If the checkpoint stores the position's cluster, the lag is unknown, because the broker may
    belong to a different cluster.
    """
    if position.cluster is not None:
        return Lag(position.topic)
    if reason := snapshot.unreachable.get(position.topic_partition):
        return Lag(position.topic, obstacle=UNREACHABLE, unknown=reason)
    planned = plan_position(position, snapshot, _POLICIES)
    records = None
    if planned.log_end is not None and planned.job_reached is not None:
        records = planned.log_end - planned.job_reached
    obstacle, _ = OBSTACLES.get(planned.verdict, (None, ""))
    return Lag(
        position.topic,
        planned.log_start,
        planned.log_end,
        records if records is None or records >= 0 else None,
        obstacle,
    )
