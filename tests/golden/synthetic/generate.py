"""Regenerate the synthetic metadata files.

python -m tests.golden.synthetic.generate
"""

from __future__ import annotations

import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.support.flink import RELEASES, encode_sources
from tests.support.keyed_jobs import serializers
from tests.support.round_trip import (
    Parsed,
    checkpoint_properties,
    write_all_handles,
)

HERE = Path(__file__).parent
MANIFEST = HERE / "manifest.json"
PROPERTIES = HERE / "properties.json"
SERIALIZERS = HERE / "serializers.json"

# Every version that a release still writes, and version 2, which its serializer still supports.
_WRITTEN = (
    ("1.15", 2),
    ("1.15", 3),
    ("1.20", 3),
    ("1.20", 4),
    ("2.2", 5),
    ("2.2", 6),
)
# The releases with properties. 1.15 writes metadata 3 without properties.
_WITH_PROPERTIES = (("1.20", (4,)), ("2.2", (4, 5, 6)))

# The states from EncodedSources.java. The enumerator's state has version 2 in 1.20, and 3 in 2.2.
_SOURCES = {
    "unassigned": "KafkaSource with splits that no reader has yet, before the end of the first "
    "discovery",
    "removed-cluster": "DynamicKafkaSource with a cluster that its streams no longer contain",
}


def report(told: Parsed) -> dict[str, Any]:
    """Return Flink's report on a checkpoint, per operator; sizes are from `getStateSize()`."""
    return {
        "checkpoint_id": told["checkpoint_id"],
        "properties": told["properties"],
        "operators": [_operator_report(operator) for operator in told["operators"]],
    }


def _operator_report(operator: Parsed) -> dict[str, Any]:
    subtasks = operator["subtasks"]
    coordinator = operator["coordinator"]
    handles = [
        subtask[kind] for subtask in subtasks for kind in ("managed_operator", "raw_operator")
    ]
    return {
        "operator_id": operator["operator_id"],
        "name": operator["name"],
        "uid": operator["uid"],
        "parallelism": operator["parallelism"],
        "max_parallelism": operator["max_parallelism"],
        "finished": operator["finished"],
        "subtasks": [subtask["index"] for subtask in subtasks],
        "finished_subtasks": [subtask["index"] for subtask in subtasks if subtask["finished"]],
        "state_names": sorted({name for handle in handles if handle for name in handle["states"]}),
        "coordinator_state_bytes": len(bytes.fromhex(coordinator["data"])) if coordinator else None,
        "operator_state_bytes": sum(subtask["operator_state_size"] for subtask in subtasks),
        "keyed_state_bytes": sum(subtask["keyed_state_size"] for subtask in subtasks),
        "in_flight_bytes": sum(subtask["in_flight_size"] for subtask in subtasks),
    }


def _checkpoint(flink: str, version: int) -> dict[str, Any]:
    name = f"{flink}-v{version}-all-handles"
    directory = HERE / name
    shutil.rmtree(directory, ignore_errors=True)
    told = write_all_handles(flink, version, directory)
    return {
        "path": f"{name}/_metadata",
        "sha256": sha256((directory / "_metadata").read_bytes()).hexdigest(),
        "flink": RELEASES[flink][0],
        "written_by": f"MetadataV{version}Serializer",
        "metadata_version": version,
        "expected": report(told),
    }


def _source(flink: str, name: str) -> dict[str, Any]:
    directory = HERE / f"{flink}-{name}"
    shutil.rmtree(directory, ignore_errors=True)
    told = encode_sources(flink, name, directory)
    release, connector = RELEASES[flink]
    return {
        "name": f"synthetic/{directory.name}",
        "description": _SOURCES[name],
        "path": directory.name,
        "sha256": sha256((directory / "_metadata").read_bytes()).hexdigest(),
        "flink": release,
        "connector": connector,
        "kafka_sources": [],
        **told["operators"],
        "expected": told["dump"],
    }


def _properties(flink: str, versions: tuple[int, ...]) -> dict[str, Any]:
    return {
        "flink": RELEASES[flink][0],
        "class": "org.apache.flink.runtime.checkpoint.CheckpointProperties",
        "metadata_versions": versions,
        "kinds": checkpoint_properties(flink),
    }


def _serializers() -> list[dict[str, Any]]:
    """Return the serializers of both versions, with equal output listed once."""
    written: dict[str, dict[str, Any]] = {}
    for flink in ("1.20", "2.2"):
        for one in serializers(flink):
            written.setdefault(json.dumps(one), {"flink": [], **one})["flink"].append(flink)
    return list(written.values())


def _write_lines(path: Path, items: list[dict[str, Any]]) -> None:
    path.write_text("[\n" + ",\n".join(map(json.dumps, items)) + "\n]\n", encoding="ascii")


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="ascii")


def main() -> None:
    checkpoints = [_checkpoint(flink, version) for flink, version in _WRITTEN]
    sources = [_source(flink, name) for flink in ("1.20", "2.2") for name in _SOURCES]
    # No jar has the classes that wrote these files.
    unreleased = json.loads(MANIFEST.read_text())["unreleased"]
    _write(MANIFEST, {"checkpoints": checkpoints, "sources": sources, "unreleased": unreleased})
    _write(PROPERTIES, [_properties(flink, versions) for flink, versions in _WITH_PROPERTIES])
    _write_lines(SERIALIZERS, _serializers())


if __name__ == "__main__":
    main()
