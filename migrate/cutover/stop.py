"""The stop of Flink's job, and whether it was clean."""

from __future__ import annotations

import hashlib
import time

from decoder import StopKind
from migrate.cutover.night import CutOverStopped, Night
from migrate.errors import Refused
from migrate.flink.rest_api import FlinkJob, FlinkRestError, StopAttempt
from migrate.log import log, timed
from migrate.wording import seconds_of

_PAUSE = 0.25
# How long a JobManager may be away before it is given up: one that fails over is back by then.
_AWAY_SECONDS = 20.0
# How many stops of one job are told apart: each gets a trigger id of its own.
_ATTEMPTS = 1000


def stopped(night: Night) -> str | None:
    """The savepoint that the job was stopped with, in words; None as long as there is none."""
    savepoint = night.savepoint()
    if savepoint is not None:
        return f"stopped with {savepoint}"
    job = night.job()
    if job.state != "FINISHED" or (found := night.savepoint_of(job)) is None:
        return None
    _keep(night, job, found.pointer)
    return f"stopped by an earlier run with {found.pointer}"


def stop(night: Night) -> str:
    """Stop the job with a savepoint, or wait for the stop that an earlier run began.

    Raises:
        CutOverStopped: it failed, or did not come to its end in time.
        FlinkRestError: Flink did not answer, or does no longer.
    """
    job = night.job()
    trigger_id, attempt = _newest_attempt(night, job)
    if attempt is None:
        _check_goes_on(night, job)
        night.record.change_flink(
            job_id=job.job_id, job_name=job.name, version=night.flink.version()
        )
        flink = night.spec.flink
        log.info(f"asking Flink to stop {job.name} ({job.job_id}) with a savepoint")
        night.flink.stop(
            job.job_id,
            night.savepoint_folder(job.job_id),
            trigger_id,
            drain=flink.drain,
            native=flink.format == "native",
        )
    else:
        log.info(f"Flink stops {job.name} ({job.job_id}) already, as an earlier run asked")
    attempt = _await(night, job, trigger_id)
    if attempt.savepoint is None:
        raise CutOverStopped(f"the stop failed: {attempt.problem}", _state(night, job))
    _keep(night, job, attempt.savepoint)
    return f"stopped with {attempt.savepoint}"


def goes_on(night: Night, job: FlinkJob) -> bool:
    """Whether Flink still stops the job, as an earlier run has asked: its checkpoints fail then."""
    if night.record.model.flink.job_id is None:
        return False
    _, attempt = _newest_attempt(night, job)
    return attempt is not None and not attempt.ended


def check_came_to_its_end(night: Night) -> None:
    """Of a stop that an earlier run asked for: Flink may end it once nobody waits any more.

    The savepoint is kept where it has.

    Raises:
        Refused: Flink is still at it.
        CutOverStopped: nobody can tell.
        FlinkRestError: Flink did not answer.
    """
    if stopped(night) is not None:
        return
    job = night.job()
    _, attempt = _newest_attempt(night, job)
    if attempt is None:
        _check_goes_on(night, job)
    elif attempt.savepoint is not None:
        _keep(night, job, attempt.savepoint)
    else:
        raise Refused(
            [
                f"Flink still stops job {job.job_id} ({job.name}), and no stop can be taken back: "
                "wait for it (--until stop)"
            ]
        )


def _check_goes_on(night: Night, job: FlinkJob) -> None:
    """A job that has ended without a stop of ours cannot be stopped any more."""
    if not job.ended and job.state != "UNKNOWN":
        return
    left = night.savepoints(job.job_id)
    if job.state == "UNKNOWN" and left:
        raise CutOverStopped(
            f"Flink no longer knows job {job.job_id}, and savepoint {left[-1].pointer} of a stop "
            "is whole: nobody can tell whether the job committed all that it held",
            "start the job from that savepoint once (flink run -s), and run this again under a new "
            "record; or name the savepoint yourself (flink.savepoint)",
        )
    newest = "its newest checkpoint"
    if left:
        newest += f" or savepoint, whichever is newer ({', '.join(one.pointer for one in left)})"
    raise CutOverStopped(
        f"Flink has job {job.job_id} ({job.name}) as {job.state}, and tells of no savepoint in "
        f"{night.savepoint_folder(job.job_id)} that it ended with",
        f"start the job from {newest}, and run this again under a new record",
    )


