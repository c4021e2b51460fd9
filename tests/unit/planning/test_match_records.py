"""Find a position in a mirrored copy of its log.

A model of a mirror makes the copies. The mirror copies in order, can be killed and rewind, and can
lag. Retention, compaction, and transaction markers leave gaps on both sides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrate.model.record import Record, Surroundings
from migrate.planning.match_compacted import match_compacted
from migrate.planning.match_records import (
    EQUAL_RECORDS,
    Bound,
    Match,
    match_records,
    not_found_match,
)
from migrate.planning.plan import MatchOutcome


def _record(offset: int, name: str, **more: object) -> Record:
    """Return a record with the name as its content. The part before a dot is its key."""
    digest, key = name.encode(), name.partition(".")[0].encode()
    return Record(offset, digest, key, **more)  # type: ignore[arg-type]


def _log(names: str | Sequence[str], step: int = 1, first: int = 0) -> list[Record]:
    names = names.split() if isinstance(names, str) else names
    return [_record(offset, name) for offset, name in zip(count(first, step), names, strict=False)]


def _old(
    names: str,
    at: int,
    most: int = 4,
    *,
    position: int | None = None,
    from_start: bool | None = None,
    log_start: int = 0,
) -> Surroundings:
    """Return the surroundings of the ``at``-th record. The n-th record has the offset 10n."""
    records = _log(names, 10)
    first, last = max(0, at - most), min(len(records), at + most)
    return Surroundings(
        at * 10 if position is None else position,
        tuple(records[first:at]),
        tuple(records[at:last]),
        (last - 1) * 10 + 1,
        first == 0 if from_start is None else from_start,
        last == len(records),
        log_start,
    )


def _new(names: str, *, from_start: bool = True, to_end: bool = True) -> Surroundings:
    """Return a part of a log in which the n-th record has the offset 100 + 3n."""
    records = tuple(_log(names, 3, 100))
    end = records[-1].offset + 1 if records else 0
    return Surroundings(0, (), records, end, from_start, to_end)


def _short(match: Match) -> tuple[object, ...]:
    """Return the compared fields."""
    return (
        match.outcome, match.next_offset, match.before, match.after, match.records, match.reason
    )  # fmt: skip


LETTERS = "a b c d e f g h"


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (_old(LETTERS, 4), _new(LETTERS), Match(MatchOutcome.MATCHED, 112, 4, 4)),
        # The position is at the start or the end of the log.
        (_old(LETTERS, 0), _new(LETTERS), Match(MatchOutcome.MATCHED, 100, 0, 4)),
        (_old(LETTERS, 8), _new(LETTERS), Match(MatchOutcome.AT_END, 122, 4)),
        # The mirror kept running, or other clients write to the new topic.
        (_old(LETTERS, 8), _new(LETTERS + " i"), Match(MatchOutcome.AT_END, 124, 4)),
        # The mirror has copied only consumed records: all of them, or some.
        (_old(LETTERS, 4), _new("a b c d"), Match(MatchOutcome.AT_END, 110, 4)),
        (_old(LETTERS, 4), _new("a b c"), Match(MatchOutcome.LAGGING, records=1)),
        (_old(LETTERS, 4), _new("a"), Match(MatchOutcome.LAGGING, records=3)),
        (_old(LETTERS, 4), _new(""), Match(MatchOutcome.LAGGING, records=4)),
        # Retention deleted records of the old or the new log.
        (_old(LETTERS, 4), _new("c d e f"), Match(MatchOutcome.MATCHED, 106, 2, 2)),
        (_old(LETTERS, 4), _new("e f g h"), Match(MatchOutcome.MATCHED, 100, 0, 4)),
        (_old(LETTERS, 4), _new("f g h"), Match(MatchOutcome.EXPIRED, records=1)),
        (_old("d e f", 1, log_start=5), _new(LETTERS), Match(MatchOutcome.MATCHED, 112, 1, 2)),
        (_old("e f", 0, log_start=5), _new(LETTERS), Match(MatchOutcome.MATCHED, 112, 0, 2)),
        # The mirror was killed, and rewound: across, before, and after the position.
        (
            _old(LETTERS, 4),
            _new("a b c d e f c d e f g h"),
            Match(MatchOutcome.WENT_BACK, 112, 4, 2, 4),
        ),
        (_old(LETTERS, 4), _new("a b c d c d e f g h"), Match(MatchOutcome.MATCHED, 118, 2, 4)),
        (_old(LETTERS, 4), _new("a b c d e f f g h"), Match(MatchOutcome.WENT_BACK, 112, 4, 2, 1)),
        (_old(LETTERS, 8), _new(LETTERS + " g h"), Match(MatchOutcome.AT_END, 128, 2)),
        # The mirror has rewound, and has not yet copied all these records again.
        (_old(LETTERS, 4), _new("a b c d e f c d"), Match(MatchOutcome.WENT_BACK, 112, 4, 2, 2)),
        # Regression: The result was that the consumed records were not copied yet.
        (
            _old(LETTERS, 8),
            _new(LETTERS + " e f"),
            not_found_match("the mirror has rewound, and is copying older records again"),
        ),
        (_old(LETTERS, 4), _new("a b c d a b"), Match(MatchOutcome.WENT_BACK, 116, records=2)),
        (_old(LETTERS, 8), _new("a b c d e f e"), Match(MatchOutcome.LAGGING, records=2)),
        # Equal records.
        (_old("a x x x x b", 3), _new("a x x x x b"), Match(MatchOutcome.MATCHED, 109, 3, 3)),
        (_old("x " * 20, 10), _new("x " * 20), not_found_match(EQUAL_RECORDS)),
        # The mirror has not copied the last of the equal records.
        (_old("a x x", 3), _new("a x"), Match(MatchOutcome.LAGGING, records=1)),
        (_old("x x", 2), _new("x"), Match(MatchOutcome.AMBIGUOUS, 101, 1, records=1)),
        (_old("a x x b", 3), _new("a x"), Match(MatchOutcome.LAGGING, records=1)),
        (_old("a x x x", 4), _new("a x x"), Match(MatchOutcome.LAGGING, records=1)),
        (_old("a x x b", 3), _new("a x x"), Match(MatchOutcome.AMBIGUOUS, 107, 3, records=1)),
        # Both logs are empty.
        (_old("", 0), _new(""), Match(MatchOutcome.AT_END, 0)),
    ],
)
def test_position_is_matched_in_copy(old: Surroundings, new: Surroundings, match: Match) -> None:
    assert _short(match_records(old, new)) == _short(match)


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (_new("X Y Z"), "the records around the position have no copy"),
        (
            Surroundings(0, (), (_record(0, "X", is_append_time=True),), 1, True, True),
            "LogAppendTime",
        ),
    ],
)
def test_position_without_matching_records_is_not_found(new: Surroundings, reason: str) -> None:
    match = match_records(_old(LETTERS, 4), new)
    assert match.outcome is MatchOutcome.NOT_FOUND and reason in match.reason


@pytest.mark.parametrize(
    ("new", "outcome", "records"),
    [
        ("a b c d X e f g h", MatchOutcome.FOREIGN, 1),
        ("X a b c d e f g h", MatchOutcome.FOREIGN, 1),
        ("a b c X Y", MatchOutcome.FOREIGN, 2),  # before the mirror has copied d
        ("a c X e g Y", MatchOutcome.OTHER_PARTITIONING, 4),
        ("b X d e Y h", MatchOutcome.OTHER_PARTITIONING, 5),
        ("a b d e f g h", MatchOutcome.FILTERED, 1),
        ("a b c d e h", MatchOutcome.FILTERED, 2),
    ],
)
def test_copy_with_foreign_or_missing_records_does_not_match(
    new: str, outcome: MatchOutcome, records: int
) -> None:
    match = match_records(_old(LETTERS, 4), _new(new))
    assert (match.outcome, match.records, match.next_offset) == (outcome, records, None)


@pytest.mark.parametrize(
    ("new", "first", "agreeing"), [("b c d e", 109, (3, 1)), ("e f g h", 100, (0, 4))]
)
def test_partial_copy_of_log_is_sufficient_for_match(
    new: str, first: int, agreeing: tuple[int, int]
) -> None:
    """The new log contains copies of all records from the first unconsumed record on."""
    match = match_records(_old(LETTERS, 4), _new(new, from_start=False, to_end=False))
    assert _short(match) == _short(Match(MatchOutcome.MATCHED, first, *agreeing))


def test_run_of_equal_records_is_compared_as_a_whole() -> None:
    """Regression: If retention had deleted some equal records, the match skipped 8 records."""
    old = _old("x " * 10 + "b c", 1, most=12)
    match = match_records(old, _new("x b c"))
    assert (match.outcome, match.records) == (MatchOutcome.EXPIRED, 8)
    whole = match_records(old, _new("x " * 10 + "b c"))
    assert whole.outcome is MatchOutcome.NOT_FOUND  # the first x can be any of the 10 records


def test_empty_old_log_does_not_match() -> None:
    match = match_records(_old("", 0), _new(LETTERS))
    assert _short(match) == _short(
        Match(MatchOutcome.NOT_FOUND, reason="the job's log has no records to compare")
    )


HEADERS = (("trace", b"1"), ("user", None))


@pytest.mark.parametrize(
    ("headers", "lacking"),
    [
        (HEADERS, None),
        ((("__mirror", b"west"), *HEADERS), None),
        ((HEADERS[0], ("x", b""), HEADERS[1], ("y", b"")), None),
        (HEADERS[:1], "the copy lacks user"),
        (HEADERS[::-1], "different headers"),
        ((("trace", b"2"), HEADERS[1]), "different headers"),
    ],
)
def test_added_headers_match_but_missing_or_changed_headers_do_not(
    headers: tuple[tuple[str, bytes | None], ...], lacking: str | None
) -> None:
    """A mirror can add headers, but must not drop or change headers."""
    old = Surroundings(0, (), (_record(5, "a", headers=HEADERS),), 6, True, True)
    new = Surroundings(0, (), (_record(7, "a", headers=headers),), 8, True, True)
    match = match_records(old, new)
    if lacking is None:
        assert _short(match) == _short(Match(MatchOutcome.MATCHED, 7, 0, 1))
    else:
        assert match.outcome is MatchOutcome.NOT_FOUND and lacking in match.reason


@st.composite
def _mirrored(draw: st.DrawFn) -> tuple[list[str], list[int], int, int]:
    """Return a log's contents, the copied records, the number of expired copies, and a position."""
    contents = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=24))
    if draw(st.booleans()):
        contents = [f"{content}{index}" for index, content in enumerate(contents)]
    copied: list[int] = []
    end = 0
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, end))
        end = draw(st.integers(max(end, start), len(contents)))
        copied += range(start, end)
    expired = draw(st.integers(0, min(3, len(copied))))
    return contents, copied, expired, draw(st.integers(0, len(contents)))


