"""Find a position in the new log, and test whether the new log is a copy. Pure, no I/O.

The old log is a partition in the job's cluster. The new log is the partition to which a mirror
copies the old log. A copy is a record in the new log, and its origin is the record in the old log.

``find_copy`` is a generator. It yields each range to read, and the caller sends the records of this
range. The caller can therefore run many searches together, and read for many partitions at the same
time.

1. *Around the position.* ``match_records`` searches the new log for the records around the
   position. If these records do not match, longer runs are compared.
2. *From the log start to the position.* ``find_copy`` follows the mirror record by record
   (``Follower``). If there are more than ``Depth.counted`` records, ``find_copy`` compares only
   samples at many offsets. Each sample is a block of records, called an anchor. All anchors must be
   in the new log, in the same order. If two anchors are equally far apart in both logs, and neither
   log has gaps, the records between the anchors are not read and count as ``unread``.
3. *From the position to the log end.* The same as step 2, except that the new log may end with
   records from producers that have moved to the new cluster.

If ``Depth.is_whole`` is true, all records are compared instead of samples.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from migrate.model.option_names import option
from migrate.model.policies import Compare
from migrate.model.record import Read, Record, Side, Surroundings
from migrate.planning.follow_copies import Follower
from migrate.planning.match_compacted import match_compacted
from migrate.planning.match_records import (
    APPEND_TIME,
    EQUAL_RECORDS,
    MAY_BEGIN_LATER,
    OTHER_ORDER,
    Bound,
    Match,
    has_gaps,
    match_records,
    not_found_match,
    violation_match,
)
from migrate.planning.plan import MatchOutcome

# The maximum number of other partitions to search for a record that is missing from the old log.
_MOST_OTHERS = 8

# For a compacted topic, ``Depth.around`` is multiplied by this factor.
_FURTHER = 10

Reading = Generator[Read, Surroundings, Match]
WENT_BACK = "the mirror has rewound, or equal records hide its progress"
STARTS_LATER = (
    "the target's log starts with copies of later records, which the mirror may not copy again"
)
MAY_HAVE_GONE_BACK = (
    "the mirror lags or has rewound; the log start offset in the target's cluster is not 0, so "
    "earlier copies may have been deleted"
)
# The outcomes that depend on the origin of the last copy.
_BY_LAST = (MatchOutcome.AT_END, MatchOutcome.LAGGING, MatchOutcome.WENT_BACK)
_VIOLATIONS = (MatchOutcome.FILTERED, MatchOutcome.FOREIGN, MatchOutcome.OTHER_PARTITIONING)
_Syncs = Sequence[Sequence[tuple[int, int]]]


def no_origin() -> str:
    """Return the reason for ``NOT_FOUND`` if a part of the old log was not searched."""
    return (
        "a record in the target's log matches none of the first records with the same age in the "
        "job's log; "
        f"{option('compare', Compare.ALL)} searches the rest of the log"
    )


@dataclass(frozen=True, slots=True)
class Depth:
    """How many records to read from each partition.

    Attributes:
        around: the number of records on each side of the position.
        searched: the number of records in the new log to search for the position.
        around_at_most, searched_at_most: the limits of ``around`` and ``searched`` in a longer
            search.
        anchors: the number of anchors before the position.
        anchors_after: the number of anchors after the position.
        block: the number of records in an anchor.
        counted: the largest number of records, on each side of the position, that are all compared.
            If there are more records, only samples are compared.
        chunk: the number of records in one read.
        is_whole: True to compare all records.
    """

    around: int = 100
    searched: int = 2000
    around_at_most: int = 20_000
    searched_at_most: int = 100_000
    anchors: int = 24
    anchors_after: int = 6
    block: int = 16
    counted: int = 100_000
    chunk: int = 5000
    is_whole: bool = False


def find_copy(
    position: int,
    depth: Depth,
    *,
    is_compacted: bool = False,
    others: Sequence[int] = (),
    syncs: Callable[[], _Syncs] = tuple,
    may_search_long: Callable[[], bool] = lambda: True,
) -> Reading:
    """Find the offset in the new log that corresponds to a position.

    Args:
        position: the next offset in the old log.
        depth: how many records to read.
        is_compacted: True if Kafka compacts either log.
        others: the other partitions of the topic.
        syncs: a function that returns the offset syncs of each mirror. Syncs show where to search,
            and can show which of several equal records is the origin of a copy.
        may_search_long: a function that returns whether up to ``searched_at_most`` successive
            records may be read.
    """
    own, copies, match = yield from _around(position, depth, is_compacted, syncs, may_search_long)
    if match.next_offset is not None:
        aborted = yield from _count_aborted(match.next_offset, copies, depth)
        match = replace(match, aborted=aborted)
    if is_compacted and match.next_offset is not None:
        own = yield Read(Side.OLD, position, depth.counted, depth.counted)
        copies = yield Read(Side.NEW, match.next_offset, depth.counted, depth.counted)
        aborted, match = match.aborted, match_compacted(own, copies)
        match = replace(match, aborted=aborted, unread=_outside(copies))
        is_all = own.is_from_start and own.is_to_end and not match.unread
        if depth.is_whole and is_all and match.outcome.is_match:
            seen = sum(record.offset in match.seen for record in own.before)
            compared = seen if match.seen else match.before
            return replace(match, outcome=MatchOutcome.PROVED, compared=compared)
    if is_compacted or not own.records:
        return match
    is_doubtful = match.is_doubtful
    if match.next_offset is not None:
        check = _Check(depth, own, copies, match, others)
        match = yield from check.history()
        if match.outcome.is_match or match.outcome.is_lossless:
            match = yield from check.rest(match)
            if match.outcome.is_match and not match.is_by_syncs:
                match = yield from check.last(match)
            if check.starts_later and not match.is_all_copied and match.next_offset is not None:
                return not_found_match(STARTS_LATER)
    if match.outcome in _VIOLATIONS:
        end = yield Read(Side.NEW, copies.log_end, 1, 1)
        if any(copy.is_append_time for copy in end.before):
            return not_found_match(APPEND_TIME)
    return replace(match, is_doubtful=is_doubtful)


def _around(
    position: int,
    depth: Depth,
    is_compacted: bool,
    syncs: Callable[[], _Syncs],
    may_search_long: Callable[[], bool],
) -> Generator[Read, Surroundings, tuple[Surroundings, Surroundings, Match]]:
    """Compare the records around the position; return the records of both logs, and the match."""
    find_place = match_compacted if is_compacted else match_records
    around = depth.around
    if is_compacted:  # records that explain a missing record may be farther away
        around = depth.around_at_most if depth.is_whole else _FURTHER * around
    own = yield Read(Side.OLD, position, around, around)
    time = _nearest_time(own)
    copies = yield Read(Side.NEW, time, around, max(around, depth.searched), is_time=True)
    match = find_place(own, copies)
    if _is_final(match, own, copies) or not may_search_long():
        best = own, copies, match
    else:
        most, searched = depth.around_at_most, depth.searched_at_most
        own = yield Read(Side.OLD, position, most, most)
        hints = [copy for each in syncs() for offset, copy in each if offset <= position]
        best = own, copies, find_place(own, copies)
        for start in (*([max(hints)] if hints else ()), copies.position):
            run = yield Read(Side.NEW, start, most, searched)
            match = find_place(own, run)
            if match.outcome is not MatchOutcome.NOT_FOUND or start == copies.position:
                best = own, run, match
            if match.outcome.is_match:
                break
    own, copies, match = best
    if not is_compacted and _is_open(match):
        by_syncs = match_records(own, copies, syncs=syncs())
        if by_syncs.outcome not in _VIOLATIONS:  # ignore syncs that contradict the records
            match = by_syncs
    if match.unknown is not None and not (own.is_from_start and own.is_to_end):
        # The origin of the copy may be a record that was not read.
        match = yield from _check_unknown(match, match.unknown, own, depth)
    is_equal = match.reason in (EQUAL_RECORDS, MAY_BEGIN_LATER, OTHER_ORDER)
    if match.outcome is MatchOutcome.NOT_FOUND and own.records and not is_equal:
        match = (yield from _match_at_log_ends(own, copies, depth)) or match
    elif match.outcome is MatchOutcome.LAGGING and not (
        is_compacted or (copies.is_from_start and copies.log_start == 0)
    ):
        match = yield from _check_lag(match, own, copies, depth)
    if match.outcome is MatchOutcome.EXPIRED and match.bound is Bound.EXACT and copies.records:
        is_equal = yield from _has_equal_unread(copies.records[0], own, depth)
        match = replace(match, bound=Bound.AT_LEAST) if is_equal else match
    if match.outcome in _BY_LAST and copies.is_to_end and not (is_compacted or match.is_by_syncs):
        match = yield from _check_last(match, own, copies, depth)
    return own, copies, match


def _check_last(match: Match, own: Surroundings, copies: Surroundings, depth: Depth) -> Reading:
    """Return a less certain match if the last copy's origin may be a record that was not read."""
    if not copies.records or (own.is_from_start and own.is_to_end):
        return match
    last = copies.records[-1 - match.trailing]
    if not (yield from _has_equal_unread(last, own, depth)):
        return match
    if match.outcome is MatchOutcome.AT_END or match.bound is Bound.AT_MOST:
        return not_found_match(EQUAL_RECORDS)
    return replace(match, bound=Bound.AT_LEAST)


