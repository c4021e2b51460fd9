"""Run ``verify plan:FILE`` to compare the target with the plan, and the plan with its origin."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from migrate import verify
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.errors import InputError, UsageError
from migrate.storage.json_models import write_file
from migrate.targets.group.rollback_file import rollback_file
from tests.support.checkpoints import (
    SourceState,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import Result, migrate
from tests.support.golden import golden
from tests.support.plans import Edit, edit_and_seal_plan
from tests.support.reasons import message_of
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def chk(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})


def _plan(side: str | Path, *options: str) -> None:
    saved = migrate("to-spark", side, *options, "--plan-out", "plan.json")
    assert saved.code == 0, saved.stderr


def _rewrite(edit: Edit) -> None:
    edit_and_seal_plan(Path("plan.json"), edit)


def _verify_seed() -> Result:
    """Seed a location from the plan, and verify it."""
    seeded = migrate("to-spark", "--plan", "plan.json", "--checkpoint-dir", "query")
    assert seeded.code == 0, seeded.stderr
    return migrate("verify", "plan:plan.json", "spark:query")


def test_plan_matching_its_checkpoint_is_verified(chk: Path) -> None:
    _plan(chk)
    verified = _verify_seed()
    assert verified.code == 0
    assert verified.stderr.endswith(
        "verified: all 2 partitions will start where the checkpoint ended\n"
    )
    assert verify("plan:plan.json", "spark:query").verified


def _move_on(plan: dict[str, Any]) -> None:
    plan["partitions"][0] |= {"position": 8, "next_offset": 8}


def _leave_out(plan: dict[str, Any]) -> None:
    del plan["partitions"][0]


def _as_new(plan: dict[str, Any]) -> None:
    new = {"verdict": "new partition", "operator_id": None, "position": None, "next_offset": 0}
    plan["partitions"][0] |= new


def _of_another_operator(plan: dict[str, Any]) -> None:
    plan["partitions"][0]["operator_id"] = "ab" * 16


def _of_no_operator(plan: dict[str, Any]) -> None:
    plan["checkpoint"]["operators"] = ["ab" * 16]


def test_verify_with_older_checkpoint_suggests_moved_checkpoint_or_plan(
    chk: Path, tmp_path: Path
) -> None:
    """Regression: The report contained only the number of lost partitions."""
    _plan(chk)
    assert _verify_seed().code == 0
    older = write_source(tmp_path / "chk-6", {0: splits("t", [1, 2])})
    result = migrate("verify", older, "spark:query")
    assert result.code == 5
    assert "pass the checkpoint that was moved, or the plan that was applied" in result.stderr


@pytest.mark.parametrize("here", [True, False], ids=["rollback file here", "elsewhere"])
def test_verify_with_older_checkpoint_does_not_attribute_commits_to_another_client(
    chk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    """Regression: Without the rollback file, commits by migrate counted as another client's."""
    committed = {("t", 0): Committed(3), ("t", 1): Committed(4)}
    before = GroupView("g", False, "Dead", "unknown")
    folder = tmp_path if here else tmp_path / "other"
    folder.mkdir(exist_ok=True)
    write_file(rollback_file("commit", "c", "b:1", before, committed, {}), folder / "back.json")
    now = GroupView("g", True, "Empty", "classic", committed=committed)
    logs = {"t": {0: LogRange(0, 20), 1: LogRange(0, 20)}}
    snapshot = ClusterSnapshot(logs, "c", source_group=now)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    older = write_source(tmp_path / "chk-6", {0: splits("t", [1, 2])})
    result = migrate("verify", older, "group:g", "-b", "localhost:1")
    assert result.code == 5
    assert ("2 lost" if here else "2 moved on") in result.stdout
    assert "pass the checkpoint that was moved, or the plan that was applied" in result.stderr
    assert ("rollback file is in a different directory" in result.stderr) is not here
    assert ("may be from a Flink job or from migrate" in result.stderr) is not here
    allowed = migrate("verify", older, "group:g", "-b", "localhost:1", "--allow-moved-on")
    assert allowed.code == (5 if here else 0)
    assert ("with higher group offsets, as allowed" in allowed.stderr) is not here
    # Regression: The output advised to pass the option that was passed.
    assert "--allow-moved-on" not in allowed.stderr