def _newest_attempt(night: Night, job: FlinkJob) -> tuple[str, StopAttempt | None]:
    """The trigger id to go on with, and how far its stop is: after one that failed, a new one."""
    for number in range(_ATTEMPTS):
        trigger_id = hashlib.sha256(f"cut-over {job.job_id} {number}".encode()).hexdigest()[:32]
        attempt = night.flink.stopping(job.job_id, trigger_id)
        if attempt is None or attempt.problem is None:
            return trigger_id, attempt
    raise CutOverStopped(f"{_ATTEMPTS} stops of this job have failed: look into Flink's log")


def _await(night: Night, job: FlinkJob, trigger_id: str) -> StopAttempt:
    patience = night.spec.timeouts.stop
    deadline = time.monotonic() + seconds_of(patience)
    answered = time.monotonic()
    with timed("waiting for Flink's savepoint"):
        while time.monotonic() < deadline:
            try:
                attempt = night.flink.stopping(job.job_id, trigger_id)
            except FlinkRestError:
                if time.monotonic() - answered > _AWAY_SECONDS:
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
        f"the stop has not ended after {patience} (timeouts.stop); Flink may still end it",
        _state(night, job),
    )


def _state(night: Night, job: FlinkJob) -> str:
    now = night.flink.job(job.job_id)
    return f"Flink has the job as {now.state if now is not None else 'unknown'}"


def _keep(night: Night, job: FlinkJob, savepoint: str) -> None:
    """The stop came to its end: the job has FINISHED."""
    night.record.change_flink(
        job_id=job.job_id,
        job_name=job.name,
        savepoint=savepoint,
        finished=True,
        version=night.record.model.flink.version or night.flink.version(),
    )


def was_clean(night: Night) -> str | None:
    """That the stop was found clean already; None where that is not so."""
    flink = night.record.model.flink
    known = flink.savepoint is not None and flink.savepoint_sha256 is not None
    return "the savepoint is whole, and the job has FINISHED" if known and flink.finished else None


def check_clean(night: Night) -> str:
    """Was the stop clean: has the job FINISHED, is the savepoint whole, and the job's last output?

    What a sink had yet to commit is looked at with the plan, which asks the brokers.

    Raises:
        CutOverStopped: it was not.
        DecodeError: the savepoint cannot be read.
    """
    pointer = night.savepoint()
    assert pointer is not None
    found = night.read_savepoint(pointer)
    if found.stop is StopKind.NONE:
        raise CutOverStopped(
            f"{pointer} is not of a stop: the job ran on after it, and all since is repeated",
            "stop the job with a savepoint",
        )
    told, ended_ms = "the savepoint is whole", None
    if not night.stopped_by_others:
        job = _ended(night)
        if not night.record.model.flink.finished or job.state not in ("FINISHED", "UNKNOWN"):
            raise CutOverStopped(
                f"the savepoint is whole, and Flink has the job as {job.state}, not FINISHED",
                "wait for it, or look into Flink's log",
            )
        told, ended_ms = f"{told}, and the job has FINISHED", job.ended_ms
    elif found.stop is StopKind.UNKNOWN:
        log.warning("whether the job stopped with this savepoint does not show (before Flink 1.16)")
    night.record.change_flink(savepoint=pointer, savepoint_sha256=found.sha256, ended_ms=ended_ms)
    return told


def _ended(night: Night) -> FlinkJob:
    """The job after its stop. A JobManager of one job alone is gone by then."""
    deadline = time.monotonic() + _AWAY_SECONDS
    while True:
        try:
            job = night.job()
        except FlinkRestError:
            known = night.record.model.flink
            if not known.finished:
                raise
            return FlinkJob(known.job_id or "", known.job_name or "", "UNKNOWN")
        if job.ended or job.state == "UNKNOWN" or time.monotonic() > deadline:
            return job
        time.sleep(_PAUSE)


def check_has_not_run_since(night: Night) -> None:
    """A job that was started again has more output than its savepoint tells.

    Raises:
        CutOverStopped: it runs again, or has run since the stop.
    """
    try:
        again = night.runs_since()
    except FlinkRestError as error:
        log.warning(f"whether the job was started again is not known: {error}")
        return
    if again is not None:
        how = f"has run since, {again.state}," if again.ended else "runs again,"
        raise CutOverStopped(
            f"job {again.name} {how} as {again.job_id}: the savepoint is not its last output",
            "to move that one, go back first (--back), or name another folder for the record",
        )
