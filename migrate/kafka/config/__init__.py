"""How to reach Kafka: librdkafka's properties and the Java client's, as librdkafka takes them.

A file and ``-X`` arguments (`properties`) hold either kind, or both. What is the Java client's own
is translated: `java`, with `jaas` for log-ins, `key_stores` for certificates, `aws_msk` for AWS.
What bears on nothing here is left out by name. Every other property is librdkafka's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from decoder.urls import redact_url
from migrate.kafka.config.aws_msk import AWS_MSK_IAM, token_callback
from migrate.kafka.config.java import Translation, translate
from migrate.kafka.config.key_stores import MAX_STORE_BYTES, check_file
from migrate.kafka.config.properties import (
    ConfigError,
    KafkaConfig,
    TokenCallback,
    read_arguments,
    read_file,
    redact_secrets,
    without_values,
)

__all__ = [
    "MAX_STORE_BYTES",
    "ConfigError",
    "KafkaConfig",
    "TokenCallback",
    "check_servers",
    "kafka_config",
    "names_brokers",
    "redact_secrets",
    "without_values",
]


# Both are librdkafka's names for the brokers' addresses.
_SERVERS = ("bootstrap.servers", "metadata.broker.list")


def kafka_config(
    bootstrap_servers: str | None,
    file: Path | None,
    properties: Iterable[str],
    aws_region: str | None = None,
) -> KafkaConfig:
    """librdkafka properties: the file's, over them ``key=value`` properties, over them the address.

    The file is read as Java reads a ``.properties`` file, in UTF-8: a backslash begins an escape.
    Each layer is translated by itself, so that a later one wins whichever names it uses: ``-X
    sasl.password=…`` over the password in the file's ``sasl.jaas.config``. ``aws_region`` is where
    an MSK cluster lies whose address does not tell.

    Raises:
        ConfigError: an unreadable file, a property that can't be translated, or no address at all.
            A property that nobody knows is found only when librdkafka takes them.
    """
    file_layer = translate(read_file(file)) if file is not None else Translation({})
    argument_layer = translate(read_arguments(properties))
    texts = {**file_layer.properties, **argument_layer.properties}
    if bootstrap_servers is not None:
        texts["bootstrap.servers"] = bootstrap_servers
    if not texts.get("bootstrap.servers"):
        raise ConfigError("no Kafka address: add --bootstrap-servers HOST:PORT")
    for name in _SERVERS:
        check_servers(name, texts.get(name, ""))
    for name, value in texts.items():
        if name.endswith(".location") and value:
            check_file(name, value)
    config: dict[str, str | TokenCallback] = {**texts}
    if texts.get("sasl.mechanisms") == AWS_MSK_IAM:
        login = argument_layer.aws_login or file_layer.aws_login
        config["sasl.mechanisms"] = "OAUTHBEARER"
        config["oauth_cb"] = token_callback(texts["bootstrap.servers"], login, aws_region)
    return config


def names_brokers(file: Path | None, properties: Iterable[str]) -> bool:
    """Whether these properties say which brokers are meant.

    Raises:
        ConfigError: as ``kafka_config`` does.
    """
    given = {**(read_file(file) if file is not None else {}), **read_arguments(properties)}
    return any(given.get(name) for name in _SERVERS)


def check_servers(name: str, servers: str) -> None:
    """Refuse addresses with credentials in them, which every message about the brokers would show.

    Raises:
        ConfigError: ``servers``, the value of ``name``, holds some.
    """
    if "@" in servers or redact_url(servers) != servers:
        raise ConfigError(
            f"{name}: credentials in an address are refused: name HOST:PORT alone; a user and a "
            "password are the properties sasl.username and sasl.password"
        )
    if web := re.search(r"https?://", servers):
        raise ConfigError(f"{name}: {servers}: brokers are named HOST:PORT, without {web[0]}")
