"""Check the effect of each policy option, and the losses and duplicates that a plan reports."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.extract import extract
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.errors import UsageError
from migrate.model.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    Unresolved,
    parse_partitions,
    parse_topic_map,
    policies_of,
)
from migrate.model.positions import target_of
from migrate.planning import Plan, PlannedPartition, Verdict, make_plan
from migrate.planning.planner import make_question
from migrate.planning.refusals_and_warnings import plan_lines
from tests.support.checkpoints import (
    OPERATOR_ID,
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import EARLIEST, LATEST

_OTHER = bytes(range(16, 32))


def _plan(
    tmp_path: Path,
    starts: list[int],
    logs: list[tuple[int, int]],
    policies: Policies,
    *,
    since: int | None = None,
    committed: dict[tuple[str, int], int] | None = None,
    discovery_finished: bool = True,
) -> Plan:
    state = SourceState({0: splits("t", starts)}, initial_discovery_finished=discovery_finished)
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    held = {place: Committed(offset) for place, offset in (committed or {}).items()}
    ranges = [LogRange(*bounds, first_since=since, first_at=since) for bounds in logs]
    snapshot = ClusterSnapshot(
        {"t": dict(enumerate(ranges))},
        source_group=GroupView("flink", True, "Empty", "classic", committed=held),
    )
    return make_plan(extraction, extraction.sources, snapshot, policies)


def _only(plan: Plan) -> PlannedPartition:
    assert not plan.refusals
    (planned,) = plan.partitions
    return planned


def test_expired_position_may_start_at_log_start_offset(tmp_path: Path) -> None:
    planned = _only(_plan(tmp_path, [3], [(10, 20)], Policies(on_expired=OnExpired.EARLIEST)))
    assert (planned.verdict, planned.next_offset) == (Verdict.EXPIRED, 10)
    assert (planned.lost, planned.repeated, planned.records_left) == (7, 0, 10)


def test_partition_with_position_beyond_end_may_start_at_log_end_offset(tmp_path: Path) -> None:
    policies = Policies(on_beyond_end=OnBeyondEnd.LATEST)
    planned = _only(_plan(tmp_path, [30], [(5, 20)], policies))
    assert (planned.verdict, planned.next_offset) == (Verdict.BEYOND_END, 20)
    assert (planned.lost, planned.repeated) == (15, 0)


@pytest.mark.parametrize(
    ("choice", "discovery_finished", "next_offset", "lost", "repeated"),
    [
        (NewPartitions.AS_FLINK, True, 4, 0, 0),
        (NewPartitions.EARLIEST, True, 4, 0, 0),
        (NewPartitions.EARLIEST, False, 4, 0, 5),
        (NewPartitions.LATEST, True, 9, 5, 0),
        (NewPartitions.LATEST, False, 9, 5, 0),
    ],
)
def test_new_partition_starts_at_log_start_or_log_end_as_chosen(
    tmp_path: Path,
    choice: NewPartitions,
    discovery_finished: bool,
    next_offset: int,
    lost: int,
    repeated: int,
) -> None:
    plan = _plan(
        tmp_path,
        [1],
        [(0, 5), (4, 9)],
        Policies(new_partitions=choice),
        discovery_finished=discovery_finished,
    )
    assert not plan.refusals
    planned = plan.partitions[1]
    assert (planned.next_offset, planned.lost, planned.repeated) == (next_offset, lost, repeated)


def test_fail_policy_for_new_partitions_refuses_new_partition(tmp_path: Path) -> None:
    policies = Policies(new_partitions=NewPartitions.FAIL)
    (refusal,) = _plan(tmp_path, [1], [(0, 5), (4, 9)], policies).refusals
    assert "t-1: new partition" in refusal.what


@pytest.mark.parametrize(
    ("log", "since", "older"),
    [
        ((0, 1000), 990, 990),
        ((400, 1000), 1000, 600),
        ((400, 1000), 400, 0),  # all records are newer than the checkpoint
        ((7, 7), 7, 0),  # retention deleted all records
        ((0, 1000), None, 0),  # no broker was queried
    ],
)
def test_new_partition_with_records_older_than_checkpoint_triggers_warning(
    tmp_path: Path, log: tuple[int, int], since: int | None, older: int
) -> None:
    """Such records suggest that the job reads only selected partitions (``setPartitions``)."""
    state = SourceState({0: splits("t", [1])})
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    logs = {0: LogRange(0, 5, 5), 1: LogRange(*log, since)}
    plan = make_plan(extraction, extraction.sources, ClusterSnapshot({"t": logs}))
    assert not plan.refusals
    warned = [warning for warning in plan.warnings if "[unlisted-partition]" in warning]
    assert len(warned) == bool(older)
    for warning in warned:
        assert f"the first is t-1, with up to {older}" in warning


def test_skip_policy_omits_deleted_partition(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [1, 2], [(0, 5)], Policies(gone=Gone.SKIP))
    assert not plan.refusals
    assert plan.next_offsets == {("t", 0): 1}
    assert plan.partitions[1].verdict is Verdict.PARTITION_GONE


@pytest.mark.parametrize(
    ("choice", "next_offset", "lost", "repeated"),
    [
        (Unresolved.EARLIEST, 10, 0, 20),
        (Unresolved.LATEST, 30, 20, 0),
        (1767323045000, 17, 7, 13),
        (Unresolved.COMMITTED, 12, 2, 18),
    ],
)
def test_unresolved_option_reports_losses_and_duplicates(
    tmp_path: Path, choice: Unresolved | int, next_offset: int, lost: int, repeated: int
) -> None:
    planned = _only(
        _plan(
            tmp_path,
            [LATEST],
            [(10, 30)],
            Policies(unresolved=choice),
            since=17,
            committed={("t", 0): 12},
        )
    )
    assert planned.verdict is Verdict.UNRESOLVED
    assert (planned.next_offset, planned.lost, planned.repeated) == (next_offset, lost, repeated)


@pytest.mark.parametrize(
    ("committed", "log", "expected"),
    [
        # It starts at the log end offset: all records may be lost, and none is duplicated.
        (900, (0, 100), (100, 100, 0)),
        # It starts at the log start offset: all records may be duplicated, and the gap is lost.
        (5, (20, 100), (20, 15, 80)),
        (30, (20, 100), (30, 10, 70)),
    ],
)
def test_lost_records_are_counted_from_actual_start_if_commit_is_out_of_range(
    tmp_path: Path, committed: int, log: tuple[int, int], expected: tuple[int, int, int]
) -> None:
    policies = Policies(
        unresolved=Unresolved.COMMITTED,
        on_expired=OnExpired.EARLIEST,
        on_beyond_end=OnBeyondEnd.LATEST,
    )
    plan = _plan(tmp_path, [LATEST], [log], policies, committed={("t", 0): committed})
    assert not plan.refusals
    assert _costs(plan) == [expected]
    refused = _plan(
        tmp_path / "refused",
        [LATEST],
        [log],
        Policies(unresolved=Unresolved.COMMITTED),
        committed={("t", 0): committed},
    )
    assert bool(refused.refusals) is (committed != 30)
    assert [(p.lost, p.repeated) for p in refused.partitions] == [expected[1:]]


def test_committed_policy_for_unresolved_position_is_refused_without_commit(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [LATEST], [(10, 30)], Policies(unresolved=Unresolved.COMMITTED))
    assert 'the group in source_group has no offset for unresolved="committed"' in str(
        plan.refusals[0]
    )


@pytest.mark.parametrize(("since", "suspect"), [(None, False), (0, True), (40, True), (95, False)])
def test_log_rewritten_below_position_is_suspect(
    tmp_path: Path, since: int | None, suspect: bool
) -> None:
    plan = _plan(tmp_path, [100], [(0, 150)], Policies(), since=since)
    assert (_only(plan).verdict is Verdict.SUSPECT) is suspect
    assert any("recreated" in warning for warning in plan.warnings) is suspect


def test_allowed_in_flight_records_trigger_warning(tmp_path: Path) -> None:
    operator = source_operator(SourceState({0: splits("t", [1])}))
    chk = write_checkpoint(tmp_path / "c", operator, in_flight_operator(10))
    extraction = extract(read_checkpoint(chk))
    plan = make_plan(extraction, extraction.sources, None, Policies(allow_in_flight=True))
    assert not plan.refusals
    assert any("10 bytes of records" in warning for warning in plan.warnings)


def test_merge_uses_lower_position_unless_a_position_is_unresolved(tmp_path: Path) -> None:
    def plan(name: str, mine: list[int], other: list[int]) -> Plan:
        chk = write_checkpoint(
            tmp_path / name,
            source_operator(SourceState({0: splits("t", mine)})),
            source_operator(SourceState({0: splits("t", other)}, operator_id=_OTHER)),
        )
        extraction = extract(read_checkpoint(chk))
        policies = Policies(merge_sources=MergeSources.MIN, one_cluster=True)
        return make_plan(extraction, extraction.sources, None, policies)

    assert plan("a", [5, 9], [7, 2]).next_offsets == {("t", 0): 5, ("t", 1): 2}
    assert plan("b", [5], [EARLIEST]).refusals  # the log start offset requires a broker
    assert plan("c", [5], [LATEST]).refusals


def test_plan_renames_topics_and_restricts_partitions(tmp_path: Path) -> None:
    state = SourceState({0: [*splits("old", [1, 2, 3]), *splits("other", [4])]})
    chk = write_checkpoint(tmp_path / "c", source_operator(state))
    extraction = extract(read_checkpoint(chk))
    policies = Policies(topic_map={"old": "new"}, partitions={"old": frozenset({0, 2})})
    assert make_question(extraction, extraction.sources, policies).topics == {"new"}
    snapshot = ClusterSnapshot({"new": {n: LogRange(0, 9) for n in range(5)}})
    plan = make_plan(extraction, extraction.sources, snapshot, policies)
    assert not plan.refusals
    assert plan.next_offsets == {("new", 0): 1, ("new", 2): 3}


def test_each_renamed_topic_triggers_warning(tmp_path: Path) -> None:
    state = SourceState({0: [*splits("a", [1, 2]), *splits("b", [3]), *splits("c", [4])]})
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    renamed = Policies(topic_map={"a": "west.a", "b": "west.b", "c": "c"})
    warned = [
        warning
        for warning in make_plan(extraction, extraction.sources, None, renamed).warnings
        if "topic_map" in warning
    ]
    assert len(warned) == 2
    assert warned[0].startswith("topic_map={'a': 'west.a'}: ")
    assert warned[0].endswith(" [renamed-topic]")
    as_it_is = make_plan(extraction, extraction.sources, None)
    assert not any("topic_map" in warning for warning in as_it_is.warnings)


@pytest.mark.parametrize(
    ("kept", "on_broker", "for_group", "narrowed"),
    [
        ({0}, None, False, True),  # the checkpoint has 0 and 1
        ({0, 1}, None, False, False),
        ({0, 1}, 2, False, False),
        ({0, 1}, 3, False, True),  # the broker has one more partition
        ({0}, 2, True, False),  # a group does not need other partitions
    ],
)
def test_plan_of_some_partitions_warns_that_spark_query_must_assign_partitions(
    tmp_path: Path, kept: set[int], on_broker: int | None, for_group: bool, narrowed: bool
) -> None:
    state = SourceState({0: [*splits("old", [1, 2]), *splits("other", [4, 5])]})
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    policies = Policies(topic_map={"old": "new"}, partitions={"old": frozenset(kept)})
    snapshot = None
    if on_broker is not None:
        logs = {n: LogRange(0, 9) for n in range(on_broker)}
        group = GroupView("g", True, "Empty", "classic") if for_group else None
        snapshot = ClusterSnapshot({"new": logs}, target_group=group)
    target = target_of("g" if for_group else None)
    plan = make_plan(extraction, extraction.sources, snapshot, policies, target=target)
    assert not plan.refusals
    warned = [warning for warning in plan.warnings if "assign" in warning]
    assert len(warned) == narrowed
    assert all("1 topic (the first is new)" in warning for warning in warned)


def test_requested_partition_missing_from_checkpoint_and_broker_is_refused(tmp_path: Path) -> None:
    state = SourceState({0: [*splits("old", [1]), *splits("other", [4])]})
    extraction = extract(read_checkpoint(write_checkpoint(tmp_path / "c", source_operator(state))))
    wanted = {"old": frozenset({0, 1, 7, 8}), "other": frozenset({3})}
    policies = Policies(topic_map={"old": "new"}, partitions=wanted)
    logs = {n: LogRange(0, 9) for n in range(2)}
    plan = make_plan(extraction, extraction.sources, ClusterSnapshot({"new": logs}), policies)
    assert [str(refusal).partition(";")[0] for refusal in plan.refusals] == [
        "partitions lists new-7 and 1 more, but neither the checkpoint nor the broker has such "
        "partitions",
        "partitions lists other-3, but neither the checkpoint nor the broker has such partitions",
    ]


# -- options of the command line -----------------------------------------------------------------


def _policies(
    unresolved: str = "fail",
    topic_map: list[str] | None = None,
    partitions: list[str] | None = None,
) -> Policies:
    """Return the policies of these options, parsed as on the command line."""
    return policies_of(
        {
            "unresolved": unresolved,
            "topic_map": parse_topic_map(topic_map or ()),
            "partitions": parse_partitions(partitions) if partitions is not None else None,
        }
    )


def test_policy_options_are_parsed() -> None:
    policies = _policies(
        "timestamp:2026-01-02T03:04:05Z", ["a=b"], ["t:0-2,7", "t:9", "with:colon:1"]
    )
    assert policies.unresolved == policies.unresolved_since == 1767323045000
    assert policies.topic_map == {"a": "b"}
    assert policies.partitions == {
        "t": frozenset({0, 1, 2, 7, 9}),
        "with:colon": frozenset({1}),
    }
    assert _policies("timestamp:1767323045000").unresolved_since == 1767323045000
    for text in ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z", "2026-01-02T05:04:05+02:00"):
        assert _policies(f"timestamp:{text}").unresolved_since == 1767323045000
    latest = _policies("latest")
    assert (latest.unresolved, latest.unresolved_since) == (Unresolved.LATEST, None)


def test_timestamp_without_zone_is_reported_as_utc(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    _policies("timestamp:2026-01-02 03:04:05")
    (told,) = caplog.messages
    assert told.endswith(
        "timestamp:2026-01-02 03:04:05 is interpreted as 2026-01-02T03:04:05+00:00"
    )


@pytest.mark.parametrize(
    "flags",
    [
        {"unresolved": "timestamp"},
        {"unresolved": "timestamp:yesterday"},
        {
            "unresolved": "timestamp:1969-12-31T23:59:59.999Z"
        },  # Kafka reads -1 as the log end offset
        {"unresolved": "timestamp:9223372036854775808"},
        {"unresolved": "timestamp:1795747870"},  # seconds
        {"unresolved": "timestamp:" + "9" * 5000},  # more digits than int() accepts
        {"unresolved": "newest"},
        {"unresolved": "latest:2026-01-02"},
        {"unresolved": ":2026-01-02"},
        {"unresolved": "timestamp:-1"},
        {"topic_map": ["a"]},
        {"topic_map": ["a=b", "a=c"]},
        {"topic_map": ["a=b,c"]},  # Spark's subscribe would read two topics
        {"topic_map": ["a=b\nfailOnDataLoss=false"]},
        {"topic_map": ["a=c", "b=c"]},
        {"partitions": ["t"]},
        {"partitions": ["t:3-1"]},
        {"partitions": ["t:x"]},
        {"partitions": ["t:0-999999999"]},
    ],
)
def test_malformed_policy_options_are_usage_errors(flags: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        _policies(**flags)


# -- counts of duplicated records ----------------------------------------------------------------


def _two_sources(
    tmp_path: Path,
    mine: list[int],
    other: list[int],
    snapshot: ClusterSnapshot | None,
    policies: Policies,
) -> Plan:
    chk = write_checkpoint(
        tmp_path / "two",
        source_operator(SourceState({0: splits("t", mine)})),
        source_operator(SourceState({0: splits("t", other)}, operator_id=_OTHER)),
    )
    extraction = extract(read_checkpoint(chk))
    return make_plan(extraction, extraction.sources, snapshot, policies)


_MIN = Policies(merge_sources=MergeSources.MIN, one_cluster=True)


def _costs(plan: Plan) -> list[tuple[int | None, int | None, int | None]]:
    """Return (next offset, lost, duplicated) of each partition."""
    return [(p.next_offset, p.lost, p.repeated) for p in plan.partitions]


def test_merged_sources_report_duplicated_records(tmp_path: Path) -> None:
    plan = _two_sources(tmp_path, [5, 9, 4], [7, 2, 4], None, _MIN)
    assert _costs(plan) == [(5, 0, 2), (2, 0, 7), (4, 0, 0)]
    (warning,) = [w for w in plan.warnings if 'merge_sources="min"' in w]
    assert "9 records in 2 partitions" in warning


@pytest.mark.parametrize("offsets", [([5], [5]), ([5], [7])], ids=["equal", "different"])
def test_merge_of_sources_with_unnamed_clusters_requires_option_one_cluster(
    tmp_path: Path, offsets: tuple[list[int], list[int]]
) -> None:
    """Regression: Equal offsets of two clusters were merged without a warning."""
    lower = Policies(merge_sources=MergeSources.MIN)
    refused = _two_sources(tmp_path, *offsets, None, lower)
    (refusal,) = refused.refusals
    assert OPERATOR_ID.hex() in refusal.what and _OTHER.hex() in refusal.what
    assert "their state does not identify their Kafka cluster" in refusal.what
    assert 'source="' in refusal.way_out and "one_cluster=True" in refusal.way_out
    assert refused.next_offsets == {}
    merged = _two_sources(tmp_path / "merged", *offsets, None, _MIN)
    assert merged.next_offsets == {("t", 0): 5}
    (told,) = [text for text in merged.warnings if text.startswith("one_cluster=True")]
    assert OPERATOR_ID.hex() in told and _OTHER.hex() in told and "topic t" in told


@pytest.mark.parametrize(
    ("starts", "log", "expected"),
    [
        ((EARLIEST, 7), (3, 20), (3, 0, 4)),
        # Both sources lose the gap. Only the records after the gap are duplicated.
        ((1, 7), (3, 20), (3, 2, 4)),
        ((1, 2), (3, 20), (3, 2, 0)),
    ],
)
def test_merged_position_is_lower_of_resolved_positions(
    tmp_path: Path, starts: tuple[int, int], log: tuple[int, int], expected: tuple[int, ...]
) -> None:
    snapshot = ClusterSnapshot({"t": {0: LogRange(*log)}})
    policies = replace(_MIN, on_expired=OnExpired.EARLIEST)
    plan = _two_sources(tmp_path, [starts[0]], [starts[1]], snapshot, policies)
    assert not plan.refusals
    assert _costs(plan) == [expected]


def test_choice_for_unresolved_source_does_not_skip_records_of_second_source(
    tmp_path: Path,
) -> None:
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 20)}})
    policies = replace(_MIN, unresolved=Unresolved.LATEST)
    plan = _two_sources(tmp_path, [LATEST], [5], snapshot, policies)
    assert not plan.refusals
    assert _costs(plan) == [(5, 5, 15)]


def test_partition_missing_from_one_of_two_sources_may_lose_records(tmp_path: Path) -> None:
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 20), 1: LogRange(2, 20)}})
    plan = _two_sources(tmp_path, [5, 6], [5], snapshot, _MIN)
    assert _costs(plan) == [(5, 0, 0), (6, 4, 0)]
    assert any(
        "one source of the topic has no position for 1 partition" in warning
        for warning in plan.warnings
    )
    unasked = _two_sources(tmp_path / "unasked", [5, 6], [5], None, _MIN)
    assert _costs(unasked) == [(5, 0, 0), (6, None, 0)]


def test_duplicates_of_running_job_are_counted_in_warning(tmp_path: Path) -> None:
    plan = _plan(
        tmp_path,
        [5, 5, EARLIEST],
        [(0, 20), (0, 20), (3, 20), (4, 20)],
        Policies(allow_ran_on=True),
        committed={("t", 0): 9, ("t", 1): 5, ("t", 2): 6, ("t", 3): 10},
    )
    assert not plan.refusals
    assert _costs(plan) == [(5, 0, 4), (5, 0, 0), (3, 0, 3), (4, 0, 6)]
    (warning,) = [w for w in plan.warnings if "kept running after this checkpoint" in w]
    assert "13 records ahead of the checkpoint in 3 partitions" in warning


@pytest.mark.parametrize(
    ("new_partitions", "committed", "expected"),
    [
        # Every record that the job may have read counts, not only records with a commit.
        (NewPartitions.EARLIEST, {("t", 1): 10}, [(5, 0, 0), (4, 0, 16)]),
        (NewPartitions.LATEST, {("t", 1): 10}, [(5, 0, 0), (20, 16, 0)]),
        # No record beyond the log end offset can be duplicated.
        (NewPartitions.LATEST, {("t", 0): 30}, [(5, 0, 15), (20, 16, 0)]),
    ],
)
def test_number_of_duplicates_of_running_job_is_limited_by_log_size(
    tmp_path: Path,
    new_partitions: NewPartitions,
    committed: dict[tuple[str, int], int],
    expected: list[tuple[int, int, int]],
) -> None:
    plan = _plan(
        tmp_path,
        [5],
        [(0, 20), (4, 20)],
        Policies(allow_ran_on=True, new_partitions=new_partitions),
        committed=committed,
        discovery_finished=False,
    )
    assert not plan.refusals
    assert _costs(plan) == expected


def test_refusal_of_running_job_reports_number_of_duplicates(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [5], [(0, 20)], Policies(), committed={("t", 0): 9})
    (refusal,) = plan.refusals
    assert "4 records ahead of the checkpoint in 1 partition " in refusal.what


def test_group_of_source_with_higher_position_does_not_prove_progress(tmp_path: Path) -> None:
    """The group's offset equals the higher position, so the job may have stopped."""
    held = {("t", 0): Committed(7)}
    group = GroupView("flink", True, "Empty", "classic", committed=held)
    snapshot = ClusterSnapshot({"t": {0: LogRange(0, 20)}}, source_group=group)
    plan = _two_sources(tmp_path, [5], [7], snapshot, _MIN)
    assert not plan.refusals
    assert _costs(plan) == [(5, 0, 2)]


