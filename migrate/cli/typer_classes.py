"""Typer classes that refuse repeated options, avoid pydantic, and hide credentials in errors.

Typer 0.29 converts every parameter with pydantic. Importing pydantic takes 0.1 s, which is more
than half of the CPU time of ``inspect`` for a small checkpoint. This module therefore handles
optional parameters that are not set, and values of type ``str``, ``list[str]``, or an enum. Typer
converts all other parameters.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from typer import BadParameter
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from migrate.cli.help import command_help

# Typer's UsageError class, for which Typer has no public name.
_USAGE_ERROR: Any = BadParameter.__mro__[1]

# The maximum number of paths or commands in a message.
_MOST_PATHS = 5

# Option names of Kafka's own tools, and the equivalent options of ``migrate``.
_SYNONYMS = {"--bootstrap-server": "--bootstrap-servers"}

# Option names that users may try instead of --bootstrap-servers.
_BROKERS = ("--broker", "--brokers", "--bootstrap", "--kafka", "--servers")

# Option names that users may try instead of --execute.
_EXECUTE = ("--apply", "--commit", "--no-dry-run")

# Advice for options that a command does not have but that users may try.
_ADVICE = {
    ("rollback", "--group"): "rollback reads the group from FILE, so omit --group",
    ("to-spark", "--dry-run"): "to-spark writes nothing without --checkpoint-dir, --query-file, "
    "and --plan-out, so omit --dry-run",
    ("verify", "--group"): "pass the group as the second argument, such as group:orders",
    ("diff", "--group"): "pass the group as an argument, such as group:orders",
    ("cut-over", "-b"): "set kafka.bootstrap-servers in SPEC",
    ("cut-over", "--bootstrap-servers"): "set kafka.bootstrap-servers in SPEC",
    ("cut-over", "--checkpoint-dir"): "set target.checkpoint-dir in SPEC",
    ("cut-over", "--group"): "set target.group in SPEC",
    ("cut-over", "--sink"): "set sink in SPEC",
}

# Commands that users try, and the commands to run instead.
_COMMANDS_OF_OTHERS = {
    "plan": "to save the plan of a move, add --plan-out FILE, as in `migrate to-spark CHK "
    "--plan-out plan.json`. To show it, run `migrate show plan.json`.",
    "apply": "to apply a saved plan, run `migrate to-spark --plan FILE --checkpoint-dir DIR` or "
    "`migrate commit-group --group NAME --plan FILE --execute`. `migrate show FILE` prints the "
    "command for this plan.",
    "dry-run": "a command with --execute changes nothing without it, as in `migrate commit-group "
    "CHK --group NAME`; to-spark prints the positions, and writes only new files, such as with "
    "--checkpoint-dir.",
    "rehearse": "to rehearse, call the Python function `rehearse` from the module migrate.spark",
}

# Typer has no public names for context and parameter types, so they are Any here.


class _Option(TyperOption):
    """An option whose values are strings, lists of strings, or enums (without pydantic)."""

    def process_value(self, ctx: Any, value: Any) -> Any:
        return _convert(self, ctx, value, super().process_value)


class _Argument(TyperArgument):
    """An argument whose values are strings, lists of strings, or enums (without pydantic)."""

    def process_value(self, ctx: Any, value: Any) -> Any:
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


def _option_names(parameters: list[Any]) -> set[str]:
    """Return the names of a command's options, and of its arguments."""
    return {name for parameter in parameters for name in parameter.opts}


class Command(TyperCommand):
    """A command that refuses repeated options, except flags and options with several values."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(command_help(self, ctx))

    def get_params(self, ctx: Any) -> Any:
        return _use_own_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        args = self._with_own_names(ctx, args)
        original = list(args)  # a copy, because the parser empties its list
        if not ctx.resilient_parsing:
            self._check_values(ctx, original)
        with _clean_usage_errors():
            try:
                rest = super().parse_args(ctx, args)
            except _USAGE_ERROR as error:
                if error.message.startswith("Got unexpected extra argument"):
                    _check_pattern(original)
                    error.message += _after_extra_arguments(ctx, self, original)
                elif error.message.startswith("No such option"):
                    _explain_no_option(error, ctx, self)
                elif not error.message and getattr(error, "param", None) is not None:
                    error.message = f"For example: {_example(self)}"
                raise
        if not ctx.resilient_parsing:
            self._check_once(ctx, original)
        return rest

    def _with_own_names(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace option names of Kafka's own tools with the names in ``migrate``."""
        own = _option_names(self.get_params(ctx))
        renamed: list[str] = []
        for number, argument in enumerate(args):
            if argument == "--":
                return [*renamed, *args[number:]]
            name, equals, value = argument.partition("=")
            known = _SYNONYMS.get(name)
            renamed.append(f"{known}{equals}{value}" if known in own else argument)
        return renamed

    def _check_values(self, ctx: Any, args: list[str]) -> None:
        """Refuse an option where a value is expected; an unset shell variable can cause this."""
        options = [p for p in self.get_params(ctx) if isinstance(p, TyperOption)]
        names = {name for option in options for name in option.opts}
        with_value = {name for option in options if not option.is_flag for name in option.opts}
        for option, value in pairwise(args):
            if option in with_value and value in names:
                ctx.fail(
                    f"{option} has no value, because {value} follows it; a shell variable may be "
                    "unset"
                )

    def _check_once(self, ctx: Any, args: list[str]) -> None:
        """Refuse a repeated option that takes one value; Typer would use the last value."""
        order: list[Any] = self.make_parser(ctx).parse_args(args)[2]
        for option, times in Counter(order).items():
            if times > 1 and not (option.multiple or option.is_flag):
                ctx.fail(f"{option.opts[0]} takes one value, but was passed {times} times.")


