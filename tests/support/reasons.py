"""The reasons of errors, as data."""

from __future__ import annotations

from migrate.model.errors import MigrateError
from migrate.model.message import Message


def message_of(error: MigrateError) -> Message:
    """Return the only reason of an error, with its code and facts."""
    (message,) = error.reasons
    assert isinstance(message, Message)
    return message
