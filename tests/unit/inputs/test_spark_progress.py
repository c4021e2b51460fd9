"""Signs that a Spark query has continued, and the wait for such a sign."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from migrate.inputs.spark_progress import batch_signs, find_query_watch
from migrate.inputs.spark_query import query_positions
from migrate.model.positions import Origin
from tests.support.spark_files import COMMIT, SEED, spark_directory

_QUERY = {"metadata": '{"id":"0123abcd-0000-1111-2222-0123456789ab"}', "sources/0/0": SEED}
_METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":%s,"conf":{}}'
_OFFSETS = '{"t":{"0":%d}}'


def _batches(ages: Mapping[int, float]) -> dict[str, str]:
    """Return the logs of batches that have these ages in seconds."""
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
        ({0: 1}, 6, "the query's log has had no newer batch for 6 s"),
        (
            {0: 90},
            None,
            "the query's log does not show how often the query starts a batch, so migrate did not "
            "wait for the next one",
        ),
        ({0: 20, 1: 10}, 20, "the query's log has had no newer batch for 20 s"),
        ({0: 5, 1: 4, 2: 3}, 3, "the query's log has had no newer batch for 3 s"),
        (
            {0: 200, 1: 80},
            None,
            "the query's batches start up to 120 s apart, so migrate did not wait for the next one",
        ),
        (
            {0: 7210, 1: 7200},
            None,
            "the last batch in the query's log started 120 minutes ago, so migrate did not wait "
            "for the next one",
        ),
    ],
)
def test_wait_for_newer_batch_depends_on_times_of_recent_batches(
    tmp_path: Path, ages: dict[int, float], wait: float | None, text: str
) -> None:
    query = spark_directory(tmp_path / "query", _QUERY | _batches(ages))
    watch = find_query_watch(query_positions(f"spark:{query}").origin)
    assert watch.wait == (pytest.approx(wait, abs=0.1) if wait is not None else None)
    assert watch.text == text
    # A running query without new records starts no batch, so a missing batch proves nothing.
    assert not watch.is_quiet
    assert not watch.shows_stop


def test_wait_for_query_with_asynchronous_progress_depends_on_logged_batches(
    tmp_path: Path,
) -> None:
    """Regression: The time between two logged batches was divided by the number of all batches."""
    query = spark_directory(tmp_path / "query", _QUERY | _batches({70: 14, 78: 2}))
    assert find_query_watch(query_positions(f"spark:{query}").origin).wait == pytest.approx(
        24, abs=0.1
    )


def test_wait_for_continuous_query_depends_on_times_of_epoch_files(tmp_path: Path) -> None:
    """Regression: Epochs have no ``batchTimestampMs``, so the move did not wait."""
    log = {"offsets/0": f"v1\n\n{_OFFSETS % 90}"}
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 1}) | log)
    origin = Origin("batch", f"spark:{query}", 0)
    assert find_query_watch(origin).wait == 6


@pytest.mark.parametrize("metadata", ["{"])
def test_move_from_query_with_damaged_log_does_not_wait(tmp_path: Path, metadata: str) -> None:
    log = {"offsets/0": f"v1\n{metadata}\n{_OFFSETS % 90}"}
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 1}) | log)
    origin = query_positions(f"spark:{query}").origin
    assert find_query_watch(origin).wait is None


def test_batch_started_after_reading_shows_that_query_is_running(tmp_path: Path) -> None:
    begun = _batches({1: 1})
    del begun["commits/1"]
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 2}))
    before = query_positions(f"spark:{query}").origin
    assert list(batch_signs(before)) == []
    spark_directory(query, begun)
    assert list(batch_signs(before)) == ["it has started batch 1, but the move is from batch 0"]
    # Positions that are read now take batch 1 into account, so it is not a sign.
    assert list(batch_signs(query_positions(f"spark:{query}").origin)) == []
    spark_directory(query, _batches({1: 1}))
    assert list(batch_signs(before)) == ["it has committed batch 1, but the move is from batch 0"]


def test_batch_committed_again_under_same_number_indicates_running_query(tmp_path: Path) -> None:
    """Regression: A running query was not detected if it had been reset and restarted.

    Such a query commits different records under the same batch number.
    """
    query = spark_directory(tmp_path / "query", _QUERY | _batches({0: 2}))
    origin = query_positions(f"spark:{query}").origin
    os.utime(query / "commits/0", (1_000, 1_000))
    assert list(batch_signs(origin)) == ["it has committed batch 0 again"]
