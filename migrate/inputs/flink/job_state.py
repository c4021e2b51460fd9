"""Judge whether a checkpoint's job is still running, for every command that moves positions.

The judgment has five outcomes (``JobState``):

- RUNNING: Flink lists the job, and it has not ended. The job's further output is beyond the
  checkpoint. If Flink does not list this job, any job that has not ended may be this job and has
  the same outcome.
- RESTARTED: Flink lists a job that continued this job, even if the listed job has ended. Such a job
  either resumed from the checkpoint or savepoint, or has the stopped job's ID or name and started
  later.
- STOPPED: the job ended with this savepoint, according to the savepoint itself. Only Flink can show
  whether the job was restarted later. If Flink lists the job as FINISHED with this savepoint and
  lists no job that continued it, the job was not restarted.
- ENDED: Flink lists the job as canceled, failed, or finished otherwise, and this checkpoint is its
  newest checkpoint. If a newer checkpoint was completed, the job's output is beyond this
  checkpoint.
- UNKNOWN: any other evidence. If a JobManager was queried, and the job may have been restarted or
  the JobManager does not list the job of a savepoint, every move is refused without an override
  (``Judgment.is_doubtful``). For a retained checkpoint without evidence, a wait of two checkpoint
  intervals reveals a running job (``wait_for_checkpoint``). The absence of a newer checkpoint is
  not proof, because a recovering job takes no checkpoint. In addition, a job that was restarted
  from the checkpoint writes to a different directory.

A consumer group does not show whether the job is running, because KafkaSource does not join its
group.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from decoder import DecodeError
from decoder.storage import METADATA_FILE, checkpoint_number, join
from decoder.urls import redact_url
from migrate.inputs.flink.job_id import FIXED_JOB_ID, SAVEPOINT_NAME, job_id_of
from migrate.inputs.flink.newer_checkpoints import find_newer_checkpoints
from migrate.inputs.watch import (
    CLOCKS_OF_STORAGE,
    LONGEST_WAIT,
    NO_WATCH,
    Watch,
    possible_wait,
    wait_for_sign,
)
from migrate.model.catalog import (
    JOB_HAS_LATER_OUTPUT,
    JOB_HAS_LATER_OUTPUT_AFTER_PLAN,
    JOB_HAS_NEWER_OFFSETS,
    JOB_KEPT_RUNNING,
    JOB_MAY_HAVE_RESTARTED,
    JOB_MAY_HAVE_RESTARTED_AFTER_PLAN,
    JOB_OVERWRITES_GROUP,
    JOB_RUNNING,
    JOB_RUNNING_AFTER_PLAN,
    READER_KEPT_RUNNING,
    SAVEPOINT_AGED,
    SAVEPOINT_AGED_AFTER_PLAN,
    SAVEPOINT_AGED_NOT_IN_FLINK,
    SAVEPOINT_AGED_NOT_IN_FLINK_AFTER_PLAN,
)
from migrate.model.errors import Refused
from migrate.model.log import log, timed
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.positions import CLOCK_DIFFERENCE, Origin
from migrate.model.warning import warn
from migrate.model.warning_catalog import (
    JOB_MAY_RUN,
    JOB_MAY_RUN_AND_OVERWRITE,
    JOB_MAY_RUN_ELSEWHERE,
    JOB_RAN_ON,
    OLD_SAVEPOINT,
    OLD_SAVEPOINT_NOT_IN_FLINK,
    OLD_SAVEPOINT_OF_PLAN,
    OLD_SAVEPOINT_UNCHECKED,
    QUERY_MAY_RUN,
)
from migrate.storage.files import Files, MissingExtra, is_same_place
from migrate.storage.uris import is_uri

if TYPE_CHECKING:
    from migrate.inputs.flink.rest_api import FlinkJob

    # A job, and the path of the checkpoint or savepoint from which it was restored, if any.
    RestoredJob = tuple[FlinkJob, str | None]

_DAY = 86_400


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
        is_beyond: True if the job has written output beyond the checkpoint, or might do so.
        runs: True if the job or the job that continued it has not ended.
        asked_flink: True if a JobManager was queried.
        is_doubtful: True if the JobManager's answer does not rule out a restart, and waiting would
            not reveal one.
        other_running: a line about a running job other than the ended job; empty if there is none.
        how_to_stop: as in ``Origin``.
    """

    state: JobState
    text: str
    is_beyond: bool = False
    runs: bool = False
    asked_flink: bool = False
    is_doubtful: bool = False
    other_running: str = ""
    how_to_stop: str = ""


