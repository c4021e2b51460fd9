"""Compare the golden snapshots of keyed state with the manifest and with Flink's own reading."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from tests.golden.state.generate import MANIFEST, STATE
from tests.golden.state.jobs import JOBS
from tests.support.flink import RUN_BY_TESTS
from tests.support.keyed_jobs import dump_keyed_state

ENTRIES: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["snapshots"]

# The maximum size of the files that every clone of the repository contains.
_MOST_BYTES = 5_500_000


def test_manifest_lists_state_of_every_job_and_flink_version() -> None:
    wanted = {f"{version}/{job.name}/expected.json" for job in JOBS for version in job.versions}
    assert {entry["expected"] for entry in ENTRIES} == wanted


def test_keyed_state_snapshot_files_match_manifest() -> None:
    listed = {name: digest for entry in ENTRIES for name, digest in entry["files"].items()}
    present = {
        str(path.relative_to(STATE)): path for path in STATE.glob("[0-9]*/**/*") if path.is_file()
    }
    digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in present.items()}
    assert digests == listed
    assert sum(path.stat().st_size for path in present.values()) < _MOST_BYTES


def by_operator(operators: list[dict[str, Any]]) -> list[Any]:
    """Return the operators, with the entries of each state in a fixed order."""
    return [
        operator
        | {
            "states": [
                state | {"entries": sorted(json.dumps(entry, sort_keys=True) for entry in entries)}
                if (entries := state.get("entries")) is not None
                else state
                for state in operator["states"]
            ]
        }
        for operator in operators
    ]


def heap_backend_reads(entry: dict[str, Any]) -> bool:
    """Return whether the heap backend can read the snapshot from any directory.

    The metadata of other snapshots may contain absolute URIs.
    """
    _, job, form = entry["name"].split("/")
    files = job.startswith("rocksdb") or job.endswith("forst")
    return form == "canonical" or (form == "native" and not files)


@pytest.mark.integration
@pytest.mark.parametrize("version", RUN_BY_TESTS)
def test_flink_restores_states_as_expected_in_manifest(version: str) -> None:
    entries = [entry for entry in ENTRIES if entry["name"].startswith(f"{version}/")]
    entries = [entry for entry in entries if heap_backend_reads(entry)]
    assert entries
    told = dump_keyed_state(version, (STATE / entry["path"] for entry in entries))
    for entry, operators in zip(entries, told, strict=True):
        expected = json.loads((STATE / entry["expected"]).read_text())
        assert by_operator(operators) == by_operator(expected), entry["name"]
