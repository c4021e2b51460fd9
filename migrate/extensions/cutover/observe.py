"""Read the facts that a step of a cut-over needs.

Nothing is changed or cached, so every call sees the changes that earlier runs and people have made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from decoder import DecodeError
from decoder.storage import join
from migrate.extensions.cutover import catalog
from migrate.extensions.cutover.context import CutOverContext
from migrate.extensions.cutover.facts import (
    Facts,
    GroupFacts,
    LocationFacts,
    Need,
    Offsets,
    OtherCutOver,
    Unavailable,
)
from migrate.extensions.cutover.observe_stopped_job import (
    read_ended_job,
    read_job,
    read_job_started_again,
    read_savepoint,
)
from migrate.extensions.cutover.record import saved_records
from migrate.inputs import spark_log
from migrate.inputs.spark_log_entries import EmptyEntry, entry_numbers
from migrate.inputs.watch import poll
from migrate.model.errors import InputError, MigrateError, Refused
from migrate.model.message import Message
from migrate.planning import Plan
from migrate.planning.plan_file import read_plan
from migrate.storage.files import Files
from migrate.targets.group.rollback_file import history
from migrate.targets.seed import is_unfinished

if TYPE_CHECKING:
    from migrate.kafka.groups import ConsumerGroups

# The maximum time for which reading an empty entry in a query's log is retried, because Spark may
# still be writing the entry.
_WRITING_SECONDS = 2.0

_Fact = TypeVar("_Fact")


def observe(context: CutOverContext, *needs: Need, plan: Plan | None = None) -> Facts:
    """Read the required facts.

    The plan and the status of the commands are always read as well. A required fact that cannot be
    read is ``Unavailable``. If ``plan`` is set, the facts contain it instead of the saved plan.
    """
    record, pointer = context.record.model, context.savepoint
    plan_problem, plan_path = "", context.record.plan_path
    try:
        if plan is None and plan_path.exists():
            plan = read_plan(plan_path)
    except InputError as error:
        plan_problem = str(error)
    facts = Facts(
        record=record,
        spec=context.spec,
        adopt=context.adopt,
        nothing_started=context.nothing_started,
        saw_end=context.saw_end,
        plan=plan,
        plan_problem=plan_problem,
        start_status=context.start_command.status(),
        prime_status=context.prime_command.status(),
        start_process=context.start_command.process_id(),
        prime_process=context.prime_command.process_id(),
        other_cut_overs=tuple(_other_cut_overs(context)) if "other cut-overs" in needs else (),
    )
    waits_for_end = "ended job" in needs
    needs_job = waits_for_end or ("job" in needs and record.flink.savepoint is None)
    is_group = context.spec.target.is_group
    return replace(
        facts,
        job=_read_if(
            needs_job and not context.spec.stopped_by_others,
            lambda: (read_ended_job if waits_for_end else read_job)(context),
        ),
        started_again=_read_if(
            "started again" in needs, lambda: read_job_started_again(context, plan)
        ),
        savepoint=_read_if(
            "savepoint" in needs and pointer is not None,
            lambda: read_savepoint(context, pointer or ""),
        ),
        target=_read_if(
            "target" in needs,
            lambda: read_group(context) if is_group else _read_settled_location(context, facts),
        ),
    )


def _read_if(is_needed: bool, read: Callable[[], _Fact | None]) -> _Fact | Unavailable | None:
    try:
        return read() if is_needed else None
    except (MigrateError, DecodeError, OSError) as error:
        return Unavailable(error)


def _other_cut_overs(context: CutOverContext) -> Iterator[OtherCutOver]:
    """Yield the cut-overs whose records are next to this record and that have a different target.

    A cut-over with the same target is omitted, because the target shows its writer. A cut-over that
    was rolled back is also omitted.
    """
    own = context.record.model
    for path, record in saved_records(context.record.folder):
        if record.id != own.id and record.state != "went back" and record.target != own.target:
            yield OtherCutOver(str(path.parent), record)


def read_group(
    context: CutOverContext,
    groups: ConsumerGroups | None = None,
    earlier: GroupFacts | None = None,
) -> GroupFacts:
    """Return the current state of the consumer group.

    Args:
        context: the cut-over.
        groups: the client; by default a new one.
        earlier: an earlier result, whose rollback files and cluster ID are reused.

    Raises:
        BrokerError: the broker did not answer.
        ConfigError: the Kafka properties are not valid.
    """
    group = context.spec.target.group
    assert group is not None
    groups = groups or context.open_groups()
    view = groups.view(group)
    if earlier is not None:
        return replace(earlier, view=view)
    cluster_id = groups.cluster_id()
    changes = history(context.rollback_folders(), cluster_id, group)
    return GroupFacts(view, cluster_id, tuple(change for _, change in changes))


def _read_settled_location(context: CutOverContext, facts: Facts) -> LocationFacts:
    """Wait until no entry in the query's logs is empty, and return the location's contents.

    Raises:
        EmptyEntry: an entry stays empty.
        Refused, InputError, OSError: the location cannot be used, or cannot be read.
    """
    for _ in poll(_WRITING_SECONDS):
        try:
            return _read_location(context, facts)
        except EmptyEntry as error:
            empty = error
    raise empty


def _read_location(context: CutOverContext, facts: Facts) -> LocationFacts:
    location = context.location()
    assert location is not None
    name, entries = location.name, location.names()
    if entries is None:
        raise Refused(catalog.LOCATION_IS_FILE(location=name))
    if not entries:
        return LocationFacts(name)
    if facts.prime_status == "running":  # the command is writing the location
        return LocationFacts(name, is_empty=False)
    if is_unfinished(location):
        return LocationFacts(name, is_empty=False, unfinished=True)
    record, directory, files = context.record.model, context.query_directory, context.files
    planned = entry_numbers(files, join(directory, "offsets"))
    query_id, problem = spark_log.query_id(directory, files), None
    is_checked = record.primed is not None and record.query_id == query_id
    if context.spec.states and not is_checked and facts.seeds is not None:
        problem = _priming_problem(directory, files, facts.seeds)
    return LocationFacts(
        name,
        is_empty=False,
        query_id=query_id,
        seeds=spark_log.kafka_seeds(directory, files),
        last_committed_batch=spark_log.newest_committed_batch(directory, files),
        last_planned_batch=planned[-1] if planned else None,
        has_logs=spark_log.was_started(directory, files),
        priming_problem=problem,
    )


def _priming_problem(directory: str, files: Files, seeds: Mapping[str, Offsets]) -> Message | None:
    """Return the reason that a checkpoint location lacks the plan's seed or the primed state.

    Return None if the location contains both. Each batch of the priming must be committed and must
    end at the seed's offsets.
    """
    last = spark_log.newest_committed_batch(directory, files)
    if last is None:
        return catalog.LOCATION_NOT_PRIMED()
    if spark_log.newest_uncommitted_batch(directory, files, last) is not None:
        return catalog.PRIMED_LOCATION_IN_USE()
    if not _holds_a_file(files, join(directory, "state")):
        return catalog.PRIMED_STATE_MISSING()
    if spark_log.kafka_seeds(directory, files) != seeds:
        return catalog.PRIMED_SEED_DIFFERS()
    ends = dict(spark_log.logged_batches(directory, files))
    others = [batch for batch in ends if ends[batch] != seeds]
    if others or not ends:
        return catalog.PRIMED_BATCHES_DIFFER(batches=others or [last])
    return None


def _holds_a_file(files: Files, directory: str) -> bool:
    return any(
        not entry.is_directory or _holds_a_file(files, join(directory, entry.name))
        for entry in files.entries(directory) or ()
    )
