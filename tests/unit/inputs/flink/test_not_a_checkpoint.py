"""Recognize files and directories that users mistake for a checkpoint, and report the remedy."""

from __future__ import annotations

import bz2
import io
import lzma
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.support.command import migrate
from tests.support.golden import golden

_FIELD = Path(__file__).parents[2] / "field" / "13-not-a-checkpoint"
_LOCATION = Path(__file__).parents[2] / "field" / "18-empty-files" / "ahead"
_NO_MAGIC = "not a Flink checkpoint; "
# The checkpoint directory of the job that wrote the high-availability pointer.
_JOB = "/flink/checkpoints/recovery/orders/retained0000/43468374059c2ea6b7cf72518ff650e1"


def _problem(path: Path | str) -> str:
    result = migrate("inspect", path)
    assert (result.code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("sp.zip", "the file is a zip archive; unpack it"),
        ("gz", "the file is compressed with gzip; unpack it"),
        ("gz/_metadata", "the file is compressed with gzip; unpack it"),
        ("lfs", "the file is a Git LFS pointer without the data; run `git lfs pull`"),
        (
            "completedCheckpoint6a3c9d",
            "the file is a pointer from the high-availability storage of Flink; pass its "
            f"checkpoint, {_JOB}/chk-4",
        ),
        (
            "configmap.txt",
            "the file is an entry of Flink's high availability (ZooKeeper or a ConfigMap); "
            "pass the file /flink/ha/recovery/default/completedCheckpoint6a3c9d, which contains "
            "the path of the checkpoint",
        ),
    ],
)
def test_kind_of_file_passed_instead_of_checkpoint_is_reported(name: str, problem: str) -> None:
    """Regression: The message was only "its magic number is missing"."""
    assert f"{_NO_MAGIC}{problem}" in _problem(_FIELD / name)


def test_kind_of_archive_passed_instead_of_checkpoint_is_reported(tmp_path: Path) -> None:
    content = (_FIELD / "only-metadata" / "_metadata").read_bytes()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("chk-4/_metadata"))
    for packed, kind in (
        (archive.getvalue(), "a tar archive"),
        (bz2.compress(content), "compressed with bzip2"),
        (lzma.compress(content), "compressed with xz"),
    ):
        file = tmp_path / "packed"
        file.write_bytes(packed)
        assert f"the file is {kind}; unpack it" in _problem(file)


def test_truncated_high_availability_pointer_yields_complete_path_or_no_path(
    tmp_path: Path,
) -> None:
    pointer = (_FIELD / "completedCheckpoint6a3c9d").read_bytes()
    file = tmp_path / "completedCheckpoint6a3c9d"
    named = set()
    for end in range(4, len(pointer), 13):
        file.write_bytes(pointer[:end])
        _, _, path = _problem(file).partition("pass its checkpoint, ")
        named.add(path)
    assert named == {"", f"{_JOB}/chk-4"}


@pytest.mark.parametrize("name", ["only-metadata", "only-metadata/_metadata"])
def test_error_for_metadata_without_state_files_suggests_copying_whole_directory(name: str) -> None:
    """Regression: The advice was to choose a different checkpoint."""
    problem = _problem(_FIELD / name)
    assert "operator state is missing; tried " in problem
    assert "copy the whole directory" in problem


@pytest.mark.parametrize(
    "name",
    ["", "offsets", "commits", "sources", "metadata", "offsets/3", "commits/4", "sources/0/0"],
)
def test_error_for_part_of_spark_checkpoint_location_suggests_spark_prefix(name: str) -> None:
    problem = _problem(_LOCATION / name)
    assert f"pass spark:{_LOCATION}" in problem


def test_error_for_empty_file_explains_directory_markers_of_object_stores(tmp_path: Path) -> None:
    (tmp_path / "chk-5").write_bytes(b"")
    assert (
        "the file or object is empty (some tools create such objects for directories)"
    ) in _problem(tmp_path / "chk-5")


@pytest.mark.parametrize("part", ["", "_metadata"])
def test_flink_checkpoint_passed_with_spark_prefix_is_recognized(tmp_path: Path, part: str) -> None:
    chk = tmp_path / "chk-4"
    shutil.copytree(golden("1.20/retained-files"), chk)
    result = migrate("to-spark", f"spark:{chk / part}")
    assert result.code == 3
    assert "[flink-checkpoint-as-query]" in result.stderr


@pytest.mark.parametrize("name", ["", "_metadata"])
def test_metadata_file_of_different_program_is_reported_as_such(tmp_path: Path, name: str) -> None:
    """Regression: The advice was to pass a checkpoint directory, although one had been passed."""
    (tmp_path / "_metadata").write_bytes(b"\x01\x02 no checkpoint")
    problem = _problem(tmp_path / name)
    assert "does not start as Flink's metadata does" in problem
    assert problem.endswith("pass a different checkpoint")