def _verify_group(
    monkeypatch: pytest.MonkeyPatch,
    chk: Path,
    before: dict[tuple[str, int], Committed],
    after: dict[tuple[str, int], Committed],
    now: dict[tuple[str, int], Committed],
    from_cluster_id: str | None = None,
) -> Result:
    """Write ``r29b.json`` with a commit from ``before`` to ``after``, and verify the group."""
    group = GroupView("g", bool(before), "Empty", "classic", committed=before)
    file = rollback_file("commit", "c", "b:1", group, after, {}, from_cluster_id=from_cluster_id)
    Path("r29b.json").unlink(missing_ok=True)
    write_file(file, Path("r29b.json"))
    logs = {"t": {0: LogRange(0, 20), 1: LogRange(0, 20)}}
    group = GroupView("g", True, "Empty", "classic", committed=now)
    snapshot = ClusterSnapshot(logs, "c", source_group=group)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    return migrate("verify", chk, "group:g", "-b", "localhost:1")


_POSITIONS = {("t", 0): Committed(3), ("t", 1): Committed(4)}
_NEWER = {("t", 0): Committed(8, "", 0), ("t", 1): Committed(9, "", 0)}


def test_moved_on_message_names_rollback_file_that_shows_commit_of_positions(
    monkeypatch: pytest.MonkeyPatch, chk: Path
) -> None:
    """Regression: The message listed causes that the rollback file rules out.

    The output also contained a false warning.
    """
    result = _verify_group(monkeypatch, chk, {}, _POSITIONS, _NEWER)
    assert result.code == 5
    assert (
        "moved on (2): according to r29b.json, migrate committed these positions, and another "
        "client (or a run of migrate in a different directory) has committed higher offsets since"
    ) in result.stderr
    assert "CHK is older" not in result.stderr
    assert "group-origin-unknown" not in result.stderr
    # Only the offset of t-0 is newer.
    some = _verify_group(monkeypatch, chk, {}, _POSITIONS, {**_POSITIONS, ("t", 0): Committed(8)})
    assert (some.code, "moved on (1): according to r29b.json" in some.stderr) == (5, True)


@pytest.mark.parametrize(
    ("before", "after", "now"),
    [
        # migrate committed the positions of an earlier checkpoint.
        ({}, {("t", 0): Committed(1), ("t", 1): Committed(2)}, _NEWER),
        # The commit was not made, or was rolled back.
        (_NEWER, _POSITIONS, _NEWER),
        # migrate has changed other partitions.
        (_NEWER, {**_NEWER, ("u", 0): Committed(5)}, {**_NEWER, ("u", 0): Committed(7)}),
    ],
    ids=["other positions", "not made", "other partitions"],
)
def test_moved_on_message_lists_causes_if_rollback_file_does_not_show_commit_of_positions(
    monkeypatch: pytest.MonkeyPatch,
    chk: Path,
    before: dict[tuple[str, int], Committed],
    after: dict[tuple[str, int], Committed],
    now: dict[tuple[str, int], Committed],
) -> None:
    result = _verify_group(monkeypatch, chk, before, after, now)
    assert result.code == 5
    assert "according to r29b.json" not in result.stderr
    assert "CHK is older than the checkpoint that was moved" in result.stderr


def test_group_with_translated_offsets_is_refused_after_newer_commits(
    monkeypatch: pytest.MonkeyPatch, chk: Path
) -> None:
    result = _verify_group(monkeypatch, chk, {}, _POSITIONS, _NEWER, from_cluster_id="other")
    assert result.code == 4
    assert "[target-on-other-cluster]" in result.stderr


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (_move_on, "t-0: its position is 3, but 8 in the plan"),
        (_leave_out, "t-0: not in the plan; its position is 3"),
        (_as_new, "t-0: unknown in the plan, but its position is 3"),
        (_of_another_operator, f"t-0: operator {'ab' * 16} does not have this partition"),
        (_of_no_operator, f"operator {'ab' * 16} no longer has positions"),
    ],
)
def test_plan_different_from_its_checkpoint_is_not_verified(
    chk: Path, edit: Edit, told: str
) -> None:
    """Regression: `verify` printed "all partitions will start where the checkpoint ended"."""
    _plan(chk)
    _rewrite(edit)
    result = _verify_seed()
    assert result.code == 5
    assert f"the plan differs from its origin: {told}\n" in result.stderr
    assert result.stderr.endswith("not verified: the plan differs from its origin\n")
    found = verify("plan:plan.json", "spark:query")
    assert not found.verified and not found.verified_or_moved_on


