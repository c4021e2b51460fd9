"""Check the exact messages of a plan: refusals with remedies, warnings, and plan lines."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

import pytest

from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.catalog import (
    BEYOND_END,
    EXPIRED,
    NO_SOURCE_GROUP,
    POSITION_UNKNOWN,
    TOPIC_GONE,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, Committed, GroupView, LogRange
from migrate.model.finding import Code, Finding
from migrate.model.message import Message, finding
from migrate.model.policies import Policies
from migrate.model.positions import SPARK, Origin, Position, PositionState
from migrate.planning import refusals_and_warnings as messages
from migrate.planning.plan import Plan, PlannedPartition, Verdict

_NO_BROKER = 'not checked against Kafka; add bootstrap_servers="HOST:PORT" [not-checked]'
_NEW = 'choose a start offset with new_partitions="earliest" or latest'
_CHOOSE = 'choose a start offset with unresolved="earliest|latest|committed|timestamp:T"'
_BROKERS = "pass the job's brokers with bootstrap_servers"


def _planned(
    partition: int = 0,
    next_offset: int | None = None,
    verdict: Verdict = Verdict.OK,
    topic: str = "t",
    **fields: object,
) -> PlannedPartition:
    return PlannedPartition(topic, partition, verdict, next_offset, **fields)  # type: ignore[arg-type]


def _refused(*planned: PlannedPartition) -> list[str]:
    return [str(refusal) for refusal in messages.partition_refusals(planned)]


def _group(committed: Mapping[tuple[str, int], int], *alike: str) -> GroupView:
    held = {place: Committed(offset) for place, offset in committed.items()}
    return GroupView("g", bool(held), "Empty", "classic", committed=held, alike=alike)


def _snapshot(**fields: object) -> ClusterSnapshot:
    return ClusterSnapshot({}, **fields)  # type: ignore[arg-type]


def _warned(
    *planned: PlannedPartition,
    findings: tuple[Finding, ...] = (),
    snapshot: ClusterSnapshot | None = None,
    policies: Policies | None = None,
) -> list[str]:
    """Return the warnings, without the one that says that no broker was queried."""
    told = [
        str(text)
        for text in messages.collect_warnings(findings, snapshot, planned, policies or Policies())
    ]
    if snapshot is None:
        assert told.pop() == _NO_BROKER
    assert _NO_BROKER not in told
    return told


def _source(*partitions: int, topic: str = "t") -> Source:
    positions = tuple(Position(topic, n, PositionState.NEXT, 5) for n in partitions)
    return Source("a" * 32, None, None, SourceKind.KAFKA_SOURCE, 1, 128, {None: True}, positions)


# -- refusals -------------------------------------------------------------------------------------


def test_partition_without_problem_is_not_refused() -> None:
    assert _refused(_planned(0, 5), _planned(1, 6)) == []


def test_same_problem_of_several_partitions_is_reported_once() -> None:
    """Regression: The message about a partition without a position contained "None"."""

    def expired(next_offset: int) -> Message:
        return EXPIRED(next_offset=next_offset, log_start=12, lost=12 - next_offset)

    first, second, other = expired(4), NO_SOURCE_GROUP(), POSITION_UNKNOWN(reason="it is absent")
    beyond = BEYOND_END(next_offset=9, log_end=8)
    told = _refused(
        _planned(0, problem=first, verdict=Verdict.EXPIRED),
        _planned(0, problem=second, verdict=Verdict.UNRESOLVED, topic="u"),
        _planned(1, problem=expired(7), verdict=Verdict.EXPIRED),
        _planned(1, problem=second, verdict=Verdict.UNRESOLVED, topic="u"),
        _planned(2, problem=beyond, verdict=Verdict.BEYOND_END),
        _planned(2, problem=other, verdict=Verdict.UNRESOLVED, topic="u"),
    )
    assert told == [
        f"t-0, t-1: expired (the offsets of t-0): {first}",
        f"u-0, u-1: unresolved: {second}",
        f"t-2: beyond end: {beyond}",
        f"u-2: unresolved: {other}",
    ]


@pytest.mark.parametrize(("number", "more"), [(20, ""), (21, " and 1 more")])
def test_refusal_lists_up_to_twenty_partitions(number: int, more: str) -> None:
    gone = TOPIC_GONE(alike=())
    planned = [_planned(n, verdict=Verdict.TOPIC_GONE, problem=gone) for n in range(number)]
    names = ", ".join(f"t-{n}" for n in range(20))
    assert _refused(*planned) == [f"{names}{more}: topic gone: {gone}"]


@pytest.mark.parametrize(("missing", "more"), [({7}, ""), ({7, 8}, " and 1 more")])
def test_requested_partitions_missing_from_checkpoint_and_broker_are_refused(
    missing: set[int], more: str
) -> None:
    there = [_planned(0, 5), _planned(1, 6)]
    policies = Policies(partitions={"t": frozenset({0, 1} | missing), "u": frozenset({0})})
    (told,) = messages.missing_partition_refusals([_source(0, 1)], there, policies)
    assert str(told) == (
        f"partitions lists t-7{more}, but neither the checkpoint nor the broker has such "
        "partitions; pass existing partitions"
    )
    assert not list(messages.missing_partition_refusals([_source(0, 1)], there, Policies()))
    assert not list(messages.missing_partition_refusals([_source(0, 1)], [], policies))


# -- warnings -------------------------------------------------------------------------------------


def _finding(code: Code, operator_id: str | None = None) -> Finding:
    return Finding(finding(code, f"{code} is so")(), operator_id)


def test_warning_about_finding_names_its_operator() -> None:
    findings = (
        _finding(Code.FINISHED_OPERATORS, operator_id="abc"),
        _finding(Code.NOT_A_STOP),
        _finding(Code.WRITTEN_BY),
        _finding(Code.RAN_ON),
    )
    told = [
        "operator abc: finished-operators is so [finished-operators]",
        "not-a-stop is so [not-a-stop]",
    ]
    assert _warned(_planned(0, 5), findings=findings) == told
    allowed = Policies(allow_ran_on=True)
    assert _warned(_planned(0, 5), findings=findings, policies=allowed) == [
        *told,
        "ran-on is so [ran-on]",
    ]


def test_sink_that_remembers_its_writers_triggers_warning_only_for_move_to_group() -> None:
    findings = (_finding(Code.SINK_MEMORY),)
    planned = _planned(0, 5)
    assert _warned(planned, findings=findings) == []
    assert _warned(planned, findings=findings, snapshot=_snapshot()) == []
    to_a_group = _snapshot(target_group=_group({("t", 0): 5}))
    assert _warned(planned, findings=findings, snapshot=to_a_group) == [
        "sink-memory is so [sink-memory]"
    ]


@pytest.mark.parametrize(
    ("ends", "told"),
    [([5, 9], True), ([5, 8], False), ([None, 8], True), ([], True)],
)
def test_warning_about_output_after_last_logged_batch_is_omitted_without_lag(
    ends: list[int | None], told: bool
) -> None:
    """If every position is at the log end offset, no later batch can have written output."""
    planned = [
        _planned(n, offset, log_end=end)
        for n, (offset, end) in enumerate(zip((5, 8), ends, strict=False))
    ]
    warned = _warned(*planned, findings=(_finding(Code.OUTPUT_BEYOND),))
    assert warned == (["output-beyond is so [output-beyond]"] if told else [])


def test_source_group_without_commits_for_topics_triggers_warning() -> None:
    nothing = (
        "group 'g' has committed no offset for these topics, so the group does not show whether "
        "the job kept running [source-group-empty]"
    )
    planned = [_planned(0, 5, job_reached=5), _planned(1, 5, job_reached=5)]
    for committed, told in (
        ({}, [nothing]),
        ({("other", 0): 3}, [nothing]),
        ({("t", 1): 3}, []),
        ({("t", 1): 0}, []),
        ({("t", 0): 3, ("t", 1): 3}, []),
    ):
        assert _warned(*planned, snapshot=_snapshot(source_group=_group(committed))) == told
    alike = _snapshot(source_group=_group({}, "h"))
    assert _warned(*planned, snapshot=alike) == [nothing.replace("'g'", "'g' (did you mean 'h'?)")]


def test_warnings_about_partitions_show_first_affected_partition() -> None:
    assert _warned(
        _planned(0, 5), _planned(1, 6, Verdict.SUSPECT), _planned(2, 6, Verdict.SUSPECT)
    ) == [
        "2 partitions may belong to a recreated topic or to a different cluster (the first is "
        "t-1); check that bootstrap_servers specifies the job's brokers [maybe-recreated]"
    ]
    # A resolved marker is no evidence for this cluster.
    marker = _planned(3, 0, Verdict.MARKER_RESOLVED)
    assert _warned(_planned(1, 6, Verdict.SUSPECT), _planned(2, 6, Verdict.SUSPECT), marker) == [
        "2 partitions may belong to a recreated topic or to a different cluster (the first is "
        "t-1), and a start at these offsets would then lose or duplicate records; a different "
        "cluster is more likely, because all partitions are affected; check that "
        "bootstrap_servers specifies the job's brokers [maybe-recreated]"
    ]
    assert _warned(
        _planned(0, 5), _planned(1, 6, older_offsets=1), _planned(2, 6, older_offsets=9)
    ) == [
        "2 partitions are missing from the checkpoint, but already had records when it was taken "
        "(the first is t-1, with up to 1 record); if the job reads only certain "
        "partitions, pass them with partitions [unlisted-partition]"
    ]
    ran_on = [
        _planned(0, 5, job_reached=5, flink_committed=5),
        _planned(1, 5, job_reached=5, flink_committed=7),
        _planned(2, 5, job_reached=6, flink_committed=7),
    ]
    how = (
        "the job kept running after this checkpoint; the committed offsets of Flink's group are 3 "
        "records ahead of the checkpoint in 2 partitions (the first is t-1: committed 7, "
        "checkpoint 5)"
    )
    assert _warned(*ran_on)[:1] == [f"{how}; these records will be duplicated [ran-on]"]
    (refusal,) = messages.ran_on_refusals(ran_on)
    assert (refusal.code, refusal.facts) == (
        "commits-beyond-positions",
        {"records": 3, "partitions": 2, "first": "t-1", "committed": 7, "next_offset": 5},
    )
    assert not list(messages.ran_on_refusals(ran_on[:1]))
    assert _warned(
        _planned(0, 5, job_reached=5), _planned(1, 5, job_reached=6), _planned(2, 5, job_reached=9)
    ) == [
        'merge_sources="min": 5 records in 2 partitions will be reprocessed (the first is t-1: '
        "from offset 5, although one source had reached offset 6) [merged-positions]"
    ]
    assert _warned(
        _planned(0, 5), _planned(1, 5, unknown_to_some=True), _planned(2, 5, unknown_to_some=True)
    ) == [
        'merge_sources="min": one source of the topic has no position for 2 partitions (the first '
        "is t-1); the move starts these partitions at the other source's position, so the source "
        "without a position loses all earlier records [merged-positions]"
    ]


def test_warning_about_new_group_suggests_similar_names() -> None:
    snapshot = _snapshot(target_group=_group({}, "h"))
    assert list(
        messages.target_group_warnings(Origin("checkpoint", "/chk-7", 7), snapshot, [])
    ) == [
        "group 'g' does not exist and will be created (did you mean 'h'?); check the name "
        "[new-group]"
    ]


def test_rewind_and_skip_of_existing_group_are_reported() -> None:
    planned = [
        _planned(0, 5),  # the group has no offset
        _planned(1, 5, current=5),
        _planned(2, 5, current=6),
        _planned(3, 5, current=9),
        _planned(4, 5, current=3),
        _planned(5, 0, current=0),
    ]
    snapshot = _snapshot(target_group=_group({("t", 0): 5}))
    for origin, reader in (
        (Origin("checkpoint", "/chk-7", 7), " that Flink has read"),
        (Origin("batch", "spark:/query", 7), " that Spark has read"),
        (Origin("positions", "group:h", 0), " that group 'h' has read"),
        (Origin("positions", "broker:latest", 0), ""),
    ):
        assert list(messages.target_group_warnings(origin, snapshot, planned)) == [
            "group 'g' will be rewound in 2 partitions (the first is t-2: from 6 to 5); up to 5 "
            "records will be reprocessed [group-moved]",
            "group 'g' will be moved ahead in 1 partition (the first is t-4: from 3 to 5); up "
            f"to 2 records{reader} will be skipped [group-moved]",
        ]
        assert list(messages.target_group_warnings(origin, _snapshot(), planned)) == []


def test_unknown_checkpoint_age_triggers_warning() -> None:
    unknown = Origin("checkpoint", "/chk-7", 7)
    hidden = "migrate cannot detect a recreated topic [age-unknown]"
    assert list(messages.unknown_age_warnings(unknown, _snapshot())) == [
        f"the age of the checkpoint is unknown, so {hidden}"
    ]
    copied = Origin("checkpoint", "/chk-7", 7, written_at=0, copied_from="s3://u:p@b/chk-7")
    assert list(messages.unknown_age_warnings(copied, _snapshot())) == [
        "the checkpoint is a copy of s3://…@b/chk-7, and its metadata file is dated "
        f"1970-01-01T00:00:00+00:00; if this is the time of the copy instead of the "
        f"checkpoint, {hidden}"
    ]
    known = Origin("checkpoint", "/chk-7", 7, written_at=0)
    assert list(messages.unknown_age_warnings(known, _snapshot())) == []
    assert list(messages.unknown_age_warnings(unknown, None)) == []
    assert list(messages.unknown_age_warnings(Origin("batch", "spark:/q", 7), _snapshot())) == []


def test_renamed_topic_triggers_warning() -> None:
    policies = Policies(topic_map={"t": "u", "same": "same", "unmoved": "elsewhere"})
    moved = [_source(0, topic="u"), _source(0, topic="same"), _source(0, topic="t")]
    assert list(messages.renamed_topic_warnings(moved, policies)) == [
        "topic_map={'t': 'u'}: the same offset may refer to a different record in the new "
        "topic; compare the records first [renamed-topic]"
    ]
    assert list(messages.renamed_topic_warnings(moved, Policies())) == []


def test_warning_about_partial_topics_shows_first_topic() -> None:
    policies = Policies(
        partitions={"t": frozenset({0}), "s": frozenset({1}), "whole": frozenset({0})}
    )
    chosen = [_source(0, 1), _source(0, 1, topic="s"), _source(0, topic="whole")]
    (told,) = messages.partial_topic_warnings(chosen, None, policies)
    assert told == (
        "partitions omits partitions of 2 topics (the first is s); in the query, use the "
        "option assign, and list exactly the partitions to move [partial-topic]"
    )
    more = ClusterSnapshot({"whole": {0: LogRange(0, 1), 1: LogRange(0, 1)}})
    (told,) = messages.partial_topic_warnings(chosen[2:], more, policies)
    assert "1 topic (the first is whole)" in told
    assert not list(messages.partial_topic_warnings(chosen, None, Policies()))


# -- plan lines -----------------------------------------------------------------------------------


def _lines(*planned: PlannedPartition, notes: tuple[str, ...] = ()) -> list[str]:
    origin = Origin("checkpoint", "/chk-7", 7)
    made_at = datetime.fromtimestamp(0, timezone.utc)
    plan = Plan(origin, SPARK, planned, notes=notes, made_at=made_at)
    return list(messages.plan_lines(plan))


def test_plan_lines_list_partitions_with_losses_or_problems() -> None:
    assert _lines(notes=("in order",)) == ["in order"]
    assert _lines(
        _planned(0, 5),
        _planned(1, 5, lost=0, repeated=0, topic="u"),
        _planned(2, 5, lost=1, repeated=0),
        _planned(3, 5, lost=0, repeated=None),
        _planned(4, 5, lost=2, repeated=3),
        _planned(5, 5, Verdict.SUSPECT),
        _planned(6, None, Verdict.TOPIC_GONE, lost=None),
        _planned(7, 0, Verdict.EXPIRED, lost=None),
        notes=("in order", "after all"),
    ) == [
        "8 partitions of 2 topics: 5 ok, 1 suspect, 1 expired, 1 topic gone",
        "t-2: ok, from 5, loses up to 1 records",
        "t-3: ok, from 5, duplicates ? records",
        "t-4: ok, from 5, loses up to 2 records, duplicates up to 3 records",
        "t-5: suspect, from 5",
        "t-7: expired, from 0, loses ? records",
        "t-6: topic gone, skipped",
        "in order",
        "after all",
    ]
    assert _lines(_planned(0, 5)) == ["1 partition of 1 topic: 1 ok"]
    gone = [_planned(number, None, Verdict.PARTITION_GONE, lost=None) for number in range(23)]
    names = ", ".join(f"t-{number}" for number in range(20))
    assert _lines(*gone)[1:] == [f"{names} and 3 more: partition gone, skipped"]


@pytest.mark.parametrize(
    ("origin", "title"),
    [
        (Origin("checkpoint", "a/chk-7", 7), "checkpoint 7"),
        (Origin("checkpoint", "a/savepoint-0523e1-e100894c09db", 3), "savepoint 3"),
        (Origin("checkpoint", "s3://b/savepoint-0523e1-e100894c09db/", 3), "savepoint 3"),
        (Origin("checkpoint", "a/renamed", 3, stopped=True), "savepoint 3"),
        (Origin("batch", "spark:q", 3), "batch 3"),
        (Origin("positions", "group:g", 0), "positions"),
    ],
)
def test_title_of_origin_depends_on_kind_and_name(origin: Origin, title: str) -> None:
    assert origin.title == title
