"""Decide the steps from the plan to the check of where the target began: pure."""

from __future__ import annotations

from migrate.cutover.beginning import Begun, beginning, last_primed_batch
from migrate.cutover.decision import (
    Action,
    Decision,
    Do,
    Done,
    Fail,
    Halt,
    missing,
    refuse,
)
from migrate.cutover.facts import Facts, GroupFacts, LocationFacts, Unavailable
from migrate.cutover.target import Held, Holding, holding, other_cluster
from migrate.inputs.flink.rest_api import FlinkJob


def decide_plan(facts: Facts) -> Decision:
    held = _held(facts)
    if not isinstance(held, Held):
        return held
    match held.holding:
        case Holding.PRIMING:
            return Done("the command that primes the location runs with it")
        case Holding.PLAN | Holding.PRIMED | Holding.MOVED_ON:
            return Done("the target was written already")
        case Holding.WRONG:
            return refuse(held.reason)
        case Holding.NOT_OURS:
            return Do(Action.PLAN) if facts.adopt else refuse(held.reason)
        case _:
            return _gone(facts) or Do(Action.PLAN)


def decide_apply(facts: Facts) -> Decision:
    held = _held(facts)
    if not isinstance(held, Held):
        return held
    match held.holding:
        case Holding.PLAN if facts.record.written is None:
            return Do(Action.KEEP_WRITTEN)
        case Holding.PLAN:
            return Done(f"{facts.target_name} holds the plan")
        case Holding.MOVED_ON:
            return _moved_on(facts)
        case Holding.WRONG:
            return refuse(held.reason)
        case Holding.NOT_OURS if not facts.adopt:
            return refuse(held.reason)
        case Holding.PRIMED:
            action = Action.KEEP_PRIMED
        case Holding.NOT_OURS:
            action = Action.ADOPT
        case _:
            action = Action.WRITE
    if action is Action.WRITE and (halt := _gone(facts)):
        return halt
    return _started_again(facts) or Do(action)


def _gone(facts: Facts) -> Halt | None:
    """Refuse to write anew what was written, where something may have begun from it."""
    begins = beginning(facts)
    if facts.record.written is None or begins.begun is Begun.NO:
        return None
    return refuse(
        f"{facts.target_name} no longer holds what this record has written, and something may have "
        f"begun from it: {begins.reason}. Look at the output of the query or the consumers; if "
        "nothing has started, go back (--back --nothing-started) and run this again"
    )


def _held(facts: Facts) -> Held | Decision:
    if not isinstance(facts.target, LocationFacts | GroupFacts):
        return missing(facts.target)
    if problem := other_cluster(facts):
        return refuse(problem)
    return holding(facts)


def _moved_on(facts: Facts) -> Decision:
    """Decide on a group that others have committed for since the plan was written."""
    record = facts.record
    verified = any(report.when == "before" and report.verified for report in record.verifications)
    if verified and (record.start is not None or not facts.has_start):
        return Done(f"{facts.target_name} held the plan, and others have committed since")
    why = "the command start was not run by then" if verified else "nobody had verified it by then"
    return refuse(
        f"{facts.target_name}: others have committed for it since the plan was written, and {why}, "
        "so it is not known where they began. Stop them, and compare what they have processed with "
        "the topic; what they have processed must not be processed again"
    )


def _started_again(facts: Facts) -> Halt | None:
    """Halt where Flink's job was started again: then the savepoint is not its last output."""
    job = facts.started_again
    if not isinstance(job, FlinkJob):
        return None  # where Flink did not answer, a warning says so
    how = f"has run since ({job.state})" if job.ended else "runs again"
    way_out = "to move that job, go back first (--back), or name another folder for the record"
    if beginning(facts).begun is Begun.YES:
        way_out = (
            f"{facts.target_name} has begun, too: stop one of the two, and compare what they wrote"
        )
    return Halt(
        (f"job {job.name} {how}, as {job.job_id}: the savepoint is not its last output", way_out)
    )


def decide_verify(facts: Facts) -> Decision:
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    if beginning(facts).begun is Begun.YES:
        return Done("the target has begun: the step verify-again judges it")
    return _started_again(facts) or Do(Action.VERIFY)


def decide_verify_again(facts: Facts) -> Decision:
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    if facts.record.state != "done" and (halt := _started_again(facts)):
        return halt
    return Do(Action.VERIFY_AGAIN)


# -- start, first batch ----------------------------------------------------------------------------


def first_batch(facts: Facts) -> int | None:
    """Return the newest batch that the query has committed, or None before its first."""
    target = facts.target
    if not isinstance(target, LocationFacts) or target.committed is None:
        return None
    return target.committed if target.committed > last_primed_batch(facts, target) else None


NOBODY_KNOWS = (
    "the command that starts the query was run, and its exit code is missing, as after a reboot; "
    "look whether the query runs, start it yourself if it does not, and run this again once it has "
    "begun"
)


def decide_start(facts: Facts) -> Decision:
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    held = holding(facts)
    if held.holding not in (Holding.PLAN, Holding.MOVED_ON):
        return refuse(held.reason or f"{facts.target_name} no longer holds the plan")
    begins, starting = beginning(facts), facts.starting
    begun = begins.begun is Begun.YES
    if facts.is_group and begun:
        return Done(begins.reason)
    if first_batch(facts) is not None:
        return Done(f"batch {first_batch(facts)} is committed")
    if not facts.has_start:
        what = "the consumers" if facts.is_group else "the query"
        return Done(begins.reason if begun else f"the spec names no command: start {what} now")
    if starting.runs:
        return Done("an earlier run has started the command, and it runs")
    match starting.ended:
        case None if begun:
            return Done(begins.reason)  # by somebody else: no second one is started beside it
        case 0:
            return Done("an earlier run has started the command, and it has ended well")
        case "unknown":
            return Done(begins.reason) if begun else Halt((NOBODY_KNOWS,))
        case _:  # never run, or it failed: a query that is started again runs its planned batch
            return _started_again(facts) or Do(Action.START)


def decide_first_batch(facts: Facts) -> Decision:
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    if facts.is_group:
        begins = beginning(facts)
        return Done(begins.reason) if begins.begun is Begun.YES else Do(Action.AWAIT_BEGIN)
    batch = first_batch(facts)
    return Done(f"batch {batch} is committed") if batch is not None else Do(Action.AWAIT_BEGIN)
