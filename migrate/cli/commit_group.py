"""``migrate commit-group`` and ``migrate rollback``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.cli import options
from migrate.cli.asking import ask, check_can_ask
from migrate.cli.errors import Exit, Refused, UsageError
from migrate.cli.planning import Move, Request, check_unmoved, decide
from migrate.cli.streams import emit, say
from migrate.plan_file import SavedPartition
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired
from migrate.snapshot import Committed, GroupView

if TYPE_CHECKING:
    from migrate.targets.consumer_group import Outcome

_Execute = Annotated[
    bool,
    typer.Option("--execute", help="Do it; without this it is a dry run, and changes nothing."),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
_RollbackFile = Annotated[
    Path | None,
    typer.Option(
        "--rollback-file",
        metavar="F",
        help="Where to write what the group holds now, before it is changed. "
        "[default: rollback-<group>-<time>.json here]",
        show_default=False,
    ),
]


def commit_group(
    chk: options.CheckpointOrPlan = None,
    group: Annotated[
        str, typer.Option("--group", metavar="G", help="The consumer group to commit for.")
    ] = ...,  # type: ignore[assignment]
    bootstrap_servers: options.BootstrapServers = None,
    execute: _Execute = False,
    yes: _Yes = False,
    rollback_path: _RollbackFile = None,
    source: options.SourceName = None,
    cluster: options.Cluster = None,
    source_group: options.SourceGroup = None,
    topic_map: options.TopicMap = None,
    partitions: options.Partitions = None,
    flink_rest: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Ask Flink's JobManager whether a job still runs.",
            show_default=False,
        ),
    ] = None,
    on_expired: options.OnExpiredOption = OnExpired.FAIL,
    on_beyond_end: options.OnBeyondEndOption = OnBeyondEnd.FAIL,
    new_partitions: options.NewPartitionsOption = NewPartitions.AS_FLINK,
    gone: options.GoneOption = Gone.FAIL,
    unresolved: options.UnresolvedOption = "fail",
    merge_sources: options.MergeSourcesOption = MergeSources.FAIL,
    allow_in_flight: options.AllowInFlight = False,
    allow_ran_on: options.AllowRanOn = False,
    plan: options.PlanFileToApply = None,
    plan_out: options.PlanFileToWrite = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Commit a checkpoint's positions as a consumer group's offsets.

    Without --execute a dry run: the group as it is, and the change, partition by partition.
    """
    from migrate import rollback_file
    from migrate.targets.consumer_group import GroupRefused, commit, not_writable

    if execute and plan_out is not None:
        raise UsageError("--plan-out saves the plan and --execute applies one: one at a time")
    if execute:
        check_can_ask(yes)
    policies = options.PolicyOptions(
        on_expired,
        on_beyond_end,
        new_partitions,
        gone,
        unresolved,
        merge_sources,
        allow_in_flight,
        allow_ran_on,
        topic_map,
        partitions,
    ).policies()
    kafka = options.KafkaOptions(bootstrap_servers, kafka_config, kafka_property)
    if not kafka.given:
        raise UsageError("commit-group needs a broker: add --bootstrap-servers HOST:PORT")
    request = Request(chk, source, cluster, kafka, source_group, policies, plan, plan_out, group)
    move = decide(request)
    if plan_out is not None:
        return
    before = _target_group(move)
    folder = rollback_path.parent if rollback_path is not None else Path()
    for line in _about_the_group(before, move, folder):
        say(line)
    _tell_what_runs(flink_rest)
    table = _table(move.saved.partitions)
    refusals = not_writable(before)
    if refusals:
        raise Refused(refusals)
    wanted = _wanted(move)
    if not execute:
        emit(table, end="")
        say("dry run: nothing was committed; add --execute")
        return
    for line in table.splitlines():
        say(line)
    if all(before.next_offset(*place) == held.next_offset for place, held in wanted.items()):
        say(f"nothing to do: group {group} holds these offsets")
        return
    ask(f"commit {len(wanted)} offsets for group {group}?", yes)
    path = rollback_path or rollback_file.default_path(group, Path())
    check_unmoved(request, move)  # it may have waited for the answer
    say(f"what the group holds now goes to {path} first")
    try:
        outcome = commit(kafka.config(), group, wanted, before, path)
    except GroupRefused as refused:
        raise Refused(refused.reasons) from refused
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    _end(outcome)


def _target_group(move: Move) -> GroupView:
    view = move.snapshot.target_group if move.snapshot is not None else None
    if view is None:
        raise UsageError("this plan was made without a broker: make a new one for the group")
    return view


def _wanted(move: Move) -> dict[tuple[str, int], Committed]:
    from migrate.targets.consumer_group import commit_metadata

    checkpoint = f"chk-{move.saved.checkpoint.id}"
    return {
        (saved.topic, saved.partition): Committed(
            saved.next_offset,
            commit_metadata(f"{checkpoint} {(saved.operator_id or saved.verdict.value)[:16]}"),
        )
        for saved in move.saved.partitions
        if saved.next_offset is not None
    }


