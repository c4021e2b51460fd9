"""Undo the write to the target, if nothing has started to read from the target."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from decoder import StopKind
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import UNCHANGED, CutOverContext
from migrate.extensions.cutover.decide import Action, decide_stop
from migrate.extensions.cutover.facts import (
    Facts,
    GroupFacts,
    LocationFacts,
    Need,
    Savepoint,
    Unavailable,
    require,
)
from migrate.extensions.cutover.observe import observe
from migrate.extensions.cutover.other_cut_overs import other_cut_over
from migrate.extensions.cutover.record import now
from migrate.extensions.cutover.stop_job import record_savepoint
from migrate.extensions.cutover.target_state import (
    Content,
    Started,
    how_to_end,
    other_cluster_reason,
    started_work,
    target_content,
)
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.model.errors import CutOverStopped, MigrateError, Refused, add_notes
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.moves.rollback import GroupRollback, rollback
from migrate.targets.group.commit import Applied
from migrate.targets.group.rollback_file import rollback_files
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import remove_seed


def check_roll_back(facts: Facts) -> None:
    """Refuse a cut-over that cannot be rolled back; raise any error from reading the target."""
    if problem := other_cluster_reason(facts):
        raise Refused(problem)
    started, evidence = started_work(facts)
    if started is not Started.YES or isinstance(facts.target, Unavailable):
        _refuse_running_command(facts)
    elif facts.start_status == "running":
        evidence += f"; the start command is still running{how_to_end(facts.start_process)}"
    target, name = require(facts.target), facts.target_name
    if started is Started.YES and isinstance(again := facts.started_again, FlinkJob):
        raise Refused(
            catalog.READERS_AND_JOB_STARTED(
                target=name, evidence=evidence, job=again.name, job_id=again.job_id
            )
        )
    if started is Started.YES and facts.spec.target.is_group:
        raise Refused(catalog.CONSUMERS_STARTED(target=name, evidence=evidence))
    if started is Started.YES:
        raise Refused(
            catalog.QUERY_STARTED(
                target=name,
                evidence=evidence,
                savepoint=facts.savepoint_pointer or "SAVEPOINT",
                brokers=facts.record.brokers,
            )
        )
    if started is Started.MAYBE and not facts.nothing_started:
        raise Refused(catalog.READERS_POSSIBLE(target=name, evidence=evidence))
    if facts.savepoint_pointer is None:
        raise Refused(catalog.NOTHING_TO_ROLL_BACK())
    if isinstance(target, LocationFacts) and (problem := _not_ours_reason(facts, target)):
        raise Refused(problem)


def _refuse_running_command(facts: Facts) -> None:
    """Refuse if a command is running, because the command may still start readers."""
    for status, process, name in (
        (facts.start_status, facts.start_process, "start"),
        (facts.prime_status, facts.prime_process, "prime"),
    ):
        if status == "running" and process is not None:
            raise Refused(catalog.COMMAND_RUNNING(command=name, process=process))
        if status == "running":
            raise Refused(catalog.COMMAND_RUNNING_UNKNOWN_PROCESS(command=name))


def _not_ours_reason(facts: Facts, target: LocationFacts) -> Message | None:
    """Return the reason that a rollback must not remove the location, or None."""
    record = facts.record
    if record.moved_with is None or target.is_empty or target.unfinished:
        return None
    if record.query_id is None:  # no run has recorded the result of the priming
        content, problem = target_content(facts)
        return problem if content is Content.WRONG else None
    if target.query_id == record.query_id:
        return None
    return catalog.LOCATION_OF_OTHER_QUERY(
        location=target.name, query_id=target.query_id, written=record.query_id
    )


# The facts for ``restart_advice``.
ADVICE_NEEDS: Sequence[Need] = ("target", "started again", "savepoint", "other cut-overs")


class RestartAdvice(NamedTuple):
    """The user's next steps for the Flink job.

    Attributes:
        text: the steps; empty if the cut-over did not stop the job.
        may_start: True if the user may start the job from its savepoint.
    """

    text: str
    may_start: bool = False


def restart_advice(facts: Facts) -> RestartAdvice:
    """Return advice on whether and how to restart the Flink job.

    The facts must include ``ADVICE_NEEDS``.
    """
    savepoint, restarted = facts.savepoint_pointer, facts.started_again
    started, reason = started_work(facts)
    if savepoint is None:
        return RestartAdvice("")
    warning = "do not start the Flink job from its savepoint"
    if isinstance(restarted, FlinkJob):
        job = f"job {restarted.name} ({restarted.job_id})"
        text = f"{warning}, because {job} has resumed from it"
        # The job may have been returned to Flink on purpose if readers have started.
        return RestartAdvice(text if started is Started.YES else f"{text}; move that job")
    if (other := other_cut_over(facts)) is not None:
        moves = f"cut-over {other.record.name} (record {other.folder}) moves it"
        return RestartAdvice(f"{warning}, because {moves} to {other.record.target}")
    if started is Started.YES:
        return RestartAdvice(
            f"{warning}, because {reason}; the job would reprocess the same records"
        )
    if started is Started.MAYBE and not facts.nothing_started:
        return RestartAdvice(
            f"{warning} yet, because {reason}; stop all readers of {facts.target_name}, check "
            f"their output, and then roll back with {option('back', True)} and "
            f"{option('nothing_started', True)}"
        )
    unless = ""
    if isinstance(restarted, Unavailable):
        unless = ", unless the job was already restarted (Flink did not show this)"
    elif facts.spec.flink.rest is None:
        unless = ", unless the job was already restarted (the spec has no flink.rest)"
    but = ""
    if _is_drained(facts):
        but = (
            "; the drain emitted unfinished windows, so the job will emit them a second time, with "
            "only the records after the savepoint"
        )
    if isinstance(facts.savepoint, Unavailable):
        but += f"; this machine cannot read the savepoint: {facts.savepoint.error}"
    text = f"start the Flink job from its savepoint{unless}: flink run -s {savepoint} …{but}"
    return RestartAdvice(text, may_start=True)


def _is_drained(facts: Facts) -> bool:
    savepoint = facts.savepoint
    if isinstance(savepoint, Savepoint) and savepoint.stop is not StopKind.UNKNOWN:
        return savepoint.stop is StopKind.TERMINATE
    return facts.spec.flink.drain


# -- act -------------------------------------------------------------------------------------------


class Undo(NamedTuple):
    """The change that undoes the write to the target."""

    line: str
    call: Callable[[], object]


def plan_roll_back(context: CutOverContext) -> tuple[Undo | None, RestartAdvice]:
    """Return the change that undoes the write to the target, and the ``restart_advice``.

    The change is None if there is nothing to undo.

    Raises:
        Refused, CutOverStopped: the cut-over cannot be rolled back.
        Exception: the original error from reading a required fact.
    """
    _record_end_of_stop(context)
    facts = observe(context, *ADVICE_NEEDS)
    check_roll_back(facts)
    return _find_undo(context, facts), restart_advice(facts)


def _record_end_of_stop(context: CutOverContext) -> None:
    """Record the savepoint of a stop that ended while no run was waiting for it.

    Raises:
        Refused: Flink is still stopping the job, and a stop cannot be canceled.
        CutOverStopped: the job ended, but Flink reports no final savepoint of the job.
    """
    if context.savepoint is not None or context.record.model.flink.job_id is None:
        return
    facts = observe(context, "job")
    action, job = decide_stop(facts), require(facts.job)
    if action is Action.RECORD_SAVEPOINT:
        record_savepoint(context, facts)
    elif job.attempt is not None and job.attempt.savepoint is not None:
        context.record.change_flink(savepoint=job.attempt.savepoint, finished=True)
    elif job.attempt is not None:
        raise Refused(catalog.STOP_UNDERWAY(job_id=job.flink_job.job_id, job=job.flink_job.name))


def _find_undo(context: CutOverContext, facts: Facts) -> Undo | None:
    """Return the change that undoes the write to the target, or None if there is nothing to undo.

    Raises:
        Refused: the rollback file is missing, the group has newer commits, or the user must remove
            the location from an object store.
    """
    target, record = facts.target, facts.record
    if isinstance(target, GroupFacts):
        path = _rollback_file(context, target)
        if path is not None:
            return _restoration(context, path)
        written = {
            (row.topic, row.partition): row.planned
            for row in record.partitions
            if row.planned is not None and row.planned != row.held
        }
        if record.moved_with is not None and any(
            target.view.next_offset(*key) == offset for key, offset in written.items()
        ):
            raise Refused(catalog.ROLLBACK_FILE_MISSING(group=target.view.name))
        return None
    location = context.location()
    if location is None or record.moved_with is None or not location.names():
        return None
    if not facts.spec.states:
        remove = partial(remove_seed, location)
        return Undo(
            f"remove the checkpoint location {location.name}",
            partial(_undo_location, context, remove),
        )
    if not isinstance(location, LocalDirectory):
        raise Refused(catalog.PRIMED_LOCATION_REMOTE(location=location.name))
    rename = partial(context.record.put_aside, location.path)
    line = f"rename the primed location {location.name}"
    return Undo(line, partial(_undo_location, context, rename))


def _undo_location(context: CutOverContext, undo: Callable[[], object]) -> None:
    """Undo the write to a checkpoint location.

    The record is changed first, so that it no longer lists the location as written. If the record
    were changed last, a full disk could prevent the change. A rerun would then find no location,
    and would suspect that another client deleted it after a reader had started.
    """
    try:
        context.record.change(written=None)
    except OSError:
        context.target_state = UNCHANGED
        raise
    undo()


def _restoration(context: CutOverContext, path: Path) -> Undo | None:
    """Return the change that restores a group from its rollback file; None if already restored.

    Raises:
        Refused: the rollback is not possible.
    """
    planned = rollback(path, **context.file.target_kafka_arguments())
    if planned.refusals:
        error = Refused(planned.refusals)
        if planned.preview.unless_forced:
            force = option("force", True)
            add_notes(error, f"to use {force}, run: migrate rollback {shlex.quote(str(path))}")
        raise error
    if not planned.partitions:
        return None
    return Undo(
        f"restore group {planned.preview.file.group} from {path}",
        partial(_restore_group, context, planned),
    )


def _restore_group(context: CutOverContext, planned: GroupRollback) -> None:
    """Restore a group.

    Raises:
        Refused: the group has changed in the meantime; this call changed nothing.
        CutOverStopped: not all offsets of the group were restored.
    """
    try:
        outcome = planned.execute()
    except (MigrateError, OSError):  # the group was not changed
        context.target_state = UNCHANGED
        raise
    if outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
        raise CutOverStopped(
            catalog.GROUP_RESTORE_INCOMPLETE(
                group=planned.preview.file.group, applied=outcome.applied
            )
        )


def record_roll_back(context: CutOverContext) -> None:
    """Record the rollback, and rename the files that later runs must not find."""
    record = context.record
    start, prime = context.start_command, context.prime_command
    record.put_aside(record.plan_path, start.log, start.state, prime.log, prime.state)
    record.change(state="went back", moved_with=None, written=None, query_id=None)


def _rollback_file(context: CutOverContext, target: GroupFacts) -> Path | None:
    """Return the rollback file of this record's first commit for the group, or None.

    A later run that completes the commit writes its own rollback file. This file contains offsets
    from the first commit, so it cannot restore the group's original offsets.
    """
    runs, wanted = context.record.model.runs, (target.view.name, target.cluster_id, "commit")
    began = datetime.fromisoformat(runs[0].began_at if runs else now())
    created = (
        (datetime.fromisoformat(file.created_at), path)
        for path, file in rollback_files(context.record.folder, target.view.name)
        if (file.group, file.cluster_id, file.change) == wanted
    )
    first = min(((at, path) for at, path in created if at >= began), default=None)
    return first[1] if first is not None else None
