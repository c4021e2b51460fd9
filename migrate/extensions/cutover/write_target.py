"""Write the target: seed or prime a checkpoint location, or commit for a group."""

from __future__ import annotations

import shlex
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import cast

from decoder import DecodeError
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import (
    BEING_WRITTEN,
    NOT_WRITTEN,
    WRITTEN,
    CutOverContext,
)
from migrate.extensions.cutover.facts import Facts, LocationFacts, planned_streams, require
from migrate.extensions.cutover.observe import observe
from migrate.extensions.cutover.record import now
from migrate.inputs.watch import poll
from migrate.model.errors import CutOverStopped, MigrateError, Refused
from migrate.model.log import log, timed
from migrate.model.positions import SPARK
from migrate.model.wording import parse_duration
from migrate.moves.commit_group import commit_group
from migrate.moves.options import MoveArguments, move_request
from migrate.moves.plan import check_plan
from migrate.moves.sink import check_sink_of_a_query
from migrate.planning.plan_file import read_plan
from migrate.targets.group.commit import Applied
from migrate.targets.group.rollback_file import default_path
from migrate.targets.location import LocalDirectory, RemoteDirectory
from migrate.targets.seed import is_unfinished, remove_seed, replace_query_id, write_seed


class PrimingFailed(CutOverStopped):
    """The priming command could not be started, or it failed; its output must not be used."""


def write(context: CutOverContext, facts: Facts) -> str:
    """Write the target.

    Before the write, the values that determine the target's start position are recorded
    (``moved_with``). If this run is killed, a later run can then recognize the target.

    Raises:
        Refused: the target must not be written.
        PrimingFailed, CutOverStopped: the target is incomplete.
        MigrateError, DecodeError, OSError: as in ``migrate.commit_group`` and ``check_plan``; or
            the location cannot be read or written to.
    """
    record, location = context.record, context.location()
    before = record.model
    moved_with = before.moved_with or context.file.deciding_values()
    context.target_state = NOT_WRITTEN
    record.change(state="begun", moved_with=moved_with, written=None)
    try:
        text = _commit(context) if location is None else _write_location(context, location)
    except (Refused, PrimingFailed, OSError) as error:
        # If nothing was written, restore the record. The user can then change the spec.
        if _is_unwritten(location, error):
            context.target_state = NOT_WRITTEN
            record.change(moved_with=before.moved_with, written=before.written)
        raise
    _record_written(context)
    return text


def _is_unwritten(location: LocalDirectory | RemoteDirectory | None, error: Exception) -> bool:
    """Return whether it is certain that a failed write has not changed the target.

    After a system error, only the listing of a local directory shows this.
    """
    if isinstance(error, OSError) and not isinstance(location, LocalDirectory):
        return False
    with suppress(OSError):
        return location is None or not location.names()
    return False


def _commit(context: CutOverContext) -> str:
    group = context.spec.target.group
    assert group is not None
    change = commit_group(
        group=group,
        plan=context.record.plan_path,
        rollback_file=default_path(group, context.record.folder),
        allow_moved_on=context.spec.move.allow_moved_on,
        **context.file.connections(),
    )
    context.target_state = BEING_WRITTEN
    try:
        applied = replace(change, cut_over=context.record.model.id).execute().applied
    except (MigrateError, DecodeError, OSError):  # nothing was committed
        context.target_state = NOT_WRITTEN
        raise
    if applied is Applied.NOTHING:
        context.target_state = NOT_WRITTEN
    if applied is not Applied.ALL:
        raise CutOverStopped(catalog.GROUP_COMMIT_INCOMPLETE(group=group, applied=applied))
    return f"group {group}: {applied.value}"


def _write_location(context: CutOverContext, location: LocalDirectory | RemoteDirectory) -> str:
    plan_path = context.record.plan_path
    if is_unfinished(location):
        context.target_state = BEING_WRITTEN
        remove_seed(location)
        context.target_state = NOT_WRITTEN
    # The plan must still be valid, and the sink must not skip batches.
    check_sink_of_a_query(context.spec.sink, context.spec.sink_writer)
    connections = cast(MoveArguments, context.file.connections())  # all keys are optional
    check_plan(None, move_request(SPARK, connections), plan_path)
    if context.spec.states:
        context.record.change(primed=None, query_id=None)  # forget an earlier priming
        return _prime(context, location)
    new_id = str(uuid.uuid4())
    context.record.change(query_id=new_id)
    context.target_state = BEING_WRITTEN
    write_seed(planned_streams(read_plan(plan_path), context.record.model), location, new_id)
    return f"wrote the checkpoint location {location.name}"


