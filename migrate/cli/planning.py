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
        snapshot = _ask(
            request, topics, extraction.checkpoint.written_at, request.policies.unresolved_since
        )
    elif request.source_group is not None:
        raise UsageError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
    _check_names(request.policies, {topic for source in chosen for topic in source.topics})
    plan = make_plan(
        extraction, chosen, snapshot, request.policies, named=request.source is not None
    )
    _tell(plan, extraction)
    saved = plan_file(plan, extraction, snapshot, request.policies, request.target_group)
    if plan.refusals:
        if request.target_group is not None:
            _show(saved)
        raise Refused([str(refusal) for refusal in plan.refusals])
    if not saved.next_offsets:
        raise Refused(["there is nothing to move: no partition is left that has an offset"])
    if request.plan_out is not None:
        _save(saved, request.plan_out)
    return Move(saved, snapshot)


def _take_up(request: Request, path: Path) -> Move:
    asked = (request.chk, request.source, request.cluster, request.source_group, request.plan_out)
    if any(value is not None for value in asked) or request.policies != Policies():
        raise UsageError(
            "--plan says it all: it goes with no CHK, no --plan-out, and no option that chooses or "
            "allows something; make a new plan with them"
        )
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


def check_unmoved(request: Request, move: Move) -> None:
    """Just before writing: is what was decided on still what is there?

    Raises:
        Refused: the cluster or the group has moved.
    """
    moved = list(moved_meanwhile(move.saved, _ask(request, move.saved.topics)))
    if moved:
        raise Refused(moved)


def _target(group: str | None) -> str:
    return "to-spark" if group is None else f"commit-group --group {group}"


def _save(saved: PlanFile, path: Path) -> None:
    try:
        write_plan(saved, path)
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    say(f"wrote {path}: apply it with --plan")


def _ask(
    request: Request, topics: set[str], since: int | None = None, at: int | None = None
) -> ClusterSnapshot:
    from migrate.broker import take_snapshot

    return take_snapshot(
        request.kafka.config(),
        topics,
        request.source_group,
        request.target_group,
        since,
        at,
    )


def _check_names(policies: Policies, topics: set[str]) -> None:
    """A topic that no chosen source reads is a slip of the finger."""
    for option, names in (
        ("--topic-map", policies.topic_map),
        ("--partitions", policies.partitions or {}),
    ):
        unknown = sorted(set(names) - topics)
        if unknown:
            known = ", ".join(sorted(topics))
            raise UsageError(f"{option} {unknown[0]}: no source reads it; they read: {known}")


def _show(saved: PlanFile) -> None:
    """A change that is refused, partition by partition: talk, not data."""
    from migrate.report.plan import plan_table

    if saved.partitions and sys.stderr is not None:
        for line in plan_table(saved.partitions, sys.stderr).splitlines():
            say(line)


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
