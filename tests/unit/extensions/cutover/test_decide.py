"""Decisions of the steps of a cut-over for each state of the job, the target, and the record."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest

from decoder import StopKind
from migrate.extensions.cutover import catalog, roll_back
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.decide import (
    Action,
    Decision,
    Done,
    check_restart_is_ruled_out,
    restart_not_checked,
)
from migrate.extensions.cutover.facts import (
    Facts,
    GroupFacts,
    JobToStop,
    LocationFacts,
    OtherCutOver,
    Savepoint,
    Unavailable,
)
from migrate.extensions.cutover.report import (
    CutOverRecord,
    FlinkReport,
    PartitionReport,
    PlanReport,
    RunReport,
    StartReport,
    VerificationReport,
)
from migrate.extensions.cutover.roll_back import check_roll_back, restart_advice
from migrate.extensions.cutover.spec import Spec
from migrate.extensions.cutover.steps import STEPS
from migrate.extensions.cutover.target_state import Started, started_work
from migrate.inputs.flink.rest_api import FlinkJob, StopAttempt
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.model.cluster_snapshot import Committed, GroupView, Member
from migrate.model.errors import CutOverStopped, Refused, ServiceError
from migrate.model.message import Message
from migrate.model.positions import SPARK, Origin
from migrate.planning import Plan, PlannedPartition, Verdict
from migrate.targets.group.rollback_file import RollbackFile, rollback_file

_ID, _OTHER = "0" * 16, "f" * 16
_PLAN = Plan(
    Origin("checkpoint", "/s/savepoint-1", 7),
    SPARK,
    tuple(PlannedPartition("orders", n, Verdict.OK, 80 + n, 80 + n) for n in range(2)),
)
_SEEDS = {"0": {("orders", 0): 80, ("orders", 1): 81}}
_JOB = FlinkJob("a" * 32, "orders", "RUNNING", 1)
_SAVED = Savepoint("/s/savepoint-1", 7, StopKind.SUSPEND, "1" * 64)
_AWAY = Unavailable(FlinkRestError("no answer"))


def _record(**fields: Any) -> CutOverRecord:
    flink = FlinkReport(
        host=None,
        version=None,
        job_id=None,
        job_name=None,
        savepoints=None,
        savepoint=None,
        savepoint_sha256=None,
        finished=False,
        ended_ms=None,
    )
    rows = [
        PartitionReport(
            topic="orders",
            partition=n,
            verdict=Verdict.OK,
            checkpoint=80 + n,
            planned=80 + n,
            log_start=0,
            log_end=100,
            held=fields.pop("held", None) if n == 0 else None,
        )
        for n in range(2)
    ]
    told = {"partitions": rows, **fields}
    flink = flink.model_copy(update=told.pop("flink", {}))
    return CutOverRecord(
        kind="flink-offset-migrate cut-over",
        version=2,
        id=_ID,
        name="orders",
        state="begun",
        spec_sha256="0" * 64,
        brokers="b",
        target="t",
        sink=None,
        moved_with=None,
        written=None,
        query_id=None,
        flink=flink,
        plan=None,
        primed=None,
        start=None,
        verifications=[],
        steps=[],
        runs=[],
        partitions=rows,
    ).model_copy(update=told)


def _spec(*, start: bool, states: bool, others: bool, group: bool) -> Spec:
    """Return a spec with a start command, keyed states, a given savepoint, or a target group."""
    ours = {"rest": "http://127.0.0.1:1", "job": "orders", "savepoints": "/s"}
    primes = {"states": ["counts/n"], "prime": "p"} if states else {}
    fields = {
        "version": 1,
        "flink": {"savepoint": "/s/savepoint-1"} if others else ours,
        "kafka": {"bootstrap-servers": "b"},
        "target": {"group": "g"} if group else {"checkpoint-dir": "/q"},
        "start": "true" if start else None,
    }
    return Spec.model_validate({**fields, **primes})


def _facts(
    record: CutOverRecord | None = None,
    *,
    start: bool = False,
    states: bool = False,
    others: bool = False,
    **fields: Any,
) -> Facts:
    group = isinstance(fields.get("target"), GroupFacts)
    spec = _spec(start=start, states=states, others=others, group=group)
    base = Facts(record=record or _record(), spec=spec, plan=_PLAN)
    return replace(base, **fields)


def _decide(step: str, facts: Facts) -> Decision | Exception:
    """Return what a step decides, or the error that it raises."""
    try:
        return next(row for row in STEPS if row.name == step).decide(facts)
    except (Refused, CutOverStopped, FlinkRestError, OSError) as error:
        return error


def _shown(decision: Decision | Exception) -> Any:
    """Return a short form of a decision: an action, "done", or how the step stops."""
    match decision:
        case Action():
            return decision
        case Done():
            return "done"
        case Refused():
            return "refused"
        case CutOverStopped():
            return "stopped"
        case _:
            return "no answer"


def _reason(decision: object) -> Message:
    """Return the only reason of a refusal or a stop."""
    assert isinstance(decision, Refused | CutOverStopped), decision
    (reason,) = decision.reasons
    assert isinstance(reason, Message)
    return reason


def _no_way_back(facts: Facts) -> Exception | None:
    """Return the error that prevents a rollback, or None."""
    try:
        check_roll_back(facts)
    except (Refused, OSError) as error:
        return error
    return None


# -- check, stop, clean --------------------------------------------------------------------------


def _stopped_job(state: str = "RUNNING", **fields: Any) -> JobToStop:
    job = FlinkJob("a" * 32, "orders", state, 1, None if state == "RUNNING" else 5)
    base = JobToStop(job, "b" * 32, None, None, (), "file:///s/aaa")
    return replace(base, **fields)


_ASKED = {"flink": {"job_id": "a" * 32, "job_name": "orders"}}
_GOES_ON, _FAILED = StopAttempt(), StopAttempt(problem="no")
_ENDED = StopAttempt(savepoint="/s/savepoint-1")
_FINISHED = {"savepoint": "/s/savepoint-1", "finished": True}


@pytest.mark.parametrize(
    ("record", "job", "check", "stop"),
    [
        ({}, _stopped_job(), Action.CHECK, Action.STOP),
        ({}, _AWAY, "no answer", "no answer"),
        ({}, _stopped_job("FAILED"), "refused", "refused"),
        ({}, _stopped_job("FINISHED"), "refused", "refused"),
        ({}, _stopped_job("FINISHED", ended_with=_SAVED), "done", Action.RECORD_SAVEPOINT),
        # Another cut-over's stop has the same trigger ID.
        ({}, _stopped_job("FINISHED", attempt=_GOES_ON), "done", Action.AWAIT_STOP),
        ({}, _stopped_job("FINISHED", attempt=_ENDED), "refused", "refused"),
        (_ASKED, _stopped_job(), Action.CHECK, Action.STOP),
        (_ASKED, _stopped_job(attempt=_GOES_ON), "done", Action.AWAIT_STOP),
        (_ASKED, _stopped_job("FINISHED", attempt=_ENDED), "done", Action.AWAIT_STOP),
        (_ASKED, _stopped_job("FAILED"), "done", "stopped"),
        (_ASKED, _stopped_job("not listed"), "done", "stopped"),
        (_ASKED, _stopped_job("not listed", savepoints=(_SAVED,)), "done", "stopped"),
        ({"flink": {"savepoint": "/s"}}, None, "done", "done"),
    ],
)
def test_decisions_of_check_and_stop_steps_depend_on_state_of_job(
    record: dict[str, Any], job: Any, check: Any, stop: Any
) -> None:
    facts = _facts(_record(**record), job=job, plan=None)
    assert _shown(_decide("check", facts)) == check
    assert _shown(_decide("stop", facts)) == stop


@pytest.mark.parametrize(
    ("recorded", "fields", "decision"),
    [
        (None, {"plan": None}, Action.CHECK),
        ("/s/savepoint-1", {}, "done"),
        ("/s/savepoint-0", {}, Action.CHECK),  # the plan used the previous savepoint
    ],
)
def test_check_step_is_repeated_if_savepoint_in_spec_changes(
    recorded: str | None, fields: dict[str, Any], decision: Any
) -> None:
    facts = _facts(_record(flink={"savepoint": recorded}), others=True, **fields)
    assert _shown(_decide("check", facts)) == decision


def test_remedies_differ_for_failed_job_and_job_that_flink_no_longer_lists() -> None:
    def reason(job: JobToStop) -> Message:
        return _reason(_decide("stop", _facts(_record(**_ASKED), job=job)))

    forgotten = reason(_stopped_job("not listed", savepoints=(_SAVED,)))
    assert (forgotten.code, forgotten.facts["savepoint"]) == ("job-not-listed", "/s/savepoint-1")
    assert reason(_stopped_job("FAILED")).code == "no-final-savepoint"
    with_savepoint = reason(_stopped_job("FAILED", savepoints=(_SAVED,)))
    assert with_savepoint.code == "final-savepoint-unknown"
    assert with_savepoint.facts["savepoints"] == ["/s/savepoint-1"]


@pytest.mark.parametrize(
    ("others", "flink", "savepoint", "job", "decision"),
    [
        (True, {}, _SAVED, None, Action.RECORD_CLEAN_STOP),
        (True, {}, replace(_SAVED, stop=StopKind.UNKNOWN), None, Action.RECORD_CLEAN_STOP),
        (True, {}, replace(_SAVED, stop=StopKind.NONE), None, "refused"),
        (True, {}, Unavailable(OSError("gone")), None, "no answer"),
        (False, {"finished": True}, _SAVED, _stopped_job("FINISHED"), Action.RECORD_CLEAN_STOP),
        (False, {"finished": True}, _SAVED, _stopped_job("not listed"), Action.RECORD_CLEAN_STOP),
        # A job with a fixed ID was restarted, and then stopped with a different savepoint.
        (
            False,
            {"finished": True},
            _SAVED,
            _stopped_job("FINISHED", ended_with=replace(_SAVED, pointer="/s/savepoint-2")),
            "stopped",
        ),
        (False, {"finished": True}, _SAVED, _stopped_job("FAILED"), "stopped"),
        # After the target is written, the savepoint may be deleted.
        (True, {"savepoint_sha256": "1" * 64, "written": "now"}, _AWAY, None, "done"),
        (False, {"finished": True}, _SAVED, _stopped_job(), "stopped"),
        (False, {}, _SAVED, _stopped_job("FINISHED"), "stopped"),
        (False, {"finished": True}, _SAVED, _AWAY, "no answer"),
        (False, {"finished": True, "savepoint_sha256": "1" * 64}, _SAVED, None, "done"),
        (False, {"finished": True, "savepoint_sha256": "2" * 64}, _SAVED, None, "refused"),
        (False, {"finished": True, "savepoint_sha256": "1" * 64}, _AWAY, None, "no answer"),
    ],
)
def test_decision_of_clean_step_depends_on_savepoint_and_state_of_job(
    others: bool, flink: dict[str, Any], savepoint: Any, job: Any, decision: Any
) -> None:
    written = flink.pop("written", None)
    record = _record(flink={"savepoint": "/s/savepoint-1", **flink}, written=written)
    facts = _facts(record, others=others, savepoint=savepoint, job=job)
    assert _shown(_decide("clean", facts)) == decision


# -- a second cut-over of the same job -------------------------------------------------------------


def _other(**fields: Any) -> OtherCutOver:
    return OtherCutOver("/records/other", _record(**fields).model_copy(update={"id": _OTHER}))


def _run(began_at: str) -> RunReport:
    return RunReport(
        number=1,
        asked="execute",
        user="u",
        host="h",
        migrate="1",
        python="3",
        began_at=began_at,
        ended_at=None,
        end=None,
    )


_SAVED_BY = {"flink": {**_ASKED["flink"], "savepoint": "/s/savepoint-1"}}
_MOVED_BY = {**_SAVED_BY, "moved_with": {"target.group": "g2"}}
_NOTHING = LocationFacts("/q")


@pytest.mark.parametrize(
    ("record", "job", "other", "decision"),
    [
        # A job that another cut-over has stopped, and its target is written or not.
        ({}, _stopped_job("FINISHED", ended_with=_SAVED), _MOVED_BY, "savepoint-already-moved"),
        ({}, _stopped_job("FINISHED", ended_with=_SAVED), _SAVED_BY, "savepoint-of-other-cut-over"),
        # The other cut-over is stopping the job, or was killed during the stop.
        ({}, _stopped_job(attempt=_GOES_ON), _ASKED, "savepoint-of-other-cut-over"),
        ({}, _stopped_job("FINISHED", ended_with=_SAVED), _ASKED, "savepoint-of-other-cut-over"),
        # The job was returned to Flink, or the other cut-over failed to stop it.
        ({}, _stopped_job(), _MOVED_BY, None),
        ({}, _stopped_job(), _ASKED, None),
        (
            {},
            _stopped_job("FINISHED", ended_with=replace(_SAVED, pointer="/s/savepoint-2")),
            _MOVED_BY,
            None,
        ),
        # This cut-over has stopped the job.
        (_ASKED, _stopped_job(attempt=_GOES_ON), _ASKED, None),
    ],
)
def test_job_that_another_cut_over_has_stopped_is_refused(
    record: dict[str, Any], job: JobToStop, other: dict[str, Any], decision: str | None
) -> None:
    facts = _facts(_record(**record), job=job, plan=None, other_cut_overs=(_other(**other),))
    if decision is None:
        assert not isinstance(_decide("check", facts), Exception)
        return
    assert _reason(_decide("check", facts)).code == decision
    assert not isinstance(_decide("check", replace(facts, adopt=True)), Exception)


_FIRST, _LAST = {"runs": [_run("2026-01-01")]}, {"runs": [_run("2026-01-02")]}


@pytest.mark.parametrize(
    ("own", "other", "is_refused"),
    [
        (_SAVED_BY | _LAST, _SAVED_BY | _FIRST, True),
        (_SAVED_BY | _FIRST, _SAVED_BY | _LAST, False),
        # The later cut-over has taken over the move.
        (_SAVED_BY | _FIRST, _MOVED_BY | _LAST, True),
        # The moves of two cut-overs have no partition in common.
        (_SAVED_BY | _LAST, _MOVED_BY | _FIRST | {"partitions": ["payments"]}, False),
    ],
)
def test_only_one_of_two_concurrent_cut_overs_writes_its_target(
    own: dict[str, Any], other: dict[str, Any], is_refused: bool
) -> None:
    if rows := other.get("partitions"):
        rows = [_record().partitions[0].model_copy(update={"topic": topic}) for topic in rows]
        other = {**other, "partitions": rows}
    facts = _facts(_record(**own), target=_NOTHING, other_cut_overs=(_other(**other),))
    assert _shown(_decide("apply", facts)) == ("refused" if is_refused else Action.WRITE)
    may_start = restart_advice(replace(facts, savepoint=_SAVED)).may_start
    assert may_start is not is_refused


def test_target_does_not_start_after_another_cut_over_has_taken_over_the_move() -> None:
    own = {**_MOVED_BY, "written": "2026-01-01", "query_id": "q"}
    target = LocationFacts("/q", is_empty=False, query_id="q", seeds=_SEEDS)
    for written, code in (("2026-01-02", "savepoint-already-moved"), ("2025-12-31", None)):
        other = _other(**_MOVED_BY, written=written)
        facts = _facts(_record(**own), start=True, target=target, other_cut_overs=(other,))
        decision = _decide("start", facts)
        assert (decision is Action.START) == (code is None)
        assert code is None or _reason(decision).code == code


# -- a target group --------------------------------------------------------------------------------

_HELD = {"held": 80}


def _group(*committed: int | None, members: int = 0, by: str | None = None) -> GroupFacts:
    """Return a group; ``by`` is the cut-over of its rollback file, or "" for commit-group."""
    offsets = {
        ("orders", n): Committed(offset) for n, offset in enumerate(committed) if offset is not None
    }
    who = (Member("c", "h", frozenset({("orders", 1)})),) * members
    changes = (_change(offsets, by or None),) if by is not None else ()
    return GroupFacts(GroupView("g", True, "Empty", "classic", who, offsets), "cluster", changes)


def _change(
    after: Mapping[tuple[str, int], Committed],
    by: str | None,
    before: Mapping[tuple[str, int], Committed] | None = None,
    change: Literal["commit", "rollback"] = "commit",
) -> RollbackFile:
    group = GroupView("g", bool(before), "Empty", "classic", (), dict(before or {}))
    return rollback_file(change, "cluster", "b:9092", group, after, {}, cut_over=by)


_BOTH = (80, 81)
_BEGUN: dict[str, Any] = {"moved_with": {"target.group": "g"}}
_WRITTEN: dict[str, Any] = {**_BEGUN, "written": "now"}
_VERIFIED: dict[str, Any] = {
    "verifications": [
        VerificationReport(
            when="before", verified=True, partitions=2, unknown=0, lost=0, repeated=0
        )
    ]
}
_RAN = {"start": StartReport(at="now", returned=None)}


@pytest.mark.parametrize(
    ("record", "target", "apply", "begun"),
    [
        ({}, _group(), Action.WRITE, Started.NO),
        ({}, _group(80, 81), "refused", Started.NO),  # written by the job or elsewhere
        ({}, _group(80, 81, by=""), "refused", Started.MAYBE),  # by commit-group
        ({}, _group(70, by=""), Action.WRITE, Started.NO),
        ({}, _group(80, 81, by=_OTHER), "refused", Started.MAYBE),
        ({}, _group(70, by=_OTHER), "refused", Started.MAYBE),
        (_BEGUN, _group(), Action.WRITE, Started.NO),  # killed before the commit
        (_BEGUN, _group(80, by=_ID), Action.WRITE, Started.MAYBE),  # killed during it
        (_BEGUN, _group(*_BOTH, by=_ID), Action.RECORD_WRITTEN, Started.MAYBE),  # killed after it
        (_WRITTEN, _group(*_BOTH, by=_ID), "done", Started.MAYBE),
        (_WRITTEN, _group(*_BOTH, members=1, by=_ID), "done", Started.YES),
        (_WRITTEN, _group(80, 90, by=_ID), "refused", Started.YES),
        (_WRITTEN | _VERIFIED, _group(80, 90, by=_ID), "done", Started.YES),
        (_WRITTEN | _VERIFIED, _group(90, 91, by=_ID), "done", Started.YES),
        # The group contained 80 before the write, so 80 does not show that a run has committed.
        (_BEGUN | _HELD, _group(80, by=_ID), Action.WRITE, Started.NO),
        # One of the two offsets was removed.
        (_WRITTEN | _VERIFIED | _HELD, _group(80, by=_ID), "refused", Started.MAYBE),
        (_WRITTEN | _VERIFIED | _HELD, _group(90, 81, by=_ID), "done", Started.YES),
        # The group was deleted, so its earlier consumers are unknown.
        (_WRITTEN, _group(), "refused", Started.MAYBE),
        (_WRITTEN, _group(80, 81, by=_OTHER), "refused", Started.MAYBE),
        (_WRITTEN, Unavailable(OSError("away")), "no answer", Started.MAYBE),
        ({}, Unavailable(OSError("away")), "no answer", Started.NO),
    ],
)
def test_decision_of_apply_step_depends_on_offsets_of_group(
    record: dict[str, Any], target: Any, apply: Any, begun: Started
) -> None:
    facts = _facts(_record(**record), target=target)
    assert _shown(_decide("apply", facts)) == apply
    assert started_work(facts)[0] is begun


def test_apply_step_writes_to_source_group_that_already_has_planned_offsets() -> None:
    """The job itself committed these offsets, so they do not belong to a different move."""
    facts = _facts(_record(), target=_group(80, 81))
    move = facts.spec.move.model_copy(update={"source_group": facts.spec.target.group})
    facts = replace(facts, spec=facts.spec.model_copy(update={"move": move}))
    assert _shown(_decide("apply", facts)) == Action.WRITE


@pytest.mark.parametrize("by", [None, _OTHER], ids=["commit-group", "cut-over"])
def test_later_commit_for_other_topic_does_not_block_start(by: str | None) -> None:
    """Regression: The start command never ran, because the commit counted as a newer commit."""
    ours = {("orders", 0): Committed(80), ("orders", 1): Committed(81)}
    after = {**ours, ("payments", 0): Committed(5)}
    view = GroupView("g", True, "Empty", "classic", (), after)
    target = GroupFacts(view, "cluster", (_change(after, by, ours), _change(ours, _ID)))
    facts = _facts(_record(**_WRITTEN), target=target, start=True)
    assert _shown(_decide("apply", facts)) == "done"
    assert _shown(_decide("start", facts)) == Action.START
    assert started_work(facts)[0] is Started.MAYBE


def test_apply_step_counts_as_done_after_second_cut_over_is_rolled_back() -> None:
    """The rollback restored the offsets that the first cut-over had committed."""
    ours = {("orders", 0): Committed(80), ("orders", 1): Committed(81)}
    theirs = {("orders", 0): Committed(70), ("orders", 1): Committed(71)}
    view = GroupView("g", True, "Empty", "classic", (), ours)
    changes = (
        _change(ours, None, theirs, "rollback"),
        _change(theirs, _OTHER, ours),
        _change(ours, _ID),
    )
    facts = _facts(_record(**_WRITTEN), target=GroupFacts(view, "cluster", changes))
    assert _shown(_decide("apply", facts)) == "done"
    assert started_work(facts)[0] is Started.MAYBE


def test_group_member_on_other_topic_does_not_count_as_start() -> None:
    """Regression: A member on a different topic counted as a start, so no start command ran."""
    member = Member("c", "h", frozenset({("payments", 0)}))
    view = replace(_group(*_BOTH, by=_ID).view, members=(member,))
    facts = _facts(
        _record(**_WRITTEN),
        target=GroupFacts(view, "cluster", (_change(view.committed, _ID),)),
        start=True,
    )
    assert started_work(facts)[0] is Started.MAYBE
    assert _shown(_decide("start", facts)) == Action.START
    assert _shown(_decide("first-batch", facts)) == Action.AWAIT_FIRST_BATCH


@pytest.mark.parametrize("adopt", [False, True])
def test_cut_over_reclaims_group_from_another_cut_over_only_with_adopt_option(adopt: bool) -> None:
    """Regression: A second ``--adopt`` for the same group did nothing but reported success."""
    others = _group(80, 81, by=_OTHER)
    record = _record(**_WRITTEN, **_VERIFIED, **_RAN)
    facts = _facts(record, target=others, adopt=adopt)
    assert _shown(_decide("plan", facts)) == (Action.PLAN if adopt else "refused")
    assert _shown(_decide("apply", facts)) == (Action.ADOPT if adopt else "refused")


def test_running_start_command_counts_as_possible_start() -> None:
    """The target can be an empty group, a written group, or a checkpoint location."""
    for target in (_group(), _group(*_BOTH, by=_ID), LocationFacts("/q")):
        facts = _facts(_record(**_BEGUN), target=target, start_status="running")
        assert started_work(facts) == (
            Started.MAYBE,
            "the start command is still running",
        )


_AFTER = VerificationReport(
    when="after", verified=False, partitions=2, unknown=2, lost=0, repeated=0
)


@pytest.mark.parametrize(
    "seen",
    [
        {"state": "done"},
        {"verifications": [_AFTER]},
        {"start": StartReport(at="now", returned=0)},
    ],
)
@pytest.mark.parametrize(
    "target", [LocationFacts("/q"), _group(), _group(80), Unavailable(OSError("away"))]
)
def test_empty_target_counts_as_started_if_record_shows_start(
    seen: dict[str, Any], target: Any
) -> None:
    """Regression: After the location of a started query was renamed, a new location was seeded."""
    facts = _facts(_record(**_WRITTEN, **seen), target=target)
    assert started_work(facts)[0] is not Started.NO
    for step in ("plan", "apply"):
        assert not isinstance(_decide(step, facts), Action), step
    assert "start the Flink job from" not in restart_advice(facts).text.partition("do not ")[0]
    assert _no_way_back(facts) is not None


def test_newer_commits_are_accepted_only_after_start_command_ran() -> None:
    moved_on = _group(80, 90, by=_ID)
    facts = _facts(_record(**_WRITTEN, **_VERIFIED), target=moved_on, start=True)
    assert _shown(_decide("apply", facts)) == "refused"
    ran = replace(facts, record=_record(**_WRITTEN, **_VERIFIED, **_RAN))
    assert _shown(_decide("apply", ran)) == "done"


def test_apply_step_refuses_group_on_different_cluster() -> None:
    plan = PlanReport(
        sha256="0" * 64,
        made_at="",
        cluster_id="another",
        policies={},
        findings=[],
        warnings=[],
        states=[],
        streams={},
    )
    facts = _facts(_record(**_WRITTEN, plan=plan), target=_group(*_BOTH, by=_ID))
    for decision in (_decide("apply", facts), _no_way_back(facts)):
        reason = _reason(decision)
        assert reason.code == "group-on-other-cluster"
        assert reason.facts == {"cluster": "cluster", "written": "another"}


# -- a checkpoint location -------------------------------------------------------------------------


def _location(**fields: Any) -> LocationFacts:
    base = LocationFacts("/q", is_empty=False, query_id="q1", seeds=_SEEDS)
    return replace(base, **fields)


_MOVED: dict[str, Any] = {"moved_with": {"target.checkpoint-dir": "/q"}}
_SEEDED: dict[str, Any] = {**_MOVED, "query_id": "q1", "written": "now"}
_PRIMED: dict[str, Any] = {**_SEEDED, "primed": 0}
_STATES = {"states": True, "start": True}
_LEFT = {"last_committed_batch": 0, "last_planned_batch": 0, "has_logs": True}  # after priming
_BY_ANOTHER = {
    "query_id": "q2",
    "last_committed_batch": 57,
    "last_planned_batch": 57,
    "has_logs": True,
}


@pytest.mark.parametrize(
    ("record", "target", "more", "apply", "begun"),
    [
        ({}, LocationFacts("/q"), {}, Action.WRITE, Started.NO),
        # The query may have been started manually and renamed. Regression: A second query
        # duplicated the records of the renamed query.
        (_SEEDED, LocationFacts("/q"), {"start": True}, "refused", Started.MAYBE),
        (_SEEDED, LocationFacts("/q"), {}, "refused", Started.MAYBE),
        (
            _SEEDED,
            LocationFacts("/q"),
            {"start": True, "start_status": 0},
            "refused",
            Started.MAYBE,
        ),
        (_SEEDED, _location(), {}, "done", Started.NO),
        (_MOVED, _location(unfinished=True), {}, Action.WRITE, Started.NO),
        (_MOVED, _location(), {}, "refused", Started.NO),  # its writer is unknown
        (_MOVED, _location(query_id=None), {}, "refused", Started.NO),
        (_MOVED | {"query_id": "q1"}, _location(), {}, Action.RECORD_WRITTEN, Started.NO),
        ({}, _location(unfinished=True), {}, "refused", Started.MAYBE),
        ({}, _location(), {"plan": None}, "refused", Started.MAYBE),
        ({}, _location(), {}, "refused", Started.MAYBE),  # written manually, or by another cut-over
        ({}, _location(), {"adopt": True}, Action.ADOPT, Started.MAYBE),
        ({}, _location(last_planned_batch=0), {"adopt": True}, "refused", Started.YES),
        (_SEEDED, _location(query_id="q2"), {}, "refused", Started.NO),
        (_SEEDED, _location(query_id="q2"), {"adopt": True}, Action.ADOPT, Started.NO),
        # A different cut-over has started the query in the meantime.
        (
            _SEEDED,
            _location(query_id="q2", last_planned_batch=57),
            {"adopt": True},
            "refused",
            Started.YES,
        ),
        (
            _PRIMED,
            _location(**_BY_ANOTHER, priming_problem=catalog.PRIMED_BATCHES_DIFFER(batches=[57])),
            _STATES | {"adopt": True},
            "refused",
            Started.YES,
        ),
        (
            {},
            _location(**_BY_ANOTHER, priming_problem=catalog.PRIMED_BATCHES_DIFFER(batches=[57])),
            _STATES | {"adopt": True},
            "refused",
            Started.YES,
        ),
        # The location was primed manually after a failed command.
        (
            _MOVED,
            _location(**_LEFT),
            _STATES | {"adopt": True, "prime_status": 1},
            Action.ADOPT,
            Started.NO,
        ),
        (_SEEDED, _location(seeds={"0": {("orders", 0): 80}}), {}, "refused", Started.NO),
        (_SEEDED, _location(has_logs=True), {}, "done", Started.MAYBE),
        (_SEEDED, _location(last_planned_batch=0), {}, "done", Started.YES),
        (_SEEDED, _location(), {"start_status": "running"}, "done", Started.MAYBE),
        (_SEEDED, _location(), {"start_status": 0}, "done", Started.MAYBE),
        (_SEEDED, _location(), {"start_status": 3}, "done", Started.MAYBE),
        (_SEEDED, _location(), {"start_status": "unknown"}, "done", Started.MAYBE),
        (_SEEDED, _location(last_planned_batch=0), {"start_status": 3}, "done", Started.YES),
        # The spec has keyed states.
        (_PRIMED, _location(**_LEFT), _STATES, "done", Started.NO),
        (_PRIMED, _location(**_LEFT), {"states": True}, "done", Started.MAYBE),
        (_PRIMED, _location(**{**_LEFT, "last_planned_batch": 1}), _STATES, "done", Started.YES),
        (
            _MOVED,
            _location(**_LEFT),
            _STATES | {"prime_status": 0},
            Action.RECORD_WRITTEN,
            Started.NO,
        ),
        (
            _MOVED,
            _location(**_LEFT),
            _STATES | {"prime_status": 1},
            "refused",
            Started.NO,
        ),
        (
            _MOVED,
            _location(**_LEFT, priming_problem=catalog.PRIMED_SEED_DIFFERS()),
            _STATES | {"prime_status": 0},
            "refused",
            Started.YES,
        ),
        ({}, _location(**_LEFT), _STATES, "refused", Started.MAYBE),
        (
            _MOVED,
            LocationFacts("/q", is_empty=False),
            _STATES | {"prime_status": "running"},
            Action.WRITE,
            Started.NO,
        ),
    ],
)
def test_decision_of_apply_step_depends_on_content_of_location(
    record: dict[str, Any], target: Any, more: dict[str, Any], apply: Any, begun: Started
) -> None:
    facts = _facts(_record(**record), target=target, **more)
    assert _shown(_decide("apply", facts)) == apply
    assert started_work(facts)[0] is begun


@pytest.mark.parametrize("target", [_location(), LocationFacts("/q"), _group()])
@pytest.mark.parametrize(
    "again", [FlinkJob("b", "orders", "RUNNING", 9), FlinkJob("b", "orders", "CANCELED", 9, 10)]
)
def test_apply_step_refuses_savepoint_of_restarted_or_different_job(
    target: Any, again: FlinkJob
) -> None:
    """Regression: If the spec had a different job's savepoint, the message advised a rollback."""
    facts = _facts(_record(), others=True, target=target, started_again=again, adopt=True)
    decision = _decide("apply", facts)
    assert isinstance(decision, Refused)
    assert decision.codes == ["restarted-or-other-job"]


