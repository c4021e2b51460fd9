"""Plan one position with one log, on both sides of each bound, and check every plan field.

`test_plan.py` and `test_policies.py` use whole checkpoints.
"""

from __future__ import annotations

from typing import Any

import pytest

from migrate.inputs.position_inputs import broker_positions, group_positions, parse_side
from migrate.model.catalog import (
    AT_LATEST_MARKER,
    BEYOND_END,
    COMMITTED_MARKER_OFFLINE,
    EARLIEST_MARKER_OFFLINE,
    EXPIRED,
    LATEST_MARKER_OFFLINE,
    NEW_PARTITION,
    NO_COMMITTED_OFFSET,
    NO_COMMITTED_OFFSET_TO_START_AT,
    NO_SOURCE_GROUP,
    PARTITION_GONE,
    PARTITION_OF_MAP_MISSING,
    POSITION_UNKNOWN,
    START_DEPENDS_ON_JOB,
    TOPIC_GONE,
    TOPIC_OF_MAP_MISSING,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange, Question
from migrate.model.message import Message
from migrate.model.policies import Gone, NewPartitions, OnBeyondEnd, OnExpired, Policies, Unresolved
from migrate.model.positions import (
    Marker,
    Position,
    PositionSet,
    PositionState,
    Unknown,
    format_start,
    resolve,
)
from migrate.model.topic_pattern import suggested_pattern, topic_pattern
from migrate.model.wording import iso_time, printable
from migrate.planning.partition import new_partition, plan_position
from migrate.planning.plan import PlannedPartition, Verdict

_LOG = LogRange(10, 30, first_at=17)


def _at(start: int | Marker | None, state: PositionState = PositionState.NEXT) -> Position:
    reason = "nobody knows" if start is None else ""
    return Position("t", 0, state, start, subtask=2, reason=reason)


def _found(**fields: Any) -> PlannedPartition:
    about = {"log_start": 10, "log_end": 30, "subtask": 2, **fields}
    return PlannedPartition("t", 0, **about)


def _planned(
    position: Position,
    log: LogRange | None = _LOG,
    policies: Policies | None = None,
    committed: int | None = None,
) -> PlannedPartition:
    held = {} if committed is None else {("t", 0): Committed(committed)}
    group = GroupView("g", True, "Empty", "classic", committed=held)
    snapshot = ClusterSnapshot({"t": {} if log is None else {0: log}}, source_group=group)
    return plan_position(position, snapshot, policies or Policies())


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (
            9,
            {
                "verdict": Verdict.EXPIRED,
                "next_offset": None,
                "lost": 1,
                "problem": EXPIRED(next_offset=9, log_start=10, lost=1),
            },
        ),
        (10, {"verdict": Verdict.OK, "next_offset": 10}),
        (30, {"verdict": Verdict.OK, "next_offset": 30}),
        (
            31,
            {
                "verdict": Verdict.BEYOND_END,
                "next_offset": None,
                "lost": 20,
                "problem": BEYOND_END(next_offset=31, log_end=30),
            },
        ),
    ],
)
def test_offset_outside_log_is_refused(start: int, expected: dict[str, Any]) -> None:
    assert _planned(_at(start)) == _found(position=start, job_reached=start, **expected)


def test_partition_with_out_of_range_position_starts_at_nearest_offset_of_log_if_allowed() -> None:
    policies = Policies(on_expired=OnExpired.EARLIEST, on_beyond_end=OnBeyondEnd.LATEST)
    assert _planned(_at(4), policies=policies) == _found(
        verdict=Verdict.EXPIRED, next_offset=10, position=4, job_reached=4, lost=6
    )
    assert _planned(_at(44), policies=policies) == _found(
        verdict=Verdict.BEYOND_END, next_offset=30, position=44, job_reached=44, lost=20
    )


def test_fully_read_partition_of_bounded_source_starts_at_its_stopping_offset() -> None:
    finished = _at(12, PositionState.FINISHED)
    assert _planned(finished).verdict is Verdict.FINISHED
    assert plan_position(finished, None, Policies()) == PlannedPartition(
        "t", 0, Verdict.FINISHED, 12, 12, subtask=2, job_reached=12
    )
    assert plan_position(_at(12), None, Policies()) == PlannedPartition(
        "t", 0, Verdict.OK, 12, 12, subtask=2, job_reached=12
    )


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (None, POSITION_UNKNOWN(reason="nobody knows")),
        (Marker.EARLIEST, EARLIEST_MARKER_OFFLINE()),
        (Marker.LATEST, LATEST_MARKER_OFFLINE()),
        (Marker.COMMITTED, COMMITTED_MARKER_OFFLINE()),
    ],
)
def test_position_requiring_broker_is_refused_without_broker(
    start: Marker | None, problem: Message
) -> None:
    assert plan_position(_at(start), None, Policies()) == PlannedPartition(
        "t",
        0,
        Verdict.UNRESOLVED,
        None,
        start,
        subtask=2,
        lost=None,
        repeated=None,
        problem=problem,
    )


