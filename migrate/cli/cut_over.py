"""``migrate cut-over``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from migrate.cli.changes import DRY_RUN, EXECUTE, YES, ask, check_flags
from migrate.cli.exit_codes import Exit
from migrate.cli.terminal import emit, say
from migrate.cli.typer_parameters import option, with_options
from migrate.model.log import log
from migrate.model.wording import printable

if TYPE_CHECKING:
    from migrate.cutover.run import StepResult


@with_options
def cut_over(
    spec: str = typer.Argument(
        ...,
        metavar="SPEC",
        help="A YAML file: Flink's REST address, the job, the brokers, the target, the command "
        "that starts the query.",
    ),
    *,
    execute: bool = EXECUTE,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
    until: str | None = option(
        "The last step to do: check, stop, clean, plan, apply, verify, start, "
        "first-batch or verify-again.",
        metavar="STEP",
    ),
    back: bool = option(
        "Undo: remove or restore the target, if nothing has started to read from it."
    ),
    adopt: bool = option(
        "Use a target that exists already: written by hand, or by another cut-over."
    ),
    nothing_started: bool = option(
        "With --back: you have checked that nothing has started to read from the target."
    ),
) -> None:
    """Move a running Flink job to its target: stop, plan, apply, start, verify.

    Without --execute this is a dry run on the job's newest checkpoint, or on the savepoint that
    SPEC names. It shows the obstacles that are visible before the stop, and the steps that an
    earlier run has done.

    With --execute it carries out the steps that remain. After a crash, run the same command
    again: it asks Flink, Kafka, the target and Spark's log which steps are done. stdout names the
    record of the cut-over, a JSON file beside its HTML page.
    """
    from migrate.cutover import run
    from migrate.model.errors import CutOverStopped, take_notes

    check_flags(execute=execute, dry_run=dry_run, yes=yes)
    try:
        result = run.cut_over(
            spec,
            execute=execute,
            until=until,
            back=back,
            adopt=adopt,
            nothing_started=nothing_started,
            confirm=(lambda question: ask(question, yes)) if execute else None,
        )
    except CutOverStopped as stopped:
        for reason in stopped.reasons:
            say(f"stopped: {printable(reason)}")
        for line in (*stopped.details, *take_notes(stopped)):
            say(printable(line))
        raise typer.Exit(Exit.NOT_VERIFIED) from stopped
    if not execute:
        emit(_table(result.steps), end="")
        log.info(_verdict(result.steps, back=back))
        return
    for step in result.steps:
        if step.state == "to do":
            log.info(f"next: {step.text}")
    emit(str(result.record_path))
    log.info(f"its page: {result.page_path}")


def _table(steps: Sequence[StepResult]) -> str:
    from migrate.report.screen import Screen
    from migrate.report.table import Column, table_lines

    columns: tuple[Column[StepResult], ...] = (
        Column("STEP", lambda step: step.name),
        Column("STATE", lambda step: step.state),
        Column("WHAT", lambda step: step.text),
    )
    return "".join(table_lines(columns, steps, Screen.of(sys.stdout)))


def _verdict(steps: Sequence[StepResult], *, back: bool) -> str:
    todo = [step.name for step in steps if step.state == "to do"]
    if back:
        return "dry run: nothing was changed; add --execute"
    if not todo:
        return "dry run: nothing to do: every step is done"
    return f"dry run: no obstacle was found; --execute goes on with {todo[0]}"
