"""Back: as long as nothing has begun to read from the target, it is taken away again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from migrate.cutover.act_flink import keep_savepoint
from migrate.cutover.beginning import Begun, beginning
from migrate.cutover.context import CutOverContext, CutOverStopped
from migrate.cutover.decide_stop import decide_stop
from migrate.cutover.decision import Action, Do, Fail, Halt, refuse
from migrate.cutover.facts import Facts, GroupFacts, LocationFacts, StoppedJob, Unavailable
from migrate.cutover.target import Holding, holding, other_cluster
from migrate.model.errors import Refused
from migrate.moves.rollback import rollback
from migrate.targets.group.commit import Applied
from migrate.targets.group.rollback_file import rollback_files
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import remove_seed


def decide_back(facts: Facts) -> Halt | Fail | None:
    """Return why the cut-over cannot be taken back, or None where it can.

    Args:
        facts: the job, the target and the commands are needed.
    """
    for command, does in ((facts.starting, "starts the query"), (facts.priming, "primes")):
        if command.runs:
            return refuse(f"the command that {does} runs; stop it first")
    if halt := _stop_not_ended(facts):
        return halt
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    if problem := other_cluster(facts):
        return refuse(problem)
    begins = beginning(facts)
    if begins.begun is Begun.YES:
        return refuse(_way_after_begin(facts, begins.reason))
    if begins.begun is Begun.MAYBE and not facts.nothing_started:
        return refuse(
            f"something may have started from {facts.target_name}: {begins.reason}. Stop whatever "
            "reads from it and look at its output; if nothing has started, add --nothing-started"
        )
    if facts.savepoint_pointer is None and facts.record.flink.job_id is None:
        return refuse("the job was not stopped, so there is nothing to go back from")
    if isinstance(facts.target, LocationFacts) and (problem := _not_ours(facts, facts.target)):
        return refuse(problem)
    return None


def _not_ours(facts: Facts, target: LocationFacts) -> str:
    """Return why a location cannot be taken away by this record; empty where it can."""
    record = facts.record
    if record.moved_with is None or target.is_empty or target.unfinished:
        return ""
    if record.query_id is None:  # a priming that was not judged to its end
        held = holding(facts)
        return held.reason if held.holding is Holding.WRONG else ""
    if target.query_id == record.query_id:
        return ""
    return (
        f"{target.name} holds query {target.query_id}, and this record has written query "
        f"{record.query_id}; remove the directory yourself if nothing needs it"
    )


def _way_after_begin(facts: Facts, reason: str) -> str:
    name = facts.target_name
    if facts.is_group:
        return (
            f"{name} has begun: {reason}; stop its consumers, and start Flink's job from the "
            "group's offsets"
        )
    return (
        f"{name} has begun: {reason}, so Flink's job would process the same records again; go back "
        f"with its positions instead: stop it, commit what it has read for Flink's group (migrate "
        f"commit-group {name} --group G), and start the job from that group's offsets"
    )


def _stop_not_ended(facts: Facts) -> Halt | Fail | None:
    """Refuse while Flink still stops the job: a stop cannot be taken back."""
    if facts.savepoint_pointer is not None or facts.record.flink.job_id is None:
        return None
    job = facts.job
    if not isinstance(job, StoppedJob):
        assert isinstance(job, Unavailable)
        return Fail(job.error)
    decision = decide_stop(facts)
    if isinstance(decision, Halt):
        return decision
    if decision == Do(Action.AWAIT_STOP) and job.attempt is not None:
        if job.attempt.savepoint is not None:
            return None
        return refuse(
            f"Flink still stops job {job.job.job_id} ({job.job.name}), and no stop can be taken "
            "back; wait for it (--until stop)"
        )
    return None


def back_lines(context: CutOverContext, facts: Facts) -> Sequence[str]:
    """Return what going back does, a line each; nothing where the target is not written.

    Raises:
        Refused: it cannot be done from here.
    """
    target, record = facts.target, facts.record
    if isinstance(target, GroupFacts):
        path = _rollback_file(context, target)
        if path is not None:
            return [f"bring group {target.view.name} back by {path}"]
        rows = {(row.topic, row.partition): row.planned or 0 for row in record.partitions}
        if target.marked(record.id, rows):
            raise Refused(
                [
                    f"group {target.view.name} holds commits of this record, and the rollback file "
                    "is no longer in the record's folder; put it back"
                ]
            )
        return []
    if not isinstance(target, LocationFacts) or record.moved_with is None or target.is_empty:
        return []
    if not facts.has_states:
        return [f"remove the seed {target.name}"]
    if not isinstance(context.location(), LocalDirectory):
        raise Refused([f"{target.name} was primed in a store: remove it there, and go back"])
    return [f"rename the primed location {target.name}"]


def go_back(context: CutOverContext, facts: Facts) -> None:
    """Take the target away again.

    Raises:
        CutOverStopped: not all of the group was restored.
    """
    record, place = context.record, context.location()
    if place is not None and record.model.moved_with is not None:
        if place.names() and context.spec.states and isinstance(place, LocalDirectory):
            record.put_aside(place.path)
        elif place.names():
            remove_seed(place)
    elif isinstance(facts.target, GroupFacts):
        path = _rollback_file(context, facts.target)
        if path is not None:
            outcome = rollback(path, execute=True, **context.file.kafka()).outcome
            if outcome is not None and outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
                raise CutOverStopped(f"group {context.spec.target.group}: {outcome.applied.value}")
    files = (
        file
        for command in (context.starting, context.priming)
        for file in (command.log, command.state)
    )
    record.put_aside(record.plan_path, *files)
    record.change(state="went back", moved_with=None, written=None, query_id=None)


def _rollback_file(context: CutOverContext, target: GroupFacts) -> Path | None:
    """Return the rollback file of this record's first commit for the group, or None.

    A later one, of a commit that was made whole, has the first one's offsets as what was before.
    """
    runs = context.record.model.runs
    began = datetime.fromisoformat(runs[0].began_at) if runs else None
    first = min(
        (
            (datetime.fromisoformat(file.created_at), path)
            for path, file in rollback_files(context.record.folder)
            if (file.group, file.cluster_id, file.change)
            == (target.view.name, target.cluster_id, "commit")
        ),
        default=None,
        key=lambda dated: (began is not None and dated[0] < began, dated[0]),
    )
    if first is None or (began is not None and first[0] < began):
        return None
    return first[1]


def keep_end_of_stop(context: CutOverContext, facts: Facts) -> None:
    """Keep the savepoint of a stop that Flink has ended while no run waited for it."""
    job = facts.job
    if context.savepoint is not None or not isinstance(job, StoppedJob):
        return
    if job.ended_with is not None:
        keep_savepoint(context, facts)
    elif job.attempt is not None and job.attempt.savepoint is not None:
        context.record.change_flink(savepoint=job.attempt.savepoint, finished=True)
