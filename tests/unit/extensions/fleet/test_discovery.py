"""Discovery of the checkpoints in a directory tree, and failures for unreadable paths."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from migrate.extensions.fleet.candidates import Candidate, Failure, read_candidate
from migrate.extensions.fleet.discovery import discover, is_glob
from migrate.storage.files import Files
from tests.support.checkpoints import splits, write_source

JOB, OTHER_JOB = "0" * 31 + "a", "0" * 31 + "b"
SAVEPOINT = "savepoint-0523e1-e100894c09db"


def checkpoint(directory: Path) -> Path:
    return write_source(directory, {0: splits("orders", [5])})


@pytest.fixture
def estate(tmp_path: Path) -> Path:
    """Write two jobs, two savepoints, and checkpoints in directories that a scan does not enter."""
    root = tmp_path / "flink"
    job = root / "team" / JOB
    for number in (9, 10):
        checkpoint(job / f"chk-{number}")
    (job / "chk-11").mkdir()  # incomplete
    checkpoint(job / "shared" / "chk-1")
    checkpoint(job / "taskowned" / "chk-1")
    checkpoint(job / "chk-10" / "chk-1")
    checkpoint(root / "shared" / OTHER_JOB / "chk-3")  # an ordinary directory
    checkpoint(root / "savepoints" / SAVEPOINT)
    checkpoint(root / "savepoints" / "before the upgrade")
    checkpoint(root / "savepoints" / "before the upgrade" / "copy" / "chk-1")
    (root / "logs").mkdir()
    (root / "logs" / "jobmanager.log").write_text("nothing")
    return root


def found(*roots: str | Path, latest_only: bool = False) -> list[Candidate]:
    return discover(map(str, roots), Files(), latest_only=latest_only)


def names(candidates: Iterable[Candidate], root: Path) -> list[str]:
    return [os.path.relpath(candidate.pointer, root) for candidate in candidates]


def failures(candidates: Iterable[Candidate]) -> list[str | None]:
    return [candidate.failure.kind if candidate.failure else None for candidate in candidates]


ALL = [
    f"savepoints/{SAVEPOINT}",
    "savepoints/before the upgrade",
    f"shared/{OTHER_JOB}/chk-3",
    f"team/{JOB}/chk-9",
    f"team/{JOB}/chk-10",
    f"team/{JOB}/chk-11",
]


def test_every_checkpoint_under_root_is_discovered(estate: Path) -> None:
    candidates = found(estate)
    assert sorted(names(candidates, estate)) == sorted(ALL)
    assert failures(candidates) == [None] * len(ALL)
    by_name = dict(zip(names(candidates, estate), candidates, strict=True))
    whole = by_name[f"team/{JOB}/chk-10"]
    assert whole.job_id == JOB
    assert whole.job_directory == str(estate / "team" / JOB)
    assert whole.number == 10
    assert whole.metadata_bytes == (Path(whole.pointer) / "_metadata").stat().st_size
    assert not whole.read_newest
    assert by_name[f"team/{JOB}/chk-11"].metadata_bytes is None
    savepoint = by_name[f"savepoints/{SAVEPOINT}"]
    assert (savepoint.job_id, savepoint.job_directory, savepoint.number) == (None, None, None)


def test_checkpoints_of_job_are_sorted_by_number(estate: Path) -> None:
    assert names(found(estate / "team"), estate) == ALL[3:]


def test_latest_only_selects_newest_checkpoint_per_job_and_every_savepoint(estate: Path) -> None:
    candidates = found(estate, latest_only=True)
    assert sorted(names(candidates, estate)) == sorted(
        [*ALL[:3], f"team/{JOB}/chk-10"],
    )
    assert [c.read_newest for c in candidates] == [c.job_directory is not None for c in candidates]


def test_job_without_complete_checkpoint_is_reported_as_failure(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / JOB / f"chk-{number}").mkdir(parents=True)
    (candidate,) = found(tmp_path, latest_only=True)
    assert candidate.pointer == str(tmp_path / JOB / "chk-2")
    outcome = read_candidate(candidate, Files())
    assert isinstance(outcome, Failure)
    assert outcome.kind == "not found"


@pytest.mark.parametrize(
    "root",
    [
        f"team/{JOB}/chk-9",
        f"team/{JOB}/chk-9/",
        f"team/{JOB}/chk-9/_metadata",
        "team/*/chk-9",
        f"team/../team/{JOB}/chk-9",
    ],
)
def test_scan_root_may_be_a_checkpoint(estate: Path, root: str) -> None:
    for latest_only in (False, True):
        (candidate,) = found(f"{estate}/{root}", latest_only=latest_only)
        assert candidate.pointer == str(estate / "team" / JOB / "chk-9")
        assert not candidate.read_newest  # the path selects this checkpoint


def test_relative_scan_root_becomes_absolute(estate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(estate)
    assert found("team") == found(estate / "team") == found(f"file:{estate}/team")


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*", ALL),
        ("t?am", ALL[3:]),
        ("[s-t]*/*/chk-*", ALL[2:]),
        ("*/*/chk-1[01]", ALL[4:]),
        ("*/*/_metadata", ALL[:2]),
    ],
)
def test_globs_expand_to_matching_checkpoints(estate: Path, glob: str, expected: list[str]) -> None:
    assert sorted(names(found(estate / glob), estate)) == sorted(expected)


@pytest.mark.parametrize(
    "url", ["webhdfs://[::1]:9870/flink", "s3://buck*/flink", "s3://buck?t/*", "/*", "/"]
)
def test_glob_characters_in_host_or_bucket_are_not_expanded(url: str) -> None:
    assert is_glob(url) is url.endswith("*")


def test_glob_with_latest_only_selects_newest_checkpoint_per_job(estate: Path) -> None:
    candidates = found(estate / "*/*/chk-*", latest_only=True)
    assert names(candidates, estate) == [ALL[2], ALL[4]]


def test_scan_root_and_link_to_same_root_are_read_once(
    estate: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Regression: `scan ROOT LINK-TO-ROOT` counted each job twice."""
    link = tmp_path_factory.mktemp("links") / "link"
    link.symlink_to(estate, target_is_directory=True)
    assert names(found(estate, link), estate) == names(found(estate), estate)


