"""Rules for changes of a consumer group's offsets: commits, refusals, retries, and messages.

`test_commit_group.py` and `test_commit_faults.py` in tests/integration use real groups.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import cast

import pytest

from migrate.kafka.client import Connection
from migrate.kafka.describe_group import describe_group
from migrate.kafka.groups import CommitFailure
from migrate.model.cluster_snapshot import (
    BrokerError,
    ClusterSnapshot,
    Committed,
    GroupView,
    LogRange,
    Member,
)
from migrate.model.errors import UsageError
from migrate.targets.group import commit as consumer_group
from migrate.targets.group import follower
from migrate.targets.group.commit import (
    Applied,
    ChangeOutcome,
    CommitAttempt,
    PartitionOutcome,
    Result,
    attempts,
    change_refusals,
    commit_refusals,
    in_order,
    partition_outcome,
    pending_commit,
)
from tests.support.checkpoints import splits, write_source
from tests.support.clock import replace_sleep
from tests.support.command import migrate
from tests.support.spark_files import COMMIT, SEED, batch, spark_directory

Offsets = dict[tuple[str, int], Committed]

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)
MEMBER = Member("app", "host")
NOTHING: Offsets = {}


def _at(**offsets: int) -> Offsets:
    """Return offsets. ``a0=5`` is partition 0 of topic a at offset 5."""
    return {(name[0], int(name[1])): Committed(offset) for name, offset in offsets.items()}


def _group(
    offsets: Offsets, *members: Member, kind: str = "classic", exists: bool = True
) -> GroupView:
    return GroupView("g", exists, "Stable" if members else "Empty", kind, members, offsets)


# -- commits and refusals ------------------------------------------------------------------------


def test_commit_does_not_rewrite_equal_offset() -> None:
    theirs = _at(a0=5, a1=7, b0=9)
    change = pending_commit(_at(a0=5, a1=8), _group(theirs), _group(theirs))
    assert change.offsets == _at(a1=8)
    assert change.unchanged == (
        PartitionOutcome("a", 0, Result.UNCHANGED, Committed(5), Committed(5)),
    )
    assert change.refusals == ()


def test_equal_offset_with_leader_epoch_is_rewritten() -> None:
    """Regression: A recreated topic's old epoch remained, so a Java consumer read nothing."""
    theirs = {A0: Committed(5, "", 40)}
    change = pending_commit(_at(a0=5), _group(theirs), _group(theirs))
    assert (change.offsets, change.unchanged) == (_at(a0=5), ())


def test_equal_offset_with_client_metadata_is_rewritten() -> None:
    """Otherwise, Parallel Consumer would skip the records that the metadata lists as processed."""
    theirs = {A0: Committed(5, "bDUAAAAAAA==")}
    change = pending_commit(_at(a0=5), _group(theirs), _group(theirs))
    assert (change.offsets, change.unchanged) == (_at(a0=5), ())


def test_offsets_missing_from_group_are_committed() -> None:
    nobody = _group(NOTHING, exists=False)
    change = pending_commit(_at(a0=0, b0=5), nobody, nobody)
    assert (change.offsets, change.unchanged, change.refusals) == (_at(a0=0, b0=5), (), ())


def test_active_group_is_refused_unless_offsets_are_equal() -> None:
    before, now = _group(_at(a0=1)), _group(_at(a0=1), MEMBER)
    (refusal,) = pending_commit(_at(a0=5), before, now).refusals
    assert (refusal.code, refusal.facts["members"]) == ("group-active", ["app on host"])
    # If the group already has every offset, nothing is written, so nothing is refused.
    assert pending_commit(_at(a0=1), before, now).refusals == ()


def test_group_changed_after_planning_is_refused() -> None:
    (refusal,) = pending_commit(_at(a0=5), _group(_at(a0=1)), _group(_at(a0=2))).refusals
    assert "the first is a-0: from 1 to 2" in refusal