@pytest.mark.parametrize(
    "target", [_location(), _group(*_BOTH, by=_ID), LocationFacts("/q"), _group()]
)
@pytest.mark.parametrize(
    "again", [FlinkJob("b", "orders", "RUNNING", 9), FlinkJob("b", "orders", "CANCELED", 9, 10)]
)
def test_cut_over_stops_before_write_or_start_if_job_was_restarted(
    target: Any, again: FlinkJob
) -> None:
    facts = _facts(_record(**_SEEDED | {"written": None}), target=target, start=True)
    for step in ("apply", "verify", "start", "verify-again"):
        before = _decide(step, facts)
        after = _decide(step, replace(facts, started_again=again))
        if isinstance(before, Action) and before is not Action.RECORD_WRITTEN:
            assert isinstance(after, CutOverStopped)
        else:
            assert repr(after) == repr(before)
        if step.startswith("verify"):
            assert repr(_decide(step, replace(facts, started_again=_AWAY))) == repr(before)


def _allowing(facts: Facts) -> Facts:
    move = facts.spec.move.model_copy(update={"allow_ran_on": True})
    return replace(facts, spec=facts.spec.model_copy(update={"move": move}))


@pytest.mark.parametrize(
    ("target", "step"),
    [
        (LocationFacts("/q"), "apply"),
        (_group(), "apply"),
        (_location(), "start"),
        (_group(*_BOTH, by=_ID), "start"),
    ],
)
def test_writes_and_starts_need_evidence_that_job_was_not_restarted(target: Any, step: str) -> None:
    """Regression: The query was started, although the job may have been restarted.

    Only the judgment "not restarted" and the override in the spec allow a write or a start.
    """
    recovered = Unavailable(Refused("job x began later, and recovered since"))
    again = FlinkJob("b", "orders", "RUNNING", 9)
    is_group = isinstance(target, GroupFacts)
    facts = _facts(_record(**_SEEDED | {"written": None}), target=target, start=True)
    allowed = _decide(step, facts)
    assert allowed in (Action.WRITE, Action.START)
    for found, saw_end, refused, with_override in (
        (None, False, None, allowed),
        (again, False, CutOverStopped, CutOverStopped if is_group else allowed),
        (replace(again, state="CANCELED", ended_ms=10), False, CutOverStopped, allowed),
        (recovered, False, Refused, allowed),
        # A failover after the stop also hides a restart from the run that saw the end.
        (recovered, True, Refused, allowed),
        (_AWAY, False, FlinkRestError, allowed),
        # The JobManager of a single job has exited with the job.
        (_AWAY, True, None, allowed),
        (Unavailable(OSError("gone")), False, OSError, allowed),
    ):
        judged = replace(facts, started_again=found, saw_end=saw_end)
        decision, override = _decide(step, judged), _decide(step, _allowing(judged))
        assert decision is allowed if refused is None else isinstance(decision, refused), found
        assert (override is allowed) == (with_override is allowed), found


