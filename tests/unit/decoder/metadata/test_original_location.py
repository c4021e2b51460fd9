"""Find the original directory of a checkpoint from its content, and detect copies."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from decoder import read_checkpoint
from decoder.metadata.original_location import is_other_directory, original_directory
from migrate.inputs.flink.extract import extract
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.planning import make_plan
from tests.support.checkpoints import splits, write_source
from tests.support.golden_topics import GOLDEN


def test_golden_checkpoint_contains_original_directory() -> None:
    entries = json.loads((GOLDEN / "manifest.json").read_text())["checkpoints"]
    told = 0
    for entry in entries:
        checkpoint = read_checkpoint(GOLDEN / entry["path"], allow_external_files=True)
        written = original_directory(checkpoint.operators)
        if written is not None:
            assert written == f"file:{entry['written_at']}"
            assert checkpoint.copied_from == written
            told += 1
    assert told > 0.7 * len(entries)


@pytest.mark.parametrize(
    ("directory", "written", "elsewhere"),
    [
        ("/flink/j/chk-7", "file:/flink/j/chk-7", False),
        ("/flink/j/chk-7", "file:///flink/j/chk-7/", False),
        ("/mnt/flink/j/chk-7", "file:/flink/j/chk-7", True),
        ("/flink/j/chk-7", "hdfs://namenode:8020/flink/j/chk-7", False),  # possibly a mount
        ("s3://bucket/j/chk-7", "s3a://bucket/j/chk-7", False),
        ("s3://bucket/j/chk-7", "s3://other/j/chk-7", True),
        ("s3://bucket/j/chk-7", "s3://bucket/k/chk-7", True),
        ("hdfs:///j/chk-7", "hdfs://namenode:8020/j/chk-7", False),
        ("abfs://c@host/j/chk-7", "abfss://c@host/j/chk-7", False),
        ("/home/me/chk-7", "s3://bucket/j/chk-7", True),
    ],
)
def test_original_checkpoint_directory_is_recognized_under_several_names(
    directory: str, written: str, elsewhere: bool
) -> None:
    """A different scheme, host, or mount can refer to the original.

    A different bucket or path cannot.
    """
    assert is_other_directory(directory, written) is elsewhere


def _warnings(chk: Path) -> str:
    extraction = extract(read_checkpoint(chk))
    logs = {
        topic: {n: LogRange(0, 10_000) for n in range(5)}
        for source in extraction.sources
        for topic in source.topics
    }
    return "\n".join(make_plan(extraction, extraction.sources, ClusterSnapshot(logs)).warnings)


def test_copied_checkpoint_has_unknown_age(tmp_path: Path) -> None:
    """The time of its metadata file can be the time of the copy."""
    (savepoint,) = (GOLDEN / "2.2/stop").glob("savepoint-*")
    copy = shutil.copytree(savepoint, tmp_path / savepoint.name, copy_function=shutil.copyfile)
    os.utime(copy / "_metadata", (1_790_000_000, 1_790_000_000))
    told = _warnings(copy)
    assert (
        f"is a copy of file:/flink/checkpoints/2.2/stop/{savepoint.name}, "
        "and its metadata file is dated" in told
    )
    assert "dated 2026-09-21T14:13:20+00:00; if this is the time of the copy instead of " in told
    assert "[age-unknown]" not in _warnings(write_source(tmp_path / "chk-7", {0: splits("t", [1])}))
