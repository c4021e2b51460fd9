"""The spec of a cut-over: one YAML file that says what is to happen.

Strict: a key that nobody knows, or that is there twice, is refused by name. Options have the names
that they have on the command line. A relative path is one of the folder that the spec is in.

``docs/schemas/cut-over-spec.schema.json`` is generated from here (``python -m
migrate.cutover.spec``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from decoder.storage import read_file
from migrate.commands.shared_options import KafkaArguments, MoveArguments
from migrate.errors import InputError
from migrate.policy_options import Gone, MergeSources, NewPartitions, OnBeyondEnd, OnExpired
from migrate.storage.files import check_no_credentials, is_uri
from migrate.storage.json_models import Model, PartitionNumber
from migrate.wording import hint, seconds_of, visible


class SpecError(InputError):
    """A file that is no spec of a cut-over."""


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _without_credentials(text: str) -> str:
    check_no_credentials(text, SpecError)
    return text


def _duration(text: str) -> str:
    seconds_of(text)
    return text


Text = Annotated[str, Field(min_length=1)]
Place = Annotated[Text, AfterValidator(_without_credentials)]
Duration = Annotated[
    str, AfterValidator(_duration), Field(description="a length of time: 500ms, 10s, 5m, 1h")
]


class _Part(Model):
    model_config = ConfigDict(alias_generator=_kebab)


class FlinkSpec(_Part):
    """The job that is stopped; or, with ``savepoint``, one that has been stopped already."""

    rest: Text | None = Field(None, description="the JobManager's address: http://host:8081")
    job: Text | None = Field(None, description="the job's name, or its id")
    savepoints: Place | None = Field(
        None, description="a folder; the savepoint goes below it, into one of the job's id"
    )
    drain: bool = Field(False, description="emit all windows, for a job that never goes on")
    format: Literal["canonical", "native"] = "canonical"
    savepoint: Place | None = Field(
        None, description="a job that somebody else has stopped: with this savepoint"
    )

    @model_validator(mode="after")
    def _one_way(self) -> FlinkSpec:
        if self.savepoint is not None:
            if self.savepoints is not None or self.drain:
                raise ValueError("savepoint is of a job that has stopped: no savepoints, no drain")
        elif None in (self.rest, self.job, self.savepoints):
            raise ValueError("rest, job and savepoints: all three, or savepoint alone")
        return self


class KafkaSpec(_Part):
    """How to reach the brokers. Passwords belong into the file that ``config`` names."""

    bootstrap_servers: Text | None = None
    config: Place | None = Field(None, description="as --kafka-config")
    properties: dict[str, str] = Field(default_factory=dict, description="as -X")

    @model_validator(mode="after")
    def _named(self) -> KafkaSpec:
        if self.bootstrap_servers is None and self.config is None:
            raise ValueError("bootstrap-servers, or a config that names them")
        return self


class MoveSpec(_Part):
    """What moves, and what is allowed: the options of to-spark and commit-group."""

    source: Text | None = None
    cluster: Text | None = None
    source_group: Text | None = None
    topic_map: dict[str, str] | None = None
    partitions: dict[str, list[PartitionNumber]] | None = None
    topic_pattern: Text | None = None
    on_expired: OnExpired | None = None
    on_beyond_end: OnBeyondEnd | None = None
    new_partitions: NewPartitions | None = None
    gone: Gone | None = None
    unresolved: Text | None = None
    merge_sources: MergeSources | None = None
    one_cluster: bool | None = None
    allow_in_flight: bool | None = None
    allow_moved_on: bool = False
    allow_external_files: bool | None = None


class TargetSpec(_Part):
    """A new checkpoint location of a Spark query, or a consumer group."""

    checkpoint_dir: Place | None = None
    group: Text | None = None

    @model_validator(mode="after")
    def _one(self) -> TargetSpec:
        if (self.checkpoint_dir is None) == (self.group is None):
            raise ValueError("checkpoint-dir or group: one of them")
        return self


class Timeouts(_Part):
    """How long to wait at a step."""

    stop: Duration = "10m"
    prime: Duration = "1h"
    first_batch: Duration = "10m"


Words = Text | Annotated[list[Text], Field(min_length=1)]
StreamNumber = Annotated[int, Field(ge=0, le=9999)]


class Spec(_Part):
    """A cut-over: one job of Flink, one target."""

    version: Literal[1]
    flink: FlinkSpec
    kafka: KafkaSpec
    target: TargetSpec
    move: MoveSpec = MoveSpec()
    spark_source: dict[StreamNumber, Words] | None = Field(
        None, description="of a query with several streams: its number, and Flink's sources of it"
    )
    states: list[Text] = Field(
        default_factory=list, description="keyed states that go along: OPERATOR/NAME"
    )
    prime: Words | None = Field(
        None, description="the command that puts them into the checkpoint location"
    )
    sink: Place | None = Field(None, description="where the query writes, as --sink")
    sink_writer: Text | None = Field(None, description="as --sink-writer")
    start: Words | None = Field(
        None, description="the command that starts the query: a line of the shell, or its words"
    )
    timeouts: Timeouts = Timeouts()
    record: Place | None = Field(
        None, description="the folder of the record [default: the spec's name and .cut-over]"
    )

    @model_validator(mode="after")
    def _of_a_query(self) -> Spec:
        if bool(self.states) != (self.prime is not None):
            raise ValueError("states and prime: both, or neither")
        if self.target.group is not None and (self.states or self.spark_source):
            raise ValueError("states and spark-source are a query's: target.checkpoint-dir")
        if self.states and self.spark_source:
            raise ValueError("states go along with one stream: no spark-source")
        return self


class SpecFile:
    """A spec that was read, its paths those of this machine.

    Attributes:
        spec: as it was written.
        path: the file.
        sha256: of its bytes.
    """

    def __init__(self, path: Path, spec: Spec, content: bytes) -> None:
        self.spec, self.path = spec, path.absolute()
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.home = self.path.parent

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def folder(self) -> Path:
        """Where the record is kept, and what else a run leaves."""
        record = self.spec.record
        return Path(self.place(record)) if record else self.home / f"{self.name}.cut-over"

    def place(self, name: str) -> str:
        """A path or a URL; a relative path from the spec's folder."""
        return name if is_uri(name) else str(self.home / name)

    @property
    def target(self) -> str:
        """The target as a side: ``spark:DIR`` or ``group:NAME``."""
        directory = self.checkpoint_dir
        return f"spark:{directory}" if directory is not None else f"group:{self.spec.target.group}"

    @property
    def checkpoint_dir(self) -> str | None:
        directory = self.spec.target.checkpoint_dir
        return self.place(directory) if directory is not None else None

    @property
    def sink(self) -> str | None:
        return self.place(self.spec.sink) if self.spec.sink is not None else None

    def kafka(self) -> KafkaArguments:
        """As the calls take it."""
        asked = self.spec.kafka
        return {
            "bootstrap_servers": asked.bootstrap_servers,
            "kafka_config": self.place(asked.config) if asked.config is not None else None,
            "kafka_properties": asked.properties,
        }

    def move(self) -> MoveArguments:
        """As the calls take it: what is named, and how to reach Kafka."""
        named = {
            name: value
            for name, value in self.spec.move.model_dump(exclude={"allow_moved_on"}).items()
            if value is not None
        }
        return cast(MoveArguments, {**named, **self.kafka()})

    def spark_sources(self) -> dict[int, list[str]]:
        """Flink's sources by the number of the query's; empty where none is named."""
        named = self.spec.spark_source or {}
        return {
            number: [names] if isinstance(names, str) else list(names)
            for number, names in sorted(named.items())
        }

    def decides(self) -> dict[str, str]:
        """What decides where the target starts, by its names here; nothing of it is secret."""
        flink, target = self.spec.flink, self.spec.target
        named = {
            "flink.savepoint": self.place(flink.savepoint) if flink.savepoint else None,
            "target.checkpoint-dir": self.checkpoint_dir,
            "target.group": target.group,
            "sink": self.sink,
            "sink-writer": self.spec.sink_writer,
            "states": ", ".join(self.spec.states) or None,
            "spark-source": json.dumps(self.spark_sources()) if self.spec.spark_source else None,
            **{f"move.{name}": value for name, value in self.policies().items()},
        }
        return {name: value for name, value in named.items() if value is not None}

    def policies(self) -> dict[str, str]:
        """What the spec names under ``move``, by the names it has there."""
        named = self.spec.move.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in named.items()
        }


