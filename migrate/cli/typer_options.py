"""The options of a command: those that calls declare, and arguments that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from migrate.cli.terminal import tell
from migrate.model.errors import UsageError
from migrate.model.option_declaration import Option, accept, options_of
from migrate.moves.shared_options import DECLARED_BY, Kafka, KafkaArguments
from migrate.storage.files import local_path

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
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="In place of a side: broker:TIME.",
        show_default=False,
    ),
]


def side_or_time(side: str | None, at: str | None, what: str) -> str | None:
    """The side that is named, or that of a time.

    Args:
        what: how a side is named here.

    Raises:
        UsageError: both are.
    """
    if at is not None and side is not None:
        raise UsageError(f"--at TIME stands in the place of {what}: not with {side}")
    return side if at is None else f"broker:{at}"


_PLANS = "Plan now, apply later"
CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(metavar="CHK", help=f"{_CHK}. Not with --plan.", show_default=False),
]
SideOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK",
        help=f"{_CHK}; or any side of diff. Not with --plan.",
        show_default=False,
    ),
]
Checkpoint = Annotated[str, typer.Argument(metavar="CHK", help=f"{_CHK}.", show_default=False)]
PlanFileToApply = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        parser=local_path,
        help="Apply a saved plan, unless the cluster or the job has moved meanwhile.",
        show_default=False,
        rich_help_panel=_PLANS,
    ),
]
PlanFileToWrite = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        parser=local_path,
        help="Save the plan as JSON, to review and apply later. Nothing else is written.",
        show_default=False,
        rich_help_panel=_PLANS,
    ),
]


Wide = Annotated[
    bool,
    typer.Option("--wide", help="Show every column of the table."),
]


def with_options(
    command: Callable[..., None], *, told: Mapping[str, str] | None = None
) -> Callable[..., None]:
    """Make a command that takes arguments of the calls (``MoveArguments``, say) one for Typer.

    In the place of each such argument stand the options that declare it; the command gets those
    that were given a value, as the calls take them.

    Args:
        told: help of options, by name, where the command says it otherwise.
    """
    declared: dict[str, dict[str, Option]] = {}
    parameters: list[Parameter] = []
    for name, asked in signature(command, eval_str=True).parameters.items():
        declaring = DECLARED_BY.get(asked.annotation)
        if declaring is None:
            parameters.append(asked.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        declared[name] = {k: v for one in declaring for k, v in options_of(one).items()}
        parameters += [
            _parameter(one.name, declared[name][one.name], types[one.name], one.default, told or {})
            for cls in declaring
            for types in (get_type_hints(cls),)
            for one in fields(cls)
            if one.name in declared[name]
        ]

    @wraps(command)
    def taken_together(**values: Any) -> None:
        for name, options in declared.items():
            given = {one: values.pop(one) for one in options}
            values[name] = {
                one: read(value) if (read := options[one].read) is not None else value
                for one, value in given.items()
                if value is not None
            }
        command(**values)

    vars(taken_together)["__signature__"] = Signature(parameters)
    taken_together.__annotations__ = {one.name: one.annotation for one in parameters}
    return taken_together


def _parameter(
    name: str, declared: Option, kind: Any, default: Any, told: Mapping[str, str]
) -> Parameter:
    """One option, as Typer takes it."""
    is_file = kind == Path | None
    if declared.repeatable:
        kind, default = list[str] | None, None
    elif declared.check is not None and not is_file:  # any text: ``check`` reads it
        kind, default = (str, default.value) if isinstance(default, Enum) else (str | None, None)
    info = typer.Option(
        *(declared.flags or (f"--{name.replace('_', '-')}",)),
        metavar=declared.metavar,
        help=told.get(name, declared.help),
        rich_help_panel=declared.panel,
        parser=local_path if is_file else None,
        show_default=default is not None,
    )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


# An option wins over the environment, and the environment is told: it must not pass unnoticed that
# a command asks a broker nobody named just now.
_SERVERS_VARIABLE, _CONFIG_VARIABLE = "MIGRATE_BOOTSTRAP_SERVERS", "MIGRATE_KAFKA_CONFIG"

_Arguments = TypeVar("_Arguments", bound=KafkaArguments)


def with_environment(arguments: _Arguments) -> _Arguments:
    """How to reach Kafka by the options, else by the environment, which is told then.

    Raises:
        ConfigError: a file of properties cannot be read.
    """
    from migrate.kafka.config import check_servers

    given = Kafka(**accept(Kafka, arguments))
    its_servers = None if given.names_brokers else os.environ.get(_SERVERS_VARIABLE)
    its_file = os.environ.get(_CONFIG_VARIABLE) if given.kafka_config is None else None
    if its_servers and not _names_brokers(its_file):
        check_servers(_SERVERS_VARIABLE, its_servers)
        tell(f"{_SERVERS_VARIABLE} names the brokers: {its_servers}")
        arguments["bootstrap_servers"] = its_servers
    # How to log in is no reason to ask a broker: it takes one that is named.
    named = arguments.get("bootstrap_servers") is not None or given.names_brokers
    if its_file and (named or _names_brokers(its_file)):
        tell(f"{_CONFIG_VARIABLE} names the file of Kafka properties: {its_file}")
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
