"""Run Spark to check the offsets at which a seeded query starts reading.

For each Kafka source in the checkpoint location, a query reads some records into a ``noop`` sink.
The query reads the topics in the source's seed (``sources/<n>/0``). It starts at the same offsets
as the user's query, because the offsets depend only on the seed. It runs on a copy of the seed, so
the location does not change.

Spark's options for Kafka are the Java client properties with the prefix ``kafka.``.
``kafka_options`` creates these options from librdkafka properties;
``migrate.kafka.config.java_client`` does the reverse.

Source: org.apache.kafka.clients.CommonClientConfigs, org.apache.kafka.common.config.{SslConfigs,
SaslConfigs} @ Kafka 3.9.1.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from decoder.storage import read_file
from migrate.inputs.offsets_json import topic_offsets
from migrate.inputs.spark_log import kafka_seeds
from migrate.inputs.spark_log_entries import seed_path
from migrate.kafka.config import MAX_STORE_BYTES, ConfigError, KafkaConfig, redact_secrets
from migrate.model.catalog import NO_KAFKA_SEED, STARTS_DIFFER_BETWEEN_SOURCES
from migrate.model.errors import InputError, QueryFailed, Refused, UsageError
from migrate.model.option_names import option
from migrate.model.positions import PositionSet, TopicPartition
from migrate.model.wording import install_command
from migrate.spark.session import last_lines, summarize_failure
from migrate.storage.files import Files
from migrate.storage.new_file import add_path_to_errors

# The number of records to read: enough to prove that records can be read, and few enough to be
# read quickly.
_RECORDS = 1000
_JAVA_NAMES = {
    "bootstrap.servers": "bootstrap.servers",
    "client.id": "client.id",
    "sasl.kerberos.service.name": "sasl.kerberos.service.name",
    "sasl.mechanism": "sasl.mechanism",
    "sasl.mechanisms": "sasl.mechanism",
    "security.protocol": "security.protocol",
    "ssl.ca.pem": "ssl.truststore.certificates",
    "ssl.certificate.pem": "ssl.keystore.certificate.chain",
    "ssl.key.password": "ssl.key.password",
    "ssl.key.pem": "ssl.keystore.key",
    "ssl.keystore.location": "ssl.keystore.location",
    "ssl.keystore.password": "ssl.keystore.password",
}
# librdkafka properties that take a file path; the Java properties take the file's contents.
_FILES = {
    "ssl.ca.location": "ssl.truststore.certificates",
    "ssl.certificate.location": "ssl.keystore.certificate.chain",
    "ssl.key.location": "ssl.keystore.key",
}
_CREDENTIALS = ("sasl.username", "sasl.password")
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"'})
_IDENTIFICATION = "ssl.endpoint.identification.algorithm"
# A property with one of these prefixes is an error if it cannot be translated. Without the
# property, Spark would authenticate as a different user, or trust any server.
_MUST_BE_KNOWN = ("sasl.", "security.", "ssl.", "enable.ssl.", "oauth")
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True, slots=True)
class Resume:
    """The result of the first batches: Spark version, planned starts, and number of records."""

    spark: str
    start_positions: PositionSet
    records: int


def check_pyspark() -> None:
    """Raise UsageError if PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise UsageError(
            f"PySpark is not installed, but {option('run', True)} and verify-state require it; "
            f"install it with {install_command('spark')}"
        )


def run_first_batch(
    label: str, directory: str, kafka: KafkaConfig, spark_conf: Mapping[str, str]
) -> Resume:
    """Run the first micro-batch of a query for each seed in a checkpoint location.

    Args:
        label: the name of the positions in messages.
        directory: the checkpoint location, which is not changed.
        kafka: the librdkafka properties.
        spark_conf: the Spark settings, such as ``spark.jars.packages``.

    Raises:
        UsageError: PySpark, Java, or the Kafka connector is missing, or a setting is not valid.
        QueryFailed: the first batch of a query failed or timed out.
        ConfigError: a property cannot be translated to a Spark option.
        InputError: the directory has no seed for a Kafka source, or a seed is damaged.
        Refused: two sources start the same partition at different offsets.
        OSError: a temporary file cannot be written.
    """
    check_pyspark()
    files = Files()
    seeds = kafka_seeds(directory, files)
    if not seeds:
        raise InputError(NO_KAFKA_SEED(location=directory))
    options = {**kafka_options(kafka), "maxOffsetsPerTrigger": str(_RECORDS)}
    with tempfile.TemporaryDirectory(prefix="migrate-resume-") as work:
        queries = []
        for source, seed in seeds.items():
            copy = Path(work, source)
            with add_path_to_errors(copy):
                _write_seed(files.read(seed_path(directory, source)), copy)
            topics = ",".join(sorted({topic for topic, _ in seed}))
            # Use "latest", because a query that ignored its seed would then read nothing.
            query_options = {**options, "subscribe": topics, "startingOffsets": "latest"}
            queries.append({"checkpoint": str(copy), "options": query_options})
        properties = {**kafka, **spark_conf}
        answer = _run({"conf": dict(spark_conf), "queries": queries}, properties)
    starts: dict[TopicPartition, int] = {}
    for batch in answer["batches"]:
        for (topic, partition), start in topic_offsets(batch["start"]).items():
            if starts.setdefault((topic, partition), start) != start:
                name = f"{topic}-{partition}"
                raise Refused(STARTS_DIFFER_BETWEEN_SOURCES(query=label, partition=name))
    records = sum(batch["records"] for batch in answer["batches"])
    return Resume(answer["spark"], PositionSet(label, starts, "as Spark planned it"), records)


