"""Spark's Kafka source: its JAR file, starting offsets, and other options.

The JAR file (``--packages``) has the same version as Spark. Spark 4 is published for Scala 2.13,
and Spark 3.5 is published for Scala 2.12 and 2.13. For Spark 3.5, this module uses the JAR file for
Scala 2.12.

``startingOffsets`` is ``{"topic":{"partition":nextOffset}}``; every partition of the subscription
must be listed. Spark reads ``startingOffsets`` only if the checkpoint location is new.

Source: org.apache.spark.sql.kafka010.{JsonUtils, KafkaSourceProvider} @ Spark 4.0.0;
https://spark.apache.org/docs/4.0.0/structured-streaming-kafka-integration.html ("Deploying").
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from migrate.inputs.offsets_json import NextOffsets, starting_offsets
from migrate.model.errors import UsageError
from migrate.model.option_names import option

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig


# The options for the SASL mechanism AWS_MSK_IAM, which requires the aws-msk-iam-auth JAR. The
# options contain no secrets.
_MSK_IAM = {
    "kafka.sasl.mechanism": "AWS_MSK_IAM",
    "kafka.sasl.jaas.config": "software.amazon.msk.auth.iam.IAMLoginModule required;",
    "kafka.sasl.client.callback.handler.class": (
        "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
    ),
}
# The Spark version if PySpark is not installed and ``--spark-version`` is not passed.
_DEFAULT_VERSION = "4.0.0"
_VERSION = re.compile(r"(\d+)\.\d+\.\d+")


class IsolationLevel(str, Enum):
    """Kafka's ``isolation.level``: whether records of open and aborted transactions are read."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True)
class SourceStart:
    """The start of one Kafka source in a Spark query.

    Attributes:
        number: the index of the source among the query's streams (Spark's ``sources/<number>``).
        only_some_partitions: True if the topics have partitions that the source must not read.
    """

    number: int
    next_offsets: NextOffsets
    only_some_partitions: bool = False


@dataclass(frozen=True, slots=True)
class KafkaOption:
    """One option of ``readStream``.

    Attributes:
        from_environment: True if ``value`` is the name of the environment variable that contains
            the value.
        why: the reason for the option, as a comment for the generated code; or an empty string.
    """

    name: str
    value: str
    from_environment: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class SparkStream(SourceStart):
    """The start of one Kafka source, and all options of its ``readStream``."""

    options: tuple[KafkaOption, ...] = ()

    @property
    def starting_offsets(self) -> str:
        """The value of ``startingOffsets``: sorted JSON without spaces."""
        return starting_offsets(self.next_offsets)


def spark_streams(
    sources: Iterable[SourceStart],
    kafka: KafkaConfig | None,
    isolation_level: IsolationLevel | None,
    *,
    seeded: bool,
) -> tuple[SparkStream, ...]:
    """Return the sources with all options of ``readStream.format("kafka")``.

    ``kafka`` contains the librdkafka properties. In place of secrets and store paths, the options
    contain the names of environment variables. Without ``isolation_level``, the Kafka default
    applies: ``read_uncommitted``. ``seeded`` is True if the query gets a seeded checkpoint
    location.
    """
    level = [KafkaOption("kafka.isolation.level", isolation_level.value)] if isolation_level else []
    start_note = (
        "The checkpoint location has the same offsets; Spark uses this option only without it."
        if seeded
        else "Spark uses this option only if the checkpoint location contains no offsets."
    )
    loss_note = (
        "Spark's default. If records were deleted before the query read them, the query fails "
        "instead of skipping them."
    )
    return tuple(
        SparkStream(
            source.number,
            source.next_offsets,
            source.only_some_partitions,
            (
                *_connection(kafka or {}),
                _subscription(source),
                *level,
                KafkaOption(
                    "startingOffsets", starting_offsets(source.next_offsets), why=start_note
                ),
                KafkaOption("failOnDataLoss", "true", why=loss_note),
            ),
        )
        for source in sources
    )


def _connection(kafka: KafkaConfig) -> Iterator[KafkaOption]:
    servers = kafka.get("bootstrap.servers")
    if isinstance(servers, str):
        yield KafkaOption("kafka.bootstrap.servers", servers)
    else:
        yield KafkaOption("kafka.bootstrap.servers", "HOST:PORT", why="Put your brokers here.")
    protocol = str(kafka.get("security.protocol", "plaintext")).upper()
    if protocol == "PLAINTEXT":
        return
    yield KafkaOption("kafka.security.protocol", protocol)
    if protocol.startswith("SASL_"):
        yield from _login(kafka)
    if protocol.endswith("SSL"):
        if any(name.startswith("ssl.ca") for name in kafka):
            yield from _store("truststore")
        if any(name.startswith(("ssl.keystore", "ssl.certificate")) for name in kafka):
            yield from _store("keystore")


def _store(kind: str) -> Iterator[KafkaOption]:
    """Yield the options for a Java key store or trust store."""
    yield _from_environment(
        f"kafka.ssl.{kind}.location",
        f"For a PEM file, set kafka.ssl.{kind}.type to PEM, and omit the password.",
    )
    yield _from_environment(f"kafka.ssl.{kind}.password")


def _from_environment(name: str, why: str = "") -> KafkaOption:
    """Return an option whose value is read from the environment."""
    return KafkaOption(name, name.upper().replace(".", "_"), from_environment=True, why=why)


def _login(kafka: KafkaConfig) -> Iterator[KafkaOption]:
    if "oauth_cb" in kafka:  # ``migrate.kafka.config`` sets this property for AWS_MSK_IAM
        yield from (KafkaOption(name, value) for name, value in _MSK_IAM.items())
        return
    mechanism = kafka.get("sasl.mechanisms", "GSSAPI")
    yield KafkaOption("kafka.sasl.mechanism", str(mechanism))
    yield _from_environment(
        "kafka.sasl.jaas.config",
        "The line of a Java login module: 'org.apache.kafka…LoginModule required …;'.",
    )


def _subscription(source: SourceStart) -> KafkaOption:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(source.next_offsets):
        topics.setdefault(topic, []).append(partition)
    if source.only_some_partitions:
        return KafkaOption("assign", json.dumps(topics, separators=(",", ":")))
    return KafkaOption("subscribe", ",".join(topics))


@dataclass(frozen=True, slots=True)
class Connector:
    """One version of the JAR file of Spark's Kafka connector.

    Attributes:
        coordinates: Maven coordinates: ``org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0``.
        is_guess: True if the user passed no version, and PySpark is not installed.
    """

    coordinates: str
    is_guess: bool


def kafka_connector(spark_version: str | None = None) -> Connector:
    """Return the connector for a Spark version; by default, for the installed PySpark's version.

    Raises:
        UsageError: ``spark_version`` is not a version.
    """
    if spark_version is not None and not _VERSION.fullmatch(spark_version):
        raise UsageError(
            f"{option('spark_version')} {spark_version!r}: expected a Spark version such as "
            f"{_DEFAULT_VERSION}"
        )
    known = spark_version or _installed()
    match = _VERSION.match(known or _DEFAULT_VERSION)
    assert match is not None
    scala = "2.13" if int(match[1]) >= 4 else "2.12"
    coordinates = f"org.apache.spark:spark-sql-kafka-0-10_{scala}:{match[0]}"
    return Connector(coordinates, is_guess=known is None)


def _installed() -> str | None:
    """Return the installed PySpark's version, or None, without the slow import of PySpark."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        installed = version("pyspark")
    except PackageNotFoundError:
        return None
    return installed if _VERSION.match(installed) else None
