"""``migrate cut-over``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from migrate.cli import next_step
from migrate.cli.changes import DRY_RUN, EXECUTE, YES, ask, check_flags, report_dry_run
from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_flink_environment
from migrate.cli.terminal import emit, say
from migrate.cli.typer_parameters import option, with_options
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.message import with_code
from migrate.model.wording import counted, printable

if TYPE_CHECKING:
    from migrate.extensions.cutover.run import CutOver, StepResult

# The minimum width of a step's text on a narrow terminal.
_LEAST_WIDTH = 20


@with_options
def cut_over(
    spec: str | None = typer.Argument(
        None,
        metavar="SPEC",
        help="A YAML file with Flink's REST address, the job, the brokers, the target, and the "
        "command that starts the query. With --init, the new file for the spec [default: print "
        "the spec].",
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
        "Use an existing target that you or a different cut-over wrote, or a savepoint that a "
        "different cut-over has moved."
    ),
    nothing_started: bool = option(
        "Confirm that nothing has started to read from the target. Requires --back."
    ),
    init: bool = option(
        "Write a starter SPEC with comments. With --flink-rest, it contains the running job's "
        "values."
    ),
    flink_rest: str | None = option(
        "Query Flink's JobManager for the running job. Requires --init. [env: MIGRATE_FLINK_REST]",
        metavar="URL",
    ),
) -> None:
    """Move a running Flink job to its target: stop, plan, apply, start, verify.

    Without --execute, this is a dry run with the job's newest checkpoint or the savepoint in SPEC.
    The dry run shows the obstacles that can be detected before the stop, and the steps that earlier
    runs have completed.

    With --execute, the command runs the remaining steps. After a crash, rerun the command to
    resume. To find the completed steps, it queries Flink, Kafka, the target, and Spark's log.
    stdout contains the path of the record, which is a JSON file next to an HTML page.
    """
    from migrate.extensions.cutover import run
    from migrate.extensions.cutover.downtime import result_lines
    from migrate.model.errors import CutOverStopped, take_notes

    if init:
        if execute or back or adopt or nothing_started or until is not None:
            raise UsageError(
                "--init only writes SPEC, so it cannot be combined with --execute, --until, "
                "--back, --adopt, or --nothing-started; to start the cut-over, run `migrate "
                "cut-over SPEC`"
            )
        _write_first_spec(spec, with_flink_environment(flink_rest))
        return
    if flink_rest is not None:
        raise UsageError("--flink-rest requires --init; otherwise, set flink.rest in SPEC")
    if spec is None:
        raise UsageError("SPEC is missing; to write one, run `migrate cut-over --init SPEC`")
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
            say(f"stopped: {printable(with_code(reason))}")
        for line in (*stopped.details, *take_notes(stopped)):
            say(printable(line))
        raise typer.Exit(Exit.NOT_VERIFIED) from stopped
    if not execute:
        emit(_table(result.steps), end="")
        if result.prediction is not None:
            for line in result.prediction.lines():
                log.info(line)
        options = [
            *(["--until", until] if until is not None else ()),
            *(["--adopt"] if adopt else ()),
        ]
        command = next_step.command("cut-over", spec, *options, "--execute")
        report_dry_run(_verdict(command, result, back=back), requested=dry_run)
        return
    for line in result_lines(result.record) if not back else ():
        log.info(line)
    for step in result.steps:
        if step.state == "to do":
            log.info(f"next: {step.text}")
    emit(str(result.record_path))
    log.info(f"HTML page: {result.page_path}")
    if result.next_step is not None:
        log.info(_after_until(spec, until, result))


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
    screen = Screen.of(sys.stdout)
    return "".join(table_lines(columns, wrapped_steps(steps, screen.width), screen))


def wrapped_steps(steps: Sequence[StepResult], width: int | None) -> Sequence[StepResult]:
    """Wrap the texts of the steps, so that the table fits into ``width``; each line gets a row."""
    if width is None:
        return steps
    from textwrap import wrap

    first_columns = sum(
        max(map(len, cells)) + 2
        for cells in (
            ("STEP", *(step.name for step in steps)),
            ("STATE", *(step.state for step in steps)),
        )
    )
    room = max(width - first_columns, _LEAST_WIDTH)
    return [
        replace(step, text=line) if number == 0 else replace(step, name="", state="", text=line)
        for step in steps
        for number, line in enumerate(wrap(step.text, room, break_on_hyphens=False))
    ]


def _verdict(command: str, result: CutOver, *, back: bool) -> str:
    """Return the last line of a dry run; ``command`` is the same run with ``--execute``."""
    from migrate.planning import Verdict

    todo = [step.name for step in result.steps if step.state == "to do"]
    if back:
        return "dry run: nothing was changed; add --execute"
    if not todo:
        return "dry run: every step is done"
    resume = f"to continue with {todo[0]}, run `{command}`"
    rows = result.plan.partitions if result.plan is not None else ()
    if suspect := sum(row.verdict is Verdict.SUSPECT for row in rows):
        return (
            f"dry run: {suspect} of {counted(len(rows), 'partition')} "
            f"{'is' if suspect == 1 else 'are'} suspect, so migrate cannot determine whether "
            f"records would be lost or duplicated; no other obstacle was found; {resume}"
        )
    return f"dry run: no obstacle was found; {resume}"


def _after_until(spec: str, until: str | None, result: CutOver) -> str:
    """Return a line with the user's next step after a run with ``--until``."""
    review = ""
    if until == "plan":
        review = f"review the plan with `{next_step.command('show', str(result.plan_path))}`, and "
    resume = next_step.command("cut-over", spec, "--execute")
    return f"next: {review}run `{resume}`, which continues with {result.next_step}"
