"""Determine whether a checkpoint's job is still running, for every command that moves positions.

The judgment has five outcomes (``JobState``):

- RUNNING: Flink lists the job, and the job has not ended. The job has written, or might still
  write, output that is newer than the checkpoint. If Flink does not list the job's ID, any other
  job that has not ended may be the job, so the outcome is also RUNNING, unless all of these jobs
  started before the stop.
- RESTARTED: Flink lists a job that continued the work of this job; the listed job may also have
  ended. Such a job either resumed from the checkpoint or savepoint, or has the stopped job's ID or
  name and started later.
- STOPPED: the metadata of this savepoint shows that the job was stopped with it. Only Flink can
  show whether the job was restarted later. If Flink lists the job as FINISHED with this savepoint
  and lists no job that continued it, the job was not restarted.
- ENDED: Flink lists the job as canceled, failed, or finished without this savepoint. Usually, this
  checkpoint is the job's newest checkpoint. If the job completed a newer checkpoint, the outcome is
  also ENDED, but the job has output that is newer than this checkpoint (``Judgment.is_beyond``).
- UNKNOWN: any other evidence. Every move then requires an override if the queried JobManager either
  does not rule out a restart, or does not list the job of a savepoint (``Judgment.is_doubtful``).
  For a retained checkpoint without evidence, a wait of two checkpoint intervals reveals a running
  job (``migrate.inputs.watch``). However, the absence of a newer checkpoint does not prove that the
  job has stopped. A recovering job takes no checkpoint, and a job that was restarted from the
  checkpoint writes to a different directory.

A consumer group does not show whether the job is running, because KafkaSource does not join its
group.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING

from decoder.urls import redact_url
from migrate.inputs.flink.job_id import FIXED_JOB_ID, SAVEPOINT_NAME, job_id_of
from migrate.inputs.flink.restarted_job import began, hidden_start, job_started_again
from migrate.inputs.watch import CLOCKS_OF_STORAGE
from migrate.model.log import timed
from migrate.model.positions import CLOCK_DIFFERENCE, Origin
from migrate.storage.uris import is_uri

if TYPE_CHECKING:
    from migrate.inputs.flink.rest_api import CheckpointNumbers, FlinkJob
    from migrate.inputs.flink.restarted_job import RestoredJob


class JobState(Enum):
    """The state of a checkpoint's job; see the module docstring."""

    RUNNING = auto()
    RESTARTED = auto()
    STOPPED = auto()
    ENDED = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Judgment:
    """The judgment and its evidence.

    Attributes:
        text: the evidence in one line.
        is_beyond: True if the job has written output that is newer than the checkpoint, or might do
            so.
        runs: True if the job, or the job that continued its work, has not ended.
        is_same_job: True if the running job has the ID of the job that wrote the checkpoint.
        asked_flink: True if a JobManager was queried.
        is_doubtful: True if the job may have been restarted according to the JobManager's answer,
            and waiting would not show whether it was.
        other_running: a line about a running job other than the ended job; empty if there is none.
        how_to_stop: as in ``Origin``.
    """

    state: JobState
    text: str
    is_beyond: bool = False
    runs: bool = False
    is_same_job: bool = False
    asked_flink: bool = False
    is_doubtful: bool = False
    other_running: str = ""
    how_to_stop: str = ""

    @property
    def has_ended(self) -> bool:
        """Return whether Flink lists the job as ended, and lists no running job that continued it.

        False for a savepoint's job that was stopped with this savepoint.
        """
        return self.state in (JobState.ENDED, JobState.RESTARTED) and not self.runs

    @property
    def way_to_savepoint(self) -> str:
        """Return an instruction for getting a savepoint from which to move.

        A job that has ended cannot be stopped, so the instruction starts with its last checkpoint.
        """
        if not self.has_ended:
            return self.how_to_stop
        return (
            "move from the newest savepoint or retained checkpoint of the ended job, or restart "
            f"the job from it, {self.how_to_stop}"
        )


# -- the judgment ----------------------------------------------------------------------------------


def judge(origin: Origin, flink_rest: str | None) -> Judgment:
    """Determine whether a checkpoint's job is still running.

    Args:
        origin: the origin of the positions.
        flink_rest: the address of the JobManager; None to query no JobManager.

    Raises:
        FlinkRestError: the JobManager did not answer, or it denied the request.
        UsageError: ``flink_rest`` is not an address.
    """
    if flink_rest is None:
        return judge_jobs(origin, None)
    from migrate.inputs.flink.rest_api import JobManager, read_restored_jobs

    with timed(f"querying Flink at {redact_url(flink_rest)}"):
        jobs = read_restored_jobs(flink_rest)
        if origin.written_at is not None:
            # The job times come from the JobManager's clock, so convert the checkpoint's time to
            # that clock.
            ahead_ms = JobManager(flink_rest).clock_ahead_ms([job for job, _ in jobs])
            origin = replace(origin, written_at=origin.written_at + round(ahead_ms))
        judgment = judge_jobs(origin, jobs)
        if judgment.state in (JobState.STOPPED, JobState.ENDED):
            judgment = _with_newest_checkpoint(judgment, origin, jobs, flink_rest)
    return judgment


