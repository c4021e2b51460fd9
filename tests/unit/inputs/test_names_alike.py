"""Suggest similar topics and groups if a broker lacks a name."""

from __future__ import annotations

from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.compared_sides import load_sides
from migrate.inputs.flink.extract import extract
from migrate.inputs.position_inputs import parse_side
from migrate.model.catalog import TOPIC_GONE, TOPIC_OF_MAP_MISSING
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView, LogRange, Question
from migrate.model.message import Message
from migrate.model.policies import Policies
from migrate.planning import make_plan
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate

_NOT_THERE = GroupView("g44", False, "Dead", "unknown", alike=("g4",))
_SAYS = "group:g44: the group does not exist (did you mean 'g4'?) [no-such-group]"


@pytest.fixture(autouse=True)
def broker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer every query with one topic, and report every group as missing."""

    def take_snapshot(_: object, question: Question) -> ClusterSnapshot:
        group = _NOT_THERE if question.source_group is not None else None
        return ClusterSnapshot({"t": {0: LogRange(0, 9)}}, source_group=group)

    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", take_snapshot)


def test_warning_about_missing_group_suggests_similar_group(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    sides = load_sides(parse_side(str(chk)), parse_side("group:g44"), {"bootstrap.servers": "x:1"})
    assert sides.warnings == (_SAYS,)


def test_verify_warns_of_missing_group(tmp_path: Path) -> None:
    """Regression: `verify` reported "5 missing", but not that the group did not exist."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    result = migrate("verify", chk, "group:g44", "-b", "127.0.0.1:1")
    assert result.code == 5
    assert f"warning: {_SAYS}\n" in result.stderr


@pytest.mark.parametrize(
    ("mapped", "problem"),
    [
        ({}, TOPIC_GONE(alike=["payments"])),
        (
            {"t": "paymentz"},
            TOPIC_OF_MAP_MISSING(old="t", new="paymentz", alike=["payments"]),
        ),
    ],
)
def test_refusal_of_missing_topic_suggests_similar_topic(
    tmp_path: Path, mapped: dict[str, str], problem: Message
) -> None:
    """Regression: If a target topic of --topic-map was missing, the remedy was about brokers."""
    extraction = extract(read_checkpoint(write_source(tmp_path / "chk-7", {0: splits("t", [1])})))
    name = mapped.get("t", "t")
    snapshot = ClusterSnapshot({}, alike={name: ("payments",)})
    plan = make_plan(extraction, extraction.sources, snapshot, Policies(topic_map=mapped))
    (refused,) = [one for one in plan.refusals if "topic gone" in one.what]
    assert refused.what.endswith(f": {problem.what}") and "'payments'" in refused.what
    assert refused.way_out == problem.way_out
