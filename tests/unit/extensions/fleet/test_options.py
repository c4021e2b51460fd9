"""Options of a scan in Spark, and the split of its work into chunks."""

from __future__ import annotations

import random

import pytest

from migrate.extensions.fleet.candidates import Candidate, split_candidates
from migrate.extensions.fleet.options import CheckpointOptions, Mode, parse_options
from migrate.extensions.fleet.rows import Selection
from migrate.extensions.fleet.view_columns import CheckpointView
from migrate.model.errors import UsageError


def test_parse_options_returns_defaults() -> None:
    assert parse_options({"path": "/flink"}) == CheckpointOptions()
    assert CheckpointOptions().view is CheckpointView.POSITIONS
    assert CheckpointOptions().mode is Mode.PERMISSIVE


def test_parse_options_ignores_case() -> None:
    options = {
        "VIEW": "Checkpoints",
        "mode": "failFast",
        "Topic": "orders, payments",
        "latestonly": "TRUE",
        "allowExternalFiles": "true",
        "NUMPARTITIONS": "7",
        "paths": '["/a","/b"]',
    }
    assert parse_options(options) == CheckpointOptions(
        view=CheckpointView.CHECKPOINTS,
        mode=Mode.FAILFAST,
        selection=Selection(frozenset({"orders", "payments"})),
        latest_only=True,
        allow_external_files=True,
        partitions=7,
    )


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("view", "offsets", "positions, operators, checkpoints, findings"),
        ("mode", "lenient", "PERMISSIVE, DROPMALFORMED, FAILFAST"),
        ("latestOnly", "yes", "true, false"),
        ("numPartitions", "0", "at least 1"),
        ("numPartitions", "many", "at least 1"),
        ("latest-only", "true", "latestOnly"),
    ],
)
def test_parse_options_lists_allowed_values_for_invalid_option(
    name: str, value: str, known: str
) -> None:
    with pytest.raises(UsageError, match=known):
        parse_options({name: value})


def candidates(sizes: list[int]) -> list[Candidate]:
    return [Candidate(f"/flink/chk-{n:05}", None, size) for n, size in enumerate(sizes)]


MIB = 1024 * 1024


def test_small_checkpoints_of_scan_share_a_chunk() -> None:
    chunks = split_candidates(candidates([3000] * 10_000))
    assert len(chunks) == 40
    assert {len(chunk) for chunk in chunks} == {250}


def test_large_checkpoint_of_scan_gets_its_own_chunk() -> None:
    chunks = split_candidates(candidates([3000] * 500 + [120 * MIB] + [3000] * 500))
    giants = [chunk for chunk in chunks if any((c.metadata_bytes or 0) > MIB for c in chunk)]
    assert [len(chunk) for chunk in giants] == [1]


def test_scan_chunks_are_balanced_and_complete() -> None:
    chance = random.Random(7)
    given = candidates([chance.randrange(MIB) for _ in range(1000)])
    chunks = split_candidates(given, 8)
    sizes = [sum(c.metadata_bytes or 0 for c in chunk) for chunk in chunks]
    assert max(sizes) < 1.02 * min(sizes)
    assert sorted((c for chunk in chunks for c in chunk), key=lambda c: c.pointer) == given
    assert all(chunk == sorted(chunk, key=lambda c: c.pointer) for chunk in chunks)


@pytest.mark.parametrize(("wanted", "there"), [(None, 1), (1, 1), (2, 2), (100, 3)])
def test_scan_chunks_are_never_empty(wanted: int | None, there: int) -> None:
    chunks = split_candidates(candidates([1, 2, 3]), wanted)
    assert len(chunks) == there
    assert all(chunks)


def test_scan_without_checkpoints_has_no_chunks() -> None:
    assert split_candidates([], 4) == []
