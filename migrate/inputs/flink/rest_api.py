"""A Flink JobManager over REST: the jobs that it knows, how one is, and its stop with a savepoint.

A group without members is not proof that a job has stopped: KafkaSource assigns partitions by
itself. The JobManager knows.

A stop is asked for under a trigger id that the caller chooses. To ask again under the same id
starts nothing new, and tells how far the first one is: so a program that was killed in between
finds its stop again. The stop is completed once the job has FINISHED; one whose savepoint was
written and whose job failed over instead is failed.

Source: org.apache.flink.api.common.JobStatus, org.apache.flink.runtime.rest.messages.
{JobsOverviewHeaders, DashboardConfiguration, checkpoints.CheckpointingStatistics},
org.apache.flink.runtime.rest.messages.job.savepoints.{stop.StopWithSavepointRequestBody,
SavepointInfo}, org.apache.flink.runtime.rest.handler.job.savepoints.SavepointHandlers @ Flink
1.15.4, 1.20.3 and 2.2.0.
"""

from __future__ import annotations

import http
import http.client
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import BaseModel, FailFast, Field, ValidationError

from decoder.urls import redact_secrets
from migrate.model.errors import ServiceError, UsageError
from migrate.model.wording import clipped, printable

# How long one read or connect may take, in seconds: an overview is at hand, and small.
TIMEOUT = 10.0
# How long a whole request may take, its redirects included.
DEADLINE = 30.0
# An overview has some 500 bytes a job, and a job some 2 KB a vertex; parsed, JSON may take twenty
# times its bytes. This bounds what a wrong address may send.
_LARGEST_ANSWER = 16 * 2**20
# The characters of Flink's text that are shown.
_LONGEST_TEXT = 2_000

# Flink's word for a checkpoint that no path leads to: kept in the JobManager's memory.
_NO_PATH = "<checkpoint-not-externally-addressable>"
_CAUSE_LINES = 2
# The states a job never leaves. SUSPENDED is not among them: another JobManager takes it up again.
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})

_Answer = TypeVar("_Answer", bound=BaseModel)


class FlinkRestError(ServiceError):
    """The JobManager did not answer, or what answered is none."""


class UnknownToFlink(FlinkRestError):
    """The JobManager answers, and knows nothing of that name."""


