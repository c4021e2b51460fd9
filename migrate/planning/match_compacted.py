"""Find a position in a copy of its log, if one of the logs is compacted. Pure, no I/O.

Compaction may have removed any record around the position from either log. The nearest records that
both logs contain determine the place. The place counts only if compaction explains each nearby
record that is in only one log. Compaction explains a record if the record is a tombstone, or if
another nearby record has the same key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from migrate.model.record import Record, Surroundings
from migrate.model.wording import counted
from migrate.planning.match_records import (
    Bound,
    Match,
    match_records,
    match_without_place,
    not_found_match,
)
from migrate.planning.plan import MatchOutcome


def match_compacted(old: Surroundings, new: Surroundings) -> Match:
    """Find the place in the new log that corresponds to a position; see ``match_records``."""
    match = match_records(old, new, is_compacted=True)
    # Records that only the new log contains may be records that were consumed and that the old log
    # has since lost.
    is_certain = match.outcome is MatchOutcome.MATCHED or not match.trailing
    if (match.outcome.is_match and is_certain) or not (old.records and new.records):
        return match
    return _Comparison(old, new).match()


class _Comparison:
    """The records that both logs contain, and the records that only one of them contains.

    Attributes:
        before, after: for the old records before and after the position, the indexes of their
            copies among the new records.
    """

    def __init__(self, old: Surroundings, new: Surroundings) -> None:
        self._old, self._new, self._new_run = old, new, new.records
        self._old_run = (*old.before, *old.after)
        self._by_digest: dict[bytes, list[int]] = defaultdict(list)
        for index, record in enumerate(new.records):
            self._by_digest[record.digest].append(index)
        self.before = [index for record in old.before for index in self._copies(record)]
        self.after = [index for record in old.after for index in self._copies(record)]
        self._last_of_key = {record.key: index for index, record in enumerate(self._old_run)}
        self._last_copy_of_key = {record.key: index for index, record in enumerate(self._new_run)}

    def _copies(self, record: Record) -> list[int]:
        copies = self._by_digest.get(record.digest, ())
        return [index for index in copies if record.is_copied_as(self._new_run[index])]

    def match(self) -> Match:
        """Return the match, based on the nearest records that both logs contain."""
        both = [*self.before, *self.after]
        if not both:
            return match_without_place(self._old, self._new)
        copies = [index for record in self._old_run for index in self._copies(record)]
        if copies != sorted(set(copies)) or any(
            len(self._copies(record)) > 1 for record in self._old_run
        ):
            return not_found_match(
                "some records were copied more than once, or the copies are in a different order"
            )
        if self._old.before and not self.before and not self._new.is_from_start:
            return not_found_match("the records before the position have no copy")
        lacking, tombstones = self._count_lacking(both)
        if lacking and self._new.is_to_end and not self.after:
            return Match(MatchOutcome.LAGGING, records=lacking + tombstones, bound=Bound.AT_MOST)
        if lacking:
            return not_found_match(
                f"the target's log has neither a copy of {counted(lacking, 'record')} around "
                "the position nor a later record with the same key"
            )
        if self._has_unexplained(both):
            return not_found_match(
                "some records around the position in the target's log are not in the job's log, "
                "and no later record has the same key"
            )
        if not self.after and not self._new.is_to_end:
            return not_found_match("the records after the position have no copy")
        return self._place(tombstones)

    def _place(self, tombstones: int) -> Match:
        run, low = self._new_run, self.before[-1] + 1 if self.before else 0
        high = self.after[0] if self.after else len(run)
        if self._is_copied(self._old.position):
            # The record at the position is the next to consume, so all records before its copy were
            # consumed.
            low = high
        elif self._is_copied(self._old.position - 1):
            # The record below the position was the last consumed record, so no record after its
            # copy was consumed.
            high = low
        next_offset = run[low].offset if low < len(run) else self._new.first_unread
        lowest = run[low - 1].offset + 1 if low else None
        outcome, records = MatchOutcome.MATCHED if self.after else MatchOutcome.AT_END, 0
        if high > low:
            # The old log has lost the records between ``low`` and ``high``. The job may have
            # consumed these records, so a start at ``low`` might duplicate them.
            outcome, records = MatchOutcome.AMBIGUOUS, high - low
        if tombstones:
            # Compaction removed these tombstones, or the mirror has not copied them yet. If the
            # mirror copies them later, a reader that starts here reads them.
            outcome, records = MatchOutcome.AMBIGUOUS, records + tombstones
        before, after = len(self.before), len(self.after)
        return Match(
            outcome,
            next_offset,
            before,
            after,
            records,
            bound=Bound.AT_MOST if records else Bound.EXACT,
            lowest=lowest,
            compared=before + after,
            is_searched_to_end=self._new.is_to_end,
        )

    def _is_copied(self, offset: int) -> bool:
        """Return whether the old log has a record at this offset, and the new log has a copy."""
        return any(record.offset == offset and self._copies(record) for record in self._old_run)

    def _count_lacking(self, both: Sequence[int]) -> tuple[int, int]:
        """Count the old records whose lack of a copy is not explained by compaction.

        Compaction of the new log explains a missing copy if a later record with the same key was
        copied. For a tombstone, a later copied record with any key is sufficient. Consumed records
        before the first copied record do not count. Records after the last copied record count only
        if they were consumed, because the mirror might not have copied unconsumed records yet.

        Returns:
            The number of unexplained records, and the number of tombstones after the last copied
            record. Either compaction has removed the copies of these tombstones, or the mirror has
            not copied them.
        """
        copied = [index for index, record in enumerate(self._old_run) if self._copies(record)]
        position = len(self._old.before)
        end = max(copied[-1], position)
        last_of_key = {record.key: index for index, record in enumerate(self._old_run[:end])}
        lacking = tombstones = 0
        place = both[0] - 1
        for index, record in enumerate(self._old_run[:end]):
            if copies := self._copies(record):
                place = copies[-1]
                continue
            if index < copied[0] and index < position:
                continue
            if index > copied[-1]:
                is_gone = self._last_copy_of_key.get(record.key, -1) < 0
                if record.is_tombstone and is_gone and last_of_key[record.key] == index:
                    tombstones += 1
                else:
                    lacking += 1
                continue
            has_later_copy = self._last_copy_of_key.get(record.key, -1) > place
            is_superseded = last_of_key[record.key] > index and (
                last_of_key[record.key] <= copied[-1]
            )
            lacking += not (record.is_tombstone or has_later_copy or is_superseded)
        return lacking, tombstones

    def _has_unexplained(self, both: Sequence[int]) -> bool:
        """Return whether a record is only in the new log, and compaction does not explain this.

        Records are examined only between the first and the last record that both logs contain.
        """
        common = set(both)
        return any(
            index not in common
            and not self._new_run[index].is_tombstone
            and self._new_run[index].key not in self._last_of_key
            for index in range(both[0], both[-1])
        )
