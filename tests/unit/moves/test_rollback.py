"""Find the changes to a group whose rollback files are in the same directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from migrate.model.cluster_snapshot import Committed, GroupView
from migrate.model.warning import record_warnings
from migrate.moves.rollback import _history
from migrate.storage.json_models import write_file
from migrate.targets.group.rollback_file import rollback_file


@pytest.mark.parametrize("version", [2, 9])
def test_rollback_file_of_different_release_does_not_prevent_rollback(
    tmp_path: Path, version: int
) -> None:
    """Regression: A file of a different release in the same directory prevented the rollback."""
    after = {("a", 0): Committed(5)}
    group = GroupView("g", False, "Empty", "classic", (), {})
    file = rollback_file("commit", "cluster", "localhost:9092", group, after, {"a": "x1"})
    write_file(file, tmp_path / "file.json")
    write_file(file, tmp_path / "newer.json")
    document = json.loads((tmp_path / "newer.json").read_text())
    if version != document["version"]:
        (tmp_path / "newer.json").write_text(json.dumps({**document, "version": version}))
    with record_warnings() as warnings:
        found = [path.name for path, _ in _history(tmp_path / "file.json", file)]
    assert sorted(found) == (["file.json", "newer.json"] if version == 2 else ["file.json"])
    assert [text.code for text in warnings] == ["rollback-file-ignored"] * (version == 9)
