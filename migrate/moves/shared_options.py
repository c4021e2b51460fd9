"""What the calls take alike: options of the command line, as keyword arguments."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from migrate.inputs.flink.choose_source import Choice, Reading
from migrate.model.errors import UsageError
from migrate.model.option_declaration import accept, option, options_of
from migrate.model.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    policies_of,
)
from migrate.model.positions import SPARK, Target
from migrate.storage.files import local_path

if TYPE_CHECKING:
    from typing import TypeAlias

    from migrate.kafka.config import KafkaConfig

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


class ReadArguments(TypedDict, total=False):
    """How a checkpoint is read.

    Attributes:
        allow_external_files: open files that the checkpoint names outside of its own directories.
    """

    allow_external_files: bool


class ChoiceArguments(ReadArguments, total=False):
    """Which source of a checkpoint is meant.

    Attributes:
        source: the Kafka source: its operator id, name, uid, or ``topic:NAME``.
        cluster: the Kafka cluster, by the id that a DynamicKafkaSource knows it by.
    """

    source: str | None
    cluster: str | None


class SideArguments(KafkaArguments, ChoiceArguments, total=False):
    """What positions are compared."""


class MoveArguments(SideArguments, total=False):
    """What moves, and what is allowed: by default nothing that would lose or repeat records.

    Attributes:
        source_group: Flink's own consumer group.
        topic_map: the target's names of topics, by their names in what is moved.
        partitions: the partitions to move, by topic; all of them by default.
        topic_pattern: the pattern, as Java has it, by which the job finds its topics.
        on_expired: a position below the log start.
        on_beyond_end: a position beyond the log end.
        new_partitions: a partition the checkpoint does not know.
        gone: a topic or partition the broker lacks.
        unresolved: a position the state does not tell: ``fail``, ``earliest``, ``latest``,
            ``committed``, or ``timestamp:T`` with T in ISO 8601 or milliseconds of the epoch.
        merge_sources: sources that read one topic from different positions.
        one_cluster: sources that read one topic, and whose state names no Kafka cluster, read the
            same one.
        allow_in_flight: lose the records in flight in an unaligned checkpoint.
        allow_ran_on: move although the job ran on; what Flink emitted since is repeated.
    """

    source_group: str | None
    topic_map: Mapping[str, str] | None
    partitions: Mapping[str, Iterable[int]] | None
    topic_pattern: str | None
    on_expired: OnExpired | Literal["fail", "earliest"]
    on_beyond_end: OnBeyondEnd | Literal["fail", "latest"]
    new_partitions: NewPartitions | Literal["as-flink", "fail", "earliest", "latest"]
    gone: Gone | Literal["fail", "skip"]
    unresolved: str
    merge_sources: MergeSources | Literal["fail", "min"]
    one_cluster: bool
    allow_in_flight: bool
    allow_ran_on: bool


def _read_properties(texts: Iterable[str]) -> dict[str, str]:
    from migrate.kafka.config.properties import read_arguments

    return read_arguments(texts)


@dataclass(frozen=True, slots=True)
class Kafka:
    """How to reach Kafka, as it was given; ``kafka_properties`` are ``key=value`` texts."""

    bootstrap_servers: str | None = option(
        None,
        flags=("--bootstrap-servers", "-b"),
        metavar="HOST:PORT,…",
        help="The Kafka cluster that the job reads: checks that the offsets are there, and finds "
        "partitions that the checkpoint does not know. [env: MIGRATE_BOOTSTRAP_SERVERS]",
    )
    kafka_config: Path | None = option(
        None,
        metavar="FILE",
        help="Kafka properties, librdkafka's or a Java client's, in Java's syntax. "
        "[env: MIGRATE_KAFKA_CONFIG]",
        panel="Kafka",
        check=lambda file: local_path(os.fspath(file)) if file is not None else None,
    )
    kafka_properties: Sequence[str] = option(
        (),
        flags=("-X",),
        metavar="KEY=VALUE",
        help="One such property. Repeatable.",
        panel="Kafka",
        repeatable=True,
        read=_read_properties,
        check=lambda given: [f"{name}={value}" for name, value in (given or {}).items()],
    )

    @property
    def given(self) -> bool:
        """Whether a broker is to be asked. An address that is empty (an unset variable of a shell)
        was meant as one: kafka_config refuses it."""
        named = (self.bootstrap_servers, self.kafka_config) != (None, None)
        return named or bool(self.kafka_properties)

    @property
    def names_brokers(self) -> bool:
        """Whether the address, the file or a property names brokers.

        Raises:
            ConfigError: the file cannot be read.
        """
        from migrate.kafka.config import names_brokers

        return self.bootstrap_servers is not None or names_brokers(
            self.kafka_config, self.kafka_properties
        )

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
        from migrate.kafka.config import kafka_config

        # AWS_REGION is what AWS's own tools go by.
        region = os.environ.get("AWS_REGION")
        return kafka_config(
            self.bootstrap_servers, self.kafka_config, self.kafka_properties, aws_region=region
        )


def check_names(arguments: Mapping[str, Any], kind: type) -> None:
    """Raise ``TypeError`` for an argument that calls of this kind do not take, as Python does."""
    for name in arguments:
        if not any(name in options_of(one) for one in DECLARED_BY[kind]):
            raise TypeError(f"unexpected keyword argument {name!r}")


def kafka(arguments: KafkaArguments, kind: type = KafkaArguments) -> Kafka:
    """What ``KafkaArguments`` mean.

    Args:
        kind: what the call takes, these among others.
    """
    check_names(arguments, kind)
    return Kafka(**accept(Kafka, arguments))


def choice(arguments: ChoiceArguments) -> Choice:
    """What ``ChoiceArguments`` mean."""
    return Choice(**accept(Choice, arguments))


@dataclass(frozen=True, slots=True)
class Request(Choice):
    """What is to move, and where to."""

    source_group: str | None = option(
        None,
        metavar="G",
        panel="What moves",
        help="Flink's own consumer group: resolves partitions at 'committed', and shows whether "
        "the job ran on.",
    )
    chk: str | None = None
    target: Target = SPARK
    kafka: Kafka = Kafka()
    policies: Policies = Policies()
    # Operators whose keyed state goes along, by id.
    state_taken: frozenset[str] = frozenset()


# What the options of each kind of arguments are declared by.
DECLARED_BY: Mapping[type, Sequence[type]] = {
    KafkaArguments: (Kafka,),
    ReadArguments: (Reading,),
    SideArguments: (Choice, Kafka),
    MoveArguments: (Kafka, Request, Policies),
}


def move_request(chk: AnyPath | None, target: Target, arguments: MoveArguments) -> Request:
    """What ``MoveArguments`` mean.

    Raises:
        UsageError: one of them is not of its form.
    """
    asked = kafka(arguments, MoveArguments)
    if target.name == "":
        raise UsageError("--group: no name (an unset variable?)")
    if target.kind == "group" and not asked.given:
        raise UsageError("commit-group needs a broker: add --bootstrap-servers HOST:PORT")
    return Request(
        **accept(Request, arguments),
        chk=os.fspath(chk) if chk is not None else None,
        target=target,
        kafka=asked,
        policies=policies_of(arguments),
    )
