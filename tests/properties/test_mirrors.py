"""No false match: a model of mirrors, whose copies have known origins, is the judge.

A match is false if a start there loses a record, or reads one twice. ``python -m
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
from migrate.planning.match_records import Bound, Match
from tests.support.mirror_model import KINDS, TOPIC, Case, make_case

# Depths for the model's logs of up to 60 records: everything is read at once; the runs are short
# and most of the log is compared by anchors; and everything is compared.
DEPTHS = (
    Depth(),
    Depth(
        around=6, searched=12, around_at_most=12, searched_at_most=30,
        anchors=6, anchors_after=3, block=3, counted=200, chunk=10,
    ),
    Depth(around=4, searched=8, around_at_most=20, searched_at_most=40, chunk=7, is_whole=True),
)  # fmt: skip
# `make test` runs some seconds. 200,000 cases were run once: docs/decisions/0016.
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
    starts = {p: match.next_offset for p, match in matches.items() if match.next_offset is not None}
    if case.is_hidden or len(starts) < len(case.positions):
        return ""  # nothing can tell, or refused
    if not all(match.is_searched_to_end for match in matches.values()):
        return ""  # a note says so
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


def run(first: int, count: int) -> tuple[Counter[str], Counter[str], list[Wrong]]:
    """Return how many cases of each kind were run and matched, and what was wrong."""
    all_, matched, wrong = Counter[str](), Counter[str](), []
    for seed in range(first, first + count):
        number = seed % len(DEPTHS)
        case = make_case(seed)
        matches = translate(case, DEPTHS[number])
        all_[case.kind] += 1
        is_match = len(matches) == len(case.positions)
        matched[case.kind] += is_match and all(m.outcome.is_match for m in matches.values())
        if what := judge(case, matches):
            wrong.append(Wrong(seed, number, f"{case.kind}: {what}"))
    return all_, matched, wrong


@pytest.mark.slow
def test_no_match_is_false() -> None:
    all_, matched, wrong = run(0, CASES)
    assert wrong == []
    assert set(all_) == set(KINDS)
    # A search that refuses everything would be right, too.
    assert matched["keeping"] > all_["keeping"] / 3
    assert all(matched[kind] > 5 for kind in KINDS)


if __name__ == "__main__":
    cases, right, errors = run(int(sys.argv[2]) if sys.argv[2:] else 0, int(sys.argv[1]))
    for kind, number in sorted(cases.items()):
        print(f"{kind:25} {number:7} cases {right[kind]:7} matched")
    for error in errors[:20]:
        print(error)
    print(f"{sum(cases.values())} cases, {len(errors)} wrong")