@dataclass(frozen=True, slots=True)
class FlinkJob:
    """A job as the JobManager tells it.

    Attributes:
        state: Flink's name: RUNNING, RESTARTING, …
        began_ms: when it began, in milliseconds of the epoch by Flink's clock.
        ended_ms: when it ended; None as long as it has not.
    """

    job_id: str
    name: str
    state: str
    began_ms: int = 0
    ended_ms: int | None = None

    @property
    def ended(self) -> bool:
        return self.state in _ENDED


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A job, its tasks that do not run, and its checkpoints.

    Attributes:
        idle_tasks: the names of its tasks that do not run, with their states.
        checkpoint: where the newest completed checkpoint is; None where no path leads to one.
        ended_with: the number and the place of its newest savepoint, where no checkpoint was
            completed after it; else None.
        failed: why the newest checkpoint failed; None where the newest completed.
    """

    job: FlinkJob
    idle_tasks: Sequence[str]
    checkpoint: str | None
    ended_with: tuple[int, str] | None
    failed: str | None


@dataclass(frozen=True, slots=True)
class StopAttempt:
    """How far a stop is: neither attribute, one while it goes on.

    Attributes:
        savepoint: where its savepoint is: the job has FINISHED.
        problem: why it failed; the job may run on.
    """

    savepoint: str | None = None
    problem: str | None = None

    @property
    def ended(self) -> bool:
        return self.savepoint is not None or self.problem is not None


def known_jobs(url: str) -> tuple[FlinkJob, ...]:
    """The jobs it knows, as ``GET <url>/jobs/overview`` tells; it forgets those that have ended,
    after an hour by default (``jobstore.expiration-time``) and when it is started anew.

    Args:
        url: where the JobManager's web interface is, ``http://host:8081`` say.

    Raises:
        UsageError: it is no http or https address.
        FlinkRestError: it did not answer in time, or is no JobManager.
    """
    return tuple(
        FlinkJob(job.jid, job.name, job.state, job.began, job.ended if job.ended >= 0 else None)
        for job in _get(url, _Overview, "/jobs/overview").jobs
    )


class JobManager:
    """One JobManager, asked anew each time. All of it raises FlinkRestError, and UsageError where
    ``url`` is no http or https address.
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def version(self) -> str:
        """Flink's version."""
        return _get(self._url, _Configuration, "/config").version

    def refresh_seconds(self) -> float:
        """For how long it goes on to tell what was so (``web.refresh-interval``)."""
        return _get(self._url, _Configuration, "/config").refresh_ms / 1000

    def jobs(self) -> Sequence[FlinkJob]:
        """The jobs it knows."""
        return known_jobs(self._url)

    def job(self, job_id: str) -> FlinkJob | None:
        """A job by its id; None where it is not known."""
        return next((job for job in self.jobs() if job.job_id == job_id), None)

    def restored_from(self, job_id: str) -> str | None:
        """Return the checkpoint or savepoint that a job was started from, or None."""
        latest = _get(self._url, _Checkpoints, f"/jobs/{job_id}/checkpoints").latest
        return latest.restored.external_path if latest.restored is not None else None

    def details(self, job_id: str) -> RunningJob:
        """A job that it knows, as it is now."""
        job = _get(self._url, _Details, f"/jobs/{job_id}")
        latest = _get(self._url, _Checkpoints, f"/jobs/{job_id}/checkpoints").latest
        completed, failed = latest.completed, latest.failed
        path = completed.external_path if completed is not None else None
        # A savepoint that failed says nothing of the job's checkpoints.
        newer = (
            failed is not None
            and not failed.is_savepoint
            and (completed is None or failed.id > completed.id)
        )
        return RunningJob(
            FlinkJob(job.jid, job.name, job.state),
            [
                f"{_shown(vertex.name)}: {vertex.status}"
                for vertex in job.vertices
                if vertex.status != "RUNNING"
            ],
            path if path and path != _NO_PATH else None,
            _ended_with(latest),
            _shown(failed.failure_message or "no reason given")
            if failed is not None and newer
            else None,
        )

    def stop(self, job_id: str, folder: str, trigger_id: str, *, drain: bool, native: bool) -> None:
        """Have a job stopped with a savepoint in a folder; nothing new under a known trigger id."""
        body = {
            "targetDirectory": folder,
            "drain": drain,
            "formatType": "NATIVE" if native else "CANONICAL",
            "triggerId": trigger_id,
        }
        _ask(self._url, f"/jobs/{job_id}/stop", body)

    def stopping(self, job_id: str, trigger_id: str) -> StopAttempt | None:
        """How far a stop is; None where it was not asked for, or is forgotten: five minutes after
        it ended (``rest.async.store-duration``), or with its JobManager."""
        try:
            stop = _get(self._url, _Stop, f"/jobs/{job_id}/savepoints/{trigger_id}")
        except UnknownToFlink:
            return None
        done = stop.operation
        if stop.status.id == "IN_PROGRESS" or done is None:
            return StopAttempt()
        if done.cause is not None or done.location is None:
            return StopAttempt(problem=_reason(done.cause))
        return StopAttempt(savepoint=done.location)


# -- what it answers -------------------------------------------------------------------------------


class _Job(BaseModel):
    jid: str
    name: str
    state: str
    began: Annotated[int, Field(alias="start-time")] = 0
    ended: Annotated[int, Field(alias="end-time")] = -1


class _Overview(BaseModel):
    jobs: Annotated[list[_Job], FailFast()]  # an error for each of millions would take gigabytes


class _Configuration(BaseModel):
    version: Annotated[str, Field(alias="flink-version")]
    refresh_ms: Annotated[int, Field(alias="refresh-interval", ge=0, le=86_400_000)] = 3000


