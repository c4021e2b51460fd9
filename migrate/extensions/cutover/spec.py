"""Define the spec of a cut-over, a YAML file.

Most keys have the same name as the corresponding command-line option. Relative paths are resolved
against the spec's folder.

``docs/schemas/cut-over-spec.schema.json`` is generated from this module (``python -m
migrate.extensions.cutover.spec``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    create_model,
    model_validator,
)

from migrate.inputs.flink.rest_client import check_address
from migrate.model.errors import InputError, UsageError
from migrate.model.option_names import option
from migrate.model.positions import SPARK_PREFIX, prefix_advice
from migrate.model.wording import clipped, parse_duration, printable
from migrate.moves.declare_options import options_of
from migrate.moves.options import (
    ConnectionArguments,
    KafkaArguments,
    MoveArguments,
    ToKafkaArguments,
    group_name_advice,
)
from migrate.storage.files import Files
from migrate.storage.json_models import Model, PartitionNumber
from migrate.storage.uris import check_no_credentials, is_uri, why_no_path

_A_YEAR = 366 * 24 * 3600
_LONGEST_SHOWN = 100


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _resolve_path(text: str, info: ValidationInfo) -> str:
    """Join a relative path to the spec's folder (``info.context``)."""
    check_no_credentials(text, InputError)
    if problem := why_no_path(text) or prefix_advice(text, SPARK_PREFIX):
        raise ValueError(problem)
    return text if is_uri(text) or info.context is None else str(info.context / text)


def _check_group(name: str) -> str:
    if advice := group_name_advice(name):
        raise ValueError(advice)
    return name


def shortened(text: str) -> str:
    """Return a string for a message: printable, and clipped if it is long."""
    return clipped(printable(text), _LONGEST_SHOWN)


def _check_duration(text: str) -> str:
    if text.strip().isdecimal():  # a number without quotes is also refused
        raise ValueError(f"{shortened(text)!r} has no unit; write 10s or 10m, for example")
    if parse_duration(text) > _A_YEAR:
        raise ValueError(f"{shortened(text)!r} is longer than a year")
    return text


def _check_flink_address(url: str) -> str:
    try:
        check_address(url)
    except UsageError as error:
        raise ValueError(str(error).removeprefix(f"{option('flink_rest')}: ")) from error
    return url


Text = Annotated[str, Field(min_length=1)]
PathOrUrl = Annotated[Text, AfterValidator(_resolve_path)]
Duration = Annotated[
    str,
    AfterValidator(_check_duration),
    Field(description="a duration, such as 500ms, 10s, 5m, or 1h"),
]


class _SpecPart(Model):
    model_config = ConfigDict(alias_generator=_kebab)


class FlinkSpec(_SpecPart):
    """The job to stop. With ``savepoint``, another client has already stopped the job."""

    rest: Annotated[Text, AfterValidator(_check_flink_address)] | None = Field(
        None, description="the JobManager's address, such as http://host:8081"
    )
    job: Text | None = Field(None, description="the job's name or id")
    savepoints: PathOrUrl | None = Field(
        None,
        description="the folder for savepoints; migrate adds a subfolder named by the job's ID",
    )
    drain: bool = Field(False, description="emit all windows; do not restart the job afterwards")
    format: Literal["canonical", "native"] = "canonical"
    savepoint: PathOrUrl | None = Field(
        None, description="the savepoint of a job that is already stopped"
    )

    @model_validator(mode="after")
    def _check_stop(self) -> FlinkSpec:
        if self.savepoint is not None:
            if self.savepoints is not None or self.drain:
                raise ValueError(
                    "savepoint, for a stopped job, cannot be combined with savepoints or drain"
                )
        elif missing := [
            name for name in ("rest", "job", "savepoints") if getattr(self, name) is None
        ]:
            raise ValueError(
                f"missing: {', '.join(missing)}; for a job that is already stopped, set savepoint "
                "instead"
            )
        return self


