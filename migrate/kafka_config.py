"""How to reach Kafka: librdkafka properties from a file, the command line, and an address."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class ConfigError(Exception):
    """A Kafka property that cannot be used as given."""


def kafka_config(
    bootstrap_servers: str | None, file: Path | None, properties: Iterable[str]
) -> dict[str, str]:
    """librdkafka properties: the file's, over them ``key=value`` properties, over them the address.

    Raises:
        ConfigError: a line or property without ``=``, an unreadable file, or no address at all.
    """
    config: dict[str, str] = {}
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.reason
            raise ConfigError(f"{file}: cannot be read: {reason}") from error
        for number, line in enumerate(map(str.strip, lines), start=1):
            if line and line[0] not in "#!":
                config.update([_property(line, f"{file} line {number}")])
    config.update(_property(text, "-X") for text in properties)
    if bootstrap_servers is not None:
        config["bootstrap.servers"] = bootstrap_servers
    if not config.get("bootstrap.servers"):
        raise ConfigError("no Kafka address: add --bootstrap-servers HOST:PORT")
    return config


def _property(text: str, where: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        # The text itself is not shown: it may be a secret that lost its key.
        raise ConfigError(f"{where}: not a key=value property")
    return key.strip(), value.strip()
