"""What every room's errors have in common: what whoever asked can do about them.

The command line knows these alone, and ends with an exit code for each; ``decoder.DecodeError``
stands beside them, as the decoder knows nothing of this package.
"""

from __future__ import annotations

from collections.abc import Sequence


class MigrateError(Exception):
    """It could not be done; ``str`` tells why, in one line."""


class UsageError(MigrateError):
    """Asked for in a way that cannot work: arguments that do not go together, names that nothing
    answers to, a package that is not installed."""


class InputError(MigrateError):
    """A file that was to be read is missing, damaged, or not of its kind."""


class Refused(MigrateError):
    """What was asked for would lose or repeat records, overwrite something, or could be read in
    two ways: nothing was written.

    Attributes:
        reasons: why, a line each.
    """

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class ServiceError(MigrateError):
    """A service did not answer, or denied access."""
