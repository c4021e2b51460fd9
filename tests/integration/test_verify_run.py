"""Run ``migrate verify CHK spark:DIR --run`` with a real Spark on a copy of the seed.

Each run starts a new Spark, for about ten seconds. The tests cover only results that require a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from pyspark.version import __version__ as pyspark_version

from migrate.kafka import client as connection
from tests.support.checkpoints import splits, write_source
from tests.support.command import Result, migrate
from tests.support.jars import classpath
from tests.support.jdk import QUICK_START
from tests.support.kafka import Broker
from tests.support.secured import SecuredBroker
from tests.support.seeds import write_seed

pytestmark = pytest.mark.integration

TOPIC = "verify-run"
# Partition -> (log start, log end)
LOGS = {0: (0, 60), 1: (30, 50)}
POSITIONS = [17, 30]
JARS = ",".join(map(str, classpath(f"spark-{pyspark_version}")))


@pytest.fixture(scope="module")
def servers(broker: Broker) -> str:
    fill(broker, TOPIC)
    return broker.bootstrap_servers


def fill(broker: Broker, topic: str) -> None:
    broker.create_topic(topic, len(LOGS))
    for partition, (start, end) in LOGS.items():
        broker.produce(topic, partition, [str(offset) for offset in range(end)])
        broker.delete_records(topic, partition, before=start)


@pytest.fixture(scope="module")
def secured() -> Iterator[SecuredBroker]:
    with SecuredBroker() as running:
        fill(running, TOPIC)
        yield running


def run(checkpoint: Path, query: Path, servers: str, *more: str) -> Result:
    conf = {
        "spark.jars": JARS,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": " ".join(QUICK_START),
    }
    settings = (f"--spark-conf={key}={value}" for key, value in conf.items())
    return migrate("verify", checkpoint, f"spark:{query}", "--run", "-b", servers, *settings, *more)


def seed(query: Path, starts: list[int], topic: str = TOPIC) -> None:
    write_seed({(topic, partition): start for partition, start in enumerate(starts)}, query)


def content(directory: Path) -> dict[str, tuple[bytes, int]]:
    """Return the bytes and the modification time of every file and directory."""
    return {
        str(path.relative_to(directory)): (
            path.read_bytes() if path.is_file() else b"",
            path.stat().st_mtime_ns,
        )
        for path in [directory, *directory.rglob("*")]
    }


def test_verify_run_detects_shifted_offset_in_seed(servers: str, tmp_path: Path) -> None:
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(TOPIC, POSITIONS)})
    seed(tmp_path / "query", [POSITIONS[0] + 1, POSITIONS[1]])

    result = run(checkpoint, tmp_path / "query", servers)

    assert result.code == 5
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["lost", TOPIC, "0", "17", "18", "1"] in rows
    assert ["ok", TOPIC, "1", "30", "30"] in rows


def test_verify_run_detects_expired_offset_in_seed(servers: str, tmp_path: Path) -> None:
    """The seed equals the checkpoint, so only a run of Spark detects the expired offset."""
    # Offset 29 is below the log start offset of partition 1.
    positions = [17, 29]
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(TOPIC, positions)})
    seed(tmp_path / "query", positions)
    assert migrate("verify", checkpoint, f"spark:{tmp_path / 'query'}").code == 0

    result = run(checkpoint, tmp_path / "query", servers)

    assert (result.code, result.stdout) == (5, "")
    assert "not verified; Spark's first batch failed" in result.stderr
    assert "Some data may have been lost" in result.stderr


def test_verify_run_without_kafka_connector_is_usage_error(servers: str, tmp_path: Path) -> None:
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(TOPIC, POSITIONS)})
    seed(tmp_path / "query", POSITIONS)

    result = run(checkpoint, tmp_path / "query", servers, "--spark-conf", "spark.jars=")

    assert (result.code, result.stdout) == (2, "")
    assert "--spark-conf spark.jars.packages=" in result.stderr


def test_verify_run_with_credentials_leaves_seed_unchanged(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    password = 'a "quoted" \\ word'
    secured.add_scram_user("reader", password)
    for operation in (AclOperation.READ, AclOperation.DESCRIBE):
        secured.allow("reader", operation, ResourceType.TOPIC, TOPIC)
    ca = tmp_path / "ca.pem"
    ca.write_text(secured.authority.pem)
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.username=reader\n"
        f"ssl.ca.location={ca}\n",
    )
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(TOPIC, POSITIONS)})
    seed(tmp_path / "query", POSITIONS)
    before = content(tmp_path / "query")

    login = ("--kafka-config", str(properties), "-X", f"sasl.password={password}")
    result = run(checkpoint, tmp_path / "query", secured.address("SASL"), *login)

    assert result.code == 0, result.stderr
    records = sum(end - start for (_, end), start in zip(LOGS.values(), POSITIONS, strict=True))
    assert f"Spark {pyspark_version} planned its first batch, and read {records} records" in (
        result.stderr
    )
    assert content(tmp_path / "query") == before
    assert password not in result.stderr + result.stdout


def test_unreachable_broker_is_reported_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REQUEST_TIMEOUT", 2.0)
    checkpoint = write_source(tmp_path / "chk-1", {0: splits(TOPIC, POSITIONS)})
    seed(tmp_path / "query", POSITIONS)

    result = run(checkpoint, tmp_path / "query", "127.0.0.1:1")

    assert (result.code, result.stdout) == (6, "")
    assert "Spark" not in result.stderr
