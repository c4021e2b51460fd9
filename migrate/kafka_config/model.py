"""Properties for a confluent-kafka client, their error, and texts without their secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from decoder.urls import shown_in
from migrate.errors import UsageError

# Takes `sasl.oauthbearer.config`; gives a token and when it expires, in seconds since the epoch.
TokenCallback = Callable[[str], tuple[str, float]]

# By librdkafka's names. All are text, but for `oauth_cb`, which AWS_MSK_IAM needs.
KafkaConfig = Mapping[str, str | TokenCallback]


class ConfigError(UsageError):
    """A Kafka property that cannot be used as given. Its text names properties, not their values.

    Except for the path of a store that exists, where the text holds a command to convert it.
    """


_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|account\.key|key\.pem|\.config$|kinit\.cmd"
)
# A part of a property's name, as `ssl` is, or of a number: only where it stands by itself.
_PLAIN_WORD = re.compile(r"[a-z]+|[0-9]+")
_HIDDEN = "…"
_SHORT = 4


def without_secrets(text: str, config: KafkaConfig) -> str:
    """The text without passwords and the like, nor the credentials of a URL."""
    text = shown_in(text)
    for value in _values(config, secret=True):
        # One of a letter or two would take pieces of words with it.
        short = rf"(?<!\w){re.escape(value)}(?!\w)"
        text = re.sub(short if len(value) < _SHORT else re.escape(value), _HIDDEN, text)
    return text


def without_values(text: str, config: KafkaConfig) -> str:
    """The text without any value: for what is said of a property that may hold a misplaced one."""
    text = without_secrets(text, config)
    for value in _values(config, secret=False):
        pattern = re.escape(value)
        if _PLAIN_WORD.fullmatch(value):
            pattern = rf"(?<![\w.-]){pattern}(?![\w.-])"
        text = re.sub(pattern, _HIDDEN, text)
    return text


def _values(config: KafkaConfig, *, secret: bool) -> list[str]:
    """Longest first, so that none is left in part because it begins like another."""
    values = {
        value
        for name, value in config.items()
        if isinstance(value, str) and value and bool(_SECRET_NAME.search(name)) is secret
    }
    return sorted(values, key=len, reverse=True)
