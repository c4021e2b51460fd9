"""Options that several commands share, and the parameters from which Typer creates options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import Enum, EnumMeta
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, is_typeddict

import typer

from migrate.model import option_names
from migrate.moves.declare_options import Option, options_of

_CHK = (
    "A chk-N or savepoint directory, or a job's checkpoint directory (its newest complete chk-N), "
    "local or at s3://, gs://, abfs://, hdfs://, or webhdfs://"
)
_OTHER_SIDES = (
    "group:NAME, spark:DIR (a query's checkpoint location), json:FILE (startingOffsets), csv:FILE "
    "or csv:FILE#GROUP (topic,partition,offset), hudi:TEXT (Hudi Streamer's checkpoint), "
    "broker:earliest, broker:latest, or broker:TIME (such as broker:2026-11-20T18:00:00Z)"
)
# The help text of arguments that accept any set of positions, such as the two sides of diff.
SIDE = f"a checkpoint or savepoint, {_OTHER_SIDES}."
SERVERS = "[env: MIGRATE_BOOTSTRAP_SERVERS]"
CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK",
        help=f"{_CHK}. Or spark:DIR, the committed positions of a Spark query. Cannot be combined "
        "with --plan.",
    ),
]
SideOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK", help=f"{_CHK}. Or {_OTHER_SIDES}. Cannot be combined with --plan."
    ),
]
Checkpoint = Annotated[str, typer.Argument(metavar="CHK", help=f"{_CHK}.")]


class TextFormat(str, Enum):
    """The output formats of ``inspect``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def option(help: str, **declared: Any) -> Any:
    """Return an ``Option`` as the default value of a command's parameter."""
    return Option(help, **declared)


PLAN_TO_WRITE = option(
    "Save the plan as JSON, for review and for --plan. Nothing else is written.", metavar="FILE"
)
WIDE = option("Show all columns of the table.", panel="Output")
# The flag with the name of the Python argument, and an alias for it.
ALLOW_NEWER_COMMITS = ("--allow-moved-on", "--allow-newer-commits")


def with_options(
    command: Callable[..., None],
    *,
    help: Mapping[str, str] | None = None,
    daily: Collection[str] = (),
) -> Callable[..., None]:
    """Set the command's parameters, from which Typer creates the command's options.

    A parameter whose default is an ``Option`` becomes that option. A parameter whose type is a
    TypedDict becomes one option per key; the command gets a dict of the keys that have a value.
    For the keys in ``help``, the text in ``help`` replaces the help text in the TypedDict.
    ``daily`` contains the TypedDict keys whose options ``-h`` shows for this command.
    """
    parameters: list[Parameter] = []
    options: dict[str, Option] = {}
    typeddict_parameter, keys = "", dict[str, tuple[Any, Option]]()
    for parameter in signature(command, eval_str=True).parameters.values():
        if is_typeddict(parameter.annotation):
            typeddict_parameter, keys = parameter.name, options_of(parameter.annotation)
            for name, (kind, declared) in keys.items():
                if name in daily:
                    declared = replace(declared, panel=None)
                options[name] = declared
                if kind is not bool and not isinstance(kind, EnumMeta):
                    kind = str | None
                parameters.append(_parameter(name, kind, declared, (help or {}).get(name)))
        elif isinstance(parameter.default, Option):
            options[parameter.name] = parameter.default
            parameters.append(_parameter(parameter.name, parameter.annotation, parameter.default))
        else:
            parameters.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**values: Any) -> None:
        for name, declared in options.items():
            if declared.read is not None and values[name] is not None:
                values[name] = declared.read(values[name])
        if keys:
            arguments = {name: values.pop(name) for name in keys}
            given = {name: value for name, value in arguments.items() if value is not None}
            values[typeddict_parameter] = given
        command(**values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # Typer calls ``inspect.signature``, which returns this attribute (PEP 362).
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, kind: Any, option: Option, help: str | None = None) -> Parameter:
    """Return an option as a parameter in the format that Typer reads."""
    default: Any = None
    if option.read is not None:
        kind = list[str] | None
    elif kind is bool:
        default = False
    elif isinstance(kind, EnumMeta):
        default = next(iter(kind))
    info = typer.Option(
        *(option.flags or (f"--{name.replace('_', '-')}",)),
        metavar=option.metavar,
        help=_with_requirement(help or option.help, option),
        rich_help_panel=option.panel,
    )
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def _with_requirement(help: str, option: Option) -> str:
    """Add the required options to an option's help; a default in brackets stays at the end."""
    if not option.requires:
        return help
    with option_names.command_line_notation():
        required = f"Requires {' or '.join(map(option_names.option, option.requires))}."
    text, bracket, default = help.partition(" [")
    return f"{text} {required}{bracket}{default}"
