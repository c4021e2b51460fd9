"""Decide the steps up to a clean stop of Flink's job: pure."""

from __future__ import annotations

from decoder import StopKind
from migrate.cutover.decision import Action, Decision, Do, Done, Halt, missing, refuse
from migrate.cutover.facts import Facts, Savepoint, StoppedJob
from migrate.cutover.flink_jobs import same_savepoint


def decide_check(facts: Facts) -> Decision:
    if facts.stopped_by_others:
        planned = facts.plan is not None or facts.record.moved_with is not None
        return Done("a plan was made already") if planned else Do(Action.CHECK)
    if facts.record.flink.savepoint is not None:
        return Done("the job has stopped")
    job = facts.job
    if not isinstance(job, StoppedJob):
        return missing(job)
    if halt := _not_ours_to_stop(facts, job):
        return halt
    if job.job.ended or not job.is_known:
        return Done(f"Flink has the job as {job.job.state}")
    if job.attempt is not None and facts.record.flink.job_id is not None:
        return Done("Flink stops the job already")
    return Do(Action.CHECK)


def _not_ours_to_stop(facts: Facts, job: StoppedJob) -> Halt | None:
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
    if not isinstance(job, StoppedJob):
        return missing(job)
    if halt := _not_ours_to_stop(facts, job):
        return halt
    if job.ended_with is not None:
        return Do(Action.KEEP_SAVEPOINT)
    if job.attempt is not None:
        return Do(Action.AWAIT_STOP)
    if not job.job.ended and job.is_known:
        return Do(Action.STOP)
    return _ended_without_a_stop(job)


def _ended_without_a_stop(job: StoppedJob) -> Halt:
    """Say what to do about a job that has ended, and not by a stop that Flink knows of."""
    job_id = job.job.job_id
    if not job.is_known and job.left:
        return Halt(
            (
                f"Flink no longer knows job {job_id}, and savepoint {job.left[-1].pointer} of a "
                "stop is whole: nobody can tell whether the job committed all that it held",
                "start the job from that savepoint once (flink run -s), and run this again under a "
                "new record; or name the savepoint yourself (flink.savepoint)",
            )
        )
    newest = "its newest checkpoint"
    runs_not = "" if job.job.ended else ", if it does not run,"
    if job.left:
        savepoints = ", ".join(savepoint.pointer for savepoint in job.left)
        newest += f" or savepoint, whichever is newer ({savepoints})"
    return Halt(
        (
            f"Flink has job {job_id} ({job.job.name}) as {job.job.state}, and reports no savepoint "
            f"in {job.folder} that it ended with",
            f"start the job{runs_not} from {newest}, and run this again under a new record",
        )
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
        return Halt(
            (
                f"{savepoint.pointer} is not of a stop: the job ran on after it, and would repeat "
                "everything since",
                "stop the job with a savepoint",
            )
        )
    if facts.stopped_by_others:
        return Do(Action.KEEP_CLEAN)
    if not isinstance(facts.job, StoppedJob):
        return missing(facts.job)
    job, ended_with = facts.job.job, facts.job.ended_with
    if ended_with is not None and not same_savepoint(ended_with.pointer, savepoint.pointer):
        return Halt(
            (
                f"Flink says that the job ended with {ended_with.pointer}, and this record has "
                f"{savepoint.pointer}: the job was started again and stopped since",
                "name another folder for the record, and begin anew",
            )
        )
    if not flink.finished or job.state not in ("FINISHED", "UNKNOWN"):
        return Halt(
            (
                f"the savepoint is whole, and Flink has not said that the job FINISHED "
                f"({job.state})",
                "wait for it, or look into Flink's log",
            )
        )
    return Do(Action.KEEP_CLEAN)
