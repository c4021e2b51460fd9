"""Asking before something is changed: once, on a terminal."""

from __future__ import annotations

import sys

from migrate.cli.streams import say
from migrate.errors import Refused, UsageError


def check_can_ask(yes: bool) -> None:
    """Before any work is done: can the user be asked?

    Raises:
        UsageError: there is no terminal to ask on, and no --yes.
    """
    if not yes and not (sys.stdin is not None and sys.stdin.isatty()):
        raise UsageError("--execute asks on a terminal, and there is none: add --yes")


def ask(question: str, yes: bool) -> None:
    """Ask once.

    Raises:
        Refused: the answer was not yes.
    """
    if yes:
        return
    say(f"{question} [y/N]")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused(["you said no"])
