"""Takes values of a configuration out of texts that others wrote, before they are shown."""

from __future__ import annotations

import re

from decoder.urls import shown_in
from migrate.kafka_config.model import KafkaConfig

_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|account\.key|key\.pem|\.config$|kinit\.cmd"
)
# A part of a property's name, as `ssl` is, or of a number: only where it stands by itself.
_PLAIN_WORD = re.compile(r"[a-z]+|[0-9]+")
_HIDDEN = "…"


def without_secrets(text: str, config: KafkaConfig) -> str:
    """The text without passwords and the like, nor the credentials of a URL."""
    text = shown_in(text)
    for value in _values(config, secret=True):
        text = text.replace(value, _HIDDEN)
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