# -- the judgment ----------------------------------------------------------------------------------


def judge(origin: Origin, flink_rest: str | None) -> Judgment:
    """Judge whether a checkpoint's job is still running.

    Args:
        origin: the origin of the positions.
        flink_rest: the address of the JobManager; None for no query.

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
            # The times of the jobs come from the JobManager's clock.
            ahead_ms = JobManager(flink_rest).clock_ahead_ms([job for job, _ in jobs])
            origin = replace(origin, written_at=origin.written_at + round(ahead_ms))
        judgment = judge_jobs(origin, jobs)
        if judgment.state in (JobState.STOPPED, JobState.ENDED):
            judgment = _with_newest_checkpoint(judgment, origin, jobs, flink_rest)
    return judgment


def _with_newest_checkpoint(
    judgment: Judgment, origin: Origin, jobs: Sequence[RestoredJob], flink_rest: str
) -> Judgment:
    """Compare the checkpoint with the newest checkpoint that Flink lists for the ended job."""
    from migrate.inputs.flink.rest_api import JobManager

    is_newest = False
    for job in _own_jobs(origin, jobs):
        numbers = JobManager(flink_rest).checkpoint_numbers(job.job_id)
        for number, verb in (
            (numbers.completed, "completed"),
            (numbers.restored, "recovered from"),
        ):
            if number is not None and number > origin.number:
                text = f"job {job.job_id} has {verb} checkpoint {number} after checkpoint "
                state = JobState.RESTARTED if origin.stopped else JobState.ENDED
                text += str(origin.number)
                return replace(judgment, state=state, text=text, is_beyond=True)
        is_newest |= origin.number in (
            (numbers.completed,) if origin.stopped else (numbers.completed, numbers.restored)
        )
    if is_newest:
        return judgment
    text = f"Flink does not list this {origin.title} as the job's newest"
    text = f"{_unknown(origin)}; {text}"
    return replace(judgment, state=JobState.UNKNOWN, text=text, is_doubtful=True)


def judge_jobs(origin: Origin, jobs: Sequence[RestoredJob] | None) -> Judgment:
    """Judge by the jobs that a JobManager lists; ``jobs`` is None if none was queried."""
    return replace(_judge_jobs(origin, jobs), how_to_stop=origin.how_to_stop)


def _judge_jobs(origin: Origin, jobs: Sequence[RestoredJob] | None) -> Judgment:
    if jobs is None:
        if origin.stopped:
            return Judgment(JobState.STOPPED, _STOPPED)
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
        # Otherwise, the job has ended according to Flink, or all running jobs started before the
        # stop.
        if job in own or not (own or all(_is_unrelated(origin, job) for job in running)):
            return Judgment(JobState.RUNNING, other, True, True, asked_flink=True)
    if own and origin.stopped:
        text = f"{_STOPPED}, and Flink lists no job that was restored from it"
        if problem := _doubt_of_stop(jobs, own):
            return _doubt(origin, problem, other)
        return Judgment(JobState.STOPPED, text, asked_flink=True, other_running=other)
    ended_ms = _end_of(own) if own else origin.written_at or 0
    if problem := hidden_start(jobs, own, ended_ms):
        return _doubt(origin, problem, other)
    if own:
        text = f"Flink lists job {own[0].job_id} as {own[0].state}"
        text += ", and no other job is running" if not running else ""
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


_STOPPED = "the job was stopped with this savepoint"


def _unknown(origin: Origin) -> str:
    if origin.stopped:
        return f"{_STOPPED}; it is unknown whether the job was restarted since the stop"
    return f"cannot determine whether the {READERS[origin.kind]} is still running"


def _digits_of_job(origin: Origin) -> str | None:
    """Return the ID of the job that wrote the checkpoint, or its first digits; None if unknown.

    The path of a ``chk-<n>`` contains the ID, and the name of a savepoint contains its first
    digits. For a copy, the path is the original path at which Flink wrote it.
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
    """Return the jobs with the ID of the job that wrote the checkpoint."""
    digits = _digits_of_job(origin)
    return [job for job, _ in jobs if digits is not None and job.job_id.startswith(digits)]


