"""Signs that a Spark query has continued, and the wait for such a sign."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate.inputs.spark_progress import batch_signs, find_query_watch
from migrate.inputs.spark_query import query_positions
from tests.support.spark_files import COMMIT, SEED, spark_directory

_QUERY = {"metadata": '{"id":"0123abcd-0000-1111-2222-0123456789ab"}', "sources/0/0": SEED}
_METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":%s,"conf":{}}'
_OFFSETS = '{"t":{"0":%d}}'


def _batches(ages: Mapping[int, float]) -> dict[str, str]:
    """Return the logs of batches that started so many seconds ago, by their number."""
    now = time.time()
    files = {}
    for batch, age in ages.items():
        metadata = _METADATA % round(1000 * (now - age))
        files[f"offsets/{batch}"] = f"v1\n{metadata}\n{_OFFSETS % (90 + batch)}"
        files[f"commits/{batch}"] = COMMIT
    return files


@pytest.mark.parametrize(
    ("ages", "wait", "text"),
    [
        ({0: 1}, 6, "the query has not started a batch in 6 s"),
        ({0: 90}, None, "the query's log does not show how often it starts a batch"),
        ({0: 20, 1: 10}, 20, "the query has not started a batch in 20 s"),
        ({0: 5, 1: 4, 2: 3}, 3, "the query has not started a batch in 3 s"),
        (
            {0: 200, 1: 80},
            None,
            "the query's batches start up to 120 s apart, too long to wait",
        ),
        ({0: 7210, 1: 7200}, None, "the query started its last batch 120 minutes ago"),
    ],
)
def test_wait_for_batch_depends_on_recent_batches(
    tmp_path: Path, ages: dict[int, float], wait: float | None, text: str
) -> None:
    query = spark_directory(tmp_path / "query", _QUERY | _batches(ages))
    watch = find_query_watch(query_positions(f"spark:{query}").origin)
    assert watch.wait == (pytest.approx(wait, abs=0.1) if wait is not None else None)
    assert watch.text == text
    # A running query without new records starts no batch, so that silence proves nothing.
    assert not watch.is_quiet
    assert not watch.shows_stop


@pytest.mark.parametrize("metadata", ["{}", "[]", "{", '{"batchTimestampMs":"now"}'])
def test_wait_without_times_of_batches_is_skipped(tmp_path: Path, metadata: str) -> None:
    log = {"offsets/0": f"v1\n{metadata}\n{_OFFSETS % 90}"}
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 1}) | log)
    origin = query_positions(f"spark:{query}").origin
    assert find_query_watch(origin).wait is None


def test_batch_started_after_reading_is_sign(tmp_path: Path) -> None:
    begun = _batches({1: 1})
    del begun["commits/1"]
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 2}))
    before = query_positions(f"spark:{query}").origin
    assert list(batch_signs(before)) == []
    spark_directory(query, begun)
    assert list(batch_signs(before)) == ["it has started batch 1, but the move is from batch 0"]
    assert list(batch_signs(query_positions(f"spark:{query}").origin)) == []  # already known
    spark_directory(query, _batches({1: 1}))
    assert list(batch_signs(before)) == ["it has committed batch 1, but the move is from batch 0"]
