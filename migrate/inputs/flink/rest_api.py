"""A Flink JobManager's REST API for jobs, their checkpoints, and stop-with-savepoint.

The caller chooses the trigger ID of a stop. A second request with the same trigger ID does not
start a second stop. Therefore, if `migrate` was killed after the first request, a later run can
find that stop. A stop is completed when the job is FINISHED. If the savepoint was written but the
job failed and restarted, the stop has failed.

Source: org.apache.flink.api.common.JobStatus, org.apache.flink.runtime.rest.messages.
{JobsOverviewHeaders, DashboardConfiguration, ConfigurationInfo, JobConfigInfo,
checkpoints.CheckpointingStatistics},
org.apache.flink.runtime.rest.messages.job.savepoints.{stop.StopWithSavepointRequestBody,
SavepointInfo}, org.apache.flink.runtime.rest.handler.job.savepoints.SavepointHandlers @ Flink
1.15.4, 1.20.3, and 2.2.0.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, FailFast, Field, RootModel

from decoder.urls import redact_url
from migrate.inputs.flink.rest_client import UnknownToFlink, get, printable_text, request
from migrate.inputs.watch import LONGEST_WAIT, poll
from migrate.model.errors import UsageError
from migrate.model.option_names import option

# Flink reports this path for a checkpoint that exists only in the JobManager's memory.
_NO_PATH = "<checkpoint-not-externally-addressable>"
# The states that a job never leaves. SUSPENDED is not one of these states, because another
# JobManager can recover the job.
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})
_NOT_LISTED = "not listed"
# How long to wait for Flink to report a change, in addition to its web.refresh-interval.
_GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class FlinkJob:
    """A job, as reported by the JobManager.

    Attributes:
        state: Flink's name for the state: RUNNING, RESTARTING, …; ``not listed`` for a job that
            Flink does not list.
        began_ms: the time when the job started, in epoch milliseconds, by the JobManager's clock.
        ended_ms: the time when the job ended, by the same clock; None if the job has not ended.
    """

    job_id: str
    name: str
    state: str
    began_ms: int = 0
    ended_ms: int | None = None

    @classmethod
    def not_listed(cls, job_id: str, name: str) -> FlinkJob:
        """Return a ``FlinkJob`` for a job that Flink does not list."""
        return cls(job_id, name, _NOT_LISTED)

    @property
    def is_listed(self) -> bool:
        return self.state != _NOT_LISTED

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended or is no longer listed."""
        return self.ended or not self.is_listed

    @property
    def is_running(self) -> bool:
        return self.state == "RUNNING"

    @property
    def is_finished(self) -> bool:
        """Return whether the job completed all its work or was stopped with a savepoint."""
        return self.state == "FINISHED"

    @property
    def ended(self) -> bool:
        return self.state in _ENDED


@dataclass(frozen=True, slots=True)
class JobDetails:
    """The tasks of a job that are not running, and the job's checkpoints.

    Attributes:
        idle_tasks: the names and states of the tasks that are not running.
        checkpoint: the path of the newest completed checkpoint; None if no checkpoint was
            completed, or if the checkpoint has no path.
        newest_savepoint: the checkpoint ID and the path of the newest savepoint; None if there is
            no savepoint, or if a checkpoint was completed after the savepoint.
        failure: the reason that the newest failed checkpoint failed; None if no checkpoint has
            failed, a newer checkpoint was completed, or the newest failure belongs to a savepoint.
    """

    idle_tasks: Sequence[str]
    checkpoint: str | None
    newest_savepoint: tuple[int, str] | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class CheckpointNumbers:
    """The numbers of a job's newest checkpoints; each is None if Flink reports none.

    A restarted JobManager forgets the checkpoints from before the restart.

    Attributes:
        completed: the newest completed checkpoint or savepoint.
        restored: the checkpoint or savepoint from which the job was last restored.
    """

    completed: int | None = None
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class LastDurations:
    """The durations of a job's newest savepoint and checkpoint; None if Flink reports none.

    Each duration is measured from the trigger to the last acknowledgment, in seconds.
    """

    savepoint: float | None = None
    checkpoint: float | None = None