def _about_the_group(group: GroupView, move: Move, folder: Path) -> Iterator[str]:
    from migrate.report.text import visible
    from migrate.rollback_file import earlier_run

    name = visible(group.name)
    if not group.exists:
        yield f"group {name} does not exist yet: it will be created; is its name right?"
    else:
        yield (
            f"group {name}: {group.state}, {group.type}, {len(group.members)} members, "
            f"{len(group.committed)} committed offsets"
        )
    for member in group.members:
        yield f"  member {visible(member.client_id)} on {visible(member.host)}"
    yield (
        "a group without members expires offsets.retention.minutes after its last commit: start "
        "its consumers before"
    )
    run = earlier_run(folder, move.saved.cluster_id, group)
    if run is not None:
        yield f"{run.path}: {run.fate.value}"


def _tell_what_runs(flink_rest: str | None) -> None:
    if flink_rest is None:
        say(
            "not proven stopped: KafkaSource joins no group, so that a running job does not show "
            "here, and would overwrite these offsets at its next checkpoint; --flink-rest URL "
            "asks Flink"
        )
        return
    from migrate.flink_rest import unfinished_jobs
    from migrate.report.text import visible

    running = [
        f"Flink still has job {job.job_id} ({visible(job.name)}), {job.state}; if it is the one "
        "that moves, stop it with a savepoint first, or leave --flink-rest out"
        for job in unfinished_jobs(flink_rest)
    ]
    if running:
        raise Refused(running)
    say("Flink has no job that has not ended")


def _table(partitions: list[SavedPartition]) -> str:
    from migrate.report.plan import plan_table

    return plan_table(partitions, sys.stdout)


def _end(outcome: Outcome) -> None:
    """Tell what came of it; exit with 5 where that is not what was asked for."""
    from migrate.report.plan import outcome_lines
    from migrate.targets.consumer_group import Applied

    for line in outcome_lines(outcome):
        say(line)
    if outcome.rollback_path is not None:
        emit(str(outcome.rollback_path))
    if outcome.applied is Applied.NOTHING:
        codes = {one.failure.code for one in outcome.partitions if one.failure is not None}
        joined = codes & {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP"}
        # Nothing was changed: a consumer has joined meanwhile, or the service did not take it.
        raise typer.Exit(Exit.REFUSED if joined else Exit.SERVICE)
    if outcome.applied not in (Applied.ALL, Applied.NOTHING_TO_DO):
        raise typer.Exit(Exit.NOT_VERIFIED)


def rollback(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rollback file.")],
    bootstrap_servers: options.BootstrapServers = None,
    execute: _Execute = False,
    yes: _Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Go back although the group has moved on since.")
    ] = False,
    rollback_path: _RollbackFile = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Bring a consumer group back to what it held before a change, by its rollback file.

    Without --execute a dry run.
    """
    from migrate import rollback_file
    from migrate.report.plan import restoration_table
    from migrate.rollback import look, restore
    from migrate.targets.consumer_group import GroupRefused

    if execute:
        check_can_ask(yes)
    kafka = options.KafkaOptions(
        bootstrap_servers or _servers(file, kafka_config), kafka_config, kafka_property
    )
    config = kafka.config()
    seen = look(config, file)
    say(f"group {seen.file.group}, {seen.file.change} of {seen.file.created_at}: {seen.fate.value}")
    for warning in seen.warnings:
        say(f"warning: {warning}")
    refusals = [*seen.refusals, *(() if force else seen.moved_on)]
    if refusals:
        raise Refused(refusals)
    table = restoration_table(seen.partitions, sys.stdout)
    if not seen.partitions:
        say(f"nothing to do: group {seen.file.group} holds what it held before")
        return
    if not execute:
        emit(table, end="")
        say("dry run: nothing was changed; add --execute")
        return
    for line in table.splitlines():
        say(line)
    ask(f"bring {len(seen.partitions)} offsets of group {seen.file.group} back?", yes)
    # Beside the file that it follows: a later run looks for both there.
    path = rollback_path or rollback_file.default_path(seen.file.group, file.parent)
    say(f"what the group holds now goes to {path} first")
    try:
        outcome = restore(config, file, seen, path, force=force)
    except GroupRefused as refused:
        raise Refused(refused.reasons) from refused
    except FileExistsError as error:
        raise Refused([f"{path} is there already; name a new file"]) from error
    _end(outcome)


def _servers(file: Path, kafka_config: Path | None) -> str | None:
    """The brokers that the file names, unless a configuration is given."""
    from migrate import rollback_file

    return None if kafka_config is not None else rollback_file.read(file).bootstrap_servers
