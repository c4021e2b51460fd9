"""Exit codes, and the few ways a command ends early. The only place of exit codes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes; they are part of the command contract."""

    DIFFERENT = 1  # only ``diff --exit-code``
    USAGE = 2  # wrong arguments, no such source, no terminal to ask on
    UNREADABLE = 3  # the input is missing, corrupt or unsupported
    REFUSED = 4  # unsafe or ambiguous as asked, or the user said no; nothing was written
    NOT_VERIFIED = 5  # applied in part, or not as it should be
    SERVICE = 6  # a service did not answer, or denied access
    BUG = 70  # ours; the only one with a traceback
    INTERRUPTED = 130  # Ctrl-C


class Refused(Exception):
    """What was asked for would lose or repeat records, or overwrite something."""

    def __init__(self, reasons: Sequence[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class UsageError(Exception):
    """Arguments that do not go together."""


def is_interrupt(error: BaseException) -> bool:
    """Whether it is Ctrl-C: while Kafka's client is at work in C, it comes as a SystemError."""
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )
