"""The actions on the target: plan, write, adopt, verify."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace

from decoder import StopKind
from migrate.cutover.beginning import Begun, beginning
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.decide_target import first_batch
from migrate.cutover.facts import Facts, GroupFacts, LocationFacts
from migrate.cutover.judge import Judgement, Seen, judge
from migrate.cutover.observe import read_savepoint
from migrate.cutover.plan_move import HANDED, PlannedMove, plan_move
from migrate.cutover.prime import NotPrimed, prime
from migrate.cutover.record import now
from migrate.inputs.flink.read import read
from migrate.inputs.spark_log import committed_positions
from migrate.model.errors import Refused
from migrate.model.positions import TopicPartition
from migrate.model.wording import counted
from migrate.moves.commit_group import commit_group
from migrate.moves.load_inputs import asker
from migrate.moves.options import kafka
from migrate.moves.to_spark import to_spark
from migrate.moves.verify import verify
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.report.cut_over import PartitionReport, PlanReport, VerificationReport
from migrate.targets.group.commit import Applied
from migrate.targets.group.rollback_file import default_path
from migrate.targets.seed import is_unfinished, remove_seed, replace_query_id, write_checkpoint

# -- plan ------------------------------------------------------------------------------------------


def make_plan(context: CutOverContext, facts: Facts) -> str:
    """Plan from the savepoint, and save the plan.

    Raises:
        Refused: the plan must not be carried out.
        CutOverStopped: the savepoint is not of a stop.
    """
    savepoint = context.savepoint
    assert savepoint is not None  # the step clean has read it
    move = plan_move(context, savepoint)
    move.plan.check()
    _check_is_last_output(context, move.plan)
    text = counted(len(move.plan.next_offsets), "partition")
    if not context.record.keeps:
        return text
    path = context.record.plan_path
    path.unlink(missing_ok=True)
    move.plan.save(path)
    _record_plan(context, move, savepoint)
    return f"{text}, in {path}"


def _check_is_last_output(context: CutOverContext, plan: Plan) -> None:
    """Refuse a savepoint that others made and that is not of a stop."""
    if not context.stopped_by_others or plan.origin.stopped:
        return
    if read_savepoint(context, plan.origin.pointer).stop is StopKind.NONE:
        raise CutOverStopped(f"{plan.origin.pointer} is not of a stop")


def _record_plan(context: CutOverContext, move: PlannedMove, savepoint: str) -> None:
    findings, plan = read(savepoint).findings, move.plan
    context.record.change(
        plan=PlanReport(
            sha256=hashlib.sha256(context.record.plan_path.read_bytes()).hexdigest(),
            made_at=plan.made_at.isoformat(timespec="seconds"),
            cluster_id=plan.cluster_id,
            policies=context.file.policies(),
            findings=[
                f"{finding.severity.value}: {finding.code}: {finding.message}"
                for finding in findings
            ],
            warnings=list(plan.warnings),
            states=list(move.states.lines(HANDED)) if move.states is not None else [],
            streams={str(number): sorted(topics) for number, topics in move.streams.items()},
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


# -- write -----------------------------------------------------------------------------------------


def write(context: CutOverContext, facts: Facts) -> str:
    """Write the target: seed or prime the checkpoint location, or commit for the group.

    Whose the target is, is kept before it is written: a run that is killed in between finds it.

    Raises:
        Refused: it must not be written; NotPrimed, CutOverStopped: it was not written whole.
    """
    before = context.record.model
    moved_with = before.moved_with if before.moved_with is not None else context.file.decides()
    context.record.change(state="begun", moved_with=moved_with, written=None)
    try:
        is_group = context.file.checkpoint_dir is None
        text = _commit(context) if is_group else _write_location(context)
        context.record.change(written=now())
        return text
    except (Refused, NotPrimed):
        place = context.location()
        if place is None or not place.names():  # nothing was written: the spec may be changed
            context.record.change(moved_with=before.moved_with, written=before.written)
        raise


def _write_location(context: CutOverContext) -> str:
    plan, place = context.record.plan_path, context.location()
    assert place is not None
    if is_unfinished(place):
        remove_seed(place)
    # Does the plan still stand, and is the sink still free?
    to_spark(
        plan=plan,
        sink=context.file.sink,
        sink_writer=context.spec.sink_writer,
        **context.file.kafka(),
    )
    if context.spec.states:
        context.record.change(primed=None, query_id=None)  # what is known is of an earlier one
        return prime(context)
    query_id = str(uuid.uuid4())
    context.record.change(query_id=query_id)
    write_checkpoint(context.streams(read_plan(plan)), place, query_id)
    return f"seeded {place.name}"


def _commit(context: CutOverContext) -> str:
    group = context.spec.target.group
    assert group is not None
    change = commit_group(
        group=group,
        plan=context.record.plan_path,
        rollback_file=default_path(group, context.record.folder),
        allow_moved_on=context.spec.move.allow_moved_on,
        **context.file.kafka(),
    )
    outcome = replace(change, cut_over=context.record.model.id).execute()
    if outcome.applied is not Applied.ALL:
        raise CutOverStopped(f"group {group}: {outcome.applied.value}")
    return f"group {group}: {outcome.applied.value}"


def adopt(context: CutOverContext, facts: Facts) -> str:
    """Take over a target that holds the plan, and that this record has not written.

    A location gets another query id and a group commits with the mark of this record, so that the
    record that has written it before no longer takes it for its own.
    """
    place = context.location()
    if place is None:
        return write(context, facts)
    target = facts.target
    assert isinstance(target, LocationFacts)  # decided on it
    primed = target.committed if context.spec.states else None
    context.record.change(
        moved_with=context.file.decides(),
        query_id=replace_query_id(place),
        primed=primed,
        written=now(),
    )
    return f"took over {target.name}"


def keep_primed(context: CutOverContext, facts: Facts) -> str:
    """Keep which query and which batches the command that primes has left."""
    target = facts.target
    assert isinstance(target, LocationFacts)  # decided on it
    context.record.change(primed=target.committed, query_id=target.query_id, written=now())
    return f"{target.name} holds the plan, with a state"


def keep_written(context: CutOverContext, facts: Facts) -> str:
    """Keep that the target was written completely, by a run that was killed then."""
    context.record.change(written=now())
    return f"{context.file.target} holds the plan"


# -- verify ----------------------------------------------------------------------------------------


def verify_before(context: CutOverContext, facts: Facts) -> str:
    """Check where the target will start.

    Raises:
        CutOverStopped: it will not start at the plan.
    """
    return _verify(context, facts, after=False)


def verify_after(context: CutOverContext, facts: Facts) -> str:
    """Check where the target began.

    Raises:
        CutOverStopped: it did not begin at the plan, or that cannot be told.
    """
    return _verify(context, facts, after=beginning(facts).begun is Begun.YES)


def _verify(context: CutOverContext, facts: Facts, *, after: bool) -> str:
    record, target = context.record, context.file.target
    verification = verify(f"plan:{record.plan_path}", target, **context.file.kafka())
    reached: Mapping[TopicPartition, int] = {}
    if after and not facts.is_group:
        directory = context.query_directory
        reached = committed_positions("", directory, context.files).next_offsets
    ours = None
    if isinstance(facts.target, GroupFacts) and facts.plan is not None:
        ours = facts.target.marked(record.model.id, facts.plan.next_offsets)
    log_starts = _log_starts(context, facts)
    seen = Seen(after, first_batch(facts) is not None, log_starts, reached, ours)
    judgement = judge(record.model.partitions, verification, seen)
    _record_verification(context, judgement, len(verification.partitions), after=after)
    if not judgement.verified:
        raise CutOverStopped(f"not verified: {judgement.text}")
    return judgement.text


def _log_starts(context: CutOverContext, facts: Facts) -> dict[TopicPartition, int]:
    ask = asker(kafka(context.file.kafka()))
    assert ask is not None and facts.plan is not None  # the spec names brokers; the plan is saved
    logs = ask(facts.plan.topics, None).topics
    return {
        (topic, partition): log.start
        for topic, partitions in logs.items()
        for partition, log in partitions.items()
    }


def _record_verification(
    context: CutOverContext, judgement: Judgement, partitions: int, *, after: bool
) -> None:
    report = VerificationReport(
        when="after" if after else "before",
        verified=judgement.verified,
        partitions=partitions,
        unknown=judgement.unknown,
        lost=judgement.lost,
        repeated=judgement.repeated,
    )
    others = [
        earlier for earlier in context.record.model.verifications if earlier.when != report.when
    ]
    context.record.change(verifications=[*others, report], partitions=list(judgement.rows))
