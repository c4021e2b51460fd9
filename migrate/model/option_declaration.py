"""An option, declared once: a field of a dataclass, with all that a command line says of it.

``migrate.cli.typer_options`` makes a command's options from these fields; the calls take the same
names as keyword arguments, and ``accept`` makes the fields' values of those.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from typing import Any, TypeVar, get_type_hints

from migrate.model.errors import UsageError

_DECLARATION = "option"
_Choice = TypeVar("_Choice", bound=Enum)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """What is known of an option beside its name, its type and its default.

    Attributes:
        help: a line for people.
        flags: its names on a command line; by default its field's, as ``--on-expired``.
        metavar: what stands for its value in help; by default its type, or its choices.
        panel: the section of the help that it stands in; None for the first.
        repeatable: whether a command line may give it several times.
        read: makes what the calls take of what a command line gave: a text, or a list of them.
        check: makes the field's value of what the calls take; a choice is checked anyway.
    """

    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    panel: str | None = None
    repeatable: bool = False
    read: Callable[[Any], Any] | None = None
    check: Callable[[Any], Any] | None = None


# Any: as for ``dataclasses.field``, what a field is declared as is said by its annotation.
def option(default: Any = MISSING, *, default_factory: Any = MISSING, **declared: Any) -> Any:
    """A field that is an option; ``declared``: the attributes of ``Option``."""
    about = {_DECLARATION: Option(**declared)}
    return field(default=default, default_factory=default_factory, metadata=about)


def options_of(declaring: type) -> dict[str, Option]:
    """The options that a dataclass declares, by name."""
    return {
        one.name: one.metadata[_DECLARATION]
        for one in fields(declaring)
        if _DECLARATION in one.metadata
    }


def accept(declaring: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of those fields of a dataclass that are given as arguments of a call.

    Raises:
        UsageError: one is not of its form.
    """
    types, values = get_type_hints(declaring), {}
    for name, declared in options_of(declaring).items():
        if name not in arguments:
            continue
        value, kind = arguments[name], types[name]
        if declared.check is not None:
            value = declared.check(value)
        elif isinstance(kind, type) and issubclass(kind, Enum):
            value = one_of(kind, f"--{name.replace('_', '-')}", value)
        values[name] = value
    return values


def one_of(choices: type[_Choice], flag: str, value: str) -> _Choice:
    """A value of an option that has a few.

    Raises:
        UsageError: it is none of them.
    """
    try:
        return choices(value)
    except ValueError as error:
        known = ", ".join(choice.value for choice in choices)
        raise UsageError(f"{flag} {value!r}: one of {known}") from error
