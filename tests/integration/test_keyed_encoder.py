"""Restore the keyed state of `tests.support.encoder` with Flink's heap backend."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.flink import RUN_BY_TESTS
from tests.support.keyed_jobs import dump_keyed_state
from tests.support.strategies.keyed import KeyedCheckpoint, keyed_checkpoints

pytestmark = pytest.mark.integration

_EXAMPLES = 100


def drawn(count: int) -> list[KeyedCheckpoint]:
    found: list[KeyedCheckpoint] = []

    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(keyed_checkpoints())
    def draw(checkpoint: KeyedCheckpoint) -> None:
        found.append(checkpoint)

    draw()
    return found


@pytest.mark.parametrize("version", RUN_BY_TESTS)
def test_flink_restores_every_encoded_entry(version: str, tmp_path: Path) -> None:
    checkpoints = drawn(_EXAMPLES)
    paths = [each.store(tmp_path / str(number)) for number, each in enumerate(checkpoints)]
    told = dump_keyed_state(version, paths)
    for checkpoint, operators in zip(checkpoints, told, strict=True):
        (operator,) = operators
        restored = {state["state"]: lines(state["entries"]) for state in operator["states"]}
        assert restored == {name: lines(entries) for name, entries in checkpoint.rows.items()}


def lines(entries: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(entry, sort_keys=True) for entry in entries)