@given(_mirrored(), st.sampled_from((1, 2, 5, 24)), st.integers(0, 3))
def test_match_loses_no_record_for_any_mirror_that_copies_in_order(
    mirrored: tuple[list[str], list[int], int, int], most: int, expired_here: int
) -> None:
    """For every run of the mirror model, the match loses no record, and reports all duplicates."""
    contents, all_copied, expired, position = mirrored
    distinct = len(set(contents)) == len(contents)
    if not distinct:  # which of the equal records expired cannot be determined
        expired = expired_here = 0
    copied = all_copied[expired:]
    first = max(min(expired_here, position), position - most)
    last = min(len(contents), position + most)
    old = Surroundings(
        position * 2,
        tuple(_log(contents, 2)[first:position]),
        tuple(_log(contents, 2)[position:last]),
        last * 2,
        first == min(expired_here, position),
        last == len(contents),
    )
    run = tuple(_log([contents[index] for index in copied], 5, 7))
    match = match_records(old, Surroundings(0, (), run, 10_000, True, True))
    if match.next_offset is None:
        return
    read = [
        index
        for index, record in zip(copied, run, strict=True)
        if record.offset >= match.next_offset
    ]
    got = Counter(contents[index] for index in read)
    wanted = Counter(contents[index] for index in {*copied} if index >= position)
    consumed = sum(index < position for index in read)
    assert not wanted - got
    if match.outcome.is_lossless:
        is_least = match.bound is Bound.AT_LEAST
        assert not distinct or is_least or consumed <= match.records
    elif distinct and not match.trailing:  # the caller compares the trailing copies
        assert not consumed, (match, contents, copied, position)
    elif copied == [*range(len(contents))] and most == 24:
        assert got == wanted, (match, contents, copied, position)


