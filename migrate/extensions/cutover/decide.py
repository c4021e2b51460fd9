"""Decide from the facts, without I/O, whether a step runs an action or has nothing to do.

``check``, ``stop``, and ``clean`` depend on the Flink job and its savepoint. The later steps depend
on the target, and on whether the job was restarted.

The functions raise:

* ``Refused`` if the user must change something first
* ``CutOverStopped`` if a step failed or might have failed, or the job was restarted
* the error from reading a required fact
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from decoder import StopKind
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.command import command_checksum
from migrate.extensions.cutover.facts import (
    Facts,
    JobToStop,
    LocationFacts,
    Unavailable,
    require,
)
from migrate.extensions.cutover.other_cut_overs import refuse_savepoint_of_other
from migrate.extensions.cutover.spec import Spec
from migrate.extensions.cutover.target_state import (
    Content,
    Started,
    how_to_end,
    is_idle_query,
    other_cluster_reason,
    start_evidence,
    started_work,
    target_content,
)
from migrate.inputs.before_move import refuse_old_savepoint
from migrate.inputs.flink.job_state import judge_jobs
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.inputs.flink.restarted_job import is_same_savepoint
from migrate.model.errors import CutOverStopped, Refused, add_notes
from migrate.model.message import Message
from migrate.model.warning import warn
from migrate.moves.plan import compared_group


class Action(Enum):
    """An action; ``steps.ACTIONS`` contains its function."""

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
    """The reason that a step has nothing to do."""

    reason: str


Decision = Action | Done


# -- check, stop, clean ----------------------------------------------------------------------------


def decide_check(facts: Facts) -> Decision:
    if facts.spec.stopped_by_others:
        is_recorded = is_same_savepoint(facts.record.flink.savepoint, facts.spec.flink.savepoint)
        planned = (facts.plan is not None and is_recorded) or facts.record.moved_with is not None
        if not planned:
            refuse_savepoint_of_other(facts)
        return Done("a plan was already made") if planned else Action.CHECK
    if facts.record.flink.savepoint is not None:
        return Done("the job has stopped")
    job = require(facts.job)
    if facts.record.flink.job_id is None:
        refuse_savepoint_of_other(facts)
    _refuse_ended_without_savepoint(facts, job)
    if job.flink_job.has_ended:
        return Done(f"the job is {job.flink_job.state} in Flink")
    if job.attempt is not None and facts.record.flink.job_id is not None:
        return Done("Flink is already stopping the job")
    return Action.CHECK


def _refuse_ended_without_savepoint(facts: Facts, job: JobToStop) -> None:
    """Refuse a job that ended without a savepoint in the spec's folder for savepoints.

    A job is not refused if a run of this cut-over has asked Flink to stop it, or if its stop is
    still in progress.
    """
    if facts.record.flink.job_id is not None or not job.flink_job.ended:
        return
    # All cut-overs of a job use the same trigger IDs. A stop that has ended may be another
    # cut-over's, which has moved the job.
    is_stopping = job.attempt is not None and not job.attempt.ended
    if job.ended_with is None and not is_stopping:
        ended = job.flink_job
        if job.elsewhere is not None:
            raise Refused(savepoint_in_other_folder(job, job.elsewhere))
        raise Refused(
            catalog.SAVEPOINT_MISSING_AFTER_END(
                job=ended.name, job_id=ended.job_id, state=ended.state, folder=job.folder
            )
        )


def savepoint_in_other_folder(job: JobToStop, savepoint: str) -> Message:
    """Return the reason to refuse a job that another client stopped with this savepoint."""
    return catalog.SAVEPOINT_IN_OTHER_FOLDER(
        job=job.flink_job.name,
        job_id=job.flink_job.job_id,
        state=job.flink_job.state,
        folder=job.folder,
        savepoint=savepoint,
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
    if not job.flink_job.has_ended:
        return Action.STOP
    ended, savepoints = job.flink_job, [savepoint.pointer for savepoint in job.savepoints]
    if not ended.is_listed and savepoints:
        raise CutOverStopped(catalog.JOB_NOT_LISTED(job_id=ended.job_id, savepoint=savepoints[-1]))
    if savepoints:
        raise CutOverStopped(
            catalog.FINAL_SAVEPOINT_UNKNOWN(
                job_id=ended.job_id,
                job=ended.name,
                state=ended.state,
                folder=job.folder,
                savepoints=savepoints,
            )
        )
    raise CutOverStopped(
        catalog.NO_FINAL_SAVEPOINT(
            job_id=ended.job_id, job=ended.name, state=ended.state, folder=job.folder
        )
    )


def decide_clean(facts: Facts) -> Decision:
    flink = facts.record.flink
    is_checked = flink.savepoint_sha256 is not None
    is_needed = facts.record.written is None  # needed for the plan
    if is_checked and flink.finished:
        if is_needed and require(facts.savepoint).sha256 != flink.savepoint_sha256:
            raise Refused(catalog.SAVEPOINT_CHANGED(savepoint=flink.savepoint))
        return Done("the savepoint was complete, and the job has FINISHED")
    if is_checked and not is_needed:
        return Done("the savepoint was complete before the target was written")
    savepoint = require(facts.savepoint)
    if savepoint.stop is StopKind.NONE:
        raise Refused(catalog.SAVEPOINT_WITHOUT_STOP(savepoint=savepoint.pointer))
    if facts.spec.stopped_by_others:
        return Action.RECORD_CLEAN_STOP
    job = require(facts.job)
    ended_with, flink_job = job.ended_with, job.flink_job
    if ended_with is not None and not is_same_savepoint(ended_with.pointer, savepoint.pointer):
        raise CutOverStopped(
            catalog.JOB_ENDED_WITH_OTHER_SAVEPOINT(
                savepoint=ended_with.pointer, recorded=savepoint.pointer
            )
        )
    if not flink.finished or (flink_job.is_listed and not flink_job.is_finished):
        raise CutOverStopped(catalog.JOB_NOT_FINISHED(state=flink_job.state))
    return Action.RECORD_CLEAN_STOP


# -- plan, apply, verify ---------------------------------------------------------------------------

_WRITTEN = Done("the target was already written")
# The decisions of the ``plan`` and ``apply`` steps for each kind of content. WRONG is not listed,
# because a target with this content is refused.
_DECISIONS_BY_CONTENT: Mapping[Content, tuple[Decision, Decision]] = {
    Content.NOTHING: (Action.PLAN, Action.WRITE),
    # WRITE waits for the ``prime`` command.
    Content.PRIMING: (Done("the prime command is running with the plan"), Action.WRITE),
    Content.PLAN_NOT_RECORDED: (_WRITTEN, Action.RECORD_WRITTEN),
    Content.PLAN: (_WRITTEN, Done("{target} contains the planned offsets")),
    Content.MOVED_ON: (
        _WRITTEN,
        Done("{target} contained the planned offsets, but now has newer commits by other clients"),
    ),
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
        refuse_savepoint_of_other(facts)
        check_stopped(facts)
    return decision


def _usable_content(facts: Facts) -> Content:
    """Return the target's content; refuse a target with which this run cannot continue."""
    if problem := other_cluster_reason(facts):
        raise Refused(problem)
    content, problem = target_content(facts)
    if problem is not None and (content is Content.WRONG or not facts.adopt):
        raise Refused(problem)
    started, evidence = started_work(facts)
    empty = content in (Content.NOTHING, Content.PRIMING)
    if empty and facts.record.written is not None and started is not Started.NO:
        raise Refused(catalog.WRITTEN_OFFSETS_GONE(target=facts.target_name, evidence=evidence))
    return content