def _with_newest_checkpoint(
    judgment: Judgment, origin: Origin, jobs: Sequence[RestoredJob], flink_rest: str
) -> Judgment:
    """Compare the checkpoint with the newest checkpoint that Flink lists for the ended job.

    Just after a stop, Flink may still list the checkpoints from before the stop, so wait until
    Flink has refreshed its answers.
    """
    from migrate.inputs.flink.rest_api import JobManager

    flink, own = JobManager(flink_rest), _own_jobs(origin, jobs)
    for _ in flink.until_refreshed():
        is_newest = False
        for job in own:
            numbers = flink.checkpoint_numbers(job.job_id)
            if progress := _progress_after(origin, numbers):
                text = f"job {job.job_id} has {progress} after checkpoint {origin.number}"
                state = JobState.RESTARTED if origin.stopped else JobState.ENDED
                return replace(judgment, state=state, text=text, is_beyond=True)
            is_newest |= origin.number in (
                (numbers.completed,) if origin.stopped else (numbers.completed, numbers.restored)
            )
        if is_newest:
            return judgment
    text = f"Flink does not list this {origin.title} as the job's newest"
    text = f"{_unknown(origin)}; {text}"
    return replace(judgment, state=JobState.UNKNOWN, text=text, is_doubtful=True)


def _progress_after(origin: Origin, numbers: CheckpointNumbers) -> str | None:
    """Return a phrase about a checkpoint that is newer than the origin, or None."""
    for number, verb in ((numbers.completed, "completed"), (numbers.restored, "recovered from")):
        if number is not None and number > origin.number:
            return f"{verb} checkpoint {number}"
    return None


def judge_jobs(origin: Origin, jobs: Sequence[RestoredJob] | None) -> Judgment:
    """Judge by the jobs that a JobManager lists; None means that no JobManager was queried."""
    return replace(_judge_jobs(origin, jobs), how_to_stop=origin.how_to_stop)


def _judge_jobs(origin: Origin, jobs: Sequence[RestoredJob] | None) -> Judgment:
    if jobs is None:
        if origin.stopped:
            return Judgment(JobState.STOPPED, STOPPED_TEXT)
        return Judgment(JobState.UNKNOWN, _unknown(origin))
    own = _own_jobs(origin, jobs)
    continued = _job_that_continued(origin, jobs, own)
    if continued is not None:
        text = f"job {continued.job_id} ({continued.name}), {continued.state}, continued the job"
        text += f" of this {origin.title}"
        return Judgment(JobState.RESTARTED, text, True, not continued.ended, asked_flink=True)
    running, other = [job for job, _ in jobs if not job.ended], ""
    if running:
        job = min(running, key=lambda job: job not in own)
        other = f"Flink lists job {job.job_id} ({job.name}) as {job.state}"
        # If this condition is false, Flink lists the job as ended, or all running jobs started
        # before the stop.
        if job in own or not (own or all(_is_unrelated(origin, job) for job in running)):
            # A savepoint's name contains only the first digits of the job ID, so it does not prove
            # that the job is the same.
            is_same = job.job_id == _digits_of_job(origin)
            text = other
            if is_same:
                text += f", and this job wrote {origin.title}"
            elif job not in own:
                text += ", and migrate cannot determine whether this is the job that you move"
            return Judgment(
                JobState.RUNNING, text, True, True, is_same_job=is_same, asked_flink=True
            )
    if own and origin.stopped:
        text = f"{STOPPED_TEXT}, Flink lists it (job {own[0].job_id}, {own[0].name}) as FINISHED, "
        text += "and Flink lists no job that was restored from it"
        if problem := _doubt_of_stop(jobs, own):
            return _doubt(origin, problem, other)
        return Judgment(JobState.STOPPED, text, asked_flink=True, other_running=other)
    ended_ms = _end_of(own) if own else origin.written_at or 0
    if problem := hidden_start(jobs, own, ended_ms):
        return _doubt(origin, problem, other)
    if own:
        text = f"Flink lists job {own[0].job_id} as {own[0].state}, and no other job is running"
        if running:
            text = f"Flink lists job {own[0].job_id} ({own[0].name}), which wrote this "
            text += f"{origin.title.split()[0]}, as {own[0].state}, and lists no job that was "
            text += "restored from it"
        return Judgment(JobState.ENDED, text, asked_flink=True, other_running=other)
    digits = _digits_of_job(origin)
    text = f"the path of the {origin.title.split()[0]} does not show its job"
    if digits is not None:
        text = f"the JobManager does not list job {digits}, which wrote this "
        text += f"{origin.title.split()[0]}"
    return replace(_doubt(origin, text, other), is_doubtful=origin.stopped)


