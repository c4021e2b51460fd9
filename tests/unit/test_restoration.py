"""What taking a change back would do, told from values; real groups and logs are in
tests/integration/test_commit_group.py, test_commit_faults.py and test_rollback_ranges.py."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from migrate.kafka.groups import CommitFailure
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange, Member
from migrate.model.errors import Refused
from migrate.targets.group import rollback as undo
from migrate.targets.group import rollback_file
from migrate.targets.group.commit import CommitAttempt
from migrate.targets.group.rollback_decision import (
    Doubt,
    RestoredOffset,
    RollbackPreview,
    RollbackTarget,
    offsets_to_write,
    rollback_preview,
    rollback_refusals,
    rollback_target,
    topics_to_ask,
)
from migrate.targets.group.rollback_file import ChangeProgress, LoggedChange, RollbackFile

Offsets = dict[tuple[str, int], Committed]

A0, A1, B0, C0 = ("a", 0), ("a", 1), ("b", 0), ("c", 0)
NOTHING: Offsets = {}
IDS = {"a": "id of a", "b": "id of b", "c": "id of c"}
HERE = Path("folder/r.json")


def _at(**offsets: int) -> Offsets:
    """``a0=5``: partition 0 of topic a at 5."""
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
    """A cluster of a, b and c, one partition each, and two of a; each holds 0 to 100."""
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
    run: LoggedChange | None = None,
) -> RollbackPreview:
    return rollback_preview(file, now, rollback_target(HERE, file, now, run), cluster or _cluster())


def _changes(found: RollbackPreview) -> dict[tuple[str, int], tuple[int | None, int | None]]:
    """What each partition that changes holds, and is to hold."""
    return {
        (one.topic, one.partition): (
            one.now.next_offset if one.now is not None else None,
            one.target.next_offset if one.target is not None else None,
        )
        for one in found.partitions
    }


# -- what the group is to hold -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "now", "target"),
    [
        (_at(a0=1), _at(a0=5), _at(a0=5), _at(a0=1)),
        (NOTHING, _at(a0=5), _at(a0=5), NOTHING),
        (_at(a0=1), _at(a0=1, b0=5), _at(a0=1, b0=5), _at(a0=1)),
        # What the change was not about keeps what it holds now, and what has come since.
        (_at(a0=1, b0=2), _at(a0=5, b0=2), _at(a0=5, b0=9, c0=3), _at(a0=1, b0=9, c0=3)),
        # What others have taken since stays away,
        (_at(a0=1, b0=2), _at(a0=5, b0=2), _at(a0=5), _at(a0=1)),
        # unless the whole group is gone: then what it held comes back.
        (_at(a0=1, b0=2), _at(a0=5, b0=2), NOTHING, _at(a0=1, b0=2)),
    ],
)
def test_what_the_group_is_to_hold(
    before: Offsets, after: Offsets, now: Offsets, target: Offsets
) -> None:
    assert rollback_target(HERE, _file(before, after), _group(now), None).offsets == target


def test_where_what_a_group_has_lost_comes_from() -> None:
    file = _file(_at(a0=1, b0=2), _at(a0=5, b0=2))
    assert rollback_target(HERE, file, _group(_at(a0=5)), None).lost_offsets_file is None
    lost = rollback_target(HERE, file, _group(NOTHING), None).lost_offsets_file
    assert lost is not None
    assert (lost.path, lost.file) == (HERE, file)
    assert (lost.file.topic_ids, lost.committed) == (IDS, file.before.committed)


@pytest.mark.parametrize("fate", list(ChangeProgress))
@pytest.mark.parametrize("change", ["commit", "rollback"])
def test_a_rollback_that_was_cut_short_knows_best_what_the_group_held(
    fate: ChangeProgress, change: Literal["commit", "rollback"]
) -> None:
    """It deleted the group, and b was to be committed anew, at what it held by then."""
    file = _file(_at(a0=1, b0=2), _at(a0=5, b0=2))
    second = _file(_at(a0=5, b0=9), _at(a0=1, b0=9), change, {"b": "id of b then"})
    run = LoggedChange(Path("second.json"), second, fate)
    cut_short = change == "rollback" and fate in (ChangeProgress.IN_PART, ChangeProgress.MOVED_ON)
    # A consumer has committed for a since; of nothing else.
    wanted = rollback_target(HERE, file, _group(_at(a0=7)), run)
    assert wanted.offsets == (_at(a0=1, b0=9) if cut_short else _at(a0=1))
    if cut_short:
        assert wanted.lost_offsets_file is not None
        assert wanted.lost_offsets_file.path == Path("second.json")
        assert wanted.lost_offsets_file.file.topic_ids == {"b": "id of b then"}


def test_the_topics_that_are_asked_for() -> None:
    """Of what the change was about too where nothing is to change: it may be out of sight."""
    file = _file(_at(a0=1, b0=2), _at(a0=5, b0=2))
    for now, topics in (
        (_at(a0=5, b0=2), {"a"}),
        (_at(a0=1, b0=2), {"a"}),
        (NOTHING, {"a", "b"}),
    ):
        group = _group(now)
        assert topics_to_ask(file, group, rollback_target(HERE, file, group, None)) == topics


# -- what stands in the way ----------------------------------------------------------------------


def test_nothing_does_where_all_is_as_the_change_left_it() -> None:
    found = _restoration(_file(_at(a0=1), _at(a0=5)), _group(_at(a0=5)))
    assert found.progress is ChangeProgress.APPLIED
    assert found.partitions == (
        RestoredOffset("a", 0, Committed(5), Committed(1), LogRange(0, 100), None),
    )
    assert (found.refusals, found.unless_forced, found.warnings) == ((), (), ())
    assert not found.deletes


def test_members_and_another_cluster_are_refused() -> None:
    file = _file(_at(a0=1), _at(a0=5))
    group = _group(_at(a0=5), Member("app", "host"))
    found = _restoration(file, group)
    (refusal,) = found.refusals
    assert refusal.startswith("group g has 1 member (app on host); stop it first")
    assert found.unless_forced == ()
    with pytest.raises(Refused) as refused:
        _restoration(file, group, _cluster(cluster_id="elsewhere"))
    assert refused.value.reasons == (
        "these brokers are of cluster elsewhere, and the file is of cluster cluster: name its "
        "brokers with -b (the file has localhost:9092)",
    )


def test_a_group_that_has_moved_on_is_brought_back_only_by_force() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    found = _restoration(file, _group(_at(a0=5, a1=9)))
    assert found.progress is ChangeProgress.MOVED_ON
    assert found.unless_forced == (
        "group g has moved on since: 1 of its offsets are neither what it held before nor what was "
        "written (the first is a-1: 9); add --force to go back all the same",
    )
    # It has moved in what the change was not about.
    other = _restoration(_file(_at(a0=1, b0=1), _at(a0=5, b0=1)), _group(_at(a0=5, b0=9)))
    assert (other.unless_forced, _changes(other)) == ((), {A0: (5, 1)})


@pytest.mark.parametrize(
    ("log", "ids", "doubt", "told"),
    [
        ((0, 100), IDS, None, ""),
        ((10, 100), IDS, None, ""),  # it is the first there is
        ((0, 10), IDS, None, ""),  # and the last: the next that is written
        (
            None,
            IDS,
            Doubt.GONE,
            "the group held 10, and the partition is gone; add --force to leave it",
        ),
        (
            (11, 100),
            IDS,
            Doubt.EXPIRED,
            "the group held 10, whose records are gone; the log now holds 11 to 100; add "
            "--force to bring",
        ),
        (
            (0, 9),
            IDS,
            Doubt.BEYOND_END,
            "the group held 10, which is beyond the end; the log now holds 0 to 9; add "
            "--force to bring",
        ),
        (
            (0, 100),
            {"a": "another"},
            Doubt.RECREATED,
            "the group held 10 of a topic that was deleted and created again since; the log now "
            "holds 0 to 100; add --force to bring it back all the same",
        ),
        ((11, 100), {"a": "another"}, Doubt.RECREATED, "deleted and created again"),
        ((0, 100), {}, None, ""),  # brokers that give no ids tell of none
    ],
)
def test_an_offset_that_is_none_of_todays_log_is_brought_back_only_by_force(
    log: tuple[int, int] | None, ids: dict[str, str], doubt: Doubt | None, told: str
) -> None:
    cluster = _cluster({A1: (0, 100), **({A0: log} if log is not None else {})}, ids)
    found = _restoration(_file(_at(a0=10), _at(a0=20)), _group(_at(a0=20)), cluster)
    (one,) = found.partitions
    assert one.doubt is doubt
    assert one.log == (LogRange(*log) if log is not None else None)
    if doubt is None:
        assert found.unless_forced == ()
        return
    (line,) = found.unless_forced
    assert line.startswith("a-0: ") and told in line


def test_topics_without_an_id_in_the_file_are_not_compared() -> None:
    file = _file(_at(a0=10), _at(a0=20), ids={})
    assert _restoration(file, _group(_at(a0=20))).unless_forced == ()


def test_the_ids_of_what_the_group_has_lost_are_those_of_the_file_it_comes_from() -> None:
    file = _file(_at(a0=1, b0=2), _at(a0=5, b0=2), ids={"a": "id of a", "b": "an older id"})
    second = _file(_at(a0=5, b0=9), _at(a0=1, b0=9), "rollback", {"a": "no matter", "b": "id of b"})
    run = LoggedChange(Path("second.json"), second, ChangeProgress.IN_PART)
    found = _restoration(file, _group(NOTHING), run=run)
    assert [one.doubt for one in found.partitions] == [None, None]
    assert _restoration(file, _group(NOTHING)).partitions[1].doubt is Doubt.RECREATED


def test_a_partition_that_is_to_hold_nothing_is_in_no_doubt() -> None:
    found = _restoration(_file(NOTHING, _at(a0=500)), _group(_at(a0=500)), _cluster({}))
    assert found.partitions == (RestoredOffset("a", 0, Committed(500), None, None, None),)
    assert found.unless_forced == ()


# -- what is warned of ---------------------------------------------------------------------------


def test_a_group_is_deleted_where_an_offset_must_go() -> None:
    file = _file(NOTHING, _at(a0=5))
    alone = _restoration(file, _group(_at(a0=5)))
    assert (alone.deletes, alone.target) == (True, {})
    assert alone.warnings == (
        "group g will be deleted; if it also reads topics that this Kafka user may not see, its "
        "offsets there are lost [group-deleted]",
    )
    beside = _restoration(file, _group(_at(a0=5, b0=2)))
    assert (beside.deletes, beside.target) == (True, _at(b0=2))
    assert beside.warnings[0].startswith(
        "group g will be deleted and 1 of its offsets committed again: start no consumer meanwhile;"
    )


def test_offsets_that_come_from_a_file_are_warned_of() -> None:
    file = _file(_at(a0=1, b0=2, c0=3), _at(a0=5, b0=2, c0=3))
    found = _restoration(file, _group(NOTHING))
    assert _changes(found) == {A0: (None, 1), B0: (None, 2), C0: (None, 3)}
    assert found.warnings == (
        "the group has lost 2 offsets of other partitions (the first is b-0); they are restored "
        f"from {HERE}, of {file.created_at} [group-offsets-lost]",
    )
    only_its_own = _restoration(_file(_at(a0=1), _at(a0=5)), _group(NOTHING))
    assert only_its_own.warnings == ()


# -- how it is done ------------------------------------------------------------------------------


def test_what_is_as_it_was_seen_is_done() -> None:
    found = _restoration(_file(_at(a0=1), _at(a0=5)), _group(_at(a0=5, b0=2)))
    assert rollback_refusals(found, found, force=False) == ()
    assert not found.deletes
    assert offsets_to_write(found) == (_at(a0=1, b0=2), {A0})


def test_a_group_that_changed_since_it_was_seen_is_not_touched_even_by_force() -> None:
    file = _file(_at(a0=1), _at(a0=5))
    seen, found = (_restoration(file, _group(_at(a0=5, b0=b))) for b in (2, 3))
    for force in (False, True):
        (refusal,) = rollback_refusals(seen, found, force=force)
        assert "the first is b-0: 2 then, 3 now" in refusal


def test_force_overrules_doubts_and_no_more() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    moved_on = _restoration(file, _group(_at(a0=9, a1=5)))
    assert rollback_refusals(moved_on, moved_on, force=False) == moved_on.unless_forced
    assert rollback_refusals(moved_on, moved_on, force=True) == ()
    member = _restoration(file, _group(_at(a0=5, a1=5), Member("app", "host")))
    assert rollback_refusals(member, member, force=True) == member.refusals != ()


def test_what_belongs_to_no_partition_is_left_out() -> None:
    file = _file(_at(a0=1, a1=1), _at(a0=5, a1=5))
    found = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({A0: (0, 100)}))
    assert rollback_refusals(found, found, force=True) == ()
    assert offsets_to_write(found) == (_at(a0=1), {A0})
    expired = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({A0: (0, 100), A1: (50, 100)}))
    assert offsets_to_write(expired)[1] == {A0, A1}
    all_gone = _restoration(file, _group(_at(a0=5, a1=5)), _cluster({}))
    assert offsets_to_write(all_gone)[1] == frozenset()


def test_where_the_group_is_deleted_all_it_is_to_hold_is_written() -> None:
    file = _file(_at(b0=2), _at(a0=5, b0=2))
    found = _restoration(file, _group(_at(a0=5, b0=2, c0=3)))
    assert found.deletes
    assert offsets_to_write(found) == (_at(b0=2, c0=3), {A0, B0, C0})


def test_a_failure_before_anything_was_written_is_told_of_every_partition() -> None:
    held, failure = _group(_at(a0=5)), CommitFailure("NOT_COORDINATOR", "away", transient=True)
    assert undo._nothing_written(held, _at(b0=2), failure, held) == CommitAttempt(
        {A0: failure, B0: failure}, held
    )
    assert undo._nothing_written(held, _at(b0=2), None, None) == CommitAttempt({}, None)


def test_an_aim_is_what_is_written_whole() -> None:
    """Metadata and leader epochs come back as they were."""
    theirs = {A0: Committed(1, "theirs", 7)}
    found = _restoration(_file(theirs, _at(a0=1)), _group(_at(a0=1)))
    assert found.target == theirs
    assert found.partitions[0].target == Committed(1, "theirs", 7)
    assert rollback_target(HERE, found.file, found.now, None) == RollbackTarget(theirs, None)
