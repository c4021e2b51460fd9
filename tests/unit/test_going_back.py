"""The same move again: what its consumers have read since is not read again without a word.

Of consumers that really have is tests/integration/test_group_commands.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate import commit_group, rollback_file
from migrate.json_models import write_file
from migrate.snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from tests.support.checkpoints import splits, write_source


def _group(*held: int) -> GroupView:
    """Of topic t, partitions 0, 1, …"""
    committed = {("t", partition): Committed(at) for partition, at in enumerate(held)}
    return GroupView("g", bool(held), "Empty", "classic", committed=committed)


@pytest.mark.parametrize(
    ("change", "set_to", "now", "refusals"),
    [
        (
            "commit",
            (3, 4),
            (9, 4),
            ("1 of its offsets would go back, and up to 6 records be read again",),
        ),
        (
            "commit",
            (3, 4),
            (9, 5),
            ("2 of its offsets would go back, and up to 7 records be read again",),
        ),
        (
            "commit",
            (3, 4),
            (2, 9),
            ("1 of its offsets would go back, and up to 5 records be read again",),
        ),
        ("commit", (3, 4), (3, 4), ()),  # it is as the earlier run left it
        ("commit", (3, 4), (1, 1), ()),  # or found it
        ("commit", (3, 4), (2, 2), ()),  # it goes ahead, wherever it has been meanwhile
        ("commit", (9, 9), (9, 9), ()),  # nobody has read on from where it was set
        ("rollback", (3, 4), (9, 9), ()),  # to go back was what it was for
        (None, (), (9, 9), ()),  # no run is known: to be moved is what a group is for
    ],
)
def test_a_group_that_has_moved_on_since_is_not_taken_back(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Literal["commit", "rollback"] | None,
    set_to: tuple[int, ...],
    now: tuple[int, int],
    refusals: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    there = ClusterSnapshot(
        {"t": {0: LogRange(0, 20), 1: LogRange(0, 20)}}, "cluster", target_group=_group(*now)
    )
    monkeypatch.setattr("migrate.broker.take_snapshot", lambda *_: there)
    if change is not None:
        after = _group(*set_to).committed
        run = rollback_file.rollback_file(change, "cluster", "b:1", _group(1, 1), after, {})
        write_file(run, tmp_path / "earlier.json")
    found = commit_group(chk, group="g", bootstrap_servers="b:1")
    assert len(found.refusals) == len(refusals)
    for refusal, says in zip(found.refusals, refusals, strict=True):
        assert says in refusal
    assert not commit_group(chk, group="g", bootstrap_servers="b:1", allow_moved_on=True).refusals
