"""Load the two sides of a comparison, and check the warnings."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrate.inputs.ask_broker import ask_group, ask_logs
from migrate.inputs.compared_sides import load_sides
from migrate.inputs.position_inputs import parse_side
from migrate.model.cluster_snapshot import (
    ClusterSnapshot,
    Committed,
    GroupView,
    LogRange,
    Question,
)
from migrate.model.errors import UsageError
from migrate.model.positions import Marker, PositionSet, Start, Unknown
from migrate.planning.diff import Relation, diff
from migrate.storage.json_models import write_file
from migrate.targets.group.rollback_file import rollback_file
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

_LOGS = {"t": {0: LogRange(2, 9)}}


_BROKER = {"bootstrap.servers": "x:1"}


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[int, LogRange]]:
    """Answer queries with these logs, and report every group except ``g`` as missing."""
    logs = dict(_LOGS)

    def take_snapshot(_: object, question: Question) -> ClusterSnapshot:
        group = question.source_group
        known = GroupView("g", True, "Empty", "classic", committed={("t", 0): Committed(5)})
        unknown = GroupView(group or "", False, "Dead", "classic", alike=("g",))
        there = {topic: logs[topic] for topic in logs.keys() & question.topics}
        view = None if group is None else known if group == "g" else unknown
        return ClusterSnapshot(there, source_group=view)

    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", take_snapshot)
    return logs


def test_diff_compares_group_with_log_bounds() -> None:
    for name, start in (("earliest", 2), ("latest", 9)):
        loaded = load_sides(parse_side("group:g"), parse_side(f"broker:{name}"), _BROKER)
        assert loaded.left == PositionSet("group:g", {("t", 0): 5})
        assert loaded.right == PositionSet(f"broker:{name}", {("t", 0): start})
        assert (loaded.logs, loaded.warnings) == (_LOGS, ())


def test_diff_prints_single_warning_if_both_sides_are_same_missing_group() -> None:
    loaded = load_sides(parse_side("group:h"), parse_side("group:h"), _BROKER)
    assert loaded.warnings == (
        "group:h: the group does not exist (did you mean 'g'?) [no-such-group]",
    )
    assert loaded.left.starts == {}


@pytest.mark.parametrize(
    ("left", "right", "told"),
    [
        ("group:g", "json:x", 'group:g requires a broker; add bootstrap_servers="HOST:PORT"'),
        ("json:x", "broker:latest", "broker:latest requires a broker; add bootstrap_servers="),
        (
            "broker:latest",
            "broker:earliest",
            "both inputs have the prefix `broker:`; replace one of them",
        ),
    ],
)
def test_diff_side_that_requires_broker_is_usage_error_without_broker(
    left: str, right: str, told: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load_sides(parse_side(left), parse_side(right), None)
    assert str(refused.value).startswith(told)


def test_group_without_broker_is_usage_error() -> None:
    with pytest.raises(UsageError, match="group:g requires a broker"):
        ask_group(None, "g")


def test_log_bounds_are_queried_only_for_valid_topic_names() -> None:
    assert ask_logs(None, ["t"]) == {}
    assert ask_logs(_BROKER, ["t", "no topic"]) == _LOGS
    assert ask_logs(_BROKER, []) == {}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("json:", "'json:' is incomplete; add a value after json:"),
        *(
            (
                name,
                f"{name} is not a time; write the time as 2026-11-20T18:00:00Z; or use "
                "broker:earliest or broker:latest",
            )
            for name in ("broker:newest", "broker:-1", "broker:2026-13-01")
        ),
    ],
)
def test_invalid_diff_side_is_usage_error(name: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_side(name)
    assert str(refused.value) == told


@pytest.mark.parametrize(("end", "told"), [(5, False), (6, True)])
def test_diff_warns_of_possible_unlogged_batches_if_topic_has_later_records(
    tmp_path: Path, end: int, told: bool, logs: dict[str, dict[int, LogRange]]
) -> None:
    """The query's logs lack batch numbers, as with asynchronous progress tracking."""
    files = {
        "metadata": '{"id":"00000000-0000-4000-8000-000000000000"}',
        "sources/0/0": SEED,
        "offsets/0": batch('{"t":{"0":3}}'),
        "offsets/4": batch('{"t":{"0":5}}'),
        "commits/0": COMMIT,
        "commits/4": COMMIT,
    }
    spark_directory(tmp_path / "q", files)

    logs["t"] = {0: LogRange(0, end)}
    loaded = load_sides(parse_side(f"spark:{tmp_path / 'q'}"), parse_side("group:g"), _BROKER)
    assert loaded.left.starts == {("t", 0): 5}
    assert bool(loaded.warnings) is told


