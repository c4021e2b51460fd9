"""The one error of this room."""

from __future__ import annotations

from migrate.errors import UsageError


class ConfigError(UsageError):
    """A Kafka property that cannot be used as given. Its text names properties, not their values.

    Except for the path of a store that exists, where the text holds a command to convert it.
    """
