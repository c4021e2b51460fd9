"""Search for false matches with a model of mirrors. The model records the origin of each copy.

A match is false if a start at its offset loses a record, or reads a record twice. ``python -m
tests.properties.test_mirrors COUNT [FIRST]`` runs more cases, and prints them by the mirror's kind.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import cast

import pytest

from migrate.kafka.log_pairs import LogPairs
from migrate.kafka.records import RecordReader
from migrate.moves.find_copies import compare_logs
from migrate.planning.find_copy import Depth
from migrate.planning.match_records import Bound, Match, MatchOutcome
from tests.support.mirror_model import KINDS, TOPIC, Case, make_case

# Depths for the model's logs of up to 200 records: everything is read at once; the runs around the
# position are short; the logs are longer than the number of records that are compared, so there are
# samples; and everything is compared.
DEPTHS = (
    Depth(),
    Depth(
        around=6, searched=12, around_at_most=12, searched_at_most=30,
        anchors=6, anchors_after=3, block=3, counted=500, chunk=5,
    ),
    Depth(
        around=4, searched=12, around_at_most=20, searched_at_most=60,
        anchors=6, anchors_after=3, block=3, counted=15, chunk=4,
    ),
    Depth(around=4, searched=8, around_at_most=20, searched_at_most=40, chunk=7, is_whole=True),
)  # fmt: skip
# `make test` runs some seconds. docs/decisions/0016 has the results of longer runs.
CASES = 6_000


@dataclass(frozen=True, slots=True)
class Wrong:
    seed: int
    depth: int
    what: str


def translate(case: Case, depth: Depth) -> dict[int, Match]:
    old, committed, new = (cast(RecordReader, reader) for reader in case.readers())
    positions = {
        (TOPIC, partition): at
        for partition, at in case.positions.items()
        if case.old_ranges[partition][0] <= at
    }
    pairs = LogPairs(old, new, {}, {TOPIC})
    committed_pairs = LogPairs(committed, new, {}, {TOPIC}, old)
    matches = compare_logs(pairs, committed_pairs, positions, depth)
    return {partition: match for (_, partition), match in matches.items()}


def judge(case: Case, matches: dict[int, Match]) -> str:
    """Return what is wrong about the matches of a case; empty if nothing is."""
    for partition, match in matches.items():
        if match.outcome is MatchOutcome.PROVED:
            consumed = [o for o in case.kept[partition] if o.offset < case.positions[partition]]
            if case.old_compacted or case.new_compacted:  # records that one log lacks do not count
                copied = {id(copy.origin) for copy in case.copies[partition]}
                consumed = [o for o in consumed if id(o) in copied]
            committed = sum(not o.is_aborted for o in consumed)
            if match.compared not in (len(consumed), committed):
                return f"proved with {match.compared} of {len(consumed)} records"
        if what := judge_violation(case, partition, match):
            return what
    starts = {p: match.next_offset for p, match in matches.items() if match.next_offset is not None}
    if case.is_hidden or len(starts) < len(case.positions):
        return ""  # nothing can tell, or refused
    if any(match.is_sampled for match in matches.values()):
        return ""  # a warning says so
    lost, repeated = case.lost_and_repeated(starts)
    if lost:
        return f"{lost} lost"
    outcomes = [match for match in matches.values() if match.outcome.is_lossless]
    stated = sum(match.records for match in outcomes)
    bounds = {match.bound for match in outcomes} or {Bound.EXACT}
    if bounds == {Bound.EXACT} and repeated != stated:
        return f"{repeated} repeated, exactly {stated} stated"
    if bounds <= {Bound.EXACT, Bound.AT_MOST} and repeated > stated:
        return f"{repeated} repeated, at most {stated} stated"
    # Lower bounds count what the mirror will copy again, if it keeps the order.
    keeps_order = case.kind != "reordering"
    if bounds <= {Bound.EXACT, Bound.AT_LEAST} and repeated < stated and keeps_order:
        return f"{repeated} repeated, at least {stated} stated"
    return ""


def judge_violation(case: Case, partition: int, match: Match) -> str:
    """Return what is wrong about the number of records that a mirror lacks, or has not copied."""
    kept = case.kept[partition]
    origins = [copy.origin for copy in case.copies[partition]]
    if match.outcome is MatchOutcome.LAGGING:
        if len({o.identity for o in kept}) < len(kept):
            return ""  # among equal records, it is open which of them are copied
        copied = {id(o) for o in origins}
        consumed = [o for o in kept if o.offset < case.positions[partition]]
        most = sum(id(o) not in copied for o in consumed)
    elif match.outcome is MatchOutcome.FOREIGN:
        own = {o.at(o.offset).digest for o in kept}
        most = sum(copy.record.digest not in own for copy in case.copies[partition])
    else:
        return ""
    if match.records > most:
        return f"{match.records} {match.outcome.value} of {most}"
    return ""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases of each kind there are.

    Attributes:
        run: all cases.
        matched: those with a match of each partition.
        judged: those with a place of each partition, all records compared, that the logs can judge.
        sampled: those with a place of each partition, but not all records compared.
    """

    run: Counter[str]
    matched: Counter[str]
    judged: Counter[str]
    sampled: Counter[str]


def run(first: int, count: int) -> tuple[Counts, list[Wrong]]:
    """Judge cases; return how many there were, and what was wrong."""
    counts, wrong = Counts(Counter(), Counter(), Counter(), Counter()), []
    for seed in range(first, first + count):
        number = seed % len(DEPTHS)
        case = make_case(seed)
        matches = translate(case, DEPTHS[number])
        all_ = list(matches.values()) if len(matches) == len(case.positions) else []
        is_placed = bool(all_) and all(match.next_offset is not None for match in all_)
        is_sampled = any(match.is_sampled for match in all_)
        counts.run[case.kind] += 1
        counts.matched[case.kind] += bool(all_) and all(m.outcome.is_match for m in all_)
        counts.judged[case.kind] += is_placed and not (is_sampled or case.is_hidden)
        counts.sampled[case.kind] += is_placed and is_sampled
        if what := judge(case, matches):
            wrong.append(Wrong(seed, number, f"{case.kind}: {what}"))
    return counts, wrong


@pytest.mark.slow
def test_mirror_model_has_no_false_match() -> None:
    counts, wrong = run(0, CASES)
    assert wrong == []
    assert set(counts.run) == set(KINDS)
    # A search that refuses everything would be right, too, and one that samples everything.
    assert counts.matched["keeping"] > counts.run["keeping"] / 4
    assert all(counts.judged[kind] >= 10 for kind in KINDS)
    assert counts.sampled.total() >= 80


if __name__ == "__main__":
    found, errors = run(int(sys.argv[2]) if sys.argv[2:] else 0, int(sys.argv[1]))
    for kind, number in sorted(found.run.items()):
        print(
            f"{kind:25} {number:7} cases {found.matched[kind]:7} matched "
            f"{found.judged[kind]:7} judged {found.sampled[kind]:7} sampled"
        )
    for error in errors[:20]:
        print(error)
    print(f"{sum(found.run.values())} cases, {len(errors)} wrong")
