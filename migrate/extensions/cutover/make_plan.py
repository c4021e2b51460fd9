"""Make the plan of a cut-over."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from decoder import DecodeError, ErrorKind
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import Facts
from migrate.extensions.cutover.other_cut_overs import refuse_savepoint_of_other
from migrate.extensions.cutover.report import CutOverRecord, PartitionReport, PlanReport
from migrate.inputs.before_move import without_committed_output
from migrate.inputs.flink.extract import Extraction
from migrate.model.errors import InputError, Refused
from migrate.model.extensions import service
from migrate.model.finding import Code, Finding
from migrate.model.log import log
from migrate.model.positions import target_of
from migrate.model.warning import warn
from migrate.model.wording import counted
from migrate.moves.load_inputs import read_input
from migrate.moves.options import move_request
from migrate.moves.plan import plan_move as plan_request
from migrate.moves.spark_sources import plan_as_one
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.storage.json_models import EditedFile

_STEP = "plan"
# The phrase that messages and the record use for migrated states.
_HANDED_TO_PRIME = "is passed to the prime command"


class MigratedStates(Protocol):
    """The keyed states in a checkpoint, as classified by the ``stateful_query`` extension."""

    def lines(self, taken: str) -> Iterator[str]:
        """Yield lines about each state; ``taken`` is the phrase for migrated states."""

    @property
    def taken(self) -> Sequence[object]:
        """The states that move."""

    @property
    def left_behind(self) -> Sequence[object]:
        """The readable states, except timers, that do not move."""

    @property
    def unreadable(self) -> Sequence[str]:
        """Descriptions of unreadable states."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A plan, with the job's keyed states and the query's streams.

    Attributes:
        findings: the findings that ``plan_move`` did not drop.
        states: the keyed states, or None if reading failed.
        streams: the topics of each stream, by the stream's number; empty for a spec without
            streams.
    """

    plan: Plan
    findings: Sequence[Finding]
    states: MigratedStates | None
    streams: Mapping[int, frozenset[str]]


# The notes about findings that are dropped, because the stop-with-savepoint of the running job will
# resolve them.
_STOP_NOTES = {
    Code.PENDING_TRANSACTIONS: "has uncommitted output in this checkpoint; the stop commits it",
    Code.IN_FLIGHT_RECORDS: "has in-flight records in this checkpoint; the stop processes them",
}


def plan_move(context: CutOverContext, chk: str, *, job_runs: bool = False) -> PlannedMove:
    """Plan the move from a checkpoint or a savepoint, and log the plan's warnings.

    ``job_runs`` is True if the job is still running and will be stopped before the move. Findings
    that no longer apply after the stop are then dropped.

    Raises:
        MigrateError, DecodeError: as in ``migrate.plan`` and ``take_states_along``.
    """
    arguments = context.file.move_arguments()
    if job_runs:
        arguments["allow_ran_on"] = True
    request = move_request(target_of(context.spec.target.group), arguments)
    state_names, states = context.spec.states, None
    chosen_input = read_input(chk, request)
    positions = chosen_input.positions
    assert isinstance(positions, Extraction)  # ``chk`` is a checkpoint or a savepoint
    findings = positions.findings
    if job_runs:
        for finding in findings:
            if finding.void_after_stop and finding.code in _STOP_NOTES:
                log.info(f"note: {finding.operator} {_STOP_NOTES[finding.code]} [{finding.code}]")
        findings = tuple(finding for finding in findings if not finding.void_after_stop)
    elif not context.spec.stopped_by_others and context.record.model.flink.finished:
        findings = without_committed_output(findings)
    chosen_input = chosen_input._replace(positions=replace(positions, findings=findings))
    take_states_along = service("stateful_query", "take_states_along")
    try:
        chosen_input, states = take_states_along(chosen_input, state_names, request)
    except DecodeError as error:
        if state_names or error.kind is ErrorKind.NOT_FOUND:
            raise
        warn(catalog.KEYED_STATES_UNREADABLE(error=str(error)))
    if sources := context.file.spark_sources():
        plan, streams = plan_as_one(chosen_input, request, sources)
    else:
        plan, streams = plan_request(chosen_input, request), {}
    if states is not None:
        service("stateful_query", "log_states")(states, _HANDED_TO_PRIME)
    return PlannedMove(plan, findings, states, streams)


def make_plan(context: CutOverContext, facts: Facts) -> str:
    """Make the plan from the savepoint, and save it unless this is a dry run.

    Raises:
        Refused: the plan has refusals, it differs from the plan that a run with ``--until plan``
            made, or the file with that plan was edited.
        MigrateError, DecodeError: as in ``plan_move``.
    """
    savepoint, path = context.savepoint, context.record.plan_path
    assert savepoint is not None  # the ``clean`` step has read the savepoint
    if path.exists():
        _refuse_edited_plan(path)
    move = plan_move(context, savepoint)
    move.plan.check()
    refuse_savepoint_of_other(facts, move.plan.next_offsets)
    if context.until != _STEP and (differences := [*_differences(context.record.model, move)]):
        raise Refused(catalog.PLAN_DIFFERS_FROM_REVIEW(differences=differences))
    text = counted(len(move.plan.next_offsets), "partition")
    if not context.record.writes_to_disk:
        context.previewed_plan = move.plan
        return text
    path.unlink(missing_ok=True)
    move.plan.save(path)
    _record_plan(context, move)
    return f"{text}, in {path}"


def _refuse_edited_plan(path: Path) -> None:
    """Refuse to replace an edited plan; any other plan, even an unreadable one, is replaced."""
    try:
        read_plan(path)
    except EditedFile as error:
        raise Refused(catalog.SAVED_PLAN_EDITED(path=path)) from error
    except InputError:
        pass


def _differences(record: CutOverRecord, move: PlannedMove) -> Iterator[str]:
    """Yield how this plan differs from an earlier plan that was saved for review, if any."""
    if record.plan is None or not record.plan.for_review:
        return
    plan, streams = move.plan, _recorded_streams(move)
    for number in sorted(record.plan.streams.keys() | streams.keys(), key=int):
        had, has = (
            ", ".join(topics.get(number, ())) or "nothing"
            for topics in (record.plan.streams, streams)
        )
        if had != has:
            yield f"stream {number} was {had}, and is now {has}"
    if plan.target_cluster_id != record.plan.cluster_id:
        yield f"the cluster was {record.plan.cluster_id}, and is now {plan.target_cluster_id}"
    reviewed = {(row.topic, row.partition): row.planned for row in record.partitions}
    planned = plan.next_offsets
    for topic, partition in sorted(reviewed.keys() | planned.keys()):
        before, after = (offsets.get((topic, partition)) for offsets in (reviewed, planned))
        if before != after:
            was, now = (
                "not moved" if next_offset is None else next_offset
                for next_offset in (before, after)
            )
            yield f"{topic}-{partition} was {was}, and is now {now}"


def _recorded_streams(move: PlannedMove) -> dict[str, list[str]]:
    return {str(number): sorted(topics) for number, topics in move.streams.items()}


def _record_plan(context: CutOverContext, move: PlannedMove) -> None:
    plan, before = move.plan, context.record.model.plan
    # ``make_plan`` has refused a plan that differs from the reviewed plan.
    is_reviewed = before is not None and before.for_review
    context.record.change(
        plan=PlanReport(
            sha256=hashlib.sha256(context.record.plan_path.read_bytes()).hexdigest(),
            made_at=plan.made_at.isoformat(timespec="seconds"),
            cluster_id=plan.target_cluster_id,
            policies=context.file.changed_move_keys(),
            findings=[
                f"{finding.severity.value}: {finding.code}: {finding.message}"
                for finding in move.findings
            ],
            warnings=list(plan.warnings),
            states=list(move.states.lines(_HANDED_TO_PRIME)) if move.states is not None else [],
            for_review=is_reviewed or context.until == _STEP,
            streams=_recorded_streams(move),
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
