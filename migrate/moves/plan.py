"""``plan``: what a move would do, or what a saved plan still stands for."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from decoder import DecodeError
from decoder.storage import METADATA_FILE, join
from migrate.inputs.flink.extract import PlanInput, Source
from migrate.inputs.flink.newer_checkpoints import look_beside
from migrate.model.cluster_snapshot import ClusterSnapshot, Question
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.policies import Policies
from migrate.model.positions import SPARK, Origin, Target, target_of
from migrate.model.topic_pattern import topic_pattern
from migrate.model.wording import counted
from migrate.moves.load_inputs import ask_broker, survey
from migrate.moves.options import Request, move_request
from migrate.moves.plan_origin import batches_since
from migrate.planning import Plan, make_plan, may_have_a_pattern, plan_lines
from migrate.planning.recheck import moved_meanwhile, ran_on_since
from migrate.storage.files import Files, MissingExtra, local_path

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.moves.options import AnyPath, MoveArguments


LAST_OUTPUT = (
    "stopped: this savepoint is the job's last output, unless it was started from it again"
)


def plan(chk: AnyPath, *, group: str | None = None, **arguments: Unpack[MoveArguments]) -> Plan:
    """Plan a move; nothing is written.

    Args:
        chk: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory; a local path or a URL. For a group also ``spark:DIR``.
        group: the consumer group to plan for; None plans for Spark.
        arguments: see ``MoveArguments``.

    Raises:
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, InputError: the checkpoint cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    return plan_move(move_request(chk, target_of(group), arguments))


def plan_move(request: Request) -> Plan:
    """``plan``, of what was asked for."""
    surveyed = survey(request)
    plan = plan_found(request, *surveyed)
    tell_which(surveyed.found.origin, request)
    for line in plan_lines(plan):
        log.info(line)
    for warning in plan.warnings:
        log.warning(warning)
    tell_of_patterns(surveyed.found.origin, request, surveyed.chosen, surveyed.snapshot)
    return plan


def plan_found(
    request: Request,
    found: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    *,
    named: bool = False,
) -> Plan:
    """The plan for what has been read, and looked at; nothing is asked, and nothing told.

    Args:
        chosen: what ``choose.choose`` said, or a part of it.
        snapshot: what a broker said to ``reading.question``, or None without one.
        named: whether the user chose these by name, also where ``request.source`` names none.
    """
    plan = make_plan(
        found,
        chosen,
        snapshot,
        request.policies,
        target=request.target,
        named=named or request.source is not None,
        bootstrap_servers=str(request.kafka.config()["bootstrap.servers"])
        if request.kafka.given
        else None,
    )
    if plan.origin.kind == "positions":
        return plan
    # A plan is applied from another folder, or by another program.
    return replace(plan, origin=replace(plan.origin, pointer=_absolute(plan.origin.pointer)))


def _absolute(pointer: str) -> str:
    """As the decoder looks beside it: links followed. What is no local path is whole already."""
    return pointer if "://" in pointer else os.path.realpath(pointer)


def tell_of_patterns(
    origin: Origin, request: Request, chosen: Sequence[Source], snapshot: ClusterSnapshot | None
) -> None:
    """That topics may be missing which nothing here shows, where none was looked for."""
    policies = request.policies
    if policies.topic_pattern is not None or policies.partitions is not None:
        return
    if snapshot is None or not may_have_a_pattern(chosen) or origin.kind != "checkpoint":
        return
    log.info(
        "note: a job that finds its topics by a pattern may not have found the youngest yet, and "
        "they cannot be seen here: --topic-pattern REGEX looks for them"
    )


def tell_which(origin: Origin, request: Request) -> None:
    """Tell which checkpoint it is, and what is to be known of one that its job stopped with."""
    log.info(f"{origin.title}: {origin.pointer}")
    if not origin.stopped:
        return
    if request.target == SPARK:  # of a group, ``running`` tells it
        log.info(LAST_OUTPUT)
    written_at = origin.written_at
    days = (time.time() - written_at / 1000) / 86_400 if written_at is not None else 0
    if days > 1 and request.source_group is None:
        log.warning(
            f"this savepoint was written {counted(int(days), 'day')} ago: if the job was started "
            "from it again, what Flink emitted since will be emitted again; --source-group GROUP, "
            "Flink's own, would show it"
        )