@dataclass(frozen=True, slots=True)
class StopAttempt:
    """A stop-with-savepoint; while both attributes are None, the stop is in progress.

    Attributes:
        savepoint: the savepoint's path, if the stop is completed.
        problem: the reason for the failure, if the stop has failed. In that case, the job may still
            be running.
    """

    savepoint: str | None = None
    problem: str | None = None

    @property
    def ended(self) -> bool:
        return self.savepoint is not None or self.problem is not None


def known_jobs(url: str) -> tuple[FlinkJob, ...]:
    """Return the jobs of ``GET <url>/jobs/overview``.

    The JobManager drops ended jobs, by default after an hour (``jobstore.expiration-time``). A
    restarted JobManager does not list the jobs that ended before its restart.

    Args:
        url: the address of the JobManager's REST API, such as ``http://host:8081``.

    Raises:
        UsageError: as in ``check_address``.
        FlinkRestError: no JobManager answered in time, or the JobManager refused the request.
    """
    return tuple(
        FlinkJob(job.jid, job.name, job.state, job.began, job.ended if job.ended >= 0 else None)
        for job in get(url, _Overview, "/jobs/overview").jobs
    )


def read_restored_jobs(url: str) -> list[tuple[FlinkJob, str | None]]:
    """Return each job from ``known_jobs`` with the path from which it was restored, or None.

    Args:
        url: as in ``known_jobs``.

    Raises:
        UsageError: as in ``known_jobs``; or the address belongs to a HistoryServer, which lists
            only ended jobs.
        FlinkRestError: as in ``known_jobs``.
    """
    flink = JobManager(url)
    if flink.is_history_server():
        raise UsageError(
            f"{option('flink_rest', redact_url(url))}: this is the address of a HistoryServer, "
            "which does not list running jobs; pass the address of the JobManager"
        )
    return [(job, flink.restored_from(job.job_id)) for job in flink.jobs()]


