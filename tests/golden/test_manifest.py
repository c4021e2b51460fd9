"""Compare the golden checkpoints with the manifest and with Flink's own reading."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.golden.generate import CHECKPOINTS, GOLDEN, MANIFEST
from tests.golden.scenarios import SCENARIOS
from tests.golden.support_matrix import MATRIX, support_matrix
from tests.support.flink import KINDS, RELEASES, RUN_BY_TESTS, dump_states

ENTRIES: list[dict[str, Any]] = json.loads(MANIFEST.read_text())["checkpoints"]


def test_manifest_lists_checkpoint_of_every_scenario_and_flink_version() -> None:
    wanted = {
        f"{version}/{scenario.name}" for scenario in SCENARIOS for version in scenario.versions
    }
    assert {entry["name"] for entry in ENTRIES} == wanted


def test_golden_checkpoint_files_match_manifest() -> None:
    listed = {name: digest for entry in ENTRIES for name, digest in entry["files"].items()}
    present = {
        str(path.relative_to(GOLDEN)): sha256(path.read_bytes()).hexdigest()
        for version in RELEASES
        for path in (GOLDEN / version).rglob("*")
        if path.is_file()
    }
    assert present == listed


@pytest.mark.parametrize(
    ("version", "metadata", "enumerators"),
    [
        ("1.10", 2, set()),
        ("1.12", 3, {0}),
        ("1.15", 3, {1}),
        ("1.16", 4, {1}),
        ("1.17", 4, {1}),
        ("1.18", 4, {2}),
        ("1.19", 4, {2}),
        ("1.20", 4, {2}),
        ("2.0", 5, {2}),
        ("2.1", 6, {3}),
        ("2.2", 6, {3}),
        ("2.3", 6, {3}),
    ],
)
def test_each_flink_version_writes_expected_metadata_and_enumerator_versions(
    version: str, metadata: int, enumerators: set[int]
) -> None:
    dumps = [entry["expected"] for entry in ENTRIES if entry["flink"] == RELEASES[version][0]]
    told = [op["enumerator"] for dump in dumps for op in dump["operators"]]
    assert {dump["metadata_version"] for dump in dumps} == {metadata}
    assert {enumerator["serializer_version"] for enumerator in told if enumerator} == enumerators


def test_support_matrix_page_matches_manifest() -> None:
    assert MATRIX.read_text(encoding="utf-8") == support_matrix()


@pytest.fixture
def original_place() -> Iterator[None]:
    """Copy checkpoints that contain absolute URIs to the location where they were written."""
    made = []
    try:
        for entry in ENTRIES:
            if needs_its_place(entry):
                for name in entry["files"]:
                    target = CHECKPOINTS / name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(GOLDEN / name, target)
                made.append(CHECKPOINTS / entry["name"])
    except PermissionError as error:
        pytest.skip(f"these checkpoints can be read only where they were written: {error}")
    yield
    for directory in made:
        shutil.rmtree(directory)


def needs_its_place(entry: dict[str, Any]) -> bool:
    return any("/taskowned/" in name for name in entry["files"])


def entries_of(version: str, *, in_place: bool) -> list[dict[str, Any]]:
    """Return a version's checkpoints that need their original location, or the others."""
    return [
        entry
        for entry in ENTRIES
        if entry["flink"] == RELEASES[version][0] and needs_its_place(entry) == in_place
    ]


def operators_by_kind(entry: dict[str, Any]) -> dict[str, list[str]]:
    return {kind: ids for kind, ids in entry.items() if kind in KINDS}


@pytest.mark.integration
@pytest.mark.parametrize("version", RUN_BY_TESTS)
def test_flink_reads_golden_checkpoints_as_expected_in_manifest(version: str) -> None:
    entries = entries_of(version, in_place=False)
    checkpoints = {GOLDEN / entry["path"]: operators_by_kind(entry) for entry in entries}
    assert dump_states(version, checkpoints) == [entry["expected"] for entry in entries]


@pytest.mark.integration
@pytest.mark.usefixtures("original_place")
@pytest.mark.parametrize("version", ["1.20", "2.2"])
def test_flink_reads_merged_files_at_original_location(version: str) -> None:
    """The metadata contains absolute URIs, so the files are copied to their original location."""
    entries = entries_of(version, in_place=True)
    checkpoints = {Path(entry["written_at"]): operators_by_kind(entry) for entry in entries}
    assert checkpoints
    assert dump_states(version, checkpoints) == [entry["expected"] for entry in entries]