@pytest.mark.parametrize(
    ("start", "problem"),
    [
        (None, POSITION_UNKNOWN(reason="nobody knows")),
        (Marker.LATEST, AT_LATEST_MARKER()),
        (Marker.COMMITTED, NO_COMMITTED_OFFSET(group="g")),
    ],
)
def test_position_that_broker_cannot_resolve_is_refused(
    start: Marker | None, problem: Message
) -> None:
    told = _planned(_at(start))
    assert told == _found(
        verdict=Verdict.UNRESOLVED,
        next_offset=None,
        position=start,
        lost=None,
        repeated=None,
        problem=problem,
    )
    wanted = _planned(_at(start), policies=Policies(unresolved=Unresolved.COMMITTED))
    assert wanted.problem == NO_COMMITTED_OFFSET_TO_START_AT(problem=problem.what)
    untold = plan_position(_at(Marker.COMMITTED), ClusterSnapshot({"t": {0: _LOG}}), Policies())
    assert untold.problem == NO_SOURCE_GROUP()


@pytest.mark.parametrize(("start", "next_offset"), [(Marker.EARLIEST, 10), (Marker.COMMITTED, 12)])
def test_marker_is_resolved_by_broker(start: Marker, next_offset: int) -> None:
    assert _planned(_at(start), committed=12) == _found(
        verdict=Verdict.MARKER_RESOLVED,
        next_offset=next_offset,
        position=start,
        job_reached=next_offset,
    )


@pytest.mark.parametrize(
    ("choice", "committed", "next_offset", "lost", "repeated"),
    [
        (Unresolved.EARLIEST, None, 10, 0, 20),
        (Unresolved.LATEST, None, 30, 20, 0),
        (1767323045000, None, 17, 7, 13),
        (Unresolved.COMMITTED, 10, 10, 0, 20),
        (Unresolved.COMMITTED, 30, 30, 20, 0),
        (Unresolved.COMMITTED, 9, None, 1, 20),
        (Unresolved.COMMITTED, 31, None, 20, 0),
    ],
)
def test_start_chosen_for_unresolved_position_reports_losses_and_duplicates(
    choice: Unresolved | int,
    committed: int | None,
    next_offset: int | None,
    lost: int,
    repeated: int,
) -> None:
    told = _planned(_at(None), policies=Policies(unresolved=choice), committed=committed)
    assert (told.next_offset, told.lost, told.repeated) == (next_offset, lost, repeated)
    assert bool(told.problem) is (next_offset is None)
    assert told.job_reached is None
    if next_offset is not None:
        assert told.verdict is Verdict.UNRESOLVED


@pytest.mark.parametrize(
    ("start", "first_since", "suspect"),
    [
        (20, None, False),
        (20, 20, False),  # no record below the position is new
        (20, 19, False),  # a tenth of the records below it is new
        (20, 15, True),  # half of the records below it are new
        (20, 16, False),
        (20, 10, True),
        (10, 10, False),  # no record is below the position
        (Marker.EARLIEST, 10, False),
    ],
)
def test_log_with_many_new_records_below_position_is_suspect(
    start: int | Marker, first_since: int | None, suspect: bool
) -> None:
    told = _planned(_at(start), LogRange(10, 30, first_since))
    assert (told.verdict is Verdict.SUSPECT) is suspect


def test_committed_marker_is_never_suspect() -> None:
    """The group may have committed after the log was rewritten, so new records prove nothing."""
    told = _planned(_at(Marker.COMMITTED), LogRange(10, 30, 12), committed=25)
    assert told.verdict is Verdict.MARKER_RESOLVED


