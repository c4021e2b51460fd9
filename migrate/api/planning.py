"""``plan``: what a move would do, or what a saved plan still stands for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from decoder import DecodeError
from decoder.storage import METADATA_FILE, join
from migrate.api.arguments import Request, move_request
from migrate.api.reading import Question, ask_broker, look, read_input
from migrate.api.telling import log
from migrate.choose import choose
from migrate.errors import Refused, UsageError
from migrate.extract import Extraction, Source, is_last_output
from migrate.planning import Plan, make_plan, plan_lines
from migrate.policies import Policies
from migrate.positions import TopicPartition
from migrate.snapshot import ClusterSnapshot
from migrate.spark_query import is_query, title
from migrate.stopped import look_beside
from migrate.storage import Files, MissingExtra
from migrate.wording import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from migrate.api.arguments import AnyPath, MoveArguments
    from migrate.plan_file import PlanFile, SavedPartition


LAST_OUTPUT = (
    "stopped: this savepoint is the job's last output, unless it was started from it again"
)


@dataclass(frozen=True)
class PlannedMove:
    """What a move would do, partition by partition. Only one without refusals is carried out.

    Attributes:
        next_offsets: what a target is to start from, by topic and partition.
        refusals: why it must not be carried out, a line each with the way out.
        warnings: what is not refused, and must be known.
        only_some_partitions: whether its topics have partitions that are not to move.
        snapshot: what the broker said; None without one.
    """

    next_offsets: Mapping[TopicPartition, int]
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]
    only_some_partitions: bool
    snapshot: ClusterSnapshot | None = field(repr=False)
    _saved: Callable[[], PlanFile] = field(repr=False)

    @cached_property
    def saved(self) -> PlanFile:
        """The plan as ``save`` writes it: the checkpoint, the cluster, every partition."""
        return self._saved()

    @property
    def partitions(self) -> Sequence[SavedPartition]:
        """Each topic-partition: what the checkpoint says, the verdict, the next offset."""
        return self.saved.partitions

    def check(self) -> None:
        """Raise ``Refused`` where it must not be carried out."""
        if self.refusals:
            raise Refused(self.refusals)

    def save(self, path: AnyPath) -> None:
        """Write the plan as JSON, to be applied later: ``--plan-out``.

        Raises:
            Refused: it must not be carried out, or there is a file of this name.
            UsageError: it cannot be written there.
        """
        from migrate.json_models import write_file

        self.check()
        path = Path(path)
        try:
            write_file(self.saved, path)
        except FileExistsError as error:
            raise Refused([f"{path} is there already; name a new file"]) from error
        except OSError as error:
            raise UsageError(f"the plan {path} cannot be written: {error.strerror}") from error
        log.info(f"wrote {path}: apply it with --plan")


def plan(
    chk: AnyPath, *, group: str | None = None, **arguments: Unpack[MoveArguments]
) -> PlannedMove:
    """Plan a move; nothing is written.

    ``migrate to-spark`` and ``migrate commit-group`` with ``--plan-out`` are this and ``save``.

    Args:
        chk: a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's checkpoint
            directory; a local path or a URL. For a group also ``spark:DIR``.
        group: the consumer group to plan for; None plans for Spark.
        arguments: see ``MoveArguments``.

    Raises:
        UsageError: arguments that do not go together, or name what is not there.
        DecodeError, UnreadableInput: the checkpoint cannot be read.
        BrokerError: the broker did not answer, or denied what was asked.
    """
    return plan_move(move_request(chk, group, arguments))


def plan_move(request: Request) -> PlannedMove:
    """``plan``, of what was asked for."""
    extraction = read_input(request)
    chosen = choose(extraction, request)
    snapshot = look(request, extraction, chosen)
    move, made = plan_extraction(request, extraction, chosen, snapshot)
    tell_which(extraction, request)
    for line in plan_lines(made):
        log.info(line)
    for warning in made.warnings:
        log.warning(warning)
    return move


def plan_extraction(
    request: Request,
    extraction: Extraction,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
) -> tuple[PlannedMove, Plan]:
    """The plan for what has been read, and looked at; nothing is asked, and nothing told.

    Args:
        chosen: what ``choose.choose`` said.
        snapshot: what a broker said to ``reading.question``, or None without one.
    """
    policies, group = request.policies, request.target_group
    made = make_plan(
        extraction,
        chosen,
        snapshot,
        policies,
        named=request.source is not None,
        bootstrap_servers=request.kafka.asked,
    )
    now = datetime.now(timezone.utc)

    def saved() -> PlanFile:
        from migrate.plan_file import plan_file

        return plan_file(made, extraction, snapshot, policies, group, now)

    refusals, only_some = refusals_of(made), policies.partitions is not None
    move = PlannedMove(made.next_offsets, refusals, made.warnings, only_some, snapshot, saved)
    return move, made


def refusals_of(made: Plan) -> tuple[str, ...]:
    """Why a plan must not be carried out: one that moves nothing neither."""
    if made.refusals or made.next_offsets:
        return tuple(map(str, made.refusals))
    return ("there is nothing to move: no partition is left that has an offset",)


def tell_which(extraction: Extraction, request: Request) -> None:
    """Tell which checkpoint it is, and what is to be known of one that its job stopped with."""
    checkpoint = extraction.checkpoint
    log.info(f"{title(checkpoint.pointer, checkpoint.checkpoint_id)}: {checkpoint.pointer}")
    if not is_last_output(checkpoint):
        return
    if request.target_group is None:  # of a group, ``running`` tells it
        log.info(LAST_OUTPUT)
    written_at = checkpoint.written_at
    days = (time.time() - written_at / 1000) / 86_400 if written_at is not None else 0
    if days > 1 and request.source_group is None:
        log.warning(
            f"this savepoint was written {counted(int(days), 'day')} ago: if the job was started "
            "from it again, what Flink emitted since will be emitted again; --source-group GROUP, "
            "Flink's own, would show it"
        )


def planned(request: Request, saved: AnyPath | PlannedMove | None) -> PlannedMove:
    """A new plan, or one made before, where that is given, and still stands.

    Raises:
        Refused: the cluster, the group or the job has moved since it was made.
        UsageError: arguments that do not go together.
        PlanFileError: it cannot be read.
    """
    if saved is None:
        return plan_move(request)
    asked = (request.chk, request.source, request.cluster, request.source_group)
    if any(value is not None for value in asked) or request.policies != Policies():
        raise UsageError(
            "--plan says it all: it goes with no CHK, no --plan-out, and no option that chooses or "
            "allows something; make a new plan with them"
        )
    if isinstance(saved, PlannedMove):
        saved.check()
        return _taken_up(request, saved.saved, "this")
    from migrate.plan_file import read_plan

    return _taken_up(request, read_plan(Path(saved)), str(saved))


def _taken_up(request: Request, saved: PlanFile, name: str) -> PlannedMove:
    if saved.group != request.target_group:
        raise UsageError(f"{name} is a plan for " + _target(saved.group))
    if saved.cluster_id is not None and not request.kafka.given:
        raise UsageError("this plan was made against a broker: add --bootstrap-servers HOST:PORT")
    checkpoint = saved.checkpoint
    log.info(f"plan of {saved.created_at} for {title(checkpoint.pointer, checkpoint.id)}")
    if checkpoint.stopped and saved.group is None:
        log.info(LAST_OUTPUT)
    for warning in saved.warnings:
        log.warning(warning)
    if saved.cluster_id is not None and not saved.topic_ids:
        log.warning(
            "these brokers give topics no id (Kafka < 2.8): one created again since, and "
            "grown beyond these offsets, would not show"
        )
    snapshot, _ = _look_again(request, saved, "; make a new plan with --plan-out")
    return PlannedMove(
        saved.next_offsets,
        (),
        tuple(saved.warnings),
        saved.only_some_partitions,
        snapshot,
        lambda: saved,
    )


def _target(group: str | None) -> str:
    return "to-spark" if group is None else f"commit-group --group {group}"


def check_unmoved(request: Request, saved: PlanFile) -> bool:
    """Just before writing: is what was decided on still what is there?

    Returns:
        Whether nothing shows that the job runs; it may, with ``allow_ran_on``.

    Raises:
        Refused: the cluster, the group or the job has moved.
    """
    _, ran_on = _look_again(request, saved, "")
    return not ran_on


def _look_again(
    request: Request, saved: PlanFile, way_out: str
) -> tuple[ClusterSnapshot | None, list[str]]:
    """What is there now, where a plan still stands (None where it was made without a broker), and
    what shows that the job has run on, where it may."""
    from migrate.plan_file import moved_meanwhile, ran_on_since

    snapshot, moved = None, list[str]()
    if saved.cluster_id is not None:
        asked = Question(frozenset(saved.topics), saved.source_group, request.target_group)
        snapshot = ask_broker(request.kafka, asked)
        moved += moved_meanwhile(saved, snapshot)
    ran_on = list(ran_on_since(saved, snapshot, _newer_checkpoints(saved)))
    if not saved.allow_ran_on:
        moved += [f"the job has run on since: {line}" for line in ran_on]
    if moved:
        raise Refused([line + way_out for line in moved])
    for line in ran_on:
        log.warning(
            f"the job has run on since: {line}; more is repeated than was planned (--allow-ran-on)"
        )
    return snapshot, ran_on


def _newer_checkpoints(saved: PlanFile) -> tuple[int, ...]:
    """Those that stand beside the plan's; none, and a note, where it cannot be looked at."""
    checkpoint = saved.checkpoint
    if is_query(checkpoint.pointer):
        return ()  # a query commits to no group: that it goes on does no harm
    files = Files()
    try:
        if not files.is_file(join(checkpoint.pointer, METADATA_FILE)):
            log.info(f"note: {checkpoint.pointer} is not there any more")
        beside = look_beside(checkpoint.pointer, checkpoint.id, files)
    except (DecodeError, MissingExtra, OSError) as error:
        log.info(f"note: whether the job ran on is not shown by its checkpoints: {error}")
        return ()
    return beside.newer if beside is not None else ()