def _check_verified_before_moved_on(facts: Facts) -> None:
    """Refuse a group if other clients committed before the ``verify`` or ``start`` step."""
    record = facts.record
    verified = any(report.when == "before" and report.verified for report in record.verifications)
    if verified and (record.start is not None or facts.spec.start is None):
        return
    reason = catalog.COMMITTED_BEFORE_START if verified else catalog.COMMITTED_BEFORE_VERIFICATION
    raise Refused(reason(target=facts.target_name))


def check_stopped(facts: Facts) -> None:
    """Check, before a write or a start, that the Flink job was stopped with the savepoint.

    The refusals and warnings are the same as in ``to-spark`` and ``commit-group`` (see
    ``job_refusals``).
    """
    _check_not_started_again(facts)
    check_restart_is_ruled_out(facts)
    plan = facts.plan
    if facts.allows_restart or facts.spec.flink.rest is not None or plan is None:
        return
    if not facts.spec.target.is_group:
        refuse_old_savepoint(plan.origin, judge_jobs(plan.origin, None), compared_group(plan))


def check_restart_is_ruled_out(facts: Facts) -> None:
    """Raise an error if Flink was queried but its answer does not rule out a restart of the job.

    If the JobManager does not answer, a run that saw the end of the job continues, because in
    application mode the JobManager exits with its job. With ``move.allow-ran-on`` in the spec, no
    error is raised.
    """
    unknown = facts.started_again
    if facts.allows_restart or not isinstance(unknown, Unavailable):
        return
    error = unknown.error
    if facts.saw_end and isinstance(error, FlinkRestError):
        return
    if started_work(facts)[0] is Started.YES and isinstance(error, Refused):
        for reason in error.reasons:
            if isinstance(reason, Message) and reason.template is catalog.RESTART_HIDDEN:
                hidden = catalog.RESTART_HIDDEN_AFTER_START
                also = {"target": facts.target_name, "keys": _keys_to_move_again(facts)}
                raise Refused(hidden(**reason.facts, **also))
    if not isinstance(error, Refused):
        add_notes(error, "if the job was not restarted, set move.allow-ran-on: true in the spec")
    raise error