def _example(command: Any) -> str:
    """Return the first example in a command's help."""
    from migrate.cli.help import examples

    lines = examples()[command.name].splitlines()
    return next(line.removeprefix("$ ") for line in lines if line.startswith("$ "))


def _after_extra_arguments(ctx: Any, command: Any, args: list[str]) -> str:
    """Return the end of the message about too many arguments."""
    from migrate.model.wording import did_you_mean

    parameters = command.get_params(ctx)
    takes = [str(p.metavar) for p in parameters if p.param_type_name == "argument"]
    own = _option_names(parameters)
    meant = did_you_mean(sorted({f"--{word}" for word in args} & own))
    return (
        f"{meant}; migrate {command.name} takes only {' and '.join(takes) or 'options'}; for "
        f"example: {_example(command)}"
    )


def _explain_no_option(error: Any, ctx: Any, command: Any) -> None:
    """Add the reason or the next step to an error about an option that a command does not have."""
    if reason := _why_no_option(ctx, command, error.option_name):
        error.possibilities = None
        error.message = f"No such option: {reason}"
    elif not error.possibilities:
        error.message += f"; to list the options, run `migrate {command.name} --help`"


def _why_no_option(ctx: Any, command: Any, option: str) -> str:
    """Return the reason that a command does not have an option; "" if no reason is known."""
    from migrate.cli.help import commands
    from migrate.cli.main import load_command
    from migrate.model.extensions import declared
    from migrate.model.wording import join_some, similar_names

    replacement = declared("MOVED_OPTIONS").get(f"{command.name} {option}")
    if replacement is not None:
        return f"{option}; this option is now a command: {replacement}"
    if advice := _ADVICE.get((command.name, option)):
        return f"{option}; {advice}"
    own = _option_names(command.get_params(ctx))
    if option in _BROKERS and "--bootstrap-servers" in own:
        return f"{option} (did you mean --bootstrap-servers?)"
    if option in _EXECUTE and "--execute" in own:
        return f"{option} (did you mean --execute?)"
    having = [
        name
        for name in commands()
        if any(option in parameter.opts for parameter in load_command(name).params)
    ]
    means_execute = option in ("--execute", *_EXECUTE) or (
        not having and similar_names(option, own | {"--execute"})[:1] == ("--execute",)
    )
    if (means_execute and "--execute" not in own) or option == "--dry-run":
        missing = "--dry-run" if option == "--dry-run" else "--execute"
        return (
            f"{option}; this command has no {missing}, because it writes only new files, at the "
            "paths in its options"
        )
    if not having:
        return ""
    return f"{option}; commands with this option: {join_some(having, _MOST_PATHS)}"


def _check_pattern(args: list[str]) -> None:
    """Refuse several paths in one folder; the shell has probably expanded a pattern to them.

    Raises:
        UsageError: the arguments contain several existing paths in one folder.
    """
    folders: dict[Path, list[str]] = {}
    for path in args:
        if not path.startswith("-") and os.path.exists(path):
            folders.setdefault(Path(path).parent, []).append(path)
    if same := [paths for paths in folders.values() if len(paths) > 1]:
        from migrate.model.errors import UsageError
        from migrate.model.wording import join_some

        raise UsageError(
            f"{len(same[0])} paths were passed instead of one: "
            f"{join_some(same[0], _MOST_PATHS)}; the shell has probably expanded a pattern such as "
            "savepoint-*; pass one path"
        )


class Group(TyperGroup):
    """A group of commands that avoids pydantic and hides credentials, as ``Command`` does."""

    def get_params(self, ctx: Any) -> Any:
        return _use_own_classes(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        name = next((name for name in args if name in self.commands), None)
        with _clean_usage_errors():
            try:
                return super().parse_args(ctx, args)
            except _USAGE_ERROR as error:
                if error.message.startswith("No such option"):
                    self._explain_early_option(error, ctx, name)
                raise

    def _explain_early_option(self, error: Any, ctx: Any, name: str | None) -> None:
        """Add the next step to an error about an option that precedes the command's name."""
        from migrate.cli.main import load_command

        option = error.option_name
        if name is None:
            error.message += "; to list the commands, run `migrate --help`"
            return
        command = load_command(name)
        own = _option_names(command.get_params(ctx))
        if option in own or _SYNONYMS.get(option) in own:
            error.possibilities = None
            error.message += f"; options follow the command, as in `migrate {name} {option}`"
        else:
            _explain_no_option(error, ctx, command)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and (advice := _COMMANDS_OF_OTHERS.get(args[0])):
            ctx.fail(f"No such command {args[0]!r}: {advice}")
        with _clean_usage_errors():
            return super().resolve_command(ctx, args)


@contextmanager
def _clean_usage_errors() -> Iterator[None]:
    """Remove URL credentials and the pydantic prefix from an error about arguments."""
    try:
        yield
    except _USAGE_ERROR as error:
        from decoder.urls import redact_urls  # imported here, because --help does not need it

        error.message = redact_urls(error.message.removeprefix("Value error, "))
        raise