class KafkaSpec(_SpecPart):
    """The connection to the brokers. Put passwords in the ``config`` file."""

    # The fields have the names of the function arguments in ``migrate.moves``.
    bootstrap_servers: Text | None = None
    kafka_config: PathOrUrl | None = Field(
        None, alias="config", description="a file of Kafka client properties"
    )
    kafka_properties: dict[str, str] = Field(
        default_factory=dict, alias="properties", description="Kafka client properties"
    )
    to_kafka_config: PathOrUrl | None = Field(
        None,
        alias="to-config",
        description="a file of Kafka client properties for the target's cluster",
    )

    @model_validator(mode="after")
    def _check_brokers(self) -> KafkaSpec:
        if self.bootstrap_servers is None and self.kafka_config is None:
            raise ValueError(
                "missing: bootstrap-servers, or config (the path of a file with the brokers)"
            )
        return self


_CONNECTIONS = (*KafkaArguments.__annotations__, *ToKafkaArguments.__annotations__)


def _move_keys() -> dict[str, Any]:
    """Return the options under the ``move`` key, as fields of a pydantic model."""
    kinds = {
        str: Text,
        str | None: Text,
        Mapping[str, Iterable[int]] | None: dict[str, list[PartitionNumber]],
    }
    return {
        name: (kinds.get(kind, kind) | None, None)
        for name, (kind, _) in options_of(MoveArguments).items()
        if name not in (*_CONNECTIONS, "flink_rest")  # these are under ``kafka`` and ``flink``
    }


_ALIASES = {"allow-newer-commits": "allow-moved-on", "allow-kept-running": "allow-ran-on"}


class MoveSpec(create_model("MoveSpec", __base__=_SpecPart, **_move_keys())):  # type: ignore[misc]
    """Options of to-spark and commit-group that set the contents and the limits of the move."""

    allow_moved_on: bool = False
    allow_newer_commits: bool = Field(False, description="the same as allow-moved-on")
    allow_kept_running: bool = Field(False, description="the same as allow-ran-on")

    @model_validator(mode="before")
    @classmethod
    def _use_one_name(cls, values: Any) -> Any:
        """Set a key to true if its alias is true."""
        if isinstance(values, dict):
            for alias, name in _ALIASES.items():
                if values.get(alias) is True:
                    values = {**values, alias: False, name: True}
        return values


class TargetSpec(_SpecPart):
    """A new checkpoint location of a Spark query, or a consumer group."""

    checkpoint_dir: PathOrUrl | None = None
    group: Annotated[Text, AfterValidator(_check_group)] | None = None

    @model_validator(mode="after")
    def _check_target(self) -> TargetSpec:
        if (self.checkpoint_dir is None) == (self.group is None):
            raise ValueError("exactly one of checkpoint-dir and group is required")
        return self

    @property
    def is_group(self) -> bool:
        return self.group is not None

    @property
    def name(self) -> str:
        """The target, in the format that ``verify`` accepts: ``spark:DIR`` or ``group:NAME``."""
        return f"group:{self.group}" if self.is_group else f"spark:{self.checkpoint_dir}"


class Timeouts(_SpecPart):
    """The maximum wait at each step."""

    stop: Duration = "10m"
    prime: Duration = "1h"
    first_batch: Duration = "10m"


TextOrTexts = Text | Annotated[list[Text], Field(min_length=1)]
StreamNumber = Annotated[int, Field(ge=0, le=9999)]


