"""Arguments that are texts, some of them or one, or names of an Enum, without pydantic.

Newer versions of Typer (0.29) turn each argument into its type by pydantic, even one that was not
given: its import alone takes longer than a checkpoint does to be read. Here the plain ones are
turned as Typer would; all else, and whatever is wrong, is left to Typer, which tells it. An older
Typer has nothing of this, and is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from functools import partial
from typing import Any

from typer import BadParameter
from typer.core import TyperCommand, TyperGroup

from migrate.cli.help import command_help

# Typer's UsageError, which it gives no public name.
_USAGE_ERROR: Any = BadParameter.__mro__[1]

# Options of other commands, and what is said of them in place of Typer's guesses.
_OF_OTHERS = {
    "--execute": "No such option: --execute: this command changes no group; what it writes, it "
    "writes where its own options say",
}

# Any, in this module: Typer names the types of contexts and parameters nowhere in public.


class Command(TyperCommand):
    """A command whose plain parameters need no pydantic, and whose options are given once."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx))

    def get_params(self, ctx: Any) -> Any:
        return list(map(_without_pydantic, super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        given = list(args)  # the parser uses up its own
        with _untold():
            try:
                rest = super().parse_args(ctx, args)
            except _USAGE_ERROR as error:
                if getattr(error, "option_name", None) in _OF_OTHERS:
                    error.possibilities = None
                    error.message = _OF_OTHERS[error.option_name]
                raise
        if not ctx.resilient_parsing:
            self._check_once(ctx, given)
        return rest

    def _check_once(self, ctx: Any, args: list[str]) -> None:
        """Of an option that was given twice the last would win, and another source move than the
        one that was named first."""
        order: list[Any] = self.make_parser(ctx).parse_args(args)[2]
        for option, times in Counter(order).items():
            if times > 1 and not (option.multiple or option.is_flag):
                ctx.fail(f"{option.opts[0]} takes one value, and is given {times}.")


class Group(TyperGroup):
    """A group of commands, of which the same is true."""

    def get_params(self, ctx: Any) -> Any:
        return list(map(_without_pydantic, super().get_params(ctx)))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        with _untold():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        with _untold():
            return super().resolve_command(ctx, args)


@contextmanager
def _untold() -> Iterator[None]:
    """What is wrong with an argument is told without the credentials of a URL in it."""
    try:
        yield
    except _USAGE_ERROR as error:
        from decoder.urls import shown_in  # here, as --help has no use for the decoder

        error.message = shown_in(error.message)
        raise


def _without_pydantic(parameter: Any) -> Any:
    if hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
        parameter.get_runtime_param = partial(_Coercion, parameter.get_runtime_param)
    return parameter


class _Coercion:
    """Stands for what Typer coerces values by (``typer._coercion.RuntimeParam`` @ 0.29.2)."""

    def __init__(self, typers_own: Any) -> None:
        self._typers_own = typers_own

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        described = param.type_descriptor
        kind = described.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if described.parameter_info.parser is None:
            if kind is str and type(value) is str:
                return value
            if kind == list[str] and all(type(one) is str for one in value):
                return list(value)
            if isinstance(kind, type) and issubclass(kind, Enum):
                for member in kind:
                    if value is member or value == member.value:
                        return member
        try:
            return self._typers_own().coerce(value, param=param, ctx=ctx)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic's own words
            raise