def test_active_and_changed_group_is_refused_for_both_reasons() -> None:
    change = pending_commit(_at(a0=5), _group(_at(a0=1)), _group(_at(a0=2), MEMBER))
    assert [refusal.code for refusal in change.refusals] == ["group-active", "group-changed"]


@pytest.mark.parametrize(
    ("group", "codes"),
    [
        (_group(NOTHING), []),
        (_group(NOTHING, kind="consumer"), []),
        (_group(NOTHING, kind="unknown", exists=False), []),
        (_group(NOTHING, kind="unknown"), ["not-a-consumer-group"]),
        (_group(NOTHING, kind="streams"), ["streams-group"]),
        (_group(NOTHING, MEMBER), ["group-active"]),
    ],
)
def test_commit_refusals_depend_on_group_type_and_members(
    group: GroupView, codes: list[str]
) -> None:
    assert [refusal.code for refusal in commit_refusals(group)] == codes


def test_refusal_for_active_group_lists_at_most_five_members() -> None:
    five, seven = (
        commit_refusals(_group(NOTHING, *(Member(f"c{n}", "h") for n in range(count))))
        for count in (5, 7)
    )
    assert "has 5 members (c0 on h, c1 on h, c2 on h, c3 on h, c4 on h);" in five[0]
    assert "has 7 members (c0 on h, c1 on h, c2 on h, c3 on h, c4 on h and 2 more);" in seven[0]


def test_refusal_for_active_streams_group_reports_only_group_type() -> None:
    (refusal,) = commit_refusals(_group(NOTHING, MEMBER, kind="streams"))
    assert refusal.code == "streams-group"


def test_rollback_of_streams_group_is_not_refused() -> None:
    assert commit_refusals(_group(NOTHING, kind="streams"), restores=True) == []


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (_at(a0=1), _at(a0=1), None),
        (NOTHING, NOTHING, None),
        (
            _at(a0=1, b0=2),
            _at(a0=1, b0=3),
            "1 offset of group g changed after the group was read (the first is b-0: from 2 to 3)",
        ),
        (
            _at(a0=1),
            NOTHING,
            "1 offset of group g changed after the group was read (the first is a-0: from 1 "
            "to none)",
        ),
        (
            NOTHING,
            _at(a1=1, a0=0),
            "2 offsets of group g changed after the group was read (the first is a-0: from none "
            "to 0)",
        ),
        # A different client committed the same offset.
        (
            _at(a0=1),
            {A0: Committed(1, "theirs")},
            ("(the first is a-0: 1 with different metadata)"),
        ),
        (
            _at(a0=1),
            {A0: Committed(1, "", 3)},
            ("(the first is a-0: 1 with a different leader epoch)"),
        ),
    ],
)
def test_refusal_for_changed_group_describes_first_changed_offset(
    before: Offsets, now: Offsets, told: str | None
) -> None:
    found = change_refusals(_group(before), _group(now))
    if told is None:
        assert found == []
        return
    (refusal,) = found
    assert " of group g changed after the group was read (" in refusal
    assert told in refusal


# -- retries -------------------------------------------------------------------------------------

AWAY = CommitFailure("_TRANSPORT", "gone", transient=True)
DENIED = CommitFailure("GROUP_AUTHORIZATION_FAILED", "denied", transient=False)


@pytest.mark.parametrize(
    ("failures", "held", "again"),
    [
        ({}, _at(a0=5, a1=6), NOTHING),
        ({A0: AWAY, A1: AWAY}, _at(a0=1), _at(a0=5, a1=6)),
        ({A0: AWAY, A1: DENIED}, _at(a0=1), _at(a0=5)),
        ({A0: AWAY, A1: AWAY}, _at(a0=5), _at(a1=6)),  # only the response was lost
        ({A0: AWAY, A1: AWAY}, _at(a0=1, a1=9), _at(a0=5)),  # a different client committed
        ({A0: AWAY}, NOTHING, NOTHING),  # the group was deleted
        ({A0: DENIED}, _at(a0=1), NOTHING),
    ],
)
def test_retry_skips_written_denied_and_changed_partitions(
    failures: dict[tuple[str, int], CommitFailure], held: Offsets, again: Offsets
) -> None:
    wanted, before = _at(a0=5, a1=6), _at(a0=1)
    assert consumer_group._offsets_to_retry(wanted, failures, before, held) == again


