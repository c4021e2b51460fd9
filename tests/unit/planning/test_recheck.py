"""Compare a saved plan with the current state of the cluster.

`tests/integration/test_group_commands.py` uses a real broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.checkpoint_progress import completed_since
from migrate.inputs.flink.extract import extract
from migrate.model.catalog import PLAN_FOR_OTHER_CLUSTER
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.errors import Refused
from migrate.model.message import Message
from migrate.model.policies import Gone, Policies
from migrate.planning import Plan, make_plan
from migrate.planning.recheck import (
    check_cluster,
    current_partitions,
    current_warnings,
    find_cluster_changes,
    signs_of_progress,
)
from migrate.planning.translation import topic_refusals
from tests.support.checkpoints import splits, write_source

Logs = dict[str, dict[int, LogRange]]

_LOG = LogRange(0, 10)


def _whats(messages: Iterable[Message]) -> list[str]:
    return [message.what for message in messages]


def _group(name: str, **offsets: int) -> GroupView:
    """Return a group. ``t0=5`` is partition 0 of topic t at offset 5."""
    held = {(place[0], int(place[1])): Committed(offset) for place, offset in offsets.items()}
    return GroupView(name, bool(held), "Empty", "classic", committed=held)


def _cluster(topics: Logs | None = None) -> ClusterSnapshot:
    both = {"t": {0: _LOG, 1: _LOG}}
    return ClusterSnapshot(both if topics is None else topics, "cluster", {"t": "id of t"})


def _plan(tmp_path: Path, then: ClusterSnapshot, policies: Policies | None = None) -> Plan:
    """Return a plan that starts partitions 0 and 1 of topic t at 3 and 4."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [3, 4])})
    found = extract(read_checkpoint(chk))
    plan = make_plan(found, found.sources, then, policies or Policies())
    assert not plan.refusals
    return plan


@pytest.mark.parametrize(
    ("reached", "told"),
    [
        ("there", []),
        (
            "cluster",
            [
                "the target's brokers belong to cluster cluster, but the target of the plan reads "
                "cluster there"
            ],
        ),
    ],
)
def test_plan_for_two_clusters_is_refused_if_target_brokers_belong_to_other_cluster(
    tmp_path: Path, reached: str, told: list[str]
) -> None:
    """Regression: The advice was to check --bootstrap-servers, which had the right value."""
    plan = replace(_plan(tmp_path, _cluster()), to_cluster_id="there", to_topic_ids={})
    found = []
    try:
        check_cluster(plan.in_target_cluster(), replace(_cluster(), cluster_id=reached))
    except Refused as refused:
        found = _whats(reason for reason in refused.reasons if isinstance(reason, Message))
    assert found == told


@pytest.mark.parametrize(
    ("cluster", "names", "told"),
    [
        ("there", {}, []),
        ("cluster", {"t": "u"}, []),  # a copy with a different name, in the same cluster
        ("cluster", {}, ["t"]),
        (None, {}, []),
    ],
)
def test_topic_is_not_compared_with_itself(
    tmp_path: Path, cluster: str | None, names: dict[str, str], told: list[str]
) -> None:
    """Regression: With two addresses of one cluster, "5 matched" was reported."""
    plan = _plan(tmp_path, _cluster())
    logs = {"t": {0: _LOG, 1: _LOG}, "u": {0: _LOG, 1: _LOG}}
    found = list(topic_refusals(plan, replace(_cluster(logs), cluster_id=cluster), names))
    assert [name for refusal in found for name in refusal.facts["topics"]] == told
    assert {refusal.code for refusal in found} == ({"one-cluster-for-both"} if told else set())


@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("exists", [True, False])
def test_warning_about_new_group_depends_on_current_group(
    tmp_path: Path, existed: bool, exists: bool
) -> None:
    """Regression: A plan's warning that the group does not exist was repeated for a known group."""
    new = "group 'g' does not exist and will be created; check the name [new-group]"
    then, now = (
        replace(_cluster(), target_group=replace(_group("g"), exists=found))
        for found in (existed, exists)
    )
    plan = _plan(tmp_path, then)
    saved = (*(line for line in plan.warnings if not line.endswith("[new-group]")), "another [x]")
    plan = replace(plan, warnings=saved if existed else (new, *saved))
    assert current_warnings(plan, now) == (saved if exists else (*saved, new))
    assert current_warnings(plan, None) == plan.warnings


def test_current_log_ranges_replace_log_ranges_of_saved_plan(tmp_path: Path) -> None:
    """Regression: LOG-END-OFFSET and LAG were those of the plan's time, without a label."""
    plan = _plan(tmp_path, _cluster())
    now = _cluster({"t": {0: LogRange(2, 25)}})
    rows = current_partitions(plan, now)
    assert [(row.log_start, row.log_end, row.records_left) for row in rows] == [
        (2, 25, 22),
        (0, 10, 6),
    ]
    assert [row.next_offset for row in rows] == [3, 4]
    assert current_partitions(plan, None) == plan.partitions