class JobManager:
    """A client of a JobManager; every method sends a new request.

    Every method may raise the errors of ``known_jobs``.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def version(self) -> str:
        """Return Flink's version."""
        return get(self._url, _Configuration, "/config").version

    def until_refreshed(self) -> Iterator[None]:
        """Yield immediately, and then repeatedly until Flink's cached answers have expired.

        Flink caches a job's details and checkpoints for its ``web.refresh-interval``, 3 seconds by
        default. Flink 1.20 and later have an option for the checkpoints,
        ``rest.cache.checkpoint-statistics.timeout``, whose default is this interval.

        Source: org.apache.flink.runtime.rest.handler.legacy.DefaultExecutionGraphCache @ Flink
        1.15.4 and 2.2.0, org.apache.flink.runtime.rest.handler.job.checkpoints.
        AbstractCheckpointStatsHandler and org.apache.flink.configuration.RestOptions
        .CACHE_CHECKPOINT_STATISTICS_TIMEOUT @ Flink 1.20.3 and 2.2.0.
        """
        refresh_seconds = get(self._url, _Configuration, "/config").refresh_ms / 1000
        yield from poll(min(refresh_seconds, LONGEST_WAIT) + _GRACE_SECONDS)

    def configuration(self) -> dict[str, str]:
        """Return the JobManager's configuration; Flink masks the values of secrets."""
        options = get(self._url, _Options, "/jobmanager/config").root
        return {entry.key: entry.value for entry in options}

    def job_parameters(self, job_id: str) -> dict[str, str]:
        """Return the global parameters that a job has registered; empty if there are none."""
        try:
            job = get(self._url, _JobConfiguration, f"/jobs/{job_id}/config")
        except UnknownToFlink:
            return {}
        return job.execution.parameters if job.execution is not None else {}

    def is_history_server(self) -> bool:
        """Return whether the server reports that it is a HistoryServer.

        A HistoryServer of Flink 1.20 reports this, but a HistoryServer of Flink 1.15 does not.
        """
        try:
            return get(self._url, _Dashboard, "/config").features.web_history
        except UnknownToFlink:
            return False

    def jobs(self) -> Sequence[FlinkJob]:
        """Return the jobs that the JobManager lists."""
        return known_jobs(self._url)

    def job(self, job_id: str) -> FlinkJob | None:
        """Return a job by its ID, or None."""
        return next((job for job in self.jobs() if job.job_id == job_id), None)

    def reread(self, job: FlinkJob) -> FlinkJob:
        """Return a job as Flink reports it now."""
        return self.job(job.job_id) or FlinkJob.not_listed(job.job_id, job.name)

    def restored_from(self, job_id: str) -> str | None:
        """Return the path of the checkpoint or savepoint from which a job was restored, or None.

        After a recovery, this is the state from which the job recovered, not the state from which
        it was started. The result is also None for a job that Flink has dropped.
        """
        try:
            restored = self._latest(job_id).restored
        except UnknownToFlink:
            return None
        return restored.external_path if restored is not None else None

    def checkpoint_numbers(self, job_id: str) -> CheckpointNumbers:
        """Return the numbers of a job's newest checkpoints; all None if Flink reports none."""
        try:
            latest = self._latest(job_id)
        except UnknownToFlink:
            return CheckpointNumbers()
        completed = [part.id for part in (latest.completed, latest.savepoint) if part is not None]
        restored = latest.restored.id if latest.restored is not None else None
        return CheckpointNumbers(max(completed, default=None), restored)

    def last_durations(self, job_id: str) -> LastDurations:
        """Return the durations of a job's newest savepoint and newest checkpoint."""
        try:
            latest = self._latest(job_id)
        except UnknownToFlink:
            return LastDurations()
        savepoint, checkpoint = (
            part.duration_ms / 1000 if part is not None and part.duration_ms >= 0 else None
            for part in (latest.savepoint, latest.completed)
        )
        return LastDurations(savepoint, checkpoint)

    def details(self, job_id: str) -> JobDetails:
        """Return the tasks and checkpoints of a job that the JobManager lists."""
        job = get(self._url, _Details, f"/jobs/{job_id}")
        latest = self._latest(job_id)
        completed_id, path = -1, None
        if latest.completed is not None:
            completed_id, path = latest.completed.id, latest.completed.external_path
        newest_savepoint = problem = None
        savepoint, failed = latest.savepoint, latest.failed
        if savepoint and savepoint.external_path and savepoint.id >= completed_id:
            newest_savepoint = (savepoint.id, savepoint.external_path)
        # A failed savepoint is not evidence about the job's checkpoints.
        if failed and not failed.is_savepoint and failed.id > completed_id:
            problem = printable_text(failed.failure_message or "no reason reported")
        return JobDetails(
            [
                f"{printable_text(vertex.name)}: {vertex.status}"
                for vertex in job.vertices
                if vertex.status != "RUNNING"
            ],
            path if path and path != _NO_PATH else None,
            newest_savepoint,
            problem,
        )

    def clock_ahead_ms(self, jobs: Sequence[FlinkJob]) -> float:
        """Return how far the JobManager's clock is ahead of this machine's clock, in milliseconds.

        The value is too high by at most the duration of a request. The result is 0 if Flink has
        dropped every job in ``jobs``, because Flink reports its clock only with the details of a
        job.
        """
        for job in jobs:
            asked_ms = 1000 * time.time()
            with suppress(UnknownToFlink):
                return get(self._url, _Clock, f"/jobs/{job.job_id}").now - asked_ms
        return 0.0

    def stop(self, job_id: str, folder: str, trigger_id: str, *, drain: bool, native: bool) -> None:
        """Ask Flink to stop a job with a savepoint in a folder; do not wait for the stop."""
        body = {
            "targetDirectory": folder,
            "drain": drain,
            "formatType": "NATIVE" if native else "CANONICAL",
            "triggerId": trigger_id,
        }
        request(self._url, f"/jobs/{job_id}/stop", body)

    def stop_attempt(self, job_id: str, trigger_id: str) -> StopAttempt | None:
        """Return the state of a stop, or None if the JobManager has no record of it.

        The JobManager forgets a stop operation five minutes after it ends
        (``rest.async.store-duration``). A restarted JobManager has no record of earlier stops.
        """
        try:
            stop = get(self._url, _Stop, f"/jobs/{job_id}/savepoints/{trigger_id}")
        except UnknownToFlink:
            return None
        operation = stop.operation
        if stop.status.id == "IN_PROGRESS" or operation is None:
            return StopAttempt()
        if operation.cause is not None or operation.location is None:
            return StopAttempt(problem=_reason(operation.cause))
        return StopAttempt(savepoint=operation.location)

    def _latest(self, job_id: str) -> _Latest:
        return get(self._url, _Checkpoints, f"/jobs/{job_id}/checkpoints").latest


