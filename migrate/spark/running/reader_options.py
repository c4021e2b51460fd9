"""librdkafka's properties as options of Spark's Kafka source, which are the Java client's.

The inverse of ``kafka_config.java``, for what it takes to reach and read a cluster. Spark passes
on each option that begins with ``kafka.``.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.{SslConfigs,
SaslConfigs} @ Kafka 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping

from decoder.storage import read_file
from migrate.kafka_config import MAX_STORE_BYTES, ConfigError, KafkaConfig

_SAME = (
    "bootstrap.servers",
    "client.id",
    "sasl.kerberos.service.name",
    "security.protocol",
    "ssl.key.password",
)
_RENAMED = {
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
# Java takes the text of these where librdkafka takes a file.
_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_CREDENTIALS = ("sasl.username", "sasl.password")
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
# What these say must hold for Spark too, or it would log in as someone else or trust anyone.
_MUST_BE_KNOWN = ("sasl.", "security.", "ssl.", "enable.ssl.", "oauth")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def kafka_options(config: KafkaConfig) -> dict[str, str]:
    """The ``kafka.*`` options with which Spark reaches the same cluster in the same way.

    Properties that only tune librdkafka have no match and are left out.

    Raises:
        ConfigError: a log-in or a certificate that has no match, or a file that cannot be read.
    """
    texts = {name: value for name, value in config.items() if isinstance(value, str)}
    java: dict[str, str] = {}
    for name, value in texts.items():
        if name in _SAME:
            java[name] = value
        elif name in _RENAMED:
            java[_RENAMED[name]] = value
        elif name in _FILES:
            java[_FILES[name]] = _read(name, value)
        elif name == _IDENTIFICATION:
            java[name] = "" if value == "none" else value
        elif name not in _CREDENTIALS and name.startswith(_MUST_BE_KNOWN):
            raise _no_match(name)
    for name in config.keys() - texts.keys():
        raise _no_match(name)
    if "ssl.truststore.certificates" in java:
        java["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in java:
        java["ssl.keystore.type"] = "PEM"
    elif "ssl.keystore.location" in java:
        java["ssl.keystore.type"] = "PKCS12"
    if any(name in texts for name in _CREDENTIALS):
        java["sasl.jaas.config"] = _login(java.get("sasl.mechanism", ""), texts)
    return {f"kafka.{name}": value for name, value in java.items()}


def _login(mechanism: str, texts: Mapping[str, str]) -> str:
    module = _LOGIN_MODULES.get(mechanism.upper())
    if module is None:
        raise _no_match(f"sasl.mechanism {mechanism}")
    options = " ".join(
        f"{name.removeprefix('sasl.')}={_quoted(texts[name])}"
        for name in _CREDENTIALS
        if name in texts
    )
    return f"{module} required {options};"


def _quoted(value: str) -> str:
    """As java.io.StreamTokenizer reads it, by which the Java client does."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _read(name: str, path: str) -> str:
    try:
        return read_file(path, MAX_STORE_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not PEM"
        raise ConfigError(f"{name}: the file cannot be read: {reason}") from error


def _no_match(name: str) -> ConfigError:
    return ConfigError(f"{name}: cannot be said to Spark's Kafka source here; verify without --run")
