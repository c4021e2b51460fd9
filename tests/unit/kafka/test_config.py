"""Kafka properties of Java clients and of librdkafka, as passed to librdkafka."""

from __future__ import annotations

import base64
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import load_pem_x509_certificate

from migrate.kafka.client import Connection
from migrate.kafka.config import ConfigError, KafkaConfig, kafka_config, redact_secrets
from migrate.kafka.config.java_client import IGNORED, REFUSED
from migrate.kafka.config.java_key_store import StoreError, trusted_certificates
from migrate.kafka.config.key_stores import MAX_STORE_BYTES, check_file
from migrate.kafka.groups import _failure
from migrate.kafka.snapshot import take_snapshot
from migrate.model.cluster_snapshot import Question
from migrate.moves.options import Kafka

# No server listens at this address, so only the properties are checked.
NOWHERE = "127.0.0.1:1"
SECRET = "hunter2-Secret"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def _config(
    tmp_path: Path, text: str, *arguments: str, servers: str | None = NOWHERE
) -> KafkaConfig:
    file = tmp_path / "client.properties"
    file.write_text(text, encoding="utf-8")
    return kafka_config(servers, file, arguments)


def _translated(tmp_path: Path, text: str, *arguments: str) -> dict[str, object]:
    config: dict[str, object] = {**_config(tmp_path, text, *arguments)}
    assert config.pop("bootstrap.servers") == NOWHERE
    return config


def _refusal(tmp_path: Path, text: str, *arguments: str) -> str:
    with pytest.raises(ConfigError) as caught:
        _config(tmp_path, text, *arguments)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_precedence_of_properties_is_bootstrap_servers_then_arguments_then_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "f"
    file.write_text("bootstrap.servers=a:1\nclient.id=file\nsocket.timeout.ms=5000\n")
    assert kafka_config(None, file, ["client.id=x"]) == {
        "bootstrap.servers": "a:1",
        "client.id": "x",
        "socket.timeout.ms": "5000",
    }
    assert kafka_config("b:2", file, ["bootstrap.servers=c:3"])["bootstrap.servers"] == "b:2"


@pytest.mark.parametrize("servers", [None, ""])
def test_missing_bootstrap_servers_is_config_error(servers: str | None) -> None:
    with pytest.raises(ConfigError, match=r'add bootstrap_servers="HOST:PORT"$'):
        kafka_config(servers, None, [])


def test_properties_file_without_brokers_is_config_error(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("client.id=x\n")
    with pytest.raises(ConfigError) as refused:
        kafka_config(None, file, [])
    assert str(refused.value) == (
        f"{file} does not set bootstrap.servers; add bootstrap.servers=HOST:PORT"
    )


def test_properties_file_uses_java_syntax(tmp_path: Path) -> None:
    text = (
        "# a comment\n! another\n\n"
        "client.id : with a colon\n"
        "  sasl.username with a space\n"
        "sasl.password=a\\\\b\\\n   c\\u00e9\\=\\#d\n"
        "client.rack=twice\nclient.rack=last  \r\n"
    )
    assert _translated(tmp_path, text) == {
        "client.id": "with a colon",
        "sasl.username": "with a space",
        "sasl.password": "a\\bcé=#d",
        "client.rack": "last",
    }


@pytest.mark.parametrize("argument", ["client.id", "", "=x", "two words=x"])
def test_property_argument_is_refused_if_not_key_and_value(tmp_path: Path, argument: str) -> None:
    assert _refusal(tmp_path, "", argument) == "kafka_properties: expected a property as key=value"


def test_backslash_in_property_argument_is_not_an_escape(tmp_path: Path) -> None:
    assert _translated(tmp_path, "", r"sasl.password=a\b=c\\d") == {"sasl.password": r"a\b=c\\d"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"client.id=a\n{SECRET}\n", 2),  # a password on a line of its own
        (f"client.id=a \\\n b\n\n{SECRET.lower()}\n", 4),
        (f"={SECRET}\n", 1),
        (f"{SECRET}=x\n", 1),
        ("# key\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC==\n", 2),  # a line of a private key
        ("client.id=a\r\nsasl password\\u00zz=x\r\n", 2),
    ],
)
def test_error_for_invalid_property_line_contains_line_number_but_no_secret(
    tmp_path: Path, text: str, line: int
) -> None:
    message = _refusal(tmp_path, text)
    assert f"client.properties line {line}: " in message
    assert SECRET.lower() not in message
    assert "MIIE" not in message


