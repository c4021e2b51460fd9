"""The declarations of options, from which the command line and the spec keys are generated.

A ``TypedDict`` declares the options of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import EnumMeta
from typing import Annotated, Any, TypedDict, get_args, get_type_hints

from migrate.model.errors import UsageError
from migrate.model.option_names import option


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option, except for its name and its type.

    Attributes:
        flags: the flags, such as ``--on-expired``; by default, derived from the name.
        metavar: the placeholder for the value in the help; by default the Typer placeholder.
        panel: the section of the help; None for the first section.
        read: a function that converts the strings of a repeatable option to its value; None if the
            option can be passed at most once.
        requires: the names of options, at least one of which must be passed with this option.
        excludes: the names of options that cannot be passed with this option.
        unless: the names of options. If any of them is passed, ``excludes`` does not apply.
        reason: the reason for ``requires`` or ``excludes``, which the error shows after a comma;
            empty if the reason is obvious.
        default: the default value; None if the type determines the default value (see
            ``_is_given``).
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str | None = None
    read: Callable[[Iterable[str]], Any] | None = None
    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    reason: str = ""
    default: str | None = None


READ = "What is read"


class ReadArguments(TypedDict, total=False):
    """The options for reading a checkpoint."""

    allow_external_files: Annotated[
        bool,
        Option(
            "Also open files that the checkpoint references outside of its directories.",
            panel=READ,
        ),
    ]


def options_of(arguments: type) -> dict[str, tuple[Any, Option]]:
    """Return the type and the ``Option`` of each key of a TypedDict.

    An option can be declared as an enum or as the enum's literals. In both cases, its type is the
    enum, and its default is the enum's first member.
    """
    options = {}
    for name, hint in get_type_hints(arguments, include_extras=True).items():
        declared, declaration = get_args(hint)
        kinds = [kind for kind in get_args(declared) if isinstance(kind, EnumMeta)]
        options[name] = (kinds[0] if kinds else declared, declaration)
    return options


def declared_option(arguments: type, name: str) -> Any:
    """Return the ``Option`` of a TypedDict's key, for use as a command parameter's default."""
    return options_of(arguments)[name][1]


def check_combinations(kind: type, arguments: Mapping[str, Any]) -> None:
    """Check the combination of passed options against ``requires`` and ``excludes``.

    Args:
        kind: the TypedDict that declares the options.
        arguments: the values by name; an option without a value was not passed.

    Raises:
        UsageError: a required option was not passed, or an excluded option was.
    """
    declared = options_of(kind)
    given = {
        name
        for name, (type_, declaration) in declared.items()
        if _is_given(arguments.get(name), type_, declaration)
    }
    for name, (_, declaration) in declared.items():
        if name not in given:
            continue
        reason = f", {declaration.reason}" if declaration.reason else ""
        if declaration.requires and given.isdisjoint(declaration.requires):
            required = " or ".join(map(option, declaration.requires))
            raise UsageError(f"{option(name)} requires {required}{reason}")
        if given.isdisjoint(declaration.unless):
            for other in declaration.excludes:
                if other in given:
                    raise UsageError(
                        f"{option(name)} cannot be combined with {option(other)}{reason}"
                    )


def _is_given(value: Any, kind: Any, declaration: Option) -> bool:
    """Return whether a value differs from the option's default.

    The default is None, False, an empty collection, or the first member of an enum. An empty string
    counts as a value, because the user may have passed an unset shell variable.
    """
    if value is None or value == declaration.default:
        return False
    if isinstance(kind, EnumMeta):
        return bool(value != next(iter(kind)))
    return isinstance(value, str) or bool(value)