def test_source_group_at_position_beyond_log_end_does_not_prove_progress(tmp_path: Path) -> None:
    policies = Policies(on_beyond_end=OnBeyondEnd.LATEST)
    plan = _plan(tmp_path, [30], [(5, 20)], policies, committed={("t", 0): 30})
    assert _costs(plan) == [(20, 15, 0)]
    assert not plan.refusals


def test_number_of_duplicates_is_unknown_if_only_newer_checkpoint_shows_progress(
    tmp_path: Path,
) -> None:
    operator = source_operator(SourceState({0: splits("t", [5])}))
    chk = write_checkpoint(tmp_path / "chk-7", operator)
    write_checkpoint(tmp_path / "chk-8", operator, checkpoint_id=8)
    extraction = extract(read_checkpoint(chk))
    policies = Policies(allow_ran_on=True)
    assert _costs(make_plan(extraction, extraction.sources, None, policies)) == [(5, 0, None)]
    told = _snapshot_with_group({("t", 0): 9})
    assert _costs(make_plan(extraction, extraction.sources, told, policies)) == [(5, 0, 4)]
    level = _snapshot_with_group({("t", 0): 5})  # the job does not commit, or not yet
    assert _costs(make_plan(extraction, extraction.sources, level, policies)) == [(5, 0, None)]


