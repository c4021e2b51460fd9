"""What the calls take alike: the flags of the command line, as keyword arguments."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, TypeVar

from migrate.errors import UsageError
from migrate.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    Unresolved,
)

if TYPE_CHECKING:
    from typing import TypeAlias

    from migrate.kafka_config import KafkaConfig

    AnyPath: TypeAlias = str | os.PathLike[str]


class KafkaArguments(TypedDict, total=False):
    """How to reach Kafka: what all calls that ask a broker take.

    Attributes:
        bootstrap_servers: ``host:port`` of some brokers, with commas between.
        kafka_config: a file of librdkafka's properties, or of a Java client's.
        kafka_properties: such properties by name, over those of the file.
    """

    bootstrap_servers: str | None
    kafka_config: AnyPath | None
    kafka_properties: Mapping[str, str] | None


class MoveArguments(KafkaArguments, total=False):
    """What moves, and what is allowed: by default nothing that would lose or repeat records.

    Attributes:
        source: the Kafka source to move: its operator id, name, uid, or ``topic:NAME``.
        cluster: the Kafka cluster to move, by the id that a DynamicKafkaSource knows it by.
        source_group: Flink's own consumer group.
        topic_map: the target's names of topics, by their names in the checkpoint.
        partitions: the partitions to move, by topic; all of them by default.
        allow_external_files: open files that the checkpoint names outside of its own directories.
        on_expired: a position below the log start.
        on_beyond_end: a position beyond the log end.
        new_partitions: a partition the checkpoint does not know.
        gone: a topic or partition the broker lacks.
        unresolved: a position the state does not tell: ``fail``, ``earliest``, ``latest``,
            ``committed``, or ``timestamp:T`` with T in ISO 8601 or milliseconds of the epoch.
        merge_sources: sources that read one topic from different positions.
        allow_in_flight: lose the records in flight in an unaligned checkpoint.
        allow_ran_on: move although the job ran on; what Flink emitted since is repeated.
    """

    source: str | None
    cluster: str | None
    source_group: str | None
    topic_map: Mapping[str, str] | None
    partitions: Mapping[str, Iterable[int]] | None
    allow_external_files: bool
    on_expired: OnExpired | Literal["fail", "earliest"]
    on_beyond_end: OnBeyondEnd | Literal["fail", "latest"]
    new_partitions: NewPartitions | Literal["as-flink", "fail", "earliest", "latest"]
    gone: Gone | Literal["fail", "skip"]
    unresolved: str
    merge_sources: MergeSources | Literal["fail", "min"]
    allow_in_flight: bool
    allow_ran_on: bool


@dataclass(frozen=True, slots=True)
class Kafka:
    """How to reach Kafka, as it was given; ``properties`` are ``key=value`` texts."""

    bootstrap_servers: str | None
    file: Path | None
    properties: Sequence[str] = ()

    @property
    def given(self) -> bool:
        """Whether a broker is to be asked. An address that is empty (an unset variable of a shell)
        was meant as one: kafka_config refuses it."""
        return (self.bootstrap_servers, self.file) != (None, None) or bool(self.properties)

    @property
    def asked(self) -> str | None:
        """The brokers that are asked, as they are named; None where none is to be.

        Raises:
            ConfigError: as ``config``.
        """
        return str(self.config()["bootstrap.servers"]) if self.given else None

    def config(self) -> KafkaConfig:
        """librdkafka's properties.

        Raises:
            ConfigError: they cannot be used as given.
        """
        from migrate.kafka_config import kafka_config

        # AWS_REGION is what AWS's own tools go by.
        region = os.environ.get("AWS_REGION")
        return kafka_config(self.bootstrap_servers, self.file, self.properties, aws_region=region)


def kafka(
    bootstrap_servers: str | None = None,
    kafka_config: AnyPath | None = None,
    kafka_properties: Mapping[str, str] | None = None,
) -> Kafka:
    """What ``KafkaArguments`` mean."""
    return Kafka(
        bootstrap_servers,
        Path(kafka_config) if kafka_config is not None else None,
        [f"{name}={value}" for name, value in (kafka_properties or {}).items()],
    )


@dataclass(frozen=True, slots=True)
class Request:
    """What is to move, and where to; ``target_group`` is None for Spark."""

    chk: str | None
    target_group: str | None
    source: str | None
    cluster: str | None
    source_group: str | None
    kafka: Kafka
    policies: Policies
    allow_external_files: bool


def move_request(
    chk: AnyPath | None,
    group: str | None,
    *,
    source: str | None = None,
    cluster: str | None = None,
    source_group: str | None = None,
    topic_map: Mapping[str, str] | None = None,
    partitions: Mapping[str, Iterable[int]] | None = None,
    allow_external_files: bool = False,
    on_expired: str = OnExpired.FAIL,
    on_beyond_end: str = OnBeyondEnd.FAIL,
    new_partitions: str = NewPartitions.AS_FLINK,
    gone: str = Gone.FAIL,
    unresolved: str = Unresolved.FAIL,
    merge_sources: str = MergeSources.FAIL,
    allow_in_flight: bool = False,
    allow_ran_on: bool = False,
    bootstrap_servers: str | None = None,
    kafka_config: AnyPath | None = None,
    kafka_properties: Mapping[str, str] | None = None,
) -> Request:
    """What ``MoveArguments`` mean.

    Raises:
        UsageError: one of them is not of its form.
    """
    asked = kafka(bootstrap_servers, kafka_config, kafka_properties)
    if group == "":
        raise UsageError("--group: no name (an unset variable?)")
    if group is not None and not asked.given:
        raise UsageError("commit-group needs a broker: add --bootstrap-servers HOST:PORT")
    kind, since = _unresolved(unresolved)
    return Request(
        os.fspath(chk) if chk is not None else None,
        group,
        source,
        cluster,
        source_group,
        asked,
        Policies(
            one_of(OnExpired, "--on-expired", on_expired),
            one_of(OnBeyondEnd, "--on-beyond-end", on_beyond_end),
            one_of(NewPartitions, "--new-partitions", new_partitions),
            one_of(Gone, "--gone", gone),
            kind,
            since,
            one_of(MergeSources, "--merge-sources", merge_sources),
            allow_in_flight,
            allow_ran_on,
            _topic_map(topic_map or {}),
            _partitions(partitions),
        ),
        allow_external_files,
    )


_Choice = TypeVar("_Choice", bound=Enum)


def one_of(choices: type[_Choice], option: str, value: str) -> _Choice:
    """A value of an option that has a few.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return choices(value)
    except ValueError as error:
        known = ", ".join(choice.value for choice in choices)
        raise UsageError(f"{option} {value!r}: one of {known}") from error


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
    try:
        if text.isdecimal():
            since = int(text)
        else:
            time = datetime.fromisoformat(text.replace("Z", "+00:00"))
            if time.tzinfo is None:
                time = time.replace(tzinfo=timezone.utc)
            since = int(time.timestamp() * 1000)
    except ValueError as error:  # of int(), too: it takes no more than 4300 digits
        raise UsageError(f"--unresolved timestamp:{text}: not a time of ISO 8601") from error
    # Kafka takes negative ones for markers: -1 for its log end, say (ListOffsetsRequest @ 4.1.1).
    if not 0 <= since < 2**63:
        raise UsageError(f"--unresolved timestamp:{text}: no record can have this time")
    return since


# Another name would be several in Spark's `subscribe`, or several lines of its options.
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def _topic_map(topics: Mapping[str, str]) -> dict[str, str]:
    for old, new in topics.items():
        if not (old and _TOPIC.fullmatch(new)):
            raise UsageError(f"--topic-map {old}={new}: not two topics")
    if len(set(topics.values())) != len(topics):
        raise UsageError("--topic-map: two topics under one name")
    return dict(topics)


def _partitions(
    wanted: Mapping[str, Iterable[int]] | None,
) -> dict[str, frozenset[int]] | None:
    if wanted is None:
        return None
    return {topic: frozenset(numbers) for topic, numbers in wanted.items()}
