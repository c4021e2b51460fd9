"""Properties in files and arguments, and texts without their secrets.

A file is read as Java's ``Properties`` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from decoder.storage import read_file as read_file_bytes
from decoder.urls import redact_urls
from migrate.model.errors import UsageError

# From `sasl.oauthbearer.config` to a token and its expiry, in seconds since the epoch.
TokenCallback = Callable[[str], tuple[str, float]]

# By librdkafka's names. All are text, but for `oauth_cb`, which AWS_MSK_IAM needs.
KafkaConfig = Mapping[str, str | TokenCallback]

_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|account\.key|key\.pem|\.config$|kinit\.cmd"
)
# A value that may be a part of a property's name, such as `ssl`, or of a number: it is replaced
# only where it is a whole word.
_PLAIN_WORD = re.compile(r"[a-z]+|[0-9]+")
_HIDDEN = "…"
_SHORT = 4
# Properties with a chain of certificates in them are some 10 KB.
MAX_BYTES = 1024 * 1024
# All names of librdkafka and of the Java client have this form. Anything else is a value on the
# wrong line, perhaps half a password or a line of a private key: it must not be shown.
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r"[=:\s]")


class ConfigError(UsageError):
    """A Kafka property that cannot be used; the text holds names of properties, but no values.

    Except for the path of an existing store, in a command to convert it.
    """


def redact_secrets(text: str, config: KafkaConfig) -> str:
    """Hide passwords and other secrets, and the credentials of URLs, in a text."""
    text = redact_urls(text)
    for value in _values(config, secret=True):
        # A short one is a part of many words.
        short = rf"(?<!\w){re.escape(value)}(?!\w)"
        text = re.sub(short if len(value) < _SHORT else re.escape(value), _HIDDEN, text)
    return text


def without_values(text: str, config: KafkaConfig) -> str:
    """Hide all values in a text about a property that may hold a misplaced one."""
    text = redact_secrets(text, config)
    for value in _values(config, secret=False):
        pattern = re.escape(value)
        if _PLAIN_WORD.fullmatch(value):
            pattern = rf"(?<![\w.-]){pattern}(?![\w.-])"
        text = re.sub(pattern, _HIDDEN, text)
    return text


def _values(config: KafkaConfig, *, secret: bool) -> list[str]:
    """Return the values, longest first, because one may be the beginning of another."""
    values = {
        value
        for name, value in config.items()
        if isinstance(value, str) and value and bool(_SECRET_NAME.search(name)) is secret
    }
    return sorted(values, key=len, reverse=True)


def read_file(file: Path) -> dict[str, str]:
    """Read the properties of a file in Java's ``.properties`` syntax; the last of equal names wins.

    Raises:
        ConfigError: the file cannot be read, or a line is no property.
    """
    # Its import takes 50 ms.
    import javaproperties

    try:
        text = read_file_bytes(file, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ConfigError(f"{file}: cannot be read: {reason}") from error
    properties: dict[str, str] = {}
    number = 1
    try:
        for entry in javaproperties.parse(text):
            if isinstance(entry, javaproperties.KeyValue):
                where = f"{file} line {number}"
                # A name alone is a property for Java; here it is an error.
                if not entry.value and not _SEPARATOR.search(entry.source.strip()):
                    raise _no_property(where)
                properties[_name(entry.key, where)] = entry.value.strip()
            number += len(_LINE_END.findall(entry.source))
    except javaproperties.InvalidUEscapeError as error:
        # Its own text shows a piece of the value.
        raise ConfigError(f"{file} line {number}: \\u without four hex digits") from error
    return properties


def read_arguments(arguments: Iterable[str]) -> dict[str, str]:
    """Parse ``key=value`` arguments without escapes: the shell has its own.

    Raises:
        ConfigError: one is no ``key=value``.
    """
    properties: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator:
            raise _no_property("-X")
        properties[_name(key.strip(), "-X")] = value.strip()
    return properties


def _name(text: str, where: str) -> str:
    if not _NAME.fullmatch(text):
        raise _no_property(where)
    return text


def _no_property(where: str) -> ConfigError:
    return ConfigError(f"{where}: not a key=value property")
