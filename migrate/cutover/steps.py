"""The steps of a cut-over, as a table: is it done, do it, and what is so if it stops there.

``done`` reads the live world and says in words why there is nothing to do; a step without it is
done in each run. ``do`` is idempotent: what a run that was killed has left is taken up, or made
anew. ``stop`` is the point of no return: from there on Flink has ended.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from decoder import StopKind
from migrate.commands.commit_group import commit_group
from migrate.commands.to_spark import to_spark
from migrate.commands.verify import verify
from migrate.comparing.verify import StartOutcome
from migrate.cutover import start, stop
from migrate.cutover.check import HANDED, Planned, check, make_plan
from migrate.cutover.night import CutOverStopped, Night
from migrate.cutover.prime import NotPrimed, check_ended_well, check_primed, prime
from migrate.errors import Refused
from migrate.flink.read import read
from migrate.group.commit import Applied
from migrate.group.rollback_file import ChangeFate
from migrate.planning.plan_file import read_plan
from migrate.positions import Start, TopicPartition
from migrate.report.cut_over import (
    CutOverRecord,
    PartitionReport,
    PlanReport,
    VerificationReport,
)
from migrate.spark.progress import committed_positions, has_run, kafka_seeds
from migrate.spark.seed import check_free, is_unfinished, remove_seed, write_checkpoint
from migrate.wording import counted

if TYPE_CHECKING:
    from migrate.comparing.verify import Verification
    from migrate.planning import Plan


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: as ``--until`` names it.
        title: what it does, in words.
        done: why there is nothing to do; None where there is.
        do: does it; what came of it, in words.
        left: what is so if a run stops here.
        changes: whether it changes something; a dry run does the others.
    """

    name: str
    title: str
    done: Callable[[Night], str | None]
    do: Callable[[Night], str]
    left: str
    changes: bool = False


def _never(_: Night) -> None:
    return None


# -- check --------------------------------------------------------------------------------------


def _checked(night: Night) -> str | None:
    if night.stopped_by_others:
        return None if night.plan is None else "a plan was made already"
    if night.record.model.flink.savepoint is not None:
        return "the job has stopped"
    job = night.job()
    if job.ended or job.state == "UNKNOWN":
        return f"Flink has the job as {job.state}"
    return "Flink stops the job already" if stop.goes_on(night, job) else None


# -- plan and apply -----------------------------------------------------------------------------


def _planned(night: Night) -> str | None:
    if night.priming.runs():
        return "the command that primes the location runs with it"
    return "it was applied already" if applied(night) else None


def _plan(night: Night) -> str:
    savepoint = night.savepoint()
    assert savepoint is not None
    found = make_plan(night, savepoint)
    plan = found.plan
    plan.check()
    _check_is_last_output(night, plan)
    told = counted(len(plan.next_offsets), "partition")
    if not night.record.keeps:
        return told
    path = night.record.plan_path
    path.unlink(missing_ok=True)
    plan.save(path)
    _record_plan(night, found, savepoint)
    return f"{told}, in {path}"


def _check_is_last_output(night: Night, plan: Plan) -> None:
    """A savepoint that others made must show that its job stopped with it, as far as it can."""
    if not night.stopped_by_others or plan.origin.stopped:
        return
    if night.read_savepoint(plan.origin.pointer).stop is StopKind.NONE:
        raise CutOverStopped(f"{plan.origin.pointer} is not of a stop")


def _record_plan(night: Night, found: Planned, savepoint: str) -> None:
    findings, plan = read(savepoint).findings, found.plan
    night.record.change(
        plan=PlanReport(
            sha256=hashlib.sha256(night.record.plan_path.read_bytes()).hexdigest(),
            made_at=plan.made_at.isoformat(timespec="seconds"),
            cluster_id=plan.cluster_id,
            policies=night.file.policies(),
            findings=[f"{one.severity.value}: {one.code}: {one.message}" for one in findings],
            warnings=list(plan.warnings),
            states=list(found.states.lines(HANDED)) if found.states is not None else [],
            streams={str(number): sorted(topics) for number, topics in found.streams.items()},
        ),
        partitions=[
            PartitionReport(
                topic=one.topic,
                partition=one.partition,
                verdict=one.verdict,
                checkpoint=one.position,
                planned=one.next_offset,
                log_start=one.log_start,
                log_end=one.log_end,
                started=None,
                outcome=None,
                lost=0,
                repeated=0,
                reached=None,
            )
            for one in plan.partitions
        ],
    )


