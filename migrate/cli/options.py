"""Options that several commands share, and what they mean together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated

import typer

from migrate.cli.errors import UsageError
from migrate.kafka_config import KafkaConfig, kafka_config
from migrate.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    Unresolved,
)

_POLICIES = "What would lose or repeat records is refused unless allowed here"
_KAFKA = "Kafka"

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
        "partitions the checkpoint does not know, and checks that the offsets are there.",
        show_default=False,
        rich_help_panel=_KAFKA,
    ),
]
KafkaConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        metavar="FILE",
        help="Properties of librdkafka, or of a Java client, in Java's syntax: a backslash is "
        "written twice.",
        show_default=False,
        rich_help_panel=_KAFKA,
    ),
]
KafkaProperties = Annotated[
    list[str] | None,
    typer.Option(
        "-X",
        metavar="KEY=VALUE",
        help="One such property.",
        show_default=False,
        rich_help_panel=_KAFKA,
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


@dataclass(frozen=True, slots=True)
class PolicyOptions:
    """The policy flags as they were given."""

    on_expired: OnExpired
    on_beyond_end: OnBeyondEnd
    new_partitions: NewPartitions
    gone: Gone
    unresolved: str
    merge_sources: MergeSources
    allow_in_flight: bool
    allow_ran_on: bool
    topic_map: list[str] | None
    partitions: list[str] | None

    def policies(self) -> Policies:
        """What they mean.

        Raises:
            UsageError: one of them is not of its form.
        """
        unresolved, since = _unresolved(self.unresolved)
        return Policies(
            self.on_expired,
            self.on_beyond_end,
            self.new_partitions,
            self.gone,
            unresolved,
            since,
            self.merge_sources,
            self.allow_in_flight,
            self.allow_ran_on,
            _topic_map(self.topic_map or ()),
            _partitions(self.partitions),
        )


def _unresolved(text: str) -> tuple[Unresolved, int | None]:
    kind, separator, time = text.partition(":")
    if separator and kind == Unresolved.TIMESTAMP.value:
        return Unresolved.TIMESTAMP, _milliseconds(time)
    try:
        unresolved = Unresolved(text)
    except ValueError:
        unresolved = Unresolved.TIMESTAMP
    if unresolved is Unresolved.TIMESTAMP:
        raise UsageError(
            f"--unresolved {text!r}: one of fail, earliest, latest, committed, timestamp:T"
        )
    return unresolved, None


def _milliseconds(text: str) -> int:
    """Milliseconds of the epoch, given as such or as ISO 8601 (UTC where it names no zone)."""
    if text.isdecimal():
        since = int(text)
    else:
        try:
            time = datetime.fromisoformat(text.replace("Z", "+00:00"))
        except ValueError as error:
            raise UsageError(f"--unresolved timestamp:{text}: not a time of ISO 8601") from error
        if time.tzinfo is None:
            time = time.replace(tzinfo=timezone.utc)
        since = int(time.timestamp() * 1000)
    # Kafka takes negative ones for markers: -1 for its log end, say (ListOffsetsRequest @ 4.1.1).
    if not 0 <= since < 2**63:
        raise UsageError(f"--unresolved timestamp:{text}: no record can have this time")
    return since


# Another name would be several in Spark's `subscribe`, or several lines of its options.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _topic_map(pairs: Iterable[str]) -> dict[str, str]:
    topics: dict[str, str] = {}
    for pair in pairs:
        old, separator, new = pair.partition("=")
        if not (separator and old and _TOPIC.fullmatch(new)) or old in topics:
            raise UsageError(f"--topic-map {pair!r}: not OLD=NEW, two topics, each OLD once")
        topics[old] = new
    if len(set(topics.values())) != len(topics):
        raise UsageError("--topic-map: two topics under one name")
    return topics


_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
# Kafka's own limit lies far below; it keeps a slip of the finger from filling the memory.
_MOST_PARTITIONS = 1_000_000


def _partitions(given: list[str] | None) -> dict[str, frozenset[int]] | None:
    if given is None:
        return None
    wanted: dict[str, frozenset[int]] = {}
    for text in given:
        topic, _, ranges = text.rpartition(":")
        matches = [_RANGE.fullmatch(part) for part in ranges.split(",")]
        numbers: set[int] = set()
        for match in matches:
            if match is None or not topic:
                raise UsageError(f"--partitions {text!r}: not TOPIC:0-3,5")
            first, last = int(match[1]), int(match[2] or match[1])
            if not first <= last < first + _MOST_PARTITIONS:
                raise UsageError(f"--partitions {text!r}: not a range of partitions")
            numbers.update(range(first, last + 1))
        wanted[topic] = wanted.get(topic, frozenset()) | numbers
    return wanted


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """How to reach Kafka, as it was given."""

    bootstrap_servers: str | None
    file: Path | None
    properties: list[str] | None

    @property
    def given(self) -> bool:
        """Whether a broker is to be asked. An address that is empty (an unset variable of a shell)
        was meant as one: kafka_config refuses it."""
        return any(value is not None for value in (self.bootstrap_servers, self.file)) or bool(
            self.properties
        )

    def config(self) -> KafkaConfig:
        """librdkafka's properties.

        Raises:
            ConfigError: they cannot be used as given.
        """
        # AWS_REGION is what AWS's own tools go by.
        return kafka_config(
            self.bootstrap_servers,
            self.file,
            self.properties or (),
            aws_region=os.environ.get("AWS_REGION"),
        )
