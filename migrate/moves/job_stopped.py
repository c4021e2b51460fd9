"""Check whether the job has stopped, before a consumer group is changed.

A job whose group has no members may still run, because KafkaSource does not join its group. A
running job would overwrite the committed offsets at its next checkpoint.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from decoder import DecodeError
from decoder.urls import redact_url
from migrate.fleet.candidates import FIXED_JOB_ID, job_id_of
from migrate.inputs.flink.newer_checkpoints import find_newer_checkpoints
from migrate.model.log import log, timed
from migrate.model.warning import WarningCode, warn
from migrate.moves.options import Request
from migrate.moves.pipeline import STOPPED_WITH_SAVEPOINT
from migrate.moves.plan import recheck_plan
from migrate.planning import Plan
from migrate.storage.files import Files, MissingExtra

if TYPE_CHECKING:
    from migrate.inputs.flink.rest_api import FlinkJob

# The wait for a newer checkpoint, in checkpoint intervals: checkpoints are not exactly on time.
_INTERVALS = 2.0
# Seconds. A shorter wait proves nothing: a checkpoint of a busy job takes a while.
_SHORTEST = 3.0
# Seconds. There is no wait if it would be longer.
_TOO_LONG = 60.0


def interval_of(plan: Plan) -> float | None:
    """Return the job's checkpoint interval in seconds; None if it is unknown or the job stopped."""
    origin = plan.origin
    if origin.kind != "checkpoint" or origin.stopped:
        return None
    try:
        checkpoints = find_newer_checkpoints(origin.pointer, origin.number, Files())
    except (DecodeError, MissingExtra):
        return None
    return checkpoints.interval_s if checkpoints is not None else None


def running_job_refusals(
    plan: Plan, interval: float | None, flink_rest: str | None
) -> tuple[str, ...]:
    """Return a refusal for each job that Flink runs.

    Without a refusal, log why no job overwrites the offsets, or warn that the plan's job may run.

    ``interval`` is that of ``interval_of``.

    Raises:
        FlinkRestError: the JobManager did not answer, or denied the request.
    """
    jobs = None
    if flink_rest is not None:
        from migrate.inputs.flink.rest_api import known_jobs

        with timed(f"asking Flink at {redact_url(flink_rest)}"):
            jobs = known_jobs(flink_rest)
    running = tuple(
        f"Flink still has job {job.job_id} ({job.name}), {job.state}; if it is the one that moves, "
        "stop it with a savepoint first, or leave --flink-rest out"
        for job in jobs or ()
        if not job.ended
    )
    if running:
        return running
    if plan.origin.kind == "batch":
        log.info("Spark commits to no group: these offsets stay until you run this again")
    elif plan.origin.stopped:
        log.info(STOPPED_WITH_SAVEPOINT)
    else:
        _report_job(plan.origin.pointer, jobs, interval)
    return ()


def _report_job(pointer: str, jobs: Sequence[FlinkJob] | None, interval: float | None) -> None:
    """Log that the plan's job has ended, or warn that it may run, with the ways to find out.

    ``jobs`` are the jobs that the JobManager knows, all ended; None if no JobManager was asked.
    """
    job_id = job_id_of(posixpath.dirname(pointer))
    own = [job for job in jobs or () if job.job_id == job_id]
    if own and job_id != FIXED_JOB_ID:
        log.info(f"Flink has job {job_id} as {own[0].state}, and none that has not ended")
        return
    proof = "a stop with a savepoint is proof in itself"
    if jobs is None:
        rest = "; if it does, it overwrites these offsets at its next checkpoint"
        proof = f"--flink-rest URL asks Flink, and {proof}"
    elif own or job_id is None:
        rest = ": that JobManager runs no job, and the checkpoint's path does not show its job"
    else:
        rest = f": that JobManager does not know job {job_id}, which wrote this checkpoint"
    warn(WarningCode.JOB_MAY_RUN, f"cannot tell whether the job still runs{rest}")
    log.info(f"{_wait_text(interval)}; {proof}")


def _wait_text(interval: float | None) -> str:
    if interval is None:
        return "how often the job takes a checkpoint is not known from its files"
    if _wait_seconds(interval) > _TOO_LONG:
        return f"it takes a checkpoint about every {interval:.0f} s, too long to wait for here"
    return f"--execute looks twice, {_wait_seconds(interval):.0f} s apart"


def wait_for_checkpoint(request: Request, plan: Plan, interval: float | None) -> None:
    """Wait until a running job would have completed a checkpoint, and check that it has not.

    The wait is counted from when the plan was made. It is needed even if Flink reported no running
    job, because the job may have another JobManager. Return at once if the job stopped with a
    savepoint, or the interval is unknown or too long.

    Raises:
        Refused: as for ``recheck_plan``, which finds the newer checkpoints of a running job.
    """
    if interval is None or _wait_seconds(interval) > _TOO_LONG:
        return
    # The plan may come from a machine whose clock is ahead of this one's.
    passed = max(0.0, (datetime.now(timezone.utc) - plan.made_at).total_seconds())
    wait = _wait_seconds(interval) - passed
    if wait > 0:
        log.info(f"waiting {wait:.0f} s for a checkpoint that a running job would take")
        with timed("waiting for a checkpoint"):
            time.sleep(wait)
    _, ran_on = recheck_plan(request, plan)
    if ran_on:
        return
    seconds = (datetime.now(timezone.utc) - plan.made_at).total_seconds()
    group = plan.source_group
    watched = f"group {group} has not moved, and " if group is not None else ""
    log.info(
        f"{watched}no checkpoint was completed in {seconds:.0f} s; they came about every "
        f"{interval:.1f} s: the job seems stopped, where this is its own checkpoint directory"
    )


def _wait_seconds(interval: float) -> float:
    return max(_INTERVALS * interval, _SHORTEST)
