"""Find a position in a copy of its log, by the records around the position. Pure, no I/O.

The old log is a partition in the job's cluster. The new log is the partition to which a mirror
copies the old log. A copy is a record in the new log, and its origin is the record in the old log.

A mirror copies a partition's records in order, each with its key, value, timestamp, and headers
(MirrorSourceTask @ connect-mirror 4.1.1). After a mirror is killed and restarted, it goes back and
duplicates some records. The new log is therefore a sequence of passes. A pass copies successive
records of the old log, and starts at or below the end of the previous pass. Retention may have
removed the start of either log. A record and its copy can have different offsets.

If all records differ, each copy has one origin, and the passes are certain. If equal records exist
(with the same key, value, timestamp, and headers), a copy has several possible origins.
``_Alignment`` computes the lowest and the highest origin of each copy over all sequences of passes
that explain the new log. A match must be valid for all of them. A mirror's offset syncs can exclude
some sequences (see ``_Alignment._trusted_syncs``).

If no sequence of passes explains the new log, it cannot be the output of a mirror that copies all
records. The outcome then identifies the violation: records without a copy (``FILTERED``), copies
without an origin (``FOREIGN``), or both (``OTHER_PARTITIONING``).

Most outcomes contain a number of records, such as the records that are not copied yet. This number
is exact if only one sequence of passes is possible, and all records that can change the number were
read. Otherwise, the number is a bound, or the position is refused. Each number has these bounds:

- Records that have not been copied yet: the lower bound counts the records after the highest
  possible origin of a copy. This requires that no earlier copy was deleted or left unread. The
  upper bound counts the records after the lowest possible origin of the last copy. If an earlier
  copy may have been deleted, or if the records may belong to aborted transactions, which are never
  copied, the number has only an upper bound.
- Expired records: the lower bound counts the records before the lowest possible origin of the first
  copy. If only an upper bound is possible, the position is refused.
- Filtered records: the lower bound counts the records between the origins of two copies, minus the
  copies between these two copies. Each of the two copies must have no equal record. There is no
  upper bound.
- Foreign records: the lower bound counts the copies without any origin. There is no upper bound. If
  not all records were searched, the position is refused.
- Duplicated records: the lower bound counts the copies of records that are already copied. The
  upper bound counts all copies after the place, except one copy of each record that certainly comes
  at or after the position. This requires that the new log was read to its end.

If equal records are copied in a different order, the mirror seems to have gone back and to have
copied records again. Each pass after the first therefore counts only if it recopies a unique record
(a record that no other record equals).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise, takewhile

from migrate.model.record import Record, Surroundings
from migrate.planning.plan import MatchOutcome

NO_COPY = "the records around the position have no copy"
APPEND_TIME = (
    "the timestamps in the target's topic are the times at which the copies were written "
    "(message.timestamp.type=LogAppendTime)"
)
EQUAL_RECORDS = "too many equal records around the position"
OTHER_ORDER = (
    "the equal records in the target's log may have a different order than in the job's log"
)
MAY_BEGIN_LATER = (
    "the first records of the target's log equal other records, so this log may start after the "
    "position"
)


class Bound(str, Enum):
    """Whether a number of records is exact, a lower bound, or an upper bound."""

    EXACT = "exactly"
    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True)
class Match:
    """The offset in the new log that corresponds to a position.

    Attributes:
        next_offset: the position in the new log. For ``AMBIGUOUS`` and ``WENT_BACK``, this is the
            first of several places. For outcomes without a place, it is None.
        lowest: the lowest start offset from which a reader reads the same records as from
            ``next_offset``. This is the offset of the last record before the place, plus 1; or None
            if this record was not read.
        before, after: the number of records that match directly before and after the place (in
            compacted logs: the number of records around the place that both logs contain).
        records: for ``AMBIGUOUS`` and ``WENT_BACK``, the number of records that a start at
            ``next_offset`` duplicates; for ``LAGGING`` and ``EXPIRED``, the number of missing
            records; for violations, the number of records that violate the assumption.
        bound: whether ``records`` is exact, a lower bound, or an upper bound.
        reason: for ``NOT_FOUND``, why there is no place.
        compared: the number of records in the old log that were compared with their copies; for
            ``PROVED``, only records before the position count.
        seen: the offsets of the compared records in the old log.
        is_searched_to_end: True if the new log was compared up to its end; otherwise, the log might
            contain further copies of the records.
        unread: how many offsets of the new log, before and after the place, were not read, or were
            not compared because the old log may have lost their records.
        aborted: how many records of aborted transactions the new log has after the place.
        is_by_syncs: True if a mirror's offset syncs show which of several equal records the mirror
            has copied.
        is_doubtful: True if the old log has equal records, and some of them may belong to aborted
            transactions. Without the records of aborted transactions, the place may be different.
        trailing: the number of records without an origin after the last copy.
        is_all_copied: True if the last record of the old log is copied.
        unknown: for a violation, a copy without an origin among the records that were read. For
            ``FILTERED``, the last unknown copy before the first known copy, if the origin of this
            unknown copy may be an older record.
        first_pair, last_pair: of the compared records whose copy is certain, the (old, new) offsets
            of the first and the last one.
    """

    outcome: MatchOutcome
    next_offset: int | None = None
    before: int = 0
    after: int = 0
    records: int = 0
    reason: str = ""
    bound: Bound = Bound.AT_LEAST
    lowest: int | None = field(default=None, compare=False)
    compared: int = field(default=0, compare=False)
    seen: range = field(default=range(0), compare=False)
    is_searched_to_end: bool = False
    unread: int = field(default=0, compare=False)
    aborted: int = field(default=0, compare=False)
    is_by_syncs: bool = field(default=False, compare=False)
    is_doubtful: bool = field(default=False, compare=False)
    trailing: int = field(default=0, compare=False)
    is_all_copied: bool = field(default=False, compare=False)
    unknown: Record | None = field(default=None, compare=False)
    first_pair: tuple[int, int] | None = field(default=None, compare=False)
    last_pair: tuple[int, int] | None = field(default=None, compare=False)

    @property
    def is_sampled(self) -> bool:
        """True if some records were not compared."""
        return bool(self.unread) or not self.is_searched_to_end

    def agrees_with(self, next_offset: int) -> bool:
        """Return whether starts at this offset and at the found offset read the same records."""
        if self.next_offset is None:
            return False
        lowest = self.lowest if self.lowest is not None else self.next_offset
        return lowest <= next_offset <= self.next_offset


def match_records(
    old: Surroundings,
    new: Surroundings,
    *,
    is_compacted: bool = False,
    syncs: Sequence[Sequence[tuple[int, int]]] = (),
) -> Match:
    """Find the place in the new log that corresponds to a position in the old log.

    Args:
        old: the records around the position in the old log.
        new: the records of the new log to search for the place.
        is_compacted: True if the old log may have lost any of its records.
        syncs: the offset syncs (old, new) of each mirror of the partition.
    """
    if not (old.before or old.after):
        if not new.records and new.is_from_start and new.is_to_end:
            return Match(MatchOutcome.AT_END, new.first_unread, is_searched_to_end=True)
        return not_found_match("the job's log has no records to compare")
    if not new.records and new.is_from_start and new.is_to_end:
        if new.first_unread > new.log_start or new.log_start > 0:
            return not_found_match("the target's log no longer contains records")
        bound = Bound.EXACT if old.is_from_start else Bound.AT_LEAST
        return Match(MatchOutcome.LAGGING, records=len(old.before), bound=bound)
    alignment = _Alignment(old, new, is_compacted, syncs)
    if not alignment.is_found:
        return match_without_place(old, new)
    return alignment.violation() or alignment.match()


def not_found_match(reason: str) -> Match:
    return Match(MatchOutcome.NOT_FOUND, reason=reason)


def violation_match(missing: int, foreign: int, bound: Bound = Bound.AT_LEAST) -> Match | None:
    """Return the outcome for records without a copy, and copies without an origin.

    The arguments are the counts of these records and copies. If both are 0, return None.
    """
    missing, foreign = max(0, missing), max(0, foreign)
    if missing and foreign:
        return Match(MatchOutcome.OTHER_PARTITIONING, records=missing + foreign, bound=bound)
    if missing:
        return Match(MatchOutcome.FILTERED, records=missing, bound=bound)
    if foreign:
        return Match(MatchOutcome.FOREIGN, records=foreign, bound=bound)
    return None


class RecordIndex:
    """An index of the old log's records, for finding the possible origins of a copy.

    A record's index is its number in the order of addition, starting at 0.
    """

    def __init__(self) -> None:
        self.records: list[Record] = []
        self._indexes: dict[bytes, list[int]] = defaultdict(list)

    def add(self, records: Sequence[Record]) -> None:
        for record in records:
            self._indexes[record.digest].append(len(self.records))
            self.records.append(record)

    def equal_times(self) -> set[int]:
        """Return the timestamps of the records that are equal to another record."""
        return {
            self.records[indexes[0]].timestamp
            for indexes in self._indexes.values()
            if len(indexes) > 1
        }

    def origins(self, copy: Record) -> list[int]:
        """Return the indexes of all possible origins of ``copy``, in order."""
        indexes = self._indexes.get(copy.digest, [])
        if all(self.records[index].headers == copy.headers for index in indexes):
            return indexes
        return [index for index in indexes if self.records[index].is_copied_as(copy)]


class _Alignment:
    """The possible origins of the new log's records.

    Attributes:
        is_found: True if any record of the old log has a copy.
    """

    def __init__(
        self,
        old: Surroundings,
        new: Surroundings,
        is_compacted: bool,
        syncs: Sequence[Sequence[tuple[int, int]]],
    ) -> None:
        self._old, self._new, self._run = old, new, new.records
        self._position = len(old.before)
        index = RecordIndex()
        index.add(old.records)
        self._has_older = is_compacted or not old.is_from_start or old.log_start > 0
        self._equal_times = index.equal_times()
        self._count = len(index.records)
        self._own = index.records
        origins = [index.origins(copy) for copy in self._run]
        self._known = self._trusted_syncs(origins, syncs)
        for at, origin in self._known.items():
            origins[at] = [origin]
        found = [at for at, possible in enumerate(origins) if possible]
        self.is_found = bool(found)
        if not found:
            return
        # In the new log, records before the first known copy are older than ``old``. Records after
        # the last known copy are newer, or come from another client.
        self._first, self._last = found[0], found[-1]
        self._origins = origins[self._first : self._last + 1]
        self._missing = self._foreign = 0
        self._highest = self._find_highest()
        if not old.is_to_end and self._count - 1 in self._highest:
            # The copies after this one may be copies of records that are newer than ``old``.
            length = self._highest.index(self._count - 1) + 1
            self._last = self._first + length - 1
            self._highest, self._origins = self._highest[:length], self._origins[:length]
        self._lowest = self._find_lowest()

    def _trusted_syncs(
        self, origins: Sequence[Sequence[int]], syncs: Sequence[Sequence[tuple[int, int]]]
    ) -> dict[int, int]:
        """Return the origins of copies according to the mirrors' trustworthy offset syncs.

        If several records are equal, syncs for an earlier copy of the topic or for a different
        target may agree with the records by chance. A mirror's syncs are therefore trusted only if
        all of the newest syncs (as far back as they are in ascending order) agree with the records,
        and at least one of them agrees with a record that has no equal record.
        """
        own = {record.offset: index for index, record in enumerate(self._own)}
        copies = {copy.offset: at for at, copy in enumerate(self._run)}
        known: dict[int, int] = {}
        for pairs in syncs:
            newest = _newest_in_order(pairs)
            there = [(o, n) for o, n in newest if n in copies and self._own[0].offset <= o]
            there = [(o, n) for o, n in there if o <= self._own[-1].offset]
            places = {copies[n]: own.get(o, -1) for o, n in there}
            is_certain = any(
                [*origins[at]] == [origin] and self._own[origin].timestamp not in self._equal_times
                for at, origin in places.items()
            )
            if is_certain and all(origin in origins[at] for at, origin in places.items()):
                known |= places
        return known

    def _find_highest(self) -> list[int]:
        """Return the highest possible origin of each copy; count the violations.

        If the new log starts with copies of records older than ``old``, the mirror continued with
        the first record of ``old``. Otherwise, it may have started with any record of ``old``.
        """
        state = 0 if self._first and self._has_older else self._count
        highest: list[int] = []
        unknown = 0  # the number of copies directly before this one that have no origin
        for possible in self._origins:
            if not possible:
                unknown += 1
                highest.append(state - 1)
                continue
            if unknown and possible[0] == 0 and self._had_older(unknown):
                highest[-unknown:] = [-1] * unknown
            else:
                self._foreign += unknown
            unknown = 0
            place = bisect_right(possible, state) - 1
            origin = possible[max(0, place)]
            self._missing += max(0, origin - state)
            state = origin + 1
            highest.append(origin)
        return highest

    def _find_lowest(self) -> list[int]:
        """Return the lowest possible origin of each copy, for a new log without violations."""
        lowest = list(self._highest)
        least = 0  # the lowest possible origin of the next copy
        for at in range(len(lowest) - 1, -1, -1):
            possible = self._origins[at]
            fitting = [origin for origin in possible if least - 1 <= origin <= self._highest[at]]
            is_known = self._first + at in self._known
            if least <= 0 and not is_known and self._may_be_older(possible):
                fitting.insert(0, -1)
            if fitting:
                least = lowest[at] = fitting[0]
        return lowest

    def _had_older(self, number: int) -> bool:
        """Return whether the old log may have lost this number of records from its start."""
        return self._old.is_from_start and number <= self._old.log_start

    def _may_be_older(self, possible: Sequence[int]) -> bool:
        """Return whether a record older than ``old`` may equal a copy.

        The function assumes this only if two or more records with the copy's timestamp are equal,
        or if the copy equals the first record that was read.
        """
        if not possible or not self._has_older:
            return False
        return possible[0] == 0 or self._own[possible[0]].timestamp in self._equal_times

    def _may_be_newer(self, copy: Record) -> bool:
        """Return whether a record newer than ``old`` may equal a copy."""
        return not self._old.is_to_end and copy.timestamp in self._equal_times

    def violation(self) -> Match | None:
        """Return the violation if the new log cannot be the output of a mirror, else None."""
        foreign = self._foreign
        if self._first and not self._has_older:
            foreign += self._first  # the old log never contained older records
        mirror_end = self._highest[-1] + 1
        trailing = len(self._run) - 1 - self._last
        if trailing and mirror_end < self._position:
            # Another client wrote to the new log before the mirror had copied the consumed records.
            foreign += trailing
        violation = violation_match(self._missing, foreign)
        if violation is None:
            return None
        is_all_old = self._old.is_to_end and not self._has_older
        copies = {copy.digest for copy in self._run}
        has_equal = self._equal_times or (not is_all_old and len(copies) < len(self._run))
        if has_equal:
            # The origin of a copy may be an equal record that is not in ``old``.
            missing = self._count_surely_missing()
            if is_all_old:
                missing = max(missing, min(self._missing, 1))
            violation = violation_match(missing, self._foreign if not is_all_old else foreign)
            if violation is None:
                return not_found_match(EQUAL_RECORDS)
        inner = self._run[self._first : self._last + 1]
        places = zip(inner, self._origins, strict=True)
        unknown = [copy for copy, possible in places if not possible]
        outer = (*self._run[: self._first], *self._run[self._last + 1 :])
        return replace(
            violation,
            trailing=trailing,
            is_doubtful=self._is_doubtful,
            unknown=next(iter([*unknown, *outer]), None) if foreign else self._last_leading(),
        )

    def _last_leading(self) -> Record | None:
        """Return the copy before the first known copy; its origin may be an older record."""
        return self._run[self._first - 1] if self._first and self._has_older else None

    def _count_surely_missing(self) -> int:
        """Return the number of records that certainly have no copy.

        The number is based on copies whose origin is known, because they match exactly one record.
        Between two such copies, the new log should contain a copy of every record that is between
        their two origins.
        """
        copies = Counter(copy.digest for copy in self._run)
        certain = [
            (at, possible[0])
            for at, possible in enumerate(self._origins)
            if len(possible) == 1
            and self._own[possible[0]].timestamp not in self._equal_times
            and copies[self._own[possible[0]].digest] == 1
        ]
        known = [bool(possible) for possible in self._origins]
        return sum(
            max(0, (origin - first_origin) - sum(known[first:at]))
            for (first, first_origin), (at, origin) in pairwise(certain)
        )

    def match(self) -> Match:
        """Return the match for a new log that has no violations."""
        position, lowest, highest = self._position, self._lowest, self._highest
        if not self._first and self._may_be_newer(self._run[0]):
            return not_found_match(EQUAL_RECORDS)
        if not self._first and highest[0] > position:
            if lowest[0] > position and self._new.is_from_start:
                # A later record, which ``old`` lacks, may equal the last record of ``old``.
                is_open = highest[0] + 1 == self._count and not self._old.is_to_end
                is_exact = lowest[0] == highest[0] and not is_open
                bound = Bound.EXACT if is_exact else Bound.AT_LEAST
                return Match(
                    MatchOutcome.EXPIRED,
                    records=lowest[0] - position,
                    bound=bound,
                    is_by_syncs=bool(self._known),
                )
            return not_found_match(MAY_BEGIN_LATER if self._new.is_from_start else EQUAL_RECORDS)
        if self._may_be_reordered():
            return not_found_match(OTHER_ORDER)
        first = next((at for at, origin in enumerate(highest) if origin >= position), None)
        if first is None:
            return self._match_end()
        place = self._first + first
        low, high = lowest[first:], highest[first:]
        if low != high and not self._is_settled_later(low, high):
            return self._ambiguous(place, low, high)
        if all(after == before + 1 for before, after in pairwise(high)):
            return self._make(MatchOutcome.MATCHED, place)
        # Each origin is certain, so each duplicate is certain.
        top = max(high) + 1
        distinct = len({origin for origin in high if origin >= position})
        # A rewound mirror recopies records up to the last record that it had copied before the
        # rewind. Until it has reached this record, the number of duplicates will grow.
        is_exact = high[-1] + 1 == top and self._is_all_known
        return self._make(
            MatchOutcome.WENT_BACK,
            place,
            len(high) - distinct - self._undecided,
            Bound.EXACT if is_exact and not self._undecided else Bound.AT_LEAST,
        )

    def _may_be_reordered(self) -> bool:
        """Return whether a different order of equal records, not a rewind, may explain the copies.

        The copies are split into as few passes as possible. Each pass after the first must recopy a
        record that has no equal record. Otherwise, its copies may be copies of records that earlier
        passes skipped. Each bit of ``state`` is a possible origin of the last copy.
        """
        if not self._equal_times or all(b == a + 1 for a, b in pairwise(self._highest)):
            return False
        copied: set[int] = set()  # the origins of earlier copies, if they are certain
        state, is_certain = 0, True
        for possible in self._origins:
            mask = sum(1 << origin for origin in possible)
            following = (state << 1) & mask
            if state and not following:
                if not is_certain:
                    return True
                is_certain = False
            state = following or mask
            if len(possible) == 1:
                is_certain |= possible[0] in copied
                copied.add(possible[0])
        return not is_certain

    @property
    def _undecided(self) -> int:
        """The number of copies that may be copies of lost records or records of other clients."""
        return self._highest.count(-1)

    @property
    def _is_doubtful(self) -> bool:
        return bool(self._equal_times) and has_gaps(self._own)

    @property
    def _is_all_known(self) -> bool:
        """True if the new log was searched to its end and has no unknown records."""
        is_all_old = self._old.is_to_end and not self._has_older
        return self._new.is_to_end and (is_all_old or self._last + 1 == len(self._run))

    def _match_end(self) -> Match:
        """Return the match if no record at or after the position is copied."""
        place = self._last + 1
        least, most = self._lowest[-1] + 1, self._highest[-1] + 1
        trailing = place < len(self._run)
        if not (self._new.is_to_end or trailing):
            return not_found_match("too many records have the same timestamp")
        top = max(self._highest) + 1  # higher than ``most`` if the mirror has rewound
        if most < self._position <= top:
            # The mirror has copied the consumed records, and will recopy some of them.
            if least == 0 or not self._old.is_from_start:
                return not_found_match("the mirror has rewound, and is copying older records again")
            again = self._position - least
            return self._make(MatchOutcome.WENT_BACK, place, again, Bound.AT_MOST)
        if most < self._position:
            bound = Bound.EXACT if least == most and top == most else Bound.AT_LEAST
            return Match(
                MatchOutcome.LAGGING,
                records=self._position - top,
                bound=bound,
                is_by_syncs=bool(self._known),
            )
        if least < self._position:
            if least == 0 and self._may_be_older(self._origins[-1]):
                return not_found_match(EQUAL_RECORDS)
            missing = self._position - least
            return self._make(MatchOutcome.AMBIGUOUS, place, missing, Bound.AT_MOST)
        return self._make(MatchOutcome.AT_END, place)

    def _is_settled_later(self, low: Sequence[int], high: Sequence[int]) -> bool:
        """Return whether only the last copies are uncertain, and both logs contain more records.

        The last copies must be copies of the last records of ``old``, in order.
        """
        if self._new.is_to_end or self._old.is_to_end or high[-1] + 1 < self._count:
            return False
        certain = max((at for at, origin in enumerate(low) if origin == high[at]), default=-1)
        return low[: certain + 1] == high[: certain + 1] and certain >= 0

    def _ambiguous(self, place: int, low: Sequence[int], high: Sequence[int]) -> Match:
        """Return the match if it is unclear which of several equal records were consumed."""
        if not self._is_all_known or -1 in low:
            return not_found_match(EQUAL_RECORDS)
        certain = {
            self._run[place + at].digest
            for at, origin in enumerate(low)
            if origin >= self._position
        }
        to_come = max(max(high) + 1, self._position) - (low[-1] + 1)
        duplicates = len(low) - len(certain) + to_come
        return self._make(MatchOutcome.AMBIGUOUS, place, duplicates, Bound.AT_MOST)

    def _make(
        self, outcome: MatchOutcome, place: int, records: int = 0, bound: Bound = Bound.EXACT
    ) -> Match:
        run = self._run
        next_offset = run[place].offset if place < len(run) else self._new.first_unread
        before = _count_equal(self._old.before[::-1], run[:place][::-1])
        after = _count_equal(self._own[self._position :], run[place:])
        certain = [
            (self._own[low].offset, run[self._first + at].offset)
            for at, (low, high) in enumerate(zip(self._lowest, self._highest, strict=True))
            if low == high >= 0
        ]
        origins = {origin for origin in self._highest if origin >= 0}
        return Match(
            outcome,
            next_offset,
            before,
            after,
            records,
            bound=bound,
            lowest=run[place - 1].offset + 1 if place else None,
            compared=len(origins),
            seen=range(self._own[min(origins)].offset, self._own[max(origins)].offset + 1),
            is_searched_to_end=self._new.is_to_end,
            unread=self._undecided,
            is_by_syncs=bool(self._known),
            is_doubtful=self._is_doubtful,
            trailing=len(run) - 1 - self._last,
            is_all_copied=self._old.is_to_end and self._highest[-1] + 1 == self._count,
            first_pair=certain[0] if certain else None,
            last_pair=certain[-1] if certain else None,
        )


def _newest_in_order(syncs: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]]:
    """Return the longest run of syncs at the end of the list in which both offsets increase."""
    first = next(
        (
            at
            for at in range(len(syncs) - 1, 0, -1)
            if syncs[at][0] <= syncs[at - 1][0] or syncs[at][1] <= syncs[at - 1][1]
        ),
        0,
    )
    return syncs[first:]


def has_gaps(records: Sequence[Record]) -> bool:
    """Return whether there are offsets without a record between successive records."""
    return any(after.offset > before.offset + 1 for before, after in pairwise(records))


def _count_equal(records: Sequence[Record], copies: Sequence[Record]) -> int:
    pairs = zip(records, copies, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].is_copied_as(pair[1]), pairs))


def match_without_place(old: Surroundings, new: Surroundings) -> Match:
    """Return ``NOT_FOUND``, with the reason why no record of ``old`` has a copy in ``new``."""
    if any(record.is_append_time for record in new.records):
        return not_found_match(APPEND_TIME)
    copies = {copy.digest: copy for copy in new.records}
    for record in (*old.after[:1], *old.before[-1:]):
        if copy := copies.get(record.digest):  # the copy differs only in its headers
            return not_found_match(
                "its copy with the same key, value, and timestamp has different headers"
                + _lacking_headers(record, copy)
            )
    return not_found_match(NO_COPY)


def _lacking_headers(record: Record, copy: Record) -> str:
    names = {name for name, _ in record.headers} - {name for name, _ in copy.headers}
    return f"; the copy lacks {', '.join(sorted(names))}" if names else ""