@pytest.mark.parametrize(
    ("patience", "pauses"),
    [
        (-1.0, []),
        (0.1, []),
        (0.2, [0.2]),
        (0.5, [0.2]),
        (0.7, [0.2, 0.4]),
        (20.0, [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]),
    ],
)
def test_retry_delays_grow_and_end_before_deadline(
    monkeypatch: pytest.MonkeyPatch, patience: float, pauses: list[float]
) -> None:
    clock = [100.0]
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(round(seconds, 6))
        clock[0] += seconds

    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    replace_sleep(monkeypatch, sleep)
    # Add a small amount, because sums of such fractions are not exact.
    made = sum(1 for _ in attempts(100.0 + patience + 1e-9))
    assert paused == pauses
    assert made == len(pauses) + 1


# -- outcomes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "before", "held", "failure", "result"),
    [
        (5, 1, 5, None, Result.COMMITTED),
        (5, None, 5, None, Result.COMMITTED),
        (None, 5, None, None, Result.COMMITTED),
        (5, 1, 5, AWAY, Result.COMMITTED),  # only the response was lost
        (5, 5, 5, None, Result.UNCHANGED),
        (5, 1, 1, DENIED, Result.FAILED),
        (5, None, None, DENIED, Result.FAILED),
        (5, 1, 1, None, Result.DIFFERS),  # the broker reported success
        (5, 1, 7, None, Result.DIFFERS),
        (5, 1, 7, AWAY, Result.DIFFERS),
        (5, 1, None, None, Result.DIFFERS),
    ],
)
def test_partition_outcome_compares_committed_and_target_offsets(
    wanted: int | None,
    before: int | None,
    held: int | None,
    failure: CommitFailure | None,
    result: Result,
) -> None:
    def offset(number: int | None) -> Committed | None:
        return Committed(number) if number is not None else None

    view = _group({A0: Committed(held)} if held is not None else {})
    written = CommitAttempt({A0: failure} if failure is not None else {}, view)
    outcome = partition_outcome(A0, offset(wanted), offset(before), written)
    assert outcome.result is result
    assert (outcome.topic, outcome.partition) == A0
    assert (outcome.target, outcome.now) == (offset(wanted), offset(held))
    told = failure if result in (Result.FAILED, Result.DIFFERS) else None
    assert outcome.failure is told


@pytest.mark.parametrize("failure", [None, AWAY])
def test_unreadable_group_yields_unknown_partition_outcome(failure: CommitFailure | None) -> None:
    written = CommitAttempt({A0: failure} if failure is not None else {}, None)
    outcome = partition_outcome(A0, Committed(5), Committed(1), written)
    expected = PartitionOutcome("a", 0, Result.UNKNOWN, Committed(5), None, failure)
    assert outcome == expected


_RESULTS = {
    Applied.ALL: ["committed", "committed unchanged", "unchanged", ""],
    Applied.NOTHING: ["failed", "failed unchanged"],
    Applied.PARTLY: [
        "committed failed",
        "differs",
        "committed differs",
        "failed differs",
        "committed unchanged failed",
    ],
    Applied.UNVERIFIED: ["unknown", "unknown committed", "unknown failed differs"],
}


@pytest.mark.parametrize(
    ("results", "applied"),
    [(results, applied) for applied, of_it in _RESULTS.items() for results in of_it],
)
def test_change_outcome_summarizes_partition_results(results: str, applied: Applied) -> None:
    partitions = tuple(
        PartitionOutcome("a", n, Result(result), None, None)
        for n, result in enumerate(results.split())
    )
    assert ChangeOutcome("g", partitions, Path("r.json")).applied is applied


