"""The lag of one position on a broker, and what prevents a reader from continuing there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.model.positions import Position
from migrate.planning import Verdict
from migrate.planning.partition import plan_position

TOPIC_GONE = "topic-gone"
# For each verdict: a code, and the words that follow the number of positions.
OBSTACLES = {
    Verdict.EXPIRED: ("expired", "below the log start: records are already gone"),
    Verdict.BEYOND_END: (
        "beyond-end",
        "beyond the log end: the topic was recreated, or this is another cluster",
    ),
    Verdict.TOPIC_GONE: (TOPIC_GONE, "of topics that the broker does not have"),
    Verdict.PARTITION_GONE: ("partition-gone", "of partitions that the broker does not have"),
}
# The default policies, which allow no loss and no repetition.
_POLICIES = Policies()


class Lag(NamedTuple):
    """The lag of one position; all None if the state names the position's cluster.

    Attributes:
        log_start, log_end: the bounds of the partition's log; None if the broker does not have it.
        records: the log end minus the next offset; None if the next offset is unknown or beyond the
            log end. It is an upper bound of the records, because transaction markers and compaction
            leave gaps.
        obstacle: what prevents a reader from continuing at the position: ``expired``,
            ``beyond-end``, ``topic-gone`` or ``partition-gone``.
    """

    topic: str = ""
    log_start: int | None = None
    log_end: int | None = None
    records: int | None = None
    obstacle: str | None = None


def topics_to_ask(positions: Iterable[Position]) -> set[str]:
    """Return the topics of positions without a named cluster: they are the broker's topics."""
    return {position.topic for position in positions if position.cluster is None}


def lag_of(position: Position, snapshot: ClusterSnapshot) -> Lag:
    """Return the lag that a plan would find.

    If the state names the position's cluster, the result is empty: the cluster may be another one
    than the broker's.
    """
    if position.cluster is not None:
        return Lag(position.topic)
    planned = plan_position(position, snapshot, _POLICIES)
    records = None
    if planned.log_end is not None and planned.reached is not None:
        records = planned.log_end - planned.reached
    obstacle, _ = OBSTACLES.get(planned.verdict, (None, ""))
    return Lag(
        position.topic,
        planned.log_start,
        planned.log_end,
        records if records is None or records >= 0 else None,
        obstacle,
    )