def _reason(cause: _Cause | None) -> str:
    """Return the first and the innermost message in a Java stack trace, without secrets."""
    lines = [line.strip() for line in (cause.trace if cause is not None else "").splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    messages = [*lines[:1], *causes[-1:]]
    texts = (printable_text(line.rpartition("Exception: ")[2].rstrip(".")) for line in messages)
    return ": ".join(texts) or "no reason reported"


# -- the JSON of the JobManager's answers ----------------------------------------------------------


class _Job(BaseModel):
    jid: str
    name: str
    state: str
    began: Annotated[int, Field(alias="start-time")] = 0
    ended: Annotated[int, Field(alias="end-time")] = -1


class _Overview(BaseModel):
    # Stop at the first validation error. The errors of millions of jobs would take gigabytes.
    jobs: Annotated[list[_Job], FailFast()]


class _Configuration(BaseModel):
    version: Annotated[str, Field(alias="flink-version")]
    refresh_ms: Annotated[int, Field(alias="refresh-interval", ge=0, le=86_400_000)] = 3000


class _Option(BaseModel):
    key: str
    value: str


class _Options(RootModel[Annotated[list[_Option], FailFast()]]):
    """The JSON array with a cluster's options."""


class _Execution(BaseModel):
    parameters: Annotated[dict[str, str], Field(alias="user-config")] = {}


class _JobConfiguration(BaseModel):
    execution: Annotated[_Execution | None, Field(alias="execution-config")] = None


class _Features(BaseModel):
    web_history: Annotated[bool, Field(alias="web-history")] = False


class _Dashboard(BaseModel):
    features: _Features = _Features()


class _Vertex(BaseModel):
    name: str
    status: str


class _Details(BaseModel):
    vertices: Annotated[list[_Vertex], FailFast()]


class _Clock(BaseModel):
    now: int


class _Completed(BaseModel):
    id: int
    external_path: str | None = None
    duration_ms: Annotated[int, Field(alias="end_to_end_duration")] = -1


class _Failed(BaseModel):
    id: int
    is_savepoint: bool = False
    failure_message: str | None = None


class _Latest(BaseModel):
    completed: _Completed | None = None
    savepoint: _Completed | None = None
    restored: _Completed | None = None
    failed: _Failed | None = None


class _Checkpoints(BaseModel):
    latest: _Latest


class _Status(BaseModel):
    id: Literal["IN_PROGRESS", "COMPLETED"]


class _Cause(BaseModel):
    trace: Annotated[str, Field(alias="stack-trace")] = ""


class _Operation(BaseModel):
    location: str | None = None
    cause: Annotated[_Cause | None, Field(alias="failure-cause")] = None


class _Stop(BaseModel):
    status: _Status
    operation: _Operation | None = None