def _prime(context: CutOverContext, location: LocalDirectory | RemoteDirectory) -> str:
    """Run the user's ``prime`` command, and check the result.

    If an earlier run has started the command, wait until the command ends instead. The user writes
    the command, because priming the state (``migrate.spark.prime``) requires a program with the
    user's query.

    Raises:
        PrimingFailed: the command could not be started, or failed.
        Refused: the location does not contain the plan or the primed state.
        CutOverStopped: the command took too long and is still running.
    """
    command, prime_command = context.spec.prime, context.prime_command
    directory, savepoint = context.spec.target.checkpoint_dir, context.savepoint
    assert command is not None and directory is not None and savepoint is not None
    context.target_state = BEING_WRITTEN
    if prime_command.status() == "running":
        log.info("the prime command of an earlier run is still running")
    elif not location.names():  # if the location is not empty, the command has already ended
        environment = {
            "CUT_OVER_PLAN": str(context.record.plan_path),
            "CUT_OVER_SAVEPOINT": savepoint,
            "CUT_OVER_CHECKPOINT_DIR": directory,
        }
        try:
            process = prime_command.start(command, context.file.base, environment)
        except OSError as error:
            reason = catalog.PRIME_COMMAND_NOT_RUN(error=error.strerror or str(error))
            raise PrimingFailed(reason) from error
        log.info(f"priming {directory}: process {process}; its output is in {prime_command.log}")
    _await_priming(context)
    if (code := prime_command.status()) != 0:
        raise PrimingFailed(
            catalog.PRIME_COMMAND_FAILED(location=directory, exit_code=code),
            details=prime_command.error_lines(),
        )
    primed = observe(context, "target")
    assert primed.plan is not None  # the ``plan`` step has saved it
    target = _location_facts(primed)
    problem = target.priming_problem
    if target.last_committed_batch is None:
        problem = catalog.LOCATION_NOT_PRIMED()
    if problem is not None:
        raise Refused(problem.about(directory))
    _record_primed(context, target)
    for state in context.spec.states:
        words = ["migrate", "verify-state", savepoint, context.spec.target.name, "--state", state]
        log.info(f"next: {shlex.join(words)}")
    batch = target.last_committed_batch
    return f"primed {directory}; batch {batch} contains the state and ends at the planned offsets"


def _await_priming(context: CutOverContext) -> None:
    limit = context.spec.timeouts.prime
    with timed(f"priming {context.spec.target.checkpoint_dir}") as stage:
        for _ in poll(parse_duration(limit)):
            if context.prime_command.status() != "running":
                return
            stage.seen(context.prime_command.last_line())
    raise CutOverStopped(
        catalog.PRIME_COMMAND_UNFINISHED(limit=limit),
        details=context.prime_command.last_lines(),
    )


def adopt(context: CutOverContext, facts: Facts) -> str:
    """Adopt a target (a location with the plan, or a group) that this cut-over did not write.

    A location gets a new query ID. For a group, the plan is committed again with this record's ID.
    As a result, an earlier cut-over no longer recognizes the target as its own.
    """
    location = context.location()
    if location is None:
        return write(context, facts)
    before, target, new_id = context.record.model, _location_facts(facts), str(uuid.uuid4())
    # Write the record before the location. Otherwise, a crash could leave a location with a query
    # ID that no record contains.
    context.record.change(
        moved_with=context.file.deciding_values(),
        query_id=new_id,
        primed=target.last_committed_batch if context.spec.states else None,
    )
    context.target_state = BEING_WRITTEN
    try:
        replace_query_id(location, new_id)
    except OSError:
        fields = ("moved_with", "query_id", "primed")
        context.record.change(**{name: getattr(before, name) for name in fields})
        raise
    _record_written(context)
    return f"took over {target.name}"


def record_written(context: CutOverContext, facts: Facts) -> str:
    """Record that a killed run, or the ``prime`` command of that run, wrote the complete target."""
    context.target_state = WRITTEN
    if context.spec.states and context.record.model.query_id is None:
        _record_primed(context, _location_facts(facts))
    _record_written(context)
    return f"{facts.target_name} contains the planned offsets"


def _record_written(context: CutOverContext) -> None:
    """Record that the target is written completely."""
    context.target_state = WRITTEN
    context.record.change(written=now())


def _record_primed(context: CutOverContext, target: LocationFacts) -> None:
    context.record.change(primed=target.last_committed_batch, query_id=target.query_id)


def _location_facts(facts: Facts) -> LocationFacts:
    target = require(facts.target)
    assert isinstance(target, LocationFacts)  # the target in the spec is not a group
    return target
