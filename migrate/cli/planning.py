"""From arguments to what is to be written: what ``to-spark`` and ``commit-group`` do alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from decoder import read_checkpoint
from migrate.choose import choose_cluster, choose_sources
from migrate.cli.errors import Refused, UsageError
from migrate.cli.options import KafkaOptions
from migrate.cli.streams import say
from migrate.extract import Extraction, extract
from migrate.plan import Plan, make_plan, topics_to_ask
from migrate.plan_file import (
    PlanFile,
    moved_meanwhile,
    plan_file,
    read_plan,
    write_plan,
)
from migrate.policies import Policies
from migrate.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Move:
    """A plan that may be carried out: what to write, and what the broker said before."""

    saved: PlanFile
    snapshot: ClusterSnapshot | None

    @property
    def next_offsets(self) -> dict[tuple[str, int], int]:
        return self.saved.next_offsets


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked to move, and where to."""

    chk: str | None
    source: str | None
    cluster: str | None
    kafka: KafkaOptions
    source_group: str | None
    policies: Policies
    plan: Path | None
    plan_out: Path | None
    target_group: str | None = None


def decide(request: Request) -> Move:
    """Plan, or take up a saved plan; tell it on stderr; save it where asked.

    Raises:
        Refused: what would lose or repeat records is not allowed, or the cluster has moved since
            the plan was saved.
        UsageError: options that do not go together.
    """
    if request.plan is not None:
        return _take_up(request, request.plan)
    if request.chk is None:
        raise UsageError("name a checkpoint (CHK), or a saved plan with --plan")
    extraction = extract(read_checkpoint(request.chk))
    chosen = choose_cluster(choose_sources(extraction, request.source), request.cluster)
    snapshot = None
    if request.kafka.given:
        topics = topics_to_ask(chosen, request.policies)
        snapshot = _ask(request, topics, _since(request.policies, extraction))
    elif request.source_group is not None:
        raise UsageError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
    plan = make_plan(
        extraction, chosen, snapshot, request.policies, named=request.source is not None
    )
    _tell(plan, extraction)
    saved = plan_file(plan, extraction, snapshot, request.policies, request.target_group)
    if plan.refusals:
        if request.target_group is not None:
            _show(saved)
        raise Refused([str(refusal) for refusal in plan.refusals])
    if request.plan_out is not None:
        _save(saved, request.plan_out)
    return Move(saved, snapshot)


def _take_up(request: Request, path: Path) -> Move:
    if request.chk is not None or request.plan_out is not None:
        raise UsageError("--plan goes with neither CHK nor --plan-out: the plan says it all")
    saved = read_plan(path)
    if saved.group != request.target_group:
        raise UsageError(f"{path} is a plan for " + _target(saved.group))
    snapshot = None
    if saved.cluster_id is not None:
        if not request.kafka.given:
            raise UsageError(
                "this plan was made against a broker: add --bootstrap-servers HOST:PORT"
            )
        snapshot = _ask(request, saved.topics)
        moved = list(moved_meanwhile(saved, snapshot))
        if moved:
            raise Refused([f"{line}; make a new plan" for line in moved])
    say(f"plan of {saved.created_at} for checkpoint {saved.checkpoint.id}")
    for warning in saved.warnings:
        say(f"warning: {warning}")
    return Move(saved, snapshot)


def _target(group: str | None) -> str:
    return "to-spark" if group is None else f"commit-group --group {group}"


def _save(saved: PlanFile, path: Path) -> None:
    try:
        write_plan(saved, path)
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    say(f"wrote {path}: apply it with --plan")


def _ask(request: Request, topics: set[str], since: int | None = None) -> ClusterSnapshot:
    from migrate.broker import take_snapshot

    return take_snapshot(
        request.kafka.config(),
        topics,
        request.source_group,
        request.target_group,
        since,
    )


def _show(saved: PlanFile) -> None:
    """A change that is refused, partition by partition: talk, not data."""
    from migrate.report.plan import plan_table

    if saved.partitions and sys.stderr is not None:
        for line in plan_table(saved.partitions, sys.stderr).splitlines():
            say(line)


def _since(policies: Policies, extraction: Extraction) -> int | None:
    """The time whose first records are asked for: the user's, or the checkpoint's own."""
    if policies.unresolved_since is not None:
        return policies.unresolved_since
    return extraction.checkpoint.written_at


def _tell(plan: Plan, extraction: Extraction) -> None:
    for line in _lines(plan, extraction):
        say(line)


def _lines(plan: Plan, extraction: Extraction) -> Iterator[str]:
    from migrate.report.text import plan_lines, visible

    checkpoint = extraction.checkpoint
    yield f"checkpoint {checkpoint.checkpoint_id}: {visible(checkpoint.pointer)}"
    yield from plan_lines(plan)
    for warning in plan.warnings:
        yield f"warning: {visible(warning)}"
