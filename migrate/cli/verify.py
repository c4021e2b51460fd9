"""``migrate verify``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import typer

from migrate.cli.exit_codes import Exit
from migrate.cli.kafka_environment import with_environment
from migrate.cli.terminal import emit, say
from migrate.cli.typer_parameters import ALLOW_NEWER_COMMITS, WIDE, option, with_options
from migrate.model.errors import QueryFailed
from migrate.model.log import log
from migrate.model.wording import printable
from migrate.moves import verify as calls
from migrate.moves.declare_options import declared_option
from migrate.moves.options import SideArguments, VerifyArguments

if TYPE_CHECKING:
    from migrate.planning.verify import Verification


@partial(
    with_options,
    help={
        "to_bootstrap_servers": "With plan:FILE, connect to the target's Kafka cluster if it is "
        "not the job's cluster. With -b, migrate compares the records of both clusters."
    },
)
def verify(
    moved: str = typer.Argument(
        ...,
        metavar="CHK",
        help="The checkpoint that was moved, or the applied plan as plan:FILE. If options changed "
        "positions or topics, pass the plan.",
    ),
    target: str = typer.Argument(
        ..., metavar="TARGET", help=f"The target that the move wrote: {calls.TARGETS}."
    ),
    *,
    arguments: SideArguments,
    allow_moved_on: bool = option(
        "Accept a target even if the group's offsets are above the positions, the query's log no "
        "longer shows its start offsets, or log start offsets are above the positions. Use this "
        "only if you know that no record was lost.",
        flags=ALLOW_NEWER_COMMITS,
    ),
    one_cluster: bool = option(
        "Assume that all sources for a topic read from the same Kafka cluster."
    ),
    wide: bool = WIDE,
    run: bool = declared_option(VerifyArguments, "run"),
    spark_conf: Mapping[str, str] | None = declared_option(VerifyArguments, "spark_conf"),
) -> None:
    """Check after a move that the target started at the checkpoint's positions.

    The exit code is 0 if every partition is ok, and 5 otherwise. A partition is ok if no records
    were lost or duplicated and, with -b, if the log contains the next offset to read.

    The exit code is also 5 if no partition was checked, if the query's log no longer contains its
    first batches, or if retention may have deleted records before the query's first batch. With
    plan:FILE, the exit code is 5 if the plan differs from its checkpoint. A checkpoint that can no
    longer be read is not compared. With --run, the exit code is 5 if the first batch fails.

    Verify a group before its consumers start, because their first commit overwrites the start
    offsets. A Flink job that is still running also overwrites the group's offsets. If an offset is
    higher than the position, the outcome of the partition is "lost" if a rollback file in this
    directory shows that migrate committed the offset, and "moved on" otherwise.
    """
    try:
        verification = calls.verify(
            moved,
            target,
            **with_environment(arguments),
            one_cluster=one_cluster,
            run=run,
            spark_conf=spark_conf,
        )
    except QueryFailed as error:
        say(f"not verified; Spark's first batch failed: {printable(str(error))}")
        raise typer.Exit(Exit.NOT_VERIFIED) from error
    report_verification(verification, allow_moved_on=allow_moved_on, wide=wide)


def report_verification(
    verification: Verification, *, allow_moved_on: bool, wide: bool, state: str | None = None
) -> None:
    """Show a verification, and exit with 5 if it has failed.

    Args:
        verification: the verification.
        allow_moved_on: True to accept newer commits and log start offsets above the positions.
        wide: as in ``verification_table``.
        state: the name of the compared keyed state, or None if no state was compared.
    """
    from migrate.report.verification import outcome_lines, summary_line, verification_table

    emit(verification_table(verification, sys.stdout, wide=wide), end="")
    if state is not None:
        emit(f"state {printable(state)}: {verification.state}\n", end="")
    for line in outcome_lines(verification, allow_moved_on=allow_moved_on):
        log.info(line)
    log.info(summary_line(verification, allow_moved_on=allow_moved_on))
    if not (verification.verified or (allow_moved_on and verification.verified_or_moved_on)):
        raise typer.Exit(Exit.NOT_VERIFIED)