def read_spec(path: Path) -> SpecFile:
    """Read a spec.

    Raises:
        SpecError: it is missing, no YAML, or says what nobody knows.
    """
    try:
        content = read_file(path)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        found = yaml.load(content, _Strict)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise SpecError(f"{path}: not YAML: {error.problem}{line}") from error
    except (yaml.YAMLError, ValueError) as error:
        # What it quotes may be a password.
        raise SpecError(f"{path}: not YAML: {type(error).__name__}") from error
    try:
        return SpecFile(path, Spec.model_validate_json(json.dumps(found, default=str)), content)
    except ValidationError as error:
        raise SpecError(f"{path}: " + "; ".join(_problems(error))) from error


class _Strict(yaml.SafeLoader):
    """YAML's plain types; a key that is there twice is refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{visible(name)} is there twice", node.start_mark
                )
        return super().construct_mapping(node, deep)


def _problems(error: ValidationError) -> Iterator[str]:
    """What is wrong, by name; values are not shown."""
    for one in error.errors(include_url=False, include_input=False):
        where = [str(part) for part in one["loc"]]
        name = visible(".".join(where)) or "the whole"
        match one["type"]:
            case "extra_forbidden":
                yield f"{name}: no such key{hint(where[-1], _keys(where[:-1]))}"
            case "missing":
                yield f"{name}: missing"
            case _:
                yield f"{name}: {one['msg'].removeprefix('Value error, ')}"


def _keys(where: list[str]) -> list[str]:
    """The keys that there are at a place of a spec."""
    model: Any = Spec
    for name in where:
        field = model.model_fields.get(name.replace("-", "_"))
        model = field.annotation if field is not None else Model
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]


def json_schema() -> Mapping[str, Any]:
    """The JSON Schema of a spec."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Spec.model_json_schema(),
        "title": "The spec of migrate cut-over",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
