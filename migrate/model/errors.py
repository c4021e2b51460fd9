"""Errors, grouped by the action that the caller can take.

The command line has an exit code for each group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from migrate.model.message import Message
from migrate.model.wording import hint


class MigrateError(Exception):
    """The base class of the errors in ``migrate``; ``str(error)`` is the reason, in one line.

    Attributes:
        reasons: the reasons, one line each; a ``Message`` has a code and facts.
    """

    reasons: Sequence[str]

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reasons = (reason,)

    @property
    def codes(self) -> list[str]:
        """The codes of the reasons that have a code."""
        return [reason.code for reason in self.reasons if isinstance(reason, Message)]

    @property
    def facts(self) -> list[Mapping[str, Any]]:
        """The facts of each reason that has a code, in the order of ``codes``."""
        return [reason.facts for reason in self.reasons if isinstance(reason, Message)]


class UsageError(MigrateError):
    """Wrong arguments, an unknown name, or a package that is not installed."""


class NoSuchName(UsageError):
    """An unknown name.

    Args:
        problem: the problem, in words.
        name: the unknown name; the message suggests the known names closest to it.
        known: the known names; for a mapping, the message shows the values instead of the keys.
        others: the end of the message, for example "there are: 'a', 'b'".
    """

    def __init__(
        self, problem: str, name: str = "", known: Iterable[str] = (), others: str = ""
    ) -> None:
        super().__init__(problem + hint(name, known) + (f"; {others}" if others else ""))


class InputError(MigrateError):
    """A missing or damaged input, or an input of the wrong kind or an unknown version."""


class Refused(MigrateError):
    """A move that is ambiguous, or that would lose, duplicate, or overwrite something.

    Nothing was written except the files in ``written``.

    Attributes:
        written: the files that record the refusal; empty if there are none.

    Args:
        reasons: one or more reasons.
    """

    written: str = ""

    def __init__(self, reasons: str | Sequence[str]) -> None:
        Exception.__init__(self, reasons)
        self.reasons = (reasons,) if isinstance(reasons, str) else reasons

    def __str__(self) -> str:
        return "; ".join(self.reasons)


class CutOverStopped(MigrateError):
    """A cut-over cannot continue. Completed steps are not undone.

    Attributes:
        reasons: the reasons and the remedies; one line each.
        details: lines for the terminal only, because they may contain secrets.
    """

    def __init__(self, *reasons: str, details: tuple[str, ...] = ()) -> None:
        Exception.__init__(self, *reasons)
        self.reasons, self.details = reasons, details

    def __str__(self) -> str:
        return "; ".join(self.reasons)


class ServiceError(MigrateError):
    """A service did not answer or denied access, or Spark or the worker processes failed."""


class QueryFailed(MigrateError):
    """A query's first batch failed or timed out; the user's query would probably also fail."""


def add_notes(error: BaseException, *notes: str) -> None:
    """Add lines to show after an error, as ``add_note`` in Python 3.11 does."""
    vars(error).setdefault("__notes__", []).extend(notes)


def take_notes(error: BaseException) -> list[str]:
    """Remove and return the lines from ``add_notes``, which Python 3.11 shows in tracebacks."""
    notes: list[str] = vars(error).pop("__notes__", [])
    return notes