@pytest.mark.parametrize(
    ("there", "names", "verdict", "problem"),
    [
        ({}, {}, Verdict.TOPIC_GONE, TOPIC_GONE(alike=["tt"])),
        ({"t": {1: _LOG}}, {}, Verdict.PARTITION_GONE, PARTITION_GONE()),
        ({}, {"t": "u"}, Verdict.TOPIC_GONE, TOPIC_GONE(alike=["tt"])),
        (
            {},
            {"s": "t"},
            Verdict.TOPIC_GONE,
            TOPIC_OF_MAP_MISSING(old="s", new="t", alike=["tt"]),
        ),
        (
            {"t": {1: _LOG}},
            {"s": "t"},
            Verdict.PARTITION_GONE,
            PARTITION_OF_MAP_MISSING(old="s", new="t"),
        ),
    ],
)
def test_missing_topic_or_partition_is_refused_unless_skipped(
    there: dict[str, dict[int, LogRange]],
    names: dict[str, str],
    verdict: Verdict,
    problem: Message,
) -> None:
    snapshot = ClusterSnapshot(there, alike={"t": ("tt",)})
    told = plan_position(_at(5), snapshot, Policies(topic_map=names))
    about: dict[str, Any] = {"subtask": 2, "lost": None}
    assert told == PlannedPartition("t", 0, verdict, None, 5, problem=problem, **about)
    skipped = plan_position(_at(5), snapshot, Policies(gone=Gone.SKIP))
    assert skipped == PlannedPartition("t", 0, verdict, None, 5, **about)


@pytest.mark.parametrize(
    ("choice", "as_flink", "next_offset", "lost", "repeated", "problem"),
    [
        (NewPartitions.AS_FLINK, True, 10, 0, 0, None),
        (
            NewPartitions.AS_FLINK,
            False,
            None,
            None,
            None,
            START_DEPENDS_ON_JOB(),
        ),
        (NewPartitions.EARLIEST, True, 10, 0, 0, None),
        (NewPartitions.EARLIEST, False, 10, 0, 20, None),
        (NewPartitions.LATEST, True, 30, 20, 0, None),
        (NewPartitions.LATEST, False, 30, 20, 0, None),
        (NewPartitions.FAIL, True, None, None, None, NEW_PARTITION(where="in the checkpoint")),
    ],
)
def test_new_partition_starts_according_to_new_partitions_policy(
    choice: NewPartitions,
    as_flink: bool,
    next_offset: int | None,
    lost: int | None,
    repeated: int | None,
    problem: Message | None,
) -> None:
    told = new_partition("t", 3, LogRange(10, 30, 14), as_flink, Policies(new_partitions=choice))
    refused_by_state = choice is NewPartitions.AS_FLINK and not as_flink
    assert told == PlannedPartition(
        "t",
        3,
        Verdict.UNRESOLVED if refused_by_state else Verdict.NEW_PARTITION,
        next_offset,
        log_start=10,
        log_end=30,
        lost=lost,
        repeated=repeated,
        job_reached=None if problem else 10,
        older_offsets=0 if problem else 4,
        problem=problem,
    )


@pytest.mark.parametrize(
    ("fields", "difference", "ran_on", "read_already", "left"),
    [
        ({}, None, 0, 0, None),
        ({"next_offset": 5, "current": 5, "log_end": 5, "job_reached": 5}, 0, 0, 0, 0),
        ({"next_offset": 5, "current": 7, "log_end": 4, "job_reached": 4}, -2, 0, 0, 0),
        ({"next_offset": 5, "current": 2, "log_end": 9, "job_reached": 8}, 3, 0, 3, 4),
        ({"next_offset": 0, "current": 0, "log_end": 0, "job_reached": 0}, 0, 0, 0, 0),
        ({"current": 2, "log_end": 9, "job_reached": 8}, None, 0, 0, None),
        ({"next_offset": 5, "job_reached": 5, "flink_committed": 9}, None, 4, 0, None),
        ({"next_offset": 5, "job_reached": 5, "flink_committed": 5}, None, 0, 0, None),
        ({"next_offset": 5, "job_reached": 5, "flink_committed": 4}, None, 0, 0, None),
        ({"job_reached": 5, "flink_committed": 9}, None, 0, 0, None),
        ({"next_offset": 5, "flink_committed": 9}, None, 0, 0, None),
        ({"next_offset": 0, "job_reached": 0, "flink_committed": 1}, None, 1, 0, None),
    ],
)
def test_planned_partition_derives_difference_progress_and_lag_from_its_fields(
    fields: dict[str, Any],
    difference: int | None,
    ran_on: int,
    read_already: int,
    left: int | None,
) -> None:
    planned = PlannedPartition("t", 0, Verdict.OK, **{"next_offset": None, **fields})
    assert planned.difference == difference
    assert planned.ran_on_by == ran_on
    assert planned.read_already == read_already
    assert planned.records_left == left


def test_log_end_of_recreated_topic_is_not_reported_as_reprocessing() -> None:
    """Regression: The move of one source blamed ``--merge-sources``, which was not passed."""
    planned = PlannedPartition("t", 0, Verdict.BEYOND_END, next_offset=0, job_reached=45)
    assert planned.read_already == 0


# -- positions -----------------------------------------------------------------------------------