def test_unreadable_properties_file_is_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        kafka_config(NOWHERE, tmp_path / "missing", [])
    (tmp_path / "store").write_bytes(b"\xfe\xed\xfe\xed")
    with pytest.raises(ConfigError, match="UTF-8"):
        kafka_config(NOWHERE, tmp_path / "store", [])


def test_java_property_names_are_translated(tmp_path: Path) -> None:
    text = """
        security.protocol=SASL_SSL
        sasl.mechanism=SCRAM-SHA-512
        ssl.endpoint.identification.algorithm=
        request.timeout.ms=20000
        send.buffer.bytes=-1
        receive.buffer.bytes=65536
        reconnect.backoff.ms=100
        """
    assert _translated(tmp_path, text) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "ssl.endpoint.identification.algorithm": "none",
        "socket.timeout.ms": "20000",
        "socket.send.buffer.bytes": "0",
        "socket.receive.buffer.bytes": "65536",
        "reconnect.backoff.ms": "100",
    }


def test_librdkafka_names_override_java_names_in_file(tmp_path: Path) -> None:
    text = f"""
        sasl.mechanisms=PLAIN
        sasl.mechanism=SCRAM-SHA-256
        socket.timeout.ms=1000
        request.timeout.ms=30000
        sasl.password=own
        sasl.jaas.config={PLAIN} required username="u" password="{SECRET}";
        """
    assert _translated(tmp_path, text) == {
        "sasl.mechanisms": "PLAIN",
        "socket.timeout.ms": "1000",
        "sasl.username": "u",
        "sasl.password": "own",
    }


def test_property_argument_overrides_file_despite_different_naming(tmp_path: Path) -> None:
    """A Java name in an argument overrides the librdkafka name in the file, and vice versa."""
    java = f'sasl.mechanism=PLAIN\nsasl.jaas.config={PLAIN} required username="u" password="p";\n'
    over_java = _translated(tmp_path, java, "sasl.mechanisms=SCRAM-SHA-512", "sasl.password=other")
    assert over_java == {
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "other",
    }
    own = "sasl.mechanisms=PLAIN\nsasl.username=u\nsasl.password=p\n"
    jaas = f'sasl.jaas.config={SCRAM} required username="v" password="q";'
    assert _translated(tmp_path, own, "sasl.mechanism=SCRAM-SHA-512", jaas) == {
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "v",
        "sasl.password": "q",
    }


@pytest.mark.parametrize("name", sorted({name for names in IGNORED.values() for name in names}))
def test_irrelevant_java_properties_are_ignored(tmp_path: Path, name: str) -> None:
    assert _translated(tmp_path, f"{name}=org.example.Anything") == {}


# -- login modules -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jaas", "password"),
    [
        (f'{SCRAM} required username="u" password="p";', "p"),
        (f"{PLAIN} REQUIRED username='u' password='p' ;", "p"),
        (f"{PLAIN} required\n username=u\n password=p-_.$x;", "p-_.$x"),
        (f'{PLAIN} required password="a;b=c //d /*e*/ é" username="u";', "a;b=c //d /*e*/ é"),
        (rf'{PLAIN} required username="u" password="q\"r\\s\101\1019\t";', 'q"r\\sAA9\t'),
        (rf'{PLAIN} required username="u" password="\a\b\f\n\r\t\v";', "\a\b\f\n\r\t\v"),
        (f'{PLAIN} required /* who */ username="u" // and\n password="p";', "p"),
        (f'kafkashaded.{PLAIN} required username="u" password="p";', "p"),
        (f'{PLAIN} requisite username="u" password="p";', "p"),
        (f'{PLAIN} sufficient username="u" password="p";', "p"),
        (f'{PLAIN} optional username="u" password="p";', "p"),
        (f'{PLAIN} required username="u" password="first" password="last";', "last"),
    ],
)
def test_jaas_login_module_yields_username_and_password(
    tmp_path: Path, jaas: str, password: str
) -> None:
    expected = {"sasl.username": "u", "sasl.password": password}
    assert _translated(tmp_path, "", f"sasl.jaas.config={jaas}") == expected