@pytest.mark.parametrize("target", [_location(), _group(*_BOTH, by=_ID)])
def test_user_is_not_asked_to_start_query_if_job_may_have_been_restarted(target: Any) -> None:
    """Regression: Without a ``start`` command, the run waited for the user to start the query."""
    facts = _facts(_record(**_SEEDED), target=target)
    assert isinstance(_decide("start", facts), Done)
    again = FlinkJob("b", "orders", "RUNNING", 9)
    for found in (again, Unavailable(Refused("job x recovered since")), _AWAY):
        judged = replace(facts, started_again=found)
        assert isinstance(_decide("start", judged), Exception), found
    assert isinstance(_decide("start", replace(facts, started_again=_AWAY, saw_end=True)), Done)
    judged = _allowing(replace(facts, started_again=_AWAY))
    assert isinstance(_decide("start", judged), Done)


@pytest.mark.parametrize(("days", "is_refused"), [(0.5, False), (1.5, True)])
def test_old_savepoint_requires_override_if_flink_is_not_queried(
    days: float, is_refused: bool
) -> None:
    """Regression: A cut-over started a query from an old savepoint that ``to-spark`` refused."""
    written_at = round(1000 * (time.time() - days * 86_400))
    origin = replace(_PLAN.origin, stopped=True, written_at=written_at)
    facts = _facts(
        _record(**_SEEDED | {"written": None}),
        target=LocationFacts("/q"),
        others=True,
        plan=replace(_PLAN, origin=origin),
    )
    decision = _decide("apply", facts)
    if not is_refused:
        assert decision is Action.WRITE
        return
    assert isinstance(decision, Refused)
    assert "written 1 day ago" in str(decision)
    assert _decide("apply", _allowing(facts)) is Action.WRITE


