"""The plan of a cut-over: from a checkpoint or a savepoint, for the target that the spec names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from decoder import DecodeError, ErrorKind
from migrate.cutover.context import CutOverContext
from migrate.model.log import log
from migrate.model.positions import target_of
from migrate.moves.options import move_request
from migrate.moves.plan import plan_move as plan_request
from migrate.moves.spark_sources import plan_as_one
from migrate.moves.state import keyed_states
from migrate.planning import Plan
from migrate.state.taken_states import TakenStates, take_states, tell

# What becomes of a state that is named: what the user's command does with it is its own.
HANDED = "is handed to the command that primes"


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A plan, and what it does not say.

    Attributes:
        states: the keyed states, divided, or None where they cannot be read.
        streams: the topics of each stream of the query, where it has several.
    """

    plan: Plan
    states: TakenStates | None
    streams: Mapping[int, frozenset[str]]


def plan_move(context: CutOverContext, chk: str, *, job_runs: bool = False) -> PlannedMove:
    """Plan the move from a checkpoint or a savepoint; its warnings are logged.

    Args:
        context: the cut-over.
        chk: the checkpoint or savepoint.
        job_runs: whether the job runs on, as it does before the stop.

    Raises:
        as ``migrate.plan`` and ``take_states``.
    """
    arguments = context.file.move()
    if job_runs:
        arguments["allow_ran_on"] = True
    request = move_request(chk, target_of(context.spec.target.group), arguments)
    named, states = context.spec.states, None
    try:
        keyed = keyed_states(chk, allow_external_files=request.allow_external_files)
        states = take_states(keyed, named)
        request = replace(request, state_taken=states.whole_operators)
    except DecodeError as error:
        if named or error.kind is ErrorKind.NOT_FOUND:
            raise
        log.warning(f"the keyed states that stay behind are not known: {error}")
    if sources := context.file.spark_sources():
        plan, streams = plan_as_one(request, sources)
    else:
        plan, streams = plan_request(request), {}
    if states is not None:
        tell(states, HANDED)
    return PlannedMove(plan, states, streams)
