"""Whether a commit would take a group back behind what others have committed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.targets.group.commit_marks import commit_metadata, moved_on_refusals

OURS = commit_metadata("chk-7 cbc357cc")
WANTED = {("t", partition): 5 for partition in range(3)}


def _told(committed: Mapping[int, tuple[int, str]]) -> str:
    held = {("t", partition): Committed(*what) for partition, what in committed.items()}
    group = GroupView("g", True, "Empty", "classic", (), held)
    return "; ".join(moved_on_refusals(group, WANTED))


@pytest.mark.parametrize(
    "committed",
    [
        {},
        {0: (5, OURS), 1: (5, OURS), 2: (5, OURS)},
        {0: (9, OURS), 1: (9, OURS), 2: (9, OURS)},  # a move to be corrected: nobody has read on
        {0: (5, ""), 1: (5, ""), 2: (5, "")},
        {0: (9, ""), 1: (4, "")},  # somewhere else before
        {0: (4, ""), 1: (4, OURS)},  # ours were reset: it goes forward
        {3: (9, "")},  # another partition is no affair of the move
    ],
)
def test_a_group_that_others_have_not_taken_on_may_be_moved(
    committed: Mapping[int, tuple[int, str]],
) -> None:
    assert _told(committed) == ""


@pytest.mark.parametrize(
    ("committed", "partitions", "records"),
    [
        ({0: (9, ""), 1: (7, "theirs"), 2: (5, "")}, "2 partitions", 6),
        ({1: (9, "")}, "1 partition ", 4),
    ],
)
def test_one_that_is_behind_nowhere_has_gone_on(
    committed: Mapping[int, tuple[int, str]], partitions: str, records: int
) -> None:
    told = _told(committed)
    assert f"beyond these offsets in {partitions}" in told
    assert f"up to {records} records would be read again" in told
    assert "earlier commit-group" not in told
    first = min(committed)
    assert f"(the first is t-{first}: {committed[first][0]}, to go back to 5)" in told


def test_our_commits_beside_others_name_the_checkpoint() -> None:
    told = _told({0: (5, OURS), 1: (1, ""), 2: (9, "")})
    assert "t-0 still has that of chk-7" in told
    assert "(the first is t-2: 9, to go back to 5)" in told
