"""Read state of Flink's Scala API, as a value and as a key.

For each key, the job stores the newest number, and a case class with this number. The case class is
Scala's own tuple.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import migrate
from tests.support.stateful_job import run_case_class_job

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def savepoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_case_class_job(tmp_path_factory.mktemp("case-classes"))


def _rows(savepoint: Path, operator: str, state: str) -> list[dict[str, Any]]:
    batches = migrate.read_state(savepoint, operator=operator, state=state)
    return [row for batch in batches for row in batch.to_pylist()]


def test_scala_case_class_is_read_as_state_value(savepoint: Path) -> None:
    numbers = {row["key"]: row["value"] for row in _rows(savepoint, "value", "number")}
    assert numbers.keys() == set(range(4))
    assert all(number % 4 == key for key, number in numbers.items())
    pairs = {row["key"]: row["value"] for row in _rows(savepoint, "value", "pair")}
    assert pairs == {key: {"f0": number, "f1": "value"} for key, number in numbers.items()}


def test_scala_case_class_is_read_as_state_key(savepoint: Path) -> None:
    numbers = {
        tuple(row["key"].values()): row["value"] for row in _rows(savepoint, "key", "number")
    }
    assert numbers.keys() == {(remainder, "key") for remainder in range(4)}
    assert all(number % 4 == key[0] for key, number in numbers.items())
    pairs = {tuple(row["key"].values()): row["value"] for row in _rows(savepoint, "key", "pair")}
    assert pairs == {key: {"f0": number, "f1": "value"} for key, number in numbers.items()}
