"""Typer classes that refuse repeated options, avoid pydantic, and hide credentials in errors.

Typer 0.29 converts every parameter with pydantic, even if the parameter is not given. The import
of pydantic takes 0.1 s, more than half of the CPU time of ``inspect`` for a small checkpoint. So
values of type ``str``, ``list[str]`` and enums are converted here. Typer converts all others, and
reports invalid values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from migrate.cli.help import command_help

# Typer's class UsageError, for which Typer has no public name.
_USAGE_ERROR: Any = BadParameter.__mro__[1]

# Options that only other commands have, with the message that replaces Typer's.
_OPTIONS_OF_OTHER_COMMANDS = {
    "--execute": "No such option: this command has no --execute: it writes only new files, where "
    "its options say"
}

# Typer has no public names for the types of contexts and parameters, so they are Any here.


class _Option(TyperOption):
    """An option whose texts, lists of texts and enums are converted without pydantic."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        """Convert the option's text on the command line."""
        return _convert(self, ctx, value, super().process_value)


class _Argument(TyperArgument):
    """An argument whose texts, lists of texts and enums are converted without pydantic."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        """Convert the argument's text on the command line."""
        return _convert(self, ctx, value, super().process_value)


def _convert(
    parameter: Any, ctx: Any, value: Any, convert_by_typer: Callable[[Any, Any], Any]
) -> Any:
    described = getattr(parameter, "type_descriptor", None)  # missing before Typer 0.29
    kind = described.annotation if described is not None else None
    if isinstance(kind, type) and issubclass(kind, Enum) and value in {m.value for m in kind}:
        value = kind(value)
    elif not (
        (value is None and not parameter.required)
        or (kind is str and isinstance(value, str))
        or (kind == list[str] and value)
    ):
        return convert_by_typer(ctx, value)
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _use_own_classes(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.__class__ = _Option if isinstance(parameter, TyperOption) else _Argument
    return parameters


class Command(TyperCommand):
    """A command that refuses an option of one value if it is given twice."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx))

    def get_params(self, ctx: Any) -> Any:
        return _use_own_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        original = list(args)  # a copy, because the parser empties its list
        with _clean_usage_errors():
            try:
                rest = super().parse_args(ctx, args)
            except _USAGE_ERROR as error:
                if getattr(error, "option_name", None) in _OPTIONS_OF_OTHER_COMMANDS:
                    error.possibilities = None
                    error.message = _OPTIONS_OF_OTHER_COMMANDS[error.option_name]
                raise
        if not ctx.resilient_parsing:
            self._check_once(ctx, original)
        return rest

    def _check_once(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option of one value if it is given twice; Typer would use its last value."""
        order: list[Any] = self.make_parser(ctx).parse_args(args)[2]
        for option, times in Counter(order).items():
            if times > 1 and not (option.multiple or option.is_flag):
                ctx.fail(f"{option.opts[0]} takes one value, and is given {times}.")


class Group(TyperGroup):
    """A group of commands, with the parameter classes and the clean errors of ``Command``."""

    def get_params(self, ctx: Any) -> Any:
        return _use_own_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        with _clean_usage_errors():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _clean_usage_errors():
            return super().resolve_command(ctx, args)


@contextmanager
def _clean_usage_errors() -> Iterator[None]:
    """Remove credentials of URLs, and pydantic's prefix, from an error about arguments."""
    try:
        yield
    except _USAGE_ERROR as error:
        from decoder.urls import redact_urls  # here: --help does not need the decoder

        error.message = redact_urls(error.message.removeprefix("Value error, "))
        raise
