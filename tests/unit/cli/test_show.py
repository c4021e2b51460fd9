"""Show the files that `migrate` has written with ``migrate show``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from migrate import show
from migrate.inputs.spark_query import QueryLocation
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.storage.json_models import write_file
from migrate.targets.group import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.golden import GOLDEN
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory


def _rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits("orders", [3, 40])})


def test_show_plan_lists_positions_and_command_that_applies_plan(chk: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    assert migrate("to-spark", chk, "--plan-out", path).code == 0
    shown = migrate("show", path)
    assert (shown.code, shown.stderr) == (0, "")
    assert f"checkpoint 7, {chk}" in shown.stdout
    assert "nothing was checked against Kafka" in shown.stdout
    assert "of this time" not in shown.stdout
    rows = _rows(shown.stdout)
    assert [row[0:3] for row in rows if row[:1] == ["orders"]] == [
        ["orders", "0", "3"],
        ["orders", "1", "40"],
    ]
    assert "warning: not checked against Kafka" in shown.stdout
    assert rows[-1][:4] == ["2", "partitions;", "apply:", "migrate"]
    assert shown.stdout.endswith(f"migrate to-spark --plan {path} --checkpoint-dir DIR\n")
    assert isinstance(show(path), Plan)


def test_suggested_command_for_group_plan_contains_execute(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The suggested command did not apply the plan, but only previewed it."""
    monkeypatch.chdir(tmp_path)
    logs = {"orders": {0: LogRange(0, 90), 1: LogRange(0, 90)}}
    group = GroupView("g", False, "Dead", "unknown")
    snapshot = ClusterSnapshot(logs, "cluster", target_group=group)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    move = ("commit-group", chk, "--group", "g", "-b", "localhost:1")
    saved = migrate(*move, "--plan-out", "plan.json")
    assert saved.code == 0, saved.stderr
    apply = "migrate commit-group --group g --plan plan.json --execute -b"
    assert saved.stderr.endswith(f"review it, and then run: {apply} localhost:1\n")
    shown = migrate("show", "plan.json").stdout
    assert shown.endswith(f"; apply: {apply} HOST:PORT\n")
    # The group and the logs may have changed since then.
    made_at = read_plan(tmp_path / "plan.json").made_at.isoformat(timespec="seconds")
    assert shown.startswith(f"plan made at {made_at}; Kafka's offsets and LAG are of this time\n")
    other = migrate("to-spark", "--plan", "plan.json", "-b", "localhost:1")
    assert other.code == 2
    assert f"apply this plan with `{apply} HOST:PORT`" in other.stderr


