"""The options of a move, each declared once.

The functions of ``migrate.moves`` take the options as keyword arguments.
``migrate.cli.typer_parameters`` makes the command line's options from them, and
``migrate.cutover.spec`` the keys of a spec.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import EnumMeta
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    get_args,
    get_type_hints,
)

from migrate.inputs.flink.choose_source import Choice
from migrate.model.errors import UsageError
from migrate.model.policies import (
    Gone,
    MergeSources,
    NewPartitions,
    OnBeyondEnd,
    OnExpired,
    Policies,
    parse_partitions,
    parse_topic_map,
    policies_of,
)
from migrate.model.positions import SPARK, Target
from migrate.storage.uris import local_path

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig

AnyPath: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option, except for its name and its type.

    Attributes:
        help: the text about the option in the command line's help.
        flags: the option's flags on the command line; by default its name, as ``--on-expired``.
        metavar: the placeholder for the value in the help; by default the possible values.
        panel: the section of the help that lists the option; None for the first section.
        read: converts the texts of a repeatable option to its value; None if the option is given
            at most once.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str | None = None
    read: Callable[[Iterable[str]], Any] | None = None


_KAFKA = "Kafka"
_READ = "What is read"
_MOVES = "What moves"
ALLOWED = "Instead of refusing"


def _read_properties(texts: Iterable[str]) -> dict[str, str]:
    from migrate.kafka.config.properties import read_arguments

    return read_arguments(texts)


class KafkaArguments(TypedDict, total=False):
    """How to reach Kafka: the arguments of every function that asks a broker."""

    bootstrap_servers: Annotated[
        str | None,
        Option(
            "The Kafka cluster that the job reads. Its log starts and ends are compared with the "
            "positions, and its partitions with those of the checkpoint. "
            "[env: MIGRATE_BOOTSTRAP_SERVERS]",
            flags=("--bootstrap-servers", "-b"),
            metavar="HOST:PORT,…",
        ),
    ]
    kafka_config: Annotated[
        AnyPath | None,
        Option(
            "A properties file of a Kafka client, Java's or librdkafka's: security and more. "
            "[env: MIGRATE_KAFKA_CONFIG]",
            metavar="FILE",
            panel=_KAFKA,
        ),
    ]
    kafka_properties: Annotated[
        Mapping[str, str] | None,
        Option(
            "One property of a Kafka client. Repeatable.",
            flags=("-X",),
            metavar="KEY=VALUE",
            panel=_KAFKA,
            read=_read_properties,
        ),
    ]


class ReadArguments(TypedDict, total=False):
    """How a checkpoint is read."""

    allow_external_files: Annotated[
        bool,
        Option(
            "Also open files that the checkpoint names outside of its own directories.", panel=_READ
        ),
    ]


class ChoiceArguments(ReadArguments, total=False):
    """Which source of a checkpoint is meant."""

    source: Annotated[
        str | None,
        Option("The Kafka source: its operator id, name, uid, or topic:NAME.", metavar="S"),
    ]
    cluster: Annotated[
        str | None,
        Option(
            "The Kafka cluster, by the id that a DynamicKafkaSource knows it by.",
            metavar="ID",
            panel=_READ,
        ),
    ]


class SideArguments(ChoiceArguments, KafkaArguments, total=False):
    """The arguments of a comparison: which source is meant, and how to reach Kafka."""


class MoveArguments(KafkaArguments, ChoiceArguments, total=False):
    """What moves, and what is allowed: by default nothing that loses or repeats records."""

    source_group: Annotated[
        str | None,
        Option(
            "The consumer group that the Flink job commits to. Its offsets resolve positions at "
            "'committed', and show whether the job ran on after the checkpoint.",
            metavar="G",
            panel=_MOVES,
        ),
    ]
    topic_map: Annotated[
        Mapping[str, str] | None,
        Option(
            "Topic OLD has the name NEW in the target. Repeatable.",
            metavar="OLD=NEW",
            panel=_MOVES,
            read=parse_topic_map,
        ),
    ]
    partitions: Annotated[
        Mapping[str, Iterable[int]] | None,
        Option(
            "Move these partitions alone. Repeatable.",
            metavar="TOPIC:0-3,5",
            panel=_MOVES,
            read=parse_partitions,
        ),
    ]
    topic_pattern: Annotated[
        str | None,
        Option(
            "The topic pattern of the job, a Java regular expression. Checkpoints do not hold it. "
            "Topics that match, and that the job had not discovered, are new partitions.",
            metavar="REGEX",
            panel=_MOVES,
        ),
    ]
    on_expired: Annotated[
        OnExpired | Literal["fail", "earliest"],
        Option("For a position below the log start.", metavar="HOW", panel=ALLOWED),
    ]
    on_beyond_end: Annotated[
        OnBeyondEnd | Literal["fail", "latest"],
        Option("For a position beyond the log end.", metavar="HOW", panel=ALLOWED),
    ]
    new_partitions: Annotated[
        NewPartitions | Literal["as-flink", "fail", "earliest", "latest"],
        Option(
            "For a partition that the checkpoint does not hold. as-flink: the log start if Flink "
            "would start there, else refused.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    gone: Annotated[
        Gone | Literal["fail", "skip"],
        Option("For a topic or partition that Kafka no longer has.", panel=ALLOWED),
    ]
    unresolved: Annotated[
        str,
        Option(
            "For a partition without an offset in the state: fail, earliest, latest, committed "
            "(by --source-group), timestamp:T (ISO 8601, or epoch milliseconds). [default: fail]",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    merge_sources: Annotated[
        MergeSources | Literal["fail", "min"],
        Option(
            "For sources that read one topic from different positions.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    one_cluster: Annotated[
        bool,
        Option("All sources that read one topic read it from one Kafka cluster.", panel=ALLOWED),
    ]
    allow_in_flight: Annotated[
        bool,
        Option(
            "Move although records in flight, or in a sink's open transactions, are lost.",
            panel=ALLOWED,
        ),
    ]
    allow_ran_on: Annotated[
        bool,
        Option(
            "Move although the job ran on after the checkpoint, or still runs: what it emitted "
            "since then is emitted again.",
            panel=ALLOWED,
        ),
    ]


def options_of(arguments: type) -> dict[str, tuple[Any, Option]]:
    """Return the options that a TypedDict of arguments declares: by name, the type and ``Option``.

    If an option has a fixed set of values, its type is their enum; the first member is the default.
    """
    options = {}
    for name, hint in get_type_hints(arguments, include_extras=True).items():
        declared, option = get_args(hint)
        kinds = [kind for kind in get_args(declared) if isinstance(kind, EnumMeta)]
        options[name] = (kinds[0] if kinds else declared, option)
    return options


@dataclass(frozen=True, slots=True)
class Kafka:
    """How to reach Kafka, as the user named it; ``kafka_properties`` are ``key=value`` texts."""

    bootstrap_servers: str | None = None
    kafka_config: Path | None = None
    kafka_properties: Sequence[str] = ()

    @property
    def is_named(self) -> bool:
        """Whether the user gave an option that reaches Kafka, so that a broker is asked.

        An empty address (of an unset shell variable) counts too; ``config`` refuses it.
        """
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
    def broker(self) -> KafkaConfig | None:
        """The properties of ``config``; None if the user named no broker."""
        return self.config() if self.is_named else None

    def config(self) -> KafkaConfig:
        """Return librdkafka's properties.

        Raises:
            ConfigError: the properties cannot be used.
        """
        from migrate.kafka.config import kafka_config

        # AWS's own tools read AWS_REGION, too.
        region = os.environ.get("AWS_REGION")
        return kafka_config(
            self.bootstrap_servers, self.kafka_config, self.kafka_properties, aws_region=region
        )


def check_names(arguments: Mapping[str, Any], kind: type) -> None:
    """Raise ``TypeError``, as Python does, for an argument that is no key of the TypedDict."""
    for name in arguments.keys() - kind.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {name!r}")


def kafka(arguments: KafkaArguments, kind: type = KafkaArguments) -> Kafka:
    """Return ``KafkaArguments`` as a ``Kafka``.

    Args:
        arguments: how to reach Kafka.
        kind: the TypedDict of all arguments that the calling function takes.

    Raises:
        TypeError: an argument is no key of ``kind``.
    """
    check_names(arguments, kind)
    file = arguments.get("kafka_config")
    properties = arguments.get("kafka_properties") or {}
    return Kafka(
        arguments.get("bootstrap_servers"),
        local_path(os.fspath(file)) if file is not None else None,
        [f"{name}={value}" for name, value in properties.items()],
    )


def choice(arguments: ChoiceArguments) -> Choice:
    """Return ``ChoiceArguments`` as a ``Choice``."""
    return Choice(
        arguments.get("allow_external_files", False),
        arguments.get("source"),
        arguments.get("cluster"),
    )


@dataclass(frozen=True, slots=True)
class Request(Choice):
    """What moves, and where to.

    Attributes:
        state_taken: the ids of the operators all of whose keyed state moves with the positions.
    """

    source_group: str | None = None
    chk: str | None = None
    target: Target = SPARK
    kafka: Kafka = Kafka()
    policies: Policies = Policies()
    state_taken: frozenset[str] = frozenset()


def move_request(chk: AnyPath | None, target: Target, arguments: MoveArguments) -> Request:
    """Return ``MoveArguments`` as a ``Request``.

    Raises:
        TypeError: an argument is no key of ``MoveArguments``.
        UsageError: an argument is malformed, or a group comes without a name or a broker.
    """
    brokers, chosen = kafka(arguments, MoveArguments), choice(arguments)
    if target.name == "":
        raise UsageError("--group: no name (an unset variable?)")
    if target.kind == "group" and not brokers.is_named:
        raise UsageError("commit-group needs a broker: add --bootstrap-servers HOST:PORT")
    return Request(
        chosen.allow_external_files,
        chosen.source,
        chosen.cluster,
        source_group=arguments.get("source_group"),
        chk=os.fspath(chk) if chk is not None else None,
        target=target,
        kafka=brokers,
        policies=policies_of(arguments),
    )