def _is_unrelated(origin: Origin, job: FlinkJob) -> bool:
    """Return whether a job with a different ID started before the stop with this savepoint."""
    if not origin.stopped or origin.written_at is None or _digits_of_job(origin) is None:
        return False
    # The time of a copy may be later than the stop.
    return origin.copied_from is None and (
        job.began_ms < origin.written_at - 1000 * _clocks_of(origin)
    )


def _doubt_of_stop(jobs: Sequence[RestoredJob], own: Sequence[FlinkJob]) -> str | None:
    """Return the reason to suspect that one of the listed jobs is the restarted job, or None."""
    for job in own:
        if job.state != "FINISHED":
            return f"Flink lists job {job.job_id} as {job.state}, not as FINISHED"
    return hidden_start(jobs, own, _end_of(own))


def _end_of(own: Sequence[FlinkJob]) -> int:
    return max((job.ended_ms or 0 for job in own), default=0)


def hidden_start(jobs: Iterable[RestoredJob], own: Sequence[FlinkJob], ended_ms: int) -> str | None:
    """Return a text about a later job whose recovery hides how it was first started, or None.

    Args:
        jobs: the jobs that the JobManager lists.
        own: the stopped job, if it is among them.
        ended_ms: the time when the stopped job ended, in epoch milliseconds.
    """
    for job, path in jobs:
        if job in own or job.began_ms < ended_ms or path is None or checkpoint_number(path) is None:
            continue
        # After a recovery, Flink lists the job's own checkpoint instead of its first start. With
        # execution.checkpointing.create-subdir: false, the directory name has no ID.
        if job_id_of(posixpath.dirname(path)) in (None, job.job_id):
            return f"job {job.job_id} ({job.name}) started later, and has recovered from {path}"
    return None


def _job_that_continued(
    origin: Origin, jobs: Sequence[RestoredJob], own: Sequence[FlinkJob]
) -> FlinkJob | None:
    """Return a job that has continued the work of the checkpoint's job, or None."""
    if origin.kind != "checkpoint":
        return None
    newest = max(own, key=_began, default=None)
    if origin.stopped and newest is not None and _began_after(origin, newest):
        return newest
    if not origin.stopped:
        # The job itself may have recovered from this checkpoint.
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
    """Return whether a job started after the savepoint was written, despite clock differences."""
    return origin.written_at is not None and (
        job.began_ms > origin.written_at + 1000 * _clocks_of(origin)
    )


def _clocks_of(origin: Origin) -> float:
    return CLOCKS_OF_STORAGE if is_uri(origin.pointer) else CLOCK_DIFFERENCE


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
    return max(newer, key=_began, default=None)


def _began(job: FlinkJob) -> int:
    return job.began_ms


# -- before a move ---------------------------------------------------------------------------------