def test_applied_plan_is_reported_as_applied(tmp_path: Path) -> None:
    """Regression: The output listed the offset of each partition as changed."""
    group = _group("g", t0=1)
    plan = _plan(tmp_path, replace(_cluster(), target_group=group))
    for offsets, changes in (
        (
            {"t0": 3, "t1": 4},
            ["the group already has every offset in the plan, so the plan was already applied"],
        ),
        ({"t0": 3}, ["the group's offsets have changed: t-0 from 1 to 3"]),
        ({"t0": 1}, []),
    ):
        now = replace(_cluster(), target_group=_group("g", **offsets))
        assert _whats(find_cluster_changes(plan, now)) == changes


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (_cluster(), []),
        # Records were produced, and records below the positions were deleted.
        (_cluster({"t": {0: LogRange(3, 99), 1: LogRange(4, 10)}}), []),
        # The logs no longer contain the positions.
        (
            _cluster({"t": {0: LogRange(4, 10), 1: LogRange(0, 3)}}),
            [
                "the logs no longer contain next offsets of the plan: t-0 at 3 (the log now ranges "
                "from 4 to 10), t-1 at 4 (the log now ranges from 0 to 3)",
                "log end offsets have decreased: t-1 from 10 to 3; records were lost, or a topic "
                "was recreated (before Kafka 2.8, topics have no IDs that would show this)",
            ],
        ),
        (
            _cluster({"t": {0: _LOG, 1: _LOG, 2: _LOG, 10: _LOG}, "u": {0: _LOG}}),
            ["partitions are new since the plan was created: t-2, t-10, u-0"],
        ),
        (
            _cluster({}),
            ["partitions were deleted since the plan was created: t-0, t-1"],
        ),
        (
            replace(_cluster({}), topic_ids={"t": "another"}),
            ["topic t was recreated after the plan was created"],
        ),
        (replace(_cluster(), topic_ids={}), []),  # the brokers report no topic IDs
    ],
)
def test_cluster_changes_after_planning_are_reported(
    tmp_path: Path, now: ClusterSnapshot, told: list[str]
) -> None:
    assert _whats(find_cluster_changes(_plan(tmp_path, _cluster()), now)) == told


def test_plan_of_different_cluster_is_refused_with_single_reason(tmp_path: Path) -> None:
    now = replace(_cluster({}), cluster_id="elsewhere")
    with pytest.raises(Refused) as refused:
        _whats(find_cluster_changes(_plan(tmp_path, _cluster()), now))
    assert refused.value.reasons == (
        PLAN_FOR_OTHER_CLUSTER(cluster="elsewhere", planned="cluster"),
    )


def test_new_partitions_are_ignored_if_only_selected_partitions_move(tmp_path: Path) -> None:
    plan = _plan(tmp_path, _cluster(), Policies(partitions={"t": frozenset({0, 1})}))
    more = _cluster({"t": {0: _LOG, 1: _LOG, 2: _LOG}})
    assert _whats(find_cluster_changes(plan, more)) == []


def test_skipped_partition_created_after_planning_is_reported(tmp_path: Path) -> None:
    """The plan skipped the partition, so the plan contains no bounds of its log."""
    then = _cluster({"t": {0: _LOG}})
    plan = _plan(tmp_path, then, Policies(gone=Gone.SKIP))
    assert _whats(find_cluster_changes(plan, then)) == []
    assert _whats(find_cluster_changes(plan, _cluster())) == [
        "some partitions did not exist when the plan was created, but exist now: t-1"
    ]


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (None, []),
        (_group("g", t0=1), []),
        (_group("g", t0=1, t1=2), ["the group's offsets have changed: t-1 from no offset to 2"]),
        (_group("g", t0=0), ["the group's offsets have changed: t-0 from 1 to 0"]),
        (_group("g"), ["the group's offsets have changed: t-0 from 1 to no offset"]),
    ],
)
def test_changed_offsets_of_target_group_are_reported(
    tmp_path: Path, now: GroupView | None, told: list[str]
) -> None:
    then = replace(_cluster(), target_group=_group("g", t0=1))
    plan = _plan(tmp_path, then)
    assert _whats(find_cluster_changes(plan, replace(_cluster(), target_group=now))) == told


def test_offset_change_of_deleted_partition_is_not_reported_separately(tmp_path: Path) -> None:
    plan = _plan(tmp_path, replace(_cluster(), target_group=_group("g", t0=1, t1=1)))
    now = replace(_cluster({"t": {0: _LOG}}), target_group=_group("g", t0=1))
    assert _whats(find_cluster_changes(plan, now)) == [
        "partitions were deleted since the plan was created: t-1"
    ]


@pytest.mark.parametrize(
    ("group", "newer", "told"),
    [
        (None, (), []),
        (None, (8, 9), ["it has completed chk-9"]),
        (_group("flink", t0=3), (), []),
        (
            _group("flink", t0=3, t1=6),
            (),
            [
                "its group 'flink' has new offsets in 1 partition (the first is t-1: from no "
                "offset to 6)"
            ],
        ),
        (
            _group("flink", t0=5, t1=6),
            (8,),
            [
                "it has completed chk-8",
                "its group 'flink' has new offsets in 2 partitions (the first is t-0: from 3 to 5)",
            ],
        ),
    ],
)
def test_progress_of_job_after_planning_is_reported(
    tmp_path: Path, group: GroupView | None, newer: tuple[int, ...], told: list[str]
) -> None:
    plan = _plan(tmp_path, replace(_cluster(), source_group=_group("flink", t0=3)))
    moved = list(signs_of_progress(plan, replace(_cluster(), source_group=group)))
    assert moved == told[bool(newer) :]
    assert list(signs_of_progress(plan, None)) == []
    assert completed_since(plan.origin, newer) == newer
