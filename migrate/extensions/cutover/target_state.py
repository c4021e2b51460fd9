"""Derive from the facts, without I/O, the target's contents and whether work has started.

Started work is a query or consumers that have started from the target. If the Flink job were then
restarted from its savepoint, the same records would be processed twice. The rollback and the advice
to restart the Flink job therefore depend on ``started_work``.
"""

from __future__ import annotations

from enum import Enum, auto

from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.facts import Facts, GroupFacts, LocationFacts, Offsets
from migrate.extensions.cutover.report import CutOverRecord
from migrate.model.message import Message

# -- the content of the target ---------------------------------------------------------------------


class Content(Enum):
    """The content of the target."""

    NOTHING = auto()  # nothing, or only part of the plan; a run is allowed to write the plan
    PRIMING = auto()  # the ``prime`` command is writing the target
    PLAN_NOT_RECORDED = auto()  # the plan, written by a killed run that did not record the write
    PLAN = auto()  # the plan, written by this cut-over
    MOVED_ON = auto()  # a group with commits by other clients since the plan was written
    NOT_OURS = auto()  # written by another cut-over or a person; --adopt can adopt the target
    WRONG = auto()  # content from which no run can continue


def target_content(facts: Facts) -> tuple[Content, Message | None]:
    """Return the target's content, and the reason not to use the target, or None."""
    if facts.plan is None and facts.record.moved_with is not None:
        target_name, problem = facts.target_name, facts.plan_problem
        if problem:
            unreadable = catalog.PLAN_FILE_UNREADABLE(target=target_name, problem=problem)
            return Content.WRONG, unreadable
        return Content.WRONG, catalog.PLAN_FILE_MISSING(target=target_name)
    target = facts.target
    if isinstance(target, GroupFacts):
        content, reason = _group_content(facts, target)
    else:
        assert isinstance(target, LocationFacts)
        content, reason = _location_content(facts, target)
    if content is Content.PLAN and facts.record.written is None:
        content = Content.PLAN_NOT_RECORDED
    return content, reason


def other_cluster_reason(facts: Facts) -> Message | None:
    """Return a refusal if the group was written in a different cluster, else None."""
    target, record = facts.target, facts.record
    if not isinstance(target, GroupFacts) or record.plan is None or record.moved_with is None:
        return None
    written = record.plan.cluster_id
    if written in (None, target.cluster_id):
        return None
    return catalog.GROUP_ON_OTHER_CLUSTER(cluster=target.cluster_id, written=written)


def other_move_reason(
    target: GroupFacts, record: CutOverRecord, planned: Offsets, *, is_group_of_job: bool
) -> Message | None:
    """Return a refusal if another move may have written to a group, else None.

    ``is_group_of_job`` is True if the job itself commits for the group.
    """
    others = target.written_by_others(record.id, planned)
    if not others:
        if (
            record.moved_with is None
            and not is_group_of_job
            and target.held_without_writer(planned)
        ):
            return catalog.GROUP_WRITER_UNKNOWN(group=target.view.name)
        return None
    return catalog.GROUP_OF_OTHER_MOVE(group=target.view.name, commits=others)


def _group_content(facts: Facts, target: GroupFacts) -> tuple[Content, Message | None]:
    if facts.plan is None:
        return Content.NOTHING, None
    planned, record, view = facts.plan.next_offsets, facts.record, target.view
    is_own = facts.spec.targets_group_of_job
    if reason := other_move_reason(target, record, planned, is_group_of_job=is_own):
        return Content.NOT_OURS, reason
    if record.moved_with is None:
        return Content.NOTHING, None
    others = planned.keys() - target.partitions_as_written(record.id, planned)
    if not others:
        return Content.PLAN, None
    if record.written is not None:
        # The target was written completely, so a different offset comes from a newer commit.
        moved_on = any(partition in view.committed for partition in others)
    else:
        before = {(row.topic, row.partition): row.held for row in record.partitions}
        moved_on = any(view.next_offset(*key) != before.get(key) for key in others)
    return (Content.MOVED_ON if moved_on else Content.NOTHING), None


