"""Kafka client properties for librdkafka, including translated Java client properties.

`properties` reads a file and ``-X`` arguments. Both can contain librdkafka properties and Java
client properties. `java_client` translates Java client properties and drops irrelevant ones. It
uses `parse_jaas` for credentials, `key_stores` for certificates, and `aws_msk` for AWS.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from decoder.urls import redact_url
from migrate.kafka.config.aws_msk import AWS_MSK_IAM, token_callback
from migrate.kafka.config.java_client import (
    REFUSED,
    Translation,
    translate,
    with_java_names,
)
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
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.wording import did_you_mean, hint, similar_names

__all__ = [
    "MAX_STORE_BYTES",
    "SECURITY_SETTINGS",
    "ConfigError",
    "KafkaConfig",
    "TokenCallback",
    "check_servers",
    "kafka_config",
    "names_brokers",
    "redact_secrets",
    "redact_values",
]


# A broker address in the format that librdkafka parses (rd_kafka_broker_name_parse). The protocol
# is optional and has no effect if it equals security.protocol. The port is optional; the default is
# 9092.
_ADDRESS = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(?:\[[^\]\s]+\]|[^\s:;/\[\]]+)(?::([0-9]{1,5}))?",
    re.IGNORECASE,
)
_LARGEST_PORT = 65_535
# An address with something other than a port after the colon.
_WITH_BAD_PORT = re.compile(
    r"(?:(?:PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)://)?(?:\[[^\]\s]+\]|[^\s:;/\[\]]+):([^\s:;/\[\]]+)",
    re.IGNORECASE,
)
# A port without a host. librdkafka would read the digits as a host name.
_ONLY_PORT = re.compile(r":?([0-9]{1,5})")
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", AWS_MSK_IAM)
# The properties that protect a connection. If a property is unknown, `migrate` suggests similar
# names from this list.
SECURITY_SETTINGS = (
    "bootstrap.servers",
    "sasl.jaas.config",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.password",
    "sasl.username",
    "security.protocol",
    "ssl.ca.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.truststore.location",
    "ssl.truststore.password",
)
# The minimum difflib similarity to a known name at which an unknown name counts as mistyped. The
# properties of other programs, such as schema.registry.ssl.keystore.location (an added prefix) and
# sasl.password.encoder (an added word), are less similar.
_MISTYPED = 0.87
_NO_PROPERTY = "no.such.property"
# librdkafka has two names for the broker addresses.
_SERVERS = ("bootstrap.servers", "metadata.broker.list")


def kafka_config(
    bootstrap_servers: str | None,
    file: Path | None,
    properties: Iterable[str],
    aws_region: str | None = None,
) -> KafkaConfig:
    """Return librdkafka properties from a file, ``key=value`` arguments, and broker addresses.

    The file uses Java's ``.properties`` syntax and UTF-8. As in a Java client, unknown properties
    in the file are ignored; ``migrate -v`` lists them. Arguments override the file, and
    ``bootstrap_servers`` overrides both. The file and the arguments are translated before they are
    merged, so ``-X sasl.password=…`` overrides the password in the file's ``sasl.jaas.config``.
    ``aws_region`` is for an MSK cluster whose address does not contain the region.

    Raises:
        ConfigError: the file cannot be read, a property cannot be translated, a value cannot be
            used, a name in the file seems to be mistyped, or there is no address. Unknown
            properties among the arguments are refused later, by librdkafka.
    """
    file_layer = _read_layer(file) if file is not None else Translation({})
    argument_layer = translate(read_arguments(properties))
    texts = {**file_layer.properties, **argument_layer.properties}
    if bootstrap_servers is not None:
        texts["bootstrap.servers"] = bootstrap_servers
    if not texts.get("bootstrap.servers"):
        if file is not None and bootstrap_servers is None:
            raise ConfigError(
                f"{file} does not set bootstrap.servers; add bootstrap.servers=HOST:PORT"
            )
        raise ConfigError(
            f"the Kafka address is missing; add {option('bootstrap_servers', 'HOST:PORT')}"
        )
    of_file = {name for name, value in file_layer.properties.items() if texts[name] is value}
    for name in _SERVERS:
        with _naming_file(file if name in of_file else None):
            check_servers(name, texts.get(name, ""))
    for name, value in texts.items():
        if name.endswith(".location") and value:
            with _naming_file(file if name in of_file else None):
                check_file(name, value)
    with _naming_file(file if of_file & {"security.protocol", "sasl.mechanisms"} else None):
        _check_mechanism(texts)
    for name in sorted(of_file):
        if refusal := _refusal(name, texts[name]):
            reason = with_java_names(redact_values(refusal, {name: texts[name]}))
            raise ConfigError(f"{file}: invalid Kafka configuration: {reason}")
    config: dict[str, str | TokenCallback] = {**texts}
    if texts.get("sasl.mechanisms") == AWS_MSK_IAM:
        login = argument_layer.aws_login or file_layer.aws_login
        config["sasl.mechanisms"] = "OAUTHBEARER"
        config["oauth_cb"] = token_callback(texts["bootstrap.servers"], login, aws_region)
    return config


@contextmanager
def _naming_file(file: Path | None) -> Iterator[None]:
    """If the properties are from a file, start a ``ConfigError`` message with its path."""
    try:
        yield
    except ConfigError as error:
        if file is None:
            raise
        raise ConfigError(f"{file}: {error}") from error


def _read_layer(file: Path) -> Translation:
    """Return a file's properties for librdkafka; log the names of its unknown properties.

    Raises:
        ConfigError: as in ``kafka_config``.
    """
    properties = read_file(file)
    with _naming_file(file):
        layer = translate(properties)
    unknown = [name for name in layer.properties if _refusal(name, "") is None]
    for name in unknown:
        if name in REFUSED:
            raise ConfigError(
                f"{file}: librdkafka has no equivalent of {name}; {REFUSED[name]}; set "
                "librdkafka's own properties (docs/how-to/secured-kafka.md)"
            )
        # Ignoring a mistyped security.protocol would send the credentials without TLS.
        if similar := similar_names(name, SECURITY_SETTINGS, _MISTYPED):
            raise ConfigError(
                f"{file}: no Kafka client has the property {name}{did_you_mean(similar)}"
            )
    if ignored := sorted({*layer.ignored, *unknown}):
        log.debug(f"{file}: ignored properties without effect on migrate: {', '.join(ignored)}")
    known = {name: value for name, value in layer.properties.items() if name not in unknown}
    return Translation(known, layer.aws_login)


def _refusal(name: str, value: str) -> str | None:
    """Return the reason that librdkafka refuses a property's value.

    Return "" if librdkafka accepts the value, and None if the property is unknown.

    The check passes the property to a new client, with a second property that does not exist.
    librdkafka sets the properties in order and stops at the first error, so no client is created.
    """
    from confluent_kafka import KafkaException, Producer

    try:
        Producer({name: value, _NO_PROPERTY: ""})
    except KafkaException as error:
        text: str = error.args[0].str()
        if "No such configuration property" not in text:
            return " ".join(text.split())
        return "" if f'"{_NO_PROPERTY}"' in text else None
    except (AttributeError, TypeError, ValueError):
        return ""  # a property that expects a Python object; Connection refuses it
    raise AssertionError(f"librdkafka has the property {_NO_PROPERTY}")


def _check_mechanism(properties: Mapping[str, str]) -> None:
    """Refuse an unknown protocol or mechanism, or a SASL connection without a required property.

    Kafka's default mechanism is Kerberos (GSSAPI). The wheels of confluent-kafka do not support
    this mechanism, but other builds do. The mechanism is therefore accepted but not suggested.

    Raises:
        ConfigError: a property is refused.
    """
    protocol = properties.get("security.protocol", "")
    if protocol and protocol.upper() not in _PROTOCOLS:
        raise ConfigError(f"security.protocol is not one of {', '.join(_PROTOCOLS)}")
    if protocol.upper().startswith("SASL_") and "sasl.mechanisms" not in properties:
        raise ConfigError(
            f"security.protocol is {protocol}, but sasl.mechanism is missing; set sasl.mechanism "
            f"to one of {', '.join(_MECHANISMS)}"
        )
    mechanism = properties.get("sasl.mechanisms", "")
    if mechanism and mechanism.upper() not in (*_MECHANISMS, "GSSAPI"):
        raise ConfigError(
            f"sasl.mechanism is unknown{hint(mechanism.upper(), _MECHANISMS)}; set it to one of "
            f"{', '.join(_MECHANISMS)}"
        )
    has_token = properties.get("sasl.oauthbearer.method", "").lower() == "oidc"
    has_token |= "enable.sasl.oauthbearer.unsecure.jwt" in properties
    if mechanism.upper() == "OAUTHBEARER" and not has_token:
        raise ConfigError(
            "sasl.mechanism is OAUTHBEARER, but the source of the token is missing; set "
            "sasl.oauthbearer.method=oidc, and set sasl.oauthbearer.client.id, .client.secret, and "
            ".token.endpoint.url"
        )


def names_brokers(file: Path | None, properties: Iterable[str]) -> bool:
    """Return whether these properties contain broker addresses.

    Raises:
        ConfigError: the file cannot be read, or one of its lines or an argument is not a property.
    """
    layers = {**(read_file(file) if file is not None else {}), **read_arguments(properties)}
    return any(layers.get(name) for name in _SERVERS)


def check_servers(name: str, servers: str) -> None:
    """Refuse addresses that contain credentials, and invalid addresses, such as ``http://…``.

    ``name`` is the property, the option, or the environment variable that contains the addresses.
    Messages about brokers show their addresses and would therefore show the credentials.

    Raises:
        ConfigError: an address is refused.
    """
    if "@" in servers or redact_url(servers) != servers:
        raise ConfigError(
            f"{name}: an address cannot contain credentials; write only HOST:PORT, and set the "
            "user and the password in sasl.username and sasl.password"
        )
    for server in servers.split(","):
        if port := _ONLY_PORT.fullmatch(server.strip()):
            raise ConfigError(
                f"{name}: {server.strip()} is only a port; pass HOST:PORT, such as "
                f"localhost:{port[1]}"
            )
        address = _ADDRESS.fullmatch(server.strip())
        if server.strip() and (address is None or int(address[1] or 0) > _LARGEST_PORT):
            if with_port := _WITH_BAD_PORT.fullmatch(server.strip()):
                raise ConfigError(
                    f"{name} {server.strip()}: {with_port[1]!r} is not a port; pass HOST:PORT"
                )
            scheme = re.match(r"[a-z]+://", server.strip())
            form = f" without {scheme[0]}" if scheme else ", and separate brokers with commas"
            raise ConfigError(
                f"{name}: {server.strip()} is not a broker's address; write HOST:PORT{form}"
            )
