"""``migrate show``."""

from __future__ import annotations

import sys

import typer

from migrate.cli.terminal import emit_pieces
from migrate.cli.typer_parameters import WIDE, with_options
from migrate.moves import show as calls
from migrate.planning import Plan


@with_options
def show(
    file: str = typer.Argument(
        ...,
        metavar="FILE",
        help="A saved plan, a rollback file, or the checkpoint location of a Spark query.",
    ),
    wide: bool = WIDE,
) -> None:
    """Show a saved plan, a rollback file, or a Spark query's progress."""
    from migrate.inputs.spark_query import QueryLocation
    from migrate.report.show import location_text, plan_text, rollback_text

    content = calls.show(file)
    if isinstance(content, Plan):
        emit_pieces(plan_text(content, file, sys.stdout, wide=wide))
    elif isinstance(content, QueryLocation):
        emit_pieces(location_text(content, file, sys.stdout))
    else:
        emit_pieces(rollback_text(content, file, sys.stdout))
