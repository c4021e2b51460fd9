"""Find a position in a copy of its log, by the records around it. Pure, no I/O.

A mirror copies a partition's records in their order, each with its key, value, timestamp and
headers (MirrorSourceTask @ connect-mirror 4.1.1). A mirror that was killed copies some records a
second time. A record and its copy can have different offsets, because transaction markers,
compaction and retention leave gaps in one log that the other does not have.

The position lies after the last record that was consumed, and before the first one that was not. A
place in the new log is proved if the copies of these two records are neighbours there, and if there
is only one such place. Also, the logs are compared from the place on, backwards and forwards: in
each direction, the first record of the new log that differs must be one that the old log has, such
as a record that was copied twice (``is_sound``).

If the first record that was not consumed has several copies, a start at any of them loses nothing:
a mirror that goes back copies everything from there again, so all later records follow each copy. A
start at the first copy repeats the most records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile

from migrate.model.record import Record, Surroundings


class MatchOutcome(str, Enum):
    """The outcome of the translation of one position."""

    PROVED = "proved"  # the records before and after the position agree
    AT_END = "at the end"  # all consumed records are copied, and none after them
    LAGGING = "mirror lags"  # some consumed records are not copied yet
    AMBIGUOUS = "ambiguous"  # several places in the new log agree
    EXPIRED = "expired there"  # the new log begins after the first record that was not consumed
    NOT_FOUND = "not found"

    @property
    def is_proof(self) -> bool:
        return self in (MatchOutcome.PROVED, MatchOutcome.AT_END)


@dataclass(frozen=True, slots=True)
class Match:
    """The offset in the new log that corresponds to a position.

    Attributes:
        next_offset: the position in the new log; for ``AMBIGUOUS`` the first of several places;
            None for outcomes without a place.
        lowest: the lowest offset at which a start reads the same records as one at ``next_offset``;
            it is one above the offset of the record before the place. None if that record is not
            known.
        before, after: how many records agree directly before and after the place (in compacted
            logs: how many around it are in both logs).
        records: for ``AMBIGUOUS``, how many records a start at ``next_offset`` repeats at most; for
            ``LAGGING`` and ``EXPIRED``, how many records are missing at least.
        reason: for ``NOT_FOUND``, why there is no place.
        is_searched_to_end: whether the search in the new log reached the log end; if not, the log
            might have further copies of the records. Set by the search.
    """

    outcome: MatchOutcome
    next_offset: int | None = None
    before: int = 0
    after: int = 0
    records: int = 0
    reason: str = ""
    lowest: int | None = field(default=None, compare=False)
    is_searched_to_end: bool = False

    def agrees_with(self, next_offset: int) -> bool:
        """Return whether a start at this offset of the new log reads the same records."""
        if self.next_offset is None:
            return False
        lowest = self.lowest if self.lowest is not None else self.next_offset
        return lowest <= next_offset <= self.next_offset


def match_records(old: Surroundings, new: Surroundings) -> Match:
    """Find the place of a position in the new log.

    Args:
        old: the records around the position in the old log.
        new: the records of the new log among which the place is looked for.
    """
    if not (old.before or old.after):
        if not new.records and new.is_from_start and new.is_to_end:
            return Match(MatchOutcome.AT_END, new.first_unread)
        return not_found_match("the job's log holds no record to compare")
    search = _Search(old, new)
    places = search.places()
    if not places:
        return match_without_place(old, new)
    if not any(map(search.is_sound, places)):
        return not_found_match(
            "records that the job's log lacks lie around the place, from another partition or "
            "another producer"
        )
    if lacking := search.lacking(places[-1]):
        return Match(MatchOutcome.LAGGING, records=lacking)
    places = search.drop_equal_records(places)
    if len(places) > 1:
        return search.make_match(MatchOutcome.AMBIGUOUS, places[0], places[-1] - places[0])
    return search.match_at(places[0])


def not_found_match(reason: str) -> Match:
    return Match(MatchOutcome.NOT_FOUND, reason=reason)


class _Search:
    """The places at which the position might lie in a run of records of the new log.

    A place is an index into the run. The record there would be the first one that was not consumed;
    the index after the last record is the end of the run.
    """

    def __init__(self, old: Surroundings, new: Surroundings) -> None:
        self._before, self._after = old.before, old.after
        self._new, self._new_run = new, new.records
        self._consumed = {record.digest for record in old.before}
        self._known = self._consumed | {record.digest for record in old.after}

    def places(self) -> list[int]:
        """Return the places of the copies of the first record that was not consumed.

        If there are such copies, and the run ends with a copy of the last consumed record, also
        return the end of the run. If there are none, return the places after the copies of the last
        consumed record.
        """
        first = self._copies(self._after[:1])
        after_last = [index + 1 for index in self._copies(self._before[-1:])]
        end = len(self._new_run)
        return [*first, *({end} & {*after_last})] if first else after_last

    def _copies(self, records: Sequence[Record]) -> list[int]:
        return [
            index
            for record in records
            for index, copy in enumerate(self._new_run)
            if record.is_copied_as(copy)
        ]

    def _agreement(self, place: int) -> tuple[int, int]:
        """Return how many records agree directly before a place, and from it on."""
        before = _count_equal(reversed(self._before), reversed(self._new_run[:place]))
        after = _count_equal(self._after, self._new_run[place : place + len(self._after)])
        return before, after

    def _differing(self, place: int) -> Iterator[Record]:
        """Yield, on each side of a place, the nearest record of the new log that does not agree."""
        before, after = self._agreement(place)
        if before < min(len(self._before), place):
            yield self._new_run[place - 1 - before]
        if after < min(len(self._after), len(self._new_run) - place):
            yield self._new_run[place + after]

    def is_sound(self, place: int) -> bool:
        """Return whether a place agrees with the old log, apart from records copied twice.

        The record directly before the place must agree, unless the old log has no record before the
        position, or the new log begins at the place. The nearest record on each side that does not
        agree must be one that the old log has near the position: a mirror that went back copies
        such records again. If no record from the place on agrees, it must be a consumed one.
        """
        before, after = self._agreement(place)
        if self._before and not before and not (place == 0 and self._new.is_from_start):
            return False
        differing = list(self._differing(place))
        if self._after and not after:  # the first record that was not consumed is not copied yet
            return all(record.digest in self._consumed for record in differing)
        return all(record.digest in self._known for record in differing)

    def drop_equal_records(self, places: list[int]) -> list[int]:
        """Drop the places that exist only because the old log itself has equal records.

        Such places lie among the records that agree around the right place. So if there is exactly
        one place at which all records agree, and if all other places lie among these records,
        return only that place. Otherwise return all places.
        """
        whole = [place for place in places if not any(self._differing(place))]
        if len(whole) != 1:
            return places
        before, after = self._agreement(whole[0])
        run = range(whole[0] - before, whole[0] + after + 1)
        return whole if all(place in run for place in places) else places

    def match_at(self, place: int) -> Match:
        """Return the match at the only place that was found."""
        _, after = self._agreement(place)
        if after:
            return self.make_match(MatchOutcome.PROVED, place)
        rest = self._new_run[place:]
        if rest and rest[-1].digest in self._consumed:
            # The mirror went back, and is copying consumed records a second time.
            digests = [record.digest for record in self._before]
            return Match(MatchOutcome.LAGGING, records=digests[::-1].index(rest[-1].digest))
        if not rest and not self._new.is_to_end:
            return not_found_match("too many records have the same time")
        return self.make_match(MatchOutcome.AT_END, place)

    def lacking(self, place: int) -> int:
        """Return how many of the last consumed records have no copy, if a place is the log end.

        If the last consumed records are equal, the record before the place may be the copy of any
        of them. It is the copy of the one before which most records agree. If several agree as far
        as the start of the new log, it is the copy of the first of them: a log begins with the
        first record that was copied.
        """
        if not self._before or place < len(self._new_run) or not self._new.is_to_end:
            return 0
        consumed = self._before[::-1]
        copies = self._new_run[max(0, place - len(consumed)) : place][::-1]
        agreeing = [_count_equal(consumed[lacking:], copies) for lacking in range(len(consumed))]
        most = max(agreeing)
        places = [lacking for lacking, number in enumerate(agreeing) if number == most]
        return places[-1 if most == len(copies) else 0]

    def make_match(self, outcome: MatchOutcome, place: int, records: int = 0) -> Match:
        before, after = self._agreement(place)
        is_end = place == len(self._new_run)
        next_offset = self._new.first_unread if is_end else self._new_run[place].offset
        lowest = self._new_run[place - 1].offset + 1 if place else None
        return Match(outcome, next_offset, before, after, records, lowest=lowest)


def _count_equal(
    records: Iterator[Record] | Sequence[Record], copies: Iterator[Record] | Sequence[Record]
) -> int:
    pairs = zip(records, copies, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].is_copied_as(pair[1]), pairs))


def match_without_place(old: Surroundings, new: Surroundings) -> Match:
    """Return why there is no place: ``LAGGING``, ``EXPIRED``, or ``NOT_FOUND`` with a reason."""
    run = new.records
    for missing, record in enumerate(reversed(old.before)):
        if run and new.is_to_end and record.is_copied_as(run[-1]):
            return Match(MatchOutcome.LAGGING, records=missing)
    for missing, record in enumerate(old.after):
        if run and new.is_from_start and record.is_copied_as(run[0]):
            return Match(MatchOutcome.EXPIRED, records=missing)
    if not run and new.is_from_start and new.is_to_end:
        return Match(MatchOutcome.LAGGING, records=max(1, len(old.before)))
    if any(record.is_append_time for record in run):
        return not_found_match(
            "the new topic has the time of the copy as timestamp "
            "(message.timestamp.type=LogAppendTime)"
        )
    copies = {copy.digest: copy for copy in run}
    for record in (*old.after[:1], *old.before[-1:]):
        if copy := copies.get(record.digest):
            lacking = sorted({name for name, _ in record.headers} - {n for n, _ in copy.headers})
            which = f": it lacks {', '.join(lacking)}" if lacking else ""
            return not_found_match(
                f"its copy with the same key, value and time has other headers{which}"
            )
    return not_found_match("no copy of the records around it")