def test_unreadable_checkpoint_limits_verification_to_plan(chk: Path) -> None:
    _plan(chk)
    assert _verify_seed().code == 0
    shutil.rmtree(chk)
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 0
    assert "was not compared with its origin, because the origin cannot be read: " in result.stderr
    assert str(chk) in result.stderr
    assert result.stderr.endswith(
        "verified against the plan alone: all 2 partitions will start at the plan's offsets\n"
    )


def test_replaced_checkpoint_fails_verification(chk: Path, tmp_path: Path) -> None:
    _plan(chk)
    shutil.rmtree(chk)
    operator = source_operator(SourceState({0: splits("t", [3, 4])}))
    write_checkpoint(chk, operator, checkpoint_id=8)
    result = _verify_seed()
    assert result.code == 5
    assert f"{chk} now contains checkpoint 8, but the plan is for checkpoint 7" in result.stderr


def test_verify_does_not_report_unselected_partitions_as_missing(chk: Path) -> None:
    _plan(chk, "--partitions", "t:1")
    assert _verify_seed().code == 0


def test_renamed_topics_are_verified_by_target_name(chk: Path) -> None:
    _plan(chk, "--topic-map", "t=west.t")
    assert _verify_seed().code == 0


def test_plan_for_one_cluster_of_dynamic_source_is_compared_with_same_cluster() -> None:
    chk = golden("2.2/dynamic")
    _plan(chk, "--cluster", "east", "--partitions", "orders:0-1")
    assert _verify_seed().code == 0
    _rewrite(lambda plan: plan["checkpoint"].update(cluster="west"))
    assert migrate("verify", "plan:plan.json", "spark:query").code == 5


def test_verify_fails_if_merged_plan_has_higher_of_two_positions(tmp_path: Path) -> None:
    operators = [
        source_operator(SourceState({0: splits("t", starts)}, operator_id=bytes([n]) * 16))
        for n, starts in enumerate(([3, 9], [5, 6]))
    ]
    _plan(
        write_checkpoint(tmp_path / "chk-7", *operators),
        *("--one-cluster", "--merge-sources", "min"),
    )
    assert _verify_seed().code == 0

    def higher(plan: dict[str, Any]) -> None:
        row = {"operator_id": "01" * 16, "position": 5, "next_offset": 5}
        plan["partitions"][0] |= row

    _rewrite(higher)
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 5
    assert "t-0: its position in the plan is 5, which is not the lowest of 3 and 5" in result.stderr


def _two_sources(tmp_path: Path, *offsets: list[int]) -> Path:
    """Write a checkpoint whose sources read topic t, each from these offsets by partition."""
    operators = [
        source_operator(SourceState({0: splits("t", of_source)}, operator_id=bytes([n]) * 16))
        for n, of_source in enumerate(offsets)
    ]
    return write_checkpoint(tmp_path / "chk-7", *operators)


def test_sources_with_equal_positions_are_verified_with_one_cluster_option(tmp_path: Path) -> None:
    """Regression: Without a plan, `verify` could not merge sources the way that `to-spark` does."""
    chk = _two_sources(tmp_path, [3], [3])
    seeded = migrate("to-spark", chk, "--one-cluster", "--checkpoint-dir", "query")
    assert seeded.code == 0
    assert f"migrate verify {chk} spark:query --one-cluster" in seeded.stderr
    refused = migrate("verify", chk, "spark:query")
    assert (refused.code, refused.stdout) == (4, "")
    assert "add --one-cluster if the sources read the same Kafka cluster" in refused.stderr
    verified = migrate("verify", chk, "spark:query", "--one-cluster")
    assert verified.code == 0
    assert "verified: the one partition will start" in verified.stderr
    with_plan = migrate("verify", "plan:plan.json", "spark:query", "--one-cluster")
    assert with_plan.code == 2
    assert (
        "--one-cluster requires a checkpoint, and cannot be combined with plan:FILE"
    ) in with_plan.stderr


