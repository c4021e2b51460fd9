"""The lag of one position in a scan, and what keeps it from being read on, as a broker says it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import Policies
from migrate.model.positions import Position
from migrate.planning import Verdict
from migrate.planning.partition import plan_position

TOPIC_GONE = "topic-gone"
# What keeps a position from being read on: its code, and what is said of so many positions.
OBSTACLES = {
    Verdict.EXPIRED: ("expired", "below the log start: records are already gone"),
    Verdict.BEYOND_END: (
        "beyond-end",
        "beyond the log end: the topic was recreated, or this is another cluster",
    ),
    Verdict.TOPIC_GONE: (TOPIC_GONE, "of topics that the broker does not have"),
    Verdict.PARTITION_GONE: ("partition-gone", "of partitions that the broker does not have"),
}
# A scan allows nothing.
_POLICIES = Policies()


class Lag(NamedTuple):
    """What a broker says of one position; nothing where it is another cluster's.

    Attributes:
        log_start, log_end: its log; None of what the broker does not have.
        records: the log end minus the next offset, an upper bound, as transaction markers and
            compaction leave gaps; None where no next offset is known, or it lies beyond the end.
        obstacle: what keeps it from being read on: ``expired``, ``beyond-end``, ``topic-gone`` or
            ``partition-gone``.
    """

    topic: str = ""
    log_start: int | None = None
    log_end: int | None = None
    records: int | None = None
    obstacle: str | None = None


def topics_to_ask(positions: Iterable[Position]) -> set[str]:
    """The topics of positions whose cluster the state does not name: it is the broker's."""
    return {position.topic for position in positions if position.cluster is None}


def lag_of(position: Position, snapshot: ClusterSnapshot) -> Lag:
    """What a plan would find. A cluster that the state names cannot be told from others: of its
    positions nothing is known.
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
