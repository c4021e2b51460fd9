"""Whether anything may have begun to read from the target: pure, and decided here alone.

As long as nothing has, Flink's job can go on from its savepoint. Afterwards it would process the
same records again. Every message that names a way back asks here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.cutover.facts import Facts, GroupFacts, LocationFacts, Unavailable
from migrate.cutover.target import Holding, holding
from migrate.inputs.flink.rest_api import FlinkJob


class Begun(Enum):
    """Whether something has begun to read from the target."""

    NO = auto()
    MAYBE = auto()
    YES = auto()


@dataclass(frozen=True, slots=True)
class Beginning:
    """Whether something has begun, and the fact that shows it."""

    begun: Begun
    reason: str


def beginning(facts: Facts) -> Beginning:
    """Return whether anything may have begun to read from the target.

    What an earlier run has seen counts, also where the target no longer shows it.

    Args:
        facts: the target and the commands are needed.
    """
    target = facts.target
    if isinstance(target, GroupFacts):
        begins = _group_beginning(facts, target)
    elif isinstance(target, LocationFacts):
        begins = _query_beginning(facts, target)
    elif facts.record.moved_with is None:
        begins = Beginning(Begun.NO, "this record has not written the target")
    else:
        begins = Beginning(Begun.MAYBE, f"{facts.target_name} cannot be read")
    if begins.begun is Begun.YES:
        return begins
    if reason := _recorded_reason(facts):
        return Beginning(Begun.YES, reason)
    if reason := _command_reason(facts):
        return Beginning(Begun.MAYBE, reason)
    return begins


def _recorded_reason(facts: Facts) -> str:
    """Return what an earlier run has seen begin; empty where it has seen nothing."""
    record, name = facts.record, facts.target_name
    if record.state == "done" or any(report.when == "after" for report in record.verifications):
        return f"an earlier run has seen {name} begin"
    if any(row.members_seen for row in record.partitions):
        return f"{name} has had members since the plan"
    if any(row.first_commit is not None for row in record.partitions):
        return f"others have committed for {name} since the plan"
    return ""


def _group_beginning(facts: Facts, target: GroupFacts) -> Beginning:
    name, record = facts.target_name, facts.record
    planned = facts.plan.next_offsets if facts.plan is not None else {}
    if record.moved_with is not None and target.assigned(planned):
        return Beginning(Begun.YES, f"{name} has members that read these partitions")
    if holding(facts).holding is Holding.MOVED_ON:
        return Beginning(Begun.YES, f"others have committed for {name} since the plan")
    if others := target.written_by_others(record.id, planned):
        return Beginning(Begun.MAYBE, f"{name} holds what another move has written ({others[0]})")
    if record.written is not None or target.marked(record.id, planned):
        return Beginning(
            Begun.MAYBE,
            f"{name} has held the plan, and a consumer that assigns its partitions itself does "
            "not show before it commits",
        )
    return Beginning(Begun.NO, f"{name} does not hold the plan")


def _query_beginning(facts: Facts, target: LocationFacts) -> Beginning:
    name, written = target.name, facts.record.moved_with is not None
    batch = first_planned_batch(facts, target)
    if batch is not None:
        return Beginning(Begun.YES, f"the query of {name} has planned batch {batch}")
    if not written and not target.is_empty:
        return Beginning(Begun.MAYBE, f"{name} holds what this record has not written")
    if target.has_logs and not facts.has_states:
        return Beginning(
            Begun.MAYBE,
            "a query was started there and has logged no batch; in Real-Time Mode a query writes "
            "records before it logs their batch",
        )
    if facts.has_states and not target.is_empty:
        if facts.record.primed is None and target.priming_problem is not None:
            return Beginning(Begun.MAYBE, f"{name} is not what a priming leaves")
        if not facts.has_start:
            return Beginning(
                Begun.MAYBE, "a primed location does not show whether a query was started"
            )
    if target.is_empty and facts.record.written is not None and not facts.has_start:
        return Beginning(Begun.MAYBE, f"{name} held the plan, and is gone")
    return Beginning(Begun.NO, f"nothing has started from {name}")


def first_planned_batch(facts: Facts, target: LocationFacts) -> int | None:
    """Return the newest batch that the query has planned, or None before its first.

    The batches of a priming are not the query's.
    """
    primed = last_primed_batch(facts, target)
    return target.planned if target.planned is not None and target.planned > primed else None


def last_primed_batch(facts: Facts, target: LocationFacts) -> int:
    """Return the last batch of the priming, or -1 where no state was primed."""
    if not facts.has_states:
        return -1
    primed = facts.record.primed
    if primed is None and target.priming_problem is None:
        primed = target.committed
    return primed if primed is not None else -1


def _command_reason(facts: Facts) -> str:
    """Return why the command ``start`` may have started something; empty where it was not run."""
    match facts.starting.runs, facts.starting.ended:
        case (True, _):
            return "the command that starts the query still runs"
        case (_, None):
            return "" if facts.record.start is None else "the command start was run"
        case (_, 0):
            return "the command start has ended well, and the query may begin at any time"
        case (_, "unknown"):
            return "the command that starts the query was run, and how it ended is not known"
        case (_, code):
            return (
                f"the command that starts the query failed with exit code {code}, and may have "
                "handed the query over before"
            )


def restart_advice(facts: Facts) -> str:
    """Return what may be done with Flink's job, in one sentence; empty where nothing is stopped.

    Args:
        facts: the target, the commands and a job that was started again are needed.
    """
    savepoint, again = facts.savepoint_pointer, facts.started_again
    if savepoint is None:
        return ""
    if isinstance(again, FlinkJob):
        return (
            f"do not start Flink's job from its savepoint, as job {again.name} ({again.job_id}) "
            "has gone on from there: move that one"
        )
    begins = beginning(facts)
    if begins.begun is Begun.NO or (begins.begun is Begun.MAYBE and facts.nothing_started):
        unless = ""
        if isinstance(again, Unavailable):
            unless = ", unless somebody has (Flink does not answer)"
        elif not facts.flink_is_asked:
            unless = ", unless somebody has (the spec has no flink.rest)"
        return f"start Flink's job from its savepoint{unless}: flink run -s {savepoint} …"
    if begins.begun is Begun.YES:
        return (
            f"do not start Flink's job from its savepoint, as {begins.reason}: the job would "
            "process the same records again"
        )
    return (
        f"do not start Flink's job from its savepoint yet: {begins.reason}. Stop whatever reads "
        f"from {facts.target_name}, look at its output, and then go back with --back "
        "--nothing-started"
    )
