"""Look for what would stop the cut-over later, on the newest checkpoint of the running job.

Nothing is changed. What would be refused after the stop, and shows before, is refused here at once.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from functools import partial

from decoder import DecodeError, ErrorKind
from migrate.cutover.context import CutOverContext
from migrate.cutover.facts import Facts, StoppedJob
from migrate.cutover.missing_programs import missing_programs
from migrate.cutover.observe import read_group
from migrate.cutover.plan_move import PlannedMove, plan_move
from migrate.cutover.target import another_move
from migrate.inputs.flink.read import read
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.inputs.flink.source import SourceKind
from migrate.model.errors import InputError, Refused, UsageError
from migrate.model.log import log
from migrate.model.wording import counted, did_you_mean
from migrate.moves.sink import check_sink_of_a_job, check_sink_of_a_query
from migrate.planning import Plan
from migrate.state.taken_states import TakenStates
from migrate.storage.files import path_of
from migrate.targets.group.commit import write_obstacles
from migrate.targets.group.commit_marks import moved_on_refusals
from migrate.targets.seed import check_free

# A checkpoint may be deleted while it is read: the next one is asked for, so many times.
_TRIES = 4


def check(context: CutOverContext, facts: Facts) -> str:
    """Look at the job, a plan from its newest checkpoint, the target, the sink and the commands.

    Returns:
        What was seen, in a line.

    Raises:
        Refused: something stands in the way; every reason is named.
        FlinkRestError, BrokerError, DecodeError: something did not answer, or cannot be read.
    """
    seen: list[str] = []
    refusals: list[str] = []
    if context.stopped_by_others:
        savepoint = context.savepoint
        assert savepoint is not None
        seen.append(f"savepoint {savepoint}")
        if context.spec.flink.rest is None:
            log.warning(
                "the spec has no flink.rest: whether the job was started from the savepoint again "
                "is not looked at"
            )
        elif context.spec.flink.job is None:
            log.warning(
                "the spec has no flink.job: of the jobs that Flink lists, only those that were "
                "restored from this savepoint count as started again"
            )
        refusals += _collect_refusals(lambda: _check_plan(context, savepoint, seen))
    else:
        assert isinstance(facts.job, StoppedJob)  # decided on it
        job, folder = facts.job.job, facts.job.folder
        seen.append(f"{job.name} ({job.job_id}) runs on Flink {context.flink.version()}")
        refusals += _job_refusals(context, job, seen)
        refusals += _collect_refusals(
            lambda: context.files.list_directory(path_of(folder, context.files))
        )
    refusals += _collect_refusals(lambda: _check_target(context))
    refusals += _collect_refusals(lambda: _check_sink(context))
    refusals += missing_programs(context.spec, context.file.home)
    if refusals:
        raise Refused(refusals)
    return ", ".join(seen)


def _collect_refusals(look: Callable[[], object]) -> list[str]:
    try:
        look()
    except Refused as refused:
        return list(refused.reasons)
    except (InputError, UsageError) as error:
        return [str(error)]
    return []


def _job_refusals(context: CutOverContext, job: FlinkJob, seen: list[str]) -> Iterator[str]:
    """Yield why the job must not be stopped now, or cannot go on elsewhere."""
    if job.state != "RUNNING":
        yield f"Flink has job {job.job_id} ({job.name}) as {job.state}: it must be RUNNING"
        return
    for attempt in range(_TRIES):
        details = context.flink.details(job.job_id)
        if details.idle_tasks:
            yield f"tasks of the job do not run: {', '.join(details.idle_tasks[:5])}"
        if details.failed is not None:
            yield f"the job's newest checkpoint failed: {details.failed}"
        # The job's directory, for its newest: what Flink's REST says may be three seconds old
        # (web.refresh-interval), and deleted since.
        newest = posixpath.dirname(details.checkpoint) if details.checkpoint is not None else None
        if newest is None:
            yield (
                "the job has completed no checkpoint that can be read from here, so that nothing "
                "can be checked before the stop; wait for one"
            )
        if details.idle_tasks or details.failed is not None or newest is None:
            return
        try:
            yield from _collect_refusals(partial(_check_plan, context, newest, seen))
        except DecodeError as error:
            if error.kind is not ErrorKind.NOT_FOUND or attempt == _TRIES - 1:
                raise
        else:
            return


def _check_plan(context: CutOverContext, chk: str, seen: list[str]) -> None:
    """Refuse what a plan is refused for. That a running job goes on is no reason."""
    extraction = read(chk)
    if not context.stopped_by_others and any(
        source.kind is SourceKind.FLINK_KAFKA_CONSUMER for source in extraction.sources
    ):
        raise Refused(
            [
                "the job reads with a FlinkKafkaConsumer, whose stop is one checkpoint old; take a "
                "savepoint, cancel the job, and name the savepoint (flink.savepoint)"
            ]
        )
    move = plan_move(context, chk, job_runs=not context.stopped_by_others)
    move.plan.check()
    if context.file.checkpoint_dir is None:
        _check_offsets_of_the_group(context, move.plan)
    moves = len(move.plan.next_offsets)
    partitions = counted(len(move.plan.partitions), "partition")
    seen.append(f"{move.plan.origin.title}: {moves} of {partitions} would move")
    seen += _state_lines(move)


def _check_offsets_of_the_group(context: CutOverContext, plan: Plan) -> None:
    """Refuse a group that would go back, or that another move has written."""
    group = read_group(context)
    reason = another_move(group, context.record.model.id, plan.next_offsets)
    if reason and not context.adopt:
        raise Refused([reason])
    if not context.spec.move.allow_moved_on and (
        refusals := [*moved_on_refusals(group.view, plan.next_offsets)]
    ):
        raise Refused(
            [
                line.replace("add --allow-moved-on", "set move.allow-moved-on: true in the spec")
                for line in refusals
            ]
        )


def _state_lines(move: PlannedMove) -> Iterator[str]:
    states: TakenStates | None = move.states
    if states is None:
        return
    if states.taken:
        yield f"{counted(len(states.taken), 'keyed state')} would be handed to the command"
    if states.left:
        yield f"{counted(len(states.left), 'keyed state')} would stay behind"
    if states.unreadable:
        yield f"{counted(len(states.unreadable), 'keyed state')} cannot be read"


def _check_target(context: CutOverContext) -> None:
    place = context.location()
    if place is not None:
        if not (context.adopt and place.names()):  # the step apply looks whether it is the plan
            check_free(place)
        return
    view = read_group(context).view
    if not view.exists:
        log.warning(
            f"group {view.name} does not exist yet and will be created; check its name"
            + did_you_mean(view.alike)
        )
    if refusals := write_obstacles(view):
        raise Refused(refusals)


def _check_sink(context: CutOverContext) -> None:
    if context.file.checkpoint_dir is None:
        check_sink_of_a_job(context.file.sink)
    else:
        check_sink_of_a_query(context.file.sink, context.spec.sink_writer)
