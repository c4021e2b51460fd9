"""Among the jobs that Flink lists, find one that has continued the work of a stopped job."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from decoder.storage import checkpoint_number
from migrate.inputs.flink.job_id import job_id_of
from migrate.storage.files import is_same_place

if TYPE_CHECKING:
    from migrate.inputs.flink.rest_api import FlinkJob

    # A job, and the path of the checkpoint or savepoint from which it was restored, if any.
    RestoredJob = tuple[FlinkJob, str | None]


def hidden_start(jobs: Iterable[RestoredJob], own: Sequence[FlinkJob], ended_ms: int) -> str | None:
    """Return a message about a later job that may be the restarted job, or None.

    After a recovery, Flink does not report from which savepoint such a job was first started.

    Args:
        jobs: the jobs that the JobManager lists.
        own: the stopped job, if it is among them.
        ended_ms: the time when the stopped job ended, in epoch milliseconds.
    """
    for job, path in jobs:
        if job in own or job.began_ms < ended_ms or path is None or checkpoint_number(path) is None:
            continue
        # After a recovery, Flink reports that the job was restored from its own checkpoint, and no
        # longer reports the savepoint from which the job was first started. With
        # execution.checkpointing.create-subdir: false, the name of the checkpoint directory is not
        # a job ID.
        if job_id_of(posixpath.dirname(path)) in (None, job.job_id):
            return f"job {job.job_id} ({job.name}) started later, and has recovered from {path}"
    return None


def is_same_savepoint(first: str | None, second: str | None) -> bool:
    """Return whether two paths refer to one savepoint; ignore the scheme and host (or bucket).

    If Flink chose the directory name (``savepoint-<part of job id>-<random>``), the name is
    sufficient. Links in local paths are resolved.
    """
    if first is None or second is None:
        return False
    if is_same_place(first.removesuffix("/_metadata"), second.removesuffix("/_metadata")):
        return True
    paths = [urlsplit(path).path.rstrip("/").removesuffix("/_metadata") for path in (first, second)]
    names = [posixpath.basename(path) for path in paths]
    return paths[0] == paths[1] or (names[0] == names[1] and names[0].startswith("savepoint-"))


def is_any_savepoint(path: str | None, *savepoints: str | None) -> bool:
    """Return whether a path refers to one of the savepoints; see ``is_same_savepoint``."""
    return any(is_same_savepoint(path, savepoint) for savepoint in savepoints)


def job_started_again(
    jobs: Iterable[RestoredJob],
    savepoint: str,
    ended_ms: int | None,
    *,
    written_in: str | None = None,
    stopped_job: str | None,
    job_name: str | None = None,
) -> FlinkJob | None:
    """Return the newest job that has continued the work of the stopped job, or None.

    A job counts if it was restored from the savepoint. ``stopped_job`` and ``job_name`` determine
    which other jobs count. A job that has ended can also count, because its output is newer than
    the savepoint.

    Args:
        jobs: the jobs that the JobManager lists.
        savepoint: the savepoint with which the job was stopped.
        ended_ms: the time when the stopped job ended, in epoch milliseconds, if known.
        written_in: the path at which Flink wrote the savepoint, if known; a restore from this path
            also counts.
        stopped_job: the stopped job's ID or name. A job with this ID or name counts if it is
            running or started after ``ended_ms``.
        job_name: the stopped job's name. Other jobs with this name count if they started after
            ``ended_ms``, or if ``ended_ms`` is missing.
    """

    def is_newer(job: FlinkJob) -> bool:
        if stopped_job in (job.job_id, job.name):
            return not job.ended or (ended_ms is not None and job.began_ms >= ended_ms)
        return job.name == job_name and job.began_ms >= (ended_ms or 0)

    newer = (
        job
        for job, restored_from in jobs
        if is_any_savepoint(restored_from, savepoint, written_in) or is_newer(job)
    )
    return max(newer, key=began, default=None)


def began(job: FlinkJob) -> int:
    return job.began_ms