NO_COPY = (
    "the target's log has neither a copy of 1 record around the position nor a later record with "
    "the same key"
)
KEYED = "a.1 b.1 a.2 c.1 b.2 d.1 a.3 e.1"


@pytest.mark.parametrize(
    ("at", "new", "match"),
    [
        # No record is missing.
        (4, KEYED, Match(MatchOutcome.MATCHED, 112, 4, 4)),
        # The first unconsumed record is compacted, or the last consumed record, or both.
        (2, "b.1 c.1 b.2 d.1 a.3 e.1", Match(MatchOutcome.MATCHED, 103, 1, 3)),
        (2, "a.1 a.2 c.1 b.2 d.1 a.3", Match(MatchOutcome.MATCHED, 103, 1, 4)),
        (3, "b.1 c.1 b.2 d.1 a.3 e.1", Match(MatchOutcome.MATCHED, 103, 1, 4)),
        (5, "c.1 d.1 a.3 e.1", Match(MatchOutcome.NOT_FOUND, reason=NO_COPY)),
        # The mirror lags.
        (8, "c.1 b.2 d.1", Match(MatchOutcome.LAGGING, records=2)),
        (8, "c.1 b.2 d.1 a.3 e.1", Match(MatchOutcome.AT_END, 113, 4)),
        # The mirror lags. An earlier copy or a later record has the key of the missing record.
        (3, "a.1 b.1", Match(MatchOutcome.LAGGING, records=1)),
        (2, "a.1", Match(MatchOutcome.LAGGING, records=1)),
    ],
)  # fmt: skip
def test_position_is_matched_in_compacted_copy(at: int, new: str, match: Match) -> None:
    assert _short(match_compacted(_old(KEYED, at), _new(new))) == _short(match)


