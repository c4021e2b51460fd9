"""What every room's errors have in common: what whoever asked can do about them.

The command line knows these alone, and ends with an exit code for each; ``decoder.DecodeError``
stands beside them, as the decoder knows nothing of this package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from migrate.model.wording import hint


class MigrateError(Exception):
    """It could not be done; ``str`` tells why, in one line."""


class UsageError(MigrateError):
    """Asked for in a way that cannot work: arguments that do not go together, names that nothing
    answers to, a package that is not installed."""


class NoSuchName(UsageError):
    """A name that nothing answers to.

    Args:
        problem: what is wrong.
        name: the name; which one was meant, most likely, is told after the problem.
        known: the names that there are; of a mapping, each is told as its value.
        others: what is told at the end, as "there are: 'a', 'b'".
    """

    def __init__(
        self, problem: str, name: str = "", known: Iterable[str] = (), others: str = ""
    ) -> None:
        super().__init__(problem + hint(name, known) + (f"; {others}" if others else ""))


class InputError(MigrateError):
    """A file that was to be read is missing, damaged, or not of its kind."""


class Refused(MigrateError):
    """What was asked for would lose or repeat records, overwrite something, or could be read in
    two ways: nothing was written.

    Attributes:
        reasons: why, a line each.

    Args:
        reasons: the only reason, or several.
    """

    def __init__(self, reasons: str | Sequence[str]) -> None:
        self.reasons: Sequence[str] = (reasons,) if isinstance(reasons, str) else reasons
        super().__init__("; ".join(self.reasons))


class ServiceError(MigrateError):
    """A service did not answer, or denied access."""
