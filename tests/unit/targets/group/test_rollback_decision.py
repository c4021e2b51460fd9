"""Preview a rollback with constructed groups and logs.

`test_commit_group.py`, `test_commit_faults.py`, and `test_rollback_ranges.py` in tests/integration
use real groups and logs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange, Member
from migrate.model.errors import Refused
from migrate.targets.group import rollback_file
from migrate.targets.group.rollback_decision import (
    Doubt,
    RestoredOffset,
    RollbackPreview,
    offsets_to_write,
    rollback_preview,
    rollback_refusals,
    rollback_target,
    topics_to_ask,
)
from migrate.targets.group.rollback_file import ChangeProgress, RollbackFile

Offsets = dict[tuple[str, int], Committed]

A0, A1, B0, C0 = ("a", 0), ("a", 1), ("b", 0), ("c", 0)
NOTHING: Offsets = {}
IDS = {"a": "id of a", "b": "id of b", "c": "id of c"}


def _at(**offsets: int) -> Offsets:
    """Return offsets. ``a0=5`` is partition 0 of topic a at offset 5."""
    return {(name[0], int(name[1])): Committed(offset) for name, offset in offsets.items()}


def _group(offsets: Offsets, *members: Member) -> GroupView:
    return GroupView("g", bool(offsets), "Empty", "classic", members, offsets)


def _file(
    before: Offsets,
    after: Offsets,
    change: Literal["commit", "rollback"] = "commit",
    ids: dict[str, str] = IDS,
) -> RollbackFile:
    return rollback_file.rollback_file(
        change, "cluster", "localhost:9092", _group(before), after, ids
    )


def _cluster(
    logs: dict[tuple[str, int], tuple[int, int]] | None = None,
    ids: dict[str, str] = IDS,
    cluster_id: str = "cluster",
) -> ClusterSnapshot:
    """Return a cluster with a-0, a-1, b-0, and c-0. Each log has the offsets 0 to 100."""
    topics: dict[str, dict[int, LogRange]] = {}
    for (topic, partition), bounds in (
        logs if logs is not None else dict.fromkeys((A0, A1, B0, C0), (0, 100))
    ).items():
        topics.setdefault(topic, {})[partition] = LogRange(*bounds)
    return ClusterSnapshot(topics, cluster_id, ids)


def _restoration(
    file: RollbackFile,
    now: GroupView,
    cluster: ClusterSnapshot | None = None,
) -> RollbackPreview:
    return rollback_preview(file, now, rollback_target(file, now), cluster or _cluster())


def _changes(found: RollbackPreview) -> dict[tuple[str, int], tuple[int | None, int | None]]:
    """Return the current and the target offset of each partition that changes."""
    return {
        (one.topic, one.partition): (
            one.now.next_offset if one.now is not None else None,
            one.target.next_offset if one.target is not None else None,
        )
        for one in found.partitions
    }


# -- target offsets ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "now", "target"),
    [
        (_at(a0=1), _at(a0=5), _at(a0=5), _at(a0=1)),
        (NOTHING, _at(a0=5), _at(a0=5), NOTHING),
        (_at(a0=1), _at(a0=1, b0=5), _at(a0=1, b0=5), _at(a0=1)),
        # Partitions that migrate did not change keep their current offsets, even new offsets.
        (_at(a0=1, b0=2), _at(a0=5, b0=2), _at(a0=5, b0=9, c0=3), _at(a0=1, b0=9, c0=3)),
        # Offsets that a different client removed are not restored,
        (_at(a0=1, b0=2), _at(a0=5, b0=2), _at(a0=5), _at(a0=1)),
        # unless the entire group was deleted.
        (_at(a0=1, b0=2), _at(a0=5, b0=2), NOTHING, _at(a0=1, b0=2)),
    ],
)
def test_rollback_keeps_newer_commits_of_partitions_that_migrate_did_not_change(
    before: Offsets, after: Offsets, now: Offsets, target: Offsets
) -> None:
    assert rollback_target(_file(before, after), _group(now)) == target


def test_rollback_queries_topics_of_recorded_change() -> None:
    """The topics of the recorded change are queried even if the rollback changes no offset.

    Without the query, Kafka could hide their offsets from a user who may not DESCRIBE the topics.
    """
    file = _file(_at(a0=1, b0=2), _at(a0=5, b0=2))
    for now, topics in (
        (_at(a0=5, b0=2), {"a"}),
        (_at(a0=1, b0=2), {"a"}),
        (NOTHING, {"a", "b"}),
    ):
        group = _group(now)
        assert topics_to_ask(file, group, rollback_target(file, group)) == topics


# -- refusals ------------------------------------------------------------------------------------


def test_rollback_of_unchanged_group_has_no_warnings() -> None:
    found = _restoration(_file(_at(a0=1), _at(a0=5)), _group(_at(a0=5)))
    assert found.progress is ChangeProgress.APPLIED
    assert found.partitions == (
        RestoredOffset("a", 0, Committed(5), Committed(1), LogRange(0, 100), None),
    )
    assert (found.refusals, found.unless_forced, found.warnings) == ((), (), ())


def test_rollback_distinguishes_lost_offsets_from_partial_commit() -> None:
    """Regression: After its topic was deleted, a complete commit was "applied only in part"."""
    file = _file(_at(b0=1), _at(a0=5, b0=5))
    all_logs = {A0: (0, 100), B0: (0, 100)}
    for held, logs, ids, lost in (
        (_at(a0=5), {A0: (0, 100)}, IDS, (B0,)),  # topic b was deleted
        (_at(a0=5), all_logs, IDS, (B0,)),  # a commit does not remove b's offset
        (_at(b0=5), {B0: (0, 100)}, IDS, (A0,)),  # topic a was deleted
        (_at(b0=5), all_logs, {**IDS, "a": "new"}, (A0,)),  # topic a was recreated
        (_at(b0=5), all_logs, IDS, ()),  # a's offset may not have been committed
        (_at(b0=1), {B0: (0, 100)}, IDS, ()),  # b's offset was not committed
    ):
        found = _restoration(file, _group(held), _cluster(logs, ids))
        assert found.lost == lost


def test_rollback_refuses_active_group_and_different_cluster() -> None:
    file = _file(_at(a0=1), _at(a0=5))
    group = _group(_at(a0=5), Member("app", "host"))
    found = _restoration(file, group)
    (refusal,) = found.refusals
    assert refusal.code == "group-active"
    assert found.unless_forced == ()
    with pytest.raises(Refused) as refused:
        _restoration(file, group, _cluster(cluster_id="elsewhere"))
    assert refused.value.codes == ["rollback-for-other-cluster"]


def test_rollback_requires_force_if_group_has_newer_commits() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    found = _restoration(file, _group(_at(a0=5, a1=9)))
    assert found.progress is ChangeProgress.MOVED_ON
    (refusal,) = found.unless_forced
    assert refusal.code == "commits-after-change"
    assert refusal.facts == {
        "group": "g",
        "count": 1,
        "partition": "a-1",
        "current": 9,
        "cost": "consumers reprocess up to 8 records",
    }
    # The group has newer commits only for a partition outside the change.
    other = _restoration(_file(_at(a0=1, b0=1), _at(a0=5, b0=1)), _group(_at(a0=5, b0=9)))
    assert (other.unless_forced, _changes(other)) == ((), {A0: (5, 1)})


def test_rollback_is_refused_if_later_change_committed_same_offsets() -> None:
    """Regression: The rollback restored offsets from before another client's commits.

    The first change was rolled back, another client committed, and the second change committed the
    first change's offsets again.
    """
    first = _file(_at(a0=1, b0=1), _at(a0=5, b0=2))
    back = _file(_at(a0=5, b0=2), _at(a0=1, b0=1), "rollback")
    second = _file(_at(a0=4, b0=1), _at(a0=5, b0=2))
    history = [(Path("2.json"), second), (Path("back.json"), back), (Path("1.json"), first)]
    now = _group(_at(a0=5, b0=2))
    (refusal,) = rollback_preview(
        first, now, rollback_target(first, now), _cluster(), history
    ).unless_forced
    assert (refusal.code, refusal.facts["newest"]) == ("later-change", Path("2.json"))
    assert (refusal.facts["count"], refusal.facts["partition"]) == (1, "a-0")
    again = rollback_preview(second, now, rollback_target(second, now), _cluster(), history)
    assert again.unless_forced == ()


def test_refusal_after_later_change_by_migrate_names_newer_rollback_file() -> None:
    """Regression: The refusal contained neither the newer file nor the cost of ``--force``.

    The cost is the number of records that consumers reprocess or skip.
    """
    file = _file(_at(a0=1, a1=9, b0=1), _at(a0=5, a1=5, b0=2))
    later = _file(_at(a0=5, a1=5, b0=2), _at(a0=7, a1=6, b0=2))
    history = [(Path("later.json"), later), (Path("first.json"), file)]
    now = _group(_at(a0=7, a1=6, b0=4))
    found = rollback_preview(file, now, rollback_target(file, now), _cluster(), history)
    by_us, by_others = found.unless_forced
    assert (by_us.code, by_us.facts["newest"]) == ("later-change", Path("later.json"))
    assert by_us.facts["count"] == 2
    assert by_us.facts["cost"] == (
        "consumers reprocess up to 6 records; consumers skip up to 3 records"
    )
    assert by_others.code == "commits-after-change"
    assert by_others.facts["cost"] == "consumers reprocess up to 3 records"


@pytest.mark.parametrize(
    ("before", "logs", "cost"),
    [
        (
            NOTHING,
            {A0: (2, 100), A1: (4, 100)},
            "the group loses 2 offsets, so consumers with auto.offset.reset=earliest "
            "reprocess up to 11 records, and consumers with auto.offset.reset=latest skip the "
            "records that arrive before they restart",
        ),
        (
            _at(a0=1),
            {A0: (0, 100)},  # the brokers do not report the log of a-1
            "consumers reprocess up to 7 records; the group loses 1 offset, so "
            "consumers with auto.offset.reset=earliest reprocess the records from the log start, "
            "and consumers with auto.offset.reset=latest skip the records that arrive before they "
            "restart",
        ),
        (
            _at(a0=10),
            {A0: (0, 100), A1: (9, 100)},  # a-1 has no records below the group's offset
            "consumers skip up to 2 records; the group loses 1 offset, so consumers "
            "with auto.offset.reset=latest skip the records that arrive before they restart",
        ),
        (
            {A0: Committed(8), A1: Committed(9)},
            {A0: (0, 100), A1: (0, 100)},
            "only metadata or leader epochs change",
        ),
    ],
)
def test_cost_of_forced_rollback_omits_zeros_and_reports_lost_offsets(
    before: Offsets, logs: dict[tuple[str, int], tuple[int, int]], cost: str
) -> None:
    """Regression: The cost of removed offsets was "reprocess up to 0 and skip up to 0 records"."""
    file = _file(before, _at(a0=5, a1=5))
    now = _group({A0: Committed(8, "client"), A1: Committed(9, "client")})
    (refusal,) = _restoration(file, now, _cluster(logs)).unless_forced[:1]
    assert refusal.facts["cost"] == cost
    assert refusal.endswith(f"({cost})")


@pytest.mark.parametrize(
    ("log", "ids", "doubt", "code"),
    [
        ((0, 100), IDS, None, ""),
        ((10, 100), IDS, None, ""),  # at the log start offset
        ((0, 10), IDS, None, ""),  # at the log end offset
        (None, IDS, Doubt.GONE, "earlier-partition-gone"),
        ((11, 100), IDS, Doubt.EXPIRED, "earlier-offset-expired"),
        ((0, 9), IDS, Doubt.BEYOND_END, "earlier-offset-beyond-end"),
        ((0, 100), {"a": "another"}, Doubt.RECREATED, "earlier-topic-recreated"),
        ((11, 100), {"a": "another"}, Doubt.RECREATED, "earlier-topic-recreated"),
        ((0, 100), {}, None, ""),  # the brokers report no topic IDs
    ],
)
def test_rollback_requires_force_if_restored_offset_is_outside_log(
    log: tuple[int, int] | None, ids: dict[str, str], doubt: Doubt | None, code: str
) -> None:
    cluster = _cluster({A1: (0, 100), **({A0: log} if log is not None else {})}, ids)
    found = _restoration(_file(_at(a0=10), _at(a0=20)), _group(_at(a0=20)), cluster)
    (one,) = found.partitions
    assert one.doubt is doubt
    assert one.log == (LogRange(*log) if log is not None else None)
    if doubt is None:
        assert found.unless_forced == ()
        return
    (refusal,) = found.unless_forced
    assert (refusal.code, refusal.facts["partition"], refusal.facts["offset"]) == (code, "a-0", 10)


def test_rollback_does_not_compare_topics_whose_id_is_missing_from_file() -> None:
    file = _file(_at(a0=10), _at(a0=20), ids={})
    assert _restoration(file, _group(_at(a0=20))).unless_forced == ()


def test_removal_of_offset_by_rollback_never_requires_force() -> None:
    found = _restoration(_file(NOTHING, _at(a0=500)), _group(_at(a0=500)), _cluster({}))
    assert found.partitions == (RestoredOffset("a", 0, Committed(500), None, None, None),)
    assert found.unless_forced == ()


# -- warnings ------------------------------------------------------------------------------------


def test_rollback_warns_if_it_restores_offsets_that_group_has_lost() -> None:
    file = _file(_at(a0=1, b0=2, c0=3), _at(a0=5, b0=2, c0=3))
    found = _restoration(file, _group(NOTHING))
    assert _changes(found) == {A0: (None, 1), B0: (None, 2), C0: (None, 3)}
    assert found.warnings == (
        "the group has lost 2 offsets that the change did not affect (the first is for b-0); the "
        "rollback "
        f"restores the offsets that these partitions had at {file.created_at} "
        "[group-offsets-lost]",
    )
    only_its_own = _restoration(_file(_at(a0=1), _at(a0=5)), _group(NOTHING))
    assert only_its_own.warnings == ()


# -- writes --------------------------------------------------------------------------------------


def test_rollback_writes_offsets_if_group_still_equals_preview() -> None:
    found = _restoration(_file(_at(a0=1), _at(a0=5)), _group(_at(a0=5, b0=2)))
    assert rollback_refusals(found, found, force=False) == ()
    assert offsets_to_write(found) == (_at(a0=1, b0=2), {A0})


def test_rollback_refuses_group_changed_after_preview_even_with_force() -> None:
    file = _file(_at(a0=1), _at(a0=5))
    seen, found = (_restoration(file, _group(_at(a0=5, b0=b))) for b in (2, 3))
    for force in (False, True):
        (refusal,) = rollback_refusals(seen, found, force=force)
        assert "the first is b-0: from 2 to 3" in refusal


def test_rollback_with_force_option_overrides_newer_commits_but_not_active_members() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    moved_on = _restoration(file, _group(_at(a0=9, a1=5)))
    assert rollback_refusals(moved_on, moved_on, force=False) == moved_on.unless_forced
    assert rollback_refusals(moved_on, moved_on, force=True) == ()
    member = _restoration(file, _group(_at(a0=5, a1=5), Member("app", "host")))
    assert rollback_refusals(member, member, force=True) == member.refusals != ()


def test_rollback_writes_no_offsets_for_deleted_partitions() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    found = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({A0: (0, 100)}))
    assert rollback_refusals(found, found, force=True) == ()
    assert offsets_to_write(found) == (_at(a0=1), {A0})
    expired = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({A0: (0, 100), A1: (50, 100)}))
    assert offsets_to_write(expired)[1] == {A0, A1}
    all_gone = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({}))
    assert offsets_to_write(all_gone)[1] == frozenset()


def test_rollback_writes_only_changed_partitions() -> None:
    file = _file(_at(b0=2), _at(a0=5, b0=2))
    found = _restoration(file, _group(_at(a0=5, b0=2, c0=3)))
    assert offsets_to_write(found) == (_at(b0=2, c0=3), {A0})


def test_rollback_restores_metadata_and_leader_epochs() -> None:
    """Both are restored unchanged, together with the offset."""
    theirs = {A0: Committed(1, "theirs", 7)}
    found = _restoration(_file(theirs, _at(a0=1)), _group(_at(a0=1)))
    assert found.target == theirs
    assert found.partitions[0].target == Committed(1, "theirs", 7)
