"""Match positions in copied logs that are longer than the records compared around a position.

Each record has a unique name, so the tests can count lost and duplicated records.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import pytest

from migrate.kafka.log_pairs import LogPairs
from migrate.kafka.records import RecordReader
from migrate.model.record import Record, Surroundings
from migrate.moves.find_copies import compare_logs
from migrate.planning.find_copy import Depth, no_origin
from migrate.planning.match_records import Bound, Match
from migrate.planning.plan import MatchOutcome
from tests.support.mirror_model import TOPIC, ModelLog, ModelReader, Partition, Sync

Item = tuple[str, int] | None  # a record's name and time; None is a gap


# A tenth of the default values, because the logs are a tenth as long.
_DEPTH = Depth(
    around=10, searched=200, around_at_most=2000, searched_at_most=10_000,
    block=4, counted=10_000, chunk=500,
)  # fmt: skip


class _CountingReader(ModelReader):
    """A reader that counts the records that were read."""

    read = 0

    def around(
        self, positions: Mapping[Partition, int], most_before: int, most_after: int
    ) -> dict[Partition, Surroundings]:
        found = super().around(positions, most_before, most_after)
        self.read += sum(len(run.records) for run in found.values())
        return found


def _named(partition: int, number: int) -> list[Item]:
    return [(f"{partition}/{at}", 1000 + at) for at in range(number)]


def _foreign(number: int, time: int) -> list[Item]:
    return [(f"foreign/{at}", time) for at in range(number)]


def _with_markers(items: Sequence[Item]) -> list[Item]:
    """Return the items in transactions of 10 records, each followed by a marker."""
    return [item for at in range(0, len(items), 10) for item in (*items[at : at + 10], None)]


def _log(items: Sequence[Item], first: int = 0) -> ModelLog:
    """Return a log of the items from the offset ``first`` on."""
    records = [
        Record(offset, name.encode(), name.encode(), timestamp=time)
        for offset, item in enumerate(items)
        if item is not None and offset >= first
        for name, time in (item,)
    ]
    return ModelLog(records, first, len(items))


class _Found:
    """The matches of positions, and the number of records that were read and are lost."""

    def __init__(
        self,
        old: Mapping[int, ModelLog],
        new: Mapping[int, ModelLog],
        positions: Mapping[int, int],
        *,
        is_whole: bool = False,
        is_compacted: bool = False,
        syncs: Sequence[Sequence[Sync]] = (),
    ) -> None:
        readers = [
            _CountingReader(logs, is_compacted=is_compacted, syncs=syncs)
            for logs in (old, old, new)
        ]
        records, committed, copies = (cast(RecordReader, reader) for reader in readers)
        self.matches: dict[int, Match] = {
            partition: match
            for (_, partition), match in compare_logs(
                LogPairs(records, copies, {}, {TOPIC}),
                LogPairs(committed, copies, {}, {TOPIC}, records),
                {(TOPIC, partition): at for partition, at in positions.items()},
                replace(_DEPTH, is_whole=is_whole),
            ).items()
        }
        self.read = sum(reader.read for reader in readers)
        self.outcomes = {match.outcome for match in self.matches.values()}
        self.is_complete = not any(match.is_sampled for match in self.matches.values())
        self.unread = sum(match.unread for match in self.matches.values())
        self.lost = self.duplicated = 0
        starts = {partition: match.next_offset for partition, match in self.matches.items()}
        if None not in starts.values():
            wanted, read = _names_from(old, positions), _names_from(new, starts)
            self.lost, self.duplicated = (wanted - read).total(), (read - wanted).total()


def _names_from(logs: Mapping[int, ModelLog], starts: Mapping[int, int | None]) -> Counter[bytes]:
    return Counter(
        record.digest
        for partition, log in logs.items()
        for record in log.records
        if record.offset >= (starts[partition] or 0)
    )


_VIOLATIONS = {MatchOutcome.OTHER_PARTITIONING, MatchOutcome.FILTERED, MatchOutcome.FOREIGN}


def _swapped(
    length: int, first: int, number: int
) -> tuple[dict[int, ModelLog], dict[int, ModelLog]]:
    """Return two partitions, and copies with some records exchanged between the partitions."""
    one, two, last = _named(0, length), _named(1, length), first + number
    return (
        {0: _log(one), 1: _log(two)},
        {
            0: _log([*one[:first], *two[first:last], *one[last:]]),
            1: _log([*two[:first], *one[first:last], *two[last:]]),
        },
    )


def test_records_copied_to_different_partitions_are_detected_between_samples() -> None:
    """The exchanged records are between the parts of the logs that migrate samples."""
    old, new = _swapped(1000, 304, 56)
    found = _Found(old, new, {0: 990, 1: 100})
    assert found.outcomes == {MatchOutcome.OTHER_PARTITIONING}


@pytest.mark.parametrize("first", [3200, 6300, 9400])
def test_records_swapped_between_partitions_beyond_budget_are_detected_or_counted_as_unread(
    first: int,
) -> None:
    """Instead of detecting the swap, migrate may count the swapped records as unread."""
    old, new = _swapped(20_000, first, 1200)
    found = _Found(old, new, {0: 19_990, 1: 100})
    assert found.outcomes <= _VIOLATIONS or found.unread >= 1200
    assert _Found(old, new, {0: 19_990, 1: 100}, is_whole=True).outcomes <= _VIOLATIONS


def test_long_log_is_compared_completely_within_budget() -> None:
    found = _Found({0: _log(_named(0, 19_000))}, {0: _log(_named(0, 19_000))}, {0: 9500})
    assert found.outcomes == {MatchOutcome.MATCHED} and found.is_complete
    assert [match.compared for match in found.matches.values()] == [19_000]
    assert (found.lost, found.duplicated) == (0, 0)


def test_each_compared_record_is_counted_once() -> None:
    found = _Found({0: _log(_named(0, 300))}, {0: _log(_named(0, 300))}, {0: 250})
    assert [match.compared for match in found.matches.values()] == [300]


@pytest.mark.parametrize("position", [0, 150, 1250, 5000, 6000])
@pytest.mark.parametrize("log_start", [0, 120])
def test_proved_match_counts_exactly_the_records_before_position(
    position: int, log_start: int
) -> None:
    """Regression: The count included records after the position."""
    items = _named(0, 6000)
    old, new = {0: _log(items, log_start)}, {0: _log(items)}
    at = max(position, log_start)
    found = _Found(old, new, {0: at}, is_whole=True)
    assert found.outcomes == {MatchOutcome.PROVED}
    assert [match.compared for match in found.matches.values()] == [at - log_start]


@pytest.mark.parametrize("is_whole", [False, True])
def test_excess_records_before_first_copy_are_not_counted_as_compared(is_whole: bool) -> None:
    """Regression: The result was "proved", but 3 records of a client preceded the first copy.

    Retention deleted 62 records of the old log, but 65 records precede the first copy.
    """
    items = _named(0, 120)
    old, new = _log(items, 62), _log([*items[:60], *_foreign(3, 1060), *items[60:]])
    found = _Found({0: old}, {0: new}, {0: 100}, is_whole=is_whole)
    assert (found.outcomes, found.unread) == ({MatchOutcome.MATCHED}, 3)
    right = _Found({0: old}, {0: _log(items)}, {0: 100}, is_whole=is_whole)
    assert right.outcomes == {MatchOutcome.PROVED if is_whole else MatchOutcome.MATCHED}
    assert right.is_complete


@pytest.mark.parametrize("is_whole", [False, True])
def test_copies_of_later_records_before_first_copy_are_refused(is_whole: bool) -> None:
    """Regression: The result was "proved", but the mirror had copied the last records too early.

    The offset syncs narrow the search, so these copies are outside the searched range.
    """
    items: list[Item] = [(f"0/{at}", 1000) for at in range(9000)]
    old = _log(items, 1000)
    new = _log([*items[:900], *items[8000:], *items[950:8000]])
    found = _Found({0: old}, {0: new}, {0: 7000}, is_whole=is_whole, syncs=[[(0, 7000, 7950)]])
    assert found.outcomes <= _VIOLATIONS


@pytest.mark.parametrize("end", [85, 120])
def test_records_copied_before_mirror_restarts_from_beginning_are_counted_as_copied(
    end: int,
) -> None:
    """Regression: 72 records were reported as not copied, but nearly all were copied."""
    items = _named(0, 120)
    new = {0: _log([*items[:end], *items[:10]])}
    found = _Found({0: _log(items)}, new, {0: end})
    assert found.outcomes == {MatchOutcome.WENT_BACK}
    found = _Found({0: _log(items)}, new, {0: min(120, end + 2)})
    (match,) = found.matches.values()
    if match.outcome is MatchOutcome.LAGGING:
        assert match.records == 2


def _beats(number: int) -> ModelLog:
    """Return a log of one distinct record, and this number of equal records."""
    return _log([("a", 1000), *[("beat", 1001)] * number])


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize(("position", "copied"), [(50, 60), (61, 60), (101, 100)])
def test_offset_syncs_show_which_identical_records_were_copied(
    position: int, copied: int, is_whole: bool
) -> None:
    old, new, at = {0: _beats(100)}, {0: _beats(copied)}, {0: position}
    assert _Found(old, new, at, is_whole=is_whole).outcomes == {MatchOutcome.AMBIGUOUS}
    found = _Found(old, new, at, is_whole=is_whole, syncs=[[(0, 0, 0), (0, copied, copied)]])
    wanted = MatchOutcome.MATCHED if position < copied else MatchOutcome.AT_END
    assert found.outcomes == {wanted}
    assert [match.next_offset for match in found.matches.values()] == [position]


@pytest.mark.parametrize(
    "syncs",
    [
        [(0, 60, 60)],  # no sync of the distinct record
        [(0, 5, 0), (0, 60, 60)],  # the first sync contradicts the logs
        [(0, 0, 0), (0, 60, 60), (0, 7, 61)],  # the last sync is of a different copy
        [(0, 0, 0), (0, 60, 60), (0, 80, 3)],
    ],
)
def test_unreliable_offset_syncs_are_ignored(syncs: list[Sync]) -> None:
    """These syncs may belong to a different copy of the topic, so the match stays ambiguous."""
    found = _Found({0: _beats(100)}, {0: _beats(60)}, {0: 50}, syncs=[syncs])
    assert found.outcomes == {MatchOutcome.AMBIGUOUS}


@pytest.mark.parametrize("at", [6000, 15_000, 25_000])
def test_foreign_records_beyond_budget_are_detected_or_counted_as_unread(at: int) -> None:
    """Foreign records are records in the new log that the mirror did not copy."""
    items = _named(0, 30_000)
    old = {0: _log(_with_markers(items))}
    new = {0: _log([*items[:at], *_foreign(20, 1000 + at), *items[at:]])}
    position = {0: old[0].records[29_000].offset}
    found = _Found(old, new, position)
    assert found.outcomes <= {MatchOutcome.FOREIGN, MatchOutcome.NOT_FOUND} or found.unread
    assert _Found(old, new, position, is_whole=True).outcomes == {MatchOutcome.FOREIGN}


def test_missing_copies_beyond_budget_are_counted_as_unread() -> None:
    """The mirror did not copy 100 records. Only a comparison of the whole logs detects this."""
    items = _named(0, 30_000)
    old, new = {0: _log(_with_markers(items))}, {0: _log(items[:25_000] + items[25_100:])}
    position = {0: old[0].records[300].offset}
    found = _Found(old, new, position)
    assert found.lost == 100 and found.unread >= 100
    assert _Found(old, new, position, is_whole=True).outcomes == {MatchOutcome.FILTERED}


def test_compacted_topic_does_not_match_if_copies_far_from_position_are_missing() -> None:
    items = _named(0, 1000)
    old, new = {0: _log(items)}, {0: _log(items[:700] + items[750:])}
    assert _Found(old, new, {0: 400}, is_compacted=True).outcomes == {MatchOutcome.NOT_FOUND}


def test_compacted_topic_does_not_match_if_foreign_records_are_far_from_position() -> None:
    items = _named(0, 1000)
    new = {0: _log([*items[:50], *_foreign(20, 1050), *items[50:]])}
    found = _Found({0: _log(items)}, new, {0: 400}, is_compacted=True)
    assert found.outcomes == {MatchOutcome.NOT_FOUND}


def test_compacted_topic_larger_than_budget_is_sampled() -> None:
    items = _named(0, 25_000)
    found = _Found({0: _log(items)}, {0: _log(items)}, {0: 12_500}, is_compacted=True)
    assert found.outcomes == {MatchOutcome.MATCHED} and found.unread == 5000


def test_position_matches_if_new_records_may_be_copies_from_unread_partition() -> None:
    """The new records count as unread, because the second partition is not read completely."""
    items, other = _named(0, 2000), _named(1, 15_000)
    moved = [(f"moved/{at}", 2500 + at) for at in range(20)]
    found = _Found(
        {0: _log(items), 1: _log(other)},
        {0: _log([*items, *moved]), 1: _log(other)},
        {0: 1900, 1: 14_900},
    )
    assert found.outcomes == {MatchOutcome.MATCHED} and found.unread >= 20


@pytest.mark.parametrize("is_whole", [False, True])
def test_copies_of_expired_records_with_unordered_timestamps_are_not_foreign(
    is_whole: bool,
) -> None:
    rng = random.Random(2)
    items = [(f"0/{at}", 100_000 + at * 10 - rng.randint(0, 10_000)) for at in range(26_000)]
    full = _log(_with_markers(items))
    old = {0: _log(_with_markers(items), full.records[15_000].offset)}
    position = {0: full.records[25_000].offset}
    found = _Found(old, {0: _log(items)}, position, is_whole=is_whole)
    assert all(outcome.is_match for outcome in found.outcomes)
    assert (found.lost, found.duplicated) == (0, 0)


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("back_to", [4000, 9000])
def test_position_matches_after_mirror_duplicated_earlier_records(
    back_to: int, is_whole: bool
) -> None:
    items = _named(0, 20_000)
    new = {0: _log(items[:10_000] + items[back_to:])}
    found = _Found({0: _log(items)}, new, {0: 19_000}, is_whole=is_whole)
    assert all(outcome.is_match for outcome in found.outcomes)
    assert (found.lost, found.duplicated) == (0, 0)


def test_position_matches_after_mirror_rewound_below_first_record_of_new_log() -> None:
    items = _named(0, 5000)
    found = _Found({0: _log(items)}, {0: _log(items[200:4000] + items[100:])}, {0: 4500})
    assert found.outcomes == {MatchOutcome.MATCHED} and found.is_complete
    filtered = {0: _log(items[200:4000] + items[100:150] + items[151:])}
    assert _Found({0: _log(items)}, filtered, {0: 4500}).outcomes == {MatchOutcome.FILTERED}


@pytest.mark.parametrize("back_to", [4000, 6000, 7000])
def test_duplicate_copies_after_position_are_reported_as_rewind(back_to: int) -> None:
    items = _named(0, 9000)
    new = {0: _log(items[:8000] + items[back_to:])}
    found = _Found({0: _log(items)}, new, {0: 5000})
    (match,) = found.matches.values()
    assert match.outcome is MatchOutcome.WENT_BACK
    assert match.records <= found.duplicated


def test_foreign_record_is_refused_without_reading_whole_old_log() -> None:
    items = _named(0, 100_000)
    new = {0: _log([*items[:100], ("foreign", 1100), *items[100:]])}
    found = _Found({0: _log(items)}, new, {0: 15_000})
    (match,) = found.matches.values()
    assert (match.outcome, match.reason) == (MatchOutcome.NOT_FOUND, no_origin())
    assert found.read < 20_000


def test_foreign_records_before_later_copies_are_not_reported_as_filtered() -> None:
    """Regression: Foreign records were mistaken for copies of older records."""
    items = _named(0, 6000)
    foreign = [(f"foreign/{at}", 1000 + at) for at in range(5000)]
    new = {0: _log([*items[:3000], *foreign, *items[3000:]])}
    (match,) = _Found({0: _log(items)}, new, {0: 3200}).matches.values()
    assert (match.outcome, match.records) == (MatchOutcome.FOREIGN, 1)


@pytest.mark.parametrize("is_whole", [False, True])
def test_copies_that_lack_headers_are_reported_as_foreign_records_and_not_as_rewind(
    is_whole: bool,
) -> None:
    """Regression: The result was "the mirror rewound", because headers were not compared."""
    plain = _log(_named(0, 120))
    old = [record._replace(headers=(("id", b"1"),)) for record in plain.records]
    new = [*old[:60], *plain.records[60:]]
    logs = ModelLog(old, 0, 120), ModelLog(new, 0, 120)
    found = _Found({0: logs[0]}, {0: logs[1]}, {0: 20}, is_whole=is_whole)
    assert found.outcomes == {MatchOutcome.FOREIGN}


@pytest.mark.parametrize("number", [16, 120, 9000])
def test_copies_of_expired_records_after_mirror_rewind_are_not_foreign(number: int) -> None:
    """Regression: Copies of records that retention had deleted from the old log were "foreign"."""
    items, position = _named(0, number), {0: number - 2}
    old = {0: _log(items, 4)}
    found = _Found(old, {0: _log([*items[6:], *items[:6]])}, position)
    (match,) = found.matches.values()
    assert match.outcome is MatchOutcome.WENT_BACK and match.next_offset == number - 8


def test_records_after_mirror_rewind_are_foreign_if_they_outnumber_expired_records() -> None:
    """Retention deleted 4 records of the old log, but 5 records of the new log have no original."""
    items = _named(0, 16)
    new = _log([*items[6:], *_foreign(5, 2000), *items[4:6]])
    found = _Found({0: _log(items, 4)}, {0: new}, {0: 14})
    assert found.outcomes == {MatchOutcome.FOREIGN}


@pytest.mark.parametrize("position", [60, 110])
def test_changed_records_among_equal_records_do_not_inflate_count(position: int) -> None:
    """Regression: The result was "at least 20" missing records, but only 4 records had changed.

    Each changed record counts as missing and as foreign.
    """
    items = [("beat", 1000) if at % 5 else (f"0/{at}", 1000) for at in range(120)]
    new = [("changed" + name, time) if name in ("0/50", "0/55", "0/60", "0/65") else (name, time)
           for name, time in items]  # fmt: skip
    (match,) = _Found({0: _log(items)}, {0: _log(new)}, {0: position}).matches.values()
    assert match.outcome is MatchOutcome.OTHER_PARTITIONING and 4 < match.records <= 8
    dropped = [item for at, item in enumerate(items) if at != 50]
    (match,) = _Found({0: _log(items)}, {0: _log(dropped)}, {0: position}).matches.values()
    assert (match.outcome, match.records) == (MatchOutcome.FILTERED, 1)


def test_position_is_not_at_end_if_only_copied_record_matches_first_and_last_record() -> None:
    """Regression: The result was "at the end", but only 1 of 60 records was copied."""
    items = [("beat", 1000) if at in (0, 59) else (f"0/{at}", 1000) for at in range(60)]
    found = _Found({0: _log(items)}, {0: _log(items[:1])}, {0: 60})
    (match,) = found.matches.values()
    assert not match.outcome.is_match
    found = _Found({0: _log(items[1:])}, {0: _log(items[1:])}, {0: 59})
    assert found.outcomes == {MatchOutcome.AT_END}


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize(
    ("foreign", "outcome"), [(0, MatchOutcome.WENT_BACK), (1, MatchOutcome.FOREIGN)]
)
def test_position_does_not_match_if_mirror_rewound_after_many_foreign_records(
    foreign: int, outcome: MatchOutcome, is_whole: bool
) -> None:
    """Regression: The result was "proved", but the mirror copied all records again."""
    items, tail = _named(0, 30), [("newest", 3000)]
    copies = [*items, *_foreign(1200, 2000), *items[:2], *tail[:foreign]]
    found = _Found({0: _log(items)}, {0: _log(copies)}, {0: 28}, is_whole=is_whole)
    assert found.outcomes == {outcome}


def test_position_matches_if_many_foreign_records_follow_all_copies() -> None:
    items = _named(0, 30)
    copies = _log([*items, *_foreign(1200, 2000)])
    found = _Found({0: _log(items)}, {0: copies}, {0: 28}, is_whole=True)
    assert found.outcomes == {MatchOutcome.PROVED} and found.is_complete


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("foreign", [0, 1])
def test_position_does_not_match_if_mirror_rewound_to_expired_records(
    foreign: int, is_whole: bool
) -> None:
    """Regression: The result was "proved", because copies were mistaken for new records."""
    items, tail = _named(0, 30), [("newest", 3000)]
    new = _log([*items, *_foreign(3, 2000), *items[:2], *tail[:foreign]])
    found = _Found({0: _log(items, 9)}, {0: new}, {0: 28}, is_whole=is_whole)
    assert found.outcomes == {MatchOutcome.WENT_BACK}


@pytest.mark.parametrize("number", [30, 1500])
def test_last_records_do_not_count_as_compared_if_they_may_be_copies_of_expired_records(
    number: int,
) -> None:
    """Regression: The result was "at the end", but the mirror copied all records again."""
    items = _named(0, number)
    old = {0: _log(items, 19)}
    again = _Found(old, {0: _log([*items, *items[:2]], 5)}, {0: number})
    assert again.outcomes == {MatchOutcome.AT_END} and not again.is_complete
    late = _Found(old, {0: _log([*items[:3], *items[6:], *items[3:6]])}, {0: number})
    assert late.outcomes == {MatchOutcome.AT_END} and not late.is_complete
    moved = _Found(old, {0: _log([*items, *_foreign(2, 9000)], 5)}, {0: number})
    assert moved.outcomes == {MatchOutcome.AT_END} and moved.is_complete


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("number", [30, 1500])
def test_records_before_second_copy_of_first_retained_record_do_not_count_as_compared(
    number: int, is_whole: bool
) -> None:
    """Regression: The result was "proved", but other clients had written 2 of these records."""
    items, kept = _named(0, number), number - 6
    new = _log([*items, *items[kept - 6 : kept], *_foreign(2, 0), *items[kept:]])
    found = _Found({0: _log(items, kept)}, {0: new}, {0: number}, is_whole=is_whole)
    assert found.outcomes == {MatchOutcome.AT_END} and found.unread >= 8
    (match,) = _Found({0: _log(items, kept)}, {0: new}, {0: kept + 1}).matches.values()
    assert match.outcome is MatchOutcome.WENT_BACK and match.is_sampled
    assert (match.records, match.bound) == (6, Bound.AT_LEAST)


@pytest.mark.parametrize("log_start", [0, 18])
def test_unknown_records_before_last_mirrored_copies_are_not_reported_as_compared(
    log_start: int,
) -> None:
    """Regression: The result was "at the end" (log start 0) or "foreign records" (log start 18)."""
    items = _named(0, 30)
    new = _log([*items[:20], *items[11:18], *_foreign(2, 1000), *items[18:20]], log_start)
    found = _Found({0: _log(items, 18)}, {0: new}, {0: 20})
    assert found.outcomes == {MatchOutcome.AT_END} and found.unread >= 9


def test_target_records_before_copies_of_retained_records_are_not_counted_as_compared() -> None:
    """Regression: The result was "proved", but other clients had written 130 of the records."""
    items = _named(0, 60)
    new = _log([*items[:57], *items[:12], *_foreign(130, 0), *items[12:57]])
    found = _Found({0: _log(items, 35)}, {0: new}, {0: 57}, is_whole=True)
    assert found.outcomes == {MatchOutcome.AT_END} and found.unread == 12 + 130 + 23


@pytest.mark.parametrize("is_whole", [False, True])
def test_last_copy_is_ambiguous_if_it_equals_a_distant_record(is_whole: bool) -> None:
    """Regression: The result was "proved", but the mirror may have rewound to an equal record."""
    items = [("beat", 1004) if at in (4, 59) else (f"0/{at}", 1000 + at) for at in range(60)]
    found = _Found({0: _log(items)}, {0: _log(items)}, {0: 55}, is_whole=is_whole)
    (match,) = found.matches.values()
    assert match.outcome is MatchOutcome.AMBIGUOUS
    assert (match.records, match.bound) == (55, Bound.AT_MOST)


def test_single_copy_does_not_match_if_it_equals_a_distant_record() -> None:
    """Regression: The result was "matched", but only 1 of 60 records was copied."""
    for equal in (0, 59):
        beats = (equal, 30)
        items = [("beat", 1030) if at in beats else (f"0/{at}", 1000 + at) for at in range(60)]
        found = _Found({0: _log(items)}, {0: _log([items[30]])}, {0: 30})
        assert not any(match.outcome.is_match for match in found.matches.values())


def test_number_of_expired_records_is_lower_bound_if_first_copy_equals_distant_record() -> None:
    """Regression: The result was "exactly 1,990" records, but 2,010 were missing."""
    beats = (5190, 5210)
    items = [("beat", 6190) if at in beats else (f"0/{at}", 1000 + at) for at in range(6000)]
    found = _Found({0: _log(items)}, {0: _log(items[:5211], 5210)}, {0: 3200})
    (match,) = found.matches.values()
    assert match.outcome is not MatchOutcome.EXPIRED or match.bound is Bound.AT_LEAST


def test_records_are_not_reported_as_filtered_if_next_copy_equals_older_record() -> None:
    """Regression: The result was "filtered, at least 33", but only 2 records had swapped places."""
    items = [("beat", 1000) if at in (0, 35) else (f"0/{at}", 1000 + at) for at in range(60)]
    new = _log([items[1], items[0], *items[2:]])
    (match,) = _Found({0: _log(items)}, {0: new}, {0: 55}).matches.values()
    assert match.outcome is not MatchOutcome.FILTERED


@pytest.mark.parametrize("position", [20, 55])
def test_change_of_topic_to_log_append_time_is_reported_as_reason(position: int) -> None:
    """Regression: The result was "foreign records".

    The new topic replaces the timestamps of the copies from the 30th record on.
    """
    old = _log(_named(0, 60))
    stamped = [
        record._replace(digest=record.digest + b" later", timestamp=9000, is_append_time=True)
        for record in old.records[30:]
    ]
    new = ModelLog([*old.records[:30], *stamped], 0, 60)
    (match,) = _Found({0: old}, {0: new}, {0: position}).matches.values()
    assert match.outcome is MatchOutcome.NOT_FOUND and "LogAppendTime" in match.reason
