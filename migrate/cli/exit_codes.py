"""Exit codes: how a command ends, by what went wrong."""

from __future__ import annotations

from enum import IntEnum

from migrate.model.errors import InputError, MigrateError, Refused, ServiceError, UsageError


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


_EXITS: tuple[tuple[type[MigrateError], Exit], ...] = (
    (UsageError, Exit.USAGE),
    (InputError, Exit.UNREADABLE),
    (Refused, Exit.REFUSED),
    (ServiceError, Exit.SERVICE),
)


def exit_of(error: Exception) -> Exit:
    """Return the exit code of an error; ``BUG`` for one that nothing here knows."""
    # Imported here: a command line that went well, or never got to a checkpoint, has no need of it.
    from decoder import DecodeError, ErrorKind

    if isinstance(error, UsageError) and isinstance(error.__cause__, PermissionError):
        from migrate.kafka.config import ConfigError

        # A file that is read is an input, also Kafka's properties; the others are written.
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


def is_interrupt(error: BaseException) -> bool:
    """Return whether an error is Ctrl-C, which Kafka's client, in C, makes a SystemError."""
    return isinstance(error, KeyboardInterrupt) or (
        isinstance(error, SystemError) and isinstance(error.__cause__, KeyboardInterrupt)
    )
