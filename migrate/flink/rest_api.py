"""Asks a Flink JobManager over its REST interface which jobs it knows, and which have not ended.

A group without members is not proof that a job has stopped: KafkaSource assigns partitions by
itself. The JobManager knows.

Source: org.apache.flink.runtime.rest.messages.JobsOverviewHeaders, org.apache.flink.api.common.
JobStatus @ Flink 2.2.0.
"""

from __future__ import annotations

import http
import http.client
import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, Field, ValidationError

from migrate.errors import ServiceError, UsageError

# How long one read or connect may take, in seconds: an overview is at hand, and small.
TIMEOUT = 10.0
# An overview tells some 500 bytes a job; this bounds what a wrong address may send.
_LARGEST_ANSWER = 64 * 2**20

# The states a job never leaves. SUSPENDED is not among them: another JobManager takes it up again.
_ENDED = frozenset({"FINISHED", "CANCELED", "FAILED"})


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


class _Job(BaseModel):
    jid: str
    name: str
    state: str
    began: Annotated[int, Field(alias="start-time")] = 0
    ended: Annotated[int, Field(alias="end-time")] = -1


class _Overview(BaseModel):
    jobs: list[_Job]


def known_jobs(url: str) -> tuple[FlinkJob, ...]:
    """The jobs it knows, as ``GET <url>/jobs/overview`` tells; it forgets those that have ended,
    after an hour by default (``jobstore.expiration-time``) and when it is started anew.

    Args:
        url: where the JobManager's web interface is, ``http://host:8081`` say.

    Raises:
        UsageError: it is no http or https address.
        FlinkRestError: it did not answer in time, or is no JobManager.
    """
    body = ask(url, "/jobs/overview")
    try:
        overview = _Overview.model_validate_json(body)
    except ValidationError as error:
        raise no_job_manager(url) from error
    return tuple(
        FlinkJob(job.jid, job.name, job.state, job.began, job.ended if job.ended >= 0 else None)
        for job in overview.jobs
    )


def ask(url: str, path: str, body: object = None) -> bytes:
    """What the JobManager answers to ``GET <url><path>``; with a body, which is sent as JSON, to
    ``POST``.

    Raises:
        UsageError: it is no http or https address.
        UnknownToFlink: it knows nothing of that name (404).
        FlinkRestError: it did not answer in time, or refused.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        # The address itself is not shown: it may hold a password.
        raise UsageError("--flink-rest: not an address of the form http://host:port")
    where = _where(url)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}{path}",
        data=json.dumps(body).encode() if body is not None else None,
        headers={"Content-Type": "application/json"},
    )
    try:
        with _opener().open(request, timeout=TIMEOUT) as answer:
            found: bytes = answer.read(_LARGEST_ANSWER + 1)
    except urllib.error.HTTPError as error:
        kind = UnknownToFlink if error.code == http.HTTPStatus.NOT_FOUND else FlinkRestError
        raise kind(f"{where}: answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise FlinkRestError(f"{where}: no answer: {reason}") from error
    if len(found) > _LARGEST_ANSWER:
        raise no_job_manager(url)
    return found


def no_job_manager(url: str) -> FlinkRestError:
    """Something answers there, and not as a JobManager does."""
    return FlinkRestError(f"{_where(url)}: what answers there is no JobManager")


def _where(url: str) -> str:
    return f"the JobManager at {urlsplit(url).hostname}"


def _opener() -> urllib.request.OpenerDirector:
    """Without the environment's proxies: they are for the world outside, not for a JobManager."""
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))