def _has_equal_unread(
    copy: Record, own: Surroundings, depth: Depth
) -> Generator[Read, Surroundings, bool]:
    """Return whether the origin of a copy may be a record that was not read."""
    known = {record.offset for record in own.records}
    return not known.issuperset((yield from _possible_origins(copy, depth)))


def _possible_origins(copy: Record, depth: Depth) -> Generator[Read, Surroundings, list[int]]:
    """Search the old log from the copy's timestamp on; return the offsets of possible origins."""
    run = yield Read(Side.OLD, max(0, copy.timestamp), 0, depth.searched, is_time=True)
    return [record.offset for record in run.after if record.is_copied_as(copy)]


def _check_unknown(match: Match, unknown: Record, own: Surroundings, depth: Depth) -> Reading:
    """Search for the origin of the copy ``unknown``, and return the violation to report."""
    is_filtered = match.outcome is MatchOutcome.FILTERED
    if is_filtered and own.is_from_start:
        return match  # the origin is a record that the old log has lost
    is_known = yield from _are_known([unknown], depth)
    if is_filtered and is_known:
        return match
    if is_known is False and not is_filtered:
        return replace(match, records=1, bound=Bound.AT_LEAST)
    if is_known is False and own.log_start == 0:
        return Match(MatchOutcome.FOREIGN, records=1)
    return not_found_match("the copies have a different order than the records in the job's log")


def _is_open(match: Match) -> bool:
    """Return whether equal records leave several offsets possible."""
    if match.outcome in (MatchOutcome.LAGGING, MatchOutcome.EXPIRED):
        return match.bound is not Bound.EXACT
    is_equal = match.reason in (EQUAL_RECORDS, MAY_BEGIN_LATER)
    return match.outcome is MatchOutcome.AMBIGUOUS or is_equal


def _first_offset(run: Surroundings) -> int:
    return run.records[0].offset if run.records else run.position


