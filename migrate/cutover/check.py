"""Would the cut-over go through? Looked at on the newest checkpoint of the running job.

Nothing is changed. What would be refused after the stop is refused now, all of it at once.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from decoder import DecodeError, ErrorKind
from migrate.commands.plan import plan_move
from migrate.commands.shared_options import move_request
from migrate.commands.sink import check_sink_of_a_job, check_sink_of_a_query
from migrate.commands.spark_sources import plan_as_one
from migrate.commands.state import keyed_states
from migrate.cutover.night import Night
from migrate.errors import InputError, Refused, UsageError
from migrate.flink.read import read
from migrate.flink.rest_api import FlinkJob
from migrate.flink.source import SourceKind
from migrate.group.commit import not_writable
from migrate.group.commit_marks import goes_back
from migrate.log import log
from migrate.planning import Plan
from migrate.positions import target_of
from migrate.spark.seed import check_free
from migrate.state.taken_states import TakenStates, take_states, tell
from migrate.storage.files import path_of
from migrate.wording import counted

# A checkpoint may be subsumed while it is read: the next one is asked for, so many times.
_TRIES = 4
# What becomes of a state that is named: what the user's command does with it is its own.
HANDED = "is handed to the command that primes"
_PROGRAM = re.compile(r"[\w./+-]+")


def check(night: Night) -> str:
    """Look at all of it.

    Returns:
        What was found, in a line.

    Raises:
        Refused: something stands in the way; every reason is named.
        FlinkRestError, BrokerError, DecodeError: as the parts raise them.
    """
    told = []
    refusals: list[str] = []
    if night.stopped_by_others:
        savepoint = night.savepoint()
        assert savepoint is not None
        told.append(f"savepoint {savepoint}")
        refusals += _gather(lambda: _check_plan(night, savepoint, told))
    else:
        job = night.job()
        told.append(f"{job.name} ({job.job_id}) runs on Flink {night.flink.version()}")
        refusals += _of_the_job(night, job, told)
        refusals += _gather(lambda: _check_savepoint_folder(night, job))
    refusals += _gather(lambda: _check_target(night))
    refusals += _gather(lambda: _check_sink(night))
    refusals += _of_the_commands(night)
    if refusals:
        raise Refused(refusals)
    return ", ".join(told)


def _gather(look: Callable[[], object]) -> list[str]:
    try:
        look()
    except Refused as refused:
        return list(refused.reasons)
    except (InputError, UsageError) as error:
        return [str(error)]
    return []


def _of_the_job(night: Night, job: FlinkJob, told: list[str]) -> Iterator[str]:
    """Why the job must not be stopped now, or not go on elsewhere."""
    if job.state != "RUNNING":
        yield f"Flink has job {job.job_id} ({job.name}) as {job.state}: it must be RUNNING"
        return
    for attempt in range(_TRIES):
        details = night.flink.details(job.job_id)
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
                "can be said before it is stopped: wait for one"
            )
        if details.idle_tasks or details.failed is not None or newest is None:
            return
        try:
            yield from _gather(partial(_check_plan, night, newest, told))
        except DecodeError as error:
            if error.kind is not ErrorKind.NOT_FOUND or attempt == _TRIES - 1:
                raise
        else:
            return


def _check_plan(night: Night, chk: str, told: list[str]) -> None:
    """What a plan for it is refused for. A running job goes on: that it does is no reason."""
    extraction = read(chk)
    if not night.stopped_by_others and any(
        source.kind is SourceKind.FLINK_KAFKA_CONSUMER for source in extraction.sources
    ):
        raise Refused(
            [
                "the job reads with a FlinkKafkaConsumer, whose stop is one checkpoint old: take a "
                "savepoint, cancel the job, and name the savepoint (flink.savepoint)"
            ]
        )
    found = make_plan(night, chk, rehearsal=not night.stopped_by_others)
    planned = found.plan
    planned.check()
    if night.location is None and not night.spec.move.allow_moved_on:
        view, earlier = night.group()
        if earlier is None and (refusals := [*goes_back(view, planned.next_offsets)]):
            raise Refused(refusals)
    moved = len(planned.next_offsets)
    told.append(f"{planned.origin.title}: {moved} of {len(planned.partitions)} partitions would go")
    told += _of_states(found.states)


def _of_states(states: TakenStates | None) -> Iterator[str]:
    if states is None:
        return
    if states.taken:
        yield f"{counted(len(states.taken), 'keyed state')} would be handed to the command"
    if states.left:
        yield f"{counted(len(states.left), 'keyed state')} would stay behind"
    if states.unreadable:
        yield f"{counted(len(states.unreadable), 'keyed state')} cannot be read"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and what it does not say.

    Attributes:
        states: the keyed states, divided; None where they cannot be told.
        streams: the topics of each stream of the query, where it has several.
    """

    plan: Plan
    states: TakenStates | None
    streams: Mapping[int, frozenset[str]]


def make_plan(night: Night, chk: str, *, rehearsal: bool = False) -> Planned:
    """A plan from a checkpoint, or a savepoint, for the spec's target.

    Args:
        rehearsal: whether the job runs on, as it does before the stop.

    Raises:
        as ``migrate.plan`` and ``take_states``.
    """
    arguments = night.file.move()
    if rehearsal:
        arguments["allow_ran_on"] = True
    request = move_request(chk, target_of(night.spec.target.group), arguments)
    named, states = night.spec.states, None
    try:
        found = keyed_states(chk, allow_external_files=request.allow_external_files)
        states = take_states(found, named)
        request = replace(request, state_taken=states.whole_operators)
    except DecodeError as error:
        if named or error.kind is ErrorKind.NOT_FOUND:
            raise
        log.warning(f"which keyed states there are, and stay behind, is not known: {error}")
    if sources := night.file.spark_sources():
        plan, streams = plan_as_one(request, sources)
    else:
        plan, streams = plan_move(request), {}
    if states is not None:
        tell(states, HANDED)
    return Planned(plan, states, streams)


def _check_savepoint_folder(night: Night, job: FlinkJob) -> None:
    """Can the savepoint be read from here, once it is there?"""
    night.files.list_directory(path_of(night.savepoint_folder(job.job_id), night.files))


def _check_target(night: Night) -> None:
    place = night.location
    if place is not None:
        check_free(place)
        return
    view, _ = night.group()
    if refusals := not_writable(view):
        raise Refused(refusals)


def _check_sink(night: Night) -> None:
    if night.location is None:
        check_sink_of_a_job(night.file.sink)
    else:
        check_sink_of_a_query(night.file.sink, night.spec.sink_writer)


def _of_the_commands(night: Night) -> Iterator[str]:
    """Whether there are such programs."""
    for key, line in (("prime", night.spec.prime), ("start", night.spec.start)):
        if line is None:
            continue
        words = line.split() if isinstance(line, str) else line
        program = words[0] if words else ""
        if isinstance(line, str) and not _PROGRAM.fullmatch(program):
            continue  # a line of the shell may begin with a variable, or anything
        # The shell knows its own words, too.
        asked = ["/bin/sh", "-c", 'command -v "$0" >/dev/null', program]
        known = subprocess.run(asked, cwd=night.file.home, stdin=subprocess.DEVNULL, check=False)
        if known.returncode:
            yield f"{key}: there is no program {program}"
