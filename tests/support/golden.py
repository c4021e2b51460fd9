"""Return the golden checkpoints, and the positions that Flink's own classes read from each of them.

The positions come only from the manifests, from the output of the deserializers of Flink and the
connector. They do not depend on the decoder.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

GOLDEN = Path(__file__).parents[1] / "golden"
MANIFEST = json.loads((GOLDEN / "manifest.json").read_text())
_SYNTHETIC = json.loads((GOLDEN / "synthetic" / "manifest.json").read_text())
# The manifest's entries for checkpoints that a real Flink job wrote.
WRITTEN_BY_FLINK: list[dict[str, Any]] = MANIFEST["checkpoints"]
# The entries above, and the entries for the synthetic checkpoints of sources. These have states
# that no test job can produce, and layouts of unreleased versions.
ENTRIES: list[dict[str, Any]] = [
    *WRITTEN_BY_FLINK,
    *(
        {**entry, "path": f"synthetic/{entry['path']}"}
        for entry in (*_SYNTHETIC["sources"], *_SYNTHETIC["unreleased"])
    ),
]
# The name of one checkpoint for each scenario. The checkpoints of the same scenario from other
# versions of Flink differ only slightly.
ONE_OF_EACH = set({entry["name"].partition("/")[2]: entry["name"] for entry in ENTRIES}.values())

_EARLIEST, _LATEST, _COMMITTED, _NOT_SET = -2, -1, -3, -(1 << 63)
_MARKERS = {_EARLIEST: "earliest", _LATEST: "latest", _COMMITTED: "committed"}
# KafkaTopicPartitionStateSentinel: earliest, latest and group offsets, and an offset not set.
_LEGACY_MARKERS = {
    -915623761775: "earliest",
    -915623761774: "latest",
    -915623761773: "committed",
    -915623761776: "unresolved",
}


class ExpectedPosition(NamedTuple):
    """A topic-partition of a source, as ``migrate inspect`` must report it."""

    operator_id: str
    cluster: str | None
    topic: str
    partition: int
    state: str
    next_offset: int | None
    stopping_offset: int | None
    subtask: int | None


def golden(name: str) -> Path:
    """Return the directory of a golden checkpoint, such as ``2.2/retained``."""
    return GOLDEN / next(str(entry["path"]) for entry in ENTRIES if entry["name"] == name)


def positions_of(entry: Mapping[str, Any]) -> list[ExpectedPosition]:
    """Return the expected positions of a checkpoint, unsorted."""
    return [
        listed
        for operator in entry["expected"]["operators"]
        for listed in _operator(operator, entry)
    ]


def _operator(operator: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[ExpectedPosition]:
    operator_id = operator["operator_id"]
    if "dynamic" in operator:
        dynamic = operator["dynamic"]
        enumerators = {**dynamic["enumerator"]["clusters"], **dynamic.get("retained", {})}
        for cluster, enumerator in enumerators.items():
            splits = [s for s in dynamic["reader_splits"] if s["cluster"] == cluster]
            yield from _merged(operator_id, cluster, splits, enumerator)
    elif "hybrid" in operator:
        hybrid = operator["hybrid"]
        if hybrid["enumerator"]["kafka"] is not None:
            splits = [s["kafka"] for s in hybrid["reader_splits"] if s["kafka"]]
            yield from _merged(operator_id, None, splits, hybrid["enumerator"]["kafka"])
    elif "legacy" in operator:
        yield from _legacy(operator_id, operator["legacy"])
    elif "beam" in operator:
        for mark in operator["beam"]:
            place = operator_id, None, mark["topic"], mark["partition"]
            yield ExpectedPosition(*place, "next", mark["next_offset"], None, mark["subtask"])
    elif operator_id in entry["kafka_sources"] and not operator["finished"]:
        yield from _merged(operator_id, None, operator["reader_splits"], operator["enumerator"])


def _merged(
    operator_id: str,
    cluster: str | None,
    splits: Iterable[Mapping[str, Any]],
    enumerator: Mapping[str, Any],
) -> Iterator[ExpectedPosition]:
    listed = set()
    for split in splits:
        topic, partition, start = split["topic"], split["partition"], split["starting_offset"]
        listed.add((topic, partition))
        state = "next" if start >= 0 else _MARKERS.get(start, "unresolved")
        yield ExpectedPosition(
            *(operator_id, cluster, topic, partition, state),
            *(start if start >= 0 else None, _stop(split["stopping_offset"]), split["subtask"]),
        )
    for split in enumerator["splits"]:
        topic, partition = split["topic"], split["partition"]
        if (topic, partition) not in listed:
            state, next_offset = _enumerator_only(split)
            yield ExpectedPosition(
                *(operator_id, cluster, topic, partition, state),
                *(next_offset, _stop(split["stopping_offset"]), None),
            )


def _enumerator_only(split: Mapping[str, Any]) -> tuple[str, int | None]:
    """Return the state and the next offset of a split that only the enumerator lists."""
    start, stop = split["starting_offset"], _stop(split["stopping_offset"])
    if split["status"] in ("ASSIGNED", None):  # None: version 1, where each split is assigned
        if start is None or stop is None or stop < 0 or (start < 0 and start != _EARLIEST):
            return "unresolved", None
        return "finished", max(start, stop)
    if start is None or start == _NOT_SET:
        return "unresolved", None
    return "unassigned", start if start >= 0 else None


def _legacy(operator_id: str, listed: Iterable[Mapping[str, Any]]) -> Iterator[ExpectedPosition]:
    """Yield the positions of a FlinkKafkaConsumer from the last offset that it read."""
    for split in listed:
        stored = split["stored_offset"]
        state = _LEGACY_MARKERS.get(stored, "next")
        yield ExpectedPosition(
            *(operator_id, None, split["topic"], split["partition"], state),
            *(stored + 1 if state == "next" else None, None, split["subtask"]),
        )


def _stop(stored: int | None) -> int | None:
    return None if stored == _NOT_SET else stored
