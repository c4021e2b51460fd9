"""Find the newer checkpoints next to a checkpoint, and the checkpoint interval of the job."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from decoder import DecodeError
from migrate.inputs.flink.newer_checkpoints import (
    NewerCheckpoints,
    find_newer_checkpoints,
)
from migrate.inputs.watch import longest_interval
from tests.support.checkpoints import splits, write_source


def _job(directory: Path, written: dict[int, float]) -> Path:
    """A job's directory with checkpoints that were completed at these times (epoch seconds)."""
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
        ([(4, 1_000), (5, 500)], -0.5),  # copied in a different order, so the interval is useless
    ],
)
def test_checkpoint_interval_is_longest_time_divided_by_increase_of_checkpoint_number(
    written: list[tuple[int, int]], interval: float | None
) -> None:
    assert longest_interval(written) == interval


def test_newer_checkpoints_and_checkpoint_interval_are_found_in_job_directory(
    tmp_path: Path,
) -> None:
    job = _job(tmp_path / "job", {5: 1_000, 6: 1_010, 7: 1_030, 9: 1_050})
    (job / "chk-10").mkdir()  # incomplete
    assert find_newer_checkpoints(str(job / "chk-6"), 6) == NewerCheckpoints((7, 9), 20.0)
    assert find_newer_checkpoints(f"{job}/chk-9/", 9) == NewerCheckpoints((), 20.0)
    assert find_newer_checkpoints(str(job / "chk-4"), 4) == NewerCheckpoints(
        (5, 6, 7, 9), 20.0
    )  # chk-4 itself was deleted


def test_checkpoint_interval_ignores_time_before_latest_checkpoints(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", {1: 0, **{n: 10_000 + n for n in range(2, 8)}})
    assert find_newer_checkpoints(str(job / "chk-7"), 7) == NewerCheckpoints((), 1.0)


def test_savepoint_has_no_newer_checkpoints(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", {5: 1_000, 6: 1_010})
    assert find_newer_checkpoints(str(job / "savepoint-0523e1-e100894c09db"), 3) is None


def test_missing_job_directory_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="no such directory"):
        find_newer_checkpoints(str(tmp_path / "job" / "chk-7"), 7)
