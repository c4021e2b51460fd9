"""Find a job, or a savepoint, among those that Flink's JobManager lists: pure."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from migrate.cutover.facts import KnownJob, Savepoint
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.model.errors import Refused


def choose_job(jobs: Sequence[FlinkJob], wanted: str) -> FlinkJob:
    """Return the job of a name or an id: the one that runs, else the newest that has ended.

    Raises:
        Refused: there is none, or several run.
    """
    matching = [job for job in jobs if wanted in (job.job_id, job.name)]
    running = [job for job in matching if not job.ended]
    if len(running) > 1:
        ids = ", ".join(job.job_id for job in running)
        raise Refused([f"flink.job {wanted}: several jobs have this name: {ids}; name an id"])
    if matching:
        return running[0] if running else max(matching, key=lambda job: job.began_ms)
    names = sorted({job.name for job in jobs if not job.ended})
    has = f"it runs {', '.join(names)}" if names else "it runs no job"
    raise Refused([f"flink.job {wanted}: Flink has no such job; {has}"])


def job_started_again(
    jobs: Sequence[KnownJob],
    savepoint: str | None,
    *,
    job_id: str | None = None,
    name: str | None = None,
    ended_ms: int | None = None,
) -> FlinkJob | None:
    """Return the newest job that has gone on with the work of the one that we stopped, or None.

    Such a job was restored from the savepoint, or has the id or the name of the stopped job and
    began after that had ended. It counts whether it runs or has ended: its output is newer than
    the savepoint.

    Args:
        jobs: the jobs that the JobManager lists.
        savepoint: the savepoint that the job was stopped with.
        job_id: the id of the stopped job.
        name: the name of the stopped job.
        ended_ms: when it ended, in milliseconds of the epoch. None where Flink had forgotten the
            job by then: all others of its name are newer.
    """

    def is_newer(known: KnownJob) -> bool:
        job = known.job
        if same_savepoint(known.restored_from, savepoint):
            return True
        if job.job_id == job_id:
            return not job.ended or (ended_ms is not None and job.began_ms >= ended_ms)
        return job.name == name and job.began_ms >= (ended_ms or 0)

    return _newest(known.job for known in jobs if is_newer(known))


def job_started_since(
    jobs: Sequence[KnownJob], savepoint: Savepoint, wanted: str | None
) -> FlinkJob | None:
    """Return the newest job that has gone on with the work of one that others stopped, or None.

    As ``job_started_again``, but only the savepoint tells when the job was stopped: a job of that
    name counts where it still runs, or began after the savepoint was written.

    Args:
        jobs: the jobs that the JobManager lists.
        savepoint: the savepoint that the job was stopped with.
        wanted: the name or the id of the job, or None where the spec names none.
    """
    written_at = savepoint.written_at

    def is_newer(known: KnownJob) -> bool:
        job = known.job
        if same_savepoint(known.restored_from, savepoint.pointer):
            return True
        since = written_at is not None and job.began_ms > written_at
        return wanted in (job.job_id, job.name) and (not job.ended or since)

    return _newest(known.job for known in jobs if is_newer(known))


def _newest(jobs: Iterable[FlinkJob]) -> FlinkJob | None:
    return max(jobs, key=lambda job: job.began_ms, default=None)


def same_savepoint(restored_from: str | None, savepoint: str | None) -> bool:
    """Compare two paths of savepoints, which may differ in scheme and host.

    The name alone is proof where Flink has chosen it: it ends with a random number
    (``savepoint-<part of the job id>-<random>``).
    """
    if restored_from is None or savepoint is None:
        return False
    first, second = (_bare_path(path) for path in (restored_from, savepoint))
    name = posixpath.basename(first)
    return first == second or (name.startswith("savepoint-") and name == posixpath.basename(second))


def _bare_path(path: str) -> str:
    return urlsplit(path).path.rstrip("/").removesuffix("/_metadata")


def reported_savepoint(
    savepoints: Sequence[Savepoint], reported: tuple[int, str] | None
) -> Savepoint | None:
    """Return the savepoint that Flink reports, by its number and its own name, or None.

    A job that is started again under a fixed id has older savepoints beside it, some of them with
    higher numbers.

    Args:
        savepoints: the savepoints in the job's folder.
        reported: the number and the path that Flink reports.
    """
    if reported is None:
        return None
    number, path = reported
    name = posixpath.basename(path.rstrip("/"))
    return next(
        (
            savepoint
            for savepoint in savepoints
            if savepoint.number == number
            and posixpath.basename(savepoint.pointer.rstrip("/")) == name
        ),
        None,
    )
