"""Compare a checkpoint with its siblings by numbers and times, for each bound from both sides."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from decoder.checkpoint_order import Siblings, completed_at, find_siblings, numbered_checkpoints
from tests.support.memory_files import MemoryFiles

_JOB = "/flink/checkpoints/job"
_NOW = 1_790_000_000_000
_MIN_GAP_MS = 10_000


class _Timed(MemoryFiles):
    """Checkpoints with the time of their ``_metadata``, or None for an incomplete checkpoint."""

    def __init__(self, times: Mapping[int, int | None]) -> None:
        self.asked: list[str] = []
        self.times = {
            f"{_JOB}/chk-{n}/_metadata": _NOW + at for n, at in times.items() if at is not None
        }
        begun = {f"{_JOB}/chk-{n}/state": b"" for n in times}
        super().__init__({**begun, **dict.fromkeys(self.times, b"")})

    def modified_at(self, path: str) -> int | None:
        self.asked.append(path)
        if path not in self.times:
            raise FileNotFoundError(path)
        return self.times[path]


def _beside(number: int, times: Mapping[int, int | None], timeless: bool = False) -> Siblings:
    files = _Timed(times)
    at = None if timeless else completed_at(f"{_JOB}/chk-{number}", files)
    return find_siblings(f"{_JOB}/chk-{number}", number, at, files)


@pytest.mark.parametrize(
    ("number", "times", "expected"),
    [
        (5, {5: 0}, Siblings()),
        (5, {5: 0, 4: -1, 6: 1, 7: 2}, Siblings(newer=(6, 7))),
        (5, {5: 0, 6: None, 7: 2}, Siblings(newer=(7,))),
        # A run has consecutive numbers. A lower run is newer if it was written later by more than
        # the gap.
        (5, {5: 0, 3: _MIN_GAP_MS}, Siblings()),
        (5, {5: 0, 3: _MIN_GAP_MS + 1}, Siblings(newer=(3,))),
        (5, {5: 0, 2: 1, 3: _MIN_GAP_MS + 1}, Siblings(newer=(2, 3))),
        (5, {5: 0, 2: None, 3: _MIN_GAP_MS + 1}, Siblings(newer=(3,))),
        # A higher run is older if it was written earlier by more than the gap.
        (5, {5: 0, 9: -_MIN_GAP_MS}, Siblings(newer=(9,))),
        (5, {5: 0, 9: -_MIN_GAP_MS - 1}, Siblings(earlier_run=(9,))),
        (5, {5: 0, 9: None}, Siblings()),
        # The run that was written last is listed last.
        (5, {5: 0, 2: 90_000, 9: 50_000}, Siblings(newer=(9, 2))),
        (5, {5: 0, 2: 50_000, 9: 90_000}, Siblings(newer=(2, 9))),
        # In the checkpoint's own run, times can contradict the numbers.
        (5, {4: _MIN_GAP_MS, 5: 0}, Siblings()),
        (5, {4: _MIN_GAP_MS + 1, 5: 0}, Siblings(contradicting=(4,))),
        (5, {5: 0, 6: -_MIN_GAP_MS}, Siblings(newer=(6,))),
        (5, {5: 0, 6: -_MIN_GAP_MS - 1}, Siblings(newer=(6,), contradicting=(6,))),
        (5, {4: None, 5: 0}, Siblings()),
        # The last three checkpoints of a run are checked for the time of its last write.
        (5, {5: 0, 1: 50_000, 2: None, 3: None}, Siblings(newer=(1,))),
        (9, {9: 0, 1: 50_000, 2: None, 3: None, 4: None}, Siblings()),
    ],
)
def test_sibling_checkpoints_are_classified_by_numbers_and_times(
    number: int, times: Mapping[int, int | None], expected: Siblings
) -> None:
    assert _beside(number, times) == expected


def test_numbers_decide_which_checkpoint_is_newer_if_time_is_unknown() -> None:
    times = {2: 90_000, 5: 0, 6: -90_000, 9: -90_000}
    assert _beside(5, times, timeless=True) == Siblings(newer=(6, 9))


def test_only_sixteen_lowest_runs_of_checkpoint_numbers_are_compared_by_time() -> None:
    """A run is a sequence of consecutive checkpoint numbers.

    A job that restarted its numbers at 1 writes the lowest runs, so those matter most.
    """
    late = {2 * n + 1: 50_000 for n in range(17)}
    found = _beside(99, {**late, 99: 0})
    assert found.newer == tuple(sorted(late))[:16]


def test_only_first_and_nearest_checkpoints_are_searched_for_contradictory_times() -> None:
    """In a long run of consecutive numbers, every checkpoint's time can contradict its number.

    Only the first checkpoint and the eight nearest on each side are compared.
    """
    run = dict.fromkeys(range(1, 20), 50000)
    assert _beside(20, {**run, 20: 0}).contradicting == (1, *range(12, 20))
    higher = dict.fromkeys(range(21, 40), -50000)
    assert _beside(20, {20: 0, **higher}).contradicting == tuple(range(21, 29))


def test_savepoint_has_no_sibling_checkpoints() -> None:
    files = _Timed({5: 0, 6: 1})
    assert find_siblings(f"{_JOB}/savepoint-1", 5, _NOW, files) == Siblings()
    assert files.asked == []


def test_checkpoints_in_directory_are_sorted_by_number() -> None:
    names = ["chk-10", "chk-9", "shared", "chk-x", "taskowned", "chk-"]
    assert numbered_checkpoints("/j", names) == [(9, "/j/chk-9"), (10, "/j/chk-10")]
