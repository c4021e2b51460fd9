"""``migrate commit-group``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.cli import options
from migrate.cli.asking import ask, check_can_ask
from migrate.cli.changing import Execute, Yes, carry_out, check_rollback_file
from migrate.cli.errors import Refused, UsageError
from migrate.cli.planning import Move, Request, check_unmoved, decide
from migrate.cli.stopped import look_twice, tell_what_runs
from migrate.cli.streams import emit, say
from migrate.plan_file import SavedPartition
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired
from migrate.snapshot import Committed, GroupView
from migrate.spark_query import is_query
from migrate.wording import counted

if TYPE_CHECKING:
    from migrate.rollback_file import EarlierRun


def commit_group(
    chk: options.CheckpointOrPlan = None,
    group: Annotated[
        str, typer.Option("--group", metavar="G", help="The consumer group to commit for.")
    ] = ...,  # type: ignore[assignment]
    bootstrap_servers: options.BootstrapServers = None,
    execute: Execute = False,
    yes: Yes = False,
    rollback_path: Annotated[
        Path | None,
        typer.Option(
            "--rollback-file",
            metavar="F",
            help="Where to write what the group holds now, before it is changed. "
            "[default: rollback-<group>-<time>.json here]",
            show_default=False,
        ),
    ] = None,
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
    allow_moved_on: Annotated[
        bool,
        typer.Option(
            "--allow-moved-on",
            help="Go back although the group has moved on since an earlier commit-group.",
        ),
    ] = False,
    allow_external_files: options.AllowExternalFiles = False,
    plan: options.PlanFileToApply = None,
    plan_out: options.PlanFileToWrite = None,
    kafka_config: options.KafkaConfigFile = None,
    kafka_property: options.KafkaProperties = None,
) -> None:
    """Commit a checkpoint's positions as a consumer group's offsets.

    CHK may also be spark:DIR, a Spark query's checkpoint location: what it has committed, so that
    lag shows again after the move. Spark itself commits to no group.

    Without --execute a dry run: the group as it is, and the change, partition by partition.
    """
    from migrate import rollback_file
    from migrate.targets.consumer_group import commit, not_writable

    if not group:
        raise UsageError("--group: no name (an unset variable?)")
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
    request = Request(
        chk,
        source,
        cluster,
        kafka,
        source_group,
        policies,
        plan,
        plan_out,
        group,
        allow_external_files,
    )
    move = decide(request)
    if plan_out is not None:
        return
    before = _target_group(move)
    path = rollback_path or rollback_file.default_path(group, Path())
    run = rollback_file.earlier_run((path.parent, Path()), move.saved.cluster_id, before)
    for line in _about_the_group(before, run):
        say(line)
    table = _table(move.saved.partitions)
    refusals = [*not_writable(before), *tell_what_runs(move.saved, flink_rest)]
    if not allow_moved_on:
        refusals += _goes_back(move.saved.partitions, run)
    if execute or refusals:
        for line in table.splitlines():
            say(line)
    if refusals:
        raise Refused(refusals)
    wanted = _wanted(move)
    if not execute:
        emit(table, end="")
        say("dry run: nothing was committed; add --execute")
        return
    if all(before.next_offset(*place) == held.next_offset for place, held in wanted.items()):
        say(f"nothing to do: group {group} holds these offsets")
        return
    check_rollback_file(path)
    if flink_rest is None:
        look_twice(request, move)
    ask(f"commit {counted(len(wanted), 'offset')} for group {group}?", yes)
    check_unmoved(request, move)  # it may have waited for the answer
    carry_out(lambda: commit(kafka.config(), group, wanted, before, path), group, path)


def _target_group(move: Move) -> GroupView:
    view = move.snapshot.target_group if move.snapshot is not None else None
    if view is None:
        raise UsageError("this plan was made without a broker: make a new one for the group")
    return view


def _wanted(move: Move) -> dict[tuple[str, int], Committed]:
    from migrate.targets.consumer_group import commit_metadata

    kind = "batch" if is_query(move.saved.checkpoint.pointer) else "chk"
    checkpoint = f"{kind}-{move.saved.checkpoint.id}"
    return {
        (saved.topic, saved.partition): Committed(
            saved.next_offset,
            commit_metadata(f"{checkpoint} {(saved.operator_id or saved.verdict.value)[:16]}"),
        )
        for saved in move.saved.partitions
        if saved.next_offset is not None
    }


def _about_the_group(group: GroupView, run: EarlierRun | None) -> Iterator[str]:
    from migrate.report.text import visible

    name = visible(group.name)
    if not group.exists:
        yield f"group {name} does not exist yet: it will be created; is its name right?"
    else:
        yield (
            f"group {name}: {group.state}, {group.type}, {counted(len(group.members), 'member')}, "
            f"{counted(len(group.committed), 'committed offset')}"
        )
    for member in group.members:
        yield f"  member {visible(member.client_id)} on {visible(member.host)}"
    yield (
        "a group without members expires offsets.retention.minutes after its last commit: start "
        "its consumers before"
    )
    if run is not None:
        yield f"{run.path}: {run.fate.value}"


def _goes_back(partitions: list[SavedPartition], run: EarlierRun | None) -> Iterator[str]:
    """The same move again, after consumers have gone on from it, repeats what they have read."""
    from migrate.rollback_file import Fate

    if run is None or run.file.change != "commit" or run.fate is not Fate.MOVED_ON:
        return
    back = [
        saved.current - saved.next_offset
        for saved in partitions
        if saved.current is not None
        and saved.next_offset is not None
        and saved.next_offset < saved.current
    ]
    if back:
        yield (
            f"the group has moved on since {run.path} was written: {len(back)} of its offsets "
            f"would go back, and up to {sum(back)} records be read again; add --allow-moved-on to "
            "go back all the same"
        )


def _table(partitions: list[SavedPartition]) -> str:
    from migrate.report.plan import plan_table

    return plan_table(partitions, sys.stdout)