@pytest.mark.parametrize("results", [[], [Result.UNCHANGED]])
def test_outcome_of_change_without_rollback_file_is_nothing_to_do(results: list[Result]) -> None:
    partitions = tuple(PartitionOutcome("a", 0, result, None, None) for result in results)
    assert ChangeOutcome("g", partitions, None).applied is Applied.NOTHING_TO_DO


def test_outcomes_are_sorted_by_topic_and_partition_number() -> None:
    places = [("a", 2), ("a", 10), ("b", 0)]
    for order in itertools.permutations(places):
        found = in_order(PartitionOutcome(*place, Result.FAILED, None, None) for place in order)
        assert [(one.topic, one.partition) for one in found] == places


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("\udcff", "not valid UTF-8"),
        ("a\0b", "contains a NUL character"),
        ("ü" * 16_384, "is 32768 bytes long, but Kafka allows at most 32767 bytes"),
    ],
)
def test_invalid_group_name_is_usage_error(name: str, problem: str) -> None:
    """Regression: The process ended with SIGSEGV if the name was invalid UTF-8."""
    with pytest.raises(UsageError, match=problem):
        describe_group(cast(Connection, None), name)


def test_metadata_over_kafka_limit_is_usage_error(tmp_path: Path) -> None:
    """Regression: Each offset failed with _TRANSPORT after 60 s."""
    chk = write_source(tmp_path / "chk-7", {0: splits("t", [1])})
    command = ("commit-group", chk, "--group", "g", "-b", "localhost:1", "--metadata")
    result = migrate(*command, "x" * 32_768)
    assert result.code == 2
    assert "--metadata is 32768 bytes long, but Kafka allows at most 32767" in result.stderr


class _BusyGroups:
    """A group for which another client commits between two requests."""

    def __init__(self, *views: Committed) -> None:
        self.written: Offsets = {}
        self._views = list(views)

    def view(self, group: str) -> GroupView:
        held = self._views.pop(0) if len(self._views) > 1 else self._views[0]
        offsets = {("t", 0): held} | self.written
        return GroupView(group, True, "Empty", "classic", (), offsets)

    def snapshot(self, _: object) -> ClusterSnapshot:
        return ClusterSnapshot({"t": {0: LogRange(0, 20)}})

    def commit(self, _: str, offsets: Offsets) -> dict[tuple[str, int], CommitFailure]:
        self.written |= offsets
        return {}


def test_follow_does_not_overwrite_concurrent_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: The concurrent commit was overwritten with a lower offset."""
    groups = _BusyGroups(Committed(1), Committed(15))
    following = _follower(groups, tmp_path, monkeypatch)
    with pytest.raises(BrokerError, match="1 offset of group g changed after the group was read"):
        following.commit_progress()
    assert groups.written == {}


def test_follow_warns_of_discarded_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: follow silently replaced the metadata of Parallel Consumer."""
    groups = _BusyGroups(Committed(1, "bDUAAAAAAA=="))
    _follower(groups, tmp_path, monkeypatch).commit_progress()
    assert groups.written == {("t", 0): Committed(6)}
    assert "discards the metadata of 1 offset of group g (the first is t-0)" in caplog.text
    assert "[metadata-discarded]" in caplog.text


def _follower(
    groups: _BusyGroups, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> follower.GroupFollower:
    monkeypatch.setattr(follower, "ConsumerGroups", lambda _: groups)
    files = {
        "metadata": '{"id":"0b0b0b0b-0000-0000-0000-000000000001"}',
        "sources/0/0": SEED,
        "offsets/0": batch('{"t":{"0":6}}'),
        "commits/0": COMMIT,
    }
    query = spark_directory(folder / "query", files)
    return follower.GroupFollower({}, "g", str(query))