def _snapshot_with_group(committed: dict[tuple[str, int], int]) -> ClusterSnapshot:
    held = {place: Committed(offset) for place, offset in committed.items()}
    group = GroupView("flink", True, "Empty", "classic", committed=held)
    return ClusterSnapshot({"t": {0: LogRange(0, 20)}}, source_group=group)


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (OnExpired, ["fail", "earliest"]),
        (OnBeyondEnd, ["fail", "latest"]),
        (NewPartitions, ["as-flink", "fail", "earliest", "latest"]),
        (Gone, ["fail", "skip"]),
        (Unresolved, ["fail", "earliest", "latest", "committed"]),
        (MergeSources, ["fail", "min"]),
    ],
)
def test_policy_values_are_stable(choices: type[Enum], words: list[str]) -> None:
    assert [choice.value for choice in choices] == words


def test_plan_lines_report_losses_and_duplicates_per_partition(
    tmp_path: Path,
) -> None:
    asked = ClusterSnapshot({"t": {0: LogRange(0, 20), 1: LogRange(2, 20)}})
    plan = _two_sources(tmp_path, [5, 6], [5], asked, _MIN)
    assert list(plan_lines(plan)) == [
        "2 partitions of 1 topic: 2 ok",
        "t-1: ok, from 6, loses up to 4 records",
    ]
    unasked = _two_sources(tmp_path / "unasked", [7, 6], [5], None, _MIN)
    assert list(plan_lines(unasked)) == [
        "2 partitions of 1 topic: 2 ok",
        "t-0: ok, from 5, duplicates up to 2 records",
        "t-1: ok, from 6, loses ? records",
    ]
