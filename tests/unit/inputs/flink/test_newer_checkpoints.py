"""Detect checkpoint numbers that restart in the directory of an earlier run.

A job restarted without its state starts counting at 1, so the highest number belongs to the earlier
run. The times show this, unless the files are copies.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from decoder import DecodeError, read_checkpoint
from decoder.storage import LocalFiles
from migrate.extensions.fleet.candidates import read_candidate
from migrate.extensions.fleet.discovery import discover
from migrate.extensions.fleet.rows import obstacles
from migrate.inputs.flink.checkpoint_progress import checkpoint_signs
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.flink.newer_checkpoints import NewerCheckpoints, find_newer_checkpoints
from migrate.model.finding import Severity
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.storage.files import Files
from tests.support.checkpoints import SourceState, source_operator, splits, write_checkpoint
from tests.support.command import migrate
from tests.support.golden import GOLDEN

_DAY = 86_400.0
_NOW = 1_790_000_000.0


def _job(directory: Path, ages: Mapping[int, float]) -> Path:
    """A job's directory with checkpoints of these ages in seconds.

    The offset in each checkpoint is the number of the checkpoint.
    """
    for number, age in ages.items():
        _complete(directory, number, age)
    return directory


def _complete(job: Path, number: int, age: float) -> None:
    operator = source_operator(SourceState({0: splits("t", [number])}))
    chk = write_checkpoint(job / f"chk-{number}", operator, checkpoint_id=number)
    os.utime(chk / "_metadata", (_NOW - age, _NOW - age))


def _findings(chk: Path) -> dict[str, tuple[Severity, str]]:
    found = extract(read_checkpoint(chk)).findings
    return {finding.code: (finding.severity, finding.message) for finding in found}


# The earlier run ended at checkpoint 120 ten days ago. The new run has restarted at checkpoint 1.
_RENUMBERED = {119: 10 * _DAY + 2, 120: 10 * _DAY, 3: 22, 4: 12, 5: 2}


def test_job_directory_is_refused_if_highest_checkpoint_number_is_not_newest(
    tmp_path: Path,
) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    refused = migrate("to-spark", job)
    assert (refused.code, refused.stdout) == (4, "")
    assert (
        "chk-5 in the same directory was written after this chk-120, although its number is "
        "lower, so the job kept running" in refused.stderr
    )
    shown = migrate("inspect", job)
    assert shown.code == 0
    assert "blocker ran-on" in shown.stdout and "chk-5" in shown.stdout
    allowed = migrate("to-spark", job, "--allow-ran-on")
    assert (allowed.code, allowed.stdout) == (0, '{"t":{"0":120}}\n')
    assert "chk-5 in the same directory was written after" in allowed.stderr


def test_newest_checkpoint_with_lower_number_is_moved_if_its_path_is_passed(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    moved = migrate("to-spark", job / "chk-5")
    assert (moved.code, moved.stdout) == (0, '{"t":{"0":5}}\n')
    assert "warning: chk-120 in the same directory has a higher number" in moved.stderr
    assert read_checkpoint(job / "chk-5").earlier_run == (119, 120)


@pytest.mark.parametrize("number", [3, 119, 120])
def test_message_about_older_checkpoint_reports_newest_checkpoint_even_if_numbering_restarted(
    tmp_path: Path, number: int
) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    severity, message = _findings(job / f"chk-{number}")["ran-on"]
    assert severity is Severity.BLOCKER
    assert "chk-5" in message
    assert "chk-120 is complete" not in message


@pytest.mark.parametrize(
    ("ages", "newer"),
    [
        # Any run with lower numbers may be the latest run. chk-5 and chk-62 may be incomplete.
        ({3: 9_000, 4: 8_990, 60: 20, 61: 10, 120: 5_000}, (60, 61)),
        ({3: 90, 4: 80, 60: 20, 61: 10, 120: 5_000}, (3, 4, 60, 61)),
        ({3: 20, 4: 10, 60: 90, 61: 80, 120: 5_000}, (60, 61, 3, 4)),
        # A single run in which failed checkpoints left gaps.
        ({3: 50, 5: 30, 9: 20, 120: 10}, ()),
    ],
)
def test_latest_run_is_determined_by_times_if_checkpoint_numbers_have_restarted(
    tmp_path: Path, ages: dict[int, float], newer: tuple[int, ...]
) -> None:
    job = _job(tmp_path / "job", ages)
    (job / "chk-5").mkdir(exist_ok=True)
    (job / "chk-62").mkdir()
    assert read_checkpoint(job).newer_siblings == newer
    assert read_checkpoint(job).checkpoint_id == 120


@pytest.mark.parametrize(
    "ages",
    [
        {8: 20, 9: 10, 10: 30},  # no gap in the numbers, and times seconds or hours apart
        {8: 7_200, 9: 10, 10: 30},
        {7: 24, 9: 23, 12: 25, 14: 30},  # copied one after the other, in any order
        {7: 30, 9: 30, 12: 30},
    ],
)
def test_checkpoint_with_highest_number_is_moved_even_if_copying_has_changed_file_times(
    tmp_path: Path, ages: dict[int, float]
) -> None:
    job = _job(tmp_path / "job", ages)
    newest, *others = sorted(ages, reverse=True)
    for path in (job, job / f"chk-{newest}"):
        assert read_checkpoint(path).newer_siblings == ()
        moved = migrate("to-spark", path)
        assert (moved.code, moved.stdout) == (0, f'{{"t":{{"0":{newest}}}}}\n')
    for number in others:  # the numbers still show that these are older
        chk = read_checkpoint(job / f"chk-{number}")
        assert newest in chk.newer_siblings
        assert chk.earlier_run == ()


_MEET = {1: 12, 2: 7, 3: 2, 4: 50, 5: 40}  # 1 to 3 belong to the new run, which started later


def test_warning_names_other_checkpoint_if_no_gap_separates_numbers_of_two_runs(
    tmp_path: Path,
) -> None:
    """The new run has reached the numbers of the earlier run."""
    job = _job(tmp_path / "job", _MEET)
    stale = migrate("to-spark", job)
    assert (stale.code, stale.stdout) == (0, '{"t":{"0":5}}\n')
    assert "warning: chk-3 in the same directory was written after this chk-5" in stale.stderr
    right = migrate("to-spark", job / "chk-3")
    assert (right.code, right.stdout) == (4, "")
    assert "the newer complete checkpoint chk-5 is in the same directory" in right.stderr
    assert "warning: chk-5 in the same directory was written before this chk-3" in right.stderr
    allowed = migrate("to-spark", job / "chk-3", "--allow-ran-on")
    assert (allowed.code, allowed.stdout) == (0, '{"t":{"0":3}}\n')


@pytest.mark.parametrize(
    ("ages", "contradicting"),
    [
        ({4: 30, 5: 20, 6: 10}, ()),
        ({4: 10, 5: 14, 6: 18}, ()),  # seconds apart, as in a copy
        ({**dict.fromkeys(range(1, 21), 5), **dict.fromkeys(range(21, 41), 90)}, (1,)),
        ({8: 7_200, 9: 10, 10: 30}, (9,)),
        ({8: 10, 10: 30}, ()),  # a gap separates two runs
    ],
)
def test_checkpoint_times_that_contradict_numbers_are_detected(
    tmp_path: Path, ages: dict[int, float], contradicting: tuple[int, ...]
) -> None:
    assert read_checkpoint(_job(tmp_path / "job", ages)).contradicting == contradicting


class _Timeless(LocalFiles):
    """A store without file times."""

    def modified_at(self, path: str) -> int | None:
        super().modified_at(path)
        return None


def test_checkpoint_numbers_decide_if_times_are_unknown(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    assert read_checkpoint(job, _Timeless()).newer_siblings == ()
    assert read_checkpoint(job / "chk-5", _Timeless()).newer_siblings == (119, 120)


class _Counting(LocalFiles):
    def __init__(self) -> None:
        self.asked: list[str] = []

    def modified_at(self, path: str) -> int | None:
        self.asked.append(path)
        return super().modified_at(path)


def test_renamed_copy_is_not_treated_as_newer_checkpoint(tmp_path: Path) -> None:
    """Regression: A copy of chk-9 named chk-99 was refused, because its name seemed to be newer."""
    (written,) = (GOLDEN / "2.2/retained").glob("*/chk-9")
    copy = shutil.copytree(written, tmp_path / written.parent.name / "chk-99")
    checkpoint = read_checkpoint(copy)
    assert (checkpoint.checkpoint_id, checkpoint.newer_siblings) == (9, ())
    assert "ran-on" not in _findings(copy)
    beside = find_newer_checkpoints(str(copy), 9)
    assert beside == NewerCheckpoints((), None)
    # A checkpoint that the job completed later is found, whatever the name of the copy.
    shutil.copytree(written, copy.with_name("chk-10"))
    assert read_checkpoint(copy).newer_siblings == (10,)
    assert (
        "the newer complete checkpoint chk-10 is in the same directory"
        in _findings(copy)["ran-on"][1]
    )


def test_few_file_times_are_read_even_if_job_has_many_checkpoints(tmp_path: Path) -> None:
    whole = _job(tmp_path / "whole", {number: 500 - number for number in range(100, 120)})
    files = _Counting()
    for path in (whole, whole / "chk-110"):
        read_checkpoint(path, files)
    # The checkpoint's own time, that of the lowest number without a gap, and eight on each side.
    assert len(files.asked) == (1 + 1 + 8) + (1 + 1 + 8 + 8)
    gaps = _job(tmp_path / "gaps", {number: 500 - number for number in range(2, 120, 2)})
    files = _Counting()
    read_checkpoint(gaps, files)
    assert len(files.asked) == 1 + 16


def test_newer_checkpoint_of_new_run_is_found_despite_higher_number_of_earlier_run(
    tmp_path: Path,
) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    assert find_newer_checkpoints(str(job / "chk-5"), 5) == NewerCheckpoints((), 10.0)
    assert find_newer_checkpoints(str(job / "chk-4"), 4) == NewerCheckpoints((5,), 10.0)
    assert find_newer_checkpoints(str(job / "chk-120"), 120) == NewerCheckpoints((3, 4, 5), 2.0)
    _complete(job, 6, 0)
    assert find_newer_checkpoints(str(job / "chk-5"), 5) == NewerCheckpoints((6,), 10.0)


def test_scan_reports_job_with_restarted_checkpoint_numbers_as_not_movable(tmp_path: Path) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    (candidate,) = discover([str(job)], Files(), latest_only=True)
    outcome = read_candidate(candidate, Files())
    assert isinstance(outcome, Extraction)
    (obstacle,) = obstacles(outcome)
    assert obstacle.code == "ran-on"
    assert "chk-5 in the same directory was written after this chk-120" in obstacle.message


def _plan(path: Path, chk: Path, *flags: str) -> Plan:
    made = migrate("to-spark", chk, "--plan-out", path, *flags)
    assert made.code == 0, made.stderr
    return read_plan(path)


def test_saved_plan_is_outdated_only_by_checkpoints_completed_after_planning(
    tmp_path: Path,
) -> None:
    job = _job(tmp_path / "job", _RENUMBERED)
    last = _plan(tmp_path / "last.json", job / "chk-5")
    allowed = _plan(tmp_path / "allowed.json", job, "--allow-ran-on")
    assert (last.origin.number, allowed.origin.newer) == (5, (5,))

    def since(plan: Plan) -> list[str]:
        return list(checkpoint_signs(plan.origin))

    assert since(last) == since(allowed) == []
    _complete(job, 6, 0)
    assert since(last) == since(allowed) == ["it has completed chk-6"]
    shutil.rmtree(job / "chk-6")
    shutil.rmtree(job / "chk-4")
    assert since(last) == since(allowed) == []
    _complete(job, 6, 0)
    shutil.rmtree(job / "chk-5")
    assert since(allowed) == ["it has completed chk-6"]
    assert since(last) != []


class _Subsuming(LocalFiles):
    """Files of a running job, which deletes a checkpoint as soon as its metadata is read."""

    def __init__(self, gone: Path) -> None:
        self._gone = gone

    def read_range(self, path: str, start: int, size: int) -> bytes:
        shutil.rmtree(self._gone, ignore_errors=True)
        return super().read_range(path, start, size)


def test_error_for_deleted_checkpoint_names_newest_checkpoint_of_same_run(tmp_path: Path) -> None:
    """The running job deletes chk-5 during the read.

    The higher chk-120 belongs to an earlier run.
    """
    job = _job(tmp_path / "job", {**_RENUMBERED, 6: 0})
    with pytest.raises(DecodeError, match=r"newest complete checkpoint is .*/chk-6$"):
        read_checkpoint(job / "chk-5", _Subsuming(job / "chk-5"))