def test_show_plan_reports_stop_with_savepoint(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    (original,) = (GOLDEN / "1.20" / "stop").iterdir()
    savepoint = shutil.copytree(original, tmp_path / original.name, copy_function=shutil.copyfile)
    assert (
        migrate("to-spark", savepoint, "--partitions", "payments:0", "--plan-out", path).code == 0
    )
    assert f"{savepoint.name} (stop-with-savepoint)\n" in migrate("show", path).stdout


def test_show_rollback_file_lists_changes_and_rollback_command(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    held = GroupView("g", True, "Empty", "consumer", committed={("t", 0): Committed(5, "")})
    after = {("t", 0): Committed(9, ""), ("t", 1): Committed(2, "")}
    write_file(rollback_file.rollback_file("commit", None, "broker:9092", held, after, {}), path)
    shown = migrate("show", path)
    assert (shown.code, shown.stderr) == (0, "")
    assert "written before a commit" in shown.stdout
    assert ["brokers:", "broker:9092"] in _rows(shown.stdout)
    assert [row for row in _rows(shown.stdout) if row[:1] == ["t"]] == [
        ["t", "0", "5", "9"],
        ["t", "1", "none", "2"],
    ]
    assert shown.stdout.endswith(
        f"2 partitions changed; to preview the rollback: migrate rollback {path}\n"
    )


def test_suggested_command_quotes_file_name(chk: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my plans"
    folder.mkdir()
    plan, location = folder / "plan.json", folder / "query"
    assert migrate("to-spark", chk, "--plan-out", plan).code == 0
    assert (
        f"migrate to-spark --plan '{plan}' --checkpoint-dir DIR\n" in migrate("show", plan).stdout
    )
    assert migrate("to-spark", chk, "--checkpoint-dir", location).code == 0
    assert f"migrate verify CHK 'spark:{location}'\n" in migrate("show", location).stdout
    held = GroupView("g", True, "Empty", "consumer", committed={})
    after = {("t", 0): Committed(9, "")}
    rollback = folder / "r.json"
    write_file(
        rollback_file.rollback_file("commit", None, "broker:9092", held, after, {}), rollback
    )
    assert f"migrate rollback '{rollback}'\n" in migrate("show", rollback).stdout


def test_show_accepts_rollback_file_without_checksum(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    held = GroupView("g", True, "Empty", "consumer", committed={("t", 0): Committed(5, "")})
    write_file(rollback_file.rollback_file("commit", None, "broker:9092", held, {}, {}), path)
    content = json.loads(path.read_text())
    del content["sha256"]
    path.write_text(json.dumps(content))
    assert migrate("show", path).code == 0


def test_show_seed_lists_positions_and_verify_command(chk: Path, tmp_path: Path) -> None:
    location = tmp_path / "query"
    assert migrate("to-spark", chk, "--checkpoint-dir", location).code == 0
    for name in (str(location), f"spark:{location}"):
        shown = migrate("show", name)
        assert (shown.code, shown.stderr) == (0, "")
        assert "no query has run from it" in shown.stdout
        rows = _rows(shown.stdout)
        assert ["orders", "0", "3"] in rows and ["orders", "1", "40"] in rows
        assert f"migrate verify CHK spark:{location}" in shown.stdout


def test_show_query_lists_start_and_committed_offsets(tmp_path: Path) -> None:
    files = {"sources/0/0": SEED, "offsets/0": batch('{"t":{"0":9}}'), "commits/0": COMMIT}
    location = spark_directory(tmp_path / "query", files)
    shown = migrate("show", location)
    assert (shown.code, shown.stderr) == (0, "")
    assert "and is after batch 0" in shown.stdout
    found = show(location)
    assert isinstance(found, QueryLocation)
    assert found.start_positions is not None and found.committed is not None
    start = str(found.start_positions.at("t", 0))
    assert ["t", "0", start, "9"] in _rows(shown.stdout)
    assert start != "9"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"offset", "expected value at line 1 column 1"),
        (b'{"kind": "flink-offset-migrate plan", "version": 2, "par', "EOF while parsing a string"),
        (b"", "EOF while parsing a value"),
        (b"\xff", "expected value at line 1 column 1"),
        (b"[" * 5000, "recursion limit exceeded"),
    ],
)
def test_show_reports_position_of_error_in_invalid_json(
    content: bytes, problem: str, tmp_path: Path
) -> None:
    """Regression: The message for a truncated plan did not say what was wrong with the file."""
    path = tmp_path / "file"
    path.write_bytes(content)
    shown = migrate("show", path)
    assert (shown.code, shown.stdout) == (3, "")
    assert f"because it is not valid JSON ({problem}" in shown.stderr


@pytest.mark.parametrize("kind", ["missing", "text", "json", "directory", "checkpoint"])
def test_show_refuses_unsupported_path(kind: str, chk: Path, tmp_path: Path) -> None:
    path = {"directory": tmp_path, "checkpoint": chk}.get(kind, tmp_path / "file")
    if kind in ("text", "json"):
        path.write_text("[1]" if kind == "json" else "offset")
    shown = migrate("show", path)
    assert (shown.code, shown.stdout) == (3, "")
    said = ": no such file or directory" if kind == "missing" else " is not a plan"
    assert shown.stderr.startswith(f"migrate: {path}{said}")