@pytest.mark.parametrize(
    ("jaas", "told"),
    [
        ("", "a word is missing"),
        (f'{PLAIN} username="u" password="{SECRET}";', "control flag"),
        (f'{PLAIN} required username="u" password="{SECRET}"', "semicolon at the end"),
        (f'{PLAIN} required username="u" password="{SECRET};', "lacks its quotes"),
        (f'{PLAIN} required username="u" password={SECRET}#1;', "lacks its quotes"),
        (f'{PLAIN} required username="u" password=1{SECRET};', "lacks its quotes"),
        (f'{PLAIN} required username "{SECRET}";', "has no value"),
        (f'{PLAIN} required "{SECRET}";', "has no value"),
        (f'{PLAIN} required = ="{SECRET}";', "has no value"),
        (f'{PLAIN} required username="u" password=;', "a word is missing"),
        (f'{PLAIN} required password="{SECRET}"; {PLAIN} required;', "only one login module"),
        (f'{SCRAM} required username="u" password="{SECRET}" tokenauth="true";', "tokenauth"),
        (
            f'com.example.OwnLoginModule required x="{SECRET}";',
            "unsupported login module; migrate translates Plain",
        ),
        (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            f'unsecuredLoginStringClaim_sub="{SECRET}";',
            "unsecuredLoginStringClaim_sub",
        ),
    ],
)
def test_refusal_of_unsupported_jaas_login_module_omits_secret(
    tmp_path: Path, jaas: str, told: str
) -> None:
    message = _refusal(tmp_path, "", f"sasl.jaas.config={jaas}")
    assert message.startswith("sasl.jaas.config: ")
    assert told in message


# -- stores --------------------------------------------------------------------------------------


def _file(tmp_path: Path, name: str, content: bytes) -> Path:
    file = tmp_path / name
    file.write_bytes(content)
    return file


def test_pem_stores_become_librdkafka_locations(tmp_path: Path) -> None:
    store = _file(tmp_path, "store", b"Bag Attributes\n-----BEGIN CERTIFICATE-----\n")
    text = f"""
        ssl.truststore.type=PEM
        ssl.truststore.location={store}
        ssl.truststore.password=no-use-of-it-in-librdkafka
        ssl.keystore.type=PEM
        ssl.keystore.location={store}
        ssl.key.password=p
        """
    assert _translated(tmp_path, text) == {
        "ssl.ca.location": str(store),
        "ssl.certificate.location": str(store),
        "ssl.key.location": str(store),
        "ssl.key.password": "p",
    }


@pytest.mark.parametrize("said", ["PKCS12", "JKS", None])
def test_pkcs12_key_store_is_recognized_despite_declared_type(
    tmp_path: Path, said: str | None
) -> None:
    store = _file(tmp_path, "k", b"\x30\x82\x01\x00")
    text = f"ssl.keystore.location={store}\nssl.keystore.password=p\n"
    assert _translated(tmp_path, text + (f"ssl.keystore.type={said}" if said else "")) == {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": "p",
    }


def test_unrecognized_store_format_is_refused_without_secret(tmp_path: Path) -> None:
    store = _file(tmp_path, "k", SECRET.encode())
    assert "not a PEM, PKCS12, or JKS" in _refusal(tmp_path, f"ssl.keystore.location={store}")
    message = _refusal(tmp_path, f"ssl.truststore.location={SECRET}")
    assert message.partition(": ")[2] == (
        "ssl.truststore.location: the file cannot be read: No such file or directory"
    )


# From keytool 17.0.15: a key store with an RSA key and the certificate ann.pem, and trust stores
# with only this certificate.
_STORES = Path(__file__).parents[1] / "field" / "stores"
_STORE = "store-Secret"


def _ann() -> str:
    return (_STORES / "ann.pem").read_text()


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_keytool_trust_store_is_converted_to_pem(tmp_path: Path, name: str) -> None:
    text = f"ssl.truststore.location={_STORES / name}\nssl.truststore.password="
    config = _translated(tmp_path, text + _STORE)
    assert [block.split() for block in str(config.pop("ssl.ca.pem")).splitlines()] == [
        block.split() for block in _ann().splitlines()
    ]
    assert config == {}
    assert "the password does not open the store" in _refusal(tmp_path, text + SECRET)


def test_jks_trust_store_needs_no_password(tmp_path: Path) -> None:
    text = f"ssl.truststore.location={_STORES / 'trust.jks'}"
    assert "ssl.ca.pem" in _translated(tmp_path, text)


