"""``migrate to-flink``."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from migrate.cli import next_step
from migrate.cli import typer_parameters as options
from migrate.cli.terminal import after_writing, emit
from migrate.cli.typer_parameters import SIDE, with_environment
from migrate.model.log import log
from migrate.moves import to_flink as calls
from migrate.moves.options import MoveArguments


@options.with_options
def to_flink(
    savepoint: Annotated[
        str,
        typer.Argument(
            metavar="SAVEPOINT",
            help="A savepoint or chk-N directory, or a job's checkpoint directory (its newest "
            "complete chk-N). It is only read.",
        ),
    ],
    *,
    from_side: Annotated[
        str, typer.Option("--from", metavar="SIDE", help=f"Whose positions: {SIDE}")
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="DIR", help="Where to write it: a new directory, here or in a store."
        ),
    ],
    allow_state_mismatch: Annotated[
        bool,
        typer.Option(
            "--allow-state-mismatch",
            help="Go on with the job's state although it is that of the savepoint's own positions: "
            "what lies between is counted twice, or missing from it.",
            rich_help_panel="What to do instead of refusing",
        ),
    ] = False,
    arguments: MoveArguments,
) -> None:
    """Write a new savepoint with other Kafka positions; all else stays as it is.

    Prints its path, for flink run -s. Files that belong to the savepoint are copied, so that each
    of the two can be deleted.

    Refuses (exit 4, nothing on stdout, nothing written) what would lose or repeat records, and
    positions that the job's state does not fit.
    """
    arguments = with_environment(arguments)
    written = calls.to_flink(
        savepoint,
        from_side=from_side,
        out=out,
        allow_state_mismatch=allow_state_mismatch,
        **arguments,
    )
    with after_writing(f"the savepoint {written.path} is written, and whole"):
        emit(written.path)
    check = next_step.command("diff", savepoint, written.path, kafka=arguments)
    restore = f"flink run -s {shlex.quote(written.path)} …"
    log.info(f"next: {restore}, with the job as it was; what changed: {check}")
