"""Check, before the job is stopped, whether the cut-over would be refused after the stop.

The plan is made from the running job's newest checkpoint, or from the savepoint in the spec.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from decoder import DecodeError, ErrorKind
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.check_commands import check_programs
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.decide import check_stopped
from migrate.extensions.cutover.facts import Facts, JobToStop, require
from migrate.extensions.cutover.make_plan import PlannedMove, plan_move
from migrate.extensions.cutover.observe import observe, read_group
from migrate.extensions.cutover.spec import SpecFile
from migrate.extensions.cutover.target_state import other_move_reason
from migrate.inputs.flink.extract import read
from migrate.inputs.flink.source import SourceKind
from migrate.inputs.watch import poll
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.wording import counted
from migrate.moves.sink import (
    check_apart,
    check_sink_of_a_job,
    check_sink_of_a_query,
    note_unchecked_sink,
)
from migrate.planning import Plan
from migrate.planning.refusals_and_warnings import new_group_warning
from migrate.storage.files import Files
from migrate.storage.uris import is_uri, path_of
from migrate.targets.group.commit import commit_refusals
from migrate.targets.group.newer_commits import newer_commit_refusals
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import check_free

# The maximum time for which a failed read of the newest checkpoint is retried. Flink may delete the
# checkpoint during the read and, on a slow machine, the next checkpoints as well.
_MAX_READ_SECONDS = 20.0


def check(context: CutOverContext, facts: Facts) -> str:
    """Check the job, a plan, the target, the sink, and the commands.

    Raises:
        Refused: the cut-over would fail. If a folder in the spec is a file or is under a file, the
            error contains only this reason. Otherwise, it contains the reasons from all checks.
        FlinkRestError, BrokerError, DecodeError, OSError: a service did not answer, or a file
            cannot be read.
    """
    _check_folders(context.file)
    savepoint = context.spec.flink.savepoint
    check_source: Callable[[], Sequence[str]]
    if savepoint is not None:
        checked = [f"savepoint {savepoint}"]
        check_source = partial(_check_savepoint, context, savepoint)
    else:
        job = require(facts.job)
        name = f"{job.flink_job.name} ({job.flink_job.job_id})"
        checked = [f"{name} runs on Flink {context.flink.version()}"]
        check_source = partial(_check_job, context, job)
    checks = (
        check_source,
        partial(_check_target, context),
        partial(_check_sink, context),
        partial(check_programs, context.spec, context.file.base),
    )
    refusals: list[str] = []
    for run_check in checks:
        try:
            checked += run_check() or ()
        except Refused as refused:
            refusals += refused.reasons
        except (InputError, UsageError) as error:
            refusals += error.reasons
    if refusals:
        raise Refused(refusals)
    return ", ".join(checked)


def _check_folders(file: SpecFile) -> None:
    """Refuse a local folder in the spec that is a file or is under a file."""
    for key, folder in (
        ("flink.savepoints", file.spec.flink.savepoints),
        ("record", str(file.folder)),
    ):
        path = path_of(folder, Files()) if folder is not None else ""
        if path and not is_uri(path):
            existing = next(part for part in (Path(path), *Path(path).parents) if part.exists())
            if not existing.is_dir():
                raise Refused(catalog.FOLDER_IS_FILE(key=key, folder=folder))


def _check_savepoint(context: CutOverContext, savepoint: str) -> Sequence[str]:
    """Call ``_check_plan``; if the savepoint is missing, name ``flink.savepoint`` in the error."""
    try:
        return _check_plan(context, savepoint)
    except DecodeError as error:
        if error.kind is not ErrorKind.NOT_FOUND:
            raise
        way_out = "; set this key to a savepoint; the folder for new savepoints is flink.savepoints"
        problem = re.sub("; (?:name|pass|specify) a chk-.*", way_out, str(error))
        raise DecodeError(error.kind, f"flink.savepoint {problem}") from error


def _check_job(context: CutOverContext, job_to_stop: JobToStop) -> Sequence[str]:
    """Check that the job can be stopped now, and check a plan from its newest checkpoint.

    Raises:
        Refused: the job must not be stopped, or the plan must not be applied.
        FlinkRestError: Flink did not answer.
        MigrateError, DecodeError: as in ``plan_move``.
        OSError: the folder for savepoints cannot be read.
    """
    job = job_to_stop.flink_job
    if not job.is_running:
        raise Refused(catalog.JOB_NOT_RUNNING(job_id=job.job_id, job=job.name, state=job.state))
    context.files.list_directory(path_of(job_to_stop.folder, context.files))
    for _ in poll(_MAX_READ_SECONDS):
        checkpoint = _newest_checkpoint(context, job.job_id)
        try:
            return _check_newest_checkpoint(context, checkpoint)
        except DecodeError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            directory = path_of(posixpath.dirname(checkpoint), context.files)
            if context.files.list_directory(directory) is None:
                raise  # the job's directory does not exist on this machine
            deleted = error
    raise deleted


def _newest_checkpoint(context: CutOverContext, job_id: str) -> str:
    details, problems = context.flink.details(job_id), list[Message]()
    if details.idle_tasks:
        problems.append(catalog.TASKS_NOT_RUNNING(tasks=details.idle_tasks))
    if details.failure is not None:
        problems.append(catalog.CHECKPOINT_FAILED(failure=details.failure))
    if details.checkpoint is None:
        problems.append(catalog.NO_COMPLETED_CHECKPOINT())
    if problems or details.checkpoint is None:
        raise Refused(problems)
    return details.checkpoint


def _check_newest_checkpoint(context: CutOverContext, checkpoint: str) -> Sequence[str]:
    # Read the newest checkpoint in the job's directory. Flink's answer may be three seconds old
    # (web.refresh-interval), and the checkpoint in the answer may already be deleted.
    directory = posixpath.dirname(checkpoint)
    if any(source.kind is SourceKind.FLINK_KAFKA_CONSUMER for source in read(directory).sources):
        raise Refused(catalog.LEGACY_CONSUMER_STOP())
    checked = _check_plan(context, directory)
    log.info(
        "while the job is running, pass the job's checkpoint directory as CHK to other commands: "
        f"{directory} (do not pass a chk-N directory inside it, because Flink deletes chk-N when "
        "a newer checkpoint completes)"
    )
    return checked


def _check_plan(context: CutOverContext, chk: str) -> Sequence[str]:
    """Make a plan from a checkpoint or savepoint, and check that the plan could be applied.

    If the cut-over will stop the job, a running job is not a reason to refuse the plan.

    Raises:
        Refused: the plan must not be applied.
        MigrateError, DecodeError: as in ``plan_move``.
        BrokerError: the broker did not answer the query about the group.
    """
    move = plan_move(context, chk, job_runs=not context.spec.stopped_by_others)
    move.plan.check()
    context.previewed_plan = move.plan
    if context.spec.stopped_by_others:
        check_stopped(observe(context, "started again", plan=move.plan))
    if context.spec.target.is_group:
        _check_group_offsets(context, move.plan)
    moves = len(move.plan.next_offsets)
    partitions = counted(len(move.plan.partitions), "partition")
    title = move.plan.origin.title
    return [f"{title}: {moves} of {partitions} would move", *_state_lines(move)]


def _check_group_offsets(context: CutOverContext, plan: Plan) -> None:
    """Refuse a group with commits by another move, or with commits that are newer than the plan.

    ``--adopt`` allows the first case, and ``move.allow-moved-on`` allows the second.
    """
    group = read_group(context)
    record, is_own = context.record.model, context.spec.targets_group_of_job
    reason = other_move_reason(group, record, plan.next_offsets, is_group_of_job=is_own)
    if reason is not None and not context.adopt:
        raise Refused(reason)
    refusals = list(newer_commit_refusals(group.view, plan.next_offsets, group.changes))
    if refusals and not context.spec.move.allow_moved_on:
        raise Refused(refusals)


def _state_lines(move: PlannedMove) -> Iterator[str]:
    if move.states is None:
        return
    for states, fate in (
        (move.states.taken, "would be passed to the prime command"),
        (move.states.left_behind, "would not be migrated"),
        (move.states.unreadable, "cannot be read"),
    ):
        if states:
            yield f"{counted(len(states), 'keyed state')} {fate}"


def _check_target(context: CutOverContext) -> None:
    location = context.location()
    if location is None:
        view = read_group(context).view
        if not view.exists:
            log.warning(new_group_warning(view))
        if refusals := commit_refusals(view):
            raise Refused(refusals)
    else:
        check_apart(location, context.spec.sink)
        # The ``apply`` step checks the content of a location to adopt.
        if not (context.adopt and location.names()):
            check_free(location)
        check_location_writable(context)


def check_location_writable(context: CutOverContext) -> None:
    """Refuse a local checkpoint location that this run could not write.

    An object store, a location to adopt, and the location of a ``prime`` command, which may run as
    a different user, are not checked.

    Raises:
        Refused: no directory can be created for the location.
        OSError: the location cannot be listed.
    """
    location = context.location()
    if not isinstance(location, LocalDirectory) or context.spec.states:
        return
    if context.adopt and location.names():
        return
    try:
        location.check_writable()
    except OSError as error:
        raise Refused(
            catalog.CHECKPOINT_DIR_NOT_WRITABLE(
                location=location.name, directory=error.filename, error=error.strerror
            )
        ) from error


def _check_sink(context: CutOverContext) -> None:
    if context.spec.target.is_group:
        check_sink_of_a_job(context.spec.sink)
        return
    check_sink_of_a_query(context.spec.sink, context.spec.sink_writer)
    if context.spec.sink is None:
        note_unchecked_sink(f"to check it, add {option('sink', 'DIR')}")