def job_refusals(
    judgment: Judgment,
    *,
    allow_ran_on: bool,
    source_group: str | None = None,
    is_group: bool = False,
    saved: bool = False,
) -> list[Message]:
    """Return a refusal if the job is running, has later output, or may have been restarted.

    Args:
        judgment: the judgment.
        allow_ran_on: True to allow these cases with a warning, except for a running job that would
            overwrite a group's offsets.
        source_group: the consumer group whose committed offsets are the positions, if any. Such a
            group shows that the job was not restarted.
        is_group: True if the target is a group, which is refused while any job is running.
        saved: True if the positions come from a saved plan, which has its own options.
    """
    facts = {"evidence": judgment.text, "how_to_stop": judgment.how_to_stop}
    if is_group and judgment.other_running:
        return [JOB_OVERWRITES_GROUP(**facts | {"evidence": judgment.other_running})]
    if judgment.is_beyond and (not allow_ran_on or (judgment.runs and is_group)):
        if judgment.state is JobState.RUNNING:
            running = JOB_RUNNING_AFTER_PLAN if saved else JOB_RUNNING
            return [(JOB_OVERWRITES_GROUP if is_group else running)(**facts)]
        later = JOB_HAS_LATER_OUTPUT_AFTER_PLAN if saved else JOB_HAS_LATER_OUTPUT
        return [(JOB_HAS_NEWER_OFFSETS if is_group else later)(**facts)]
    if judgment.is_beyond:
        warn(JOB_RAN_ON(evidence=judgment.text))
    if judgment.is_doubtful and not allow_ran_on and source_group is None:
        return [(JOB_MAY_HAVE_RESTARTED_AFTER_PLAN if saved else JOB_MAY_HAVE_RESTARTED)(**facts)]
    return []


def check_job(
    origin: Origin,
    flink_rest: str | None,
    *,
    allow_ran_on: bool,
    source_group: str | None,
    saved: bool = False,
) -> Judgment:
    """Judge the job before a move to Spark or to a savepoint, and log the judgment.

    Warn that a Spark query may be running, because nothing but a newer batch shows this.

    Args:
        origin: the origin of the positions.
        flink_rest: as in ``judge``.
        allow_ran_on: as in ``job_refusals``.
        source_group: the consumer group whose committed offsets are the positions, if any.
        saved: as in ``job_refusals``.

    Raises:
        Refused: as in ``job_refusals``.
        FlinkRestError, UsageError: as in ``judge``.
    """
    if origin.kind == "batch":
        warn(QUERY_MAY_RUN())
    is_of_flink = origin.kind == "checkpoint" or origin.group is not None
    judgment = judge(origin, flink_rest if is_of_flink else None)
    if refusals := job_refusals(
        judgment, allow_ran_on=allow_ran_on, source_group=source_group, saved=saved
    ):
        raise Refused(refusals)
    if origin.stopped and not judgment.is_beyond:
        report_stop(judgment, origin, source_group, saved=saved)
    elif judgment.state is JobState.ENDED and not judgment.is_beyond:
        log.info(judgment.text)
    elif judgment.is_doubtful:
        warn(JOB_MAY_RUN(evidence=judgment.text))
    return judgment


def report_stop(
    judgment: Judgment, origin: Origin, source_group: str | None, *, saved: bool = False
) -> None:
    """Log that the job was stopped with the savepoint, and whether a restart was ruled out."""
    if days := days_since_stop(origin, judgment, source_group):
        if judgment.asked_flink:
            old = OLD_SAVEPOINT_UNCHECKED if saved else OLD_SAVEPOINT_NOT_IN_FLINK
        else:
            old = OLD_SAVEPOINT_OF_PLAN if saved else OLD_SAVEPOINT
        warn(old(days=days))
    if judgment.state is JobState.STOPPED and judgment.asked_flink:
        log.info(f"ok: {judgment.text}")
    elif source_group is not None:
        log.info(f"ok: {_STOPPED}, and group {source_group} has no newer commits")
    elif judgment.state is JobState.UNKNOWN:
        warn(JOB_MAY_RUN(evidence=judgment.text))
    else:
        log.info(
            f"{judgment.text}; use {option('flink_rest', 'URL')} to check whether it was restarted "
            "since the stop"
        )


def report_for_group(
    judgment: Judgment, origin: Origin, watch: Watch, source_group: str | None
) -> None:
    """Log why no job will overwrite a group's offsets, or warn that the reader may be running."""
    if origin.kind == "batch":
        warn(QUERY_MAY_RUN())
        log.info(
            "Spark does not commit to a group, so these offsets do not change until you rerun "
            "this command"
        )
    elif origin.stopped and not judgment.is_beyond:
        report_stop(judgment, origin, source_group)
    elif judgment.state is JobState.ENDED:
        log.info(judgment.text)
    elif judgment.state is JobState.UNKNOWN:
        proof = "stop the job with a savepoint"
        if judgment.asked_flink:
            warn(JOB_MAY_RUN(evidence=judgment.text))
        else:
            warn(JOB_MAY_RUN_AND_OVERWRITE(evidence=judgment.text))
            proof = f"add {option('flink_rest', 'URL')}, or {proof}"
        wait = watch.text
        if watch.wait is not None and watch.interval is not None:
            wait = (
                f"with {option('execute', True)}, `migrate` polls twice, {watch.wait:.0f} s apart"
            )
        log.info(f"{wait}; for proof, {proof}")


