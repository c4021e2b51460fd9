"""Authenticate at a secured broker in every supported way, and report failures.

The broker supports SCRAM and PLAIN over TLS, client certificates, and ACLs. The properties are the
properties of Kafka's own Java clients.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AclOperation, AdminClient, ResourceType

from migrate.kafka.config import ConfigError, kafka_config
from migrate.kafka.config.java_client import REFUSED
from tests.support.checkpoints import (
    SourceState,
    operator_with_states,
    source_operator,
    splits,
    write_checkpoint,
    write_source,
)
from tests.support.command import Result, migrate
from tests.support.encoder import COMMITTER_STATE, Committable, encode_committer_element
from tests.support.jars import classpath
from tests.support.jdk import find_jdk, run_java
from tests.support.secured import Authority, Identity, SecuredBroker

pytestmark = pytest.mark.integration

# Contains all characters that the parsers, Java's escapes, or librdkafka's SCRAM could misread.
SCRAM_PASSWORD = 'sc,r=n #1;\\"é!'
PLAIN_PASSWORD = "pl.ain-Word"
STORE_PASSWORD = "st0re-Word"
SECRETS = (SCRAM_PASSWORD, PLAIN_PASSWORD, STORE_PASSWORD, "wrong-Word")

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def _escaped(text: str) -> str:
    """Escape a value for a .properties file."""
    return text.replace("\\", "\\\\")


def _jaas(module: str, user: str, password: str) -> str:
    quoted = password.replace("\\", "\\\\").replace('"', '\\"')
    return _escaped(f'{module} required username="{user}" password="{quoted}";')


@dataclass(frozen=True)
class Stores:
    """Trust stores and key stores.

    ``ann`` is a user who authenticates with a certificate.
    """

    home: Path
    ann: Identity

    def path(self, name: str) -> Path:
        return self.home / name

    def keytool(self, *arguments: str | Path) -> None:
        _run([str(find_jdk() / "bin" / "keytool"), *map(str, arguments)])


def _run(command: list[str] | str, words: str = "") -> str:
    done = subprocess.run(
        command,
        shell=isinstance(command, str),
        env={**os.environ, "PATH": f"{find_jdk() / 'bin'}{os.pathsep}{os.environ['PATH']}"},
        input=words,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredBroker]:
    with SecuredBroker({"plain": PLAIN_PASSWORD}) as running:
        running.add_scram_user("scram", SCRAM_PASSWORD)
        yield running


@pytest.fixture(scope="module")
def stores(secured: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    made = Stores(tmp_path_factory.mktemp("stores"), secured.authority.identity("ann"))
    made.path("ca.pem").write_text(secured.authority.pem)
    made.path("other-ca.pem").write_text(Authority("other").pem)
    made.path("ann.pem").write_text(made.ann.key_pem() + made.ann.chain_pem)
    made.path("ann.p12").write_bytes(made.ann.pkcs12(STORE_PASSWORD))
    for kind, ending in (("JKS", "jks"), ("PKCS12", "p12")):
        made.keytool(
            *("-importcert", "-noprompt", "-alias", "ca", "-file", made.path("ca.pem")),
            *("-keystore", made.path(f"trust.{ending}"), "-storetype", kind),
            *("-storepass", STORE_PASSWORD),
        )
    made.keytool(
        *("-importkeystore", "-srckeystore", made.path("ann.p12"), "-srcstoretype", "PKCS12"),
        *("-srcstorepass", STORE_PASSWORD, "-destkeystore", made.path("ann.jks")),
        *("-deststoretype", "JKS", "-deststorepass", STORE_PASSWORD),
    )
    return made


@pytest.fixture(scope="module")
def topic(secured: SecuredBroker) -> str:
    """A topic with ten records that every user may describe."""
    name = f"open-{uuid.uuid4().hex[:8]}"
    secured.create_topic(name, 1)
    secured.produce(name, 0, map(str, range(10)))
    for user in ("scram", "plain", "CN=ann"):
        secured.allow(user, AclOperation.DESCRIBE, ResourceType.TOPIC, name)
    return name


@dataclass(frozen=True)
class Client:
    """Runs ``to-spark`` with Kafka properties, and checks that the output contains no secret."""

    home: Path
    broker: SecuredBroker
    topic: str

    def __call__(
        self,
        properties: str,
        *arguments: str,
        listener: str = "SASL",
        topic: str | None = None,
    ) -> Result:
        home = self.home / uuid.uuid4().hex
        home.mkdir()
        file = home / "client.properties"
        file.write_text(properties, encoding="utf-8")
        chk = write_source(home / "chk-7", {0: splits(topic or self.topic, [4])})
        address = self.broker.address(listener)
        command: list[str | Path] = [
            "to-spark",
            chk,
            "-b",
            address,
            "--kafka-config",
            file,
            *arguments,
        ]
        result = migrate(*command)
        said = result.stdout + result.stderr
        if result.code == 0:
            plan = home / "plan.json"
            planned = migrate(*command, "--plan-out", plan)
            said += planned.stdout + planned.stderr + plan.read_text()
        for secret in SECRETS:
            for form in (secret, json.dumps(secret)[1:-1], _escaped(secret)):
                assert form not in said
        return result

    def works(self, properties: str, *arguments: str, listener: str = "SASL") -> None:
        result = self(properties, *arguments, listener=listener)
        assert result.code == 0, result.stderr
        assert json.loads(result.stdout) == {self.topic: {"0": 4}}

    def refused(self, code: int, properties: str, *arguments: str, listener: str = "SASL") -> str:
        """Run the command, check its exit code, and return its only line of output."""
        began = time.monotonic()
        result = self(properties, *arguments, listener=listener)
        assert (result.code, result.stdout) == (code, ""), result.stderr
        (line,) = result.stderr.splitlines()
        assert time.monotonic() - began < 5
        return line


@pytest.fixture
def client(tmp_path: Path, secured: SecuredBroker, topic: str) -> Client:
    return Client(tmp_path, secured, topic)


def _scram(stores: Stores) -> str:
    return f"""
        security.protocol=SASL_SSL
        sasl.mechanisms=SCRAM-SHA-512
        sasl.username=scram
        sasl.password={_escaped(SCRAM_PASSWORD)}
        ssl.ca.location={stores.path("ca.pem")}
        """


def _java_scram(stores: Stores) -> str:
    return f"""
        security.protocol=SASL_SSL
        sasl.mechanism=SCRAM-SHA-512
        sasl.jaas.config={_jaas(SCRAM_MODULE, "scram", SCRAM_PASSWORD)}
        ssl.truststore.type=PEM
        ssl.truststore.location={stores.path("ca.pem")}
        group.id=flink
        key.deserializer=org.apache.kafka.common.serialization.ByteArrayDeserializer
        max.poll.records=500
        auto.offset.reset=none
        """


# -- authentication ------------------------------------------------------------------------------


def test_scram_authentication_works_with_librdkafka_properties(
    client: Client, stores: Stores
) -> None:
    client.works(_scram(stores))


def test_scram_authentication_works_with_java_properties(client: Client, stores: Stores) -> None:
    client.works(_java_scram(stores))


def test_plain_authentication_works_with_multiline_java_properties(
    client: Client, stores: Stores
) -> None:
    certificate = stores.path("ca.pem").read_text().replace("\n", " \\\n  ")
    client.works(
        f"""
        security.protocol: SASL_SSL
        sasl.mechanism: PLAIN
        sasl.jaas.config: {PLAIN_MODULE} required \\
            username="plain" \\
            password="{PLAIN_PASSWORD}";
        ssl.truststore.type: PEM
        ssl.truststore.certificates: {certificate}
        """
    )


def test_command_line_options_override_kafka_config_file(client: Client, stores: Stores) -> None:
    wrong = _java_scram(stores).replace('username="scram"', 'username="nobody"')
    client.works(wrong, "-X", "sasl.username=scram")
    client.works(wrong, "-X", f"sasl.password={SCRAM_PASSWORD}", "-X", "sasl.username=scram")
    plain = f'sasl.jaas.config={PLAIN_MODULE} required username=plain password="{PLAIN_PASSWORD}";'
    client.works(_scram(stores), "-X", "sasl.mechanism=PLAIN", "-X", plain)


@pytest.mark.parametrize("form", ["pem file", "pem", "encrypted pem", "pkcs12", "librdkafka's"])
def test_client_certificate_is_accepted_in_every_form(
    client: Client, stores: Stores, form: str
) -> None:
    def value(pem: str) -> str:
        return pem.strip().replace("\n", " ")

    ann = stores.ann
    own = {
        "pem file": f"""
            ssl.keystore.type=PEM
            ssl.keystore.location={stores.path("ann.pem")}""",
        "pem": f"""
            ssl.keystore.type=PEM
            ssl.keystore.certificate.chain={value(ann.chain_pem)}
            ssl.keystore.key={value(ann.key_pem())}""",
        "encrypted pem": f"""
            ssl.keystore.type=PEM
            ssl.keystore.certificate.chain={value(ann.chain_pem)}
            ssl.keystore.key={value(ann.key_pem(STORE_PASSWORD))}
            ssl.key.password={STORE_PASSWORD}""",
        "pkcs12": f"""
            ssl.keystore.type=PKCS12
            ssl.keystore.location={stores.path("ann.p12")}
            ssl.keystore.password={STORE_PASSWORD}
            ssl.key.password={STORE_PASSWORD}""",
        "librdkafka's": f"""
            ssl.certificate.location={stores.path("ann.pem")}
            ssl.key.location={stores.path("ann.pem")}""",
    }[form]
    common = f"security.protocol=SSL\nssl.truststore.location={stores.path('ca.pem')}\n"
    client.works(common + own, listener="MTLS")


def test_missing_client_certificate_fails_with_tls_error(client: Client, stores: Stores) -> None:
    line = client.refused(
        6, f"security.protocol=SSL\nssl.ca.location={stores.path('ca.pem')}\n", listener="MTLS"
    )
    assert line.startswith("migrate: TLS failed at ")


def test_certificate_of_different_host_fails_unless_check_is_disabled(
    client: Client, stores: Stores
) -> None:
    line = client.refused(6, _java_scram(stores), listener="ELSEWHERE")
    assert line.startswith("migrate: TLS verification failed at ")
    unchecked = _java_scram(stores) + "ssl.endpoint.identification.algorithm=\n"
    client.works(unchecked, listener="ELSEWHERE")


# -- failed authentication -----------------------------------------------------------------------


def test_wrong_password_is_reported_as_access_denied(client: Client, stores: Stores) -> None:
    jaas = f"sasl.jaas.config={_jaas(SCRAM_MODULE, 'scram', 'wrong-Word')}\n"
    for line in (
        client.refused(6, _java_scram(stores) + jaas),
        client.refused(6, _scram(stores) + "sasl.password=wrong-Word\n"),
        client.refused(6, _scram(stores), "-X", "sasl.password=wrong-Word"),
        client.refused(6, _scram(stores), "-X", "sasl.mechanism=PLAIN"),
    ):
        assert line.startswith("migrate: access denied at 127.0.0.1:")
        assert "password" in line


@pytest.mark.parametrize(
    ("listener", "protocol"),
    [("SASL", ""), ("MTLS", ""), ("BARE", ""), ("SASL", "SSL"), ("SASL", "SASL_PLAINTEXT")],
)
def test_error_for_closed_connection_suggests_security_settings(
    client: Client, stores: Stores, listener: str, protocol: str
) -> None:
    login = _scram(stores).replace("SASL_SSL", protocol) if protocol else ""
    line = client.refused(6, login, listener=listener)
    assert line == (
        f"migrate: {client.broker.address(listener)} closed the connection; the port may not be "
        "a Kafka listener, or it may require TLS or credentials (security.protocol is "
        f"{protocol or 'PLAINTEXT'}); check the address and that the broker is running, or pass "
        "--kafka-config FILE (docs/how-to/secured-kafka.md) [connection-closed]"
    )


def test_kerberos_is_refused_with_build_instructions(client: Client, stores: Stores) -> None:
    line = client.refused(2, _scram(stores), "-X", "sasl.mechanism=GSSAPI")
    assert line.startswith(
        "migrate: sasl.mechanism is GSSAPI (Kerberos), which the wheels of confluent-kafka do not "
        "support; use a different listener, or build confluent-kafka with a librdkafka that "
        "includes Cyrus SASL"
    )


def test_wrong_key_store_password_is_usage_error(client: Client, stores: Stores) -> None:
    store = stores.path("ann.p12")
    text = f"security.protocol=SSL\nssl.keystore.location={store}\n"
    line = client.refused(2, f"{text}ssl.keystore.password=wrong-Word\n", listener="MTLS")
    assert line == f"migrate: ssl.keystore.password does not open {store}"


@pytest.mark.parametrize("form", ["${{env:{}}}", '"{}"', "'{}'"])
def test_error_for_quoted_or_unexpanded_password_contains_hint(
    client: Client, stores: Stores, form: str
) -> None:
    password = form.format("wrong-Word")
    line = client.refused(6, _scram(stores), "-X", f"sasl.password={password}")
    assert line.endswith(
        "; check sasl.password; quotes and ${…} are taken literally, as part of the value "
        "[credentials-with-quotes]"
    )


def test_unsupported_mechanism_is_reported_with_supported_mechanisms(
    client: Client, stores: Stores
) -> None:
    line = client.refused(6, _scram(stores), "-X", "sasl.mechanism=SCRAM-SHA-256")
    assert "supported mechanisms: SCRAM-SHA-512,PLAIN" in line


def test_wrong_certificate_authority_fails_tls_verification(client: Client, stores: Stores) -> None:
    line = client.refused(6, _scram(stores) + f"ssl.ca.location={stores.path('other-ca.pem')}\n")
    assert line.startswith("migrate: TLS verification failed at 127.0.0.1:")
    assert "ssl.ca.location" in line


def test_move_succeeds_if_one_broker_of_list_accepts_connection(
    client: Client, stores: Stores, secured: SecuredBroker
) -> None:
    servers = f"{secured.address('ELSEWHERE')},{secured.address('SASL')}"
    for _ in range(3):  # librdkafka tries the brokers in its own order
        chk = write_source(client.home / uuid.uuid4().hex / "chk-1", {0: splits(client.topic, [4])})
        file = client.home / "client.properties"
        file.write_text(_scram(stores), encoding="utf-8")
        result = migrate("to-spark", chk, "-b", servers, "--kafka-config", file)
        assert result.code == 0, result.stderr


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("sasl.passwort=wrong-Word", "sasl.passwort"),
        ("sasl.mechanisms=wrong-Word", "sasl.mechanism is unknown"),
        (f'sasl.jaas.config={SCRAM_MODULE} required password="wrong-Word"', "semicolon"),
        ("ssl.keystore.location=wrong-Word", "ssl.keystore.location"),
        ("wrong-Word", "line "),
    ],
)
def test_invalid_property_is_reported_without_its_value(
    client: Client, stores: Stores, line: str, told: str
) -> None:
    assert told in client.refused(2, _scram(stores) + line + "\n")
    if "=" in line:
        assert told in client.refused(2, _scram(stores), "-X", line)


def test_process_output_contains_no_password_or_librdkafka_logs(
    tmp_path: Path, client: Client, stores: Stores
) -> None:
    """librdkafka writes directly to stderr, and `debug=all` requests its logs."""
    file = tmp_path / "client.properties"
    chk = write_source(tmp_path / "chk-7", {0: splits(client.topic, [4])})
    for password, code in ((SCRAM_PASSWORD, 0), ("wrong-Word", 6)):
        file.write_text(_scram(stores) + f"sasl.password={_escaped(password)}\ndebug=all\n")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "migrate", "to-spark", str(chk)),
                *("-b", client.broker.address("SASL"), "--kafka-config", str(file)),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        assert password not in done.stdout + done.stderr
        assert "rdkafka" not in done.stderr


def test_aws_tokens_reach_broker(
    client: Client, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handshake ends at the broker, because only Amazon's brokers can verify the tokens."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong-Word")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    line = client.refused(6, _scram(stores), "-X", "sasl.mechanism=AWS_MSK_IAM")
    assert "SASL OAUTHBEARER mechanism handshake failed" in line


# -- stores of the Java client -------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["jks", "p12"])
def test_trust_store_created_by_keytool_is_read(
    client: Client, stores: Stores, ending: str
) -> None:
    login = _java_scram(stores).replace("ssl.truststore.type=PEM", "")
    text = f"{login}\nssl.truststore.location={stores.path(f'trust.{ending}')}\n"
    client.works(f"{text}ssl.truststore.password={STORE_PASSWORD}\n")
    line = client.refused(2, f"{text}ssl.truststore.password=wrong-Word\n")
    assert "the password does not open the store" in line


def test_key_store_created_by_keytool_is_read(client: Client, stores: Stores) -> None:
    text = f"""
        security.protocol=SSL
        ssl.truststore.location={stores.path("trust.jks")}
        ssl.truststore.password={STORE_PASSWORD}
        ssl.keystore.location={stores.path("ann.jks")}
        ssl.keystore.password={STORE_PASSWORD}
        ssl.key.password={STORE_PASSWORD}
        """
    client.works(text, listener="MTLS")
    line = client.refused(2, text + "ssl.key.password=wrong-Word\n", listener="MTLS")
    assert "the key has a different password" in line
    line = client.refused(2, text + "ssl.keystore.password=wrong-Word\n", listener="MTLS")
    assert "the password does not open the store" in line


# -- ACLs ----------------------------------------------------------------------------------------


def test_hidden_topic_is_reported_with_required_permission(
    client: Client, stores: Stores, secured: SecuredBroker
) -> None:
    closed = f"closed-{uuid.uuid4().hex[:8]}"
    secured.create_topic(closed, 1)
    secured.produce(closed, 0, map(str, range(10)))
    result = client(_scram(stores), topic=closed)
    assert (result.code, result.stdout) == (6, "")
    (line,) = result.stderr.splitlines()
    assert line.endswith(f"grant this user DESCRIBE on topic {closed} [describe-denied]")
    secured.allow("scram", AclOperation.DESCRIBE, ResourceType.TOPIC, closed)
    assert client(_scram(stores), topic=closed).code == 0


def test_hidden_group_is_reported_with_required_permission(
    client: Client, stores: Stores, secured: SecuredBroker, topic: str
) -> None:
    group = f"flink-{uuid.uuid4().hex[:8]}"
    secured.commit(group, {(topic, 0): 2})
    arguments = ("--source-group", group)
    line = client.refused(6, _scram(stores), *arguments)
    assert f"grant this user DESCRIBE on group {group}" in line
    secured.allow("scram", AclOperation.DESCRIBE, ResourceType.GROUP, group)
    client.works(_scram(stores), *arguments)


@dataclass(frozen=True)
class Permitted:
    """A user who has only the granted permissions, with two topics and a group."""

    broker: SecuredBroker
    home: Path
    properties: Path
    user: str
    topics: tuple[str, str]
    group: str

    def allow(self, *operations: AclOperation, group: bool = False, topics: int = 0) -> None:
        """Grant operations on the group, and on this number of topics."""
        for operation in operations:
            if group:
                self.broker.allow(self.user, operation, ResourceType.GROUP, self.group)
            for topic in self.topics[:topics]:
                self.broker.allow(self.user, operation, ResourceType.TOPIC, topic)

    def run(self, *arguments: str | Path, code: int) -> str:
        """Run ``migrate``, check its exit code, and return stderr."""
        secured = ("-b", self.broker.address("SASL"), "--kafka-config", self.properties)
        result = migrate(*arguments, *secured)
        assert result.code == code, result.stderr
        assert "Traceback" not in result.stderr
        return result.stderr

    def commit(self, to: str, code: int) -> str:
        readers = [split for topic in self.topics for split in splits(topic, [4])]
        chk = write_source(self.home / to / "chk-7", {0: readers})
        return self.run(
            *("commit-group", chk, "--group", self.group, "--execute", "--yes"),
            *("--rollback-file", self.home / f"{to}.json"),
            code=code,
        )

    def rollback(self, file: str, to: str, code: int) -> str:
        return self.run(
            *("rollback", self.home / f"{file}.json", "--execute", "--yes"),
            *("--rollback-file", self.home / f"{to}.json"),
            code=code,
        )


@pytest.fixture
def permitted(tmp_path: Path, secured: SecuredBroker, stores: Stores) -> Permitted:
    unique = uuid.uuid4().hex[:8]
    user, topics = f"user-{unique}", (f"a-{unique}", f"b-{unique}")
    for topic in topics:
        secured.create_topic(topic, 1)
        secured.produce(topic, 0, map(str, range(10)))
    secured.add_scram_user(user, PLAIN_PASSWORD)
    file = tmp_path / "client.properties"
    login = f"sasl.username={user}\nsasl.password={PLAIN_PASSWORD}\n"
    file.write_text(_scram(stores) + login, encoding="utf-8")
    return Permitted(secured, tmp_path, file, user, topics, f"g-{unique}")


def test_commit_reports_missing_permission(permitted: Permitted) -> None:
    group, (first, second) = permitted.group, permitted.topics
    assert f"DESCRIBE on topic {first}" in permitted.commit("1", 6)
    permitted.allow(AclOperation.DESCRIBE, topics=2)
    assert f"DESCRIBE on group {group}" in permitted.commit("2", 6)
    permitted.allow(AclOperation.DESCRIBE, group=True)
    said = permitted.commit("3", 6)
    assert "nothing was changed" in said
    assert "grant this user READ on the group" in said
    permitted.allow(AclOperation.READ, group=True)
    assert said.count("GROUP_AUTHORIZATION_FAILED") == 2
    said = permitted.commit("4", 6)
    assert said.count("TOPIC_AUTHORIZATION_FAILED, access denied; grant this user READ") == 2
    assert permitted.broker.committed(group) == {}
    permitted.allow(AclOperation.READ, topics=1)
    said = permitted.commit("5", 5)
    assert "applied in part; 1 offset written" in said
    assert f"{second}-0 failed: TOPIC_AUTHORIZATION_FAILED" in said
    permitted.allow(AclOperation.READ, topics=2)
    permitted.commit("6", 0)
    assert permitted.broker.committed(group) == {(first, 0): 4, (second, 0): 4}


def test_unreadable_transaction_log_is_reported_with_required_permission(
    permitted: Permitted,
) -> None:
    """The move needs only DESCRIBE on the topic, so it succeeds with a warning."""
    producer = Producer(
        {
            "bootstrap.servers": permitted.broker.bootstrap_servers,
            "transactional.id": "any",
            "log_level": 0,
        }
    )
    producer.init_transactions(30)  # creates the transaction log
    topic = permitted.topics[0]
    sink = operator_with_states(
        {COMMITTER_STATE: [encode_committer_element("2.2", {5: {0: [Committable("pay-0-5")]}})]},
        operator_id=bytes(16),
    )
    source = source_operator(SourceState({0: splits(topic, [4])}))
    chk = write_checkpoint(permitted.home / "chk-7", source, sink)
    permitted.allow(AclOperation.DESCRIBE, topics=1)
    log = "__transaction_state"
    denied = f"is denied; grant this user READ on topic {log}"
    assert denied in permitted.run("to-spark", chk, code=0)
    permitted.broker.allow(permitted.user, AclOperation.DESCRIBE, ResourceType.TOPIC, log)
    assert denied in permitted.run("to-spark", chk, code=0)
    permitted.broker.allow(permitted.user, AclOperation.READ, ResourceType.TOPIC, log)
    said = permitted.run("to-spark", chk, code=0)
    assert "these brokers have no record of transaction 'pay-0-5'" in said


def test_comparison_of_two_clusters_needs_only_read_permission_and_shows_no_password(
    permitted: Permitted,
) -> None:
    """Without a group, READ on the topics is sufficient.

    The output contains no secret of either cluster.
    """
    first, second = permitted.topics
    times = [int(time.time() * 1000) + n for n in range(10)]
    for topic in permitted.topics:
        permitted.broker.delete_records(topic, 0, 10)
        permitted.broker.produce(topic, 0, map(str, range(10)), times)
    permitted.broker.produce(second, 0, ["10"], times[:1])
    chk = write_source(permitted.home / "chk-7", {0: splits(first, [14])})
    there = permitted.home / "there.properties"
    servers = f"bootstrap.servers={permitted.broker.address('SASL')}\n"
    there.write_text(servers + permitted.properties.read_text(encoding="utf-8"), encoding="utf-8")
    command = ("to-spark", chk, "--to-kafka-config", there, "--topic-map", f"{first}={second}")
    permitted.allow(AclOperation.DESCRIBE, topics=2)
    said = permitted.run(*command, code=6)
    assert ("but access to them is denied; grant this user READ on topic") in said
    permitted.allow(AclOperation.READ, topics=2)
    assert "1 matched" in permitted.run(*command, code=0)
    wrong = there.read_text(encoding="utf-8").replace(PLAIN_PASSWORD, "not-the-password")
    there.write_text(wrong, encoding="utf-8")
    said = permitted.run(*command, code=6)
    assert "access denied at" in said
    assert "not-the-password" not in said and PLAIN_PASSWORD not in said


def test_rollback_reports_missing_permission(permitted: Permitted) -> None:
    """Removing an offset needs DELETE on the group and READ on the topic."""
    group, (first, second) = permitted.group, permitted.topics
    permitted.broker.commit(group, {(first, 0): 1})
    boss = ("-b", permitted.broker.bootstrap_servers, "--execute", "--yes")
    chk = write_source(permitted.home / "chk-7", {0: splits(second, [4])})
    done = migrate(
        "commit-group", chk, "--group", group, *boss, "--rollback-file", permitted.home / "0.json"
    )
    assert done.code == 0, done.stderr
    held = {(first, 0): 1, (second, 0): 4}
    assert f"DESCRIBE on group {group}" in permitted.rollback("0", "1", 6)
    permitted.allow(AclOperation.DESCRIBE, group=True, topics=2)
    permitted.allow(AclOperation.DELETE, group=True)
    said = permitted.rollback("0", "2", 6)
    assert "nothing was changed" in said
    assert "grant this user READ on the topic" in said
    assert permitted.broker.committed(group) == held
    permitted.allow(AclOperation.READ, topics=2)
    permitted.rollback("0", "4", 0)
    assert permitted.broker.committed(group) == {(first, 0): 1}


def test_rollback_with_hidden_topic_is_refused(permitted: Permitted) -> None:
    group, (first, second) = permitted.group, permitted.topics
    chk = write_source(permitted.home / "chk-7", {0: splits(first, [4])})
    boss = ("-b", permitted.broker.bootstrap_servers, "--execute", "--yes")
    file = permitted.home / "0.json"
    assert migrate("commit-group", chk, "--group", group, *boss, "--rollback-file", file).code == 0
    permitted.allow(AclOperation.DESCRIBE, AclOperation.DELETE, group=True)
    said = permitted.rollback("0", "1", 6)
    assert f"DESCRIBE on topic {first}" in said
    assert second not in said
    assert permitted.broker.committed(group) == {(first, 0): 4}


def test_rollback_without_delete_permission_changes_no_offsets(permitted: Permitted) -> None:
    group, (first, second) = permitted.group, permitted.topics
    permitted.broker.commit(group, {(first, 0): 1})
    permitted.allow(AclOperation.READ, group=True, topics=2)
    permitted.allow(AclOperation.DESCRIBE, group=True, topics=2)
    permitted.commit("0", 0)
    said = permitted.rollback("0", "1", 6)
    assert "nothing was changed" in said
    assert "grant this user DELETE on the group" in said
    assert permitted.broker.committed(group) == {(first, 0): 4, (second, 0): 4}
    permitted.allow(AclOperation.DELETE, group=True)
    permitted.rollback("0", "2", 0)
    assert permitted.broker.committed(group) == {(first, 0): 1}


# -- Java's properties ---------------------------------------------------------------------------


def test_every_property_of_java_clients_is_handled() -> None:
    """``migrate`` translates, ignores, or refuses each documented property."""
    documented: set[str] = set()
    for client in ("consumer.ConsumerConfig", "producer.ProducerConfig", "admin.AdminClientConfig"):
        page = run_java(f"org.apache.kafka.clients.{client}", classpath("kafka-4.1.1"))
        found = set(re.findall(r'<a id="\w+configs_([a-z0-9.]+)"', page))
        assert len(found) > 50
        documented |= found
    unknown = {name for name in documented if not _is_known(name)}
    own_login = {name for name in unknown if name.startswith("sasl.oauthbearer.")}
    assert unknown - own_login == REFUSED.keys() - {"sasl.oauthbearer.jwt.retriever.class"}


def _is_known(name: str) -> bool:
    """Return whether the property is translated, is ignored, or belongs to librdkafka.

    librdkafka may still refuse the value.
    """
    try:
        settings: dict[str, Any] = {**kafka_config("127.0.0.1:1", None, [f"{name}=x"])}
        AdminClient(settings, logger=logging.getLogger("nobody"))
    except (ConfigError, KafkaException) as error:
        return "No such configuration property" not in str(error)
    return True
