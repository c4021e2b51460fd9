"""From arguments to what is to be written: what ``to-spark`` and ``commit-group`` do alike."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoder import DecodeError, read_checkpoint
from decoder.checkpoint import METADATA_FILE
from decoder.storage import join
from migrate.choose import choose_cluster, choose_sources
from migrate.cli.errors import Refused, UsageError
from migrate.cli.options import KafkaOptions
from migrate.cli.streams import say
from migrate.extract import Extraction, Source, extract
from migrate.plan_file import (
    PlanFile,
    moved_meanwhile,
    plan_file,
    ran_on_since,
    read_plan,
    write_plan,
)
from migrate.planning import Plan, make_plan, topics_to_ask
from migrate.policies import Policies
from migrate.snapshot import ClusterSnapshot
from migrate.spark_query import NothingCommitted, is_query, query_extraction
from migrate.stopped import look_beside
from migrate.storage import Files, MissingExtra


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
    allow_external_files: bool = False


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
    extraction = read_input(request, request.chk)
    chosen = choose_cluster(choose_sources(extraction, request.source), request.cluster)
    snapshot = look(request, extraction, chosen)
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


def read_input(request: Request, chk: str) -> Extraction:
    """What is to be moved: a Flink checkpoint, or a Spark query where that can be.

    Raises:
        Refused: the query has not committed anything yet.
        UsageError: options that do not go together.
    """
    if not is_query(chk):
        return extract(
            read_checkpoint(chk, Files(), allow_external_files=request.allow_external_files)
        )
    if request.target_group is None:
        raise UsageError(f"{chk}: it is a Spark query already; commit-group takes one")
    if (request.source, request.cluster, request.source_group) != (None, None, None):
        raise UsageError("--source, --cluster and --source-group are Flink's: not with spark:DIR")
    try:
        return query_extraction(chk)
    except NothingCommitted as error:
        raise Refused([str(error)]) from error


def look(
    request: Request, extraction: Extraction, chosen: Sequence[Source]
) -> ClusterSnapshot | None:
    """What the broker says of the topics of these sources; None where none is to be asked.

    Raises:
        UsageError: options that do not go together, or name what no source reads.
    """
    snapshot = None
    if request.kafka.given:
        topics = topics_to_ask(chosen, request.policies)
        snapshot = _ask(
            request,
            topics,
            request.source_group,
            extraction.checkpoint.written_at,
            request.policies.unresolved_since,
        )
    elif request.source_group is not None:
        raise UsageError("--source-group needs a broker: add --bootstrap-servers HOST:PORT")
    _check_names(request.policies, {topic for source in chosen for topic in source.topics})
    return snapshot


def _take_up(request: Request, path: Path) -> Move:
    from migrate.report.text import visible

    asked = (request.chk, request.source, request.cluster, request.source_group, request.plan_out)
    if any(value is not None for value in asked) or request.policies != Policies():
        raise UsageError(
            "--plan says it all: it goes with no CHK, no --plan-out, and no option that chooses or "
            "allows something; make a new plan with them"
        )
    saved = read_plan(path)
    if saved.group != request.target_group:
        raise UsageError(f"{path} is a plan for " + _target(saved.group))
    if saved.cluster_id is not None and not request.kafka.given:
        raise UsageError("this plan was made against a broker: add --bootstrap-servers HOST:PORT")
    what = "batch" if is_query(saved.checkpoint.pointer) else "checkpoint"
    say(f"plan of {saved.created_at} for {what} {saved.checkpoint.id}")
    for warning in saved.warnings:
        say(f"warning: {visible(warning)}")
    if saved.cluster_id is not None and not saved.topic_ids:
        say(
            "warning: these brokers give topics no id (Kafka < 2.8): one created again since, and "
            "grown beyond these offsets, would not show"
        )
    snapshot, _ = _look_again(request, saved, "; make a new plan")
    return Move(saved, snapshot)


def check_unmoved(request: Request, move: Move) -> bool:
    """Just before writing: is what was decided on still what is there?

    Returns:
        Whether nothing shows that the job runs; it may, with --allow-ran-on.

    Raises:
        Refused: the cluster, the group or the job has moved.
    """
    _, ran_on = _look_again(request, move.saved, "")
    return not ran_on


def _look_again(
    request: Request, saved: PlanFile, way_out: str
) -> tuple[ClusterSnapshot | None, list[str]]:
    """What is there now, where a plan still stands (None where it was made without a broker), and
    what shows that the job has run on, where it may."""
    snapshot, moved = None, list[str]()
    if saved.cluster_id is not None:
        snapshot = _ask(request, saved.topics, saved.source_group)
        moved += moved_meanwhile(saved, snapshot)
    ran_on = list(ran_on_since(saved, snapshot, _newer_checkpoints(saved)))
    if not saved.allow_ran_on:
        moved += [f"the job has run on since: {line}" for line in ran_on]
    if moved:
        raise Refused([line + way_out for line in moved])
    for line in ran_on:
        say(
            f"warning: the job has run on since: {line}; more is repeated than was planned "
            "(--allow-ran-on)"
        )
    return snapshot, ran_on


def _newer_checkpoints(saved: PlanFile) -> tuple[int, ...]:
    """Those that stand beside the plan's; none, and a note, where it cannot be looked at."""
    from migrate.report.text import visible

    checkpoint = saved.checkpoint
    if is_query(checkpoint.pointer):
        return ()  # a query commits to no group: that it goes on does no harm
    files = Files()
    try:
        if not files.is_file(join(checkpoint.pointer, METADATA_FILE)):
            say(f"note: {visible(checkpoint.pointer)} is not there any more")
        beside = look_beside(checkpoint.pointer, checkpoint.id, files)
    except (DecodeError, MissingExtra, OSError) as error:
        say(f"note: whether the job ran on is not shown by its checkpoints: {visible(str(error))}")
        return ()
    return beside.newer if beside is not None else ()


def _target(group: str | None) -> str:
    return "to-spark" if group is None else f"commit-group --group {group}"


def _save(saved: PlanFile, path: Path) -> None:
    try:
        write_plan(saved, path)
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    except OSError as error:
        raise UsageError(f"the plan {path} cannot be written: {error.strerror}") from error
    say(f"wrote {path}: apply it with --plan")


def _ask(
    request: Request,
    topics: set[str],
    source_group: str | None,
    since: int | None = None,
    at: int | None = None,
) -> ClusterSnapshot:
    from migrate.broker import take_snapshot

    return take_snapshot(
        request.kafka.config(),
        topics,
        source_group,
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
    what = "batch" if is_query(checkpoint.pointer) else "checkpoint"
    yield f"{what} {checkpoint.checkpoint_id}: {visible(checkpoint.pointer)}"
    yield from plan_lines(plan)
    for warning in plan.warnings:
        yield f"warning: {visible(warning)}"