def restart_not_checked(facts: Facts) -> str:
    """Return the reason that the job was not checked for a restart, or an empty string."""
    if isinstance(facts.started_again, Unavailable):
        return "Flink does not rule out a restart"
    return "" if facts.spec.flink.rest is not None else "the spec has no flink.rest"


def _check_not_started_again(facts: Facts) -> None:
    """Raise an error if the Flink job was restarted, because its output would be duplicated.

    With ``move.allow-ran-on`` in the spec, a restarted job is allowed if it has ended, or if the
    target is not a group.
    """
    job = facts.started_again
    if not isinstance(job, FlinkJob):
        return
    restart = {"job": job.name, "job_id": job.job_id, "state": job.state}
    if facts.allows_restart and (job.ended or not facts.spec.target.is_group):
        warn(catalog.RESTARTED_JOB_ALLOWED(**restart))
        return
    if facts.record.moved_with is None and facts.spec.stopped_by_others:
        raise Refused(catalog.RESTARTED_OR_OTHER_JOB(**restart))
    if started_work(facts)[0] is Started.YES:
        both_run = catalog.RESTARTED_JOB_AND_READERS
        also = {"target": facts.target_name, "keys": _keys_to_move_again(facts)}
        raise CutOverStopped(both_run(**restart, **also))
    raise CutOverStopped(catalog.RESTARTED_JOB(**restart))


def _keys_to_move_again(facts: Facts) -> str:
    """Describe the keys that need new values in the spec of the job's next move."""
    return "record" if facts.spec.target.is_group else "record, checkpoint-dir, and sink"


def decide_verify(facts: Facts) -> Decision:
    if started_work(facts)[0] is Started.YES:
        return Done("readers have started from the target; verify-again checks their start")
    _check_not_started_again(facts)
    return Action.VERIFY


def decide_verify_again(facts: Facts) -> Decision:
    _check_not_started_again(facts)
    return Action.VERIFY


# -- start, first batch ----------------------------------------------------------------------------


def decide_start(facts: Facts) -> Decision:
    content, problem = target_content(facts)
    if content not in (Content.PLAN, Content.PLAN_NOT_RECORDED, Content.MOVED_ON):
        raise Refused(problem or catalog.PLANNED_OFFSETS_GONE(target=facts.target_name))
    if text := start_evidence(facts):
        return Done(text)
    started, reason = started_work(facts)
    begun = started is Started.YES
    if facts.spec.start is None:
        if begun or is_idle_query(facts):
            return Done(reason)
        refuse_savepoint_of_other(facts)
        check_stopped(facts)
        return Done(start_yourself(facts.spec))
    match facts.start_status:
        case "running" if not begun and _is_start_changed(facts):
            how = how_to_end(facts.start_process)
            raise CutOverStopped(catalog.START_CHANGED_WHILE_RUNNING(how_to_end=how))
        case "running":
            return Done("the command of an earlier run is running")
        case 0 if facts.spec.target.is_group or not _is_start_changed(facts):
            return Done("the command of an earlier run succeeded, and is not run again")
        case None | "unknown" if begun:
            return Done(reason)  # another client has started the query; do not start a second one
        case "unknown":
            raise CutOverStopped(catalog.START_EXIT_CODE_MISSING())
        case None if facts.record.start is not None:  # a power cut may lose the state file
            raise CutOverStopped(catalog.START_EXIT_CODE_MISSING())
        case None if is_idle_query(facts):
            raise CutOverStopped(catalog.START_BESIDE_IDLE_QUERY(target=facts.target_name))
    # The command was never run, it failed, or it was corrected. No batch is committed, so a query
    # that starts now starts at the planned offsets, even if an earlier query had read records.
    refuse_savepoint_of_other(facts)
    check_stopped(facts)
    return Action.START


def start_yourself(spec: Spec) -> str:
    """Return the text of the ``start`` step for a spec without a start command."""
    readers = "the consumers" if spec.target.is_group else "the query"
    return f"start {readers} yourself, because the spec has no start"


def _is_start_changed(facts: Facts) -> bool:
    """Return whether the user has changed a command that was run but started no query.

    An unchanged command is not run again, because its query might still start. Until a primed
    location has a new batch, the location does not show whether a query has started.
    """
    target, command, earlier = facts.target, facts.spec.start, facts.record.start
    if isinstance(target, LocationFacts) and target.has_logs:
        return False
    if command is None or earlier is None or earlier.command_sha256 is None:
        return False
    return earlier.command_sha256 != command_checksum(command)


def decide_first_batch(facts: Facts) -> Decision:
    text = start_evidence(facts)
    return Done(text) if text else Action.AWAIT_FIRST_BATCH