@pytest.mark.parametrize("second", [[5], [3, 9]], ids=["offset", "partition"])
def test_verify_requires_plan_for_sources_with_different_positions(
    tmp_path: Path, second: list[int]
) -> None:
    chk = _two_sources(tmp_path, [3], second)
    merged = ("--one-cluster", "--merge-sources", "min")
    assert migrate("to-spark", chk, *merged, "--checkpoint-dir", "query").code == 0
    refused = migrate("verify", chk, "spark:query", "--one-cluster")
    assert (refused.code, refused.stdout) == (4, "")
    assert "verify the plan that was applied (plan:FILE)" in refused.stderr


def test_verify_requires_plan_for_sources_with_unknown_clusters(tmp_path: Path) -> None:
    operators = [
        source_operator(SourceState({0: splits("t", [3])}, operator_id=bytes([n]) * 16))
        for n in range(2)
    ]
    chk = write_checkpoint(tmp_path / "chk-7", *operators)
    _plan(chk, "--one-cluster")
    assert _verify_seed().code == 0
    refused = migrate("verify", chk, "spark:query")
    assert (refused.code, refused.stdout) == (4, "")
    assert "their state does not identify their Kafka cluster; if the clusters" in refused.stderr
    assert migrate("verify", chk, "spark:query", "--source", "01" * 16).code == 0


def test_positions_chosen_by_policy_are_listed_separately(
    chk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: A start chosen by a policy was included in "where the checkpoint ended"."""
    logs = {"t": {0: LogRange(5, 20), 1: LogRange(0, 20), 2: LogRange(0, 20)}}
    snapshot = ClusterSnapshot(logs, "cluster")
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    options = ("--on-expired", "earliest", "--new-partitions", "earliest")
    _plan(chk, "-b", "localhost:1", *options)
    seeded = migrate(
        *("to-spark", "--plan", "plan.json", "-b", "localhost:1", "--checkpoint-dir", "query")
    )
    assert seeded.code == 0, seeded.stderr
    result = migrate("verify", "plan:plan.json", "spark:query", "-b", "localhost:1")
    assert result.code == 0
    assert result.stderr.endswith(
        "verified: all 3 partitions will start at the plan's offsets, 1 of them where the "
        "checkpoint ended\n"
    )
    assert (
        "start offset in the plan differs from the checkpoint (2): t-0 (expired: the "
        "checkpoint has 3, the plan starts at 5), t-2 (new partition: the checkpoint has no "
        "offset, the plan starts at 0)\n"
    ) in result.stderr


def test_verify_counts_partition_at_earliest_marker_as_starting_where_checkpoint_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: With a plan, "where the checkpoint ended" counted one partition too few."""
    logs = {"t": {0: LogRange(0, 20), 1: LogRange(2, 20)}}
    snapshot = ClusterSnapshot(logs, "cluster")
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    broker = ("-b", "localhost:1")
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, -2])})
    _plan(chk, *broker)
    apply = ("to-spark", "--plan", "plan.json", *broker, "--checkpoint-dir", "query")
    assert migrate(*apply).code == 0
    for moved in (chk, "plan:plan.json"):
        result = migrate("verify", moved, "spark:query", *broker)
        assert result.code == 0
        assert result.stderr.endswith(
            "verified: all 2 partitions will start where the checkpoint ended\n"
        )
        assert "start offset in the plan differs" not in result.stderr


# -- plans for queries, files, and groups --------------------------------------------------------

