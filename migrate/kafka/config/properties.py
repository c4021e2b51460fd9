"""Read properties from files and arguments, and remove their secrets from messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from decoder.storage import read_file as read_file_bytes
from decoder.urls import redact_urls
from migrate.model.errors import UsageError
from migrate.model.option_names import option

# A function that turns the value of `sasl.oauthbearer.config` into a token and its expiry, in
# seconds since the epoch.
TokenCallback = Callable[[str], tuple[str, float]]

# Properties by their librdkafka names. All values are strings, except the `oauth_cb` callback.
KafkaConfig = Mapping[str, str | TokenCallback]

_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|token|account\.key|key\.pem|\.config$|kinit\.cmd"
)
# A value in this format, such as `ssl`, may also be part of a name or number. It is replaced only
# where it is a whole word.
_PLAIN_WORD = re.compile(r"[a-z]+|[0-9]+")
_HIDDEN = "…"
# Secrets with fewer characters than this may be part of many words, so they are hidden only where
# they are whole words.
_SHORT = 4
# The maximum size of a properties file in bytes. A file with a certificate chain is about 10 KB.
MAX_BYTES = 1024 * 1024
# The format of all property names in librdkafka and the Java client. Text in any other format may
# be part of a password or private key on the wrong line, so it must not be shown.
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
# A Kafka Connect or Streams file contains names with capital letters (`transforms.addKey.type`). No
# client reads such properties, so only their first word is ever shown.
_OTHER_NAME = re.compile(r"([a-z][a-z0-9]*\.)[A-Za-z0-9]+(?:[._-][A-Za-z0-9]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r"[=:\s]")


class ConfigError(UsageError):
    """A Kafka property that cannot be used.

    The message contains the names of properties, but no secrets.
    """


def redact_secrets(text: str, config: KafkaConfig) -> str:
    """Hide passwords, other secrets, and URL credentials in a string."""
    text = redact_urls(text)
    for value in _values(config, secret=True):
        short = rf"(?<!\w){re.escape(value)}(?!\w)"
        text = re.sub(short if len(value) < _SHORT else re.escape(value), _HIDDEN, text)
    return text


def redact_values(text: str, config: KafkaConfig) -> str:
    """Hide all property values in a message, because a secret may be in the wrong property."""
    text = redact_secrets(text, config)
    for value in _values(config, secret=False):
        pattern = re.escape(value)
        if _PLAIN_WORD.fullmatch(value):
            pattern = rf"(?<![\w.-]){pattern}(?![\w.-])"
        text = re.sub(pattern, _HIDDEN, text)
    return text


def _values(config: KafkaConfig, *, secret: bool) -> list[str]:
    """Return the secret values, or all other values, sorted from longest to shortest.

    The order matters, because a long value may contain a short one.
    """
    values = {
        value
        for name, value in config.items()
        if isinstance(value, str) and value and bool(_SECRET_NAME.search(name)) is secret
    }
    return sorted(values, key=len, reverse=True)


def read_file(file: Path) -> dict[str, str]:
    """Read a file in Java's ``.properties`` syntax; if a name is repeated, the last value wins.

    A name with capital letters after its first dot is truncated after that dot. No client has a
    property with the truncated name, so the property counts as unknown.

    Raises:
        ConfigError: the file cannot be read, or a line is not a property.
    """
    # Imported here because the import takes 50 ms.
    import javaproperties

    try:
        text = read_file_bytes(file, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(
            f"{file}: cannot be read: {reason}; pass a file with key=value lines"
        ) from error
    properties: dict[str, str] = {}
    number = 1
    try:
        for entry in javaproperties.parse(text):
            if isinstance(entry, javaproperties.KeyValue):
                where = f"{file} line {number}"
                # Java accepts a name without a separator; here it is an error.
                if not entry.value and not _SEPARATOR.search(entry.source.strip()):
                    raise _property_error(where)
                other = _OTHER_NAME.fullmatch(entry.key)
                if other and not _NAME.fullmatch(entry.key):
                    name = f"{other[1]}…"
                else:
                    name = _check_name(entry.key, where)
                properties[name] = entry.value.strip()
            number += len(_LINE_END.findall(entry.source))
    except javaproperties.InvalidUEscapeError as error:
        # The text of the javaproperties error is not used, because it shows part of the value.
        raise ConfigError(f"{file} line {number}: \\u without four hex digits") from error
    return properties


def read_arguments(arguments: Iterable[str]) -> dict[str, str]:
    """Parse ``key=value`` arguments; a backslash has no special meaning, unlike in a file.

    Raises:
        ConfigError: an argument does not have the ``key=value`` format.
    """
    properties: dict[str, str] = {}
    for argument in arguments:
        key, separator, value = argument.partition("=")
        if not separator:
            raise _property_error(option("kafka_properties"))
        properties[_check_name(key.strip(), option("kafka_properties"))] = value.strip()
    return properties


def _check_name(text: str, where: str) -> str:
    if not _NAME.fullmatch(text):
        raise _property_error(where)
    return text


def _property_error(where: str) -> ConfigError:
    return ConfigError(f"{where}: expected a property as key=value")