def _doubt(origin: Origin, problem: str, other_running: str) -> Judgment:
    return Judgment(
        JobState.UNKNOWN,
        f"{_unknown(origin)}; {problem}",
        asked_flink=True,
        is_doubtful=True,
        other_running=other_running,
    )


STOPPED_TEXT = "the job was stopped with this savepoint"


def _unknown(origin: Origin) -> str:
    if origin.stopped:
        return f"{STOPPED_TEXT}; it is unknown whether the job was restarted since the stop"
    return f"cannot determine whether the {origin.reader} is still running"


def _digits_of_job(origin: Origin) -> str | None:
    """Return the ID of the job that wrote the checkpoint, or the first digits of the ID.

    The path of a ``chk-<n>`` contains the ID, and the name of a savepoint contains the first
    digits of the ID. If the path of a copy contains neither, the path at which Flink wrote the
    original is used. Return None if the ID is unknown.
    """
    for path in (origin.pointer, origin.copied_from):
        if origin.kind != "checkpoint" or path is None:
            continue
        savepoint = SAVEPOINT_NAME.fullmatch(posixpath.basename(path))
        digits = savepoint[1] if savepoint is not None else job_id_of(posixpath.dirname(path))
        if digits is not None and not FIXED_JOB_ID.startswith(digits):
            return digits
    return None


def _own_jobs(origin: Origin, jobs: Iterable[RestoredJob]) -> list[FlinkJob]:
    """Return the jobs whose ID is that of the job that wrote the checkpoint."""
    digits = _digits_of_job(origin)
    return [job for job, _ in jobs if digits is not None and job.job_id.startswith(digits)]


def _is_unrelated(origin: Origin, job: FlinkJob) -> bool:
    """Return whether a job with a different ID started before the stop that wrote this savepoint.

    Such a job cannot be the restarted job.
    """
    if not origin.stopped or origin.written_at is None or _digits_of_job(origin) is None:
        return False
    # If the savepoint was copied, ``written_at`` may be the time of the copy, which may be later
    # than the stop.
    return origin.copied_from is None and (
        job.began_ms < origin.written_at - 1000 * _clocks_of(origin)
    )


def _doubt_of_stop(jobs: Sequence[RestoredJob], own: Sequence[FlinkJob]) -> str | None:
    """Return the reason to suspect that one of the listed jobs is the restarted job, or None."""
    for job in own:
        if not job.is_finished:
            return f"Flink lists job {job.job_id} as {job.state}, not as FINISHED"
    return hidden_start(jobs, own, _end_of(own))


def _end_of(own: Sequence[FlinkJob]) -> int:
    return max((job.ended_ms or 0 for job in own), default=0)


def _job_that_continued(
    origin: Origin, jobs: Sequence[RestoredJob], own: Sequence[FlinkJob]
) -> FlinkJob | None:
    """Return a job that has continued the work of the checkpoint's job, or None."""
    if origin.kind != "checkpoint":
        return None
    newest = max(own, key=began, default=None)
    if origin.stopped and newest is not None and _began_after(origin, newest):
        return newest
    if not origin.stopped:
        # The job itself may have recovered from this checkpoint, so consider only the other jobs.
        others = [(job, path) for job, path in jobs if job not in own]
        if newest is None or not newest.ended:
            return job_started_again(
                others, origin.pointer, None, written_in=origin.copied_from, stopped_job=None
            )
        jobs = others
    ended_ms = newest.ended_ms if newest is not None and newest.ended else origin.written_at
    return job_started_again(
        jobs,
        origin.pointer,
        ended_ms,
        written_in=origin.copied_from,
        stopped_job=newest.job_id if newest is not None else None,
        job_name=newest.name if newest is not None else None,
    )


def _began_after(origin: Origin, job: FlinkJob) -> bool:
    """Return whether a job started after the savepoint was written.

    The clocks may differ, so the start must be later by more than ``CLOCK_DIFFERENCE``.
    """
    return origin.written_at is not None and (
        job.began_ms > origin.written_at + 1000 * _clocks_of(origin)
    )


def _clocks_of(origin: Origin) -> float:
    return CLOCKS_OF_STORAGE if is_uri(origin.pointer) else CLOCK_DIFFERENCE
