"""Write docs/support-matrix.md, with the proven formats from the golden manifests.

python -m tests.golden.support_matrix    # `make golden` does it too
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tests.golden.scenarios import EVERY, NO_MORE_WRITTEN, SNAPSHOTS, SOURCES, STATE, Scenario
from tests.golden.state.jobs import SHAPES, STORAGE, KeyedJob

_HERE = Path(__file__).parent
MATRIX = _HERE.parents[1] / "docs" / "support-matrix.md"

_INTRODUCTION = """\
# Flink versions and sources

<!-- `python -m tests.golden.support_matrix` writes this page from manifests: do not edit it. -->

This page lists the checkpoints that `migrate` is tested with. Each mark (✓) or version is a
checkpoint that a real Flink job wrote. Every test run decodes the checkpoint. It compares the
result with the values that the classes of Flink and its connector read from the same bytes.
"""
_READ = "✓"
_KEYED = """\
Each mark (✓) is a snapshot of a real Flink job, in `tests/golden/state`. Flink restored the first
snapshot of each job and reported the values. The decoder reads the same values from all snapshots
of the job. It refuses a checkpoint of the changelog backend if the changelog has changes after its
base.
"""
_SHAPES = """\
Each row is a job. `canonical` and `native` are savepoints, and `retained` is a checkpoint.
"""
# For each place where Flink stores keyed state, a pattern for the names of the jobs in
# `tests/golden/state` that use this place, and the form of their snapshots.
_KEPT = {
    "canonical savepoint": ("*", "canonical"),
    "heap, native savepoint": ("*", "native"),
    "heap, checkpoint": ("*", "retained"),
    "RocksDB, incremental": ("rocksdb*", "retained"),
    "RocksDB, full": ("rocksdb-full", "retained"),
    "changelog, base": ("changelog-*", "retained"),
    "changelog, log": ("changelog", "retained"),
}

_WRITTEN_ANEW = """\
`migrate to-flink` can rewrite every checkpoint on this page, except for the changelog backend and
metadata version 2 (`tests/golden/test_new_savepoint.py`). The classes of Flink 1.15, 1.20, and 2.2
read the new savepoints. These classes find the changed positions and the added partitions, but not
the removed partitions (`tests/integration/test_new_positions.py`).

Real jobs with keyed state resume from the new savepoints, and count each record from the new
positions onward exactly once (`tests/integration/test_to_flink.py`). The jobs cover these cases:

- a stop-with-savepoint, state in files, unaligned checkpoints, and compressed checkpoints (1.15,
  1.20, 2.2, 2.3)
- incremental RocksDB (1.20, 2.2)
- merged files (2.2, 2.3)

To test different versions than `make test`, set, for example, `FLINK_VERSIONS="1.15 1.20"`.
"""


def support_matrix() -> str:
    """Return the text of the page."""
    entries = _entries(_HERE / "manifest.json", "checkpoints")
    encoded = _HERE / "synthetic" / "manifest.json"
    parts = [
        _INTRODUCTION,
        "## Flink versions and kinds of snapshot\n",
        _snapshots(entries),
        "## State\n",
        _scenarios(STATE, entries),
        "## Sources and sinks\n",
        _scenarios(SOURCES, entries),
        "## Keyed state by Flink version and storage\n",
        _KEYED,
        _kept(),
        "## Keyed state by type\n",
        _SHAPES,
        _keyed(SHAPES),
        "## Keyed state by storage\n",
        _keyed(STORAGE),
        "## Savepoints with new positions\n",
        _WRITTEN_ANEW,
        "## Layouts of unsupported Flink versions\n",
        _scenarios(NO_MORE_WRITTEN, entries),
        "## States from Flink's serializers without a job\n",
        "Flink's own serializers wrote these states, because no test job can produce them.\n",
        _encoded({**_entries(encoded, "sources"), **_entries(encoded, "unreleased")}),
    ]
    return "\n".join(parts)


def _entries(manifest: Path, key: str) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in json.loads(manifest.read_text())[key]}


def _snapshots(entries: dict[str, dict[str, Any]]) -> str:
    rows = []
    for version in EVERY:
        found = [entries.get(f"{version}/{scenario.name}") for scenario in SNAPSHOTS]
        some = next((entry for entry in found if entry), None)
        if some is not None:
            metadata = str(some["expected"]["metadata_version"])
            marks = (_READ if entry else "" for entry in found)
            rows.append([some["flink"], some["connector"], metadata, _enumerator(some), *marks])
    names = [scenario.name for scenario in SNAPSHOTS]
    return _table(["Flink", "Connector", "Metadata", "Enumerator state", *names], rows)


def _enumerator(entry: dict[str, Any]) -> str:
    """Return the version of the KafkaSource's enumerator state."""
    told = (operator["enumerator"] for operator in entry["expected"]["operators"])
    return ", ".join(str(enumerator["serializer_version"]) for enumerator in told if enumerator)


def _scenarios(scenarios: Iterable[Scenario], entries: dict[str, dict[str, Any]]) -> str:
    rows = []
    for scenario in scenarios:
        names = (f"{version}/{scenario.name}" for version in scenario.versions)
        flinks = [entries[name]["flink"] for name in names if name in entries]
        if flinks:
            rows.append([scenario.name, scenario.description, ", ".join(flinks)])
    return _table(["Checkpoint", "Contents", "Flink"], rows)


def _keyed(jobs: Iterable[KeyedJob]) -> str:
    """Return the forms of a job's snapshots, by Flink release."""
    forms: dict[str, dict[str, list[str]]] = {}
    for name, entry in _entries(_HERE / "state" / "manifest.json", "snapshots").items():
        _, job, form = name.split("/")
        forms.setdefault(job, {}).setdefault(form, []).append(entry["flink"])
    kinds = ("canonical", "native", "retained")
    rows = [
        [job.name, job.description, *(", ".join(forms[job.name].get(form, ())) for form in kinds)]
        for job in jobs
    ]
    return _table(["Job", "Contents", *kinds], rows)


def _kept() -> str:
    """Return the places from which keyed state is read, by Flink release."""
    found: dict[str, set[str]] = {}
    releases: dict[str, str] = {}
    for name, entry in _entries(_HERE / "state" / "manifest.json", "snapshots").items():
        version, job, form = name.split("/")
        releases[version] = entry["flink"]
        for place, (jobs, of_form) in _KEPT.items():
            other = jobs == "*" and form != "canonical" and job.startswith(("rocksdb", "changelog"))
            full = place == "RocksDB, incremental" and job == "rocksdb-full"
            if form == of_form and fnmatchcase(job, jobs) and not (other or full):
                found.setdefault(version, set()).add(place)
    marks = dict.fromkeys(_KEPT, _READ) | {"changelog, log": "refused"}
    rows = [
        [releases[version], *(marks[place] if place in found[version] else "" for place in _KEPT)]
        for version in EVERY
        if version in found
    ]
    return _table(["Flink", *_KEPT], rows)


def _encoded(entries: dict[str, dict[str, Any]]) -> str:
    return _table(
        ["State", "Contents", "Flink", "Connector"],
        [
            [name.partition("/")[2], entry["description"], entry["flink"], entry["connector"]]
            for name, entry in entries.items()
        ],
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    MATRIX.write_text(support_matrix(), encoding="utf-8")


if __name__ == "__main__":
    main()
