"""Follow a mirror through a stretch of both logs, record by record. Pure, no I/O.

In contrast to ``match_records``, the stretch can be of any length: only the last records are in
memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from migrate.model.record import Record
from migrate.planning.match_records import RecordIndex

# How many copies without an origin are kept.
_MOST_UNKNOWN = 1000
# How many records of the old log are kept, for a mirror that goes back over them.
_MOST_KEPT = 20_000


class Follower:
    """The progress of a mirror in the old log, from the copies in the new log.

    ``add_old`` has to be ahead of ``add_copies``: see ``is_ahead``.

    Attributes:
        leading: with ``is_open``, the number of older records at the start.
        is_from_first: with ``is_open``, whether the first old record is copied first.
        missing: the number of old records that the mirror passed without a copy.
        foreign: the number of copies without an origin that a known copy follows.
        trailing: the number of copies without an origin since the last known copy.
        unknown: the first of these ``trailing`` copies.
        repeated: the number of copies of records that were copied before.
        compared: the number of old records whose copies were found.
        uncertain: how many records before its highest possible origin the last copy may be of.
    """

    def __init__(
        self,
        records: Sequence[Record] = (),
        *,
        passed: int = 0,
        begin: int | None = None,
        is_open: bool = False,
    ) -> None:
        """Begin with these old records, of which the mirror has copied the first ``passed``.

        With ``begin``, the first copy is that of the record at this old offset. With ``is_open``,
        the new log may begin with older records, or with the copy of any record.
        """
        self._index, self._begin, self._is_open = RecordIndex(), begin, is_open
        self.leading = 0
        self.is_from_first = False
        self._index.add(records)
        self._state = self._top = passed
        self.missing = self.foreign = self.trailing = self.repeated = self.compared = 0
        self.uncertain = 0
        self.unknown: list[Record] = []

    @property
    def is_violated(self) -> bool:
        return bool(self.missing or self.foreign)

    def is_ahead(self, number: int) -> bool:
        """Return whether at least ``number`` old records follow the mirror's furthest record."""
        return len(self._index.records) - self._top >= number

    def add_old(self, records: Sequence[Record]) -> None:
        """Add the next records of the old log."""
        excess = self._top - _MOST_KEPT
        if excess > _MOST_KEPT:
            kept = self._index.records[excess:]
            self._index = RecordIndex()
            self._index.add(kept)
            self._state, self._top = max(0, self._state - excess), self._top - excess
        self._index.add(records)

    def add_copies(self, copies: Sequence[Record], is_old_left: bool = False) -> int:
        """Add the next records of the new log; return how many were added.

        If the old log has more records to add, stop at a copy without an origin.
        """
        for number, copy in enumerate(copies):
            possible = self._index.origins(copy)
            if not possible:
                if is_old_left:
                    return number
                self.trailing += 1
                if len(self.unknown) < _MOST_UNKNOWN:
                    self.unknown.append(copy)
                continue
            self.unknown.clear()
            if self._is_open:
                self._is_open, self.leading, self.trailing = False, self.trailing, 0
                if not self.leading:
                    self._state = self._top = possible[-1]
                self.is_from_first = self._state == 0
            self.foreign += self.trailing
            self.trailing = 0
            if self._begin is not None:
                self._state = self._top = self._index_of(self._begin)
                self._begin = None
            origin = possible[max(0, bisect_right(possible, self._state) - 1)]
            self.missing += max(0, origin - self._state)
            if origin < self._top:
                self.repeated += 1
            self.compared += 1
            self.uncertain = origin - possible[0]
            self._state = origin + 1
            self._top = max(self._top, self._state)
        return len(copies)

    def _index_of(self, offset: int) -> int:
        return sum(record.offset < offset for record in self._index.records)

    def lacking(self, end: int) -> int:
        """Return how many old records below an offset the mirror has yet to copy."""
        return sum(record.offset < end for record in self._index.records[self._state :])

    @property
    def to_come(self) -> int:
        """The number of records that the mirror will copy again, because it has gone back."""
        return self._top - self._state
