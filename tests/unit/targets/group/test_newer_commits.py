"""Refuse commits that would rewind a group."""

from __future__ import annotations

import pytest

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.message import Message
from migrate.targets.group.newer_commits import newer_commit_refusals
from migrate.targets.group.rollback_file import RollbackFile, rollback_file

Offsets = dict[tuple[str, int], Committed]
TARGET = {("t", partition): 5 for partition in range(3)}


def _group(*offsets: int | None) -> GroupView:
    committed = {("t", n): Committed(at) for n, at in enumerate(offsets) if at is not None}
    return GroupView("g", True, "Empty", "classic", (), committed)


def _commit(before: GroupView, after: GroupView) -> RollbackFile:
    return rollback_file("commit", "cluster", "b:9092", before, after.committed, {})


def _refusals(now: GroupView, file: RollbackFile | None = None) -> list[Message]:
    return list(newer_commit_refusals(now, TARGET, [file] if file is not None else []))


@pytest.mark.parametrize(
    "now", [_group(), _group(5, 5, 5), _group(4, None, 5), _group(None, None, None, 9)]
)
def test_forward_commit_is_allowed(now: GroupView) -> None:
    assert _refusals(now) == []


@pytest.mark.parametrize(
    ("now", "count", "records", "first"),
    [
        (_group(9, 7, 5), 2, 6, "t-0"),
        (_group(None, 9), 1, 4, "t-1"),
        # A lower offset of a different partition does not make the rewind safe.
        (_group(4, 9), 1, 4, "t-1"),
    ],
)
def test_commit_that_rewinds_group_is_refused_without_rollback_file(
    now: GroupView, count: int, records: int, first: str
) -> None:
    """Without this file, the higher offsets may be newer commits of consumers."""
    (refusal,) = _refusals(now)
    assert refusal.code == "group-has-newer-commits"
    assert refusal.facts == {
        "group": "g",
        "count": count,
        "partition": first,
        "current": 9,
        "next_offset": 5,
        "records": records,
    }


def test_commit_may_rewind_offsets_that_previous_commit_of_migrate_wrote() -> None:
    assert _refusals(_group(9, 9, 9), _commit(_group(), _group(9, 9, 9))) == []


def test_commit_that_rewinds_newer_commits_of_consumers_is_refused() -> None:
    file = _commit(_group(), _group(9, 9, 9))
    (refusal,) = _refusals(_group(9, 12, 9), file)
    assert [refusal.facts[name] for name in ("count", "partition", "current")] == [1, "t-1", 12]


def test_commit_that_rewinds_partition_unchanged_by_earlier_commit_is_refused() -> None:
    """Regression: An unchanged partition hid the progress of consumers in a different partition."""
    file = _commit(_group(1, 9), _group(9, 9))  # partition 1 already had its offset
    (refusal,) = _refusals(_group(9, 12), file)
    assert (refusal.facts["partition"], refusal.facts["current"]) == ("t-1", 12)


def test_offset_with_consumer_metadata_is_not_mistaken_for_commit_of_migrate() -> None:
    file = _commit(_group(), _group(9))
    now = GroupView("g", True, "Empty", "classic", (), {("t", 0): Committed(9, "consumer")})
    assert len(_refusals(now, file)) == 1
