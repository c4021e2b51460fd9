"""Refuse invalid saved plans before any broker is queried, because users edit plans."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from migrate import plan as make_plan
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.errors import InputError
from migrate.model.message import Message
from migrate.planning.plan_file import read_plan
from migrate.planning.recheck import find_cluster_changes
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.plans import Edit, edit_and_seal_plan, edit_plan


def _whats(messages: Iterable[Message]) -> list[str]:
    return [message.what for message in messages]


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.json"
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    saved = migrate("to-spark", chk, "--plan-out", path)
    assert saved.code == 0, saved.stderr
    assert read_plan(path).next_offsets == {("t", 0): 3, ("t", 1): 4}
    return path


def _twice(plan: dict[str, Any]) -> None:
    plan["partitions"].append({**plan["partitions"][0], "next_offset": 9})


def _too_large(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["next_offset"] = 2**63


def _no_such_partition(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["partition"] = 2**31


def _no_such_topic(plan: dict[str, Any]) -> None:
    # In a file of Spark options, the second line would be a second option.
    plan["partitions"][0]["topic"] = "orders\nfailOnDataLoss=false"


def _no_number(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["next_offset"] = "3"


def _no_time(plan: dict[str, Any]) -> None:
    plan["created_at"] = "yesterday"


def _no_time_zone(plan: dict[str, Any]) -> None:
    plan["created_at"] = "2026-01-02T03:04:05"


def _no_kind(plan: dict[str, Any]) -> None:
    del plan["kind"]


def _no_version(plan: dict[str, Any]) -> None:
    del plan["version"]


def _other_offset(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["next_offset"] += 5


def _other_position(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["next_offset"] += 5
    plan["partitions"][0]["position"] += 5


def _without_a_partition(plan: dict[str, Any]) -> None:
    del plan["partitions"][0]


def _without_a_warning(plan: dict[str, Any]) -> None:
    plan["warnings"] = []


def _without_a_checksum(plan: dict[str, Any]) -> None:
    del plan["sha256"]


_EDITS = [_other_offset, _other_position, _without_a_partition, _without_a_warning]


@pytest.mark.parametrize("edit", [*_EDITS, _without_a_checksum])
def test_edited_plan_is_refused_by_every_command(plan: Path, edit: Edit) -> None:
    """Regression: An offset increased by 5 was applied, and then reported as verified."""
    edit_plan(plan, edit)
    for command in (
        ("to-spark", "--plan", plan),
        ("show", plan),
        ("verify", f"plan:{plan}", "spark:query"),
        ("commit-group", "--plan", plan, "--group", "g", "-b", "127.0.0.1:1"),
    ):
        result = migrate(*command)
        assert (result.code, result.stdout) == (3, ""), result
        assert f"the plan {plan} was edited" in result.stderr
        assert "[file-edited]" in result.stderr and "with --plan-out" in result.stderr


def test_plan_is_read_unchanged_after_reformatting(plan: Path) -> None:
    before = read_plan(plan)
    held = json.loads(plan.read_text())
    plan.write_text(json.dumps(dict(reversed(held.items()))))
    assert read_plan(plan) == before


@pytest.mark.parametrize("verdict", ["ok", "finished", "suspect"])
def test_plan_with_next_offset_different_from_position_is_refused(plan: Path, verdict: str) -> None:
    """These verdicts require equal offsets. The edited plan has a recomputed, valid checksum."""

    def edit(held: dict[str, Any]) -> None:
        held["partitions"][0] |= {"verdict": verdict, "next_offset": 8}

    edit_and_seal_plan(plan, edit)
    result = migrate("to-spark", "--plan", plan)
    assert (result.code, result.stdout) == (3, "")
    assert (
        f"t-0: the verdict is {verdict!r}, but its next_offset 8 differs from its position 3"
        in result.stderr
    )


def test_plan_of_version_1_is_refused_with_remedy(plan: Path) -> None:
    held = json.loads(plan.read_text())
    of_before = {name: value for name, value in held.items() if name != "sha256"}
    plan.write_text(json.dumps({**of_before, "version": 1}))
    result = migrate("to-spark", "--plan", plan)
    assert (result.code, result.stdout) == (3, "")
    assert "[plan-of-version-1]" in result.stderr
    assert "create a new plan with --plan-out" in result.stderr


def test_plan_for_same_cluster_has_empty_translation_fields(plan: Path) -> None:
    held = json.loads(plan.read_text())
    assert held["version"] == 2 and held["to_cluster_id"] is None
    assert [row["translation"] for row in held["partitions"]] == [None, None]


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_twice, "a partition occurs twice"),
        (_too_large, "partitions.0.next_offset"),
        (_no_such_partition, "partitions.0.partition"),
        (_no_such_topic, "partitions.0.topic"),
        (_no_number, "partitions.0.next_offset"),
        (_no_time, "created_at"),
        (_no_time_zone, "created_at"),
        (_no_kind, "not a plan"),
        (_no_version, "version"),
    ],
)
@pytest.mark.parametrize("rewrite", [edit_plan, edit_and_seal_plan])
def test_invalid_value_in_plan_is_refused(
    plan: Path, edit: Edit, told: str, rewrite: Callable[[Path, Edit], None]
) -> None:
    rewrite(plan, edit)
    with pytest.raises(InputError, match=told if rewrite is edit_and_seal_plan else "edit|not a"):
        read_plan(plan)
    result = migrate("to-spark", "--plan", plan)
    assert (result.code, result.stdout) == (3, "")


def test_control_characters_in_plan_warning_are_escaped(plan: Path) -> None:
    def edit(held: dict[str, Any]) -> None:
        held["warnings"] = ["a\x1b[31m\nrefused: b [not-checked]"]

    edit_and_seal_plan(plan, edit)
    result = migrate("to-spark", "--plan", plan)
    assert result.code == 0, result.stderr
    assert "warning: a\\x1b[31m\\nrefused: b [not-checked]\n" in result.stderr


@pytest.mark.parametrize(
    ("log", "moved"),
    [
        ((0, 10), ()),
        ((0, 30), ()),  # records were produced
        ((3, 10), ()),  # and records below the position were deleted
        (
            (4, 10),
            ("the logs no longer contain next offsets of the plan: t-0 at 3",),
        ),
        ((0, 9), ("log end offsets have decreased: t-0 from 10 to 9; records",)),
    ],
)
def test_log_change_after_planning_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: tuple[int, int],
    moved: tuple[str, ...],
) -> None:
    """Only the logs show the change, because Kafka before 2.8 reports no topic IDs."""
    there = ClusterSnapshot({"t": {0: LogRange(0, 10)}}, "cluster")
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: there)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    saved = make_plan(chk, bootstrap_servers="127.0.0.1:1")
    now = ClusterSnapshot({"t": {0: LogRange(*log)}}, "cluster")
    told = _whats(find_cluster_changes(saved, now))
    assert len(told) == len(moved)
    assert all(line.startswith(says) for line, says in zip(told, moved, strict=True))


@pytest.mark.parametrize(
    ("now", "moved"),
    [
        ({"t": {0: LogRange(0, 10), 1: LogRange(0, 10)}}, []),
        ({"t": {0: LogRange(0, 10)}}, ["partitions were deleted since the plan was created: t-1"]),
        ({}, ["partitions were deleted since the plan was created: t-0, t-1"]),
    ],
)
def test_partition_or_topic_deleted_after_planning_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    now: dict[str, dict[int, LogRange]],
    moved: list[str],
) -> None:
    there = ClusterSnapshot({"t": {0: LogRange(0, 10), 1: LogRange(0, 10)}}, "cluster")
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: there)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    saved = make_plan(chk, bootstrap_servers="127.0.0.1:1")
    assert _whats(find_cluster_changes(saved, ClusterSnapshot(now, "cluster"))) == moved