@pytest.mark.parametrize(
    ("target", "new"),
    [
        (_location(last_planned_batch=0), "a new record, checkpoint-dir, and sink"),
        (_group(*_BOTH, members=1, by=_ID), "a new record"),
    ],
)
def test_message_about_restarted_job_covers_deliberate_return_to_flink(
    target: Any, new: str
) -> None:
    """Regression: After a documented return to Flink, two messages contradicted each other."""
    again = FlinkJob("b", "orders", "RUNNING", 9)
    record = _record(**_SEEDED, state="done", flink=_FINISHED)
    facts = _facts(record, target=target, started_again=again)
    message = str(_decide("verify-again", facts))
    assert "if you returned the job to Flink on purpose, this is expected" in message
    assert message.endswith(f"to move the job again, use a spec with {new}")
    advice = restart_advice(facts).text
    assert advice.endswith("because job orders (b) has resumed from it"), advice


def test_rollback_is_refused_if_both_job_and_query_run() -> None:
    again = FlinkJob("b", "orders", "RUNNING", 9)
    facts = _facts(_record(**_SEEDED), target=_location(last_planned_batch=0), started_again=again)
    assert _reason(_decide("verify-again", facts)).code == "restarted-job-and-readers"
    # Regression: The user was told to start the Flink job, although it was running.
    back = _reason(_no_way_back(facts))
    assert (back.code, back.facts["job_id"]) == ("readers-and-job-started", "b")
    assert "do not start the Flink job again" in str(back)


