"""Read the facts that a step of a cut-over needs: Flink, the savepoint, the target, the commands.

Nothing here changes anything, and nothing is kept: what an earlier run or a person has done since
is seen.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from decoder import DecodeError, StopKind
from decoder.checkpoint import read_metadata
from decoder.storage import join
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.facts import (
    CommandFacts,
    Facts,
    GroupFacts,
    KnownJob,
    LocationFacts,
    Need,
    Savepoint,
    StoppedJob,
    Unavailable,
)
from migrate.cutover.flink_jobs import (
    choose_job,
    job_started_again,
    job_started_since,
    reported_savepoint,
    same_savepoint,
)
from migrate.cutover.prime import priming_problem
from migrate.inputs.flink.rest_api import (
    FlinkJob,
    FlinkRestError,
    JobManager,
    StopAttempt,
    UnknownToFlink,
)
from migrate.inputs.spark_log import (
    kafka_seeds,
    newest_committed_batch,
    numbers,
    query_id,
    was_started,
)
from migrate.model.errors import InputError, MigrateError, Refused
from migrate.storage.files import path_of
from migrate.targets.seed import is_unfinished

if TYPE_CHECKING:
    from migrate.kafka.groups import ConsumerGroups

# How much longer than its web.refresh-interval Flink is given to report what has changed.
_GRACE_SECONDS = 2.0
_PAUSE = 0.25
# How long a JobManager may be away before it is given up: one that fails over is back by then.
AWAY_SECONDS = 20.0
# How many stops of one job are told apart: each gets a trigger id of its own.
_ATTEMPTS = 1000

_Fact = TypeVar("_Fact")


def observe(context: CutOverContext, *needs: Need) -> Facts:
    """Return the facts, each read anew."""
    record, spec = context.record.model, context.spec
    plan, plan_problem = None, ""
    try:
        plan = context.read_plan()
    except InputError as error:
        plan_problem = str(error)
    streams = context.streams(plan) if plan is not None else None
    seeds = {str(source.number): source.next_offsets for source in streams or ()}
    starting, priming = (
        CommandFacts(command.runs(), command.ended())
        for command in (context.starting, context.priming)
    )
    job: StoppedJob | Unavailable | None = None
    started_again: FlinkJob | Unavailable | None = None
    savepoint: Savepoint | Unavailable | None = None
    target: LocationFacts | GroupFacts | Unavailable | None = None
    if not context.stopped_by_others:
        if Need.JOB in needs and record.flink.savepoint is None:
            job = _try(lambda: read_job(context))
        if Need.ENDED_JOB in needs:
            job = _try(lambda: _ended_job(context))
    if Need.SAVEPOINT in needs and (pointer := context.savepoint) is not None:
        savepoint = _try(lambda: read_savepoint(context, pointer))
    if Need.STARTED_AGAIN in needs:
        started_again = _try(lambda: _started_again(context))
    if Need.TARGET in needs:
        if context.file.checkpoint_dir is None:
            target = _try(lambda: read_group(context))
        else:
            target = _try(lambda: _location(context, seeds if plan is not None else None, priming))
    return Facts(
        record=record,
        stopped_by_others=context.stopped_by_others,
        named_savepoint=context.savepoint if context.stopped_by_others else None,
        has_start=spec.start is not None,
        has_states=bool(spec.states),
        flink_is_asked=spec.flink.rest is not None,
        adopt=context.adopt,
        nothing_started=context.nothing_started,
        plan=plan,
        plan_problem=plan_problem,
        seeds=seeds if plan is not None else None,
        job=job,
        started_again=started_again,
        savepoint=savepoint,
        target=target,
        target_name=context.file.target,
        starting=starting,
        priming=priming,
    )


def _try(read: Callable[[], _Fact]) -> _Fact | Unavailable:
    try:
        return read()
    except (MigrateError, DecodeError, OSError) as error:
        return Unavailable(error)


# -- Flink -----------------------------------------------------------------------------------------


def read_job(context: CutOverContext) -> StoppedJob:
    """Return the job that is stopped, as Flink knows it.

    Once a run has begun to stop a job, it is that one, whatever else has its name since.

    Raises:
        Refused: there is none of that name or id, or there are several.
        FlinkRestError: Flink did not answer.
    """
    flink, known = context.flink, context.record.model.flink
    jobs = flink.jobs()
    if known.job_id is not None:
        unknown = FlinkJob(known.job_id, known.job_name or "", "UNKNOWN")
        job = next((job for job in jobs if job.job_id == known.job_id), unknown)
    else:
        wanted = context.spec.flink.job
        assert wanted is not None  # checked by the spec
        job = choose_job(jobs, wanted)
    folder = _folder_of(context, job.job_id)
    trigger_id, attempt = newest_attempt(flink, job.job_id)
    if attempt is not None and attempt.savepoint is not None and not job.ended:
        job = _settled(flink, job)
        if not job.ended and job.state != "UNKNOWN":  # it was started again, under a fixed id
            trigger_id, attempt = newest_attempt(flink, job.job_id, skip_ended=True)
    ended_with, left = None, list[Savepoint]()
    if job.ended or job.state == "UNKNOWN":
        left = _savepoints_in(context, folder)
        if job.state == "FINISHED":
            ended_with = _ended_with(context, job.job_id, folder)
    return StoppedJob(job, trigger_id, attempt, ended_with, left, folder)


def _folder_of(context: CutOverContext, job_id: str) -> str:
    """Return where the savepoints of a job's stops are written, a URI.

    It is the folder that the stop was asked for with, where one was.
    """
    folder = context.record.model.flink.savepoints or context.file.savepoint_folder
    assert folder is not None  # checked by the spec
    return join(folder, job_id)


def _settled(flink: JobManager, job: FlinkJob) -> FlinkJob:
    """Return a job as Flink reports it once what it reports is no older than the stop."""
    deadline = time.monotonic() + flink.refresh_seconds() + _GRACE_SECONDS
    while not job.ended and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        job = flink.job(job.job_id) or FlinkJob(job.job_id, job.name, "UNKNOWN")
    return job


def newest_attempt(
    flink: JobManager, job_id: str, *, skip_ended: bool = False
) -> tuple[str, StopAttempt | None]:
    """Return the trigger id to go on with, and how far its stop is.

    A stop that failed is followed by one under a new id; with ``skip_ended`` one that ended, too.

    Raises:
        CutOverStopped: too many have failed.
        FlinkRestError: Flink did not answer.
    """
    for number in range(_ATTEMPTS):
        trigger_id = hashlib.sha256(f"cut-over {job_id} {number}".encode()).hexdigest()[:32]
        attempt = flink.stopping(job_id, trigger_id)
        passed = attempt is not None and skip_ended and attempt.ended
        if attempt is None or (attempt.problem is None and not passed):
            return trigger_id, attempt
    raise CutOverStopped(f"{_ATTEMPTS} stops of this job have failed; look into Flink's log")


def _ended_with(context: CutOverContext, job_id: str, folder: str) -> Savepoint | None:
    """Return the savepoint in the folder that Flink says the job ended with, or None.

    What Flink says may be as old as its refresh interval: it is asked again until then, where the
    folder holds a savepoint.
    """
    began = time.monotonic()
    while savepoints := _savepoints_in(context, folder):
        reported = context.flink.details(job_id).ended_with
        savepoint = reported_savepoint(savepoints, reported)
        if savepoint is not None:
            return savepoint
        if time.monotonic() - began > context.flink.refresh_seconds() + _GRACE_SECONDS:
            return None
        time.sleep(_PAUSE)
    return None


def _savepoints_in(context: CutOverContext, folder: str) -> list[Savepoint]:
    """Return the whole savepoints of stops in a folder, the newest last."""
    path = path_of(folder, context.files)
    savepoints = []
    for name in context.files.list_directory(path) or ():
        try:
            savepoints.append(read_savepoint(context, join(path, name)))
        except DecodeError:
            continue  # not written to its end
    stops = (savepoint for savepoint in savepoints if savepoint.stop is not StopKind.NONE)
    return sorted(stops, key=lambda savepoint: savepoint.number)


def read_savepoint(context: CutOverContext, pointer: str) -> Savepoint:
    """Read what a cut-over needs of a savepoint.

    Raises:
        DecodeError: it cannot be read.
    """
    content = read_metadata(pointer, context.files)
    return Savepoint(
        pointer,
        content.metadata.checkpoint_id,
        content.metadata.type.stop,
        hashlib.sha256(content.data).hexdigest(),
        context.files.modified_at(content.path),
    )


def _ended_job(context: CutOverContext) -> StoppedJob:
    """Return the job after its stop. A JobManager of a single job may be gone by then."""
    deadline = time.monotonic() + AWAY_SECONDS
    while True:
        try:
            job = read_job(context)
        except FlinkRestError:
            known = context.record.model.flink
            if not known.finished:
                raise
            gone = FlinkJob(known.job_id or "", known.job_name or "", "UNKNOWN")
            return StoppedJob(gone, "", None, None, (), "")
        if job.job.ended or not job.is_known or time.monotonic() > deadline:
            return job
        time.sleep(_PAUSE)


def _started_again(context: CutOverContext) -> FlinkJob | None:
    """Return a job that has taken up the work of the stopped one, or None.

    Raises:
        FlinkRestError: Flink did not answer.
    """
    known, pointer = context.record.model.flink, context.savepoint
    if context.spec.flink.rest is None or pointer is None:
        return None
    jobs = [KnownJob(job, _restored_from(context.flink, job)) for job in context.flink.jobs()]
    start = context.record.model.start
    if start is not None and context.file.checkpoint_dir is None:
        # The consumers may be a Flink job of the same name, which our command has started.
        started_ms = int(datetime.fromisoformat(start.at).timestamp() * 1000)
        jobs = [
            known
            for known in jobs
            if known.job.began_ms < started_ms or same_savepoint(known.restored_from, pointer)
        ]
    if context.stopped_by_others:
        savepoint = read_savepoint(context, pointer)
        return job_started_since(jobs, savepoint, context.spec.flink.job)
    ended_ms = known.ended_ms
    if ended_ms is None:  # Flink had forgotten it, or did not answer
        ended_ms = read_savepoint(context, pointer).written_at
    return job_started_again(
        jobs, pointer, job_id=known.job_id, name=known.job_name, ended_ms=ended_ms
    )


def _restored_from(flink: JobManager, job: FlinkJob) -> str | None:
    try:
        return flink.restored_from(job.job_id)
    except UnknownToFlink:
        return None  # forgotten since it was listed


# -- the target ------------------------------------------------------------------------------------


def open_groups(context: CutOverContext) -> ConsumerGroups:
    """Return a client that reads groups."""
    from migrate.kafka.groups import ConsumerGroups

    return ConsumerGroups(context.kafka_config())


def read_group(context: CutOverContext, groups: ConsumerGroups | None = None) -> GroupFacts:
    """Return the consumer group as it is now.

    Args:
        context: the cut-over.
        groups: the client to ask; a new one by default.

    Raises:
        BrokerError: the broker did not answer.
    """
    group = context.spec.target.group
    assert group is not None
    groups = groups if groups is not None else open_groups(context)
    return GroupFacts(groups.view(group), groups.cluster_id())


def _location(
    context: CutOverContext,
    seeds: Mapping[str, Mapping[tuple[str, int], int]] | None,
    priming: CommandFacts,
) -> LocationFacts:
    place = context.location()
    assert place is not None
    names = place.names()
    if names is None:
        raise Refused(
            [f"{place.name} is a file or a symbolic link, or lies in a file; name a directory"]
        )
    if not names:
        return LocationFacts(place.name)
    if priming.runs:  # it is being written
        return LocationFacts(place.name, is_empty=False)
    if is_unfinished(place):
        return LocationFacts(place.name, is_empty=False, unfinished=True)
    directory, files = context.query_directory, context.files
    planned = numbers(files, join(directory, "offsets"))
    written = kafka_seeds(directory, files)
    problem = None
    record, its_id = context.record.model, query_id(directory, files)
    judged = record.primed is not None and record.query_id == its_id
    if context.spec.states and not judged and seeds is not None:
        problem = priming_problem(directory, files, seeds)
    return LocationFacts(
        place.name,
        is_empty=False,
        query_id=its_id,
        seeds=written,
        committed=newest_committed_batch(directory, files),
        planned=planned[-1] if planned else None,
        has_logs=was_started(directory, files),
        priming_problem=problem,
    )
