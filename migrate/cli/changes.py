"""Options and steps that several commands share: plans, confirmation, and group changes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from migrate.cli import next_step
from migrate.cli.exit_codes import Exit, is_interrupt
from migrate.cli.terminal import emit, say, show
from migrate.cli.typer_parameters import option
from migrate.model.catalog import CHANGE_NOT_CONFIRMED
from migrate.model.errors import Refused, UsageError, add_notes
from migrate.model.log import log
from migrate.model.positions import target_of
from migrate.model.wording import printable
from migrate.moves.declare_options import declared_option
from migrate.moves.load_inputs import read_input
from migrate.moves.options import MoveArguments, PlanArguments, move_request
from migrate.moves.plan import check_before_writing_plan, check_job_of_plan, plan_move, plan_path
from migrate.planning import Plan
from migrate.storage.new_file import check_new_file

if TYPE_CHECKING:
    from migrate.targets.group.commit import ChangeOutcome

PLAN_TO_APPLY = declared_option(PlanArguments, "plan")
EXECUTE = option("Make the change. Without this option the command is a dry run.")
DRY_RUN = option("Show the changes without making them. This is the default.")
YES = option("Make the change without asking for confirmation.")


def check_flags(*, execute: bool, dry_run: bool, yes: bool) -> None:
    """Refuse --dry-run with --execute, and --execute without --yes if there is no terminal.

    Raises:
        UsageError: the options cannot be combined, or there is no terminal for the confirmation.
    """
    if execute and dry_run:
        raise UsageError("--execute cannot be combined with --dry-run")
    if execute and not yes and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError(
            "--execute asks for confirmation, but stdin is not a terminal; add --yes to confirm"
        )


def report_dry_run(result: str, *, requested: bool) -> None:
    """Show the result of a dry run on stderr.

    With -q, show the result only if --dry-run was not ``requested``. Otherwise, exit code 0 without
    a message could be read as a completed change.
    """
    show(printable(result), needed=not requested)


def ask(question: str, yes: bool) -> None:
    """Ask the user to confirm a change, unless ``--yes`` was passed.

    Raises:
        Refused: the answer was neither "y" nor "yes".
    """
    if yes:
        return
    say(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused(CHANGE_NOT_CONFIRMED())


def check_plan_alone(given: Mapping[str, bool]) -> None:
    """Refuse options that --plan-out would ignore because a saved plan does not store them.

    Args:
        given: True for each option that was passed, by the option's name.

    Raises:
        UsageError: one of the options was passed.
    """
    if names := [name for name, is_given in given.items() if is_given]:
        raise UsageError(
            f"{' and '.join(names)} cannot be combined with --plan-out, because a saved plan does "
            f"not store {'this option' if len(names) == 1 else 'these options'}; pass "
            f"{'it' if len(names) == 1 else 'them'} later, when you apply the plan with --plan"
        )


def save_plan(
    path: str,
    chk: str | None,
    plan_to_apply: str | None,
    group: str | None,
    arguments: MoveArguments,
    *,
    wide: bool = False,
) -> None:
    """Make a plan, show it, and save it.

    Args:
        path: the value of ``--plan-out``.
        chk: the checkpoint, or another source of positions.
        plan_to_apply: the value of ``--plan``.
        group: the consumer group; None to plan for Spark.
        arguments: as in ``migrate.plan``.
        wide: True to show every column.

    Raises:
        UsageError: ``plan_to_apply`` is set, ``chk`` is None, or ``path`` cannot be written.
        Refused: ``path`` exists, or ``check_before_writing_plan`` raises it.
        DecodeError, MigrateError: as in ``migrate.plan`` and ``Plan.save``.
    """
    if plan_to_apply is not None:
        raise UsageError("--plan applies a plan, and --plan-out creates one; pass only one of them")
    if chk is None:
        raise UsageError("--plan-out needs a checkpoint; pass CHK")
    file = plan_path("plan_out", path)
    check_new_file("plan_out", file)
    request = move_request(target_of(group), arguments)
    move = plan_move(read_input(chk, request), request)
    show_plan(move, needed=group is not None and bool(move.refusals), wide=wide)
    move.check()
    check_before_writing_plan(request, move, check_job_of_plan(request, move))
    move.save(file)
    apply = next_step.application(move, path, arguments)
    log.info(f"wrote {path}; review it, and then run: {apply}")


def show_plan(move: Plan, *, needed: bool, wide: bool = False) -> None:
    """Show the partitions of a plan on stderr, before the plan is refused, saved, or applied."""
    from migrate.report.plan import plan_table

    if move.partitions and sys.stderr is not None:
        show(plan_table(move.partitions, sys.stderr, wide=wide), needed=needed)


def carry_out(
    change: Callable[[], ChangeOutcome],
    group: str,
    rollback_path: Path,
    restoring_command: str,
) -> ChangeOutcome:
    """Change a group, and report the outcome.

    Args:
        change: the function that asks the user, writes the rollback file, and changes the group.
        group: the name of the group.
        rollback_path: the rollback file that ``change`` writes.
        restoring_command: the command that previews the restoration of the group's offsets.

    Raises:
        typer.Exit: the group does not have all of its new offsets, or the name of the rollback
            file could not be written to stdout.
        KeyboardInterrupt: the user pressed Ctrl-C. A message reports whether the group may have
            changed.
    """
    try:
        try:
            outcome = change()
        except (OSError, UsageError) as error:  # writing the rollback file failed
            add_notes(error, "nothing was committed")
            raise
        _report(outcome, restoring_command)
    except (KeyboardInterrupt, SystemError) as error:
        # The rollback file is written before the change.
        if not is_interrupt(error):
            raise
        if rollback_path.exists():
            say(
                f"interrupted; offsets of group {group} may have been changed; "
                f"{_how_to_restore(restoring_command)}"
            )
        else:
            say("interrupted; nothing was changed")
        raise KeyboardInterrupt from error
    return outcome


def _how_to_restore(command: str) -> str:
    return f"to show the changed offsets, run `{command}`; to restore them, add --execute"


def _report(outcome: ChangeOutcome, restoring_command: str) -> None:
    from migrate.report.plan import outcome_lines

    code = _exit_code(outcome)
    show("\n".join(outcome_lines(outcome)), needed=code is not None)
    if code is Exit.NOT_VERIFIED:
        say(_how_to_restore(restoring_command))
    if outcome.rollback_path is not None:
        try:
            emit(str(outcome.rollback_path))
        except OSError as error:
            # The name of the rollback file is missing from stdout. The exit code reports this to a
            # script.
            say(f"stdout: {error.strerror}; the rollback file is {outcome.rollback_path}")
            code = code or Exit.NOT_VERIFIED
    if code is not None:
        raise typer.Exit(code)


def _exit_code(outcome: ChangeOutcome) -> Exit | None:
    """Return the exit code of a change, or None if the group has all of its new offsets."""
    from migrate.targets.group.commit import Applied

    match outcome.applied:
        case Applied.ALL | Applied.NOTHING_TO_DO:
            return None
        case Applied.NOTHING:
            codes = {row.failure.code for row in outcome.partitions if row.failure is not None}
            joined = codes & {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP", "GROUP_SUBSCRIBED_TO_TOPIC"}
            # REFUSED: a consumer has joined the group in the meantime. SERVICE: Kafka rejected the
            # change for a different reason, or did not answer.
            return Exit.REFUSED if joined else Exit.SERVICE
        case Applied.PARTLY | Applied.UNVERIFIED:
            return Exit.NOT_VERIFIED
