"""Two position sets side by side: pure, no I/O.

The right side is measured from the left: it is ahead where its next offset is the higher one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import Logs, Marker, PositionSet, Start, Unknown, log_of, resolve


class Relation(str, Enum):
    """How the right side stands to the left."""

    SAME = "same"
    AHEAD = "ahead"
    BEHIND = "behind"
    ONLY_LEFT = "only-left"
    ONLY_RIGHT = "only-right"
    UNRESOLVED = "unresolved"  # both know the partition, and one of them no offset


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One topic-partition.

    Attributes:
        left: what the side holds; ``right`` likewise.
        left_offset: the next offset that amounts to, where it can be told: ``earliest`` is the log
            start. ``right_offset`` likewise.
        log: its log range, where a broker was asked and has the partition.
    """

    topic: str
    partition: int
    left: Start
    right: Start
    left_offset: int | None
    right_offset: int | None
    relation: Relation
    log: LogRange | None

    @property
    def difference(self) -> int | None:
        """Right minus left, in offsets."""
        if self.left_offset is None or self.right_offset is None:
            return None
        return self.right_offset - self.left_offset

    @property
    def records_between(self) -> int | None:
        """At most how many records lie between the sides: of these offsets, those the log holds.

        An upper bound, as transaction markers and compaction leave gaps.
        """
        if self.left_offset is None or self.right_offset is None:
            return None
        low, high = sorted((self.left_offset, self.right_offset))
        if self.log is not None:
            low, high = max(low, self.log.start), min(high, self.log.end)
        return max(high - low, 0)


@dataclass(frozen=True, slots=True)
class DiffTotals:
    """Rows counted by relation, and the sums of their differences.

    Ahead and behind are summed apart: together they could cancel out and look like nothing.
    """

    partitions: int
    same: int
    ahead: int
    behind: int
    only_left: int
    only_right: int
    unresolved: int
    offsets_ahead: int
    offsets_behind: int

    def of(self, relation: Relation) -> int:
        """How many rows have this relation."""
        counts = {
            Relation.SAME: self.same,
            Relation.AHEAD: self.ahead,
            Relation.BEHIND: self.behind,
            Relation.ONLY_LEFT: self.only_left,
            Relation.ONLY_RIGHT: self.only_right,
            Relation.UNRESOLVED: self.unresolved,
        }
        return counts[relation]


@dataclass(frozen=True, slots=True)
class Diff:
    """What ``diff`` makes of two sides: rows sorted by topic and partition number.

    ``warnings`` are what would stop a move from a side that is a checkpoint.
    """

    left: PositionSet
    right: PositionSet
    rows: tuple[DiffRow, ...]
    warnings: tuple[str, ...] = ()

    @property
    def totals(self) -> DiffTotals:
        return _count(self.rows)

    @property
    def by_topic(self) -> dict[str, DiffTotals]:
        by_topic = groupby(self.rows, key=lambda row: row.topic)
        return {topic: _count(rows) for topic, rows in by_topic}

    @property
    def differs(self) -> bool:
        """Whether anything is not proven to be the same on both sides."""
        return any(row.relation is not Relation.SAME for row in self.rows)


def diff(left: PositionSet, right: PositionSet, logs: Logs, warnings: tuple[str, ...] = ()) -> Diff:
    """Compare two sides.

    ``earliest`` on both sides is the same; ``latest``, ``committed`` and ``unresolved`` are not
    comparable even with themselves, as each stands for an offset at a moment that is not known.

    Args:
        left: the side measured from.
        right: the side that is ahead or behind.
        logs: the log ranges of what the broker has, or nothing without a broker.
        warnings: what else to know of the sides.
    """
    places = sorted(left.starts.keys() | right.starts.keys())
    return Diff(
        left,
        right,
        tuple(
            _row(
                topic,
                partition,
                left.at(topic, partition),
                right.at(topic, partition),
                log_of(logs, topic, partition),
            )
            for topic, partition in places
        ),
        warnings,
    )


def _row(topic: str, partition: int, left: Start, right: Start, log: LogRange | None) -> DiffRow:
    left_offset, right_offset = resolve(left, log), resolve(right, log)
    relation = _relation(left, right, left_offset, right_offset)
    return DiffRow(topic, partition, left, right, left_offset, right_offset, relation, log)


def _relation(
    left: Start, right: Start, left_offset: int | None, right_offset: int | None
) -> Relation:
    if left is Unknown.ABSENT:
        return Relation.ONLY_RIGHT
    if right is Unknown.ABSENT:
        return Relation.ONLY_LEFT
    if left is right is Marker.EARLIEST:
        return Relation.SAME
    if left_offset is None or right_offset is None:
        return Relation.UNRESOLVED
    if left_offset == right_offset:
        return Relation.SAME
    return Relation.AHEAD if right_offset > left_offset else Relation.BEHIND


def _count(rows: Iterable[DiffRow]) -> DiffTotals:
    rows = tuple(rows)
    counts = Counter(row.relation for row in rows)
    differences = [row.difference or 0 for row in rows]
    return DiffTotals(
        partitions=len(rows),
        same=counts[Relation.SAME],
        ahead=counts[Relation.AHEAD],
        behind=counts[Relation.BEHIND],
        only_left=counts[Relation.ONLY_LEFT],
        only_right=counts[Relation.ONLY_RIGHT],
        unresolved=counts[Relation.UNRESOLVED],
        offsets_ahead=sum(difference for difference in differences if difference > 0),
        offsets_behind=-sum(difference for difference in differences if difference < 0),
    )
