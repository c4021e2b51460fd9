"""Make the plan of a cut-over from a checkpoint or a savepoint, for the target in the spec."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from decoder import DecodeError, ErrorKind
from migrate.cutover.context import CutOverContext
from migrate.cutover.facts import Facts
from migrate.cutover.spec_keys import with_spec_keys
from migrate.inputs.flink.read import read
from migrate.model.positions import target_of
from migrate.model.warning import WarningCode, warn
from migrate.model.wording import counted
from migrate.moves.options import move_request
from migrate.moves.plan import plan_move as plan_request
from migrate.moves.spark_sources import plan_as_one
from migrate.moves.state import keyed_states
from migrate.planning import Plan
from migrate.report.cut_over import PartitionReport, PlanReport
from migrate.state.taken_states import TakenStates, log_states, take_states

# The text in messages about the states that the spec names.
_HANDED_TO_PRIME = "is handed to the command that primes"


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A plan, with the job's keyed states and the query's streams.

    Attributes:
        plan: the plan.
        states: the keyed states (taken, left behind, unreadable), or None if reading failed.
        streams: the topics, by the number of the stream; empty if the spec names no streams.
    """

    plan: Plan
    states: TakenStates | None
    streams: Mapping[int, frozenset[str]]


def plan_move(context: CutOverContext, chk: str, *, job_runs: bool = False) -> PlannedMove:
    """Plan the move from a checkpoint or a savepoint, and log its warnings.

    Args:
        context: the cut-over.
        chk: the checkpoint or savepoint.
        job_runs: whether the job still runs.

    Raises:
        MigrateError, DecodeError: see ``migrate.plan`` and ``take_states``.
    """
    arguments = context.file.move_arguments()
    if job_runs:
        arguments["allow_ran_on"] = True
    request = move_request(chk, target_of(context.spec.target.group), arguments)
    state_names, states = context.spec.states, None
    try:
        keyed = keyed_states(chk, allow_external_files=request.allow_external_files)
        states = take_states(keyed, state_names)
        request = replace(request, state_taken=states.fully_taken_operators)
    except DecodeError as error:
        if state_names or error.kind is ErrorKind.NOT_FOUND:
            raise
        warn(
            WarningCode.STATE_UNREADABLE,
            f"the keyed states that stay behind are not known: {error}",
        )
    if sources := context.file.spark_sources():
        plan, streams = plan_as_one(request, sources)
    else:
        plan, streams = plan_request(request), {}
    if states is not None:
        log_states(states, _HANDED_TO_PRIME)
    return PlannedMove(plan, states, streams)


def make_plan(context: CutOverContext, facts: Facts) -> str:
    """Make the plan from the savepoint, and save it unless this is a dry run.

    Return the number of partitions and the plan's file, as text.

    Raises:
        Refused: the plan must not be applied.
    """
    savepoint, path = context.savepoint, context.record.plan_path
    assert savepoint is not None  # the step ``clean`` has read the savepoint
    move = plan_move(context, savepoint)
    move.plan.check()
    text = counted(len(move.plan.next_offsets), "partition")
    if not context.record.is_kept:
        return text
    path.unlink(missing_ok=True)
    move.plan.save(path)
    _record_plan(context, move, savepoint)
    return f"{text}, in {path}"


def _record_plan(context: CutOverContext, move: PlannedMove, savepoint: str) -> None:
    findings, plan = read(savepoint).findings, move.plan
    context.record.change(
        plan=PlanReport(
            sha256=hashlib.sha256(context.record.plan_path.read_bytes()).hexdigest(),
            made_at=plan.made_at.isoformat(timespec="seconds"),
            cluster_id=plan.cluster_id,
            policies=context.file.policies(),
            findings=[
                f"{finding.severity.value}: {finding.code}: {finding.message}"
                for finding in findings
            ],
            warnings=list(map(with_spec_keys, plan.warnings)),
            states=list(move.states.lines(_HANDED_TO_PRIME)) if move.states is not None else [],
            streams={str(number): sorted(topics) for number, topics in move.streams.items()},
        ),
        partitions=[
            PartitionReport(
                topic=planned.topic,
                partition=planned.partition,
                verdict=planned.verdict,
                checkpoint=planned.position,
                planned=planned.next_offset,
                log_start=planned.log_start,
                log_end=planned.log_end,
                held=planned.current,
            )
            for planned in plan.partitions
        ],
    )
