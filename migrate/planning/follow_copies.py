"""Follow a mirror through a stretch of both logs, record by record. Pure, no I/O.

Unlike in ``match_records``, the stretch can have any length, because only the most recent records
are kept in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from migrate.model.record import Record
from migrate.planning.match_records import RecordIndex

# The first copies in the new log may be copies of later records. This is the maximum number of such
# copies to keep in memory.
_MOST_LATE = 1000


class Follower:
    """The progress of a mirror in the old log, as shown by the copies in the new log.

    Old records are numbered from the first one that was added. Before each call to ``add_copies``,
    enough old records must have been added with ``add_old`` (see ``is_ahead``).

    Attributes:
        leading: with ``is_open``, the number of older records at the start of the new log.
        late: with ``is_open``, copies at the start of the new log that are at least as new as the
            first old record, so their origins may be later records. This list contains only the
            first of these copies; ``late_count`` is the number of all of them.
        is_from_first: with ``is_open``, True if the mirror started at or before the first old
            record.
        missing: the number of old records that the mirror skipped.
        next_copied: the first record that the mirror copied after it had skipped records.
        foreign: the number of runs of copies without an origin. A run counts once a known copy
            follows it. The origin of the run's first copy was also searched among the old records
            that are not in memory. With ``is_open``, copies before a copy of the first record do
            not count, because their origins may be older records.
        trailing: the number of copies without an origin since the last known copy.
        first_unknown: the offset of the first of the ``trailing`` copies.
        repeated: the number of copies of records that already had a copy.
        compared: the number of old records with a copy, excluding records in ``seen``.
        is_start_uncertain: True if the copies may start or restart at a different record than
            assumed, because equal records exist. A record that seems to be missing may then have a
            copy.
        uncertain: the number of records between the lowest and the highest possible origin of the
            last copy.
        oldest: the old log's first record, if the old log has lost older records. Copies before the
            copy of this record may be copies of the lost records.
        undecided: the number of copies that may be copies of lost records (see ``oldest``) but may
            also come from other clients.
    """

    def __init__(
        self,
        records: Sequence[Record] = (),
        *,
        passed: int = 0,
        begin: int | None = None,
        is_open: bool = False,
        seen: range = range(0),
        kept: int = 20_000,
    ) -> None:
        """Start with these old records. The mirror has copied the first ``passed`` of them.

        With ``begin``, the origin of the first copy is the record at this old offset. With
        ``is_open``, the new log may start with older records, or with the copy of any record.
        ``seen`` contains the old offsets that were compared before. ``kept`` is the number of old
        records that stay in memory, in case the mirror goes back over them.
        """
        self._index, self._begin, self._is_open = RecordIndex(), begin, is_open
        self._has_older = is_open  # if so, a mirror that goes back may copy older records first
        self._seen, self._kept = seen, kept
        # True if copies of records before ``begin`` are allowed, because nothing depends on the
        # number of repeated records.
        self._may_precede = begin is not None
        self._first = 0  # the number of the first record in memory
        # For each call of ``add_old``, the number and the offset of its first record. The old log
        # can be reread from these records.
        self._marks: list[tuple[int, int]] = []
        self.leading = self.late_count = 0
        self.late: list[Record] = []
        self.is_from_first = False
        self._state = self._top = 0
        self.missing = self.foreign = self.trailing = self.repeated = self.compared = 0
        self.uncertain = self.undecided = 0
        self.oldest: Record | None = None
        self.next_copied: Record | None = None
        self.is_start_uncertain = False
        self.first_unknown = 0
        self.add_old(records)
        self._state = self._top = passed

    @property
    def is_violated(self) -> bool:
        return bool(self.missing or self.foreign)

    @property
    def has_begun(self) -> bool:
        """With ``is_open``, True if the first copy has been found."""
        return not self._is_open

    def is_ahead(self, number: int) -> bool:
        """Return whether at least ``number`` old records follow the last record that was copied."""
        state = self._state if self._begin is None else self._number_of(self._begin)
        return self._first + len(self._index.records) - state >= number

    def add_old(self, records: Sequence[Record]) -> None:
        """Add the next records of the old log."""
        excess = self._state - self._first - self._kept
        if excess > self._kept:
            kept = self._index.records[excess:]
            self._index = RecordIndex()
            self._index.add(kept)
            self._first += excess
        if records:
            self._marks.append((self._first + len(self._index.records), records[0].offset))
        self._index.add(records)

    def add_copies(self, copies: Sequence[Record]) -> int:
        """Add the next records of the new log; return the number of added records.

        If a copy's origin is not in memory, but the previous copy's origin is, stop before that
        copy. The caller can add the copy with ``add_unknown``.
        """
        for number, copy in enumerate(copies):
            possible = self._index.origins(copy)
            if possible:
                self._add_known([self._first + index for index in possible])
            elif (self.trailing or self._is_open) and not self._is_of_oldest(copy):
                self.add_unknown(copy)
            else:
                if self.oldest is not None and self.trailing > self.oldest.offset:
                    self.foreign += 1  # more than the records that the old log has lost
                return number
        return len(copies)

    def _is_of_oldest(self, copy: Record) -> bool:
        return self.oldest is not None and self.oldest.is_copied_as(copy)

    def add_unknown(self, copy: Record) -> None:
        """Add a copy that has no origin."""
        if not self.trailing:
            self.first_unknown = copy.offset
        self.trailing += 1
        first = self._index.records[0].timestamp if self._index.records else 0
        if self._is_open and copy.timestamp >= first:
            self.late_count += 1
            if len(self.late) < _MOST_LATE:
                self.late.append(copy)

    def _add_known(self, possible: Sequence[int]) -> None:
        if self._is_open:
            self._is_open, self.leading, self.trailing = False, self.trailing, 0
            if not self.leading:
                self._state = self._top = possible[-1]
            self.is_from_first = self._state == 0
        lowest = self._index.records[possible[0] - self._first]
        is_oldest = lowest == self.oldest and self.trailing <= lowest.offset
        if is_oldest or (self._has_older and possible[0] == 0):
            self.undecided += self.trailing
        else:
            self.foreign += bool(self.trailing)
        self.trailing = 0
        if self._begin is not None:
            self._state = self._number_of(self._begin)
            self._top = max(self._top, self._state)
            # If several records are equal, the mirror may have gone back to any of them.
            self._state = possible[max(0, bisect_right(possible, self._top) - 1)]
            start = self._index.records[possible[0] - self._first]
            is_last_equal = start.digest == self._index.records[-1].digest
            self.is_start_uncertain |= len(possible) > 1 or is_last_equal
            self._begin = None
        origin = possible[max(0, bisect_right(possible, self._state) - 1)]
        if origin > self._state:
            self.missing += origin - self._state
            self.next_copied = self._index.records[origin - self._first]
        if origin < self._top:
            self.repeated += 1
        elif self._index.records[origin - self._first].offset not in self._seen:
            self.compared += 1
        self.uncertain = origin - possible[0]
        self._state = origin + 1
        self._top = max(self._top, self._state)

    def go_to(self, origin: int) -> int | None:
        """Handle a copy whose origin is not in memory; ``origin`` is the offset of this origin.

        If the mirror has rewound, return the offset in the old log from which to add records again.
        If it has rewound to a position before its first copies, count this as ``repeated`` and
        return None instead. If it has skipped records, count them as ``missing`` and return None.
        """
        if not self._marks or (origin < self._marks[0][1] and not self._may_precede):
            self.repeated += 1
            return None
        if self._index.records and origin > self._index.records[-1].offset:
            self.missing += max(1, self._first + len(self._index.records) - self._state)
            return None
        first, first_offset = self._marks[0]
        while self._marks and self._marks[-1][1] > origin:
            self._marks.pop()
        if self._marks:
            number, offset = self._marks.pop()
        else:  # between ``origin`` and the first record, there is at most one record per offset
            number, offset = first - (first_offset - origin), origin
        self._index, self._first, self._state, self._begin = RecordIndex(), number, number, origin
        return offset

    @property
    def has_equal(self) -> bool:
        """True if some records in memory are equal, so ``missing`` may be too high."""
        return bool(self._index.equal_times())

    def _number_of(self, offset: int) -> int:
        return self._first + sum(record.offset < offset for record in self._index.records)

    @property
    def newest(self) -> Record | None:
        """The newest of the old log's records in memory."""
        return self._index.records[-1] if self._index.records else None

    def lacking(self, end: int) -> int:
        """Return the number of old records below ``end`` that come after the last copied record."""
        left = self._index.records[max(0, self._state - self._first) :]
        return sum(record.offset < end for record in left)

    @property
    def to_come(self) -> int:
        """The number of records that the mirror, which has gone back, will copy again."""
        return self._top - self._state
