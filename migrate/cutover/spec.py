"""The spec of a cut-over: one YAML file that says what is to happen.

Strict: a key that nobody knows, or that is there twice, is refused by name. Options have the names
that they have on the command line. A relative path is one of the folder that the spec is in.

``docs/schemas/cut-over-spec.schema.json`` is generated from here (``python -m
migrate.cutover.spec``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)
from pydantic_core import ErrorDetails

from decoder.storage import read_file
from migrate.inputs.flink.rest_api import check_address
from migrate.model.errors import InputError, UsageError
from migrate.model.wording import clipped, hint, join_some, parse_duration, printable
from migrate.moves.options import KafkaArguments, MoveArguments, options_of
from migrate.storage.files import Files, check_no_credentials, is_uri
from migrate.storage.json_models import Model, PartitionNumber

# Larger than any spec: PyYAML takes five seconds for so much.
_LARGEST_SPEC = 262_144
# A spec has five levels.
_DEEPEST = 16
_MOST_DIGITS = 20
_A_YEAR = 366 * 24 * 3600
# Of what is wrong, so much is shown.
_MOST_PROBLEMS = 10
_LONGEST_NAME = 100
_SCALAR_TAGS = (":bool", ":int", ":float", ":null")


class SpecError(InputError):
    """A file that is no spec of a cut-over."""


def _kebab(name: str) -> str:
    return name.replace("_", "-")


def _without_credentials(text: str) -> str:
    check_no_credentials(text, SpecError)
    return text


def _duration(text: str) -> str:
    if parse_duration(text) > _A_YEAR:
        raise ValueError(f"{_shortened(text)!r}: longer than a year")
    return text


def _flink_address(url: str) -> str:
    try:
        check_address(url)
    except UsageError as error:
        raise ValueError(str(error).removeprefix("--flink-rest: ")) from error
    return url


Text = Annotated[str, Field(min_length=1)]
Place = Annotated[Text, AfterValidator(_without_credentials)]
Duration = Annotated[
    str, AfterValidator(_duration), Field(description="a length of time: 500ms, 10s, 5m, 1h")
]


class _Part(Model):
    model_config = ConfigDict(alias_generator=_kebab)


class FlinkSpec(_Part):
    """The job that is stopped; or, with ``savepoint``, one that has been stopped already."""

    rest: Annotated[Text, AfterValidator(_flink_address)] | None = Field(
        None, description="the JobManager's address: http://host:8081"
    )
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


def _move_keys() -> dict[str, Any]:
    """Return the options of a move that a spec may name, as fields of a model."""
    kinds = {
        str: Text,
        str | None: Text,
        Mapping[str, Iterable[int]] | None: dict[str, list[PartitionNumber]],
    }
    return {
        name: (kinds.get(kind, kind) | None, None)
        for name, (kind, _) in options_of(MoveArguments).items()
        # How Kafka is reached is a part of its own, and a job that is stopped does not run on.
        if name not in (*KafkaArguments.__annotations__, "allow_ran_on")
    }


class MoveSpec(create_model("MoveSpec", __base__=_Part, **_move_keys())):  # type: ignore[misc]
    """What moves, and what is allowed: the options of to-spark and commit-group."""

    allow_moved_on: bool = False


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
        """Return a path or a URL; a relative path is one of the spec's folder."""
        return name if is_uri(name) else str(self.home / name)

    @property
    def savepoint_folder(self) -> str | None:
        """The folder for savepoints, as a URI, or None where the spec names none."""
        savepoints = self.spec.flink.savepoints
        if savepoints is None:
            return None
        folder = Files().absolute(self.place(savepoints))
        return folder if "://" in folder else f"file://{folder}"

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
        """Return the keys of the spec that decide where the target starts; no value is secret."""
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
        """Return the keys under ``move`` with their values, as text."""
        named = self.spec.move.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in named.items()
        }