def _location_content(facts: Facts, target: LocationFacts) -> tuple[Content, Message | None]:
    record, name = facts.record, target.name
    written = record.moved_with is not None
    if facts.prime_status == "running":
        return Content.PRIMING, None
    if target.is_empty or (target.unfinished and written):
        return Content.NOTHING, None
    if target.unfinished:
        return Content.WRONG, catalog.SEED_BEING_WRITTEN(location=name)
    if facts.seeds is None:
        return Content.NOT_OURS, catalog.LOCATION_TAKEN(location=name)
    ours = written and record.query_id is not None and record.query_id == target.query_id
    is_checked = ours and record.primed is not None
    if facts.spec.states and not is_checked and (problem := _priming_problem(facts, target)):
        return Content.WRONG, problem
    if target.seeds != facts.seeds:
        differs = catalog.WRITTEN_QUERY_DIFFERS if written else catalog.QUERY_DIFFERS_FROM_PLAN
        return Content.WRONG, differs(location=name)
    if not ours and not facts.spec.states and target.last_planned_batch is not None:
        return Content.WRONG, catalog.LOCATION_HAS_BATCHES(location=name)
    if ours:
        return Content.PLAN, None
    if written and record.query_id is None and facts.prime_status == 0:
        return Content.PLAN_NOT_RECORDED, None
    return Content.NOT_OURS, catalog.LOCATION_OF_OTHER_WRITER(
        location=name, query_id=target.query_id
    )


def _priming_problem(facts: Facts, target: LocationFacts) -> Message | None:
    """Return the reason that the plan or the primed state might be missing, or None."""
    name, code = target.name, facts.prime_status
    if code == "unknown" and not facts.adopt:
        return catalog.PRIMING_END_UNKNOWN(location=name)
    if code not in (None, 0) and not facts.adopt:
        return catalog.PRIMING_FAILED(location=name, exit_code=code)
    return target.priming_problem.about(name) if target.priming_problem is not None else None


# -- whether work has started from the target ------------------------------------------------------


class Started(Enum):
    """How certain it is that a query or consumers have started from the target."""

    NO = auto()
    MAYBE = auto()
    YES = auto()


def started_work(facts: Facts) -> tuple[Started, str]:
    """Return whether work has started from the target, and the evidence.

    Work that was recorded by an earlier run counts, even if the target no longer shows it.
    """
    target = facts.target
    if isinstance(target, GroupFacts):
        shown = _group_work(facts, target)
    elif isinstance(target, LocationFacts):
        shown = _query_work(facts, target)
    elif facts.record.moved_with is None:
        shown = Started.NO, "this cut-over has not written the target"
    else:
        shown = Started.MAYBE, f"{facts.target_name} cannot be read"
    if shown[0] is Started.YES:
        return shown
    if reason := _recorded_work(facts):
        return Started.YES, reason
    if reason := _command_work(facts):
        return Started.MAYBE, reason
    return shown


def _recorded_work(facts: Facts) -> str:
    """Return the evidence of started work in the record, or an empty string."""
    record, name = facts.record, facts.target_name
    if record.state == "done" or any(report.when == "after" for report in record.verifications):
        return f"an earlier run saw readers start from {name}"
    if any(row.members_seen for row in record.partitions):
        return f"{name} had members after the plan was written"
    if any(row.first_commit is not None for row in record.partitions):
        return f"other clients committed for {name} after the plan was written"
    return ""


