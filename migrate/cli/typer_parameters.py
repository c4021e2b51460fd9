"""Options that several commands share, and options made from the TypedDicts of the Python API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import EnumMeta
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Annotated, Any, is_typeddict

import typer

from migrate.moves.declare_options import Option, options_of

_CHK = (
    "A chk-N or savepoint directory, or a job's checkpoint directory (its newest complete chk-N); "
    "local, or at s3://, gs://, abfs://, hdfs://, webhdfs://"
)
_OTHER_SIDES = (
    "group:NAME, spark:DIR (a query's checkpoint location), json:FILE (startingOffsets), csv:FILE "
    "(topic,partition,offset), broker:earliest, broker:latest, or broker:TIME, as "
    "broker:2026-11-20T18:00:00Z"
)
# Help for arguments that take any set of positions, such as the two sides of diff.
SIDE = f"a checkpoint or savepoint, {_OTHER_SIDES}."
OUTPUT = "Output"
SERVERS = "[env: MIGRATE_BOOTSTRAP_SERVERS]"
CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(
        metavar="CHK",
        help=f"{_CHK}; or spark:DIR, what a Spark query has committed. Not with --plan.",
    ),
]
SideOrPlan = Annotated[
    str | None,
    typer.Argument(metavar="CHK", help=f"{_CHK}; or {_OTHER_SIDES}. Not with --plan."),
]
Checkpoint = Annotated[str, typer.Argument(metavar="CHK", help=f"{_CHK}.")]
PlanFileToApply = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Apply this saved plan. It is refused if the cluster or the job has changed since.",
    ),
]
PlanFileToWrite = Annotated[
    str | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        help="Save the plan as JSON, for a review and --plan. Nothing else is written.",
    ),
]


Wide = Annotated[
    bool,
    typer.Option("--wide", help="Show every column of the table.", rich_help_panel=OUTPUT),
]


def with_options(
    command: Callable[..., None], *, help: Mapping[str, str] | None = None
) -> Callable[..., None]:
    """Replace a command's TypedDict parameter by one option for each key of the TypedDict.

    The command is called with a dict of the options that have a value. An option's ``read``
    function, if any, has converted the value.

    Args:
        command: a function with a parameter whose type is a TypedDict, such as ``MoveArguments``.
        help: help texts that replace those of the TypedDict, by key.
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
    # Typer calls ``inspect.signature``, which returns this attribute (PEP 362).
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameter(name: str, kind: Any, option: Option, help: str) -> Parameter:
    """Return an option as a parameter in the form that Typer reads."""
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