def days_since_stop(origin: Origin, judgment: Judgment, source_group: str | None) -> int:
    """Return a stop's age in days if nothing shows whether the job was restarted, else 0."""
    is_shown = judgment.state is JobState.STOPPED and judgment.asked_flink
    if not origin.stopped or judgment.is_beyond or is_shown or source_group is not None:
        return 0
    age = _age_of(origin)
    return int(age / _DAY) if age is not None else 0


def refuse_old_savepoint(
    origin: Origin, judgment: Judgment, source_group: str | None, *, saved: bool = False
) -> None:
    """Refuse a stop that is over a day old if nothing shows whether the job restarted."""
    if days := days_since_stop(origin, judgment, source_group):
        if judgment.asked_flink:
            aged = SAVEPOINT_AGED_NOT_IN_FLINK_AFTER_PLAN if saved else SAVEPOINT_AGED_NOT_IN_FLINK
        else:
            aged = SAVEPOINT_AGED_AFTER_PLAN if saved else SAVEPOINT_AGED
        raise Refused(aged(days=days))


def check_before_write(
    origin: Origin,
    judgment: Judgment,
    *,
    allow_ran_on: bool,
    source_group: str | None,
    refuses_old: bool = True,
    saved: bool = False,
    flink_rest: str | None = None,
    signs: Callable[[], Sequence[str]] | None = None,
) -> None:
    """Check the reader just before a checkpoint location, a savepoint, or a plan is written.

    - For a retained checkpoint without evidence that the job has stopped, wait for a newer
      checkpoint, as in a move to a group.
    - For a batch of a Spark query, wait for a newer batch in the same way.
    - For a savepoint that is more than a day old, require evidence that the job was not restarted.

    Args:
        origin: the origin of the positions.
        judgment: the result of ``judge``.
        allow_ran_on: True to skip both checks.
        source_group: the consumer group whose committed offsets are the positions, if any.
        refuses_old: True to refuse an old savepoint; False if ``report_stop`` has already warned
            about it.
        saved: as in ``job_refusals``.
        flink_rest: as in ``judge``; Flink is queried again after a wait.
        signs: as in ``wait_for_sign``; by default, only the job's checkpoints or the query's
            batches are watched.

    Raises:
        Refused: the job has completed a newer checkpoint, or it is running after the wait; the
            query has started a newer batch; or the savepoint is old, and nothing shows whether the
            job was restarted.
        InputError, MissingExtra, OSError: the query's checkpoint location cannot be read.
        FlinkRestError: as in ``judge``.
    """
    if allow_ran_on or origin.kind == "positions":
        return
    if refuses_old:
        refuse_old_savepoint(origin, judgment, source_group, saved=saved)
    if judgment.state is not JobState.UNKNOWN or origin.stopped:
        return
    watch = find_watch(origin)

    def refuse_newer() -> Sequence[str]:
        if lines := list(reader_signs(origin)):
            raise Refused([kept_running(origin, line) for line in lines])
        return ()

    is_quiet = wait_for_sign(watch, signs or refuse_newer)
    if origin.kind == "batch":
        log.info(watch.text)
        return
    if watch.wait is not None and flink_rest is not None:
        # The job may have been started during the wait.
        again = job_refusals(judge(origin, flink_rest), allow_ran_on=False, saved=saved)
        if again:
            raise Refused(again)
    if is_quiet:
        warn(JOB_MAY_RUN_ELSEWHERE(evidence=judgment.text))
    else:
        warn(JOB_MAY_RUN(evidence=f"{judgment.text}; {watch.text}"))


# -- the wait for a newer checkpoint or batch ------------------------------------------------------

