"""Make plans as a pure function, with verdicts, refusals, and output.

`tests/integration/test_to_spark.py` checks the same verdicts on a real broker.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from decoder import read_checkpoint
from migrate.inputs.flink.choose_source import Choice, choose
from migrate.inputs.flink.extract import Extraction, extract
from migrate.inputs.offsets_json import starting_offsets
from migrate.model.catalog import TOPIC_NAME_TAKEN
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.errors import NoSuchName
from migrate.model.policies import Policies
from migrate.planning import Plan, Verdict, make_plan
from tests.support.checkpoints import (
    SourceState,
    in_flight_operator,
    source_operator,
    splits,
    write_checkpoint,
)
from tests.support.encoder import COMMITTED, EARLIEST, LATEST, KafkaSplit


def _extraction(tmp_path: Path, *states: SourceState) -> Extraction:
    operators = [source_operator(state) for state in states]
    return extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", *operators)))


def _plan(
    tmp_path: Path, starts: list[int], snapshot: ClusterSnapshot | None, **state: object
) -> Plan:
    readers = {0: splits("t", starts)}
    extraction = _extraction(tmp_path, SourceState(readers, **state))  # type: ignore[arg-type]
    return make_plan(extraction, extraction.sources, snapshot)


def _log(*ranges: tuple[int, int]) -> ClusterSnapshot:
    return ClusterSnapshot({"t": {n: LogRange(*bounds) for n, bounds in enumerate(ranges)}})


def _with_group(committed: dict[tuple[str, int], int]) -> ClusterSnapshot:
    held = {place: Committed(next_offset) for place, next_offset in committed.items()}
    group = GroupView("flink-job", bool(held), "Empty", "classic", committed=held)
    return ClusterSnapshot({"t": {0: LogRange(0, 50)}}, source_group=group)


def test_position_within_log_is_start_offset(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [5, 0, 10], _log((5, 9), (0, 0), (0, 10)))
    assert not plan.refusals
    assert {p.verdict for p in plan.partitions} == {Verdict.OK}
    assert plan.next_offsets == {("t", 0): 5, ("t", 1): 0, ("t", 2): 10}


@pytest.mark.parametrize(
    ("start", "log", "verdict", "says"),
    [
        (4, (5, 9), Verdict.EXPIRED, "up to 1 records were deleted"),
        (10, (5, 9), Verdict.BEYOND_END, "higher than the log end offset 9"),
        (LATEST, (5, 9), Verdict.UNRESOLVED, "would skip"),
        (COMMITTED, (5, 9), Verdict.UNRESOLVED, 'source_group="GROUP"'),
    ],
)
def test_unresolved_position_or_position_outside_log_is_refused(
    tmp_path: Path, start: int, log: tuple[int, int], verdict: Verdict, says: str
) -> None:
    plan = _plan(tmp_path, [start], _log(log))
    (planned,) = plan.partitions
    assert (planned.verdict, planned.next_offset) == (verdict, None)
    (refusal,) = plan.refusals
    assert "t-0" in str(refusal)
    assert says in str(refusal)


def test_earliest_marker_is_resolved_only_with_broker(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [EARLIEST], _log((40, 50)))
    assert plan.next_offsets == {("t", 0): 40}
    assert plan.partitions[0].verdict is Verdict.MARKER_RESOLVED
    (refusal,) = _plan(tmp_path / "again", [EARLIEST], None).refusals
    assert "bootstrap_servers=" in refusal.way_out


def test_committed_marker_resolves_to_offset_of_source_group(tmp_path: Path) -> None:
    snapshot = _with_group({("t", 0): 33})
    plan = _plan(tmp_path, [COMMITTED], snapshot)
    assert plan.next_offsets == {("t", 0): 33}
    nothing = _with_group({})
    (refusal,) = _plan(tmp_path / "again", [COMMITTED], nothing).refusals
    assert "'flink-job' has no committed offset" in refusal.what


def test_source_group_ahead_of_position_requires_override(tmp_path: Path) -> None:
    snapshot = _with_group({("t", 0): 34})
    extraction = _extraction(tmp_path, SourceState({0: splits("t", [33])}))
    (refusal,) = make_plan(extraction, extraction.sources, snapshot).refusals
    assert "kept running" in refusal.what
    assert "allow_ran_on=True" in refusal.way_out
    allowed = make_plan(extraction, extraction.sources, snapshot, Policies(allow_ran_on=True))
    assert not allowed.refusals
    assert allowed.next_offsets == {("t", 0): 33}


def test_deleted_topics_and_partitions_are_refused(tmp_path: Path) -> None:
    plan = _plan(tmp_path, [1, 1], _log((0, 5)))
    assert [p.verdict for p in plan.partitions] == [Verdict.OK, Verdict.PARTITION_GONE]
    gone = _plan(tmp_path / "again", [1], ClusterSnapshot({}))
    assert [p.verdict for p in gone.partitions] == [Verdict.TOPIC_GONE]
    assert plan.refusals
    assert gone.refusals


def test_new_partition_starts_at_log_start_offset(
    tmp_path: Path,
) -> None:
    plan = _plan(tmp_path, [1], _log((0, 5), (7, 9)))
    assert plan.partitions[1].verdict is Verdict.NEW_PARTITION
    assert plan.next_offsets == {("t", 0): 1, ("t", 1): 7}
    assert not plan.refusals


@pytest.mark.parametrize(
    "state", [{"initial_discovery_finished": False}, {"enumerator_version": 1}]
)
def test_new_partition_is_refused_if_initial_discovery_may_be_unfinished(
    tmp_path: Path, state: dict[str, object]
) -> None:
    """The job would use its configured starting offsets, which the checkpoint does not contain."""
    plan = _plan(tmp_path, [1], _log((0, 5), (7, 9)), **state)
    assert plan.partitions[1].verdict is Verdict.UNRESOLVED
    assert plan.refusals


def test_in_flight_records_are_refused_for_every_source(tmp_path: Path) -> None:
    operator = source_operator(SourceState({0: splits("t", [1])}))
    chk = write_checkpoint(tmp_path / "chk-7", operator, in_flight_operator(10))
    extraction = extract(read_checkpoint(chk))
    (refusal,) = make_plan(extraction, extraction.sources, None).refusals
    assert "10 bytes of records" in refusal.what


# -- several sources ----------------------------------------------------------------------------

_OTHER = bytes(range(16, 32))


def test_sources_of_different_topics_move_together(tmp_path: Path) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("b", [1, 2])}),
        SourceState({0: splits("a", [3])}, operator_id=_OTHER),
    )
    plan = make_plan(extraction, extraction.sources, None)
    assert starting_offsets(plan.next_offsets) == '{"a":{"0":3},"b":{"0":1,"1":2}}'


def test_conflicting_sources_of_topic_are_refused_until_one_is_chosen(tmp_path: Path) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("t", [1, 2])}),
        SourceState({0: splits("t", [1, 3])}, operator_id=_OTHER),
    )
    (refusal,) = make_plan(extraction, extraction.sources, None).refusals
    assert "t-1: 2 and 3" in refusal.what
    assert 'source="OPERATOR_ID"' in refusal.way_out
    # A KafkaSource's state names no cluster, so two clusters may have a topic of this name.
    assert "if all sources read the same Kafka cluster" in refusal.way_out
    chosen = choose(extraction, Choice(source=_OTHER.hex()))
    assert make_plan(extraction, chosen, None).next_offsets == {("t", 0): 1, ("t", 1): 3}


def test_sources_with_equal_positions_in_same_topic_require_one_cluster_option(
    tmp_path: Path,
) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("t", [1, 2])}),
        SourceState({0: splits("t", [1, 2])}, operator_id=_OTHER),
    )
    assert make_plan(extraction, extraction.sources, None).next_offsets == {}
    plan = make_plan(extraction, extraction.sources, None, Policies(one_cluster=True))
    assert plan.next_offsets == {("t", 0): 1, ("t", 1): 2}


def test_source_is_chosen_by_operator_id_or_topic(tmp_path: Path) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("a", [1])}),
        SourceState({0: splits("b", [1])}, operator_id=_OTHER),
    )
    first, second = extraction.sources
    assert choose(extraction, Choice(source=first.operator_id.upper())) == [first]
    assert choose(extraction, Choice(source="topic:b")) == [second]
    assert choose(extraction, Choice()) == [first, second]
    with pytest.raises(NoSuchName, match="topic:c"):
        choose(extraction, Choice(source="topic:c"))
    with pytest.raises(NoSuchName, match="no Kafka source"):
        choose(replace(extraction, sources=()), Choice())


def test_renaming_topic_to_name_of_second_topic_is_refused_unless_both_are_swapped(
    tmp_path: Path,
) -> None:
    extraction = _extraction(tmp_path, SourceState({0: [*splits("a", [1]), *splits("b", [2])]}))
    renamed = Policies(topic_map={"a": "b"})
    (refusal,) = make_plan(extraction, extraction.sources, None, renamed).refusals
    assert refusal == TOPIC_NAME_TAKEN(old="a", new="b")
    swapped = Policies(topic_map={"a": "b", "b": "a"})
    plan = make_plan(extraction, extraction.sources, None, swapped)
    assert (plan.refusals, plan.next_offsets) == ((), {("a", 0): 2, ("b", 0): 1})
    only_a = Policies(topic_map={"a": "b"}, partitions={"a": frozenset({0})})
    plan = make_plan(extraction, extraction.sources, None, only_a)
    assert (plan.refusals, plan.next_offsets) == ((), {("b", 0): 1})


def test_partitions_are_sorted_numerically_in_json(tmp_path: Path) -> None:
    readers = {0: [KafkaSplit("t", n, n) for n in (10, 9, 2)]}
    extraction = _extraction(tmp_path, SourceState(readers))
    plan = make_plan(extraction, extraction.sources, None)
    assert starting_offsets(plan.next_offsets) == '{"t":{"2":2,"9":9,"10":10}}'


# -- source groups, new partitions, and in-flight records ---------------------------------------


def _snapshot(
    logs: dict[str, list[tuple[int, int]]], committed: dict[tuple[str, int], int] | None = None
) -> ClusterSnapshot:
    held = {place: Committed(offset) for place, offset in (committed or {}).items()}
    group = GroupView("flink", True, "Empty", "classic", committed=held)
    return ClusterSnapshot(
        {
            t: {n: LogRange(*bounds) for n, bounds in enumerate(ranges)}
            for t, ranges in logs.items()
        },
        source_group=group if committed is not None else None,
    )


def test_commit_for_partition_unread_at_checkpoint_proves_that_job_kept_running(
    tmp_path: Path,
) -> None:
    extraction = _extraction(tmp_path, SourceState({0: splits("t", [EARLIEST])}))
    logs = {"t": [(0, 200), (0, 90)]}
    for place in (("t", 0), ("t", 1)):
        (refusal,) = make_plan(
            extraction, extraction.sources, _snapshot(logs, {place: 80})
        ).refusals
        assert "kept running" in refusal.what
    level = _snapshot(logs, {("t", 0): 0})
    assert not make_plan(extraction, extraction.sources, level).refusals


def test_single_group_cannot_resolve_committed_markers_of_two_sources(tmp_path: Path) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("a", [COMMITTED])}),
        SourceState({0: splits("b", [COMMITTED])}, operator_id=_OTHER),
    )
    snapshot = _snapshot({"a": [(0, 9)], "b": [(0, 9)]}, {("a", 0): 3, ("b", 0): 4})
    (refusal,) = make_plan(extraction, extraction.sources, snapshot).refusals
    assert "one at a time" in refusal.way_out
    first = extraction.sources[0]
    assert make_plan(extraction, [first], snapshot, ignore_other_sources=True).next_offsets == {
        ("a", 0): 3
    }


def test_single_group_cannot_resolve_committed_markers_of_two_sources_that_also_have_offsets(
    tmp_path: Path,
) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("a", [COMMITTED, 1])}),
        SourceState({0: splits("b", [1, COMMITTED])}, operator_id=_OTHER),
    )
    logs = {"a": [(0, 9), (0, 9)], "b": [(0, 9), (0, 9)]}
    snapshot = _snapshot(logs, {("a", 0): 3, ("b", 1): 4})
    (refusal,) = make_plan(extraction, extraction.sources, snapshot).refusals
    assert "2 sources are still at the 'committed' marker" in refusal.what


def test_source_group_without_commits_triggers_warning(tmp_path: Path) -> None:
    extraction = _extraction(tmp_path, SourceState({0: splits("t", [1])}))
    plan = make_plan(extraction, extraction.sources, _snapshot({"t": [(0, 9)]}, {}))
    assert any("has committed no offset for these topics" in warning for warning in plan.warnings)


def test_committed_offset_outside_log_is_refused(tmp_path: Path) -> None:
    extraction = _extraction(tmp_path, SourceState({0: splits("t", [COMMITTED])}))
    plan = make_plan(extraction, extraction.sources, _snapshot({"t": [(5, 9)]}, {("t", 0): 3}))
    assert plan.partitions[0].verdict is Verdict.EXPIRED
    assert plan.refusals


def test_sources_that_read_different_partitions_of_topic_are_refused(tmp_path: Path) -> None:
    extraction = _extraction(
        tmp_path,
        SourceState({0: [KafkaSplit("t", 0, 1)]}),
        SourceState({0: [KafkaSplit("t", 1, 1)]}, operator_id=_OTHER),
    )
    (refusal,) = make_plan(extraction, extraction.sources, None).refusals
    assert "different positions in 2" in refusal.what


def test_start_of_new_partition_depends_only_on_sources_of_its_topic(tmp_path: Path) -> None:
    """Sources of other topics have no effect."""
    extraction = _extraction(
        tmp_path,
        SourceState({0: splits("a", [1])}),
        SourceState({0: splits("b", [1])}, operator_id=_OTHER, initial_discovery_finished=False),
        SourceState({0: splits("b", [1])}, operator_id=bytes(16), initial_discovery_finished=True),
    )
    snapshot = _snapshot({"a": [(0, 9), (0, 9)], "b": [(0, 9), (0, 9)]})
    plan = make_plan(extraction, extraction.sources, snapshot, Policies(one_cluster=True))
    verdicts = {(p.topic, p.partition): p.verdict for p in plan.partitions}
    assert verdicts["a", 1] is Verdict.NEW_PARTITION
    assert verdicts["b", 1] is Verdict.UNRESOLVED


def test_chosen_source_is_refused_if_different_operator_has_in_flight_records(
    tmp_path: Path,
) -> None:
    operator = source_operator(SourceState({0: splits("t", [1])}))
    chk = write_checkpoint(tmp_path / "chk-7", operator, in_flight_operator(10))
    extraction = extract(read_checkpoint(chk))
    assert make_plan(extraction, extraction.sources, None, ignore_other_sources=True).refusals


def test_chosen_source_is_refused_if_different_source_has_in_flight_records(
    tmp_path: Path,
) -> None:
    """Only their operator is known, so the records can belong to the moved topics."""
    in_flight = in_flight_operator(10).subtasks[0].input_channels
    other = source_operator(SourceState({0: splits("u", [1])}, operator_id=_OTHER))
    holding = replace(other, subtasks=(replace(other.subtasks[0], input_channels=in_flight),))
    mine = source_operator(SourceState({0: splits("t", [1])}))
    found = extract(read_checkpoint(write_checkpoint(tmp_path / "chk-7", mine, holding)))
    (chosen,) = choose(found, Choice(source="topic:t"))
    (refusal,) = make_plan(found, [chosen], None, ignore_other_sources=True).refusals
    assert "10 bytes of records" in refusal.what


@pytest.mark.parametrize("asked", [True, False])
def test_reason_for_unresolved_position_is_reported(tmp_path: Path, asked: bool) -> None:
    readers = {0: [KafkaSplit("t", 0, 10)], 1: [KafkaSplit("t", 0, 12)]}
    found = _extraction(tmp_path, SourceState(readers, entries=[]))
    snapshot = _log((0, 20)) if asked else None
    (refusal,) = make_plan(found, found.sources, snapshot).refusals
    assert "reader state contains the partition 2 times, with starts from 10 to 12" in refusal.what


def test_rewind_and_skip_of_target_group_trigger_warning(tmp_path: Path) -> None:
    held = {("t", 0): Committed(9), ("t", 1): Committed(2), ("t", 2): Committed(5)}
    target = GroupView("g", True, "Empty", "classic", committed=held)
    snapshot = replace(_log((0, 10), (0, 10), (0, 10)), target_group=target)
    back, ahead = [w for w in _plan(tmp_path, [5, 5, 5], snapshot).warnings if "group 'g'" in w]
    assert back.startswith(
        "group 'g' will be rewound in 1 partition (the first is t-0: from 9 to 5)"
    )
    assert "up to 4 records" in back
    assert ahead.startswith(
        "group 'g' will be moved ahead in 1 partition (the first is t-1: from 2 to"
    )
    assert "up to 3 records" in ahead
