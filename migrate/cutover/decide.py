"""Decide each step by the facts: return an action, or the reason why there is none. Pure.

The steps ``check``, ``stop`` and ``clean`` depend on Flink's job, the later steps on the target. If
the target could not be read, ``Step.decide`` returns the error before it calls these functions.
"""

from __future__ import annotations

from decoder import StopKind
from migrate.cutover.decision import Action, Decision, Do, Done, Halt, halt, missing, refuse
from migrate.cutover.facts import (
    Facts,
    JobToStop,
    LocationFacts,
    Savepoint,
    is_same_savepoint,
)
from migrate.cutover.target_state import (
    Content,
    Started,
    last_primed_batch,
    other_cluster_reason,
    started_work,
    target_content,
)
from migrate.inputs.flink.rest_api import FlinkJob

# -- check, stop, clean ----------------------------------------------------------------------------


def decide_check(facts: Facts) -> Decision:
    if facts.stopped_by_others:
        planned = facts.plan is not None or facts.record.moved_with is not None
        return Done("a plan was made already") if planned else Do(Action.CHECK)
    if facts.record.flink.savepoint is not None:
        return Done("the job has stopped")
    job = facts.job
    if not isinstance(job, JobToStop):
        return missing(job)
    if decision := _ended_before_any_run(facts, job):
        return decision
    if job.job.ended or not job.is_known:
        return Done(f"Flink has the job as {job.job.state}")
    if job.attempt is not None and facts.record.flink.job_id is not None:
        return Done("Flink stops the job already")
    return Do(Action.CHECK)


def _ended_before_any_run(facts: Facts, job: JobToStop) -> Halt | None:
    """Refuse a job that ended without a savepoint before any run had begun to stop it."""
    if facts.record.flink.job_id is not None or not job.job.ended:
        return None
    if job.ended_with is not None or job.attempt is not None:
        return None
    return refuse(
        f"flink.job {job.job.name}: Flink runs no such job; the newest, {job.job.job_id}, ended as "
        f"{job.job.state}, and not with a savepoint in {job.folder}; start the job, or name the "
        "savepoint that is to be moved (flink.savepoint)"
    )


def decide_stop(facts: Facts) -> Decision:
    if (pointer := facts.savepoint_pointer) is not None:
        return Done(f"stopped with {pointer}")
    job = facts.job
    if not isinstance(job, JobToStop):
        return missing(job)
    if decision := _ended_before_any_run(facts, job):
        return decision
    if job.ended_with is not None:
        return Do(Action.RECORD_SAVEPOINT)
    if job.attempt is not None:
        return Do(Action.AWAIT_STOP)
    if not job.job.ended and job.is_known:
        return Do(Action.STOP)
    return _ended_without_a_stop(job)


def _ended_without_a_stop(job: JobToStop) -> Halt:
    """Halt on a job that ended without a stop that Flink knows of, and say what to do."""
    job_id = job.job.job_id
    if not job.is_known and job.savepoints:
        return halt(
            f"Flink no longer knows job {job_id}, and savepoint {job.savepoints[-1].pointer} of a "
            "stop is whole: nobody can tell whether the job committed all that it held",
            "start the job from that savepoint once (flink run -s), and run this again under a "
            "new record; or name the savepoint yourself (flink.savepoint)",
        )
    runs_not = "" if job.job.ended else ", if it does not run,"
    newest = "its newest checkpoint"
    if job.savepoints:
        savepoints = ", ".join(savepoint.pointer for savepoint in job.savepoints)
        newest += f" or savepoint, whichever is newer ({savepoints})"
    return halt(
        f"Flink has job {job_id} ({job.job.name}) as {job.job.state}, and reports no savepoint "
        f"in {job.folder} that it ended with",
        f"start the job{runs_not} from {newest}, and run this again under a new record",
    )


def decide_clean(facts: Facts) -> Decision:
    flink, savepoint = facts.record.flink, facts.savepoint
    if flink.savepoint is not None and flink.savepoint_sha256 is not None and flink.finished:
        return Done("the savepoint is whole, and the job has FINISHED")
    if facts.record.written is not None and flink.savepoint_sha256 is not None:
        return Done("the savepoint was whole before the target was written")
    if not isinstance(savepoint, Savepoint):
        return missing(savepoint)
    if savepoint.stop is StopKind.NONE:
        return halt(
            f"{savepoint.pointer} is not of a stop: the job ran on after it, and would repeat "
            "everything since",
            "stop the job with a savepoint",
        )
    if facts.stopped_by_others:
        return Do(Action.RECORD_CLEAN_STOP)
    if not isinstance(facts.job, JobToStop):
        return missing(facts.job)
    job, ended_with = facts.job.job, facts.job.ended_with
    if ended_with is not None and not is_same_savepoint(ended_with.pointer, savepoint.pointer):
        return halt(
            f"Flink says that the job ended with {ended_with.pointer}, and this record has "
            f"{savepoint.pointer}: the job was started again and stopped since",
            "name another folder for the record, and begin anew",
        )
    if not flink.finished or job.state not in ("FINISHED", "UNKNOWN"):
        return halt(
            f"the savepoint is whole, and Flink has not said that the job FINISHED ({job.state})",
            "wait for it, or look into Flink's log",
        )
    return Do(Action.RECORD_CLEAN_STOP)


# -- plan, apply, verify ---------------------------------------------------------------------------


