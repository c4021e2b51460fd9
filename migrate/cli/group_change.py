"""What ``commit-group`` and ``rollback`` do alike: they keep a way back, and tell how it ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.cli.exit_codes import Exit, is_interrupt
from migrate.cli.terminal import emit, say, show
from migrate.model.errors import UsageError

if TYPE_CHECKING:
    from migrate.targets.group.commit import ChangeOutcome

Execute = Annotated[
    bool,
    typer.Option("--execute", help="Do it. Without this it is a dry run, and changes nothing."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing: the default.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
RollbackFile = Annotated[
    str | None,
    typer.Option(
        "--rollback-file",
        metavar="F",
        help="Where to write what the group holds now, before it is changed. "
        "[default: rollback-<group>-<time>.json, of commit-group here, of rollback beside FILE]",
    ),
]


def check_one(execute: bool, dry_run: bool) -> None:
    """A run is dry, or it is not.

    Raises:
        UsageError: both are asked for.
    """
    if execute and dry_run:
        raise UsageError("--execute and --dry-run: one of them")


def carry_out(
    change: Callable[[], ChangeOutcome], group: str, rollback_path: Path
) -> ChangeOutcome:
    """Do it, and tell what came of it.

    Args:
        change: asks, and changes the group; writes the rollback file first.
        rollback_path: where it writes that file.

    Returns:
        What came of it, all as it was asked for.

    Raises:
        typer.Exit: it is not as it was asked for, or that could not be told.
    """
    with _told_if_interrupted(group, rollback_path):
        outcome = change()
        _tell(outcome)
        return outcome


@contextmanager
def _told_if_interrupted(group: str, rollback_path: Path) -> Iterator[None]:
    """Ctrl-C ends a run at any moment, also when Kafka has the request and we not its answer."""
    try:
        yield
    except (KeyboardInterrupt, SystemError) as error:
        if not is_interrupt(error):
            raise
        if rollback_path.exists():
            say(
                f"interrupted: offsets of group {group} may have been changed; `migrate rollback "
                f"{rollback_path}` tells, and with --execute brings back what it held before"
            )
        else:
            say("interrupted: nothing was changed")
        raise KeyboardInterrupt from error


def _tell(outcome: ChangeOutcome) -> None:
    from migrate.report.plan import outcome_lines

    code = _exit_code(outcome)
    show("\n".join(outcome_lines(outcome)), needed=code is not None)
    if code is Exit.NOT_VERIFIED:
        say(
            f"`migrate rollback {outcome.rollback_path}` tells how far it came, and with --execute "
            "brings back what the group held before"
        )
    if outcome.rollback_path is not None:
        try:
            emit(str(outcome.rollback_path))
        except OSError as error:
            # The name is a part of what was asked for; whoever waits for it must not go on.
            say(f"stdout: {error.strerror}; the rollback file is {outcome.rollback_path}")
            code = code or Exit.NOT_VERIFIED
    if code is not None:
        raise typer.Exit(code)


def _exit_code(outcome: ChangeOutcome) -> Exit | None:
    """None where all is as it was asked for."""
    from migrate.targets.group.commit import Applied

    match outcome.applied:
        case Applied.ALL | Applied.NOTHING_TO_DO:
            return None
        case Applied.NOTHING:
            codes = {one.failure.code for one in outcome.partitions if one.failure is not None}
            joined = codes & {"UNKNOWN_MEMBER_ID", "NON_EMPTY_GROUP"}
            # A consumer has joined meanwhile, or the service did not take it.
            return Exit.REFUSED if joined else Exit.SERVICE
        case Applied.PARTLY | Applied.UNVERIFIED:
            return Exit.NOT_VERIFIED