def _outside(run: Surroundings) -> int:
    """Return the number of offsets in a log that were not read."""
    before = 0 if run.is_from_start else _first_offset(run) - run.log_start
    return before + (0 if run.is_to_end else run.log_end - run.first_unread)


def _count_aborted(
    place: int, copies: Surroundings, depth: Depth
) -> Generator[Read, Surroundings, int]:
    """Return the number of records of aborted transactions in the new log, at or after ``place``.

    Only the offsets that were read count. Between the committed records, a committed transaction
    leaves a gap of one offset, and an aborted transaction leaves a larger gap. Without larger gaps,
    the result is 0.
    """
    after = [copy.offset for copy in copies.records if copy.offset >= place]
    if all(last - first <= 2 for first, last in pairwise([place, *after, copies.first_unread])):
        return 0
    run = yield Read(Side.ALL_NEW, place, 0, depth.searched)
    committed = {*after}
    return sum(
        copy.offset < copies.first_unread and copy.offset not in committed for copy in run.after
    )


def _is_final(match: Match, own: Surroundings, copies: Surroundings) -> bool:
    """Return whether a comparison of more records would provide no new evidence."""
    if match.outcome.is_match or match.outcome is MatchOutcome.LAGGING:
        return True
    if match.outcome is MatchOutcome.WENT_BACK and match.bound is Bound.EXACT:
        return True
    is_all_old = own.is_from_start and own.is_to_end
    return is_all_old and copies.is_from_start and copies.is_to_end


def _nearest_time(around: Surroundings) -> int:
    """Return the timestamp of the first record after a position, in epoch milliseconds.

    If there is no such record, return the timestamp of the last record before the position. If
    there is no record at all, return 0.
    """
    nearest = [*around.after[:1], *around.before[-1:]]
    return max(0, nearest[0].timestamp) if nearest else 0


def _match_at_log_ends(
    own: Surroundings, copies: Surroundings, depth: Depth
) -> Generator[Read, Surroundings, Match | None]:
    """Compare the position with the start and the end of the new log.

    Return EXPIRED if the new log starts after the position, LAGGING if the new log ends before the
    position, and None in all other cases.
    """
    if copies.is_from_start and copies.records:
        first = yield from _origin(copies.records[0], depth)
        if first is not None and first > own.position:
            missing = sum(record.offset < first for record in own.after)
            return Match(MatchOutcome.EXPIRED, records=missing) if missing else None
    if copies.is_to_end and copies.records:
        last = yield from _origin(copies.records[-1], depth)
        if last is not None and last < own.position:
            lacking = sum(record.offset > last for record in own.before)
            if not lacking:
                return None
            match = Match(MatchOutcome.LAGGING, records=lacking)
            return (yield from _check_lag(match, own, copies, depth))
    return None


def _check_lag(
    match: Match, own: Surroundings, copies: Surroundings, depth: Depth
) -> Generator[Read, Surroundings, Match]:
    """Return a mirror's lag, or a different match if the mirror may have rewound.

    Before a mirror rewound, it may have copied the records that now seem to be missing. The whole
    new log is therefore searched for a copy of the first one. If the new log contains this copy,
    the mirror has rewound.
    """
    if not match.records:
        return match
    is_copied = yield from _are_known(own.before[-match.records :][:1], depth, Side.NEW)
    if is_copied is None:
        return not_found_match(
            "too many records in the target's log to determine whether the mirror has rewound"
        )
    if is_copied:
        return not_found_match(WENT_BACK)
    if copies.log_start == 0:
        return match
    # Retention may have deleted earlier copies of these records.
    if match.bound is Bound.EXACT:
        return replace(match, bound=Bound.AT_MOST)
    return not_found_match(MAY_HAVE_GONE_BACK)


def _origin(
    copy: Record, depth: Depth, partition: int | None = None
) -> Generator[Read, Surroundings, int | None]:
    """Return the offset of a copy's origin in the old log, or None if no origin is found."""
    time = max(0, copy.timestamp)
    run = yield Read(Side.OLD, time, 0, depth.searched, is_time=True, partition=partition)
    return next((record.offset for record in run.records if record.is_copied_as(copy)), None)


def _are_known(
    copies: Sequence[Record],
    depth: Depth,
    side: Side = Side.OLD,
    partition: int | None = None,
    end: float = math.inf,
) -> Generator[Read, Surroundings, bool | None]:
    """Return whether any of these records is in the log of ``side``, below the offset ``end``.

    Return None if the search reads too many records.
    """
    alike: dict[bytes, list[Record]] = defaultdict(list)
    for copy in copies:
        alike[copy.digest].append(copy)
    is_old = side in (Side.OLD, Side.ALL_OLD)
    at, is_time, read = max(0, min(copy.timestamp for copy in copies)), True, 0
    while True:
        run = yield Read(side, at, 0, depth.chunk, is_time=is_time, partition=partition)
        for record in run.after:
            for other in alike.get(record.digest, ()) if record.offset < end else ():
                if record.is_copied_as(other) if is_old else other.is_copied_as(record):
                    return True
        read += len(run.after)
        if run.is_to_end or not run.after or run.first_unread >= end:
            return False
        if read > depth.counted and not depth.is_whole:
            return None
        at, is_time = run.first_unread, False


@dataclass(frozen=True, slots=True)
class _Anchor:
    """The offsets of one block of records in both logs.

    Attributes:
        is_doubtful: True if a block of old records between this anchor and the next one has no
            certain place in the new log.
    """

    old: int
    new: int
    is_doubtful: bool = False


