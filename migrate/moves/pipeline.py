"""The steps that every move takes: read, choose, ask the broker, plan, report.

What is left is to apply the plans, which each command does for its target.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from migrate.inputs.flink.choose_source import choose
from migrate.inputs.flink.extract import PlanInput
from migrate.inputs.flink.source import Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.log import log
from migrate.model.positions import SAVEPOINT, SPARK, Origin
from migrate.model.wording import counted
from migrate.moves.load_inputs import ask_about, read_input
from migrate.moves.options import Request
from migrate.planning import Plan, make_plan, may_have_a_pattern, plan_lines

LAST_OUTPUT = (
    "stopped: this savepoint is the job's last output, unless it was started from it again"
)


@dataclass(frozen=True, slots=True)
class Move:
    """Positions that were read, and a plan for each part of them.

    Attributes:
        request: what was asked for.
        positions: what was read.
        chosen: its sources that the options choose.
        snapshot: what the broker said, or None without one.
        plans: one of each part.
    """

    request: Request
    positions: PlanInput
    chosen: Sequence[Source]
    snapshot: ClusterSnapshot | None
    plans: Sequence[Plan]

    @property
    def warnings(self) -> list[str]:
        """The warnings of the plans."""
        return [warning for plan in self.plans for warning in plan.warnings]

    def report(
        self, names: Sequence[str] = ("",), more_warnings: Iterable[str] = ()
    ) -> tuple[str, ...]:
        """Log what moves, each plan by the name of its part, and the warnings; return these."""
        _report_origin(self.positions.origin, self.request)
        warnings = report_plans(self.plans, names, (*self.warnings, *more_warnings))
        if self._may_miss_topics():
            log.info(
                "note: a job that finds its topics by a pattern may not have found the youngest "
                "yet, and they cannot be seen here: --topic-pattern REGEX looks for them"
            )
        return warnings

    def _may_miss_topics(self) -> bool:
        policies = self.request.policies
        return (
            self.request.target != SAVEPOINT
            and (policies.topic_pattern, policies.partitions) == (None, None)
            and self.snapshot is not None
            and self.positions.origin.kind == "checkpoint"
            and may_have_a_pattern(self.chosen)
        )


def make_move(request: Request) -> Move:
    """Read what moves, choose of it, ask the broker where one is named, and plan.

    Raises:
        UsageError: options that do not go together, or name what is not there.
        DecodeError, InputError: it cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    positions = read_input(request)
    chosen = choose(positions, request)
    return plan_parts(request, positions, chosen, [chosen])


def plan_parts(
    request: Request,
    positions: PlanInput,
    chosen: Sequence[Source],
    parts: Iterable[Sequence[Source]],
    *,
    asked_about: Sequence[Source] | None = None,
    into: PlanInput | None = None,
    named: bool = False,
) -> Move:
    """Ask the broker once, and plan each part by itself.

    Args:
        request: what was asked for.
        positions: what was read.
        chosen: its sources that the options choose.
        parts: each the sources of one plan.
        asked_about: the sources whose topics the broker is asked about; by default those chosen.
        into: what the positions go into, where that has topics and transactions of its own.
        named: whether the user named the sources, also where ``request.source`` is None.

    Raises:
        UsageError: options that do not go together, or name what no source reads.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    snapshot = ask_about(request, positions, chosen if asked_about is None else asked_about, into)
    brokers = str(request.kafka.config()["bootstrap.servers"]) if request.kafka.is_named else None
    plans = []
    for sources in parts:
        if into is not None and not sources:  # of what keeps its positions
            plans.append(Plan(positions.origin, request.target, (), snapshot=snapshot))
            continue
        plan = make_plan(
            positions,
            sources,
            snapshot,
            request.policies,
            target=request.target,
            named=named or request.source is not None,
            bootstrap_servers=brokers,
        )
        if plan.origin.kind != "positions":
            # A plan is applied from another folder, or by another program.
            origin = replace(plan.origin, pointer=_absolute(plan.origin.pointer))
            plan = replace(plan, origin=origin)
        plans.append(plan)
    return Move(request, positions, chosen, snapshot, plans)


def report_plans(
    plans: Sequence[Plan], names: Sequence[str], warnings: Iterable[str]
) -> tuple[str, ...]:
    """Log plans, each by the name of its part, and the warnings, each once; return these."""
    for name, plan in zip(names, plans, strict=True):
        for line in plan_lines(plan):
            log.info(f"{name}: {line}" if name else line)
    once = tuple(dict.fromkeys(warnings))
    for warning in once:
        log.warning(warning)
    return once


def _report_origin(origin: Origin, request: Request) -> None:
    """Log which checkpoint it is, and what must be known of one that its job stopped with."""
    log.info(f"{origin.title}: {origin.pointer}")
    if not origin.stopped or request.target == SAVEPOINT:
        return
    if request.target == SPARK:  # of a group, ``job_stopped`` logs it
        log.info(LAST_OUTPUT)
    written_at = origin.written_at
    days = (time.time() - written_at / 1000) / 86_400 if written_at is not None else 0
    if days > 1 and request.source_group is None:
        log.warning(
            f"this savepoint was written {counted(int(days), 'day')} ago: if the job was started "
            "from it again, what Flink emitted since will be emitted again; --source-group GROUP, "
            "Flink's own, would show it"
        )


def _absolute(pointer: str) -> str:
    """Return a local path with its links followed, as the decoder does, and a URL as it is."""
    return pointer if "://" in pointer else os.path.realpath(pointer)
