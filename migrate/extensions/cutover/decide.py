"""Decide each step from the facts, without I/O, as an action or a reason to do nothing.

``check``, ``stop``, and ``clean`` depend on Flink's job and its savepoint. The later steps depend
on the target, and on whether the job was restarted.

The functions raise:

* ``Refused`` if the user must change something first
* ``CutOverStopped`` if a step failed or might have failed, or the job was restarted
* the error of a needed fact that could not be read
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from decoder import StopKind
from migrate.extensions.cutover.facts import Facts, JobToStop, Unavailable, require
from migrate.extensions.cutover.target_state import (
    Content,
    Started,
    other_cluster_reason,
    start_evidence,
    started_work,
    target_content,
)
from migrate.inputs.flink.job_state import (
    is_same_savepoint,
    judge_jobs,
    refuse_old_savepoint,
)
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.model.errors import CutOverStopped, Refused, add_notes
from migrate.model.finding import Code
from migrate.model.warning import warn
from migrate.moves.plan import compared_group


class Action(Enum):
    """An action; ``steps.ACTIONS`` has its function."""

    CHECK = auto()
    STOP = auto()
    AWAIT_STOP = auto()
    RECORD_SAVEPOINT = auto()
    RECORD_CLEAN_STOP = auto()
    PLAN = auto()
    WRITE = auto()
    ADOPT = auto()
    RECORD_WRITTEN = auto()
    VERIFY = auto()
    START = auto()
    AWAIT_FIRST_BATCH = auto()


# The actions that change something outside the record, or wait for such a change.
CHANGES_OR_WAITS = {
    Action.STOP,
    Action.AWAIT_STOP,
    Action.WRITE,
    Action.ADOPT,
    Action.START,
    Action.AWAIT_FIRST_BATCH,
}


@dataclass(frozen=True, slots=True)
class Done:
    """The reason why a step has nothing to do."""

    reason: str


Decision = Action | Done


# -- check, stop, clean ----------------------------------------------------------------------------


def decide_check(facts: Facts) -> Decision:
    if facts.spec.stopped_by_others:
        is_recorded = is_same_savepoint(facts.record.flink.savepoint, facts.spec.flink.savepoint)
        planned = (facts.plan is not None and is_recorded) or facts.record.moved_with is not None
        return Done("a plan was made already") if planned else Action.CHECK
    if facts.record.flink.savepoint is not None:
        return Done("the job has stopped")
    job = require(facts.job)
    _refuse_ended_without_savepoint(facts, job)
    if job.has_ended:
        return Done(f"Flink has the job as {job.flink_job.state}")
    if job.attempt is not None and facts.record.flink.job_id is not None:
        return Done("Flink stops the job already")
    return Action.CHECK


def _refuse_ended_without_savepoint(facts: Facts, job: JobToStop) -> None:
    """Refuse a job that ended without a savepoint, unless a run has already requested its stop."""
    if facts.record.flink.job_id is not None or not job.flink_job.ended:
        return
    if job.ended_with is None and job.attempt is None:
        newest = f"; its newest is {job.elsewhere}" if job.elsewhere is not None else ""
        raise Refused(
            f"flink.job {job.flink_job.name}: the newest such job, {job.flink_job.job_id}, ended "
            f"as {job.flink_job.state} without a savepoint in {job.folder}; start the job, or name "
            f"the savepoint to move from (flink.savepoint{newest})"
        )


def decide_stop(facts: Facts) -> Decision:
    if (pointer := facts.savepoint_pointer) is not None:
        return Done(f"stopped with {pointer}")
    job = require(facts.job)
    _refuse_ended_without_savepoint(facts, job)
    if job.ended_with is not None:
        return Action.RECORD_SAVEPOINT
    if job.attempt is not None:
        return Action.AWAIT_STOP
    if not job.has_ended:
        return Action.STOP
    job_id, savepoints = job.flink_job.job_id, [savepoint.pointer for savepoint in job.savepoints]
    if not job.is_known and savepoints:
        raise CutOverStopped(
            f"Flink no longer knows job {job_id}, so it is not known whether the job committed "
            f"what it held at its savepoint {savepoints[-1]}",
            "start the job from that savepoint once (flink run -s), or name the savepoint yourself "
            "(flink.savepoint); then run this again under a new record",
        )
    of_these = f" ({', '.join(savepoints)})" if savepoints else ""
    raise CutOverStopped(
        f"Flink has job {job_id} ({job.flink_job.name}) as {job.flink_job.state}, and reports no "
        f"savepoint in {job.folder} that it ended with",
        f"unless it runs, start the job from its newest checkpoint or savepoint{of_these}, and run "
        "this again under a new record",
    )


def decide_clean(facts: Facts) -> Decision:
    flink = facts.record.flink
    is_checked = flink.savepoint_sha256 is not None
    is_needed = facts.record.written is None  # for the plan
    if is_checked and flink.finished:
        if is_needed and require(facts.savepoint).sha256 != flink.savepoint_sha256:
            raise Refused(f"{flink.savepoint} is not what was checked; put back what was there")
        return Done("the savepoint was whole, and the job has FINISHED")
    if is_checked and not is_needed:
        return Done("the savepoint was whole before the target was written")
    savepoint = require(facts.savepoint)
    if savepoint.stop is StopKind.NONE:
        raise Refused(
            f"{savepoint.pointer} is not of a stop: the job ran on after it; stop the job with a "
            "savepoint"
        )
    if facts.spec.stopped_by_others:
        return Action.RECORD_CLEAN_STOP
    job = require(facts.job)
    ended_with, state = job.ended_with, job.flink_job.state
    if ended_with is not None and not is_same_savepoint(ended_with.pointer, savepoint.pointer):
        raise CutOverStopped(
            f"the job was started again: it ended with {ended_with.pointer}, and this record has "
            f"{savepoint.pointer}",
            "name another folder for the record, and begin anew",
        )
    if not flink.finished or state not in ("FINISHED", "UNKNOWN"):
        raise CutOverStopped(
            f"the savepoint is whole, and Flink has not said that the job FINISHED ({state})",
            "wait for it, or look into Flink's log",
        )
    return Action.RECORD_CLEAN_STOP


# -- plan, apply, verify ---------------------------------------------------------------------------

_WRITTEN = Done("the target was written already")
# The decisions of the steps ``plan`` and ``apply`` for each content except WRONG (refused).
_DECISIONS_BY_CONTENT: Mapping[Content, tuple[Decision, Decision]] = {
    Content.NOTHING: (Action.PLAN, Action.WRITE),
    # WRITE waits for the command ``prime``.
    Content.PRIMING: (Done("the command that primes the location runs with it"), Action.WRITE),
    Content.PLAN_NOT_RECORDED: (_WRITTEN, Action.RECORD_WRITTEN),
    Content.PLAN: (_WRITTEN, Done("{target} holds the plan")),
    Content.MOVED_ON: (_WRITTEN, Done("{target} held the plan, and others have committed since")),
    Content.NOT_OURS: (Action.PLAN, Action.ADOPT),  # refused without ``adopt``
}


def decide_plan(facts: Facts) -> Decision:
    return _DECISIONS_BY_CONTENT[_usable_content(facts)][0]


def decide_apply(facts: Facts) -> Decision:
    content = _usable_content(facts)
    if content is Content.MOVED_ON:
        _check_verified_before_moved_on(facts)
    decision = _DECISIONS_BY_CONTENT[content][1]
    if isinstance(decision, Done):
        return Done(decision.reason.format(target=facts.target_name))
    if decision is not Action.RECORD_WRITTEN:
        check_stopped(facts)
    return decision


def _usable_content(facts: Facts) -> Content:
    """Return the content of the target, or refuse a target that this run cannot continue with."""
    if problem := other_cluster_reason(facts):
        raise Refused(problem)
    content, reason = target_content(facts)
    if content is Content.WRONG or (content is Content.NOT_OURS and not facts.adopt):
        raise Refused(reason)
    started, reason = started_work(facts)
    empty = content in (Content.NOTHING, Content.PRIMING)
    if empty and facts.record.written is not None and started is not Started.NO:
        raise Refused(
            f"{facts.target_name} no longer holds what this record has written, and something may "
            f"have begun from it: {reason}. Look at the output; if nothing has started, go back "
            "(--back --nothing-started) and run this again"
        )
    return content


def _check_verified_before_moved_on(facts: Facts) -> None:
    """Refuse a group with commits by other clients before its verification or before ``start``."""
    record = facts.record
    verified = any(report.when == "before" and report.verified for report in record.verifications)
    if verified and (record.start is not None or facts.spec.start is None):
        return
    why = "the command start was not run by then" if verified else "nobody had verified it by then"
    raise Refused(
        f"{facts.target_name}: others have committed for it since the plan was written, and {why}, "
        "so it is not known where they began. Stop them, and compare what they have processed with "
        "the topic"
    )


def check_stopped(facts: Facts) -> None:
    """Raise an error before a write or a start unless Flink's job was stopped with the savepoint.

    The consequences are the same as for ``to-spark`` and ``commit-group`` (``job_refusals``). If
    the JobManager does not answer, the run that saw the end of the job continues, because the
    JobManager of a single job exits with the job.
    """
    _check_not_started_again(facts)
    unknown, plan = facts.started_again, facts.plan
    if facts.allows_restart:
        return
    if isinstance(unknown, Unavailable):
        if not (facts.saw_end and isinstance(unknown.error, FlinkRestError)):
            if not isinstance(unknown.error, Refused):
                add_notes(
                    unknown.error,
                    "if the job was not restarted, set move.allow-ran-on: true in the spec",
                )
            raise unknown.error
    elif facts.spec.flink.rest is None and plan is not None and not facts.spec.target.is_group:
        refuse_old_savepoint(plan.origin, judge_jobs(plan.origin, None), compared_group(plan))


def _check_not_started_again(facts: Facts) -> None:
    """Raise an error if Flink's job was restarted, because its output is beyond the savepoint.

    With the override, a job that does not commit for the target's group is allowed.
    """
    job = facts.started_again
    if not isinstance(job, FlinkJob):
        return  # if a restart cannot be ruled out, the run has logged a warning
    restart = f"has run since ({job.state})" if job.ended else "runs again"
    text = f"job {job.name} {restart}, as {job.job_id}: the savepoint is not its last output"
    if facts.allows_restart and (job.ended or not facts.spec.target.is_group):
        warn(Code.RAN_ON, f"{text}; its output since the savepoint will be emitted again")
        return
    if facts.record.moved_with is None and facts.spec.stopped_by_others:
        raise Refused(
            f"{text}, or is another job's. Stop the job, and name the savepoint of its stop "
            "(flink.savepoint)"
        )
    way_out = "to move that job, go back first (--back), or name another folder for the record"
    if started_work(facts)[0] is Started.YES:
        way_out = (
            f"{facts.target_name} has begun, too: stop one of the two, and compare what they wrote"
        )
    raise CutOverStopped(text, way_out)


def decide_verify(facts: Facts) -> Decision:
    if started_work(facts)[0] is Started.YES:
        return Done("the target has begun: the step verify-again judges it")
    _check_not_started_again(facts)
    return Action.VERIFY


def decide_verify_again(facts: Facts) -> Decision:
    _check_not_started_again(facts)
    return Action.VERIFY


# -- start, first batch ----------------------------------------------------------------------------

START_EXIT_CODE_MISSING = (
    "the command start was run, and its exit code is missing, as after a reboot; look whether the "
    "query runs, start it yourself if it does not, and run this again once it has begun"
)


def decide_start(facts: Facts) -> Decision:
    content, problem = target_content(facts)
    if content not in (Content.PLAN, Content.PLAN_NOT_RECORDED, Content.MOVED_ON):
        raise Refused(problem or f"{facts.target_name} no longer holds the plan")
    if text := start_evidence(facts):
        return Done(text)
    started, reason = started_work(facts)
    begun = started is Started.YES
    if facts.spec.start is None:
        if begun:
            return Done(reason)
        check_stopped(facts)
        readers = "the consumers run" if facts.spec.target.is_group else "the query runs"
        return Done(f"the spec names no command: see that {readers}")
    match facts.start_status:
        case "running":
            return Done("an earlier run has started the command, and it runs")
        case 0:
            return Done("an earlier run has started the command, and it has ended well")
        case None | "unknown" if begun:
            return Done(reason)  # another client has started the query: start no second query
        case "unknown":
            raise CutOverStopped(START_EXIT_CODE_MISSING)
        case None if facts.record.start is not None:  # after a power cut, its file may be missing
            raise CutOverStopped(START_EXIT_CODE_MISSING)
    # The command was never run, or failed. No batch is committed, so a query that starts now
    # starts at the planned offsets, even if an earlier query had already read records.
    check_stopped(facts)
    return Action.START


def decide_first_batch(facts: Facts) -> Decision:
    text = start_evidence(facts)
    return Done(text) if text else Action.AWAIT_FIRST_BATCH
