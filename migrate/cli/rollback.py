"""``migrate rollback``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

import typer

from migrate.cli import next_step
from migrate.cli.changes import DRY_RUN, EXECUTE, YES, ask, carry_out, check_flags, report_dry_run
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit, show
from migrate.cli.typer_parameters import WIDE, option, with_options
from migrate.model.errors import Refused
from migrate.model.log import log
from migrate.model.wording import counted
from migrate.moves import rollback as calls
from migrate.moves.options import KafkaArguments
from migrate.moves.options import kafka as kafka_of
from migrate.storage.uris import local_path
from migrate.targets.group.rollback_decision import RestoredOffset
from migrate.targets.group.rollback_file import read


@partial(
    with_options,
    help={
        "bootstrap_servers": "Connect to the group's Kafka cluster. [default: the brokers in FILE]"
    },
)
def rollback(
    file: str = typer.Argument(..., metavar="FILE", help="A rollback file."),
    *,
    kafka: KafkaArguments,
    execute: bool = EXECUTE,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
    force: bool = option(
        "Roll back even if the group has newer commits, or if a restored offset is outside the "
        "log or belongs to a recreated topic. Offsets of deleted partitions are omitted."
    ),
    rollback_file: str | None = option(
        "Save the group's current offsets in this new file before the change. [default: "
        "rollback-GROUP-TIME.json next to FILE]",
        metavar="F",
    ),
    wide: bool = WIDE,
) -> None:
    """Restore a consumer group's offsets from the rollback file of a change.

    Without --execute, this is a dry run. The rollback restores the offsets, metadata, and leader
    epochs from before the change, and removes offsets that did not exist.

    If an earlier rollback was interrupted, this command also reads the rollback file that the
    earlier rollback wrote next to FILE or in the current directory.
    """
    from migrate.report.plan import restoration_table

    check_flags(execute=execute, dry_run=dry_run, yes=yes)
    new_file = local_path(rollback_file) if rollback_file is not None else None
    if not kafka_of(kafka).names_brokers:
        # The brokers in the rollback file take precedence over the environment variables.
        kafka["bootstrap_servers"] = read(local_path(file)).bootstrap_servers
    change = calls.rollback(file, force=force, rollback_file=new_file, **with_environment(kafka))
    group = change.preview.file.group
    changing = [row for row in change.partitions if not row.omitted]
    if not (change.refusals or changing):
        log.info(f"nothing to do: group {group} already has the offsets from before the change")
        return
    if (execute or change.refusals) and sys.stderr is not None:
        table = restoration_table(change.partitions, sys.stderr, wide=wide)
        show(table, needed=bool(change.refusals) or not yes)
    if change.refusals:
        raise Refused(change.refusals)
    if not execute:
        emit(restoration_table(change.partitions, sys.stdout, wide=wide), end="")
        would_change = _would_change(changing)
        report_dry_run(
            f"dry run: {would_change}; nothing was changed; add --execute", requested=dry_run
        )
        return
    question = f"{_changes(changing)} of group {group}?"
    back = next_step.command("rollback", change.rollback_path, kafka=kafka)
    outcome = carry_out(
        lambda: change.execute(lambda: ask(question, yes)), group, change.rollback_path, back
    )
    if outcome.rollback_path is not None:
        log.info(f"to preview undoing this rollback: {back}")


def _would_change(partitions: Sequence[RestoredOffset]) -> str:
    removed = sum(row.target is None for row in partitions)
    if removed == len(partitions):
        return f"{counted(removed, 'offset')} would be removed"
    also = f", including {removed} to be removed" if removed else ""
    return f"{counted(len(partitions), 'offset')} would change{also}"


def _changes(partitions: Sequence[RestoredOffset]) -> str:
    """Return the changes for the confirmation, such as ``restore 1 offset``."""
    removed = sum(row.target is None for row in partitions)
    counts = {"restore": len(partitions) - removed, "remove": removed}
    return " and ".join(
        f"{verb} {counted(count, 'offset')}" for verb, count in counts.items() if count
    )