def test_jks_key_store_becomes_pem(tmp_path: Path) -> None:
    text = f"ssl.keystore.location={_STORES / 'own.jks'}\nssl.keystore.password={_STORE}\n"
    config = _translated(tmp_path, f"{text}ssl.key.password=key-Secret")
    key = load_pem_private_key(str(config["ssl.key.pem"]).encode(), None)
    own = load_pem_x509_certificate(str(config["ssl.certificate.pem"]).encode())
    assert own == load_pem_x509_certificate(_ann().encode())
    assert key.public_key() == own.public_key()
    for line, problem in (
        ("", "the key has a different password"),
        (f"ssl.keystore.password={SECRET}", "the password does not open the store"),
    ):
        assert problem in _refusal(tmp_path, text + line)


@pytest.mark.parametrize("name", ["trust.jks", "own.jks"])
def test_jks_store_truncated_at_any_byte_is_refused(tmp_path: Path, name: str) -> None:
    content = (_STORES / name).read_bytes()
    kind = "key" if name == "own.jks" else "trust"
    for end in range(4, len(content), 7):
        store = _file(tmp_path, "cut.jks", content[:end])
        text = f"ssl.{kind}store.location={store}\nssl.{kind}store.password={_STORE}"
        assert "the password does not open the store" in _refusal(tmp_path, text)
    with pytest.raises(StoreError):
        trusted_certificates(content[:60] + bytes(20), None)


def test_trust_store_without_certificate_and_key_store_without_key_are_refused(
    tmp_path: Path,
) -> None:
    text = f"ssl.truststore.location={_STORES / 'own.jks'}\nssl.truststore.password={_STORE}"
    assert "the store contains no trusted certificate" in _refusal(tmp_path, text)
    text = f"ssl.keystore.location={_STORES / 'trust.jks'}\nssl.keystore.password={_STORE}"
    assert "the store contains 0 private keys" in _refusal(tmp_path, text)


def test_error_for_pkcs12_store_suggests_pip_extra_if_cryptography_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    message = _refusal(tmp_path, f"ssl.truststore.location={_STORES / 'trust.p12'}")
    assert "pip install '.[pkcs12]'" in message
    assert "keytool -list -rfc" in message


# -- files of other clients -----------------------------------------------------------------------