def _write_seed(seed: bytes, checkpoint: Path) -> None:
    """Write the checkpoint location of a new query with one source."""
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_bytes(seed)
    metadata = json.dumps({"id": str(uuid.uuid4())}, separators=(",", ":"))
    (checkpoint / "metadata").write_text(metadata, encoding="ascii")


def _run(request: Mapping[str, Any], properties: KafkaConfig) -> dict[str, Any]:
    """Send a request to a new process of ``first_batch``, and return the answer.

    The secret values of ``properties`` are removed from messages.
    """
    done = subprocess.run(
        [sys.executable, "-m", "migrate.spark.first_batch"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
    )
    output = last_lines(redact_secrets(done.stderr, properties))
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise UsageError(f"Spark did not start: {output}") from error
    if "failed" not in answer:
        return answer
    message = summarize_failure(redact_secrets(answer["message"], properties))
    if answer["failed"] == "start":
        raise UsageError(f"Spark did not start: {message} ({output})")
    if "Failed to find data source: kafka" in answer["message"]:
        packages = option("spark_conf", {"spark.jars.packages": "…"})
        raise UsageError(f"{message.rstrip('.')}; pass the Kafka connector with {packages}")
    raise QueryFailed(message)


def kafka_options(config: KafkaConfig) -> dict[str, str]:
    """Return the ``kafka.*`` options with which Spark connects in the same way as librdkafka.

    Properties that only tune librdkafka are omitted.

    Raises:
        ConfigError: a property for a credential or a certificate, or a non-string property, cannot
            be translated; or a file cannot be read.
    """
    texts = {name: value for name, value in config.items() if isinstance(value, str)}
    java: dict[str, str] = {}
    for name, value in texts.items():
        if name in _JAVA_NAMES:
            java[_JAVA_NAMES[name]] = value
        elif name in _FILES:
            java[_FILES[name]] = _read_pem(name, value)
        elif name == _IDENTIFICATION:
            java[name] = "" if value == "none" else value
        elif name not in _CREDENTIALS and name.startswith(_MUST_BE_KNOWN):
            raise _untranslatable(name)
    for name in config.keys() - texts.keys():
        raise _untranslatable(name)
    if "ssl.truststore.certificates" in java:
        java["ssl.truststore.type"] = "PEM"
    if "ssl.keystore.key" in java:
        java["ssl.keystore.type"] = "PEM"
    elif "ssl.keystore.location" in java:
        java["ssl.keystore.type"] = "PKCS12"
    if any(name in texts for name in _CREDENTIALS):
        java["sasl.jaas.config"] = _jaas_config(java.get("sasl.mechanism", ""), texts)
    return {f"kafka.{name}": value for name, value in java.items()}


def _jaas_config(mechanism: str, texts: Mapping[str, str]) -> str:
    module = _LOGIN_MODULES.get(mechanism.upper())
    if module is None:
        raise _untranslatable(f"sasl.mechanism {mechanism}")
    # Values are quoted for java.io.StreamTokenizer, because the Java client parses them with it.
    escaped = {name: texts[name].translate(_ESCAPES) for name in _CREDENTIALS if name in texts}
    options = " ".join(f'{name.removeprefix("sasl.")}="{value}"' for name, value in escaped.items())
    return f"{module} required {options};"


def _read_pem(name: str, path: str) -> str:
    try:
        return read_file(path, MAX_STORE_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a PEM file"
        raise ConfigError(f"{name}: the file {path} cannot be read: {reason}") from error


def _untranslatable(name: str) -> ConfigError:
    return ConfigError(
        f"{name} has no equivalent in Spark's Kafka source, so Spark cannot use this property; "
        f"omit {option('run', True)}"
    )
