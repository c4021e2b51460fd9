"""The options of a command: those that calls declare, and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from migrate.commands.arguments import DECLARED_BY
from migrate.options import Option, options_of
from migrate.storage.files import local_path

_CHK = (
    "A chk-<n> or savepoint directory, its _metadata, or a job's checkpoint directory "
    "(its newest complete chk-<n>); a local path, or s3://, gs://, abfs://, hdfs://, webhdfs://"
)
CheckpointOrPlan = Annotated[
    str | None,
    typer.Argument(metavar="CHK", help=f"{_CHK}; none with --plan.", show_default=False),
]
Checkpoint = Annotated[str, typer.Argument(metavar="CHK", help=f"{_CHK}.", show_default=False)]
PlanFileToApply = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        parser=local_path,
        help="Apply a plan saved with --plan-out, unless the cluster or the job has moved "
        "meanwhile.",
        show_default=False,
    ),
]
PlanFileToWrite = Annotated[
    Path | None,
    typer.Option(
        "--plan-out",
        metavar="FILE",
        parser=local_path,
        help="Save the plan as JSON, to be reviewed and applied later; nothing else is written.",
        show_default=False,
    ),
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