class Spec(_SpecPart):
    """A cut-over from one Flink job to one target."""

    version: Literal[1]
    flink: FlinkSpec
    kafka: KafkaSpec
    target: TargetSpec
    move: MoveSpec = MoveSpec()
    spark_source: dict[StreamNumber, TextOrTexts] | None = Field(
        None, description="Flink's sources by stream number, for a query with several streams"
    )
    states: list[Text] = Field(
        default_factory=list, description="the keyed states to migrate, as OPERATOR/NAME"
    )
    prime: TextOrTexts | None = Field(
        None, description="the command that writes the states to the checkpoint location"
    )
    rehearse: TextOrTexts | None = Field(
        None, description="the command that each dry run runs before the job is stopped"
    )
    sink: PathOrUrl | None = Field(None, description="the directory or table of the query's output")
    sink_writer: Text | None = Field(None, description="the query's name in the sink")
    start: TextOrTexts | None = Field(
        None, description="the command that starts the query, as a shell line or a list of words"
    )
    timeouts: Timeouts = Timeouts()
    record: PathOrUrl | None = Field(
        None, description="the folder of the record [default: the spec's name plus .cut-over]"
    )

    @model_validator(mode="after")
    def _check_states_and_streams(self) -> Spec:
        if bool(self.states) != (self.prime is not None):
            raise ValueError("states and prime must be set together")
        if self.target.group is not None and (self.states or self.spark_source):
            raise ValueError(
                "states and spark-source require a query; set target.checkpoint-dir, not group"
            )
        if self.states and self.spark_source:
            raise ValueError(
                "states can only be migrated to a query with one stream; remove spark-source"
            )
        return self

    @property
    def targets_group_of_job(self) -> bool:
        """Return whether the target is the group for which the Flink job itself commits."""
        return self.target.is_group and self.target.group == self.move.source_group

    @property
    def selects_partitions(self) -> bool:
        """Return whether the spec selects some of the job's partitions."""
        move = self.move
        return any((move.partitions, move.source, move.cluster, self.spark_source))

    @property
    def stopped_by_others(self) -> bool:
        """Return whether the spec has a savepoint; if so, this cut-over does not stop a job."""
        return self.flink.savepoint is not None


class SpecFile:
    """A parsed spec, with absolute paths."""

    def __init__(self, path: Path, content: bytes, spec: Spec) -> None:
        self.spec, self.name, self.base = spec, path.stem, path.absolute().parent
        self.sha256 = hashlib.sha256(content).hexdigest()
        # The folder of all files that a run writes.
        self.folder = Path(spec.record or self.base / f"{self.name}.cut-over")

    @property
    def savepoint_folder(self) -> str | None:
        """The folder for savepoints as a URI, or None."""
        savepoints = self.spec.flink.savepoints
        if savepoints is None:
            return None
        folder = Files().absolute(savepoints)
        return folder if "://" in folder else f"file://{folder}"

    def connections(self) -> ConnectionArguments:
        """Return the connection arguments for the job's cluster and the target's cluster."""
        return cast(ConnectionArguments, self.spec.kafka.model_dump())

    def target_kafka_arguments(self) -> KafkaArguments:
        """Return the connection arguments for the cluster that the target reads from."""
        kafka = self.spec.kafka
        if kafka.to_kafka_config is not None:
            return {"kafka_config": kafka.to_kafka_config}
        return cast(KafkaArguments, kafka.model_dump(exclude={"to_kafka_config"}))

    def move_arguments(self) -> MoveArguments:
        """Return the options for a plan (the keys under ``move``), and the connections."""
        others = {"allow_moved_on", "allow_newer_commits", "allow_kept_running"}
        options = self.spec.move.model_dump(exclude=others, exclude_none=True)
        return cast(MoveArguments, {**options, **self.connections()})

    def spark_sources(self) -> dict[int, list[str]]:
        """Return the names of the Flink sources by stream number; empty if not in the spec."""
        sources = self.spec.spark_source or {}
        return {
            number: [names] if isinstance(names, str) else names
            for number, names in sorted(sources.items())
        }

    def deciding_values(self) -> dict[str, str]:
        """Return the values that determine the target's start position, without secrets."""
        spec = self.spec
        values = {
            "flink.savepoint": spec.flink.savepoint,
            "kafka.to-config": spec.kafka.to_kafka_config,
            "target.checkpoint-dir": spec.target.checkpoint_dir,
            "target.group": spec.target.group,
            "sink": spec.sink,
            "sink-writer": spec.sink_writer,
            "states": ", ".join(spec.states) or None,
            "spark-source": json.dumps(self.spark_sources()) if spec.spark_source else None,
            **{
                f"move.{name}": value
                for name, value in self.changed_move_keys().items()
                if name != "allow-ran-on"  # the user may set this key after the write
            },
        }
        return {name: value for name, value in values.items() if value is not None}

    def changed_move_keys(self) -> dict[str, str]:
        """Return the keys under ``move`` that differ from the defaults, with values as strings."""
        options = self.spec.move.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in options.items()
        }


def json_schema() -> Mapping[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Spec.model_json_schema(),
        "title": "The spec of migrate cut-over",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
