"""Exit codes of the commands, and the exit code of each kind of error."""

from __future__ import annotations

import errno
from enum import IntEnum

from migrate.model.errors import InputError, MigrateError, Refused, ServiceError, UsageError


class Exit(IntEnum):
    """The exit codes, on which scripts can rely."""

    DIFFERENT = 1  # the two sides differ (only with ``diff --exit-code``)
    USAGE = 2  # invalid arguments, missing package, terminal, or stdout, or Spark did not start
    UNREADABLE = 3  # the input is missing, unreadable, corrupt, or unsupported
    REFUSED = 4  # the request is unsafe or ambiguous, or you declined; nothing was written
    NOT_VERIFIED = 5  # a change is incomplete, wrong, unverified, or not reported on stdout
    SERVICE = 6  # a service failed or denied access, or writing a file or stdout failed
    BUG = 70  # a bug in ``migrate``; only this exit code prints a traceback
    INTERRUPTED = 130  # Ctrl-C


# The errors for a full, read-only, or broken disk, and for an exceeded quota or limit.
_OF_THE_SYSTEM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
_EXITS: tuple[tuple[type[MigrateError], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (InputError, Exit.UNREADABLE),
    (Refused, Exit.REFUSED),
    (ServiceError, Exit.SERVICE),
)


def exit_of(error: Exception) -> Exit:
    """Return the exit code for an error; ``BUG`` for an unexpected type of error.

    ``CutOverStopped`` and ``QueryFailed`` are not included, because the commands catch these errors
    and exit with ``NOT_VERIFIED``.
    """
    # Imported here, because a command without an error does not need the decoder.
    from decoder import DecodeError, ErrorKind

    if isinstance(error, UsageError) and _is_of_the_system(error.__cause__):
        from migrate.kafka.config import ConfigError

        # A ConfigError means that a Kafka properties file, which is an input, could not be read.
        # Any other error here is about a file that the command writes.
        return Exit.UNREADABLE if isinstance(error, ConfigError) else Exit.SERVICE
    match error:
        case DecodeError(kind=ErrorKind.EXTERNAL):
            return Exit.REFUSED
        case DecodeError(kind=ErrorKind.UNAVAILABLE):
            return Exit.SERVICE
        case DecodeError():
            return Exit.UNREADABLE
        case OSError():
            return Exit.SERVICE
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.BUG)


def _is_of_the_system(cause: BaseException | None) -> bool:
    """Return whether missing permissions or a system error prevented the use of a file."""
    return isinstance(cause, PermissionError) or (
        isinstance(cause, OSError) and cause.errno in _OF_THE_SYSTEM
    )


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C; Kafka's C client turns Ctrl-C into a SystemError."""
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )
