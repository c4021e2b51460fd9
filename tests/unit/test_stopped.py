"""What stands beside a checkpoint: newer ones, and how often the job takes one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from decoder import DecodeError
from migrate.inputs.flink.newer_checkpoints import (
    NewerCheckpoints,
    checkpoint_interval,
    find_newer_checkpoints,
)
from tests.support.checkpoints import splits, write_source


def _job(directory: Path, written: dict[int, float]) -> Path:
    """A job's directory with checkpoints, each completed at its time (seconds of the epoch)."""
    for number, time in written.items():
        chk = write_source(directory / f"chk-{number}", {0: splits("t", [number])})
        os.utime(chk / "_metadata", (time, time))
    return directory


@pytest.mark.parametrize(
    ("written", "interval"),
    [
        ([], None),
        ([(4, 1_000)], None),
        ([(4, 1_000), (5, 11_000), (6, 31_000)], 20.0),
        ([(4, 1_000), (6, 11_000)], 5.0),
        ([(4, 1_000), (5, 500)], -0.5),  # copied in another order: for nobody to wait for
    ],
)
def test_the_interval_is_the_longest_between_two(
    written: list[tuple[int, int]], interval: float | None
) -> None:
    assert checkpoint_interval(written) == interval


def test_what_stands_beside_a_checkpoint(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", {5: 1_000, 6: 1_010, 7: 1_030, 9: 1_050})
    (job / "chk-10").mkdir()  # not complete
    assert find_newer_checkpoints(str(job / "chk-6"), 6) == NewerCheckpoints((7, 9), 20.0)
    assert find_newer_checkpoints(f"{job}/chk-9/", 9) == NewerCheckpoints((), 20.0)
    assert find_newer_checkpoints(str(job / "chk-4"), 4) == NewerCheckpoints(
        (5, 6, 7, 9), 20.0
    )  # itself is gone


def test_the_interval_is_that_of_the_last_ones(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", {1: 0, **{n: 10_000 + n for n in range(2, 8)}})
    assert find_newer_checkpoints(str(job / "chk-7"), 7) == NewerCheckpoints((), 1.0)


def test_nothing_stands_beside_a_savepoint(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", {5: 1_000, 6: 1_010})
    assert find_newer_checkpoints(str(job / "savepoint-0523e1-e100894c09db"), 3) is None


def test_a_jobs_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="no such directory"):
        find_newer_checkpoints(str(tmp_path / "job" / "chk-7"), 7)