@pytest.mark.parametrize(
    "target", [_location(last_planned_batch=0), _group(*_BOTH, members=1, by=_ID)]
)
def test_rerun_of_finished_cut_over_detects_restarted_job(target: Any) -> None:
    """Regression: A rerun of a finished cut-over reported "3 ok" while the job ran."""
    facts = _facts(_record(**_SEEDED, state="done"), target=target)
    assert _decide("verify-again", facts) is Action.VERIFY
    again = FlinkJob("b", "orders", "RUNNING", 9)
    stopped = _decide("verify-again", replace(facts, started_again=again))
    assert isinstance(stopped, CutOverStopped)
    assert _reason(stopped).code == "restarted-job-and-readers"
    assert _reason(stopped).facts["job_id"] == "b"


def test_start_is_verified_only_if_restart_of_job_is_ruled_out() -> None:
    """Regression: ``verify-again`` succeeded, although the job may have been restarted."""
    hidden = Unavailable(Refused(catalog.RESTART_HIDDEN(problem="job x has recovered")))
    away, denied = _AWAY, Unavailable(Refused("that JobManager does not list job a"))
    for target, way_out in (
        (_location(), "roll back with back=True"),
        (
            _location(last_planned_batch=0),
            "stop the readers, and use a spec with a new record, checkpoint-dir, and sink",
        ),
        (_group(*_BOTH, members=1, by=_ID), "stop the readers, and use a spec with a new record "),
    ):
        facts = _facts(_record(**_SEEDED), target=target)
        check_restart_is_ruled_out(facts)
        for found, saw_end, error in (
            (hidden, False, Refused),
            (hidden, True, Refused),
            (denied, True, Refused),
            (away, False, FlinkRestError),
            (Unavailable(OSError("gone")), True, OSError),
        ):
            judged = replace(facts, started_again=found, saw_end=saw_end)
            with pytest.raises(error) as raised:
                check_restart_is_ruled_out(judged)
            assert (way_out in str(raised.value)) == (found is hidden), found
            check_restart_is_ruled_out(_allowing(judged))
            assert restart_not_checked(judged) == "Flink does not rule out a restart"
        check_restart_is_ruled_out(replace(facts, started_again=away, saw_end=True))


