"""Check ``verify --run`` before Spark starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from migrate import verify
from migrate.extensions.stateful_query.cli import time_to_live
from migrate.kafka.config import ConfigError
from migrate.model.errors import UsageError
from migrate.spark import resume_check
from migrate.spark.resume_check import kafka_options
from tests.support.checkpoints import splits, write_source
from tests.support.command import migrate
from tests.support.spark_files import SEED, spark_directory

# No server listens on this reserved port.
NOBODY = "127.0.0.1:1"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_source(tmp_path / "chk-1", {0: splits("t", [3])})


@pytest.fixture
def query(tmp_path: Path) -> str:
    return f"spark:{spark_directory(tmp_path / 'query', {'sources/0/0': SEED})}"


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("query", ["--run"], "requires a broker"),
        ("query", ["--spark-conf", "spark.jars=x"], "requires --run"),
        ("query", ["--run", "--spark-conf", "jars=x"], ": expected spark.KEY=VALUE"),
        ("query", ["--run", "--spark-conf", "spark.jars"], ": expected spark.KEY=VALUE"),
        ("group:g", ["--run", "-b", NOBODY], "requires spark:DIR"),
        ("query", ["--expect", "key"], "--expect; commands with this option: verify-state"),
        (
            "query",
            ["--stopped-at", "2024-01-01"],
            "--stopped-at; commands with this option: verify-state",
        ),
    ],
)
def test_conflicting_verify_options_are_usage_errors(
    checkpoint: Path, query: str, target: str, options: list[str], says: str
) -> None:
    result = migrate("verify", checkpoint, query if target == "query" else target, *options)
    assert (result.code, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("group:g", ["--state", "a/b", "-b", NOBODY], "requires a Spark query, spark:DIR"),
        ("query", ["--state", "a/b", "--sample", "0"], "expected a positive number of keys"),
        ("query", ["--state", "a"], "expected OPERATOR/NAME"),
        ("query", ["--state", "a/b", "--ttl", "long"], "--ttl 'long' is not a duration"),
        ("query", ["--state", "a/b", "--stopped-at", "x"], "--stopped-at x is not a time"),
    ],
)
def test_invalid_verify_state_options_are_usage_errors(
    checkpoint: Path, query: str, target: str, options: list[str], says: str
) -> None:
    result = migrate("verify-state", checkpoint, query if target == "query" else target, *options)
    assert (result.code, result.stdout) == (2, "")
    assert says in result.stderr


@pytest.mark.parametrize(
    ("arguments", "replacement"),
    [
        (["to-spark", "--state", "a/b"], "migrate prime CHK --state OPERATOR/NAME"),
        (
            ["to-spark", "--keep-state", "spark:old"],
            "migrate copy-query spark:OLD --from SIDE --checkpoint-dir NEW",
        ),
        (
            ["verify", "--state", "a/b"],
            "migrate verify-state CHK spark:DIR --state OPERATOR/NAME",
        ),
    ],
)
def test_error_for_option_that_became_a_command_suggests_command(
    arguments: list[str], replacement: str
) -> None:
    result = migrate(*arguments)
    assert (result.code, result.stdout) == (2, "")
    shown = " ".join(result.stderr.replace("\u2502", " ").split())
    assert f"{arguments[1]}; this option is now a command: {replacement}" in shown


@pytest.mark.parametrize(
    "arguments", [{"expect": "key"}, {"sample": 3}, {"ttl_ms": None}, {"stopped_at_ms": 1}]
)
def test_library_verify_refuses_state_options_if_no_state_is_passed(
    checkpoint: Path, query: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(UsageError, match=" require `state`"):
        verify(checkpoint, query, **arguments)


def test_ttl_option_is_parsed() -> None:
    assert [time_to_live(text) for text in (None, "none", "7d", "500ms", "12h")] == [
        ...,
        None,
        604_800_000,
        500,
        43_200_000,
    ]


def test_verify_run_suggests_install_command_if_pyspark_is_missing(
    tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume_check, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"'\.\[spark\]'"):
        resume_check.run_first_batch(query, str(tmp_path / "query"), {}, {})


def test_verify_run_queries_no_broker_if_pyspark_is_missing(
    checkpoint: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume_check, "find_spec", lambda _: None)
    with pytest.raises(UsageError):
        verify(checkpoint, query, run=True, bootstrap_servers=NOBODY)


@pytest.mark.slow
def test_failed_start_of_spark_is_reported(
    tmp_path: Path, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # a directory without Java
    config = {"bootstrap.servers": NOBODY}
    with pytest.raises(UsageError, match=r"did not start: .*bin/java"):
        resume_check.run_first_batch(query, str(tmp_path / "query"), config, {"spark.jars": "x"})


def test_password_credentials_are_translated_for_spark() -> None:
    config = {
        "bootstrap.servers": "kafka:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": 'a"b\\c',
        "ssl.endpoint.identification.algorithm": "none",
        "socket.keepalive.enable": "true",
    }
    assert kafka_options(config) == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.ssl.endpoint.identification.algorithm": "",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule "
        'required username="me" password="a\\"b\\\\c";',
    }


def test_contents_of_certificate_files_are_passed_to_spark(tmp_path: Path) -> None:
    config = {}
    for name in ("ca", "certificate", "key"):
        (tmp_path / name).write_text(f"the {name}")
        config[f"ssl.{name}.location"] = str(tmp_path / name)
    assert kafka_options(config) == {
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "the ca",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "the certificate",
        "kafka.ssl.keystore.key": "the key",
    }


@pytest.mark.parametrize(
    "config",
    [
        {"enable.ssl.certificate.verification": "false"},
        {"sasl.mechanisms": "OAUTHBEARER", "oauth_cb": lambda _: ("", 0.0)},
        {"sasl.mechanisms": "GSSAPI", "sasl.username": "me"},
        {"ssl.crl.location": "x"},
        {"ssl.ca.location": "not there"},
    ],
    ids=lambda config: next(iter(config)),
)
def test_properties_unsupported_by_spark_are_refused(config: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"oauth_cb|GSSAPI|ssl\."):
        kafka_options(config)
