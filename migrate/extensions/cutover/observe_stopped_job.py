"""Read the state of the job from Flink and the savepoint folder.

Flink's REST API may return cached answers (``JobManager.until_refreshed``), so some values are read
twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from decoder import DecodeError, StopKind
from decoder.checkpoint import read_metadata
from decoder.metadata.original_location import original_directory
from decoder.storage import join
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import JobToStop, Savepoint
from migrate.inputs.before_move import job_refusals
from migrate.inputs.flink.job_state import judge, judge_jobs
from migrate.inputs.flink.rest_api import FlinkJob, JobManager, StopAttempt, read_restored_jobs
from migrate.inputs.flink.rest_client import FlinkRestError, UnknownToFlink, printable_text
from migrate.inputs.flink.restarted_job import (
    hidden_start,
    is_any_savepoint,
    is_same_savepoint,
    job_started_again,
)
from migrate.inputs.watch import poll
from migrate.model.errors import CutOverStopped, Refused
from migrate.moves.plan import compared_group
from migrate.planning import Plan
from migrate.storage.uris import path_of

if TYPE_CHECKING:
    from migrate.inputs.flink.restarted_job import RestoredJob

# The maximum time to wait until a JobManager answers again (a failover takes less time), and until
# a stopped job has ended.
MAX_WAIT_SECONDS = 20.0
# The maximum number of stop requests for one job. Each request has its own trigger ID.
_ATTEMPTS = 1000


# -- the job that is stopped -----------------------------------------------------------------------


def read_job(context: CutOverContext) -> JobToStop:
    """Return the job that this cut-over stops, as Flink reports it.

    A job that an earlier run has tried to stop takes precedence over other jobs with the same name.

    Raises:
        Refused: as in ``choose_job``.
        CutOverStopped: too many attempts to stop the job have failed.
        FlinkRestError: Flink did not answer.
        InputError: the folder for savepoints is not a valid path or URI.
    """
    flink, recorded = context.flink, context.record.model.flink
    jobs = flink.jobs()
    if recorded.job_id is not None:
        unknown = FlinkJob.not_listed(recorded.job_id, recorded.job_name or "")
        job = next((job for job in jobs if job.job_id == recorded.job_id), unknown)
    else:
        assert context.spec.flink.job is not None  # checked by the spec
        job = choose_job(jobs, context.spec.flink.job)
    # A stop that an earlier run requested writes its savepoint to the folder in the record.
    savepoint_folder = recorded.savepoints or context.file.savepoint_folder
    assert savepoint_folder is not None  # checked by the spec
    folder = join(savepoint_folder, job.job_id)
    trigger_id, attempt = _first_unfailed_attempt(flink, job.job_id)
    if attempt is not None and attempt.savepoint is not None and not job.ended:
        job = job_after_refresh(flink, job)
        if not job.has_ended:  # the job was restarted with the same ID
            trigger_id, attempt = _first_unfailed_attempt(flink, job.job_id, skip_ended=True)
    ended_with, savepoints, elsewhere = None, list[Savepoint](), None
    if job.has_ended:
        savepoints = _stop_savepoints_in(context, folder)
        if job.is_finished:
            ended_with = _final_savepoint(context, job.job_id, folder, savepoints)
            if ended_with is None and (newest := flink.details(job.job_id).newest_savepoint):
                elsewhere = printable_text(newest[1])
    return JobToStop(job, trigger_id, attempt, ended_with, savepoints, folder, elsewhere)


def choose_job(jobs: Sequence[FlinkJob], name_or_id: str) -> FlinkJob:
    """Return the running job with this name or ID; if none is running, the one that started last.

    Raises:
        Refused: no such job exists; several such jobs are running; or the job was restarted with a
            new ID.
    """
    matching = [job for job in jobs if name_or_id in (job.job_id, job.name)]
    running = [job for job in matching if not job.ended]
    if len(running) > 1:
        ids = [job.job_id for job in running]
        raise Refused(catalog.SEVERAL_RUNNING_JOBS(job=name_or_id, ids=ids))
    if running:
        return running[0]
    if matching:
        job = max(matching, key=_began)
        newest = max((other for other in jobs if other.name == job.name), key=_began)
        if job.ended_ms is not None and newest.began_ms > job.ended_ms:
            raise Refused(
                catalog.JOB_RESTARTED_WITH_NEW_ID(
                    job=name_or_id,
                    state=job.state,
                    name=job.name,
                    new_id=newest.job_id,
                    new_state=newest.state,
                )
            )
        return job
    names = sorted({job.name for job in jobs if not job.ended})
    if not names:
        raise Refused(catalog.NO_JOB_RUNNING(job=name_or_id))
    raise Refused(catalog.JOB_NAME_UNKNOWN(job=name_or_id, running=names))


def _began(job: FlinkJob) -> int:
    return job.began_ms


def job_after_refresh(flink: JobManager, job: FlinkJob) -> FlinkJob:
    """Return the job as soon as Flink reports its end, or else after the refresh interval."""
    for _ in flink.until_refreshed():
        if job.ended:
            break
        job = flink.reread(job)
    return job


def _first_unfailed_attempt(
    flink: JobManager, job_id: str, *, skip_ended: bool = False
) -> tuple[str, StopAttempt | None]:
    """Return the first trigger ID whose stop has not failed, and the progress of this stop.

    The progress is None before the stop is requested. With ``skip_ended``, stops that succeeded are
    skipped as well.
    """
    for number in range(_ATTEMPTS):
        trigger_id = hashlib.sha256(f"cut-over {job_id} {number}".encode()).hexdigest()[:32]
        attempt = flink.stop_attempt(job_id, trigger_id)
        skipped = attempt is not None and skip_ended and attempt.ended
        if attempt is None or (attempt.problem is None and not skipped):
            return trigger_id, attempt
    raise CutOverStopped(catalog.ALL_STOPS_FAILED(attempts=_ATTEMPTS))


def read_ended_job(context: CutOverContext) -> JobToStop:
    """Return the job as soon as it has ended or Flink no longer lists it.

    After ``MAX_WAIT_SECONDS``, return the job in its current state. In application mode, the
    JobManager exits with its job. If the JobManager does not answer, but the record shows that the
    stop has finished, return the recorded job as a job that Flink no longer lists.

    Raises:
        Refused, CutOverStopped, FlinkRestError, InputError: as in ``read_job``.
    """
    job = None
    for _ in poll(MAX_WAIT_SECONDS):
        try:
            job = read_job(context)
        except FlinkRestError:
            recorded = context.record.model.flink
            if not recorded.finished:
                raise
            gone = FlinkJob.not_listed(recorded.job_id or "", recorded.job_name or "")
            return JobToStop(gone, "", None, None, (), "")
        if job.flink_job.has_ended:
            break
    assert job is not None  # poll yields at least once
    return job


# -- the savepoints of the job ---------------------------------------------------------------------


def read_savepoint(context: CutOverContext, pointer: str) -> Savepoint:
    """Read the ``_metadata`` of a savepoint; raise DecodeError if it cannot be read."""
    content = read_metadata(pointer, context.files)
    return Savepoint(
        pointer,
        content.metadata.checkpoint_id,
        content.metadata.type.stop,
        hashlib.sha256(content.data).hexdigest(),
        context.files.modified_at(content.path),
        original_directory(content.metadata.operators),
    )


def is_in_folder(context: CutOverContext, folder: str, savepoint: str) -> bool:
    """Return whether the folder contains this savepoint, whose path Flink reported."""
    names = context.files.list_directory(path_of(folder, context.files)) or ()
    return any(is_same_savepoint(join(folder, name), savepoint) for name in names)


def _stop_savepoints_in(context: CutOverContext, folder: str) -> list[Savepoint]:
    """Return a folder's complete savepoints with which a job may have been stopped.

    The savepoints are sorted by checkpoint ID.
    """
    path = path_of(folder, context.files)
    savepoints = []
    for name in context.files.list_directory(path) or ():
        try:
            savepoint = read_savepoint(context, join(path, name))
        except DecodeError:
            continue  # not complete, or not a savepoint
        if savepoint.stop is not StopKind.NONE:
            savepoints.append(savepoint)
    return sorted(savepoints, key=lambda savepoint: savepoint.checkpoint_id)


def _final_savepoint(
    context: CutOverContext, job_id: str, folder: str, savepoints: Sequence[Savepoint]
) -> Savepoint | None:
    """Return the savepoint with which the job ended, according to Flink, or None.

    ``savepoints`` must have just been read from ``folder``.
    """
    if not savepoints:
        return None
    flink = context.flink
    # Query Flink before waiting, because in application mode the JobManager exits with its job.
    savepoint = reported_savepoint(savepoints, flink.details(job_id).newest_savepoint)
    if savepoint is not None:
        return savepoint
    for _ in flink.until_refreshed():
        reported = flink.details(job_id).newest_savepoint
        savepoint = reported_savepoint(_stop_savepoints_in(context, folder), reported)
        if savepoint is not None:
            return savepoint
    return None


def reported_savepoint(
    savepoints: Sequence[Savepoint], reported: tuple[int, str] | None
) -> Savepoint | None:
    """Return the savepoint with the checkpoint ID and the path that Flink reports, or None.

    The highest checkpoint ID is not sufficient. If the job was restarted with the same job ID, an
    older savepoint may have a higher checkpoint ID.
    """
    checkpoint_id, path = reported if reported is not None else (None, None)
    for savepoint in savepoints:
        if savepoint.checkpoint_id == checkpoint_id and is_same_savepoint(savepoint.pointer, path):
            return savepoint
    return None


# -- a restarted job -------------------------------------------------------------------------------


def read_job_started_again(context: CutOverContext, plan: Plan | None) -> FlinkJob | None:
    """Return a job that has continued the work of the stopped job, or None.

    Without ``flink.rest`` or a savepoint, return None. If another client stopped the job and the
    target's reader has not been started, also check that the job of ``plan`` is not running. This
    check is the same as in ``to-spark`` and ``commit-group`` (``job_refusals``).

    Raises:
        DecodeError: the savepoint cannot be read.
        FlinkRestError: Flink did not answer.
        Refused: Flink does not show from which savepoint a later job started, because that job has
            since recovered from a checkpoint; or the job of ``plan`` may still be running.
    """
    record, spec, savepoint = context.record.model, context.spec, context.savepoint
    if spec.flink.rest is None or savepoint is None:
        return None
    jobs = read_restored_jobs(spec.flink.rest)
    # The times of the jobs come from the JobManager's clock.
    ahead_ms = context.flink.clock_ahead_ms([job for job, _ in jobs])
    stopped_job, job_name = record.flink.job_id, record.flink.job_name
    ended_ms, written_in = record.flink.ended_ms, None
    if spec.stopped_by_others:
        stopped_job, job_name, ended_ms = spec.flink.job, None, None
    if ended_ms is None:  # not recorded
        saved = read_savepoint(context, savepoint)
        written_in = saved.written_in
        # The storage's clock may also differ from this machine's clock, so prefer Flink's time.
        if saved.written_at is not None:
            ended_ms = saved.written_at + round(ahead_ms)
        for job in (job for job, _ in jobs if job.ended and stopped_job in (job.job_id, job.name)):
            with suppress(UnknownToFlink):  # Flink no longer stores the job
                newest = context.flink.details(job.job_id).newest_savepoint
                if newest is not None and is_any_savepoint(newest[1], savepoint, written_in):
                    ended_ms = job.ended_ms
    candidates, started = jobs, record.start.at if record.start is not None else None
    if spec.start is None:
        started = started or record.written
    if started is not None and spec.target.is_group:
        # The group's consumers may be a Flink job with the same name. A job that started after the
        # ``start`` command (or, without this command, after the commit) counts as a restart only
        # if it was restored from the savepoint.
        started_ms = datetime.fromisoformat(started).timestamp() * 1000 + ahead_ms
        candidates = [
            (job, restored_from)
            for job, restored_from in jobs
            if job.began_ms < started_ms or is_any_savepoint(restored_from, savepoint, written_in)
        ]
    again = job_started_again(
        candidates,
        savepoint,
        ended_ms,
        written_in=written_in,
        stopped_job=stopped_job,
        job_name=job_name,
    )
    own = [job for job, _ in jobs if job.job_id == stopped_job]
    if again is None and (problem := hidden_start(jobs, own, ended_ms or 0)):
        raise Refused(catalog.RESTART_HIDDEN(problem=problem))
    if again is None and started is None and spec.stopped_by_others and plan is not None:
        _refuse_unless_stopped(plan, spec.flink.rest, spec.flink.job, jobs)
    return again


def _refuse_unless_stopped(
    plan: Plan, flink_rest: str, job: str | None, jobs: Sequence[RestoredJob]
) -> None:
    """Raise ``Refused`` if the job of a plan may still be running, as in ``job_refusals``.

    If Flink lists the job in the spec, ``job_started_again`` has already checked this job.
    """
    if job is None:
        judgment = judge(plan.origin, flink_rest)
    elif any(job in (listed.job_id, listed.name) for listed, _ in jobs):
        return
    else:
        judgment = judge_jobs(plan.origin, [])
    group = compared_group(plan)
    if refusals := job_refusals(judgment, allow_ran_on=False, source_group=group):
        raise Refused(refusals)