def test_start_position_is_resolved_with_log_offsets() -> None:
    log = LogRange(3, 9)
    for start, expected in (
        (0, 0),
        (7, 7),
        (Marker.EARLIEST, 3),
        (Marker.LATEST, None),
        (Marker.COMMITTED, None),
        (Unknown.ABSENT, None),
        (Unknown.UNRESOLVED, None),
    ):
        assert resolve(start, log) == expected
    assert resolve(Marker.EARLIEST, None) is None
    assert resolve(7, None) == 7
    assert [format_start(start) for start in (0, 7, Marker.LATEST, Unknown.ABSENT)] == [
        "0",
        "7",
        "latest",
        "absent",
    ]


def test_broker_side_uses_log_offsets_and_group_side_uses_commits() -> None:
    logs = {"t": {0: LogRange(1, 2), 1: LogRange(3, 4)}, "u": {0: LogRange(5, 6)}}
    starts = PositionSet("broker:earliest", {("t", 0): 1, ("t", 1): 3, ("u", 0): 5})
    assert broker_positions(parse_side("broker:earliest"), logs) == starts
    ends = PositionSet("broker:latest", {("t", 0): 2, ("t", 1): 4, ("u", 0): 6})
    assert broker_positions(parse_side("broker:latest"), logs) == ends
    assert starts.topics == {"t", "u"}
    assert (starts.at("t", 1), starts.at("t", 2)) == (3, Unknown.ABSENT)
    group = GroupView("g", True, "Empty", "classic", committed={("t", 0): Committed(7, "m")})
    assert group_positions("group:g", group) == PositionSet("group:g", {("t", 0): 7})
    missing = GroupView("g", False, "Dead", "classic", alike=("gg",))
    assert group_positions("group:g", missing) == PositionSet(
        "group:g", {}, "the group does not exist (did you mean 'gg'?)"
    )


def test_request_to_broker_is_described_in_words() -> None:
    one = frozenset({("id", 1, 0)})
    assert str(Question(frozenset({"t"}))) == "1 topic"
    assert str(Question(frozenset({"t", "u"}), "a", "b", transactions=one)) == (
        "2 topics, group a, group b, 1 transaction"
    )


def test_time_outside_supported_years_is_printed_as_number() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00+00:00"
    assert iso_time(1999) == "1970-01-01T00:00:01+00:00"
    assert iso_time(253_402_300_799_999) == "9999-12-31T23:59:59+00:00"
    assert iso_time(-1) == "-1"
    assert iso_time(253_402_300_800_000) == "253402300800000"


def test_control_characters_in_printed_text_are_escaped() -> None:
    assert printable("a b\té\x1b[2J\n") == "a b\\té\\x1b[2J\\n"


# -- topic patterns ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topics", "pattern"),
    [
        (["orders-eu", "orders-us"], "orders-.*"),
        (["eu-orders", "us-orders"], ".*-orders"),
        (["shop.eu.v1", "shop.us.v1"], "shop[.].*[.]v1"),
        (["a_1", "a_1-2"], "a_.*"),
        (["a-", "a-b"], "a-.*"),
        (["orders", "orders2"], None),
        (["orders-eu"], None),
        (["orders-eu", "orders-eu"], None),
        (["orders", "payments"], None),
        ([], None),
    ],
)
def test_topic_pattern_is_suggested_from_common_parts_of_names(
    topics: list[str], pattern: str | None
) -> None:
    found = suggested_pattern([topics])
    assert (found.text if found is not None else None) == pattern


def test_suggested_patterns_of_several_sources_are_joined() -> None:
    excluded = frozenset({"a-3"})
    found = suggested_pattern([["a-1", "a-2"], ["b.1", "b.2"], ["lonely"]], excluded)
    assert found is not None
    assert (found.text, found.suggested) == ("a-.*|b[.].*", True)
    there = ["b.9", "a-9", "a-3", "b99", "__consumer_offsets", "lonely"]
    assert found.matching(there) == ["a-9", "b.9"]


@pytest.mark.parametrize(("suggested", "number"), [(True, 20), (False, 25)])
def test_suggested_pattern_matches_at_most_twenty_topics(suggested: bool, number: int) -> None:
    given = suggested_pattern([["a-1", "a-2"]]) if suggested else topic_pattern("a-.*")
    assert given is not None
    names = [f"a-{n:02}" for n in range(25)]
    assert given.matching(reversed(names)) == names[:number]


def test_internal_topics_of_kafka_match_no_pattern() -> None:
    own = ["__consumer_offsets", "__transaction_state", "__share_group_state"]
    assert topic_pattern(".*").matching([*own, "__cluster_metadata", "__mine"]) == ["__mine"]