def applied(night: Night) -> bool:
    """Whether the target holds the plan that was saved.

    Raises:
        Refused: it holds something else.
    """
    plan, place = night.plan, night.location
    if place is None:
        if plan is None:
            return False
        view, earlier = night.group()
        if all(view.next_offset(*at) == offset for at, offset in plan.next_offsets.items()):
            return True
        if earlier is not None and earlier.fate is ChangeFate.MOVED_ON:
            check_may_move_on(night.record.model, earlier.path, has_command=bool(night.spec.start))
            return True
        return earlier is not None and earlier.fate is ChangeFate.APPLIED
    if not place.names() or is_unfinished(place) or night.priming.runs():
        return False
    if plan is None:
        check_free(place)
        return False
    record, states = night.record, night.spec.states
    if states and record.model.primed is None:
        check_ended_well(night)
        record.change(primed=check_primed(night))
    seeds = kafka_seeds(night.query, night.files)
    if seeds != {str(one.number): one.next_offsets for one in night.streams(plan)}:
        raise Refused(
            [
                f"{place.name} holds another query than {record.plan_path} is for; name a "
                "new directory"
            ]
        )
    if record.model.moved_with is None:
        if not states and has_run(night.query, night.files):
            raise Refused(
                [
                    f"{place.name} holds batches already, and this cut-over has not written it: "
                    "where its query began cannot be told; name a new directory"
                ]
            )
        record.change(moved_with=night.file.decides())
    return True


def check_may_move_on(record: CutOverRecord, rollback: Path, *, has_command: bool) -> None:
    """Others have committed for the group since: were they its own consumers, from the plan on?

    Raises:
        Refused: nobody has seen the plan in the group before, or the query was never started.
    """
    seen = any(one.when == "before" and one.verified for one in record.verifications)
    if seen and (record.start is not None or not has_command):
        return
    why = "the query was not started by then" if seen else "nobody had verified it by then"
    raise Refused(
        [
            f"{record.target}: others have committed for it since {rollback} was written, and "
            f"{why}: where they began cannot be told; stop them, and bring the group back "
            "(migrate rollback) or go back to Flink with the group's offsets"
        ]
    )


def _applied(night: Night) -> str | None:
    return f"{night.file.target} holds the plan" if applied(night) else None


def _apply(night: Night) -> str:
    stop.check_has_not_run_since(night)
    before = night.record.model.moved_with
    night.record.change(moved_with=night.file.decides())
    try:
        return _write(night)
    except (Refused, NotPrimed):
        place = night.location
        if place is None or not place.names():  # nothing was written: the spec may be mended
            night.record.change(moved_with=before)
        raise


def _write(night: Night) -> str:
    plan, place = night.record.plan_path, night.location
    if place is not None:
        if is_unfinished(place):
            remove_seed(place)
        # Does the plan still stand, and is the sink still free?
        to_spark(
            plan=plan,
            sink=night.file.sink,
            sink_writer=night.spec.sink_writer,
            **night.file.kafka(),
        )
        if night.spec.states:
            night.record.change(primed=None)  # what is known is of an earlier one
            return prime(night)
        write_checkpoint(night.streams(read_plan(plan)), place)
        return f"seeded {place.name}"
    from migrate.group.rollback_file import default_path

    group = night.spec.target.group
    assert group is not None
    change = commit_group(
        group=group,
        plan=plan,
        rollback_file=default_path(group, night.record.folder),
        allow_moved_on=night.spec.move.allow_moved_on,
        **night.file.kafka(),
    )
    outcome = change.execute()
    if outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
        raise CutOverStopped(f"group {group}: {outcome.applied.value}")
    return f"group {group}: {outcome.applied.value}"