def planned(request: Request, given: AnyPath | Plan | None) -> Plan:
    """A new plan, or one made before, where that is given, and still stands.

    Raises:
        Refused: the cluster, the group or the job has moved since it was made.
        UsageError: arguments that do not go together.
        PlanFileError: it cannot be read.
    """
    if given is None:
        return plan_move(request)
    asked = (request.chk, request.source, request.cluster, request.source_group)
    if any(value is not None for value in asked) or request.policies != Policies():
        raise UsageError(
            "--plan says it all: it goes with no CHK, no --plan-out, and no option that chooses or "
            "allows something; make a new plan with them"
        )
    if isinstance(given, Plan):
        given.check()
        return _taken_up(request, given, "this")
    from migrate.planning.plan_file import read_plan

    return _taken_up(request, read_plan(local_path(os.fspath(given))), str(given))


def _taken_up(request: Request, plan: Plan, name: str) -> Plan:
    if plan.target != request.target:
        raise UsageError(f"{name} is a plan for " + _command(plan.target))
    if plan.cluster_id is not None and not request.kafka.given:
        raise UsageError("this plan was made against a broker: add --bootstrap-servers HOST:PORT")
    made_at = plan.made_at.isoformat(timespec="seconds")
    log.info(f"plan of {made_at} for {plan.origin.title}")
    if plan.origin.stopped and plan.target == SPARK:
        log.info(LAST_OUTPUT)
    for warning in plan.warnings:
        log.warning(warning)
    if plan.cluster_id is not None and not plan.topic_ids:
        log.warning(
            "these brokers give topics no id (Kafka < 2.8): one created again since, and "
            "grown beyond these offsets, would not show"
        )
    snapshot, _ = _look_again(request, plan, "; make a new plan with --plan-out")
    return replace(plan, snapshot=snapshot)


def _command(target: Target) -> str:
    return "to-spark" if target.kind == "spark" else f"commit-group --group {target.name}"


def check_unmoved(request: Request, plan: Plan) -> bool:
    """Just before writing: is what was decided on still what is there?

    Returns:
        Whether nothing shows that the job runs; it may, with ``allow_ran_on``.

    Raises:
        Refused: the cluster, the group or the job has moved.
    """
    _, ran_on = _look_again(request, plan, "")
    return not ran_on


def _look_again(
    request: Request, plan: Plan, way_out: str
) -> tuple[ClusterSnapshot | None, list[str]]:
    """What is there now, where a plan still stands (None where it was made without a broker), and
    what shows that the job has run on, where it may."""
    snapshot, moved = None, list[str]()
    if plan.cluster_id is not None:
        pattern = plan.topic_pattern
        asked = Question(
            frozenset(plan.topics),
            plan.source_group or plan.origin.group,
            request.target.name,
            pattern=topic_pattern(pattern) if pattern is not None else None,
        )
        snapshot = ask_broker(request.kafka.config(), asked)
        moved += moved_meanwhile(plan, snapshot)
    ran_on = list(ran_on_since(plan, snapshot, _newer_checkpoints(plan.origin)))
    if plan.origin.kind == "batch" and (since := batches_since(plan)):
        ran_on.append(since)
    lines = [f"the {_READERS[plan.origin.kind]} has run on since: {line}" for line in ran_on]
    if not plan.allow_ran_on:
        moved += lines
    if moved:
        raise Refused([line + way_out for line in moved])
    for line in lines:
        log.warning(f"{line}; more is repeated than was planned (--allow-ran-on)")
    return snapshot, ran_on


# Who reads on from what a plan was made from.
_READERS = {"checkpoint": "job", "batch": "query", "positions": "group"}


def _newer_checkpoints(origin: Origin) -> tuple[int, ...]:
    """Those that stand beside the plan's; none, and a note, where it cannot be looked at."""
    if origin.kind != "checkpoint":
        return ()
    files = Files()
    try:
        if not files.is_file(join(origin.pointer, METADATA_FILE)):
            log.info(f"note: {origin.pointer} is not there any more")
        beside = look_beside(origin.pointer, origin.number, files)
    except (DecodeError, MissingExtra, OSError) as error:
        log.info(f"note: whether the job ran on is not shown by its checkpoints: {error}")
        return ()
    return beside.newer if beside is not None else ()