@pytest.mark.parametrize(
    ("position", "match"),
    [
        (20, Match(MatchOutcome.MATCHED, 109, 2, 2)),  # c.1 was not consumed, but b.2 was
        (11, Match(MatchOutcome.MATCHED, 106, 2, 2)),  # b.1 was the last consumed record
        (15, Match(MatchOutcome.AMBIGUOUS, 106, 2, 2, 1)),
    ],
)
def test_position_can_be_ambiguous_if_record_is_compacted_only_in_old_log(
    position: int, match: Match
) -> None:
    old = _old("a.1 b.1 c.1 b.3", 2, position=position)
    assert _short(match_compacted(old, _new("a.1 b.1 b.2 c.1 b.3"))) == _short(match)


def test_record_unknown_to_old_log_prevents_match() -> None:
    old = _old("a.1 b.1 c.1 b.3", 2)
    match = match_compacted(old, _new("a.1 b.1 X.2 c.1 b.3"))
    assert match.outcome is MatchOutcome.NOT_FOUND


def test_removed_tombstone_does_not_prevent_match() -> None:
    records = [*_log("a.1 b.1"), _record(5, "a.", is_tombstone=True), *_log("c.1 d.1", 1, 7)]
    old = Surroundings(7, tuple(records[:3]), tuple(records[3:]), 9, True, True)
    assert _short(match_compacted(old, _new("b.1 c.1 d.1"))) == _short(
        Match(MatchOutcome.MATCHED, 103, 1, 2)
    )


@pytest.mark.parametrize(
    ("end", "match"),
    [
        (104, Match(MatchOutcome.LAGGING, records=1)),
        # Regression: An offset without a record was mistaken for the tombstone's offset.
        (105, Match(MatchOutcome.LAGGING, records=1)),
    ],
)
def test_tombstone_missing_from_end_of_copy_is_reported_as_lag(end: int, match: Match) -> None:
    records = (*_log("a.1 b.1"), _record(2, "a.", is_tombstone=True))
    old = Surroundings(3, records, (), 3, True, True)
    new = Surroundings(0, (), tuple(_log("a.1 b.1", 3, 100)), end, True, True)
    assert _short(match_compacted(old, new)) == _short(match)


def test_copies_of_older_values_do_not_count_as_newer_records() -> None:
    """The old log was compacted before the mirror copied the newer values of these keys."""
    new = _new("c.1 a.1 e.1 e.2")
    lags = match_compacted(_old("c.1 a.2 e.3", 3), new)
    assert _short(lags) == _short(Match(MatchOutcome.LAGGING, records=2))


def test_missing_copy_of_tombstone_is_reported_as_lag() -> None:
    """Regression: The lag was not reported.

    The mirror has not copied the tombstone of b.1, so the copy still contains b.1.
    """
    records = (*_log("c.1"), _record(2, "b.", is_tombstone=True))
    old = Surroundings(3, records, (), 3, True, True)
    match = match_compacted(old, _new("c.1 b.1"))
    assert _short(match) == _short(Match(MatchOutcome.LAGGING, records=1))
