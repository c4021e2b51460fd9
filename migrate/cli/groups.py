"""Options that go together, as one argument of a command; Typer itself takes them one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command that takes dataclasses one that Typer can call.

    In the place of each such argument stand its fields: ``Annotated`` options, with defaults.
    """
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for name, asked in signature(command, eval_str=True).parameters.items():
        if not is_dataclass(asked.annotation):
            options.append(asked.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        group = groups[name] = asked.annotation
        types = get_type_hints(group, include_extras=True)
        options += [
            Parameter(
                one.name, Parameter.KEYWORD_ONLY, default=one.default, annotation=types[one.name]
            )
            for one in fields(group)
        ]

    @wraps(command)
    def taken_apart(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{one.name: values.pop(one.name) for one in fields(group)})
        command(**values)

    vars(taken_apart)["__signature__"] = Signature(options)
    taken_apart.__annotations__ = {one.name: one.annotation for one in options}
    return taken_apart