# The reader that may have kept running, by the kind of the origin.
READERS = {"checkpoint": "job", "batch": "query", "positions": "group"}


def kept_running(origin: Origin, sign: str) -> Message:
    """Return the refusal of a move from a reader that has kept running."""
    if origin.kind == "checkpoint":
        return JOB_KEPT_RUNNING(sign=sign, how_to_stop=origin.how_to_stop)
    return READER_KEPT_RUNNING(reader=READERS[origin.kind], sign=sign)


def reader_signs(origin: Origin) -> Iterator[str]:
    """Yield signs that the reader of the positions has continued, one line each.

    Raises:
        InputError, MissingExtra, OSError: the checkpoint location of a query cannot be read.
    """
    if origin.kind == "batch":
        from migrate.inputs.spark_progress import batch_signs

        return batch_signs(origin)
    return checkpoint_signs(origin)


def checkpoint_signs(origin: Origin) -> Iterator[str]:
    """Yield signs in the job's checkpoint directory that the job has continued, one line each.

    Log a note if the directory cannot be read. Checkpoints in ``origin.newer`` do not count as
    signs, because they were already known.
    """
    if origin.kind != "checkpoint":
        return
    files, directory = Files(), posixpath.dirname(origin.pointer)
    is_savepoint = checkpoint_number(origin.pointer) is None
    try:
        is_deleted = not files.is_file(join(origin.pointer, METADATA_FILE))
        if is_deleted:
            log.info(f"note: {origin.pointer} no longer exists")
        checkpoints = find_newer_checkpoints(origin.pointer, origin.number, files)
        newer = completed_since(origin, checkpoints.newer if checkpoints is not None else ())
        has_directory = is_deleted and files.list_directory(directory) is not None
    except (DecodeError, MissingExtra, OSError) as error:
        log.info(f"note: the job's checkpoints do not show whether the job kept running; {error}")
        return
    if newer:
        yield f"it has completed chk-{newer[-1]}"
    elif has_directory and is_savepoint:
        yield (
            f"{origin.pointer} was deleted; a job that is restored from a savepoint in CLAIM mode "
            "deletes it once it has newer checkpoints"
        )
    elif has_directory:
        yield (
            f"{origin.pointer} was deleted; Flink deletes a checkpoint once newer ones are complete"
        )
    elif is_deleted:
        log.info(
            "note: the job's checkpoints do not show whether the job kept running; "
            f"{directory} is not visible from this machine"
        )


def completed_since(origin: Origin, newer: Sequence[int]) -> Sequence[int]:
    """Return the newer checkpoints that were completed after the plan was made."""
    if not origin.newer:
        return newer
    known = origin.newer[-1]
    if known in newer:
        return newer[newer.index(known) + 1 :]
    return [number for number in newer if number > known]


def find_watch(origin: Origin) -> Watch:
    """Return the wait for a newer checkpoint or batch; ``NO_WATCH`` for other origins and stops."""
    if origin.kind == "batch":
        from migrate.inputs.spark_progress import find_query_watch

        return find_query_watch(origin)
    if origin.kind != "checkpoint" or origin.stopped or checkpoint_number(origin.pointer) is None:
        return NO_WATCH
    try:
        checkpoints = find_newer_checkpoints(origin.pointer, origin.number, Files())
    except (DecodeError, MissingExtra):
        return NO_WATCH
    interval = checkpoints.interval_s if checkpoints is not None else None
    age = _age_of(origin)
    in_a_jobs_directory = job_id_of(posixpath.dirname(origin.pointer)) is not None
    is_fresh = age is not None and age <= LONGEST_WAIT and in_a_jobs_directory
    watch = Watch(interval, age, possible_wait(interval, is_fresh=is_fresh))
    if interval is None or origin.copied_from is None:
        return watch
    # The times may belong to the copy, so a missing newer checkpoint proves nothing.
    return NO_WATCH if watch.is_quiet else replace(watch, interval=None)


def _age_of(origin: Origin) -> float | None:
    if origin.written_at is None:
        return None
    return max(0.0, time.time() - origin.written_at / 1000)
