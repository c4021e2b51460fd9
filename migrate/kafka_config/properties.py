"""Reads properties: a file as Java's Properties reads it, and arguments of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from decoder.storage import read_file as read_file_bytes
from migrate.kafka_config.model import ConfigError

# Properties with a chain of certificates in them are some 10 KB.
MAX_BYTES = 1024 * 1024
# Every name of librdkafka's and of the Java client's has this form. What hasn't is a value on the
# wrong line, perhaps half a password or a line of a private key: it must not be shown.
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[._-][a-z0-9]+)*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SEPARATOR = re.compile(r"[=:\s]")


def read_file(file: Path) -> dict[str, str]:
    """The properties of a file in Java's ``.properties`` syntax; the last of equal names holds.

    Raises:
        ConfigError: it cannot be read, or a line is no property.
    """
    # Takes 50 ms to import, which is only to be paid where there is a file.
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
                # A name alone would be a property for Java; here it is a slip.
                if not entry.value and not _SEPARATOR.search(entry.source.strip()):
                    raise _no_property(where)
                properties[_name(entry.key, where)] = entry.value.strip()
            number += len(_LINE_END.findall(entry.source))
    except javaproperties.InvalidUEscapeError as error:
        # Its own text would show a piece of the value.
        raise ConfigError(f"{file} line {number}: \\u without four hex digits") from error
    return properties


def read_arguments(arguments: Iterable[str]) -> dict[str, str]:
    """``key=value`` arguments, taken as they are: the shell has its own escapes.

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