# -- start and first batch -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "more", "start", "first"),
    [
        (_location(), {}, Action.START, Action.AWAIT_FIRST_BATCH),
        (_location(), {"start": False}, "done", Action.AWAIT_FIRST_BATCH),
        (_location(), {"start_status": "running"}, "done", Action.AWAIT_FIRST_BATCH),
        (_location(), {"start_status": 0}, "done", Action.AWAIT_FIRST_BATCH),
        (_location(), {"start_status": 3}, Action.START, Action.AWAIT_FIRST_BATCH),
        (_location(), {"start_status": "unknown"}, "stopped", Action.AWAIT_FIRST_BATCH),
        # Regression: A second query was started, although another client's query was idle.
        (_location(has_logs=True), {}, "stopped", Action.AWAIT_FIRST_BATCH),
        (_location(has_logs=True), {"start": False}, "done", Action.AWAIT_FIRST_BATCH),
        (_location(has_logs=True), {"start_status": 3}, Action.START, Action.AWAIT_FIRST_BATCH),
        (
            _location(last_planned_batch=0),
            {"start_status": 3},
            Action.START,
            Action.AWAIT_FIRST_BATCH,
        ),
        (
            _location(last_planned_batch=0),
            {"start_status": "unknown"},
            "done",
            Action.AWAIT_FIRST_BATCH,
        ),
        (_location(last_planned_batch=0), {}, "done", Action.AWAIT_FIRST_BATCH),  # another client's
        (
            _location(last_planned_batch=0, last_committed_batch=0),
            {"start_status": 3},
            "done",
            "done",
        ),
        (_location(query_id="q2"), {}, "refused", Action.AWAIT_FIRST_BATCH),
        (_group(*_BOTH, by=_ID), {}, Action.START, Action.AWAIT_FIRST_BATCH),
        (_group(*_BOTH, members=1, by=_ID), {}, "done", "done"),
        (_group(80, by=_OTHER), {}, "refused", Action.AWAIT_FIRST_BATCH),
        (_group(), {}, "refused", Action.AWAIT_FIRST_BATCH),
        (Unavailable(OSError("away")), {}, "no answer", "no answer"),
    ],
)
def test_decisions_of_start_and_first_batch_steps_depend_on_state_of_target(
    target: Any, more: dict[str, Any], start: Any, first: Any
) -> None:
    facts = _facts(_record(**_SEEDED), target=target, **{"start": True, **more})
    assert _shown(_decide("start", facts)) == start
    assert _shown(_decide("first-batch", facts)) == first