def test_repeated_and_nested_scan_roots_are_read_once(estate: Path) -> None:
    assert found(estate, estate / "team", estate / "*") == found(estate)


def test_missing_scan_roots_are_reported_as_failures(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    candidates = found(tmp_path / "missing", tmp_path / "*.none", tmp_path / "a file")
    assert failures(candidates) == ["not found"] * 3
    assert failures(found("ftp://host/flink")) == ["unsupported"]


def test_unlistable_directory_does_not_hide_other_scan_roots(estate: Path) -> None:
    loop = estate / "loop"
    loop.symlink_to(loop)
    candidates = found(loop, estate / "team")
    assert failures(candidates) == ["unreadable", None, None, None]
    assert candidates[0].failure is not None
    assert str(loop) in candidates[0].failure.message


def test_links_under_scan_root_are_not_followed(estate: Path) -> None:
    (estate / "team" / "again").symlink_to(estate)
    (estate / "team" / JOB / "chk-12").symlink_to(estate / "team" / JOB / "chk-10")
    assert sorted(names(found(estate), estate)) == sorted(ALL)
    assert len(found(estate / "team" / "again")) == len(ALL)  # a root may be a link


def test_jobs_may_share_a_directory(tmp_path: Path) -> None:
    """With execution.checkpointing.create-subdir: false, jobs have no separate directories."""
    for number in (1, 2):
        checkpoint(tmp_path / "flink" / f"chk-{number}")
    checkpoint(tmp_path / "flink" / "shared" / "chk-7")
    (candidate,) = found(tmp_path, latest_only=True)
    assert candidate.pointer.endswith("/chk-2")
    assert candidate.job_directory == str(tmp_path / "flink")
    assert candidate.job_id is None


def test_newer_checkpoint_is_read_if_flink_deletes_newest_checkpoint_during_scan(
    estate: Path,
) -> None:
    """Only ``latest_only`` reads the newer checkpoint.

    Without it, each deleted checkpoint is reported as not found.
    """
    job = estate / "team" / JOB
    newest = found(job, latest_only=True)
    named = found(job)
    checkpoint(job / "chk-12")
    shutil.rmtree(job / "chk-9")
    shutil.rmtree(job / "chk-10")
    outcome = read_candidate(newest[0], Files())
    assert not isinstance(outcome, Failure)
    assert outcome.checkpoint.pointer == str(job / "chk-12")
    for candidate in named:
        outcome = read_candidate(candidate, Files())
        assert isinstance(outcome, Failure)
        assert outcome.kind == "not found"