@dataclass(slots=True)
class _Stretch:
    """A stretch of both logs, and how far it has been read.

    Attributes:
        old_at, new_at: the next offsets to read.
        new_end: the end offset of the stretch in the new log; None for the log end offset.
        read: the number of records that were read in the new log.
    """

    old_at: int
    is_old_left: bool
    new_at: int
    new_end: int | None
    read: int = 0
    is_new_done: bool = False


def _may_be_trusted(span: tuple[_Anchor, _Anchor]) -> bool:
    """Return whether two anchors are equally far apart in both logs, and no block is missing."""
    first, last = span
    return last.old - first.old == last.new - first.new and not first.is_doubtful


class _Check:
    """A test of whether the new log is a copy of the old log, even far from the position.

    Attributes:
        starts_later: True if the origin of the new log's first record comes after the first
            compared record.
    """

    def __init__(
        self,
        depth: Depth,
        own: Surroundings,
        copies: Surroundings,
        match: Match,
        others: Sequence[int],
    ) -> None:
        self._others = others[:_MOST_OTHERS]
        self._depth, self._own, self._copies, self._match = depth, own, copies, match
        self._read = 0  # the number of records read between anchors
        self._is_sampled = False  # whether some records before the position are not read
        # The old offsets that were compared.
        self._seen = match.seen
        # ``history`` does not add records in this range to the number of compared records. The
        # range ends at the log end offset, because a rewound mirror may have copied later records
        # before earlier ones.
        self._not_before = range(match.seen.start, max(match.seen.stop, own.log_end))
        self._kept = 4 * depth.chunk  # the number of old records to keep in memory
        self._is_search_complete = False
        self.starts_later = False
        # The new log may end with copies that have no origin. This is the offset of the first one.
        self._first_trailing: int | None = None
        self._has_unknown = False  # whether the search for a copy's origin has ended early
        self._is_first_known: bool | None = False  # whether the old log has the first copy's origin
        # If either log has gaps, equal distances are no evidence of equal numbers of records.
        self._has_gaps = has_gaps(own.records) or has_gaps(copies.records)

    # -- before ------------------------------------------------------------------------------------

    def history(self) -> Reading:
        """Compare the two logs with each other, up to the records around the position.

        The comparison starts at the start offsets of the logs.
        """
        match = self._match
        if match.first_pair is None:
            copies = self._copies
            left = 0 if copies.is_from_start else _first_offset(copies) - copies.log_start
            return replace(match, unread=left)
        known = _Anchor(*match.first_pair)
        yield from self._look_for_markers()
        start = yield from self._start(known)
        if isinstance(start, Match):
            return start
        self.starts_later = start is not None and start.old > known.old
        is_from_log_start = start is not None and (yield from self._is_first(start))
        if start is not None and start.new < known.new:
            anchors = [start, known]
            distance = max(known.old - start.old, known.new - start.new)
            self._is_sampled = not self._depth.is_whole and distance > self._depth.counted
            if self._is_sampled:
                anchors = yield from self._anchors(start, known)
            # Spans that must be read come first, because they show whether the logs have gaps.
            for first, last in sorted(pairwise(anchors), key=_may_be_trusted):
                if (violation := (yield from self._span(first, last))) is not None:
                    return violation
        if start is None:
            follower = Follower(is_open=True, seen=self._not_before, kept=self._kept)
            own_start, new_start = self._own.log_start, self._copies.log_start
            stretch = _Stretch(own_start, True, new_start, known.new)
            most = None if self._depth.is_whole else self._depth.counted
            is_done = yield from self._follow(follower, stretch, most)
            if self._has_unknown:
                return not_found_match(no_origin())
            foreign = follower.foreign
            is_known_first = yield from self._is_first(known)
            if follower.has_begun and is_known_first:
                self._skip(follower.trailing)  # they may be copies of lost records
            elif follower.has_begun:
                foreign += bool(follower.trailing)
            if own_start == 0 and self._is_first_known is False:
                foreign += bool(follower.leading)  # the old log never contained older records
            is_done &= not (follower.leading and self._is_first_known is not False)
            is_done &= follower.has_begun or is_known_first
            lacking = 0 if follower.is_violated or not is_done else follower.lacking(known.old)
            if violation := (yield from _violation(follower, lacking, foreign, self._depth)):
                return violation
            if not is_done:
                return not_found_match("the start of the job's log was not found in the copy")
            self._count(follower.compared)
            self._skip(follower.undecided)
            if follower.late:
                is_later = yield from _are_known(follower.late, self._depth)
                if is_later:  # the mirror skipped records and copied them later
                    return Match(MatchOutcome.FILTERED, records=1)
                checked = 0 if is_later is None else len(follower.late)
                self._skip(follower.late_count - checked)
            # The old log contained at most one older record for each offset below its log start
            # offset. If there are more copies, other clients may have written them, or the mirror
            # may have recopied records.
            older = follower.leading if follower.has_begun else follower.trailing
            self._skip(older - own_start)
            is_from_log_start = follower.is_from_first or is_known_first
        is_all = self._depth.is_whole and is_from_log_start and not self._match.unread
        is_all &= not self._match.is_by_syncs
        if is_all and self._match.outcome.is_match:
            after = sum(record.offset in self._seen for record in self._own.after)
            self._count(-after)
            return replace(self._match, outcome=MatchOutcome.PROVED)
        return self._match

    def _look_for_markers(self) -> Generator[Read, Surroundings, None]:
        """Determine whether a log's last offset has no record, as after a transaction."""
        own, copies = self._own, self._copies
        if own.is_from_start and own.is_to_end and copies.is_from_start and copies.is_to_end:
            return  # everything is compared
        for side, log_end in ((Side.OLD, own.log_end), (Side.NEW, copies.log_end)):
            run = yield Read(side, log_end, 1, 1)
            self._has_gaps |= bool(run.before) and run.before[-1].offset + 1 < log_end

    def _skip(self, offsets: int) -> None:
        """Add ``offsets`` to the number of unread offsets in the new log."""
        self._match = replace(self._match, unread=self._match.unread + max(0, offsets))

    def _is_first(self, anchor: _Anchor) -> Generator[Read, Surroundings, bool]:
        """Return whether the old log has no record before an anchor."""
        if self._own.is_from_start and self._own.records[0].offset == anchor.old:
            return True
        before = yield Read(Side.OLD, anchor.old, 1, 1)
        return not before.before

    def _start(self, known: _Anchor) -> Generator[Read, Surroundings, _Anchor | Match | None]:
        """Return the anchor of the first record that both logs contain.

        Return a match for a violation, or None if the new log must be read from its start.
        """
        depth, block = self._depth, self._depth.block
        first = yield Read(Side.NEW, self._copies.log_start, 0, block)
        if not first.after or first.after[0].offset >= known.new:
            return known  # the new log starts at this anchor
        old = yield from self._old_block(first.after, known)
        if old is not None:
            return _Anchor(old, first.after[0].offset)
        is_first_complete = self._is_search_complete
        # The new log starts with foreign records, or with records older than all records in the old
        # log.
        begin = yield Read(Side.OLD, self._own.log_start, 0, block)
        if not begin.after:
            return None
        if begin.after[0].offset >= known.old:
            new: int | None = known.new
        else:
            new = yield from self._new_block(begin.after, known)
        if new is None:
            is_complete = is_first_complete and self._is_search_complete
            return violation_match(1, 0) if is_complete else None
        # A mirror that went back may have copied later records before earlier ones.
        self._is_first_known = yield from _are_known(first.after[:1], depth)
        if self._own.log_start == 0 and self._is_first_known is False:
            # The old log never contained older records.
            return violation_match(0, 1)
        if depth.is_whole or known.new - self._copies.log_start <= depth.counted:
            return None  # copies of later records may come before the anchor (see ``history``)
        run = yield Read(Side.NEW, max(0, begin.after[0].timestamp), 0, 1, is_time=True)
        self._skip(new - _first_offset(run))
        return _Anchor(begin.after[0].offset, new)

    def _anchors(
        self, start: _Anchor, known: _Anchor
    ) -> Generator[Read, Surroundings, list[_Anchor]]:
        """Return anchors from ``start`` to ``known``, half of them near ``known``.

        The other half is evenly spaced.
        """
        distance = known.old - start.old
        number = self._depth.anchors
        evenly = {start.old + distance * n // (number // 2 + 1) for n in range(1, number // 2 + 1)}
        closer = {known.old - (distance >> n) for n in range(2, number - number // 2 + 2)}
        anchors, is_doubtful = [known], False
        for old in sorted(evenly | closer, reverse=True):
            if not start.old < old < anchors[-1].old:
                continue
            run = yield Read(Side.OLD, old, 0, self._depth.block)
            self._has_gaps |= has_gaps(run.after)
            block = [record for record in run.after if record.offset < anchors[-1].old]
            # Among equal records, only the offsets of the first and the last are certain.
            edges = [
                at for at, (one, two) in enumerate(pairwise(block)) if one.digest != two.digest
            ]
            if not edges or block[edges[0] + 1].offset <= start.old:
                continue
            block = block[edges[0] :]
            new = yield from self._new_block(block, anchors[-1], 1)
            if new is None or new <= start.new:
                is_doubtful = True
                continue
            anchors.append(_Anchor(block[1].offset, new, is_doubtful))
            is_doubtful = False
        anchors.append(replace(start, is_doubtful=is_doubtful))
        return anchors[::-1]

    def _new_block(
        self, block: Sequence[Record], next_: _Anchor, number: int = 0
    ) -> Generator[Read, Surroundings, int | None]:
        """Return the offset of the copy of the record ``block[number]``, or None if none is found.

        ``block`` contains old records before the anchor ``next_``. After a search,
        ``_is_search_complete`` shows whether every offset of the new log before the anchor was
        searched.
        """
        expected = next_.new - (next_.old - block[0].offset)
        if expected >= self._copies.log_start:
            run = yield Read(Side.NEW, expected, 0, len(block))
            if run.after and run.after[0].offset == expected and _agrees(block, run.after):
                return run.after[number].offset if number < len(run.after) else None
        run = yield from self._read_from_time(Side.NEW, block[0], next_.new)
        self._is_search_complete = run.first_unread >= next_.new or run.is_to_end
        starts = [
            at
            for at, copy in enumerate(run.after)
            if copy.offset < next_.new and block[0].is_copied_as(copy)
        ]
        whole = [at for at in starts if _agrees(block, run.after[at : at + len(block)])]
        if number and not whole and len(starts) > 1:
            return None  # equal records
        places = [at + number for at in whole or starts if at + number < len(run.after)]
        return run.after[places[-1]].offset if places else None

    def _read_from_time(
        self, side: Side, record: Record, end: int
    ) -> Generator[Read, Surroundings, Surroundings]:
        """Start reading at a record's timestamp; stop when the record or ``end`` is reached."""
        run = yield Read(side, max(0, record.timestamp), 0, self._depth.searched, is_time=True)
        while not (
            any(record.digest == other.digest for other in run.after)
            or run.is_to_end
            or run.first_unread >= end
            or len(run.after) >= self._depth.searched_at_most
        ):
            more = yield Read(side, run.first_unread, 0, self._depth.chunk)
            run = replace(more, position=run.position, after=(*run.after, *more.after))
        return run

    def _old_block(
        self, block: Sequence[Record], next_: _Anchor
    ) -> Generator[Read, Surroundings, int | None]:
        """Return the offset of the origin of a block's first copy, or None if no origin is found.

        ``block`` contains records of the new log. Records at or after the anchor ``next_`` are
        ignored.
        """
        block = [copy for copy in block if copy.offset < next_.new]
        expected = next_.old - (next_.new - block[0].offset)
        if expected >= self._own.log_start:
            run = yield Read(Side.OLD, expected, 0, len(block))
            if run.after and run.after[0].offset == expected and _agrees(run.after, block):
                return expected
        run = yield from self._read_from_time(Side.OLD, block[0], next_.old + 1)
        self._is_search_complete = run.first_unread > next_.old or run.is_to_end
        starts = [at for at, record in enumerate(run.after) if record.is_copied_as(block[0])]
        whole = [at for at in starts if _agrees(run.after[at : at + len(block)], block)]
        places = whole or starts
        return run.after[places[0]].offset if places else None

    def _span(self, first: _Anchor, last: _Anchor) -> Generator[Read, Surroundings, Match | None]:
        """Compare the logs between two anchors; return a match if there is a violation."""
        depth = self._depth
        is_short = last.new - first.new <= depth.chunk
        is_trusted = _may_be_trusted((first, last)) and not self._has_gaps
        if self._is_sampled and is_trusted and not is_short:
            self._skip(last.new - first.new)
            return None
        # A mirror that has rewound may have copied the records of the last anchor before the
        # records of the first anchor.
        follower = Follower(begin=first.old, seen=self._not_before, kept=self._kept)
        stretch = _Stretch(min(first.old, last.old), True, first.new, last.new)
        most = None if depth.is_whole else depth.counted - self._read
        is_done = yield from self._follow(follower, stretch, most)
        self._read += stretch.read
        if self._has_unknown:
            return not_found_match(no_origin())
        if not is_done and not follower.is_violated:
            self._skip(max(1, last.new - stretch.new_at))
            if not first.is_doubtful:
                return None
            return not_found_match("a part of the job's log was not found in the copy")
        self._count(follower.compared)
        self._skip(follower.undecided)
        lacking = 0 if follower.is_violated else follower.lacking(last.old)
        foreign = follower.foreign + bool(follower.trailing)
        if 0 < follower.trailing <= self._own.log_start and (yield from self._is_first(last)):
            self._skip(follower.trailing)  # they may be copies of lost records
            foreign = follower.foreign
        return (yield from _violation(follower, lacking, foreign, self._depth))

    def _count(self, compared: int) -> None:
        """Add ``compared`` to the number of compared records, unless the outcome is ``PROVED``."""
        if self._match.outcome is MatchOutcome.PROVED:
            return
        self._match = replace(self._match, compared=self._match.compared + compared)

    # -- after -------------------------------------------------------------------------------------

    def rest(self, match: Match) -> Reading:
        """Compare the logs up to their end offsets; ``match`` is the result of ``history``."""
        self._match = match
        own, copies = self._own, self._copies
        is_all_known = copies.is_to_end and not (match.trailing and not own.is_to_end)
        if is_all_known and match.trailing:
            first = copies.records[-match.trailing].offset
            return (yield from self._check_trailing(first, match.trailing, own.records[-1]))
        if is_all_known:
            return match
        if match.outcome.is_lossless or match.last_pair is None:
            self._skip(copies.log_end - copies.first_unread)
            return self._match
        known = _Anchor(*match.last_pair)
        left = copies.log_end - known.new
        is_sampled = not self._depth.is_whole and left > self._depth.counted
        if is_sampled and not self._has_gaps:
            is_equal = yield from self._is_rest_equal(known)
            if is_equal:
                self._skip(copies.log_end - copies.first_unread)
                return replace(self._match, is_searched_to_end=False)
        records = own.records
        passed = sum(record.offset <= known.old for record in records)
        follower = Follower(records, passed=passed, seen=self._seen, kept=self._kept)
        stretch = _Stretch(own.first_unread, not own.is_to_end, known.new + 1, None)
        most = self._depth.counted if is_sampled else None
        is_done = yield from self._follow(follower, stretch, most)
        if self._has_unknown:
            return not_found_match(no_origin())
        self._count(follower.compared)
        self._skip(follower.undecided)
        if not is_done:
            self._skip(max(1, copies.log_end - stretch.new_at))
        match = replace(self._match, is_searched_to_end=is_done)
        is_followed = is_done or follower.is_violated or follower.repeated
        is_cut = not (is_followed or self._has_gaps)
        if is_cut and (violation := (yield from self._compare_ends(known))):
            return violation
        if violation := (yield from _violation(follower, 0, follower.foreign, self._depth)):
            return violation
        if follower.repeated:
            is_known = match.is_searched_to_end and not follower.trailing
            is_open = follower.to_come or follower.uncertain or follower.undecided
            is_exact = is_known and not is_open
            return replace(
                match,
                outcome=MatchOutcome.WENT_BACK,
                records=follower.repeated,
                bound=Bound.EXACT if is_exact else Bound.AT_LEAST,
            )
        is_all_copied = not stretch.is_old_left and not follower.lacking(own.log_end)
        self._match = replace(match, is_all_copied=is_all_copied)
        match = yield from self._check_trailing(
            follower.first_unknown, follower.trailing, follower.newest or own.records[-1]
        )
        if match.outcome.is_match and is_done and follower.uncertain:
            return replace(
                match,
                outcome=MatchOutcome.AMBIGUOUS,
                records=follower.uncertain,
                bound=Bound.AT_MOST,
            )
        return match

    def last(self, match: Match) -> Reading:
        """Return a less certain match if records far from the position equal the last copy.

        If such records exist, the last copy may be a copy of any of them, because the mirror may
        have gone back to an earlier record. If the new log has only one copy, the mirror may have
        copied nothing else, so the position's place in the new log is unknown.
        """
        own, copies = self._own, self._copies
        if not match.is_searched_to_end or (own.is_from_start and own.is_to_end):
            return match
        end = yield Read(Side.NEW, self._first_trailing or copies.log_end, 2, 1)
        if not end.before:
            return match
        origins = yield from _possible_origins(end.before[-1], self._depth)
        if len(origins) < 2:
            return match
        if len(end.before) == 1:  # it is the only copy
            return not_found_match(EQUAL_RECORDS)
        return replace(
            match,
            outcome=MatchOutcome.AMBIGUOUS,
            records=own.log_end - 1 - origins[0],
            bound=Bound.AT_MOST,
        )

    def _compare_ends(self, known: _Anchor) -> Generator[Read, Surroundings, Match | None]:
        """Return a violation if copies are missing between ``known`` and the last copy.

        There are too many records to read all of them. In logs without gaps, copies are missing if
        ``known`` and the last copy are farther apart in the old log than in the new log.
        """
        end = yield Read(Side.NEW, self._copies.log_end, self._depth.block, 1)
        last = next((copy for copy in end.before if copy.offset > known.new), None)
        old = (yield from _origin(last, self._depth)) if last is not None else None
        if last is None or old is None:
            return None
        return violation_match(old - known.old - (last.offset - known.new), 0)

    def _check_trailing(self, first: int, trailing: int, newest: Record) -> Reading:
        """Check the last records of the new log if they have no origin in memory.

        These records must come from producers that moved to the new cluster after the mirror had
        copied everything. ``first`` is the offset of the first of these copies. ``newest`` is the
        newest old record in memory.
        """
        match, is_doubtful = self._match, False
        self._first_trailing = first if trailing else None
        if not trailing or not match.is_searched_to_end:
            return match
        end = yield Read(Side.NEW, self._copies.log_end, 1, 1)
        is_older = yield from _are_known(end.before, self._depth)
        is_doubtful |= is_older is None
        if is_older and match.outcome.is_lossless:
            return replace(match, bound=Bound.AT_LEAST)
        if match.outcome.is_match:
            if is_older and ((yield from self._find_origin(end.before[-1])) or 0) > newest.offset:
                # The mirror has skipped records, and at least one copy has no origin.
                return Match(MatchOutcome.OTHER_PARTITIONING, records=2)
            if is_older:
                return replace(
                    match, outcome=MatchOutcome.WENT_BACK, records=1, bound=Bound.AT_LEAST
                )
        if (yield from self._is_any_cut()):
            is_again = yield from self._are_copied_again(first, newest)
            if is_again:
                outcome = MatchOutcome.WENT_BACK if match.outcome.is_match else match.outcome
                records = max(1, match.records)
                return replace(match, outcome=outcome, records=records, bound=Bound.AT_LEAST)
            is_doubtful |= is_again is None
        # Without all old records in memory, some of the copies may have an origin.
        is_all_old = self._own.is_from_start and self._own.is_to_end
        least = trailing if is_all_old else 1
        is_aborted = yield from self._are_last_known(first, Side.ALL_OLD)
        if is_aborted:
            return Match(MatchOutcome.FOREIGN, records=1)
        is_doubtful |= is_aborted is None
        for other in self._others:
            is_other = yield from self._are_last_known(first, Side.OLD, other)
            if is_other:
                return Match(MatchOutcome.OTHER_PARTITIONING, records=1)
            is_doubtful |= is_other is None
        if not match.is_all_copied and is_doubtful:
            return not_found_match("some copies were not found in the job's log")
        if not match.is_all_copied:
            return Match(MatchOutcome.FOREIGN, records=least)
        if is_doubtful:  # there were too many records to search all of them for an origin
            return replace(match, is_searched_to_end=False, unread=match.unread + trailing)
        return match

    def _are_last_known(
        self, first: int, side: Side, partition: int | None = None
    ) -> Generator[Read, Surroundings, bool | None]:
        """Return whether a log contains any of the new log's records from ``first`` on.

        Return None if the search reads too many records.
        """
        while True:
            run = yield Read(Side.NEW, first, 0, self._depth.chunk)
            is_known = bool(run.after) and (
                yield from _are_known(run.after, self._depth, side, partition)
            )
            if is_known is not False or run.is_to_end or not run.after:
                return is_known
            first = run.first_unread

    def _is_any_cut(self) -> Generator[Read, Surroundings, bool]:
        """Return whether any partition of the old topic lost records at the start of its log."""
        is_cut = self._own.log_start > 0
        for other in self._others:
            if not is_cut:
                run = yield Read(Side.OLD, 0, 0, 1, is_time=True, partition=other)
                is_cut = run.log_start > 0
        return is_cut

    def _are_copied_again(
        self, first: int, newest: Record
    ) -> Generator[Read, Surroundings, bool | None]:
        """Return whether any of the new log's last records is also in the new log before ``first``.

        The last records are those from the offset ``first`` on. True means that the mirror copied a
        record again, and that the old topic no longer contains the record. False means that
        producers wrote all of the last records. This is certain only if they are newer than
        ``newest`` and newer than the compared records of the old log.

        Return None if no earlier copy is found and some of the last records are not newer than the
        compared records. The mirror may have copied such a record late, or the new log may have
        lost the earlier copy.
        Also return None if the search would read too many records.
        """
        time = max(record.timestamp for record in (newest, *self._own.records))
        at, is_certain = first, True
        while True:
            run = yield Read(Side.NEW, at, 0, self._depth.chunk)
            if run.after:
                is_known = yield from _are_known(run.after, self._depth, Side.NEW, end=first)
                if is_known is not False:
                    return is_known
            is_certain &= all(copy.timestamp > time for copy in run.after)
            if run.is_to_end or not run.after:
                return False if is_certain else None
            at = run.first_unread

    def _follow(
        self, follower: Follower, stretch: _Stretch, most: int | None
    ) -> Generator[Read, Surroundings, bool]:
        """Read both logs up to the end of a stretch, or until ``most`` copies have been read.

        Return True if the whole stretch was read.
        """
        chunk = self._depth.chunk
        copies: Sequence[Record] = ()
        while True:
            # The next chunk of copies may be copies of the next ``chunk`` old records, so read
            # these old records first.
            if stretch.is_old_left and not follower.is_ahead(chunk):
                run = yield Read(Side.OLD, stretch.old_at, 0, chunk)
                self._has_gaps |= has_gaps(run.after)
                follower.add_old(run.after)
                stretch.old_at, stretch.is_old_left = run.first_unread, not run.is_to_end
                continue
            copies = copies[follower.add_copies(copies) :]
            if follower.is_violated:
                return False
            if stretch.is_old_left and not follower.is_ahead(chunk):
                continue
            if copies:
                origin = yield from self._find_origin(copies[0])
                if origin is None:
                    self._has_unknown = True
                    return False
                if origin < 0:
                    if self._own.log_start > 0 and follower.oldest is None:
                        first = yield Read(Side.OLD, self._own.log_start, 0, 1)
                        follower.oldest = next(iter(first.after), None)
                    follower.add_unknown(copies[0])
                    copies = copies[1:]
                    continue
                again = follower.go_to(origin)
                if again is None:
                    return False
                stretch.old_at, stretch.is_old_left = again, True
                continue
            if stretch.is_new_done:
                return True
            if most is not None and stretch.read >= most:
                return False
            after = chunk
            if stretch.new_end is not None:
                after = max(1, min(chunk, stretch.new_end - stretch.new_at))
            run = yield Read(Side.NEW, stretch.new_at, 0, after)
            self._has_gaps |= has_gaps(run.after)
            end = stretch.new_end
            copies = [copy for copy in run.after if end is None or copy.offset < end]
            stretch.new_at, stretch.read = run.first_unread, stretch.read + len(copies)
            is_past = end is not None and stretch.new_at >= end
            stretch.is_new_done = run.is_to_end or is_past or not run.after

    def _find_origin(self, copy: Record) -> Generator[Read, Surroundings, int | None]:
        """Search the old log for a copy's origin that is not in memory, and return its offset.

        Return -1 if the old log has no such record, and None if the search reads too many records.
        The search starts at the first record with the copy's timestamp or a later one, because the
        origin has the same timestamp and cannot come before this record.
        """
        at, is_time, read = max(0, copy.timestamp), True, 0
        while self._depth.is_whole or read < self._depth.counted:
            run = yield Read(Side.OLD, at, 0, self._depth.chunk, is_time=is_time)
            for record in run.after:
                if record.is_copied_as(copy):
                    return record.offset
            if run.is_to_end:
                return -1
            at, is_time, read = run.first_unread, False, read + len(run.after)
        return None

    def _is_rest_equal(self, known: _Anchor) -> Generator[Read, Surroundings, bool]:
        """Return whether samples of the new log after ``known`` have the expected origins."""
        depth = self._depth
        end = yield Read(Side.NEW, self._copies.log_end, depth.block, 1)
        if not end.before or end.before[0].offset <= known.new:
            return False
        last = end.before[0].offset
        step = (last - known.new) // (depth.anchors_after + 1)
        blocks = [end.before]
        for number in range(1, depth.anchors_after + 1 if step else 1):
            run = yield Read(Side.NEW, known.new + step * number, 0, depth.block)
            blocks.append(run.after)
        for block in blocks:
            if not block:
                return False
            expected = known.old + (block[0].offset - known.new)
            run = yield Read(Side.OLD, expected, 0, len(block))
            if has_gaps(run.after) or has_gaps(block):
                self._has_gaps = True
                return False
            if len(run.after) < len(block) or not _agrees(run.after, block):
                return False
            if run.after[0].offset != expected:
                return False
        if sum(copy.digest == end.before[-1].digest for copy in end.before) > 1:
            return False  # the mirror may have copied the last record twice
        self._count(sum(map(len, blocks)))
        return True


def _violation(
    follower: Follower, lacking: int, foreign: int, depth: Depth
) -> Generator[Read, Surroundings, Match | None]:
    """Return the violation that a follower has found, or None."""
    missing = follower.missing + lacking
    is_uncertain = follower.is_start_uncertain
    if missing and follower.has_equal:
        # It is unknown which of several equal records are missing, so only one is counted.
        missing, is_uncertain = 1, is_uncertain or not (follower.missing or foreign)
    elif (record := follower.next_copied) is not None:
        run = yield Read(Side.OLD, max(0, record.timestamp), 0, depth.searched, is_time=True)
        is_uncertain |= sum(record.is_copied_as(other) for other in run.after) > 1
    violation = violation_match(missing, foreign)
    if violation is not None and is_uncertain:
        return not_found_match(EQUAL_RECORDS)
    return violation


def _agrees(records: Sequence[Record], copies: Sequence[Record]) -> bool:
    """Return whether copies match records one by one, up to the end of the shorter sequence."""
    number = min(len(records), len(copies))
    return number > 0 and all(
        record.is_copied_as(copy)
        for record, copy in zip(records[:number], copies[:number], strict=True)
    )
