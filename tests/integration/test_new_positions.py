"""Let Flink's own classes read golden checkpoints with new positions.

The expected result is the original, as read by the same classes, with changed positions. The test
cannot detect an error that Flink's writer and our writer share, but the writers share no code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from decoder import read_checkpoint
from migrate.extensions.savepoints.write import write_savepoint
from migrate.model.errors import Refused
from migrate.model.positions import ClusterPartition
from tests.support.flink import RUN_BY_TESTS, dump_states
from tests.support.golden import GOLDEN, WRITTEN_BY_FLINK, ExpectedPosition, positions_of

pytestmark = pytest.mark.integration

_SOURCES = ("kafka_sources", "dynamic_sources", "hybrid_sources", "legacy_sources")
_MOVED, _MARKER_AT, _ADDED, _ADDED_AT = 5, 7, 77, 123
# Checkpoints that cannot be rewritten, because files are outside their directory
# (test_new_savepoint.py).
_NOT_WRITTEN = ("changelog", "changelog-materialized")
# The sizes of a source's state, which grow with each added partition.
_SIZES = ("operator_state_bytes", "coordinator_state_bytes")


def _kinds(entry: dict[str, Any]) -> dict[str, list[str]]:
    kinds = (*_SOURCES, "sink_operators", "async_operators", "file_operators")
    return {kind: entry[kind] for kind in kinds if entry.get(kind)}


def _moved(held: ExpectedPosition) -> ExpectedPosition:
    start = held.next_offset
    return held._replace(state="next", next_offset=_MARKER_AT if start is None else start + _MOVED)


def _owner(topic: str, parallelism: int) -> int:
    """Compute ``KafkaSourceEnumerator.getSplitOwner`` for the added partition of a topic."""
    java_hash = 0
    for character in topic:
        java_hash = (31 * java_hash + ord(character)) % 2**32
    return ((java_hash * 31) % 2**31 % parallelism + _ADDED) % parallelism


def _changes(
    entry: dict[str, Any],
) -> tuple[dict[str, dict[ClusterPartition, int | None]], list[ExpectedPosition]]:
    """Return new positions for a checkpoint, and the positions that Flink must then read.

    All positions in readers change. The last position of each source is removed, and each topic
    gets an added partition.
    """
    wanted: dict[str, dict[ClusterPartition, int | None]] = {}
    after: list[ExpectedPosition] = []
    parallelism = {o["operator_id"]: o["parallelism"] for o in entry["expected"]["operators"]}
    positions = positions_of(entry)
    bounded = any(held.stopping_offset is not None for held in positions)
    for operator_id in {held.operator_id for held in positions}:
        own = sorted(held for held in positions if held.operator_id == operator_id)
        changing = [held for held in own if held.subtask is not None]
        after += [held for held in own if held.subtask is None]
        places = wanted.setdefault(operator_id, {})
        for held in changing:
            new = _moved(held)
            places[ClusterPartition(held.cluster, held.topic, held.partition)] = new.next_offset
            after.append(new)
        if len(changing) > 1:
            last = changing[-1]
            places[ClusterPartition(last.cluster, last.topic, last.partition)] = None
            after.pop()
        for cluster, topic in {(held.cluster, held.topic) for held in changing}:
            if bounded:
                continue
            places[ClusterPartition(cluster, topic, _ADDED)] = _ADDED_AT
            owner = _owner(topic, parallelism[operator_id])
            after.append(
                ExpectedPosition(
                    operator_id, cluster, topic, _ADDED, "next", _ADDED_AT, None, owner
                )
            )
    return wanted, after


@pytest.mark.parametrize("version", RUN_BY_TESTS)
def test_flink_reads_rewritten_positions(version: str, tmp_path: Path) -> None:
    entries = [
        entry
        for entry in WRITTEN_BY_FLINK
        if entry["name"].startswith(f"{version}/")
        and entry["name"].partition("/")[2] not in _NOT_WRITTEN
        and any(entry.get(kind) for kind in _SOURCES)
    ]
    written: dict[Path, dict[str, list[str]]] = {}
    expected: list[tuple[dict[str, Any], list[ExpectedPosition]]] = []
    for entry in entries:
        wanted, after = _changes(entry)
        new = tmp_path / entry["name"].replace("/", "-")
        write_savepoint(read_checkpoint(GOLDEN / entry["path"]), wanted, new)
        written[new] = _kinds(entry)
        expected.append((entry, after))
    assert len(written) > 10
    for dump, (entry, after) in zip(dump_states(version, written), expected, strict=True):
        assert sorted(positions_of({**entry, "expected": dump}), key=str) == sorted(
            after, key=str
        ), entry["name"]
        sources = {held.operator_id for held in after}
        for old, new_one in zip(entry["expected"]["operators"], dump["operators"], strict=True):
            if old["operator_id"] not in sources:
                assert new_one == old, entry["name"]
            else:
                for key in (
                    old.keys()
                    - {*_SIZES, "reader_splits", "enumerator", "dynamic"}
                    - {
                        "hybrid",
                        "legacy",
                    }
                ):
                    assert new_one[key] == old[key], (entry["name"], key)


def test_added_partition_is_refused_for_enumerator_of_version_0(tmp_path: Path) -> None:
    (entry,) = (entry for entry in WRITTEN_BY_FLINK if entry["name"] == "1.12/old")
    (operator_id,) = entry["kafka_sources"]
    topic = positions_of(entry)[0].topic
    with pytest.raises(Refused, match="version 0"):
        write_savepoint(
            read_checkpoint(GOLDEN / entry["path"]),
            {operator_id: {ClusterPartition(None, topic, _ADDED): 1}},
            tmp_path / "new",
        )
