"""``migrate commit-group``."""

from __future__ import annotations

import sys
from functools import partial

from migrate.cli import next_step
from migrate.cli.changes import (
    DRY_RUN,
    EXECUTE,
    PLAN_TO_APPLY,
    YES,
    ask,
    carry_out,
    check_flags,
    check_plan_alone,
    report_dry_run,
    save_plan,
    show_plan,
)
from migrate.cli.kafka_environment import with_move_environment
from migrate.cli.terminal import emit
from migrate.cli.typer_parameters import (
    ALLOW_NEWER_COMMITS,
    PLAN_TO_WRITE,
    WIDE,
    CheckpointOrPlan,
    option,
    with_options,
)
from migrate.model.errors import Refused, UsageError
from migrate.model.log import log
from migrate.model.offset_metadata import holds_offset
from migrate.model.wording import counted
from migrate.moves import commit_group as api
from migrate.moves.options import ALLOWED, CHECKED, MoveArguments
from migrate.moves.sink import check_sink_of_a_job


@partial(with_options, daily=("flink_rest",))
def commit_group(
    chk: CheckpointOrPlan = None,
    *,
    group: str | None = option(
        "Commit for this consumer group. [default with --plan: the plan's group]", metavar="G"
    ),
    execute: bool = EXECUTE,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
    rollback_file: str | None = option(
        "Save the group's current offsets in this new file before the change. "
        "[default: rollback-GROUP-TIME.json in the current directory]",
        metavar="F",
    ),
    arguments: MoveArguments,
    sink: str | None = option(
        "If a new Flink job will start from this group without state, check the table that this "
        "job will write to. migrate warns if the table has recorded checkpoints of a different "
        "job, because the table would then skip checkpoints of the new job.",
        metavar="DIR",
        panel=CHECKED,
    ),
    allow_moved_on: bool = option(
        "Rewind the group even if its consumers or another client have committed newer offsets. "
        "Its consumers will reprocess records.",
        flags=ALLOW_NEWER_COMMITS,
        panel=ALLOWED,
    ),
    metadata: str | None = option(
        "Commit this string as the metadata of each offset. [default: no metadata, because "
        "metadata belongs to the group's client]",
        metavar="TEXT",
    ),
    plan: str | None = PLAN_TO_APPLY,
    plan_out: str | None = PLAN_TO_WRITE,
    wide: bool = WIDE,
) -> None:
    """Commit a checkpoint's positions as a consumer group's offsets.

    Without --execute, this is a dry run that shows the group's current and new offsets.

    Spark does not commit offsets to a group. If CHK is spark:DIR, this command commits the offsets
    that the query has processed, so that monitoring tools can show the query's lag.
    """
    from migrate.report.plan import plan_table

    if execute and plan_out is not None:
        raise UsageError(
            "--execute cannot be combined with --plan-out, which only saves the plan; omit "
            "--execute, and apply the saved plan later with --plan FILE --execute"
        )
    check_flags(execute=execute, dry_run=dry_run, yes=yes)
    arguments = with_move_environment(arguments)
    if plan_out is not None:
        if group is None:
            raise UsageError("no consumer group was specified; pass --group G")
        check_plan_alone(
            {
                "--rollback-file": rollback_file is not None,
                "--allow-moved-on": allow_moved_on,
                "--metadata": bool(metadata),
            }
        )
        check_sink_of_a_job(sink)
        save_plan(plan_out, chk, plan, group, arguments, wide=wide)
        return
    change = api.commit_group(
        chk,
        group=group,
        plan=plan,
        rollback_file=rollback_file,
        sink=sink,
        allow_moved_on=allow_moved_on,
        metadata=metadata or "",
        **arguments,
    )
    if execute or change.refusals:
        show_plan(change.plan, needed=bool(change.refusals) or not yes, wide=wide)
    if change.refusals:
        raise Refused(change.refusals)
    if not execute:
        emit(plan_table(change.plan.partitions, sys.stdout, wide=wide), end="")
        report_dry_run(_dry_run(change), requested=dry_run)
        return
    name = change.group.name
    question = f"commit {counted(len(change.new_offsets), 'offset')} for group {name}?"
    back = next_step.rollback(change.rollback_path, arguments)
    outcome = carry_out(
        lambda: change.execute(lambda: ask(question, yes)), name, change.rollback_path, back
    )
    origin = change.plan.origin
    if check := next_step.verification(chk, plan, origin, f"group:{name}", arguments):
        log.info(f"next, before the group's consumers start: {check}")
    if outcome.rollback_path is not None:
        log.info(f"to preview a rollback: {back}")


def _dry_run(change: api.GroupChange) -> str:
    moving = change.new_offsets
    changing = sum(
        not holds_offset(change.group.committed.get(partition), offset)
        for partition, offset in moving.items()
    )
    if not changing:
        return f"dry run: group {change.group.name} already has these offsets; nothing would change"
    return (
        f"dry run: {changing} of {counted(len(moving), 'offset')} would change; nothing was "
        "committed; add --execute"
    )
