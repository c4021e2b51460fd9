"""Stop the Flink job with a savepoint, and record the stop."""

from __future__ import annotations

import time
from dataclasses import replace

from decoder import StopKind
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import (
    STOP_FAILED,
    STOP_REQUESTED,
    CutOverContext,
)
from migrate.extensions.cutover.decide import savepoint_in_other_folder
from migrate.extensions.cutover.facts import Facts, JobToStop, require
from migrate.extensions.cutover.observe_stopped_job import (
    MAX_WAIT_SECONDS,
    is_in_folder,
    job_after_refresh,
)
from migrate.extensions.cutover.record import now
from migrate.inputs.flink.rest_api import StopAttempt
from migrate.inputs.flink.rest_client import FlinkRestError
from migrate.inputs.watch import poll
from migrate.model.errors import CutOverStopped, Refused
from migrate.model.log import log, timed
from migrate.model.warning import warn
from migrate.model.wording import parse_duration


def stop(context: CutOverContext, facts: Facts) -> str:
    """Stop the job with a savepoint.

    Raises:
        CutOverStopped: the stop failed or timed out.
        FlinkRestError: Flink did not answer, or it no longer has a record of the stop.
    """
    job, spec = require(facts.job), context.spec.flink
    _record_job(context, job, version=context.flink.version())
    log.info(f"stopping {job.flink_job.name} ({job.flink_job.job_id}) with a savepoint")
    context.record.change_flink(stop_asked_at=now())
    context.stop_state = STOP_REQUESTED
    context.flink.stop(
        job.flink_job.job_id,
        job.folder,
        job.trigger_id,
        drain=spec.drain,
        native=spec.format == "native",
    )
    return _await_end(context, job)


def await_stop(context: CutOverContext, facts: Facts) -> str:
    """Wait for the stop that an earlier run or another client requested.

    Raises:
        Refused: another client stopped the job with a savepoint in a different folder.
        CutOverStopped, FlinkRestError: as in ``stop``.
    """
    job = require(facts.job)
    name = f"{job.flink_job.name} ({job.flink_job.job_id})"
    by = "for an earlier run" if _is_recorded(context) else "at the request of another client"
    log.info(f"Flink is already stopping {name} {by}")
    return _await_end(context, job)


def _await_end(context: CutOverContext, job: JobToStop) -> str:
    attempt = _ended_attempt(context, job)
    if attempt is not None and attempt.savepoint is not None:
        if not _is_recorded(context) and not is_in_folder(context, job.folder, attempt.savepoint):
            ended = replace(job, flink_job=job_after_refresh(context.flink, job.flink_job))
            raise Refused(savepoint_in_other_folder(ended, attempt.savepoint))
        _record_end(context, job, attempt.savepoint)
        return f"stopped with {attempt.savepoint}"
    if attempt is not None:
        context.stop_state = STOP_FAILED
        context.record.change_flink(savepoints=None)  # the next stop may use a different folder
    state = context.flink.reread(job.flink_job).state
    if attempt is not None:
        raise CutOverStopped(catalog.STOP_FAILED(problem=attempt.problem, state=state))
    raise CutOverStopped(catalog.STOP_UNFINISHED(limit=context.spec.timeouts.stop, state=state))


def _ended_attempt(context: CutOverContext, job: JobToStop) -> StopAttempt | None:
    """Wait until the stop has ended, and return it; return None after the timeout."""
    answered_at = time.monotonic()
    with timed("waiting for the Flink savepoint"):
        for _ in poll(parse_duration(context.spec.timeouts.stop)):
            try:
                attempt = context.flink.stop_attempt(job.flink_job.job_id, job.trigger_id)
            except FlinkRestError:
                if time.monotonic() - answered_at > MAX_WAIT_SECONDS:
                    raise
                continue
            if attempt is None:
                raise FlinkRestError(catalog.STOP_REQUEST_LOST())
            if attempt.ended:
                return attempt
            answered_at = time.monotonic()
    return None


def record_savepoint(context: CutOverContext, facts: Facts) -> str:
    """Record the savepoint with which the job ended, according to Flink."""
    job = require(facts.job)
    assert job.ended_with is not None  # ``decide_stop`` has checked this
    by = (
        "stopped by an earlier run"
        if _is_recorded(context)
        else "already stopped by another client"
    )
    _record_end(context, job, job.ended_with.pointer)
    return f"{by} with {job.ended_with.pointer}"


def _is_recorded(context: CutOverContext) -> bool:
    """Return whether an earlier run of this cut-over has requested the stop."""
    return context.record.model.flink.job_id is not None


def _record_end(context: CutOverContext, job: JobToStop, savepoint: str) -> None:
    version = context.record.model.flink.version or context.flink.version()
    _record_job(context, job, version=version, savepoint=savepoint, finished=True)


def _record_job(context: CutOverContext, job: JobToStop, **fields: object) -> None:
    context.record.change_flink(
        job_id=job.flink_job.job_id,
        job_name=job.flink_job.name,
        savepoints=context.record.model.flink.savepoints or context.file.savepoint_folder,
        **fields,
    )


def record_clean_stop(context: CutOverContext, facts: Facts) -> str:
    """Record the savepoint and the fact that the job has ended.

    The later ``plan`` step checks for uncommitted data of sinks.
    """
    savepoint = require(facts.savepoint)
    text, ended_ms = "the savepoint is complete", None
    if isinstance(facts.job, JobToStop):
        text, ended_ms = f"{text}, and the job has FINISHED", facts.job.flink_job.ended_ms
        context.saw_end = True
    elif savepoint.stop is StopKind.UNKNOWN:
        warn(catalog.STOP_UNKNOWN())
    context.record.change_flink(
        savepoint=savepoint.pointer, savepoint_sha256=savepoint.sha256, ended_ms=ended_ms
    )
    return text
