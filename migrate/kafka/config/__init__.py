"""Kafka client properties: librdkafka's, and the Java client's translated to librdkafka's.

`properties` reads a file and ``-X`` arguments; each can contain properties of both clients.
`java_client` translates the Java client's properties and drops irrelevant ones, with `parse_jaas`
for log-ins, `key_stores` for certificates and `aws_msk` for AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from decoder.urls import redact_url
from migrate.kafka.config.aws_msk import AWS_MSK_IAM, token_callback
from migrate.kafka.config.java_client import Translation, translate
from migrate.kafka.config.key_stores import MAX_STORE_BYTES, check_file
from migrate.kafka.config.properties import (
    ConfigError,
    KafkaConfig,
    TokenCallback,
    read_arguments,
    read_file,
    redact_secrets,
    redact_values,
)
from migrate.model.wording import hint

__all__ = [
    "MAX_STORE_BYTES",
    "ConfigError",
    "KafkaConfig",
    "TokenCallback",
    "check_servers",
    "kafka_config",
    "names_brokers",
    "redact_secrets",
    "redact_values",
]


# A broker's address as librdkafka parses it (rd_kafka_broker_name_parse). The protocol is optional,
# and has no effect if it equals security.protocol. The port is optional; the default is 9092.
_ADDRESS = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(?:\[[^\]\s]+\]|[^\s:;/\[\]]+)(?::([0-9]{1,5}))?",
    re.IGNORECASE,
)
_LARGEST_PORT = 65_535
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", AWS_MSK_IAM)
# librdkafka has two names for the brokers' addresses.
_SERVERS = ("bootstrap.servers", "metadata.broker.list")


def kafka_config(
    bootstrap_servers: str | None,
    file: Path | None,
    properties: Iterable[str],
    aws_region: str | None = None,
) -> KafkaConfig:
    """Return librdkafka properties from a file, ``key=value`` arguments and the brokers' addresses.

    The file is in Java's ``.properties`` syntax and UTF-8. Arguments override the file, and
    ``bootstrap_servers`` overrides both. File and arguments are translated before they are merged,
    so ``-X sasl.password=…`` overrides the password in the file's ``sasl.jaas.config``.
    ``aws_region`` is for an MSK cluster whose address does not contain the region.

    Raises:
        ConfigError: the file cannot be read, a property cannot be translated, a value cannot be
            used, or there is no address. Unknown properties are refused later, by librdkafka.
    """
    file_layer = translate(read_file(file)) if file is not None else Translation({})
    argument_layer = translate(read_arguments(properties))
    texts = {**file_layer.properties, **argument_layer.properties}
    if bootstrap_servers is not None:
        texts["bootstrap.servers"] = bootstrap_servers
    if not texts.get("bootstrap.servers"):
        if file is not None and bootstrap_servers is None:
            raise ConfigError(f"{file} names no brokers: add bootstrap.servers=HOST:PORT to it")
        raise ConfigError("no Kafka address: add --bootstrap-servers HOST:PORT")
    for name in _SERVERS:
        check_servers(name, texts.get(name, ""))
    for name, value in texts.items():
        if name.endswith(".location") and value:
            check_file(name, value)
    _check_mechanism(texts)
    config: dict[str, str | TokenCallback] = {**texts}
    if texts.get("sasl.mechanisms") == AWS_MSK_IAM:
        login = argument_layer.aws_login or file_layer.aws_login
        config["sasl.mechanisms"] = "OAUTHBEARER"
        config["oauth_cb"] = token_callback(texts["bootstrap.servers"], login, aws_region)
    return config


def _check_mechanism(properties: Mapping[str, str]) -> None:
    """Refuse an unknown protocol or mechanism, and a SASL connection that lacks a property.

    Kafka's default mechanism is Kerberos (GSSAPI), which the wheels of confluent-kafka lack. So it
    is accepted, but not proposed.

    Raises:
        ConfigError: a property is refused.
    """
    protocol = properties.get("security.protocol", "")
    if protocol and protocol.upper() not in _PROTOCOLS:
        raise ConfigError(f"security.protocol: one of {', '.join(_PROTOCOLS)}")
    if protocol.upper().startswith("SASL_") and "sasl.mechanisms" not in properties:
        raise ConfigError(
            f"security.protocol is {protocol}, and sasl.mechanism is missing: add it, as one of "
            f"{', '.join(_MECHANISMS)}"
        )
    mechanism = properties.get("sasl.mechanisms", "")
    if mechanism and mechanism.upper() not in (*_MECHANISMS, "GSSAPI"):
        raise ConfigError(
            f"sasl.mechanism: no such mechanism{hint(mechanism.upper(), _MECHANISMS)}; one of "
            f"{', '.join(_MECHANISMS)}"
        )
    has_token = properties.get("sasl.oauthbearer.method", "").lower() == "oidc"
    has_token |= "enable.sasl.oauthbearer.unsecure.jwt" in properties
    if mechanism.upper() == "OAUTHBEARER" and not has_token:
        raise ConfigError(
            "sasl.mechanism is OAUTHBEARER, and nothing says where the token comes from: set "
            "sasl.oauthbearer.method=oidc, and sasl.oauthbearer.client.id, .client.secret and "
            ".token.endpoint.url"
        )


def names_brokers(file: Path | None, properties: Iterable[str]) -> bool:
    """Return whether these properties contain the brokers' addresses.

    Raises:
        ConfigError: the file cannot be read, or a text is not a property.
    """
    layers = {**(read_file(file) if file is not None else {}), **read_arguments(properties)}
    return any(layers.get(name) for name in _SERVERS)


def check_servers(name: str, servers: str) -> None:
    """Refuse addresses that contain credentials, or do not match ``_ADDRESS`` (``http://…``).

    Messages about brokers show their addresses, and so would show the credentials.

    Raises:
        ConfigError: an address is refused.
    """
    if "@" in servers or redact_url(servers) != servers:
        raise ConfigError(
            f"{name}: credentials in an address are refused: name HOST:PORT alone; a user and a "
            "password are the properties sasl.username and sasl.password"
        )
    for server in servers.split(","):
        address = _ADDRESS.fullmatch(server.strip())
        if server.strip() and (address is None or int(address[1] or 0) > _LARGEST_PORT):
            scheme = re.match(r"[a-z]+://", server.strip())
            without = f", without {scheme[0]}" if scheme else ", separated by commas"
            raise ConfigError(f"{name}: {server.strip()}: brokers are named HOST:PORT{without}")
