"""Commands and parameters: each option once, no pydantic for plain text, no credentials shown.

Typer 0.29 coerces each parameter by pydantic, also one that is missing. To import pydantic takes
0.1 s of CPU, more than half of what ``inspect`` of a small checkpoint takes. So parameters of text,
of texts or of an enum are read here; Typer gets all others, and what is wrong.
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

# Typer's UsageError, which it gives no public name.
_USAGE_ERROR: Any = BadParameter.__mro__[1]

# Options of other commands, and what is said of them in place of Typer's guesses.
_OPTIONS_OF_OTHER_COMMANDS = {
    "--execute": "No such option: --execute: this command changes no group; what it writes, it "
    "writes where its own options say"
}

# Any, in this module: Typer names the types of contexts and parameters nowhere in public.


class _Option(TyperOption):
    """An option that is coerced only where its text is not its value."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        """Return what the text of a command line means."""
        return _value(self, ctx, value, super().process_value)


class _Argument(TyperArgument):
    """An argument that is coerced only where its text is not its value."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        """Return what the text of a command line means."""
        return _value(self, ctx, value, super().process_value)


def _value(parameter: Any, ctx: Any, value: Any, coerced: Callable[[Any, Any], Any]) -> Any:
    described = getattr(parameter, "type_descriptor", None)  # none before Typer 0.29
    kind = described.annotation if described is not None else None
    if isinstance(kind, type) and issubclass(kind, Enum) and value in {m.value for m in kind}:
        value = kind(value)
    elif not (
        (value is None and not parameter.required)
        or (kind is str and isinstance(value, str))
        or (kind == list[str] and value)
    ):
        return coerced(ctx, value)
    return value if parameter.callback is None else parameter.callback(ctx, parameter, value)


def _use_own_classes(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption | TyperArgument):
            parameter.__class__ = _Option if isinstance(parameter, TyperOption) else _Argument
    return parameters


class Command(TyperCommand):
    """A command whose options are given once."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx))

    def get_params(self, ctx: Any) -> Any:
        return _use_own_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        original = list(args)  # the parser uses up its own
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
        """Refuse an option that is given twice: the last would win, unnoticed."""
        order: list[Any] = self.make_parser(ctx).parse_args(args)[2]
        for option, times in Counter(order).items():
            if times > 1 and not (option.multiple or option.is_flag):
                ctx.fail(f"{option.opts[0]} takes one value, and is given {times}.")


class Group(TyperGroup):
    """A group of commands."""

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
    """Hide the credentials of a URL, and pydantic's words, in an error about arguments."""
    try:
        yield
    except _USAGE_ERROR as error:
        from decoder.urls import redact_urls  # here, as --help has no use for the decoder

        error.message = redact_urls(error.message.removeprefix("Value error, "))
        raise
