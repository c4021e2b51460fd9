"""The steps of every move after its input is read: query the broker, plan, and report."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate.inputs.flink.source import Source
from migrate.inputs.plan_input import PlanInput
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.positions import SAVEPOINT
from migrate.moves.load_inputs import ChosenInput, ask_about
from migrate.moves.options import Request
from migrate.planning import Plan, make_plan, may_have_a_pattern, plan_lines


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
    ``into`` is the same as in ``ask_about``. If ``request.source`` is set, other sources are always
    ignored.

    Raises:
        UsageError, BrokerError: as in ``ask_about``.
    """
    positions, chosen = chosen_input
    snapshot = ask_about(request, chosen_input, into)
    broker = request.kafka.broker
    servers = str(broker["bootstrap.servers"]) if broker is not None else None
    plans = []
    for sources in [chosen] if parts is None else parts:
        if into is not None and not sources:  # nothing moves into this source of the target
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
        if request.to_kafka.is_given:
            from migrate.moves.translate import translate_plan  # here, because few moves need it

            plan = translate_plan(plan, request)
        plans.append(plan)
    return Move(request, chosen_input, snapshot, plans)


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
