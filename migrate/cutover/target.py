"""What the target of a cut-over holds, compared with the plan and the record: pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from migrate.cutover.facts import Facts, GroupFacts, LocationFacts, Offsets
from migrate.model.wording import join_some

_NEW_DIRECTORY = "name a new directory"


class Holding(Enum):
    """What the target holds."""

    NOTHING = auto()  # of this plan
    UNFINISHED = auto()  # a seed of this record that was not written to its end
    PRIMING = auto()  # the command that primes it runs
    PLAN = auto()  # written by this record
    PRIMED = auto()  # by the command of this record, which has not looked at it yet
    MOVED_ON = auto()  # a group that held the plan, and that others have committed for since
    NOT_OURS = auto()  # a plan that another record or a person has written
    WRONG = auto()  # something that no run can go on with


@dataclass(frozen=True, slots=True)
class Held:
    """What the target holds and, where it cannot be used, why, with the way out."""

    holding: Holding
    reason: str = ""


def holding(facts: Facts) -> Held:
    """Return what the target holds.

    Args:
        facts: the plan, the target and the command that primes are needed.
    """
    target = facts.target
    if facts.plan is None and facts.record.moved_with is not None:
        problem = facts.plan_problem or "plan.json is no longer in the record's folder"
        return Held(
            Holding.WRONG,
            f"{facts.target_name} was written by a plan that is gone: {problem}; put plan.json "
            "back, or go back (--back)",
        )
    if isinstance(target, GroupFacts):
        return _group_holding(facts, target)
    assert isinstance(target, LocationFacts)
    return _location_holding(facts, target)


def other_cluster(facts: Facts) -> str:
    """Return why these are not the brokers that the group was written on; empty where they are."""
    target, record = facts.target, facts.record
    if not isinstance(target, GroupFacts) or record.plan is None or record.moved_with is None:
        return ""
    written = record.plan.cluster_id
    if written in (None, target.cluster_id):
        return ""
    return (
        f"kafka.bootstrap-servers: those are brokers of cluster {target.cluster_id}, and the group "
        f"was written on {written}; name brokers of {written}"
    )


def another_move(target: GroupFacts, record_id: str, planned: Offsets) -> str:
    """Return why a group is another move's, with the way out; empty where it is not."""
    others = target.written_by_others(record_id, planned)
    if not others:
        return ""
    return (
        f"group {target.view.name} holds what another move has written ({join_some(others, 1)}): "
        "two moves would start the same consumers; go on with that one, or add --adopt to take the "
        "group over"
    )


def _group_holding(facts: Facts, target: GroupFacts) -> Held:
    if facts.plan is None:
        return Held(Holding.NOTHING)
    planned, record = facts.plan.next_offsets, facts.record
    if reason := another_move(target, record.id, planned):
        return Held(Holding.NOT_OURS, reason)
    ours = target.marked(record.id, planned)
    if len(ours) == len(planned) and all(
        target.view.next_offset(*place) == offset for place, offset in planned.items()
    ):
        return Held(Holding.PLAN)
    if record.moved_with is None:
        return Held(Holding.NOTHING)
    if record.written is not None:  # from then on each other commit is somebody else's
        moved_on = any(place in target.view.committed for place in planned.keys() - ours)
        return Held(Holding.MOVED_ON if moved_on else Holding.NOTHING)
    held = {(row.topic, row.partition): row.held for row in record.partitions}
    untouched = all(
        target.view.next_offset(*place) == held.get(place) for place in planned.keys() - ours
    )
    return Held(Holding.NOTHING if untouched else Holding.MOVED_ON)


def _location_holding(facts: Facts, target: LocationFacts) -> Held:
    record, name = facts.record, target.name
    written = record.moved_with is not None
    if facts.priming.runs:
        return Held(Holding.PRIMING)
    if target.is_empty:
        return Held(Holding.NOTHING)
    if target.unfinished and written:
        return Held(Holding.UNFINISHED)
    if target.unfinished:
        return Held(
            Holding.WRONG,
            f"{name} holds a seed that another run has not finished; wait for that run, or "
            f"{_NEW_DIRECTORY}",
        )
    if facts.seeds is None:
        reason = f"{name} holds a query, and there is no plan yet; {_NEW_DIRECTORY}"
        return Held(Holding.NOT_OURS if facts.adopt else Holding.WRONG, reason)
    ours = written and record.query_id is not None and record.query_id == target.query_id
    judged = ours and record.primed is not None
    if facts.has_states and not judged and (problem := _priming_problem(facts, target)):
        return Held(Holding.WRONG, problem)
    if target.seeds != facts.seeds:
        way_out = "put back what was there, or go back (--back)" if written else _NEW_DIRECTORY
        return Held(Holding.WRONG, f"{name} holds another query than the plan's; {way_out}")
    if not ours and not facts.has_states and target.planned is not None:
        return Held(
            Holding.WRONG,
            f"{name} holds batches of a query already, and this record has not written it: where "
            f"that query began is not known here. If it is the query of this move, look with "
            f"`migrate verify`; if not, {_NEW_DIRECTORY}",
        )
    if ours:
        return Held(Holding.PLAN)
    if written and record.query_id is None and facts.priming.ended == 0:
        return Held(Holding.PRIMED)
    return Held(
        Holding.NOT_OURS,
        f"{name} holds the plan, and this record has not written it (its query id is "
        f"{target.query_id}): another cut-over may start the same query; {_NEW_DIRECTORY}, or add "
        "--adopt to take it over",
    )


def _priming_problem(facts: Facts, target: LocationFacts) -> str:
    """Return why a primed location is not the plan with a state; empty where it is."""
    name, code = target.name, facts.priming.ended
    if code not in (None, 0) and not facts.adopt:
        how = "and how it ended is not known" if code == "unknown" else f"with exit code {code}"
        verb = "was run," if code == "unknown" else "ended"
        return (
            f"the command that primes {name} {verb} {how}; see that no query runs there, remove "
            f"{name}, and run this again"
        )
    if target.priming_problem is None:
        return ""
    # Once it was written for this spec, no other directory may be named.
    way_out = (
        "see that no query runs there, remove it, and run this again"
        if facts.record.moved_with is not None
        else (f"remove it, or {_NEW_DIRECTORY}")
    )
    return f"{name}: {target.priming_problem}; {way_out}"
