"""The options of a move, each of which is declared once.

The functions of ``migrate.moves`` take the options as keyword arguments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from decoder.storage import METADATA_FILE
from decoder.urls import redact_url
from migrate.inputs.ask_broker import broker_needed
from migrate.inputs.flink.choose_source import Choice
from migrate.model.errors import UsageError
from migrate.model.log import log
from migrate.model.option_names import option
from migrate.model.policies import (
    Compare,
    Gone,
    MergeSources,
    NewPartitions,
    OnAmbiguous,
    OnBeyondEnd,
    OnExpired,
    Policies,
    parse_choice,
    parse_partitions,
    parse_topic_map,
    policies_of,
)
from migrate.model.positions import GROUP_PREFIX, SPARK, SPARK_PREFIX, Target, prefix_advice
from migrate.model.wording import parse_duration, why_mistyped
from migrate.moves.declare_options import READ, Option, ReadArguments, check_combinations
from migrate.storage.uris import AnyPath, is_uri, local_path

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig
    from migrate.planning import Plan

_KAFKA = "Kafka"
_MOVES = "What moves"
ALLOWED = "Instead of refusing"
OTHER_CLUSTER = "Another cluster"
CHECKED = "What is checked"
QUERY = "The query"
_SPARK = "Spark"
# If any of these options is passed, the target reads from a different cluster.
_OF_TARGET = ("to_kafka_config", "to_bootstrap_servers")


def _read_properties(texts: Iterable[str]) -> dict[str, str]:
    from migrate.kafka.config.properties import read_arguments

    return read_arguments(texts)


def spark_settings(texts: Iterable[str]) -> dict[str, str]:
    """Parse ``spark.KEY=VALUE`` strings.

    Raises:
        UsageError: a string does not have this format.
    """
    settings = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.startswith("spark."):
            # Without "=", the text may be a secret value, so the message does not show it.
            name = f"{option('spark_conf')} {key}" if equals else option("spark_conf")
            raise UsageError(f"{name}: expected spark.KEY=VALUE")
        settings[key] = value
    return settings


class KafkaArguments(TypedDict, total=False):
    """The Kafka connection arguments of every function that queries a broker."""

    bootstrap_servers: Annotated[
        str | None,
        Option(
            "Connect to the Kafka cluster that the job reads. migrate checks that the log "
            "contains each position, and that the checkpoint contains each partition of the "
            "topics. [env: MIGRATE_BOOTSTRAP_SERVERS]",
            flags=("--bootstrap-servers", "-b"),
            metavar="HOST:PORT,…",
        ),
    ]
    kafka_config: Annotated[
        AnyPath | None,
        Option(
            "Read Kafka client properties, such as security settings, from a file. Both Java and "
            "librdkafka property names are accepted. [env: MIGRATE_KAFKA_CONFIG]",
            metavar="FILE",
            panel=_KAFKA,
        ),
    ]
    kafka_properties: Annotated[
        Mapping[str, str] | None,
        Option(
            "Set one Kafka client property. Repeatable.",
            flags=("-X",),
            metavar="KEY=VALUE",
            panel=_KAFKA,
            read=_read_properties,
        ),
    ]


class ToKafkaArguments(TypedDict, total=False):
    """The connection to the target's cluster, if it is different from the job's cluster."""

    to_bootstrap_servers: Annotated[
        str | None,
        Option(
            "Connect to the Kafka cluster that the target reads, if it is not the job's cluster. "
            "migrate finds each position in that cluster by matching the surrounding records. If "
            "migrate cannot find a position, it refuses the move.",
            metavar="HOST:PORT,…",
            panel=OTHER_CLUSTER,
        ),
    ]
    to_kafka_config: Annotated[
        AnyPath | None,
        Option(
            "Read the Kafka client properties for the target's cluster from a file.",
            metavar="FILE",
            panel=OTHER_CLUSTER,
        ),
    ]


class ConnectionArguments(KafkaArguments, ToKafkaArguments, total=False):
    """The connections to the job's cluster and to the target's cluster."""


class ChoiceArguments(ReadArguments, total=False):
    """The choice of a source in a checkpoint."""

    source: Annotated[
        str | None,
        Option(
            "Choose the Kafka source by its operator ID, name, uid, or topic:NAME.", metavar="S"
        ),
    ]
    cluster: Annotated[
        str | None,
        Option(
            "Choose the Kafka cluster by its ID in the DynamicKafkaSource.",
            metavar="ID",
            panel=READ,
        ),
    ]


class SideArguments(ChoiceArguments, ConnectionArguments, total=False):
    """The arguments of a comparison: the choice of a source, and the connections to Kafka."""


class DiffArguments(SideArguments, total=False):
    """The arguments of ``diff``."""

    topic_map: Annotated[
        Mapping[str, str] | None,
        Option(
            "Match LEFT's topic OLD with topic NEW in RIGHT's cluster. Repeatable.",
            metavar="OLD=NEW",
            panel=OTHER_CLUSTER,
            read=parse_topic_map,
            requires=_OF_TARGET,
        ),
    ]


class VerifyArguments(SideArguments, total=False):
    """The arguments of ``verify`` for a run of Spark, and those of ``SideArguments``."""

    run: Annotated[
        bool,
        Option(
            "Run Spark on a copy of spark:DIR, and check the start offsets of its first batch. "
            "The batch reads at most 1000 records and discards them.",
            panel=_SPARK,
        ),
    ]
    spark_conf: Annotated[
        Mapping[str, str] | None,
        Option(
            "Set a Spark property. [default: spark.jars.packages with the "
            "Kafka connector for the PySpark version]",
            metavar="KEY=VALUE",
            panel=_SPARK,
            read=spark_settings,
            requires=("run",),
        ),
    ]


class SinkArguments(TypedDict, total=False):
    """The sink of a new Spark query."""

    sink: Annotated[
        AnyPath | None,
        Option(
            "Check the query's output files or table. The move is refused if this sink would "
            "skip the first batches.",
            metavar="DIR",
        ),
    ]
    sink_writer: Annotated[
        str | None,
        Option(
            "The query's name in the sink. For Hudi, this is the checkpoint identifier, and for "
            "Delta, the txnAppId.",
            metavar="NAME",
            panel=QUERY,
            requires=("sink",),
        ),
    ]


class MoveArguments(ConnectionArguments, ChoiceArguments, total=False):
    """The options of a move. By default, a move must not lose or duplicate records."""

    source_group: Annotated[
        str | None,
        Option(
            "Pass the consumer group that the Flink job commits to. Its offsets supply "
            "the positions that are stored as 'committed', and show whether the job kept "
            "running after the checkpoint.",
            metavar="G",
            panel=_MOVES,
        ),
    ]
    flink_rest: Annotated[
        str | None,
        Option(
            "Query Flink's JobManager. Refuse the move while a job is running there, or if a job "
            "was restored from this savepoint. [env: MIGRATE_FLINK_REST]",
            metavar="URL",
            panel=CHECKED,
        ),
    ]
    topic_map: Annotated[
        Mapping[str, str] | None,
        Option(
            "Map topic OLD to topic NEW of the target. Repeatable.",
            metavar="OLD=NEW",
            panel=_MOVES,
            read=parse_topic_map,
        ),
    ]
    partitions: Annotated[
        Mapping[str, Iterable[int]] | None,
        Option(
            "Move only these partitions. Repeatable.",
            metavar="TOPIC:0-3,5",
            panel=_MOVES,
            read=parse_partitions,
        ),
    ]
    topic_pattern: Annotated[
        str | None,
        Option(
            "Pass the job's topic pattern, a Java regular expression. Checkpoints do not contain "
            "it. The partitions of matching topics that the job had not yet discovered are moved "
            "as new partitions.",
            metavar="REGEX",
            panel=_MOVES,
            excludes=("topic_map",),
            unless=_OF_TARGET,
            reason="because the pattern matches only the job's topic names",
        ),
    ]
    on_expired: Annotated[
        OnExpired | Literal["fail", "earliest"],
        Option(
            "Choose how to handle positions below the log start offset.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    on_beyond_end: Annotated[
        OnBeyondEnd | Literal["fail", "latest"],
        Option(
            "Choose how to handle positions above the log end offset.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    new_partitions: Annotated[
        NewPartitions | Literal["as-flink", "fail", "earliest", "latest"],
        Option(
            "Choose the start offset of partitions that are not in the checkpoint. as-flink starts "
            "at the log start offset if Flink would start there; otherwise, it refuses the move.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    gone: Annotated[
        Gone | Literal["fail", "skip"],
        Option(
            "Choose how to handle topics and partitions that no longer exist in Kafka.",
            panel=ALLOWED,
        ),
    ]
    unresolved: Annotated[
        str,
        Option(
            "Choose the start of partitions without an offset in the state: fail, earliest, "
            "latest, committed (the offset of the source group), or timestamp:T (ISO 8601 or epoch "
            "milliseconds). [default: fail]",
            metavar="HOW",
            panel=ALLOWED,
            default="fail",
        ),
    ]
    merge_sources: Annotated[
        MergeSources | Literal["fail", "min"],
        Option(
            "Choose how to handle sources that read one topic from different positions.",
            metavar="HOW",
            panel=ALLOWED,
        ),
    ]
    wait: Annotated[
        str | None,
        Option(
            "Set how long to wait (such as 30s or 5m) for a mirror that has not copied all "
            "consumed records.",
            metavar="DURATION",
            panel=OTHER_CLUSTER,
            requires=_OF_TARGET,
        ),
    ]
    compare: Annotated[
        Compare | Literal["samples", "all"],
        Option(
            "Choose which records of a topic and its copy are compared. samples compares up to "
            "100,000 records on each side of a position, and only samples of the remaining "
            "records. all compares every record of both logs.",
            metavar="HOW",
            panel=OTHER_CLUSTER,
            requires=_OF_TARGET,
        ),
    ]
    on_ambiguous: Annotated[
        OnAmbiguous | Literal["fail", "first"],
        Option(
            "Choose how to handle a position that matches several offsets in the target's "
            "cluster, for example because a mirror copied records twice. first starts at the "
            "first of these offsets, which duplicates records but loses none.",
            metavar="HOW",
            panel=ALLOWED,
            requires=_OF_TARGET,
        ),
    ]
    one_cluster: Annotated[
        bool,
        Option(
            "Assume that all sources for a topic read from the same Kafka cluster.", panel=ALLOWED
        ),
    ]
    allow_in_flight: Annotated[
        bool,
        Option(
            "Move even if in-flight records, or records in a sink's open transactions, are lost.",
            panel=ALLOWED,
        ),
    ]
    allow_ran_on: Annotated[
        bool,
        Option(
            "Move even if the job kept running after the checkpoint, or is still running. Its "
            "later output is duplicated.",
            flags=("--allow-ran-on", "--allow-kept-running"),
            panel=ALLOWED,
        ),
    ]


class PlanArguments(MoveArguments, total=False):
    """The arguments of a move that a saved plan may specify."""

    plan: Annotated[
        AnyPath | None,
        Option(
            "Apply this saved plan. The plan is refused if the cluster or the job has changed in "
            "the meantime.",
            metavar="FILE",
            excludes=(
                *("source", "cluster", "source_group"),
                *(policy.name for policy in fields(Policies)),
            ),
            reason="because the plan already specifies the move; to change the plan, create a new "
            "one",
        ),
    ]


@cache  # so that a command logs the note once
def _note_default_port(name: str, bootstrap_servers: str) -> None:
    """Log a note about addresses without a port; ``name`` is the option that contains them."""
    for address in filter(None, map(str.strip, bootstrap_servers.split(","))):
        if not address.rpartition(":")[2].isdecimal():
            log.info(
                f"note: {option(name, redact_url(address))} has no port, so the "
                "Kafka client uses port 9092"
            )


@dataclass(frozen=True, slots=True)
class Kafka:
    """The user's options for the connection to Kafka.

    Attributes:
        kafka_properties: ``key=value`` strings.
        servers_option: the name of the option that contains ``bootstrap_servers``, for messages.
    """

    bootstrap_servers: str | None = None
    kafka_config: Path | None = None
    kafka_properties: Sequence[str] = ()
    servers_option: str = "bootstrap_servers"

    @property
    def is_given(self) -> bool:
        """True if the user has set any of the options, which means that a broker is queried.

        An empty address (for example, from an unset shell variable) counts as set; ``config``
        refuses it.
        """
        named = (self.bootstrap_servers, self.kafka_config) != (None, None)
        return named or bool(self.kafka_properties)

    @property
    def names_brokers(self) -> bool:
        """True if the address, the file, or a property specifies brokers.

        Raises:
            ConfigError: the file cannot be read, or a string is not a property.
        """
        if not self.is_given:
            return False
        if self.bootstrap_servers is not None:
            return True
        from migrate.kafka.config import names_brokers

        return names_brokers(self.kafka_config, self.kafka_properties)

    @property
    def broker(self) -> KafkaConfig | None:
        """The properties of ``config``; None if ``is_given`` is False."""
        return self.config() if self.is_given else None

    def config(self) -> KafkaConfig:
        """Return the librdkafka properties.

        Raises:
            ConfigError: the properties cannot be used.
        """
        from migrate.kafka.config import check_servers, kafka_config

        if self.bootstrap_servers:
            check_servers(option(self.servers_option), self.bootstrap_servers)
            _note_default_port(self.servers_option, self.bootstrap_servers)
        # AWS tools also read AWS_REGION.
        region = os.environ.get("AWS_REGION")
        return kafka_config(
            self.bootstrap_servers, self.kafka_config, self.kafka_properties, aws_region=region
        )


def kafka(arguments: KafkaArguments, kind: type = KafkaArguments) -> Kafka:
    """Return ``KafkaArguments`` as a ``Kafka``.

    Args:
        arguments: the connection to Kafka, and possibly other arguments.
        kind: the TypedDict with all arguments of the calling function.

    Raises:
        TypeError: an argument is not a key of ``kind``.
    """
    for name in arguments.keys() - kind.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {name!r}")
    file = arguments.get("kafka_config")
    properties = arguments.get("kafka_properties") or {}
    return Kafka(
        arguments.get("bootstrap_servers"),
        local_path(os.fspath(file)) if file is not None else None,
        [f"{name}={value}" for name, value in properties.items()],
    )


def target_connection(arguments: ToKafkaArguments) -> Kafka:
    """Return ``ToKafkaArguments`` as a ``Kafka``."""
    file = arguments.get("to_kafka_config")
    return Kafka(
        arguments.get("to_bootstrap_servers"),
        local_path(os.fspath(file)) if file is not None else None,
        servers_option="to_bootstrap_servers",
    )


def check_job_cluster(job: Kafka, target: Kafka) -> None:
    """Refuse a connection to the target's cluster without a connection to the job's cluster.

    ``verify`` does not call this function: to verify a plan, the target's cluster is sufficient.

    Raises:
        UsageError: only the connection to the target's cluster was passed.
    """
    if target.is_given and not job.is_given:
        name = "to_bootstrap_servers" if target.bootstrap_servers is not None else "to_kafka_config"
        raise UsageError(
            f"{option(name)} requires {option('bootstrap_servers', 'HOST:PORT')}, because the "
            "positions come from the job's cluster"
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
    """The options and the target of a move.

    Attributes:
        flink_rest: the address of the Flink JobManager, which is queried to check whether the job
            is still running.
        kafka: the cluster that the job reads from.
        to_kafka: the target's cluster; unset if the target reads from the job's cluster.
        wait: the number of seconds to wait for a mirror.
        compare: the extent of the comparison between the records of both clusters.
    """

    source_group: str | None = None
    flink_rest: str | None = None
    target: Target = SPARK
    kafka: Kafka = Kafka()
    to_kafka: Kafka = Kafka()
    wait: float = 0
    compare: Compare = Compare.SAMPLES
    policies: Policies = Policies()

    @property
    def job_policies(self) -> Policies:
        """The policies for the plan in the job's cluster.

        If the target reads from another cluster, ``topic_map`` contains the names in that cluster,
        and is therefore omitted here.
        """
        return replace(self.policies, topic_map={}) if self.to_kafka.is_given else self.policies

    @property
    def target_kafka(self) -> Kafka:
        """The target's cluster."""
        return self.to_kafka if self.to_kafka.is_given else self.kafka


