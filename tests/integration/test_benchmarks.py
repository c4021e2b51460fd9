"""Run `make bench` on small checkpoints that Flink's serializers wrote. All readers must agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.checkpoints import create_missing, everyday, handles, source
from benchmarks.measuring import measure
from benchmarks.processes import BenchmarkError, run
from benchmarks.readers import BARE, BYTES, OURS, OURS_MANY, PROCESSOR, Answer

pytestmark = pytest.mark.integration


def test_migrate_and_flink_readers_find_same_partitions() -> None:
    small = source("test-partitions", 1_000, 10)
    create_missing([small])
    case = measure(small, (OURS, BARE, PROCESSOR), 1)
    assert case["partitions"] == 1_000
    for figures in case["readers"].values():
        assert 0 < figures["seconds"]["min"] == figures["seconds"]["max"]
        assert figures["peak_bytes"]["max"] > 5e6
    assert set(case["ratios"]) == {"bare", "processor"}


def test_all_benchmark_readers_read_every_partition_of_many_jobs() -> None:
    many = everyday("test-many", 20)
    create_missing([many])
    case = measure(many, (OURS_MANY, BYTES, BARE), 1)
    assert (case["checkpoints"], case["partitions"]) == (20, 20 * 18)
    assert case["file_bytes"] == sum(file.stat().st_size for file in many.files())


def test_benchmark_fails_if_readers_find_different_positions() -> None:
    job = handles("test-handles", 2, 4)
    create_missing([job])
    blind = replace(BARE, name="blind", answer=lambda _: Answer(0, 0))
    with pytest.raises(BenchmarkError, match="different positions"):
        measure(job, (OURS, blind), 1)


def test_failing_benchmark_reader_is_reported_with_its_exception(tmp_path: Path) -> None:
    nowhere = everyday("test-nowhere", 2)
    with pytest.raises(BenchmarkError, match=r"NoSuchFileException.*test-nowhere"):
        run(BARE.command(nowhere), tmp_path / "stdout")
