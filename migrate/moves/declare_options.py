"""The declaration of options, from which the command line and the keys of a spec are made.

A ``TypedDict`` declares the options of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import EnumMeta
from typing import Annotated, Any, TypedDict, get_args, get_type_hints


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option, except for its name and its type.

    Attributes:
        flags: the flags, such as ``--on-expired``; by default made from the name.
        metavar: the placeholder for the value in the help; by default the Typer placeholder.
        panel: the section of the help; None for the first section.
        read: the function that converts the strings of a repeatable option to its value; None if
            the option can be passed at most once.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str | None = None
    read: Callable[[Iterable[str]], Any] | None = None


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

    If an option is declared as an enum or its literals, its type is the enum, and its default is
    the first member.
    """
    options = {}
    for name, hint in get_type_hints(arguments, include_extras=True).items():
        declared, option = get_args(hint)
        kinds = [kind for kind in get_args(declared) if isinstance(kind, EnumMeta)]
        options[name] = (kinds[0] if kinds else declared, option)
    return options