def group_name_advice(name: str) -> str:
    """Return advice about a mistyped group name, such as ``group:orders`` or a path; or "".

    A group may have the name of a directory such as ``orders``, so a name without ``/`` is a path
    only if the directory is a checkpoint.
    """
    if advice := prefix_advice(name, GROUP_PREFIX, SPARK_PREFIX):
        return f"{advice} from the name"
    is_path = "/" in name and (
        is_uri(name)
        or os.path.exists(name)
        or (name.startswith("/") and os.path.exists(Path(name).parent))
    )
    if is_path or os.path.exists(Path(name, METADATA_FILE)):
        return "this is a path, not the name of a group; was it swapped with the checkpoint?"
    return why_mistyped(name, "name")


def check_group_name(name: str | None, argument: str = "group") -> None:
    """Raise ``UsageError`` if a group's name is empty or mistyped; None is accepted."""
    if name == "":
        raise UsageError(f"{option(argument)} is empty; a variable may be unset")
    if name is not None and (advice := group_name_advice(name)):
        raise UsageError(f"{option(argument, redact_url(name))}: {advice}")


def move_request(
    target: Target, arguments: MoveArguments, plan: AnyPath | Plan | None = None
) -> Request:
    """Return ``MoveArguments`` as a ``Request``.

    Args:
        target: the target of the move.
        arguments: the options.
        plan: a saved plan, which specifies most of the options, or None.

    Raises:
        TypeError: an argument is not a key of ``MoveArguments``.
        UsageError: an argument is malformed, or some arguments cannot be combined.
    """
    brokers, chosen = kafka(arguments, MoveArguments), choice(arguments)
    check_group_name(target.group)
    check_group_name(arguments.get("source_group"), "source_group")
    if target.group is not None and not brokers.is_given:
        raise broker_needed("commit-group")
    if (flink_rest := arguments.get("flink_rest")) is not None:
        from migrate.inputs.flink.rest_client import check_address

        check_address(flink_rest)
    to_kafka, policies = target_connection(arguments), policies_of(arguments)
    compare = parse_choice(Compare, "compare", arguments.get("compare") or Compare.SAMPLES)
    check_job_cluster(brokers, to_kafka)
    check_combinations(PlanArguments, {**arguments, "plan": plan})
    return Request(
        chosen.allow_external_files,
        chosen.source,
        chosen.cluster,
        source_group=arguments.get("source_group"),
        flink_rest=flink_rest,
        target=target,
        kafka=brokers,
        to_kafka=to_kafka,
        wait=_seconds(arguments.get("wait")),
        compare=compare,
        policies=policies,
    )


def _seconds(duration: str | None) -> float:
    try:
        return parse_duration(duration) if duration is not None else 0
    except ValueError as error:
        raise UsageError(f"{option('wait')} {error}") from error