def read_spec(path: Path) -> SpecFile:
    """Read a spec.

    Raises:
        SpecError: the file is missing, is not YAML, or is not a spec.
    """
    try:
        content = read_file(path, _LARGEST_SPEC)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        values = yaml.load(content, _Strict)
    except _NotInASpec as error:
        raise SpecError(f"{path}: {error}") from error
    except yaml.MarkedYAMLError as error:
        problem = (error.problem or "").removeprefix("but ")
        raise SpecError(f"{path}: not YAML: {problem}{_line(error.problem_mark)}") from error
    except yaml.reader.ReaderError as error:
        raise SpecError(
            f"{path}: not YAML: {error.reason}: character {error.position + 1}"
        ) from error
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "text"
        problem = "is empty" if values is None else f"is {kind}, not keys with values"
        raise SpecError(f"{path}: the spec {problem}")
    try:
        return SpecFile(path, Spec.model_validate_json(json.dumps(values)), content)
    except ValidationError as error:
        raise SpecError(f"{path}: {_problems(error)}") from error


class _NotInASpec(yaml.YAMLError):
    """YAML that a spec may not hold."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(problem + _line(mark))


def _line(mark: Any) -> str:
    return f" (line {mark.line + 1})" if mark is not None else ""


class _Strict(yaml.SafeLoader):
    """A loader of mappings, lists, text, numbers, true, false and null.

    A key is the text that stands in the file. A repeated key, an alias, a tag, deep nesting, a huge
    number, a number or an escape that PyYAML takes for one and cannot read, and a character that no
    argument of a command can hold are refused.
    """

    # Without dates, which JSON lacks, and without the merge key, which needs aliases.
    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML declares it so
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(_SCALAR_TAGS)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            raise _NotInASpec(
                f"an alias, *{event.anchor}; write out what it stands for", event.start_mark
            )
        if event.tag is not None:
            raise _NotInASpec(f"the tag {printable(event.tag)}; leave it out", event.start_mark)
        if self._depth == _DEEPEST:
            raise _NotInASpec(f"nested deeper than {_DEEPEST} levels", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
        return node

    def fetch_more_tokens(self) -> None:
        try:
            super().fetch_more_tokens()
        except (ValueError, OverflowError) as error:
            raise _NotInASpec(
                "an escape, or a version of YAML, that cannot be read; take it out",
                self.get_mark(),
            ) from error

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError) as error:
            raise _NotInASpec(
                "a number that cannot be read; put text in quotes", node.start_mark
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping: dict[Hashable, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _NotInASpec("a key that is a list or has keys itself", key.start_mark)
            if key.value in mapping:
                raise _NotInASpec(f"{_shortened(key.value)} is there twice", node.start_mark)
            mapping[key.value] = self.construct_object(value, deep=True)
        return mapping


def _check_scalar(node: yaml.ScalarNode) -> None:
    """Refuse a number that is no number of a spec, and text that no file or command can hold."""
    if node.tag.endswith(":int") and len(node.value) > _MOST_DIGITS:
        raise _NotInASpec(f"a number of more than {_MOST_DIGITS} digits", node.start_mark)
    if "\0" in node.value:
        raise _NotInASpec("a NUL character; take it out", node.start_mark)
    try:
        # JSON writes a character beyond U+FFFF as a pair.
        node.value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise _NotInASpec("half of a surrogate pair; take it out", node.start_mark) from error


def _problems(error: ValidationError) -> str:
    """Return what is wrong, by name; values are not shown."""
    problems = error.errors(include_url=False, include_input=False)
    return join_some(map(_problem, problems), _MOST_PROBLEMS, "; ")


def _problem(problem: ErrorDetails) -> str:
    """Return one problem that pydantic names, in our words."""
    keys = [str(part) for part in problem["loc"]]
    name = _shortened(".".join(keys)) or ("''" if keys else "the spec")
    match problem["type"]:
        case "extra_forbidden":
            return f"{name}: no such key{hint(keys[-1], _keys(keys[:-1]))}"
        case "missing":
            return f"{name}: missing"
        case "string_type":
            return f"{name}: {problem['msg']}; put a number, true or false in quotes"
        case _:
            return f"{name}: {problem['msg'].removeprefix('Value error, ')}"


def _shortened(name: str) -> str:
    """Return a name as a message shows it."""
    return clipped(printable(name), _LONGEST_NAME)


def _keys(where: list[str]) -> list[str]:
    """Return the keys that may stand at a place of a spec."""
    model: Any = Spec
    for name in where:
        field = model.model_fields.get(name.replace("-", "_"))
        model = field.annotation if field is not None else Model
    return [field.alias or name for name, field in getattr(model, "model_fields", {}).items()]


def json_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of a spec."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Spec.model_json_schema(),
        "title": "The spec of migrate cut-over",
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2))