# -- rollback, and restart of the Flink job --------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "more", "advice", "back"),
    [
        ({}, {"target": LocationFacts("/q")}, "start the Flink job from its savepoint", None),
        (
            {},  # the record was lost
            {"target": _location(last_planned_batch=3, last_committed_batch=3)},
            "do not start the Flink job from its savepoint, because the query in /q has planned "
            "batch 3",
            "query-started",
        ),
        (
            {},
            {"target": _group(80, by=_OTHER)},
            "do not start the Flink job from its savepoint yet, because group:g contains offsets "
            "that another move has committed",
            "readers-possible",
        ),
        (_SEEDED, {}, "start the Flink job from its savepoint", None),
        (
            _SEEDED,
            {"start_status": "running", "start_process": 71},
            "do not start the Flink job from its savepoint yet, because the start command is "
            "still running (process 71; to stop it, run kill -- -71); stop all readers of",
            "command-running",
        ),
        (
            _SEEDED,
            {"start_status": 3},
            "do not start the Flink job from its savepoint yet, because the start command failed "
            "with exit code 3, but may have submitted the query before it failed",
            "readers-possible",
        ),
        (
            _SEEDED,
            {"target": _location(last_planned_batch=0)},
            "do not start the Flink job from its savepoint, because the query in /q has planned "
            "batch 0",
            "query-started",
        ),
        (
            _SEEDED,
            {"target": _group(*_BOTH, by=_ID)},
            "do not start the Flink job from its savepoint yet, because group:g contained the "
            "planned offsets, but a consumer that assigns its own partitions is not visible",
            "readers-possible",
        ),
    ],
)
def test_rollback_is_offered_only_if_nothing_has_started(
    record: dict[str, Any], more: dict[str, Any], advice: str, back: str | None
) -> None:
    facts = _facts(_record(**record, flink=_FINISHED), **{"target": _location(), **more})
    assert restart_advice(facts).text.startswith(advice)
    decision = _no_way_back(facts)
    if back is None:
        assert decision is None
    else:
        assert _reason(decision).code == back
    # --nothing-started is accepted unless there is evidence of a start.
    sure = _no_way_back(replace(facts, nothing_started=True))
    assert (sure is None) == (back in (None, "readers-possible"))


