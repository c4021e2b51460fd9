"""The actions on Flink: stop the job, wait for its savepoint, keep what was found."""

from __future__ import annotations

import time

from decoder import StopKind
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.facts import Facts, Savepoint, StoppedJob
from migrate.cutover.observe import AWAY_SECONDS
from migrate.inputs.flink.rest_api import FlinkRestError, StopAttempt
from migrate.model.log import log, timed
from migrate.model.wording import parse_duration

_PAUSE = 0.25


def stop(context: CutOverContext, facts: Facts) -> str:
    """Stop the job with a savepoint.

    Raises:
        CutOverStopped: it failed, or did not end in time.
        FlinkRestError: Flink did not answer, or has forgotten the stop.
    """
    job = _job(facts)
    flink = context.spec.flink
    context.record.change_flink(
        job_id=job.job.job_id,
        job_name=job.job.name,
        version=context.flink.version(),
        savepoints=context.record.model.flink.savepoints or context.file.savepoint_folder,
    )
    log.info(f"asking Flink to stop {job.job.name} ({job.job.job_id}) with a savepoint")
    context.flink.stop(
        job.job.job_id,
        job.folder,
        job.trigger_id,
        drain=flink.drain,
        native=flink.format == "native",
    )
    return _await(context, job)


def await_stop(context: CutOverContext, facts: Facts) -> str:
    """Wait for the stop that an earlier run asked for. Raises as ``stop``."""
    job = _job(facts)
    log.info(f"Flink stops {job.job.name} ({job.job.job_id}) already, as an earlier run asked")
    return _await(context, job)


def _await(context: CutOverContext, job: StoppedJob) -> str:
    attempt = _ended_attempt(context, job)
    if attempt.savepoint is None:
        context.record.change_flink(savepoints=None)  # the next stop may write elsewhere
        raise CutOverStopped(f"the stop failed: {attempt.problem}", _state(context, job))
    _keep(context, job, attempt.savepoint)
    return f"stopped with {attempt.savepoint}"


def _ended_attempt(context: CutOverContext, job: StoppedJob) -> StopAttempt:
    patience = context.spec.timeouts.stop
    deadline = time.monotonic() + parse_duration(patience)
    answered = time.monotonic()
    with timed("waiting for Flink's savepoint"):
        while time.monotonic() < deadline:
            try:
                attempt = context.flink.stopping(job.job.job_id, job.trigger_id)
            except FlinkRestError:
                if time.monotonic() - answered > AWAY_SECONDS:
                    raise
                time.sleep(_PAUSE)
                continue
            if attempt is None:
                raise FlinkRestError(
                    "Flink has forgotten the stop: its JobManager was started anew meanwhile"
                )
            if attempt.ended:
                return attempt
            answered = time.monotonic()
            time.sleep(_PAUSE)
    raise CutOverStopped(
        f"the stop has not ended after {patience} (timeouts.stop), and Flink may still end it",
        _state(context, job),
    )


def _state(context: CutOverContext, job: StoppedJob) -> str:
    now = context.flink.job(job.job.job_id)
    return f"Flink has the job as {now.state if now is not None else 'unknown'}"


def keep_savepoint(context: CutOverContext, facts: Facts) -> str:
    """Keep the savepoint that Flink says the job ended with."""
    job = _job(facts)
    assert job.ended_with is not None  # decided on it
    _keep(context, job, job.ended_with.pointer)
    return f"stopped by an earlier run with {job.ended_with.pointer}"


def _keep(context: CutOverContext, job: StoppedJob, savepoint: str) -> None:
    flink = context.record.model.flink
    context.record.change_flink(
        job_id=job.job.job_id,
        job_name=job.job.name,
        savepoints=flink.savepoints or context.file.savepoint_folder,
        savepoint=savepoint,
        finished=True,
        version=flink.version or context.flink.version(),
    )


def keep_clean(context: CutOverContext, facts: Facts) -> str:
    """Keep that the stop was clean. What a sink had yet to commit is looked at with the plan."""
    savepoint = facts.savepoint
    assert isinstance(savepoint, Savepoint)  # decided on it
    text, ended_ms = "the savepoint is whole", None
    if isinstance(facts.job, StoppedJob):
        text, ended_ms = f"{text}, and the job has FINISHED", facts.job.job.ended_ms
    elif savepoint.stop is StopKind.UNKNOWN:
        log.warning("whether the job stopped with this savepoint does not show (before Flink 1.16)")
    context.record.change_flink(
        savepoint=savepoint.pointer, savepoint_sha256=savepoint.sha256, ended_ms=ended_ms
    )
    return text


def _job(facts: Facts) -> StoppedJob:
    assert isinstance(facts.job, StoppedJob)  # decided on it
    return facts.job