def decide_plan(facts: Facts) -> Decision:
    if problem := other_cluster_reason(facts):
        return refuse(problem)
    target = target_content(facts)
    match target.content:
        case Content.PRIMING:
            return Done("the command that primes the location runs with it")
        case Content.PLAN | Content.PRIMED | Content.MOVED_ON:
            return Done("the target was written already")
        case Content.WRONG:
            return refuse(target.reason)
        case Content.NOT_OURS:
            return Do(Action.PLAN) if facts.adopt else refuse(target.reason)
        case _:
            return _lost_after_writing(facts) or Do(Action.PLAN)


def decide_apply(facts: Facts) -> Decision:
    if problem := other_cluster_reason(facts):
        return refuse(problem)
    target = target_content(facts)
    match target.content:
        case Content.PLAN if facts.record.written is None:
            return Do(Action.RECORD_WRITTEN)
        case Content.PLAN:
            return Done(f"{facts.target_name} holds the plan")
        case Content.MOVED_ON:
            return _moved_on(facts)
        case Content.WRONG:
            return refuse(target.reason)
        case Content.NOT_OURS if not facts.adopt:
            return refuse(target.reason)
        case Content.PRIMED:
            action = Action.RECORD_PRIMED
        case Content.NOT_OURS:
            action = Action.ADOPT
        case _:
            if decision := _lost_after_writing(facts):
                return decision
            action = Action.WRITE
    return _started_again(facts) or Do(action)


def _lost_after_writing(facts: Facts) -> Halt | None:
    """Refuse to write a lost target again if work may have started from it."""
    work = started_work(facts)
    if facts.record.written is None or work.started is Started.NO:
        return None
    return refuse(
        f"{facts.target_name} no longer holds what this record has written, and something may have "
        f"begun from it: {work.reason}. Look at the output of the query or the consumers; if "
        "nothing has started, go back (--back --nothing-started) and run this again"
    )


def _moved_on(facts: Facts) -> Decision:
    """Decide about a group if others have committed for it since the plan was written."""
    record = facts.record
    verified = any(report.when == "before" and report.verified for report in record.verifications)
    if verified and (record.start is not None or not facts.has_start):
        return Done(f"{facts.target_name} held the plan, and others have committed since")
    why = "the command start was not run by then" if verified else "nobody had verified it by then"
    return refuse(
        f"{facts.target_name}: others have committed for it since the plan was written, and {why}, "
        "so it is not known where they began. Stop them, and compare what they have processed with "
        "the topic; what they have processed must not be processed again"
    )


def _started_again(facts: Facts) -> Halt | None:
    """Halt if Flink's job was started again: its output is then newer than the savepoint."""
    job = facts.started_again
    if not isinstance(job, FlinkJob):
        return None  # if Flink did not answer, the run has logged a warning
    how = f"has run since ({job.state})" if job.ended else "runs again"
    way_out = "to move that job, go back first (--back), or name another folder for the record"
    if started_work(facts).started is Started.YES:
        way_out = (
            f"{facts.target_name} has begun, too: stop one of the two, and compare what they wrote"
        )
    return halt(
        f"job {job.name} {how}, as {job.job_id}: the savepoint is not its last output", way_out
    )


def decide_verify(facts: Facts) -> Decision:
    if started_work(facts).started is Started.YES:
        return Done("the target has begun: the step verify-again judges it")
    return _started_again(facts) or Do(Action.VERIFY)


def decide_verify_again(facts: Facts) -> Decision:
    if facts.record.state != "done" and (decision := _started_again(facts)):
        return decision
    return Do(Action.VERIFY_AGAIN)


# -- start, first batch ----------------------------------------------------------------------------


START_END_UNKNOWN = (
    "the command that starts the query was run, and its exit code is missing, as after a reboot; "
    "look whether the query runs, start it yourself if it does not, and run this again once it has "
    "begun"
)


def first_batch(facts: Facts) -> int | None:
    """Return the newest batch that the query has committed, or None if there is none."""
    target = facts.target
    if not isinstance(target, LocationFacts) or target.committed is None:
        return None
    return target.committed if target.committed > last_primed_batch(facts, target) else None


def first_work(facts: Facts) -> str:
    """Return what shows that the consumers or the query have begun, or an empty text."""
    if facts.is_group:
        work = started_work(facts)
        return work.reason if work.started is Started.YES else ""
    batch = first_batch(facts)
    return f"batch {batch} is committed" if batch is not None else ""


def decide_start(facts: Facts) -> Decision:
    target = target_content(facts)
    if target.content not in (Content.PLAN, Content.MOVED_ON):
        return refuse(target.reason or f"{facts.target_name} no longer holds the plan")
    if text := first_work(facts):
        return Done(text)
    work, starting = started_work(facts), facts.starting
    begun = work.started is Started.YES
    if not facts.has_start:
        what = "the consumers" if facts.is_group else "the query"
        return Done(work.reason if begun else f"the spec names no command: start {what} now")
    if starting.is_running:
        return Done("an earlier run has started the command, and it runs")
    match starting.exit_code:
        case None if begun:
            return Done(work.reason)  # somebody else has started it: do not start a second query
        case 0:
            return Done("an earlier run has started the command, and it has ended well")
        case "unknown":
            return Done(work.reason) if begun else halt(START_END_UNKNOWN)
        case _:
            # The command was never run, or it failed. A restarted query repeats its planned batch.
            return _started_again(facts) or Do(Action.START)


def decide_first_batch(facts: Facts) -> Decision:
    text = first_work(facts)
    return Done(text) if text else Do(Action.AWAIT_FIRST_BATCH)