@pytest.mark.parametrize(
    ("target", "code"),
    [
        (_location(last_planned_batch=3, last_committed_batch=3), "query-started"),
        (_group(*_BOTH, members=1, by=_ID), "consumers-started"),
        (Unavailable(OSError("away")), "command-running"),
    ],
)
def test_rollback_is_refused_immediately_if_running_command_has_started_readers(
    target: Any, code: str
) -> None:
    """Regression: The rollback was refused only after the user had stopped the query as asked."""
    record = _record(**_SEEDED, flink=_FINISHED)
    facts = _facts(record, target=target, start_status="running", start_process=71)
    reason = _reason(_no_way_back(facts))
    assert reason.code == code
    assert "kill -- -71" in str(reason)


def test_refusal_of_rollback_contains_target_savepoint_and_brokers() -> None:
    """The message needs these values for the commands that it suggests."""
    target = _location(last_planned_batch=3, last_committed_batch=3)
    reason = _reason(_no_way_back(_facts(_record(flink=_FINISHED), target=target)))
    assert reason.facts == {
        "target": "spark:/q",
        "evidence": "the query in /q has planned batch 3",
        "savepoint": "/s/savepoint-1",
        "brokers": "b",
    }


@pytest.mark.parametrize(
    ("stop", "drain", "told"),
    [
        (StopKind.TERMINATE, True, True),
        (StopKind.TERMINATE, False, True),  # by another client
        (StopKind.SUSPEND, True, False),  # the spec was changed after the stop
        (StopKind.UNKNOWN, True, True),
        (StopKind.UNKNOWN, False, False),
        (None, True, True),
    ],
)
def test_restart_advice_warns_of_duplicate_windows_after_drain(
    stop: StopKind | None, drain: bool, told: bool
) -> None:
    """Regression: After a rollback, a 10-record window was emitted again with only 5 records."""
    saved = replace(_SAVED, stop=stop) if stop is not None else _AWAY
    facts = _facts(_record(**_SEEDED, flink=_FINISHED), target=_location(), savepoint=saved)
    flink = facts.spec.flink.model_copy(update={"drain": drain})
    advice = restart_advice(
        replace(facts, spec=facts.spec.model_copy(update={"flink": flink}))
    ).text
    assert advice.startswith("start the Flink job from its savepoint")
    assert ("the drain emitted unfinished windows" in advice) == told
    assert ("this machine cannot read the savepoint: no answer" in advice) == (stop is None)


def test_restart_advice_excludes_savepoint_if_job_was_restarted() -> None:
    facts = _facts(_record(flink={"savepoint": "/s"}), target=LocationFacts("/q"))
    again = replace(facts, started_again=FlinkJob("b", "orders", "CANCELED", 9, 10))
    assert restart_advice(again).text.startswith(
        "do not start the Flink job from its savepoint, because job"
    )
    away = restart_advice(replace(facts, started_again=_AWAY)).text
    assert away.startswith(
        "start the Flink job from its savepoint, unless the job was already restarted"
    )


@pytest.mark.parametrize("target", [_location(), _group(*_BOTH, by=_ID)])
def test_missing_plan_blocks_plan_and_apply_steps_but_not_rollback(target: Any) -> None:
    """The target was written from the missing plan, so the two can no longer be compared."""
    flink = {"savepoint": "/s/savepoint-1"}
    facts = _facts(_record(**_SEEDED, flink=flink), target=target, plan=None)
    for step in ("plan", "apply"):
        assert _reason(_decide(step, facts)).code == "plan-file-missing"
    assert _no_way_back(replace(facts, nothing_started=True)) is None


def test_rollback_keeps_seed_of_different_cut_over() -> None:
    flink = {"savepoint": "/s/savepoint-1"}
    facts = _facts(_record(**_SEEDED, flink=flink), target=_location(query_id="q2"))
    reason = _reason(_no_way_back(facts))
    assert (reason.code, reason.facts["query_id"]) == ("location-of-other-query", "q2")


def test_restart_advice_is_empty_before_stop() -> None:
    facts = _facts(_record(), target=LocationFacts("/q"))
    assert restart_advice(facts).text == ""
    assert _reason(_no_way_back(facts)).code == "nothing-to-roll-back"


def test_rollback_fails_if_target_cannot_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: The last read of the group failed, but the record reported a rollback.

    The group still contained the commits.
    """
    flink = {"savepoint": "/s/savepoint-1", "finished": True}
    facts = _facts(_record(flink=flink), target=_group())
    assert _no_way_back(facts) is None
    away = replace(facts, target=Unavailable(ServiceError("away")))
    monkeypatch.setattr(roll_back, "observe", lambda *_: away)
    context = cast(CutOverContext, SimpleNamespace(savepoint="/s/savepoint-1"))
    with pytest.raises(ServiceError, match="away"):
        roll_back.plan_roll_back(context)