def test_unrelated_client_properties_are_ignored_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: Each of these properties was refused with "No such configuration property"."""
    sample = f"""
        # Confluent Cloud
        security.protocol=SASL_SSL
        sasl.mechanism=PLAIN
        sasl.jaas.config={PLAIN} required username='u' password='p';
        client.dns.lookup=use_all_dns_ips
        session.timeout.ms=45000
        acks=all
        schema.registry.url=https://{SECRET}
        schema.registry.ssl.truststore.location=/no/such.jks
        basic.auth.credentials.source=USER_INFO
        basic.auth.user.info=u:{SECRET}
        # serializers
        key.serializer=org.apache.kafka.common.serialization.StringSerializer
        specific.avro.reader=true
        auto.register.schemas=false
        # Kafka Streams and Kafka Connect
        application.id=orders
        processing.guarantee=exactly_once_v2
        main.consumer.max.poll.records=10
        key.converter.schemas.enable=false
        plugin.path=/usr/share/java
        transforms.addKey.type=org.example.AddKey
        interceptor.classes=io.confluent.Interceptor
        confluent.monitoring.interceptor.sasl.mechanism=PLAIN
        """
    caplog.set_level(logging.DEBUG, "migrate")
    assert _translated(tmp_path, sample) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "u",
        "sasl.password": "p",
        "client.dns.lookup": "use_all_dns_ips",
    }
    (line,) = caplog.messages
    assert line == (
        f"{tmp_path / 'client.properties'}: ignored properties without effect on migrate: acks, "
        "application.id, auto.register.schemas, basic.auth.credentials.source, "
        "basic.auth.user.info, confluent.monitoring.interceptor.sasl.mechanism, "
        "interceptor.classes, key.converter.schemas.enable, key.serializer, "
        "main.consumer.max.poll.records, plugin.path, processing.guarantee, "
        "schema.registry.ssl.truststore.location, schema.registry.url, session.timeout.ms, "
        "specific.avro.reader, transforms.…"
    )


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [
        ("secuirty.protocol", "security.protocol"),
        ("security.protocoll", "security.protocol"),
        ("sasl.mecanism", "sasl.mechanism"),
        ("ssl.trustore.location", "ssl.truststore.location"),
        ("sasl.jaas.configs", "sasl.jaas.config"),
    ],
)
def test_mistyped_security_property_in_file_is_refused(
    tmp_path: Path, mistyped: str, meant: str
) -> None:
    """A Java client only warns and then sends the credentials without TLS."""
    message = _refusal(tmp_path, f"{mistyped}={SECRET}")
    assert f"has the property {mistyped} (did you mean '{meant}'" in message


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_connection_property_that_sets_java_class_is_refused(tmp_path: Path, name: str) -> None:
    message = _refusal(tmp_path, f"{name}=org.example.Own")
    assert f"librdkafka has no equivalent of {name}" in message


@pytest.mark.parametrize(
    "line",
    [
        "security.protocol=TLS",
        "security.protocol=SASL_SSL",
        "sasl.mechanism=PLANE",
        "sasl.mechanism=OAUTHBEARER",
        "bootstrap.servers=kafka://broker:9092",
        "ssl.truststore.location=/nowhere/trust.pem",
        "sasl.jaas.config=nonsense",
        "socket.timeout.ms=soon",
        "client.dns.lookup=none of these",
        "security.protocol=ssl\nssl.endpoint.identification.algorithm=none of these",
    ],
)
def test_refusal_of_property_from_file_mentions_that_file_once(tmp_path: Path, line: str) -> None:
    file = tmp_path / "client.properties"
    other = "" if line.startswith("bootstrap") else "bootstrap.servers=a:1\n"
    file.write_text(f"{other}{line}\n")
    with pytest.raises(ConfigError) as refused:
        kafka_config(None, file, [])
    assert str(refused.value).startswith(f"{file}: ")
    assert str(refused.value).count(str(file)) == 1


@pytest.mark.parametrize("argument", ["security.protocol=TLS", "socket.timeout.ms=soon"])
def test_refusal_of_property_argument_does_not_name_the_file(tmp_path: Path, argument: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=a:1\nsecurity.protocol=SSL\nsocket.timeout.ms=500\n")
    with pytest.raises(ConfigError) as refused:
        Connection(kafka_config(None, file, [argument]))
    assert str(file) not in str(refused.value)


def test_value_that_librdkafka_refuses_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers=a:1\nsocket.timeout.ms={SECRET}\n")
    with pytest.raises(ConfigError, match=r"socket\.timeout\.ms") as refused:
        kafka_config(None, file, [])
    assert SECRET not in str(refused.value)


def test_unknown_property_argument_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such configuration property"):
        Connection(_config(tmp_path, "", "schema.registry.url=x"))


_OAUTH = "org.apache.kafka.common.security.oauthbearer"


@pytest.mark.parametrize("package", [_OAUTH, f"{_OAUTH}.secured"])
def test_kip_768_properties_become_librdkafka_oidc(tmp_path: Path, package: str) -> None:
    text = f"""
        security.protocol=SASL_SSL
        sasl.mechanism=OAUTHBEARER
        sasl.oauthbearer.token.endpoint.url=https://sso.invalid/token
        sasl.login.callback.handler.class={package}.OAuthBearerLoginCallbackHandler
        sasl.jaas.config={_OAUTH}.OAuthBearerLoginModule required \
            clientId="x" clientSecret="{SECRET}" scope="z" \
            extension_logicalCluster="lkc-1" extension_identityPoolId="pool-1";
        """
    config = _config(tmp_path, text)
    assert dict(config) == {
        "bootstrap.servers": NOWHERE,
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://sso.invalid/token",
        "sasl.oauthbearer.client.id": "x",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.scope": "z",
        "sasl.oauthbearer.extensions": "identityPoolId=pool-1,logicalCluster=lkc-1",
    }
    _accepted(config)


def _accepted(config: KafkaConfig) -> None:
    """Let librdkafka check the properties."""
    settings: dict[str, Any] = {**config}
    AdminClient(settings, logger=logging.getLogger("nobody"))


def test_strimzi_oauth_client_becomes_librdkafka_oidc(tmp_path: Path) -> None:
    """The properties are from Strimzi's documentation of kafka-oauth-client."""
    text = f"""
        security.protocol=SASL_SSL
        sasl.mechanism=OAUTHBEARER
        sasl.jaas.config={_OAUTH}.OAuthBearerLoginModule required \
            oauth.client.id="team-a" oauth.client.secret="{SECRET}" \
            oauth.token.endpoint.uri="https://sso.invalid/token";
        sasl.login.callback.handler.class=\
            io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler
        """
    config = _config(tmp_path, text)
    assert config["sasl.oauthbearer.method"] == "oidc"
    assert config["sasl.oauthbearer.token.endpoint.url"] == "https://sso.invalid/token"
    _accepted(config)


