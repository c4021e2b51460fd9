"""The translation of Java client properties to librdkafka properties."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from migrate.kafka.config.aws_msk import AWS_MSK_IAM, CALLBACK_HANDLERS, AwsLogin, aws_login
from migrate.kafka.config.key_stores import STORE_PROPERTIES, translate_stores
from migrate.kafka.config.parse_jaas import LoginModule, parse_login_module
from migrate.kafka.config.properties import ConfigError

# Common Java client properties that `migrate` drops, grouped by reason. The modules that do read
# records (``records``, ``transactions``) use their own settings or librdkafka's defaults.
IGNORED: Mapping[str, tuple[str, ...]] = {
    "no record is read": (
        "allow.auto.create.topics",
        "check.crcs",
        "exclude.internal.topics",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
        "isolation.level",
        "key.deserializer",
        "max.partition.fetch.bytes",
        "share.acknowledgement.mode",
        "value.deserializer",
    ),
    "no record is written": (
        "acks",
        "batch.size",
        "buffer.memory",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delivery.timeout.ms",
        "enable.idempotence",
        "key.serializer",
        "linger.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",
        "max.request.size",
        "metadata.max.idle.ms",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.class",
        "partitioner.ignore.keys",
        "transaction.timeout.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id",
        "value.serializer",
    ),
    "migrate joins no group; the group is an option of the command": (
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "enable.auto.commit",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
    ),
    "migrate has its own limit for each request": (
        "default.api.timeout.ms",
        "retries",
        "socket.connection.setup.timeout.max.ms",
    ),
    "they add Java classes to the Java client, or measure it": (
        "auto.include.jmx.reporter",
        "interceptor.classes",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
    ),
    "they configure the JVM's TLS; OpenSSL uses the best version that both sides support": (
        "ssl.enabled.protocols",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
    "they configure how the JVM renews credentials; migrate exits before any renewal is due": (
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.login.refresh.buffer.seconds",
        "sasl.login.refresh.min.period.seconds",
        "sasl.login.refresh.window.factor",
        "sasl.login.refresh.window.jitter",
        "sasl.login.retry.backoff.max.ms",
        "sasl.login.retry.backoff.ms",
    ),
    "they are Flink's own properties, stored with its Kafka properties": (
        "client.id.prefix",
        "commit.offsets.on.checkpoint",
        "flink.disable-metrics",
        "flink.partition-discovery.interval-millis",
        "flink.poll-timeout",
        "partition.discovery.interval.ms",
        "register.consumer.metrics",
    ),
}
_IGNORED = frozenset(name for names in IGNORED.values() for name in names)

_RENAMED = {
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    # librdkafka also has a request.timeout.ms, but there it is a producer's timeout for acks.
    "request.timeout.ms": "socket.timeout.ms",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}


def with_java_names(text: str) -> str:
    """Add the Java client names to the properties that a librdkafka message contains."""
    for java, own in _RENAMED.items():
        text = text.replace(f'"{own}"', f'"{own}" ({java} in Java)')
    return text


# The librdkafka values that differ from the Java client values. A key consists of the librdkafka
# property name and the Java client value.
_VALUES = {
    ("socket.receive.buffer.bytes", "-1"): "0",
    ("socket.send.buffer.bytes", "-1"): "0",
    ("ssl.endpoint.identification.algorithm", ""): "none",
}

# Java callback handlers that use a client ID and a client secret to get a token, as the OIDC method
# of librdkafka does. Kafka 4 moved its handler out of the ``secured`` package.
OIDC_HANDLERS = frozenset(
    {
        "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    }
)
# The options of OAuthBearerLoginModule, and the equivalent librdkafka properties. The options are
# those of KIP-768 (ClientCredentialsRequestFormatter @ kafka-clients 4.1.1), and of Strimzi's
# handler (ClientConfig @ kafka-oauth-client 0.17).
_OIDC_OPTIONS = {
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "oauth.client.id": "sasl.oauthbearer.client.id",
    "oauth.client.secret": "sasl.oauthbearer.client.secret",
    "oauth.scope": "sasl.oauthbearer.scope",
    "oauth.token.endpoint.uri": "sasl.oauthbearer.token.endpoint.url",
    "scope": "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url": "sasl.oauthbearer.token.endpoint.url",
}
# Properties that have no equivalent in librdkafka, with the reasons that they cannot be ignored.
# They determine the client's identity, the servers that it trusts, or the servers that it queries.
# Without them, the connection would differ from the Java client's connection.
REFUSED: Mapping[str, str] = {
    "bootstrap.controllers": "its value is a list of controllers, not of brokers "
    "(bootstrap.servers)",
    "sasl.client.callback.handler.class": "its value is a Java class that authenticates the client",
    "sasl.login.callback.handler.class": "its value is a Java class that gets the credentials",
    "sasl.login.class": "its value is a Java class that gets the credentials",
    "sasl.oauthbearer.jwt.retriever.class": "its value is a Java class that gets the token",
    "security.providers": "its value is a list of Java classes that implement TLS and SASL",
    "ssl.engine.factory.class": "its value is a Java class that implements TLS",
    "ssl.provider": "its value is a Java class that implements TLS",
}
# A SASL extension (KIP-342), such as Confluent Cloud's extension_logicalCluster.
_EXTENSION = "extension_"
# The options of the JDK's Krb5LoginModule that librdkafka supports. All other options configure the
# login in the JVM, such as its ticket cache; librdkafka authenticates with the keytab.
_KERBEROS_OPTIONS = {
    "keyTab": "sasl.kerberos.keytab",
    "principal": "sasl.kerberos.principal",
    "serviceName": "sasl.kerberos.service.name",
}

_CALLBACK_HANDLER_PROPERTIES = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
)
_TRANSLATED = STORE_PROPERTIES | {"sasl.jaas.config"}
_PEM_PROPERTIES = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem")
_PEM_BLOCK = re.compile(r"\s*-----BEGIN ([A-Z0-9 ]+)-----([A-Za-z0-9+/=\s]*)-----END \1-----\s*")


@dataclass(frozen=True, slots=True)
class Translation:
    """The librdkafka properties, and the AWS credentials from a Java login module.

    ``sasl.mechanisms`` may be AWS_MSK_IAM. librdkafka does not support this mechanism, so the
    caller replaces it.

    Attributes:
        ignored: the names of the properties that have no effect on `migrate`, spelled as in the
            input.
    """

    properties: dict[str, str]
    aws_login: AwsLogin | None = None
    ignored: tuple[str, ...] = ()


def translate(layer: Mapping[str, str]) -> Translation:
    """Translate the properties from a file or from the command line (a layer).

    If a layer contains a setting under both clients' names, the librdkafka name wins. Unknown
    properties are kept, so the caller can decide about them.

    Raises:
        ConfigError: ``sasl.jaas.config`` is malformed, or it contains a login module or an option
            that librdkafka does not support; or ``translate_stores`` raises it.
    """
    login = layer.get("sasl.jaas.config")
    module = parse_login_module(login) if login is not None else None
    translated = {**translate_stores(layer), **(_credentials(module) if module else {})}
    own: dict[str, str] = {}
    ignored: list[str] = []
    for name, value in layer.items():
        if name in _RENAMED:
            translated[_RENAMED[name]] = value
        elif name in _IGNORED:
            ignored.append(name)
        elif name not in _TRANSLATED and value not in CALLBACK_HANDLERS | OIDC_HANDLERS:
            own[name] = value
    if any(layer.get(name) in OIDC_HANDLERS for name in _CALLBACK_HANDLER_PROPERTIES):
        translated["sasl.oauthbearer.method"] = "oidc"
    if any(layer.get(name) in CALLBACK_HANDLERS for name in _CALLBACK_HANDLER_PROPERTIES):
        # One handler is for the AWS_MSK_IAM mechanism, and the other one is for OAUTHBEARER. Both
        # use the same credentials, so `migrate` treats them alike.
        translated["sasl.mechanisms"] = AWS_MSK_IAM
    properties = {
        name: _VALUES.get((name, value), value) for name, value in {**translated, **own}.items()
    }
    for name in _PEM_PROPERTIES:
        if name in properties:
            properties[name] = _PEM_BLOCK.sub(_pem_lines, properties[name])
    return Translation(properties, aws_login(module) if module else None, tuple(ignored))


def _credentials(module: LoginModule) -> dict[str, str]:
    match module.name:
        case "PlainLoginModule" | "ScramLoginModule":
            _check_options(module, "username", "password")
            return {f"sasl.{option}": value for option, value in module.options.items()}
        case "IAMLoginModule":
            return {}  # aws_login() reads its options
        case "OAuthBearerLoginModule":
            return _oidc(module)
        case "Krb5LoginModule":
            return {
                own: module.options[option]
                for option, own in _KERBEROS_OPTIONS.items()
                if option in module.options
            }
    raise ConfigError(
        "sasl.jaas.config: unsupported login module; migrate translates PlainLoginModule, "
        "ScramLoginModule, OAuthBearerLoginModule, Krb5LoginModule, and AWS's IAMLoginModule; set "
        "librdkafka's own sasl.* properties instead"
    )


def _oidc(module: LoginModule) -> dict[str, str]:
    """Return the OIDC settings in the options of an OAuthBearerLoginModule.

    Raises:
        ConfigError: the module has an option that librdkafka does not support.
    """
    properties: dict[str, str] = {}
    extensions: list[str] = []
    for option, value in sorted(module.options.items()):
        if option in _OIDC_OPTIONS:
            properties[_OIDC_OPTIONS[option]] = value
        elif option.startswith(_EXTENSION):
            extensions.append(f"{option.removeprefix(_EXTENSION)}={value}")
        else:
            raise ConfigError(
                f"sasl.jaas.config: librdkafka has no equivalent of the {module.name} option "
                f"{option}; supported options: {', '.join(_OIDC_OPTIONS)}, and {_EXTENSION}NAME"
            )
    if extensions:
        properties["sasl.oauthbearer.extensions"] = ",".join(extensions)
    if "sasl.oauthbearer.client.id" in properties:
        properties["sasl.oauthbearer.method"] = "oidc"
    return properties


def _check_options(module: LoginModule, *known: str) -> None:
    for option in sorted(module.options.keys() - set(known)):
        raise ConfigError(
            f"sasl.jaas.config: librdkafka has no equivalent of the {module.name} option {option}"
        )


def _pem_lines(block: re.Match[str]) -> str:
    """Split a PEM block into lines; OpenSSL, unlike Java, does not accept a single line."""
    label, body = block[1], "".join(block[2].split())
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
