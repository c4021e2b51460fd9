"""Options of several commands, and those that the calls declare."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from enum import EnumMeta
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, TypeVar, is_typeddict

import typer

from migrate.model.log import log
from migrate.moves.options import KafkaArguments, MoveArguments, Option, kafka, options_of
from migrate.storage.uris import local_path

_CHK = (
    "A chk-N or savepoint directory, or a job's checkpoint directory (its newest complete chk-N); "
    "local, or at s3://, gs://, abfs://, hdfs://, webhdfs://"
)
# What a position set may be named by.
SIDE = (
    "CHK, group:NAME, spark:DIR, json:FILE (startingOffsets), csv:FILE (topic,partition,offset as "
    "kafka-consumer-groups has it), broker:earliest, broker:latest, or broker:TIME, the first "
    "record at or after a time, as 2026-11-20T18:00:00Z."
)
_PLANS = "Plan now, apply later"
CheckpointOrPlan = Annotated[
    str | None, typer.Argument(metavar="CHK", help=f"{_CHK}. Not with --plan.")
]
SideOrPlan = Annotated[
    str | None, typer.Argument(metavar="CHK", help=f"{_CHK}; or any side of diff. Not with --plan.")
]
Checkpoint = Annotated[str, typer.Argument(metavar="CHK", help=f"{_CHK}.")]
PlanFileToApply = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Apply a saved plan, unless the cluster or the job has moved meanwhile.",
        rich_help_panel=_PLANS,
    ),
]
PlanFileToWrite = Annotated[
    str | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        help="Save the plan as JSON, to review and apply later. Nothing else is written.",
        rich_help_panel=_PLANS,
    ),
]


Wide = Annotated[bool, typer.Option("--wide", help="Show every column of the table.")]


def with_options(
    command: Callable[..., None], *, help: Mapping[str, str] | None = None
) -> Callable[..., None]:
    """Put options into the place of a command's parameter that takes arguments of the calls.

    The command gets those that have a value, as the calls take them.

    Args:
        command: a function with a parameter of ``MoveArguments``, say.
        help: help of options, by name, where the command says it otherwise.
    """
    parameters: list[Parameter] = []
    typeddict_parameter, declared = "", dict[str, tuple[Any, Option]]()
    for parameter in signature(command, eval_str=True).parameters.values():
        if not is_typeddict(parameter.annotation):
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        typeddict_parameter, declared = parameter.name, options_of(parameter.annotation)
        parameters += [
            _parameter(name, kind, option, (help or {}).get(name, option.help))
            for name, (kind, option) in declared.items()
        ]

    @wraps(command)
    def run(**values: Any) -> None:
        arguments = {}
        for name, (_, option) in declared.items():
            value = values.pop(name)
            if value is not None:
                arguments[name] = value if option.read is None else option.read(value)
        command(**values, **{typeddict_parameter: arguments})

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # What Typer asks ``inspect.signature`` for (PEP 362).
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, kind: Any, option: Option, help: str) -> Parameter:
    """Return an option, as Typer takes it."""
    default: Any = None
    if option.read is not None:
        kind = list[str] | None
    elif kind is bool:
        default = False
    elif isinstance(kind, EnumMeta):
        default = next(iter(kind))
    else:
        kind = str | None
    info = typer.Option(
        *(option.flags or (f"--{name.replace('_', '-')}",)),
        metavar=option.metavar,
        help=help,
        rich_help_panel=option.panel,
    )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


# An option wins over the environment. The environment is logged, so that nobody asks a broker
# unnoticed.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"

_Arguments = TypeVar("_Arguments", bound=KafkaArguments)


def with_environment(arguments: _Arguments) -> _Arguments:
    """Return how to reach Kafka: by the options, else by the environment, which is logged.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    from migrate.kafka.config import check_servers

    kafka_options = kafka(arguments, MoveArguments)
    its_servers = None if kafka_options.names_brokers else os.environ.get(_SERVERS_VARIABLE)
    its_file = os.environ.get(_CONFIG_VARIABLE) if kafka_options.kafka_config is None else None
    if its_servers and not _names_brokers(its_file):
        check_servers(_SERVERS_VARIABLE, its_servers)
        log.info(f"{_SERVERS_VARIABLE} names the brokers: {its_servers}")
        arguments["bootstrap_servers"] = its_servers
    # How to log in is no reason to ask a broker: it takes one that is named.
    named = arguments.get("bootstrap_servers") is not None or kafka_options.names_brokers
    if its_file and (named or _names_brokers(its_file)):
        log.info(f"{_CONFIG_VARIABLE} names the file of Kafka properties: {its_file}")
        arguments["kafka_config"] = local_path(its_file)
    return arguments


def _names_brokers(its_file: str | None) -> bool:
    from migrate.kafka.config import ConfigError, names_brokers

    if not its_file:
        return False
    try:
        return names_brokers(local_path(its_file), ())
    except ConfigError as error:
        raise ConfigError(f"{_CONFIG_VARIABLE}: {error}") from error