def test_kerberos_error_describes_required_librdkafka_build(tmp_path: Path) -> None:
    text = """
        security.protocol=SASL_PLAINTEXT
        sasl.mechanism=GSSAPI
        sasl.kerberos.service.name=kafka
        sasl.jaas.config=com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true \
            storeKey=true keyTab="/etc/k.keytab" principal="a@B";
        """
    config = _config(tmp_path, text)
    assert config["sasl.kerberos.keytab"] == "/etc/k.keytab"
    assert config["sasl.kerberos.principal"] == "a@B"
    with pytest.raises(ConfigError) as refused:
        Connection(config)
    assert "build confluent-kafka with a librdkafka that includes Cyrus SASL" in str(refused.value)


def test_vendor_sample_files_are_read(tmp_path: Path) -> None:
    """The files are those that Event Hubs, MSK (IAM and TLS), and Strimzi publish.

    Only their paths and names were changed.
    """
    event_hubs = f"""
        bootstrap.servers=mynamespace.servicebus.windows.net:9093
        request.timeout.ms=60000
        security.protocol=SASL_SSL
        sasl.mechanism=PLAIN
        sasl.jaas.config={PLAIN} required username="$ConnectionString" \
            password="Endpoint=sb://mynamespace.servicebus.windows.net/;SharedAccessKeyName=x;\
SharedAccessKey=abc+/=";
        """
    config = _config(tmp_path, event_hubs, servers=None)
    assert config["sasl.username"] == "$ConnectionString"
    assert str(config["sasl.password"]).endswith(";SharedAccessKeyName=x;SharedAccessKey=abc+/=")
    stores = f"""
        security.protocol=SSL
        ssl.truststore.location={_STORES / "trust."}%s
        ssl.truststore.password={_STORE}
        ssl.truststore.type=%s
        ssl.keystore.location={_STORES / "own."}%s
        ssl.keystore.password={_STORE}
        %s
        """
    msk = _config(tmp_path, stores % ("jks", "JKS", "jks", "ssl.key.password=key-Secret"))
    assert {"ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem"} <= msk.keys()
    strimzi = _config(tmp_path, stores % ("p12", "PKCS12", "p12", ""))
    assert {"ssl.ca.pem", "ssl.keystore.location"} <= strimzi.keys()


@pytest.mark.parametrize("name", ["ca", "crl", "certificate", "key", "keystore"])
def test_error_for_missing_ssl_file_shows_only_values_that_look_like_file_names(
    tmp_path: Path, name: str
) -> None:
    name = f"ssl.{name}.location"
    # A value that does not look like a file name may be a misplaced password.
    for value, shown in (("m/nothere.crt", "m/nothere.crt"), (SECRET, "the file")):
        with pytest.raises(ConfigError) as refused:
            config = _config(tmp_path, "security.protocol=SSL\n", f"{name}={value}")
            Connection(config)
        assert str(refused.value).lower().removesuffix(" or directory") == (
            f"{name}: {shown} cannot be read: no such file"
        )
    with pytest.raises(ConfigError, match="the file cannot be read: "):
        Connection(_config(tmp_path, "security.protocol=SSL\n", f"{name}={SECRET * 500}"))


@pytest.mark.parametrize("name", ["certificate.pem", "key.pem", "cipher.suites"])
@pytest.mark.parametrize("value", [SECRET, SECRET * 100])
def test_error_for_invalid_pem_or_cipher_value_contains_no_secret(
    tmp_path: Path, name: str, value: str
) -> None:
    config = _config(tmp_path, "security.protocol=SSL\n", f"ssl.{name}={value}")
    with pytest.raises(ConfigError, match=f"ssl.{name} failed: ") as refused:
        Connection(config)
    assert SECRET not in str(refused.value)


