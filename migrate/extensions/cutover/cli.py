"""``migrate cut-over``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from migrate.cli.changes import DRY_RUN, EXECUTE, YES, ask, check_flags
from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_flink_environment
from migrate.cli.terminal import emit, say
from migrate.cli.typer_parameters import option, with_options
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.wording import printable

if TYPE_CHECKING:
    from migrate.extensions.cutover.run import StepResult


@with_options
def cut_over(
    spec: str | None = typer.Argument(
        None,
        metavar="SPEC",
        help="A YAML file with Flink's REST address, the job, the brokers, the target, and the "
        "command that starts the query. With --init, a new file [default: print the spec].",
    ),
    *,
    execute: bool = EXECUTE,
    dry_run: bool = DRY_RUN,
    yes: bool = YES,
    until: str | None = option(
        "Stop after this step: check, stop, clean, plan, apply, verify, start, first-batch, or "
        "verify-again.",
        metavar="STEP",
    ),
    back: bool = option(
        "Roll back: remove or restore the target, if nothing has started to read from it.",
        flags=("--back", "--roll-back"),
    ),
    adopt: bool = option(
        "Use an existing target that a person or a different cut-over has written."
    ),
    nothing_started: bool = option(
        "Confirm that nothing has started to read from the target. Requires --back."
    ),
    init: bool = option(
        "Write a first SPEC with comments, from the running job if --flink-rest is set."
    ),
    flink_rest: str | None = option(
        "The address of Flink's JobManager. Requires --init. [env: MIGRATE_FLINK_REST]",
        metavar="URL",
    ),
) -> None:
    """Move a running Flink job to its target: stop, plan, apply, start, verify.

    Without --execute, this is a dry run with the job's newest checkpoint or SPEC's savepoint. It
    shows the obstacles that are visible before the stop, and the steps that earlier runs have done.

    With --execute, it runs the remaining steps. After a crash, rerun the command to resume. It
    queries Flink, Kafka, the target, and Spark's log for the completed steps. stdout contains the
    path of the record, a JSON file next to its HTML page.
    """
    from migrate.extensions.cutover import run
    from migrate.model.errors import CutOverStopped, take_notes

    if init:
        if execute or back or adopt or nothing_started or until is not None:
            raise UsageError(
                "--init cannot be combined with --execute, --until, --back, --adopt, or "
                "--nothing-started; it only writes SPEC; run cut-over SPEC afterwards"
            )
        _write_first_spec(spec, with_flink_environment(flink_rest))
        return
    if flink_rest is not None:
        raise UsageError("--flink-rest requires --init; otherwise, set flink.rest in SPEC")
    if spec is None:
        raise UsageError("no SPEC; to write one, run `migrate cut-over --init SPEC`")
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
        if result.prediction is not None:
            for line in result.prediction.lines():
                log.info(line)
        log.info(_verdict(result.steps, back=back))
        return
    for step in result.steps:
        if step.state == "to do":
            log.info(f"next: {step.text}")
    emit(str(result.record_path))
    log.info(f"page of the record: {result.page_path}")


def _write_first_spec(spec: str | None, flink_rest: str | None) -> None:
    from migrate.extensions.cutover.first_spec import first_spec
    from migrate.storage.new_file import check_new_file, write_new
    from migrate.storage.uris import local_path

    if spec is None:
        emit(first_spec(flink_rest), end="")
        return
    path = local_path(spec)
    check_new_file("spec", path)
    write_new(path, first_spec(flink_rest, spec=spec))
    log.info(f"wrote {spec}; next: set the required keys, and run migrate cut-over {spec}")


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
        return "dry run: every step is done"
    return f"dry run: no obstacle was found; --execute continues with {todo[0]}"