def _group_work(facts: Facts, target: GroupFacts) -> tuple[Started, str]:
    name, record = facts.target_name, facts.record
    planned = facts.plan.next_offsets if facts.plan is not None else {}
    if record.moved_with is not None and target.assigned(planned):
        return Started.YES, f"the planned partitions are assigned to members of {name}"
    if target_content(facts)[0] is Content.MOVED_ON:
        return Started.YES, f"other clients committed for {name} after the plan was written"
    if others := target.written_by_others(record.id, planned):
        return (
            Started.MAYBE,
            f"{name} contains offsets that another move has committed ({others[0]})",
        )
    before = {(row.topic, row.partition): row.held for row in record.partitions}
    changed = {key: offset for key, offset in planned.items() if before.get(key) != offset}
    holds_writes = bool(target.partitions_as_written(record.id, changed))
    if record.written is not None or (record.moved_with is not None and holds_writes):
        return Started.MAYBE, (
            f"{name} contained the planned offsets, but a consumer that assigns its own partitions "
            "is not visible until its first commit"
        )
    return Started.NO, f"{name} does not contain the planned offsets"


def _query_work(facts: Facts, target: LocationFacts) -> tuple[Started, str]:
    name, record = target.name, facts.record
    batch = last_planned_query_batch(facts, target)
    if batch is not None:
        return Started.YES, f"the query in {name} has planned batch {batch}"
    if record.moved_with is None and not target.is_empty:
        return Started.MAYBE, f"{name} contains files that this cut-over has not written"
    if is_idle_query(facts):
        return Started.MAYBE, (
            f"a query was started from {name} and has not logged a batch; in Real-Time Mode, a "
            "query writes records before it logs their batch"
        )
    if facts.spec.states and not target.is_empty:
        if record.primed is None and target.priming_problem is not None:
            return Started.MAYBE, f"the content of {name} does not match a primed location"
        if facts.spec.start is None:
            return Started.MAYBE, "a primed location does not show whether a query was started"
    if target.is_empty and record.written is not None:
        return Started.MAYBE, f"{name} contained the planned query, but was deleted"
    return Started.NO, f"nothing has started from {name}"


def is_idle_query(facts: Facts) -> bool:
    """Return whether a query was started from an unprimed location but has not planned a batch."""
    target = facts.target
    return (
        isinstance(target, LocationFacts)
        and target.has_logs
        and target.last_planned_batch is None
        and not facts.spec.states
    )


def _last_primed_batch(facts: Facts, target: LocationFacts) -> int:
    """Return the last batch of a successful priming, or -1; later batches belong to the query."""
    if not facts.spec.states:
        return -1
    primed = facts.record.primed
    if primed is None and target.priming_problem is None:
        primed = target.last_committed_batch
    return primed if primed is not None else -1


def last_query_batch(facts: Facts) -> int | None:
    """Return the newest batch that the query has committed after the priming, or None."""
    target = facts.target
    if not isinstance(target, LocationFacts):
        return None
    return _after_priming(target.last_committed_batch, facts, target)


def last_planned_query_batch(facts: Facts, target: LocationFacts) -> int | None:
    """Return the newest batch that the query has planned after the priming, or None."""
    return _after_priming(target.last_planned_batch, facts, target)


def _after_priming(batch: int | None, facts: Facts, target: LocationFacts) -> int | None:
    return batch if batch is not None and batch > _last_primed_batch(facts, target) else None


def start_evidence(facts: Facts) -> str:
    """Return the evidence that the consumers or the query have started, or an empty string."""
    if facts.spec.target.is_group:
        started, reason = started_work(facts)
        return reason if started is Started.YES else ""
    batch = last_query_batch(facts)
    return f"batch {batch} is committed" if batch is not None else ""


def how_to_end(process: int | None) -> str:
    """Return instructions for ending a process group, or an empty string."""
    if process is None:
        return ""
    return f" (process {process}; to stop it, run kill -- -{process})"


def _command_work(facts: Facts) -> str:
    """Return the reason that the ``start`` command may have started work, or an empty string."""
    match facts.start_status:
        case "running":
            return f"the start command is still running{how_to_end(facts.start_process)}"
        case None:
            return "" if facts.record.start is None else "the start command was run"
        case 0:
            return "the start command succeeded, and the query may start at any time"
        case "unknown":
            return "the start command was run, but its exit code is unknown"
        case code:
            return (
                f"the start command failed with exit code {code}, but may have submitted the "
                "query before it failed"
            )