class _Vertex(BaseModel):
    name: str
    status: str


class _Details(BaseModel):
    jid: str
    name: str
    state: str
    vertices: Annotated[list[_Vertex], FailFast()]


class _Completed(BaseModel):
    id: int
    external_path: str | None = None


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


def _ended_with(latest: _Latest) -> tuple[int, str] | None:
    savepoint, completed = latest.savepoint, latest.completed
    if savepoint is None or not savepoint.external_path:
        return None
    if completed is not None and completed.id > savepoint.id:
        return None
    return savepoint.id, savepoint.external_path


def _reason(cause: _Cause | None) -> str:
    """Return the first and the innermost message of a Java stack trace, without secrets."""
    lines = [line.strip() for line in (cause.trace if cause is not None else "").splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    messages = [*lines[:1], *causes[-1:]][:_CAUSE_LINES]
    texts = (_shown(line.rpartition("Exception: ")[2].rstrip(".")) for line in messages)
    return ": ".join(texts) or "no reason given"


def _shown(text: str) -> str:
    """Return Flink's text as it may be shown and saved: without secrets, not endless."""
    # What is cut off may be the end of a secret, which is hidden to the end of the text then.
    return clipped(printable(redact_secrets(text[: 10 * _LONGEST_TEXT])), _LONGEST_TEXT)


# -- how it is asked -------------------------------------------------------------------------------


def _get(url: str, of: type[_Answer], path: str) -> _Answer:
    try:
        return of.model_validate_json(_ask(url, path))
    except ValidationError as error:
        raise _no_job_manager(url) from error


def check_address(url: str) -> None:
    """Raise UsageError unless this is the http or https address of a host, without a user."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.username is None
        parts.port  # noqa: B018 - raises ValueError where it is no port
    except ValueError:
        usable = False
    if not usable:
        # The address itself is not shown: it may hold a password.
        raise UsageError("--flink-rest: not an address of the form http://host:port")


def _ask(url: str, path: str, body: object = None) -> bytes:
    """Return the answer to ``GET <url><path>``, or to ``POST`` with a body, which is sent as JSON.

    Raises:
        UsageError: the url is no http or https address.
        UnknownToFlink: the JobManager does not know what the path names (404).
        FlinkRestError: it did not answer in time, or refused.
    """
    check_address(url)
    parts, where = urlsplit(url), _where(url)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Content-Type": "application/json"},
    )
    answer: Future[bytes] = Future()
    # In a thread that is left behind at the deadline: TIMEOUT is of one read, and a service that
    # sends a byte now and then would never reach it.
    threading.Thread(target=_send, args=(request, answer), daemon=True).start()
    if not wait([answer], DEADLINE).done:
        raise FlinkRestError(f"{where}: no answer: not complete after {DEADLINE:.0f} s")
    try:
        content = answer.result()
    except urllib.error.HTTPError as error:
        kind = UnknownToFlink if error.code == http.HTTPStatus.NOT_FOUND else FlinkRestError
        raise kind(f"{where}: answered {error.code} {_shown(str(error.reason))}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FlinkRestError(f"{where}: no answer: {_shown(str(reason))}") from error
    if len(content) > _LARGEST_ANSWER:
        raise _no_job_manager(url)
    return content


def _send(request: urllib.request.Request, answer: Future[bytes]) -> None:
    """Send a request, and put the body of its answer or the error into ``answer``."""
    try:
        # Without the environment's proxies: they are for the world outside, not for a JobManager.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=TIMEOUT) as response:
            answer.set_result(response.read(_LARGEST_ANSWER + 1))
    except Exception as error:  # raised again in the thread that asked
        answer.set_exception(error)


def _no_job_manager(url: str) -> FlinkRestError:
    """Something answers there, and not as a JobManager does."""
    return FlinkRestError(f"{_where(url)}: what answers there is no JobManager")


def _where(url: str) -> str:
    return f"the JobManager at {urlsplit(url).hostname}"
