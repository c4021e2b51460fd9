"""A position beside what a broker holds: how many records are left, and what is no longer there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from migrate.fleet.views import Column, ColumnType
from migrate.planning import Verdict
from migrate.planning.position import plan_position
from migrate.policies import Policies
from migrate.positions import Position
from migrate.snapshot import ClusterSnapshot

TOPIC_GONE = "topic-gone"
# What keeps a position from being read on, and what is said of so many positions.
OBSTACLES = {
    "expired": "below the log start: records are already gone",
    "beyond-end": "beyond the log end: the topic was recreated, or this is another cluster",
    TOPIC_GONE: "of topics that the broker does not have",
    "partition-gone": "of partitions that the broker does not have",
}
_CODES = {
    Verdict.EXPIRED: "expired",
    Verdict.BEYOND_END: "beyond-end",
    Verdict.TOPIC_GONE: TOPIC_GONE,
    Verdict.PARTITION_GONE: "partition-gone",
}
# A scan allows nothing.
_POLICIES = Policies()


class Lag(NamedTuple):
    """What a broker says of one position; nothing where it is another cluster's.

    Attributes:
        log_start, log_end: its log; None of what the broker does not have.
        records: the log end minus the next offset, an upper bound, as transaction markers and
            compaction leave gaps; None where no next offset is known, or it lies beyond the end.
        obstacle: what keeps it from being read on, as a code of ``OBSTACLES``.
    """

    topic: str = ""
    log_start: int | None = None
    log_end: int | None = None
    records: int | None = None
    obstacle: str | None = None


def topics_to_ask(positions: Iterable[Position]) -> set[str]:
    """Those of positions whose cluster the state does not name: the broker's, that is."""
    return {position.topic for position in positions if position.cluster is None}


def lag_of(position: Position, snapshot: ClusterSnapshot) -> Lag:
    """What a plan would find; of a cluster that the state names nothing is known, as it does not
    tell which of them this broker is."""
    if position.cluster is not None:
        return Lag(position.topic)
    planned = plan_position(position, snapshot, _POLICIES)
    records = None
    if planned.log_end is not None and planned.reached is not None:
        records = planned.log_end - planned.reached
    return Lag(
        position.topic,
        planned.log_start,
        planned.log_end,
        records if records is None or records >= 0 else None,
        _CODES.get(planned.verdict),
    )


# What a positions table has more, of a Lag.
LAG_COLUMNS = (
    Column(
        "log_start",
        ColumnType.LONG,
        "partition's log start offset; null where the broker does not have it",
        lambda it: it.log_start,
    ),
    Column(
        "log_end",
        ColumnType.LONG,
        "partition's log end offset; null where the broker does not have it",
        lambda it: it.log_end,
    ),
    Column(
        "lag",
        ColumnType.LONG,
        "log end minus next offset, an upper bound of the records left; null where not known",
        lambda it: it.records,
    ),
    Column(
        "obstacle",
        ColumnType.STRING,
        "why it cannot be read on: expired, beyond-end, topic-gone or partition-gone; else null",
        lambda it: it.obstacle,
    ),
)