_ID = "0f8fad5b-d9cb-469f-a165-70867728950e"
_RUN = {
    "metadata": f'{{"id":"{_ID}"}}',
    "sources/0/0": SEED,
    "offsets/0": batch('{"t":{"0":90}}'),
    "commits/0": COMMIT,
}
_NEXT = {"offsets/1": batch('{"t":{"0":95}}'), "commits/1": COMMIT}


def test_plan_of_query_is_compared_with_its_batch(tmp_path: Path) -> None:
    old = spark_directory(tmp_path / "old", _RUN)
    _plan(f"spark:{old}")
    assert _verify_seed().code == 0
    spark_directory(old, _NEXT)  # the log still contains the batch of the plan
    verified = migrate("verify", "plan:plan.json", "spark:query")
    assert verified.code == 0
    assert verified.stderr.endswith(
        "verified: the one partition will start where the checkpoint ended\n"
    )
    _rewrite(_move_on)
    assert migrate("verify", "plan:plan.json", "spark:query").code == 5


def test_batch_deleted_from_log_limits_verification_to_plan(tmp_path: Path) -> None:
    old = spark_directory(tmp_path / "old", _RUN)
    _plan(f"spark:{old}")
    assert _verify_seed().code == 0
    spark_directory(old, _NEXT)
    (old / "offsets/0").unlink()
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 0
    assert f"{old}: the offset log of the query no longer contains batch 0" in result.stderr
    assert "at the plan's offsets" in result.stderr


def test_replaced_query_fails_verification(tmp_path: Path) -> None:
    old = spark_directory(tmp_path / "old", _RUN)
    _plan(f"spark:{old}")
    assert _verify_seed().code == 0
    (old / "metadata").write_text(json.dumps({"id": _ID.replace("0f", "1f")}))
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 5
    assert f"{old} now belongs to a different query" in result.stderr


def test_plan_from_positions_file_is_compared_with_current_file() -> None:
    Path("side.json").write_text('{"t":{"0":3}}')
    _plan("json:side.json")
    assert _verify_seed().code == 0
    Path("side.json").write_text('{"t":{"0":4}}')
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 5
    assert "t-0: its position is 4, but 3 in the plan" in result.stderr


def test_plan_from_group_is_verified_against_plan_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The offsets of the group at the time of the plan can no longer be read."""
    group = GroupView("g", True, "Empty", "classic", committed={("t", 0): Committed(3)})
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 20)}}, "cluster", source_group=group)
    monkeypatch.setattr("migrate.kafka.snapshot.take_snapshot", lambda *_: snapshot)
    _plan("group:g", "-b", "localhost:1")
    apply = ("to-spark", "--plan", "plan.json", "-b", "localhost:1", "--checkpoint-dir", "query")
    assert migrate(*apply).code == 0
    result = migrate("verify", "plan:plan.json", "spark:query")
    assert result.code == 0
    assert (
        "group:g: the positions from which the plan was created can no longer be read"
        in result.stderr
    )
    assert "at the plan's offsets" in result.stderr


def test_checkpoint_path_with_colon_is_read(tmp_path: Path) -> None:
    """A path that looks like a mistyped prefix is read if the path exists."""
    write_source(tmp_path / "plans:old" / "chk-3", {0: splits("orders", [7])})
    with pytest.raises(InputError) as refused:
        verify("plans:old/chk-3", "spark:nope")
    assert message_of(refused.value).facts == {"location": "nope", "alike": []}
    with pytest.raises(UsageError, match="did you mean plan:new/chk-3"):
        verify("plans:new/chk-3", "spark:nope")


def test_verify_lists_topics_that_only_query_reads_as_not_compared(tmp_path: Path) -> None:
    """Regression: A topic that ``subscribePattern`` had added was read but not reported."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3])})
    log = {"sources/0/0": SEED, "offsets/0": batch('{"t":{"0":5},"u":{"0":7}}')}
    query = spark_directory(tmp_path / "query", {**log, "commits/0": COMMIT})
    verified = migrate("verify", chk, f"spark:{query}")
    assert verified.code == 0, verified.stderr
    assert "verified: the one partition started where the checkpoint ended" in verified.stderr
    assert "not compared: u, which the query also reads\n" in verified.stderr
