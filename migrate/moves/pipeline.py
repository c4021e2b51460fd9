"""The steps of every move after its input is read: query the broker, plan, and report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate.inputs.ask_broker import ask_broker, broker_needed
from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.positions import SAVEPOINT, SPARK
from migrate.moves.load_inputs import ChosenInput
from migrate.moves.options import Request
from migrate.planning import (
    Plan,
    check_topic_names,
    make_plan,
    make_question,
    may_have_a_pattern,
    plan_lines,
)


@dataclass(frozen=True, slots=True)
class Move:
    """The positions that were read, and the plans based on them.

    Attributes:
        snapshot: the broker's answers, or None if no broker was queried.
        plans: one plan for each part (see ``make_move``).
    """

    request: Request
    chosen_input: ChosenInput
    snapshot: ClusterSnapshot | None
    plans: Sequence[Plan]

    @property
    def warnings(self) -> list[str]:
        """The plans' warnings."""
        return [warning for plan in self.plans for warning in plan.warnings]

    def report(
        self, names: Sequence[str] = ("",), more_warnings: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Log the origin, the plans' lines, and the warnings; return the warnings.

        Args:
            names: for each plan, a name to print before its lines, or an empty string.
            more_warnings: the warnings to log after the plans' warnings.
        """
        origin = self.chosen_input.positions.origin
        log.info(f"{origin.title}: {origin.pointer}")
        warnings = report_plans(self.plans, names, (*self.warnings, *more_warnings))
        policies = self.request.policies
        if (
            self.request.target != SAVEPOINT
            and (policies.topic_pattern, policies.partitions) == (None, None)
            and self.snapshot is not None
            and origin.kind == "checkpoint"
            and may_have_a_pattern(self.chosen_input.chosen)
        ):
            log.debug(
                "note: a job with a topic pattern may not have discovered the newest topics yet, "
                "and they are not shown here; to check for them, add "
                f"{option('topic_pattern', 'REGEX')}"
            )
        return warnings


def make_move(
    request: Request,
    chosen_input: ChosenInput,
    parts: Iterable[Sequence[Source]] | None = None,
    *,
    into: PlanInput | None = None,
    ignore_other_sources: bool = False,
) -> Move:
    """Query the job's cluster once, if a broker is set, and plan each part.

    ``parts`` contains the sources for each plan; by default, one plan covers all sources that move.
    ``into`` is the savepoint or query that receives the positions, or None. Findings about other
    sources of the job are ignored if ``ignore_other_sources`` is True or ``request.source`` is set.

    Raises:
        UsageError: options cannot be combined, or they list a topic that no source reads.
        BrokerError: the broker did not answer, or it denied the request.
    """
    positions, chosen = chosen_input
    snapshot = _ask_broker_about(request, chosen_input, into)
    broker = request.kafka.broker
    servers = str(broker["bootstrap.servers"]) if broker is not None else None
    plans = []
    for sources in [chosen] if parts is None else parts:
        if into is not None and not sources:  # this part gets no positions
            plans.append(Plan(positions.origin, request.target, (), snapshot=snapshot))
            continue
        plan = make_plan(
            positions,
            sources,
            snapshot,
            request.job_policies,
            target=request.target,
            ignore_other_sources=ignore_other_sources or request.source is not None,
            bootstrap_servers=servers,
        )
        pointer = plan.origin.pointer
        if plan.origin.kind != "positions" and "://" not in pointer:
            # The plan may be applied in a different directory. Resolve links, as the decoder does.
            origin = replace(plan.origin, pointer=os.path.realpath(pointer))
            plan = replace(plan, origin=origin)
        if request.flink_rest is not None and plan.origin.is_of_flink:
            plan = replace(plan, queried_flink=True)
        if request.to_kafka.is_given:
            from migrate.moves.translate import translate_plan  # imported here; few moves need it

            plan = translate_plan(plan, request)
        plans.append(plan)
    return Move(request, chosen_input, snapshot, plans)


def _ask_broker_about(
    request: Request, chosen_input: ChosenInput, into: PlanInput | None = None
) -> ClusterSnapshot | None:
    """Query the broker about the sources' topics; return None if no broker is set.

    The broker is also queried about the topics and transactions of ``into``.

    Raises:
        UsageError: options cannot be combined, or they list a topic that no source reads.
        BrokerError: the broker did not answer, or it denied the request.
    """
    policies = request.policies
    positions, chosen = chosen_input
    check_topic_names(policies, chosen)
    if not request.kafka.is_given:
        if policies.topic_pattern is not None:
            raise broker_needed(option("topic_pattern"))
        if request.source_group is not None:
            raise broker_needed(option("source_group"))
        return None
    if policies.topic_pattern is not None and not may_have_a_pattern(chosen):
        raise UsageError(
            f"{option('topic_pattern')} does not support a DynamicKafkaSource, because its "
            "pattern matches streams, not topics"
        )
    question = make_question(
        positions,
        chosen,
        request.job_policies,
        source_group=request.source_group,
        # SPARK stands for any target without a group. If the target reads from another cluster, do
        # not query this cluster about the target's group: ``translate_plan`` queries the other
        # cluster.
        target=SPARK if request.to_kafka.is_given else request.target,
        into=into,
    )
    return ask_broker(request.kafka.config(), question)


def report_plans(
    plans: Sequence[Plan], names: Sequence[str], warnings: Iterable[str]
) -> tuple[str, ...]:
    """Log each plan's lines with its name, and each warning once; return the warnings."""
    for name, plan in zip(names, plans, strict=True):
        for line in plan_lines(plan):
            log.info(f"{name}: {line}" if name else line)
    once = tuple(dict.fromkeys(warnings))
    for warning in once:
        log.warning(warning)
    return once