# -- verify ------------------------------------------------------------------------------------


def _verified(night: Night) -> str | None:
    return "the target has begun: it is verified after its first batch" if night.begun() else None


def _verify(night: Night) -> str:
    return _judge(night, after=False)


def _verify_again(night: Night) -> str:
    return _judge(night, after=night.begun())


def _judge(night: Night, *, after: bool) -> str:
    """Look, and keep what was found.

    Raises:
        CutOverStopped: the target did not start where it should, or Flink's job runs again.
    """
    if night.record.model.state != "done":
        stop.check_has_not_run_since(night)
    found = verify(f"plan:{night.record.plan_path}", night.file.target, **night.file.kafka())
    group = night.location is None
    reached: Mapping[TopicPartition, Start] = {}
    if after and not group:
        reached = committed_positions("", night.query, night.files).starts
    lost, repeated = _counts(found)
    verified = found.verified or (after and group and found.verified_or_moved_on)
    outcomes = {(one.topic, one.partition): one for one in found.partitions}
    partitions = []
    for one in night.record.model.partitions:
        place = (one.topic, one.partition)
        seen, now = outcomes.get(place), reached.get(place)
        if seen is not None:
            one = one.model_copy(
                update={
                    "started": seen.started,
                    "outcome": seen.outcome,
                    "lost": seen.records if seen.outcome in _LOST else 0,
                    "repeated": seen.records if seen.outcome is StartOutcome.REPEATED else 0,
                    "reached": now if isinstance(now, int) else None,
                }
            )
        partitions.append(one)
    report = VerificationReport(
        when="after" if after else "before",
        verified=verified,
        partitions=len(found.partitions),
        lost=lost,
        repeated=repeated,
    )
    others = [one for one in night.record.model.verifications if one.when != report.when]
    night.record.change(verifications=[*others, report], partitions=partitions)
    counts = ", ".join(f"{count} {outcome.value}" for outcome, count in found.counts.items())
    told = f"{counts}; lost {lost}, repeated {repeated}"
    if not verified:
        raise CutOverStopped(f"not verified: {told}")
    return told


_LOST = (StartOutcome.LOST, StartOutcome.EXPIRED)


def _counts(found: Verification) -> tuple[int, int]:
    lost = sum(one.records for one in found.partitions if one.outcome in _LOST)
    repeated = sum(one.records for one in found.partitions if one.outcome is StartOutcome.REPEATED)
    return lost, repeated


# -- the table ---------------------------------------------------------------------------------


def _began(night: Night) -> str | None:
    if night.location is None:
        return "its consumers have begun" if night.begun() else None
    batch = night.first_batch()
    return f"batch {batch} is committed" if batch is not None else None


_NOTHING = "nothing was changed, and the job runs on"
_STOPPED = "Flink's job has stopped; this run has not written the target"
_IN_PART = "Flink's job has stopped; the target is not written, or in part"
_READY = "the target is ready, and nothing has started from it"

STEPS: Sequence[Step] = (
    Step("check", "would it go through?", _checked, check, _NOTHING),
    Step(
        "stop",
        "stop the job with a savepoint",
        stop.stopped,
        stop.stop,
        "Flink was asked to stop the job, and may still do so",
        changes=True,
    ),
    Step("clean", "was the stop clean?", stop.was_clean, stop.check_clean, _STOPPED),
    Step("plan", "plan from the savepoint", _planned, _plan, _STOPPED),
    Step("apply", "write the target", _applied, _apply, _IN_PART, changes=True),
    Step("verify", "will it start there?", _verified, _verify, _READY),
    Step("start", "start the query", start.started, start.start, _READY, changes=True),
    Step(
        "first-batch",
        "wait for its first batch",
        _began,
        start.await_begin,
        "the query was started, and has not committed a batch yet",
        changes=True,
    ),
    Step(
        "verify-again",
        "did it start there?",
        _never,
        _verify_again,
        "the query runs, and where it started was not seen to be right",
    ),
)
NAMES = tuple(step.name for step in STEPS)
