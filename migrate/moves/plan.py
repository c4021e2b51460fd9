"""``plan``: plan a move, or check that a saved plan is still valid."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from migrate.inputs.ask_broker import ask_broker
from migrate.inputs.before_move import (
    check_before_write,
    check_job,
    continued_refusals,
    without_committed_output,
)
from migrate.inputs.flink.checkpoint_progress import checkpoint_signs
from migrate.inputs.flink.extract import Extraction
from migrate.inputs.flink.job_state import JobState, Judgment, judge
from migrate.model.catalog import FLINK_NOT_QUERIED_SINCE_PLAN
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.message import Message
from migrate.model.option_names import option
from migrate.model.policies import Compare
from migrate.model.positions import PLAN_PREFIX, SPARK, Origin, prefix_advice, target_of
from migrate.model.topic_pattern import topic_pattern
from migrate.model.warning import warn
from migrate.model.warning_catalog import KEPT_RUNNING_SINCE_PLAN, NO_TOPIC_IDS
from migrate.moves.load_inputs import ChosenInput, read_input
from migrate.moves.options import MoveArguments, Request, move_request
from migrate.moves.pipeline import make_move
from migrate.planning import Plan
from migrate.storage.uris import AnyPath, local_path

if TYPE_CHECKING:
    from typing_extensions import Unpack


def plan(chk: AnyPath, *, group: str | None = None, **arguments: Unpack[MoveArguments]) -> Plan:
    """Plan a move without writing anything.

    ``Plan.save`` does not wait for a newer checkpoint of a running job, but applying the plan does.

    Args:
        chk: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory; each as a local path or a URL. For a group, ``chk`` can also be
            ``spark:DIR``; for Spark, any side that ``diff`` compares.
        group: the consumer group to plan for; None to plan for Spark.
        arguments: see ``MoveArguments``.

    Raises:
        UsageError: arguments cannot be combined, or they name something that does not exist.
        DecodeError, InputError: the checkpoint cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
        Refused, FlinkRestError: as in ``check_job``, with ``flink_rest``.
    """
    request = move_request(target_of(group), arguments)
    move = plan_move(read_input(chk, request), request)
    if not move.refusals:
        check_job_of_plan(request, move)
    return move


def check_job_of_plan(request: Request, plan: Plan, *, saved: bool = False) -> Judgment:
    """Check whether the job that wrote a plan's checkpoint kept running; see ``check_job``."""
    return check_job(
        plan.origin,
        request.flink_rest,
        allow_ran_on=plan.allow_ran_on,
        source_group=compared_group(plan),
        saved=saved,
    )


def compared_group(*plans: Plan) -> str | None:
    """Return the job's group if the group's commits show that the job did not continue.

    Otherwise, return None. The commits show this if the committed offset of each compared partition
    equals the position in the checkpoint. A lower offset shows nothing, because it may come from a
    different time or a different client.
    """
    compared = [
        (planned.flink_committed, planned.position)
        for plan in plans
        for planned in plan.partitions
        if planned.flink_committed is not None and isinstance(planned.position, int)
    ]
    is_at_positions = bool(compared) and all(commit == at for commit, at in compared)
    return plans[0].source_group if is_at_positions else None


def check_origin(
    origin: Origin, request: Request, plans: Sequence[Plan] = (), *, writes: bool
) -> None:
    """Call ``check_job`` for the job of an origin; if ``writes``, also call ``check_before_write``.

    ``plans`` are the plans that move the origin's positions.
    """
    group, allow_ran_on = compared_group(*plans), request.policies.allow_ran_on
    judgment = check_job(origin, request.flink_rest, allow_ran_on=allow_ran_on, source_group=group)
    if writes:
        check_before_write(
            origin,
            judgment,
            allow_ran_on=allow_ran_on,
            source_group=group,
            refuses_old=request.target == SPARK,
            flink_rest=request.flink_rest,
        )


def check_before_writing_plan(
    request: Request, plan: Plan, judgment: Judgment, *, saved: bool = False
) -> None:
    """Call ``check_before_write`` just before a plan or the plan's start offsets are written.

    Raises:
        Refused: as in ``check_before_write`` and ``recheck_plan``.
        BrokerError: the broker did not answer, or it denied the request.
        FlinkRestError: as in ``check_before_write``.
    """
    check_before_write(
        plan.origin,
        judgment,
        allow_ran_on=plan.allow_ran_on,
        source_group=compared_group(plan),
        refuses_old=plan.target.group is None,
        saved=saved,
        flink_rest=request.flink_rest,
        signs=lambda: recheck_plan(request, plan)[1],
    )


def plan_move(chosen_input: ChosenInput, request: Request) -> Plan:
    """Make one plan and report it."""
    move = make_move(request, _without_committed_output(chosen_input, request.flink_rest))
    move.report()
    return move.plans[0]


def _without_committed_output(chosen_input: ChosenInput, flink_rest: str | None) -> ChosenInput:
    """Return the input without findings that do not apply if the job has FINISHED.

    Return the input unchanged if Flink is not queried, or if it does not list the job as FINISHED
    with this savepoint.

    Raises:
        FlinkRestError, UsageError: as in ``judge``.
    """
    positions = chosen_input.positions
    if (
        flink_rest is None
        or not isinstance(positions, Extraction)
        or not positions.origin.stopped
        or not any(finding.void_if_finished for finding in positions.findings)
        or judge(positions.origin, flink_rest).state is not JobState.STOPPED
    ):
        return chosen_input
    findings = without_committed_output(positions.findings)
    return chosen_input._replace(positions=replace(positions, findings=findings))