def test_ssl_file_is_refused_if_too_large_or_a_device(tmp_path: Path) -> None:
    largest, larger = tmp_path / "largest", tmp_path / "larger"
    for file, size in ((largest, MAX_STORE_BYTES), (larger, MAX_STORE_BYTES + 1)):
        with file.open("wb") as out:
            out.truncate(size)
    for fine in (largest, tmp_path, tmp_path / "missing", "no\0path"):
        check_file("ssl.ca.location", str(fine))
    with pytest.raises(ConfigError) as refused:
        check_file("ssl.ca.location", str(larger))
    assert str(refused.value) == f"ssl.ca.location: {larger} is larger than {MAX_STORE_BYTES} bytes"
    with pytest.raises(ConfigError) as refused:
        check_file("ssl.ca.location", "/dev/zero")
    assert str(refused.value) == (
        "ssl.ca.location: /dev/zero is a pipe or a device, not a regular file"
    )


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("ssl.truststore.certificates", "ssl.ca.pem"),
        ("ssl.keystore.certificate.chain", "ssl.certificate.pem"),
        ("ssl.keystore.key", "ssl.key.pem"),
        ("ssl.ca.pem", "ssl.ca.pem"),
    ],
)
def test_single_line_pem_is_split_into_lines(tmp_path: Path, name: str, own: str) -> None:
    body = "A" * 70
    block = f"-----BEGIN X Y----- \\\n {body[:40]} {body[40:]} \\\n -----END X Y-----"
    lines = f"-----BEGIN X Y-----\n{'A' * 64}\n{'A' * 6}\n-----END X Y-----\n"
    assert _translated(tmp_path, f"{name}={block} {block}\n") == {own: lines * 2}


# -- OAUTHBEARER ----------------------------------------------------------------------------------


def test_oauthbearer_without_token_source_is_refused(tmp_path: Path) -> None:
    text = "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
    assert _refusal(tmp_path, text).partition(": ")[2] == (
        "sasl.mechanism is OAUTHBEARER, but the source of the token is missing; set "
        "sasl.oauthbearer.method=oidc, and set sasl.oauthbearer.client.id, .client.secret, and "
        ".token.endpoint.url"
    )
    for source in ("sasl.oauthbearer.method=OIDC", "enable.sasl.oauthbearer.unsecure.jwt=true"):
        assert source.split("=")[0] in _translated(tmp_path, text, source)


# -- AWS -----------------------------------------------------------------------------------------

