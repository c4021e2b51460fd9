"""Roll back a cut-over: remove the target again, if no work has started from the target."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from migrate.cutover.context import CutOverContext
from migrate.cutover.decide import decide_stop
from migrate.cutover.decision import Action, CutOverStopped, Do, Fail, Halt, refuse
from migrate.cutover.facts import Facts, GroupFacts, JobToStop, LocationFacts, Unavailable
from migrate.cutover.stop_job import record_savepoint
from migrate.cutover.target_state import (
    Content,
    Started,
    other_cluster_reason,
    started_work,
    target_content,
)
from migrate.inputs.flink.rest_api import FlinkJob
from migrate.model.errors import Refused
from migrate.moves.rollback import rollback
from migrate.targets.group.commit import Applied
from migrate.targets.group.rollback_file import rollback_files
from migrate.targets.location import LocalDirectory
from migrate.targets.seed import remove_seed

# -- decide: pure ----------------------------------------------------------------------------------


def decide_roll_back(facts: Facts) -> Halt | Fail | None:
    """Return why the cut-over cannot be rolled back, or None.

    Args:
        facts: the facts, with the job, the target and the commands.
    """
    for command, does in ((facts.starting, "starts the query"), (facts.priming, "primes")):
        if command.is_running:
            return refuse(f"the command that {does} runs; stop it first")
    if decision := _stop_not_ended(facts):
        return decision
    if isinstance(facts.target, Unavailable):
        return Fail(facts.target.error)
    if problem := other_cluster_reason(facts):
        return refuse(problem)
    work, name = started_work(facts), facts.target_name
    if work.started is Started.YES and facts.is_group:
        return refuse(
            f"{name} has begun: {work.reason}; stop its consumers, and start Flink's job from the "
            "group's offsets"
        )
    if work.started is Started.YES:
        return refuse(
            f"{name} has begun: {work.reason}, so Flink's job would process the same records "
            "again; go back with its positions instead: stop it, commit what it has read for "
            f"Flink's group (migrate commit-group {name} --group G), and start the job from that "
            "group's offsets"
        )
    if work.started is Started.MAYBE and not facts.nothing_started:
        return refuse(
            f"something may have started from {name}: {work.reason}. Stop whatever reads from it "
            "and look at its output; if nothing has started, add --nothing-started"
        )
    if facts.savepoint_pointer is None and facts.record.flink.job_id is None:
        return refuse("the job was not stopped, so there is nothing to go back from")
    if isinstance(facts.target, LocationFacts) and (problem := _not_ours(facts, facts.target)):
        return refuse(problem)
    return None


def _not_ours(facts: Facts, target: LocationFacts) -> str:
    """Return why this record must not remove a location, or an empty text."""
    record = facts.record
    if record.moved_with is None or target.is_empty or target.unfinished:
        return ""
    if record.query_id is None:  # no run has recorded the result of the priming
        content = target_content(facts)
        return content.reason if content.content is Content.WRONG else ""
    if target.query_id == record.query_id:
        return ""
    return (
        f"{target.name} holds query {target.query_id}, and this record has written query "
        f"{record.query_id}; remove the directory yourself if nothing needs it"
    )


def _stop_not_ended(facts: Facts) -> Halt | Fail | None:
    """Refuse while Flink still stops the job, because a stop cannot be cancelled.

    Also refuse if the job cannot be read, or if ``decide_stop`` returns a ``Halt``.
    """
    if facts.savepoint_pointer is not None or facts.record.flink.job_id is None:
        return None
    job = facts.job
    if not isinstance(job, JobToStop):
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


def restart_advice(facts: Facts) -> str:
    """Return a sentence that says what to do with Flink's job; empty before the job's stop.

    Args:
        facts: the facts, with the target, the commands and a job that was started again.
    """
    savepoint, again, work = facts.savepoint_pointer, facts.started_again, started_work(facts)
    if savepoint is None:
        return ""
    if isinstance(again, FlinkJob):
        return (
            f"do not start Flink's job from its savepoint, as job {again.name} ({again.job_id}) "
            "has gone on from there: move that one"
        )
    if work.started is Started.YES:
        return (
            f"do not start Flink's job from its savepoint, as {work.reason}: the job would "
            "process the same records again"
        )
    if work.started is Started.MAYBE and not facts.nothing_started:
        return (
            f"do not start Flink's job from its savepoint yet: {work.reason}. Stop whatever reads "
            f"from {facts.target_name}, look at its output, and then go back with --back "
            "--nothing-started"
        )
    unless = ""
    if isinstance(again, Unavailable):
        unless = ", unless somebody has (Flink does not answer)"
    elif not facts.has_flink:
        unless = ", unless somebody has (the spec has no flink.rest)"
    return f"start Flink's job from its savepoint{unless}: flink run -s {savepoint} …"


# -- act -------------------------------------------------------------------------------------------


class Undo(NamedTuple):
    """The change that undoes the write of the target: its description and its function."""

    line: str
    call: Callable[[], object]


def find_undo(context: CutOverContext, facts: Facts) -> Undo | None:
    """Return how to undo the write of the target, or None if it was not written.

    Raises:
        Refused: only the user can undo the write.
    """
    target, record = facts.target, facts.record
    if isinstance(target, GroupFacts):
        path = _rollback_file(context, target)
        if path is not None:
            restore = partial(_restore_group, context, path)
            return Undo(f"bring group {target.view.name} back by {path}", restore)
        rows = {(row.topic, row.partition): row.planned or 0 for row in record.partitions}
        if target.committed_by(record.id, rows):
            raise Refused(
                [
                    f"group {target.view.name} holds commits of this record, and the rollback file "
                    "is no longer in the record's folder; put it back"
                ]
            )
        return None
    location = context.location()
    if location is None or record.moved_with is None or not location.names():
        return None
    if not facts.has_states:
        return Undo(f"remove the seed {location.name}", partial(remove_seed, location))
    if not isinstance(location, LocalDirectory):
        raise Refused([f"{location.name} was primed in a store: remove it there, and go back"])
    aside = partial(context.record.put_aside, location.path)
    return Undo(f"rename the primed location {location.name}", aside)


def _restore_group(context: CutOverContext, path: Path) -> None:
    """Restore a group by its rollback file.

    Raises:
        CutOverStopped: not all offsets of the group were restored.
    """
    outcome = rollback(path, execute=True, **context.file.kafka()).outcome
    if outcome is not None and outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
        raise CutOverStopped(f"group {context.spec.target.group}: {outcome.applied.value}")


def roll_back(context: CutOverContext, undo: Undo | None) -> None:
    """Undo the write of the target, and rename the files that later runs must not find."""
    record = context.record
    if undo is not None:
        undo.call()
    files = (
        file
        for command in (context.starting, context.priming)
        for file in (command.log, command.state)
    )
    record.put_aside(record.plan_path, *files)
    record.change(state="went back", moved_with=None, written=None, query_id=None)


def _rollback_file(context: CutOverContext, target: GroupFacts) -> Path | None:
    """Return the rollback file of this record's first commit for the group, or None.

    A later commit, which completes the first one, has a rollback file too. That file would restore
    offsets that the first commit has written.
    """
    runs, files = context.record.model.runs, rollback_files(context.record.folder)
    created = [
        (datetime.fromisoformat(file.created_at), path)
        for path, file in files
        if (file.group, file.cluster_id, file.change)
        == (target.view.name, target.cluster_id, "commit")
    ]
    if runs:
        began = datetime.fromisoformat(runs[0].began_at)
        created = [(at, path) for at, path in created if at >= began]
    first = min(created, default=None)
    return first[1] if first is not None else None


def record_end_of_stop(context: CutOverContext, facts: Facts) -> None:
    """Record the savepoint of a stop that ended while no run waited for it."""
    job = facts.job
    if context.savepoint is not None or not isinstance(job, JobToStop):
        return
    if job.ended_with is not None:
        record_savepoint(context, facts)
    elif job.attempt is not None and job.attempt.savepoint is not None:
        context.record.change_flink(savepoint=job.attempt.savepoint, finished=True)