def check_plan(chk: AnyPath | None, request: Request, plan: AnyPath | Plan) -> Plan:
    """Check that a saved plan is still valid; return the plan as of now.

    The returned plan has a new cluster snapshot, the log ranges in this snapshot, and only the
    warnings that still apply.

    Raises:
        Refused: the cluster, the group, or the job has changed since the plan was made; or Flink
            was queried for the plan, but the request has no address of Flink.
        UsageError: arguments cannot be combined, such as a plan and ``chk``.
        InputError: the plan cannot be read.
        BrokerError: the broker did not answer, or it denied the request.
    """
    if chk is not None:
        raise UsageError(
            f"{option('plan', 'FILE')} cannot be combined with CHK, because the plan already "
            f"specifies the move; to change the plan, create a new plan with {option('plan_out')}"
        )
    plan, name = load_plan(plan)
    if plan.target != request.target:
        raise other_command_error(name, plan)
    if plan.cluster_id is not None and not request.kafka.is_given:
        add = option("bootstrap_servers", "HOST:PORT")
        raise UsageError(f"this plan was created with a broker, so it requires a broker; add {add}")
    # Without Flink, only the commits of the source group show that the job was not restarted.
    is_shown = request.flink_rest is not None or compared_group(plan) is not None
    if plan.queried_flink and not (is_shown or plan.allow_ran_on):
        raise Refused(FLINK_NOT_QUERIED_SINCE_PLAN())
    # Imported here, because most moves read no plan.
    from migrate.moves.translate import check_target_kafka
    from migrate.planning.recheck import current_partitions, current_warnings

    check_target_kafka(plan, request.to_kafka)
    log.info(
        f"saved plan for {plan.origin.title}, made at {plan.made_at.isoformat(timespec='seconds')}"
    )
    snapshot, _ = recheck_plan(request, plan)
    plan = replace(
        plan,
        partitions=current_partitions(plan, snapshot),
        warnings=current_warnings(plan, snapshot),
        snapshot=snapshot,
    )
    for warning in plan.warnings:
        log.warning(warning)
    if plan.cluster_id is not None and not plan.topic_ids:
        warn(NO_TOPIC_IDS())
    return plan


def load_plan(plan: AnyPath | Plan) -> tuple[Plan, str]:
    """Return a plan and its name for messages (its file name or "this").

    Raises:
        Refused: the ``Plan`` has refusals.
        UsageError: as in ``plan_path``.
        InputError: the file cannot be read.
    """
    if isinstance(plan, Plan):
        plan.check()
        return plan, "this"
    from migrate.planning.plan_file import read_plan

    name = os.fspath(plan)
    return read_plan(plan_path("plan", name)), name


def plan_path(name: str, path: str) -> Path:
    """Return the local path of the plan that the option ``name`` specifies.

    Raises:
        UsageError: ``path`` is a URL, or it starts with ``plan:``.
    """
    if advice := prefix_advice(path, PLAN_PREFIX):
        raise UsageError(f"{option(name, path)}: {advice}")
    return local_path(path)


def other_command_error(name: str, plan: Plan) -> UsageError:
    """Return the error for a plan that was made for a different command or a different group."""
    command = shlex.join(plan.target.command)
    apply = shlex.join(plan.apply_command(name))
    way_out = f", or apply this plan with `{apply}`" if name != "this" else ""
    return UsageError(
        f"{name} is a plan for {command}; create a plan for this command with "
        f"{option('plan_out')}{way_out}"
    )


def recheck_plan(request: Request, plan: Plan) -> tuple[ClusterSnapshot | None, list[str]]:
    """Check that a plan is still valid. Commands that write repeat this check.

    Returns:
        The current state of the target's cluster (None if the plan was made without a broker), and
        the signs that the job kept running.

    Raises:
        Refused: the cluster or the group has changed; or the job kept running, and the plan does
            not allow it.
    """
    from migrate.planning.recheck import find_cluster_changes, signs_of_progress

    snapshot, refusals = None, list[Message]()
    own = plan.in_job_cluster()
    if plan.cluster_id is not None:
        question = Question(
            frozenset(own.topics),
            plan.source_group or plan.origin.group,
            None if plan.is_translated else request.target.group,
            pattern=topic_pattern(plan.topic_pattern) if plan.topic_pattern is not None else None,
        )
        snapshot = ask_broker(request.kafka.config(), question)
        refusals += find_cluster_changes(own, snapshot)
    if plan.origin.kind == "batch":
        # Imported here, because most moves do not need it.
        from migrate.moves.plan_origin import query_signs

        signs = query_signs(plan)
    else:
        signs = checkpoint_signs(plan.origin)
    ran_on = [*signs, *signs_of_progress(own, snapshot)]
    if plan.is_translated:
        question = Question(frozenset(plan.topics), target_group=request.target.group)
        snapshot = ask_broker(request.to_kafka.config(), question)
        refusals += find_cluster_changes(plan.in_target_cluster(), snapshot)
        if not refusals:
            from migrate.moves.translate import find_translation_changes

            changes = find_translation_changes(
                plan,
                request.kafka.config(),
                request.to_kafka.config(),
                is_whole=request.compare is Compare.ALL,
            )
            refusals += [*changes.other_places, *changes.unmatched]
    if not plan.allow_ran_on:
        refusals += continued_refusals(plan.origin, ran_on)
    if refusals:
        raise Refused(refusals)
    for sign in ran_on:
        reader = plan.origin.reader
        warn(KEPT_RUNNING_SINCE_PLAN(reader=reader, sign=sign))
    return snapshot, ran_on
