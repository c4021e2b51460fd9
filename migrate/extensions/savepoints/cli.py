"""``migrate to-flink``."""

from __future__ import annotations

import shlex

import typer

from migrate.cli import next_step
from migrate.cli.kafka_environment import with_move_environment
from migrate.cli.terminal import emit, output_after_writing
from migrate.cli.typer_parameters import SIDE, option, with_options
from migrate.extensions.savepoints import to_flink as to_flink_module
from migrate.model.log import log
from migrate.moves.options import ALLOWED, MoveArguments


@with_options
def to_flink(
    savepoint: str = typer.Argument(
        ...,
        metavar="SAVEPOINT",
        help="A savepoint or chk-N directory, or a job's checkpoint directory (its newest "
        "complete chk-N). migrate reads this directory but does not change it.",
    ),
    *,
    from_side: str = typer.Option(
        ..., "--from", metavar="SIDE", help=f"The positions to write: {SIDE}"
    ),
    out: str = typer.Option(
        ..., "--out", metavar="DIR", help="Write the savepoint to this new directory or URL."
    ),
    allow_state_mismatch: bool = option(
        "Write the savepoint even if its state belongs to different positions. The state then "
        "double-counts or lacks the records between the old and the new positions.",
        panel=ALLOWED,
    ),
    arguments: MoveArguments,
) -> None:
    """Write a new savepoint with different Kafka positions and the same state.

    stdout contains the path of the new savepoint, for flink run -s. migrate copies the files of
    SAVEPOINT and does not change them, so you can delete either savepoint.

    migrate refuses positions that would lose or duplicate records, and positions that do not match
    the job's state. After a refusal (exit 4), nothing is written.
    """
    arguments = with_move_environment(arguments)
    written = to_flink_module.to_flink(
        savepoint,
        from_side=from_side,
        out=out,
        allow_state_mismatch=allow_state_mismatch,
        **arguments,
    )
    with output_after_writing(f"the savepoint {written.path} is complete"):
        emit(written.path)
    check = next_step.check_of_savepoint(savepoint, from_side, written.path, arguments)
    restore = f"flink run -s {shlex.quote(written.path)} …"
    log.info(f"next, restore the unchanged job: {restore}; {check}")