@pytest.mark.parametrize(
    ("left", "right", "relation", "difference"),
    [
        (5, 5, Relation.SAME, 0),
        (5, 6, Relation.AHEAD, 1),
        (6, 5, Relation.BEHIND, -1),
        (0, 0, Relation.SAME, 0),
        (Marker.EARLIEST, Marker.EARLIEST, Relation.SAME, 0),
        (Marker.EARLIEST, 2, Relation.SAME, 0),
        (Marker.EARLIEST, 3, Relation.AHEAD, 1),
        (Marker.LATEST, Marker.LATEST, Relation.UNRESOLVED, None),
        (Marker.COMMITTED, 5, Relation.UNRESOLVED, None),
        (Unknown.UNRESOLVED, 5, Relation.UNRESOLVED, None),
        (5, Unknown.UNRESOLVED, Relation.UNRESOLVED, None),
        (None, 5, Relation.ONLY_RIGHT, None),
        (5, None, Relation.ONLY_LEFT, None),
    ],
)
def test_diff_compares_start_offsets_of_both_sides_for_each_partition(
    left: Start | None, right: Start | None, relation: Relation, difference: int | None
) -> None:
    sides = [
        PositionSet(name, {("t", 0): start} if start is not None else {})
        for name, start in (("left", left), ("right", right))
    ]
    compared = diff(sides[0], sides[1], _LOGS)
    (row,) = compared.rows
    assert (row.relation, row.difference) == (relation, difference)
    assert compared.differs is (relation is not Relation.SAME)


def test_diff_reads_same_group_name_in_both_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: Both sides were read from the cluster of RIGHT, so they always matched."""
    clusters = {"old:1": 5, "new:1": 7}

    def take_snapshot(config: dict[str, str], _: Question) -> ClusterSnapshot:
        held = {("t", 0): Committed(clusters[config["bootstrap.servers"]])}
        return ClusterSnapshot({}, source_group=GroupView("g", True, "Empty", "classic", (), held))

    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", take_snapshot)
    group = parse_side("group:g")
    loaded = load_sides(
        group,
        group,
        {"bootstrap.servers": "new:1"},
        left_broker={"bootstrap.servers": "old:1"},
        translate=lambda left, _: left,
    )
    assert loaded.left.starts == {("t", 0): 5}
    assert loaded.right.starts == {("t", 0): 7}


_MARKED = {("t", 0): Committed(5, "bDUAAAAAAA==")}


@pytest.fixture
def client_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer queries with a group ``g`` whose offset has metadata of Parallel Consumer."""
    group = GroupView("g", True, "Empty", "classic", (), _MARKED)
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 9)}}, "cluster", source_group=group)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)


@pytest.mark.usefixtures("client_metadata")
def test_diff_warns_if_committed_offset_has_metadata_of_client(tmp_path: Path) -> None:
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [5])})
    result = migrate("diff", chk, "group:g", "-b", "localhost:1")
    assert "[metadata-of-client]" in result.stderr


@pytest.mark.usefixtures("client_metadata")
def test_verify_fails_if_committed_offset_has_metadata_of_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: `verify` succeeded, although Parallel Consumer would skip records."""
    monkeypatch.chdir(tmp_path)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [5])})
    result = migrate("verify", chk, "group:g", "-b", "localhost:1")
    assert result.code == 5, result.stderr
    assert "[metadata-of-client]" in result.stderr
    assert "cannot tell" in result.stdout


@pytest.mark.usefixtures("client_metadata")
def test_verify_accepts_metadata_committed_by_migrate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [5])})
    before = GroupView("g", False, "Dead", "classic")
    change = rollback_file("commit", "cluster", "localhost:1", before, _MARKED, {})
    write_file(change, tmp_path / "rollback.json")
    result = migrate("verify", chk, "group:g", "-b", "localhost:1")
    assert result.code == 0, result.stderr
    assert "[metadata-of-client]" not in result.stderr
