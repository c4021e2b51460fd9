"""Compare two sets of positions, the left side and the right side. Pure, no I/O.

The right side is ahead in a partition if its next offset is higher than the left side's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

from migrate.model.cluster_snapshot import LogRange
from migrate.model.positions import (
    Logs,
    Marker,
    PartitionRow,
    PositionSet,
    Start,
    Unknown,
    log_of,
    resolve,
)
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import ALL_MAYBE_RECREATED, BELOW_LOG_START, MAYBE_RECREATED
from migrate.planning.partition import looks_recreated


class Relation(str, Enum):
    """The relation of the right side to the left side."""

    SAME = "same"
    AHEAD = "ahead"
    BEHIND = "behind"
    ONLY_LEFT = "only-left"
    ONLY_RIGHT = "only-right"
    UNRESOLVED = "unresolved"  # both sides have the partition, but at least one offset is unknown


@dataclass(frozen=True, slots=True)
class DiffRow(PartitionRow):
    """One topic-partition on both sides.

    Attributes:
        left, right: the start on each side.
        left_offset, right_offset: the start's next offset (the log start for ``earliest``), or None
            if unknown.
        log: the partition's log range; None if no broker was queried, or if the broker lacks the
            partition.
    """

    left: Start
    right: Start
    left_offset: int | None
    right_offset: int | None
    relation: Relation
    log: LogRange | None

    @property
    def difference(self) -> int | None:
        """Right minus left, in offsets; None if either offset is unknown."""
        if self.left_offset is None or self.right_offset is None:
            return None
        return self.right_offset - self.left_offset

    @property
    def records_between(self) -> int | None:
        """The upper bound on the number of records between the sides; some offsets have no record.

        If the log range is known, only offsets inside the range count. None if either offset is
        unknown.
        """
        if self.left_offset is None or self.right_offset is None:
            return None
        low, high = sorted((self.left_offset, self.right_offset))
        if self.log is not None:
            low, high = max(low, self.log.start), min(high, self.log.end)
        return max(high - low, 0)

    @property
    def lag(self) -> int | None:
        """The log end offset minus the right side's next offset: an upper bound on the lag.

        None if either offset is unknown, or if the next offset is beyond the log end offset.
        """
        if self.right_offset is None or self.log is None or self.right_offset > self.log.end:
            return None
        return self.log.end - self.right_offset


@dataclass(frozen=True, slots=True)
class DiffTotals:
    """The numbers of rows by relation, and the sums of their differences and lags.

    Differences ahead and behind have separate sums, so that they do not cancel out.

    Attributes:
        lag: the sum of the known lags, or None if no lag is known.
        lag_unknown: the number of the right side's partitions whose lag is unknown.
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
    lag: int | None
    lag_unknown: int

    def of(self, relation: Relation) -> int:
        """Return the number of rows with this relation."""
        count: int = getattr(self, relation.name.lower())
        return count


@dataclass(frozen=True, slots=True)
class Diff:
    """A comparison of two sides, with rows sorted by topic and partition number.

    Attributes:
        warnings: warnings about the sides: findings that would block a move from a checkpoint, a
            group that does not exist or has metadata from its client, a Spark query's output that
            is newer than its positions, positions below the log start offset, or positions that are
            probably from a different cluster or a recreated topic.
    """

    left: PositionSet
    right: PositionSet
    rows: tuple[DiffRow, ...]
    warnings: tuple[str, ...] = ()

    @property
    def totals(self) -> DiffTotals:
        return _totals(self.rows)

    @property
    def by_topic(self) -> dict[str, DiffTotals]:
        by_topic = groupby(self.rows, key=lambda row: row.topic)
        return {topic: _totals(rows) for topic, rows in by_topic}

    @property
    def differs(self) -> bool:
        """True if any row's relation is not ``same``, or if there are no rows to compare."""
        return not self.rows or any(row.relation is not Relation.SAME for row in self.rows)

    @property
    def is_clipped(self) -> bool:
        """True if some of the offsets between the sides are outside the partition's log."""
        return any(row.records_between not in (None, abs(row.difference or 0)) for row in self.rows)


def diff(left: PositionSet, right: PositionSet, logs: Logs, warnings: tuple[str, ...] = ()) -> Diff:
    """Compare two sides.

    ``earliest`` on both sides counts as the same. The markers ``latest``, ``committed``, and
    ``unresolved`` have no offset, so they cannot be compared, even if both sides have the same
    marker.

    ``logs`` is empty if no broker was queried.
    """
    rows = []
    for topic_partition in sorted(left.starts.keys() | right.starts.keys()):
        log = log_of(logs, *topic_partition)
        starts = left.at(*topic_partition), right.at(*topic_partition)
        offsets = resolve(starts[0], log), resolve(starts[1], log)
        rows.append(DiffRow(*topic_partition, *starts, *offsets, _relation(*starts, *offsets), log))
    return Diff(left, right, tuple(rows), warnings)


def recreated_topic_warnings(side: PositionSet, logs: Logs) -> Iterator[WarningText]:
    """Warn if positions are probably not from these logs, as for a wrong cluster.

    This is the case if the log ends before the position, or if the position is from a checkpoint
    and ``looks_recreated`` is true.
    """
    known = {
        f"{topic}-{partition}": (next_offset, log)
        for (topic, partition), next_offset in sorted(side.next_offsets.items())
        if (log := log_of(logs, topic, partition)) is not None
    }
    suspects = [
        name
        for name, (next_offset, log) in known.items()
        if next_offset > log.end
        or (side.written_at is not None and looks_recreated(next_offset, log))
    ]
    if suspects:
        recreated = ALL_MAYBE_RECREATED if len(suspects) == len(known) else MAYBE_RECREATED
        warning = recreated(count=len(suspects), partition=suspects[0])
        yield WarningText(warning.about(side.label))


def deleted_record_warnings(side: PositionSet, logs: Logs) -> Iterator[WarningText]:
    """Warn if positions are below the log start offset."""
    deleted = [
        (f"{topic}-{partition}", next_offset, log.start)
        for (topic, partition), next_offset in sorted(side.next_offsets.items())
        if (log := log_of(logs, topic, partition)) is not None and next_offset < log.start
    ]
    if deleted:
        name, offset, log_start = deleted[0]
        warning = BELOW_LOG_START(
            count=len(deleted), partition=name, offset=offset, log_start=log_start
        )
        yield WarningText(warning.about(side.label))


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


def _totals(rows: Iterable[DiffRow]) -> DiffTotals:
    rows = tuple(rows)
    counts = Counter(row.relation for row in rows)
    lags = [row.lag for row in rows if row.right is not Unknown.ABSENT]
    known = [lag for lag in lags if lag is not None]
    differences = [row.difference or 0 for row in rows]
    return DiffTotals(
        partitions=len(rows),
        **{relation.name.lower(): counts[relation] for relation in Relation},
        offsets_ahead=sum(difference for difference in differences if difference > 0),
        offsets_behind=-sum(difference for difference in differences if difference < 0),
        lag=sum(known) if known else None,
        lag_unknown=len(lags) - len(known),
    )
