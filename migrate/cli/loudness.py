"""``-v`` and ``-q``: how much is told on stderr; they stand before or after a command's name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from migrate.cli import streams
from migrate.errors import UsageError


def _quieter(value: bool) -> None:
    if value:
        _tell(streams.QUIET)


def _louder(value: bool) -> None:
    if value:
        _tell(streams.VERBOSE)


def _tell(level: int) -> None:
    if streams.loudness not in (level, streams.NORMAL):
        raise UsageError("--quiet and --verbose: one of them")
    streams.loudness = level


Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Tell also what is read, who is asked what, and how long it takes.",
        callback=_louder,
        expose_value=False,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Tell nothing on stderr but warnings, refusals, errors and questions.",
        callback=_quieter,
        expose_value=False,
    ),
]


def parameters() -> list[Any]:
    """Both, as a command of Typer's has its parameters."""
    alone = typer.Typer(add_completion=False)

    @alone.command()
    def _(verbose: Verbose = False, quiet: Quiet = False) -> None: ...

    return list(typer.main.get_command(alone).params)
