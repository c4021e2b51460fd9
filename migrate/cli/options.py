"""Options that several commands share, and how their texts are read."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from migrate.errors import UsageError
from migrate.policies import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired

if TYPE_CHECKING:
    from migrate.api.arguments import KafkaArguments

_POLICIES = "What would lose or repeat records is refused unless allowed here"
KAFKA_PANEL = "Kafka"
# An option wins over the environment, and the environment is told: it must not pass unnoticed that
# a command asks a broker nobody named just now.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"

CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK",
        help="A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
        "(its newest complete chk-<n>); a local path, or s3://, gs://, abfs://, hdfs://, "
        "webhdfs://; none with --plan.",
        show_default=False,
    ),
]
Checkpoint = Annotated[
    str,
    typer.Argument(
        metavar="CHK",
        help="A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
        "(its newest complete chk-<n>); a local path, or s3://, gs://, abfs://, hdfs://, webhdfs://.",
        show_default=False,
    ),
]
SourceName = Annotated[
    str | None,
    typer.Option(
        "--source",
        metavar="S",
        help="The Kafka source to move: its operator id, name, uid, or topic:NAME.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ID",
        help="The Kafka cluster to move, by the id that a DynamicKafkaSource knows it by.",
        show_default=False,
    ),
]
SourceGroup = Annotated[
    str | None,
    typer.Option(
        metavar="G",
        help="Flink's own consumer group: resolves partitions still at 'committed', and shows "
        "whether the job ran on.",
        show_default=False,
    ),
]
BootstrapServers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="HOST:PORT,…",
        help="The Kafka cluster the job reads: resolves what the state leaves open, finds "
        "partitions the checkpoint does not know, and checks that the offsets are there. "
        f"[env: {_SERVERS_VARIABLE}, where no property names any]",
        show_default=False,
        rich_help_panel=KAFKA_PANEL,
    ),
]
KafkaConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        metavar="FILE",
        help="Properties of librdkafka, or of a Java client, in Java's syntax: a backslash is "
        f"written twice. [env: {_CONFIG_VARIABLE}]",
        show_default=False,
        rich_help_panel=KAFKA_PANEL,
    ),
]
KafkaProperties = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        help="One such property.",
        show_default=False,
        rich_help_panel=KAFKA_PANEL,
    ),
]
OnExpiredOption = Annotated[
    OnExpired,
    typer.Option(help="A position below the log start.", rich_help_panel=_POLICIES),
]
OnBeyondEndOption = Annotated[
    OnBeyondEnd,
    typer.Option(help="A position beyond the log end.", rich_help_panel=_POLICIES),
]
NewPartitionsOption = Annotated[
    NewPartitions,
    typer.Option(
        help="A partition the checkpoint does not know; as-flink: the log start where Flink would "
        "start it there, else refused.",
        rich_help_panel=_POLICIES,
    ),
]
GoneOption = Annotated[
    Gone,
    typer.Option(help="A topic or partition the broker lacks.", rich_help_panel=_POLICIES),
]
UnresolvedOption = Annotated[
    str,
    typer.Option(
        metavar="fail|earliest|latest|committed|timestamp:T",
        help="A position the state does not tell; committed: --source-group's; T: ISO 8601, or "
        "milliseconds of the epoch.",
        rich_help_panel=_POLICIES,
    ),
]
MergeSourcesOption = Annotated[
    MergeSources,
    typer.Option(
        help="Sources that read one topic from different positions.", rich_help_panel=_POLICIES
    ),
]
AllowInFlight = Annotated[
    bool,
    typer.Option(
        "--allow-in-flight",
        help="Lose the records in flight in an unaligned checkpoint.",
        rich_help_panel=_POLICIES,
    ),
]
AllowRanOn = Annotated[
    bool,
    typer.Option(
        "--allow-ran-on",
        help="Move although the job ran on; what Flink emitted since is repeated.",
        rich_help_panel=_POLICIES,
    ),
]
AllowExternalFiles = Annotated[
    bool,
    typer.Option(
        "--allow-external-files",
        help="Open files that the checkpoint names outside of its own directories: for one you "
        "trust, whose state was left elsewhere.",
    ),
]
TopicMap = Annotated[
    list[str] | None,
    typer.Option(
        "--topic-map",
        metavar="OLD=NEW",
        help="The target reads topic OLD of the checkpoint as NEW.",
        show_default=False,
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partitions",
        metavar="TOPIC:0-3,5",
        help="Move these alone.",
        show_default=False,
    ),
]


PlanFileToApply = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Apply a plan saved with --plan-out, unless the cluster or the job has moved "
        "meanwhile.",
        show_default=False,
    ),
]
PlanFileToWrite = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        help="Save the plan as JSON, to be reviewed and applied later; nothing else is written.",
        show_default=False,
    ),
]


def kafka(
    servers: str | None, file: Path | None, properties: Iterable[str] | None
) -> KafkaArguments:
    """How to reach Kafka: by the options, else by the environment, which is told then.

    Raises:
        ConfigError: a property is not of its form, or a file of them cannot be read.
    """
    from migrate.cli.telling import tell

    given = _properties(properties)
    its_servers = os.environ.get(_SERVERS_VARIABLE) if servers is None else None
    its_file = os.environ.get(_CONFIG_VARIABLE) if file is None else None
    if its_servers and not _names_brokers(file, properties, its_file):
        tell(f"{_SERVERS_VARIABLE} names the brokers: {its_servers}")
        servers = its_servers
    # How to log in is no reason to ask a broker: it takes one that is named.
    if its_file and (servers is not None or _names_brokers(None, properties, its_file)):
        tell(f"{_CONFIG_VARIABLE} names the file of Kafka properties: {its_file}")
        file = Path(its_file)
    return {"bootstrap_servers": servers, "kafka_config": file, "kafka_properties": given}


def _names_brokers(
    file: Path | None, properties: Iterable[str] | None, file_of_the_environment: str | None
) -> bool:
    from migrate.kafka_config import ConfigError, names_brokers

    if names_brokers(file, properties or ()):
        return True
    if not file_of_the_environment:
        return False
    try:
        return names_brokers(Path(file_of_the_environment), ())
    except ConfigError as error:
        raise ConfigError(f"{_CONFIG_VARIABLE}: {error}") from error


def _properties(arguments: Iterable[str] | None) -> dict[str, str]:
    """``-X KEY=VALUE`` arguments.

    Raises:
        ConfigError: one is not of that form.
    """
    if not arguments:
        return {}
    from migrate.kafka_config.read import read_arguments

    return read_arguments(arguments)


def topic_map(pairs: Iterable[str] | None) -> dict[str, str]:
    """``OLD=NEW`` arguments.

    Raises:
        UsageError: one is not of that form, or there are two of one topic.
    """
    topics: dict[str, str] = {}
    for pair in pairs or ():
        old, separator, new = pair.partition("=")
        if not (separator and old and new) or old in topics:
            raise UsageError(f"--topic-map {pair!r}: not OLD=NEW, two topics, each OLD once")
        topics[old] = new
    return topics


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# Kafka's own limit lies far below; it keeps a slip of the finger from filling the memory.
_MOST_PARTITIONS = 1_000_000


def partitions(given: Iterable[str] | None) -> dict[str, set[int]] | None:
    """``TOPIC:0-3,5`` arguments.

    Raises:
        UsageError: one is not of that form.
    """
    if given is None:
        return None
    wanted: dict[str, set[int]] = {}
    for text in given:
        topic, _, ranges = text.rpartition(":")
        matches = [_RANGE.fullmatch(part) for part in ranges.split(",")]
        numbers = wanted.setdefault(topic, set())
        for match in matches:
            if match is None or not topic:
                raise UsageError(f"--partitions {text!r}: not TOPIC:0-3,5")
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < first + _MOST_PARTITIONS:
                raise UsageError(f"--partitions {text!r}: not a range of partitions")
            numbers.update(range(first, last + 1))
    return wanted