MSK = "b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"
IAM = "software.amazon.msk.auth.iam"
AWS_KEY = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set credentials in the environment variables of AWS. Signing requires no network."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS_KEY)
    for name in ("AWS_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def _signed(config: KafkaConfig) -> dict[str, Sequence[str]]:
    callback = config["oauth_cb"]
    assert not isinstance(callback, str)
    token, expiry = callback("")
    assert 0 < expiry - time.time() <= 900
    url = urlparse(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return {"host": [str(url.hostname)], **parse_qs(url.query)}


@pytest.mark.parametrize(
    "text",
    [
        "sasl.mechanism=AWS_MSK_IAM",
        f"""sasl.mechanism=AWS_MSK_IAM
            sasl.jaas.config={IAM}.IAMLoginModule required;
            sasl.client.callback.handler.class={IAM}.IAMClientCallbackHandler""",
        f"""sasl.mechanism=OAUTHBEARER
            sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule \\
                required;
            sasl.login.callback.handler.class={IAM}.IAMOAuthBearerLoginCallbackHandler
            sasl.client.callback.handler.class={IAM}.IAMOAuthBearerLoginCallbackHandler""",
    ],
)
@pytest.mark.usefixtures("aws")
def test_aws_iam_settings_are_translated_to_signed_tokens(tmp_path: Path, text: str) -> None:
    config = _config(tmp_path, f"security.protocol=SASL_SSL\n{text}\n", servers=MSK)
    assert config.keys() == {
        "bootstrap.servers",
        "security.protocol",
        "sasl.mechanisms",
        "oauth_cb",
    }
    assert config["sasl.mechanisms"] == "OAUTHBEARER"
    signed = _signed(config)
    assert signed["host"] == ["kafka.eu-west-1.amazonaws.com"]
    assert signed["Action"] == ["kafka-cluster:Connect"]
    assert "/eu-west-1/kafka-cluster/" in signed["X-Amz-Credential"][0]


@pytest.mark.usefixtures("aws")
def test_aws_region_variable_is_read_by_command_line_but_not_by_kafka_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "sasl.mechanism=AWS_MSK_IAM"
    asked = Kafka(NOWHERE, None, [text])
    with pytest.raises(ConfigError, match="AWS_REGION"):
        asked.config()
    monkeypatch.setenv("AWS_REGION", "ap-south-1")
    assert _signed(asked.config())["host"] == ["kafka.ap-south-1.amazonaws.com"]
    assert "AWS_REGION" in _refusal(tmp_path, text)
    serverless = "boot-x.c1.kafka-serverless.us-east-2.amazonaws.com:9098"
    config = Kafka(serverless, None, [text]).config()
    assert _signed(config)["host"] == ["kafka.us-east-2.amazonaws.com"]


@pytest.mark.usefixtures("aws")
def test_aws_profile_of_jaas_config_selects_credentials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials = _file(
        tmp_path,
        "credentials",
        f"[team]\naws_access_key_id=AKIATEAM\naws_secret_access_key={AWS_KEY}\n".encode(),
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(credentials))
    text = f"""sasl.mechanism=AWS_MSK_IAM
        sasl.jaas.config={IAM}.IAMLoginModule required awsProfileName="team";"""
    signed = _signed(_config(tmp_path, text, servers=MSK))
    assert signed["X-Amz-Credential"][0].startswith("AKIATEAM/")


@pytest.mark.usefixtures("aws")
def test_missing_aws_credentials_are_config_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ConfigError, match="no usable credentials"):
        _config(tmp_path, "sasl.mechanism=AWS_MSK_IAM", servers=MSK)


def test_unsupported_aws_option_is_refused(tmp_path: Path) -> None:
    jaas = f'{IAM}.IAMLoginModule required awsStsRegion="{SECRET}";'
    assert "awsStsRegion" in _refusal(tmp_path, "", f"sasl.jaas.config={jaas}")


def test_error_for_aws_iam_suggests_pip_extra_if_signer_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    message = _refusal(tmp_path, "sasl.mechanism=AWS_MSK_IAM")
    assert "pip install '.[msk]'" in message


# -- errors of librdkafka ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("no.such.property=" + SECRET, '"no.such.property"'),
        ("ssl.engine.factory.class=" + SECRET, "no equivalent of ssl.engine.factory.class"),
        ("security.protocol=" + SECRET, "security.protocol is not one of PLAINTEXT, SSL"),
        ("client.dns.lookup=" + SECRET, '"client.dns.lookup"'),
        ("socket.timeout.ms=5", '"socket.timeout.ms"'),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=" + SECRET,
            "sasl.mechanism is unknown; set it to one of",
        ),
        ("plugin.library.paths=" + SECRET, "plugin"),
        ("error_cb=" + SECRET, "error_cb"),
        ("stats_cb=" + SECRET, "stats_cb"),
        ("logger=" + SECRET, '"logger"'),
        ("default.topic.config=" + SECRET, '"default.topic.config"'),
        (f"sasl.password={SECRET}\nclient.dns.lookup=x{SECRET}y", '"client.dns.lookup"'),
    ],
)
def test_error_from_librdkafka_contains_property_name_but_no_value(
    tmp_path: Path, text: str, named: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        take_snapshot(_config(tmp_path, text), Question(frozenset()))
    message = str(caught.value)
    assert named in message
    assert SECRET not in message
    assert "value 5" not in message
    assert "\n" not in message


def test_redact_secrets_removes_every_secret_of_config_from_text() -> None:
    config = {
        "bootstrap.servers": "b:1",
        "sasl.username": "ann",
        "sasl.password": "p",
        "ssl.key.password": "pq",
        "sasl.oauthbearer.client.secret": "s3cret",
        "sasl.oauthbearer.config": "principal=x",
        "ssl.key.pem": "KEY",
        "client.id": "",
    }
    text = "ann at b:1: pq, s3cret, principal=x, KEY"
    assert redact_secrets(text, config) == "ann at b:1: …, …, …, …"


def test_commit_failure_reason_is_redacted() -> None:
    config = {"bootstrap.servers": "b:1", "sasl.password": SECRET}
    error = KafkaError(KafkaError._TRANSPORT, f"{SECRET} was no good")
    failure = _failure(error, {}, config)
    assert (failure.code, failure.reason, failure.transient) == (
        "_TRANSPORT",
        "… was no good",
        True,
    )
