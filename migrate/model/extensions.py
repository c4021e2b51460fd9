"""The only module through which the core accesses the extensions.

The core does not import extensions directly. The core finds the extensions by the names in
``EXTENSIONS``, and imports the package of an extension only when it needs a name from the package.
An extension declares these constants in its package:

- ``COMMANDS``: for each command, a ``CommandText``. The functions of the commands are in the
  extension's ``cli`` module.
- ``CALLS``, ``SPARK_CALLS``: the names that ``migrate`` and ``migrate.spark``, respectively,
  export, with the module of each name.
- ``SERVICES``: the names that the core and other extensions access through ``service``, with the
  module of each name.
- ``MOVED_OPTIONS``: for each replaced option, such as ``to-spark --state``, the command line to use
  instead.
- ``SCHEMAS``: for each command, the module, the class, and the title of its report's JSON Schema.
- ``EXPLANATIONS``: for each word that ``migrate explain`` accepts in addition to the codes, the
  line that it prints.

The ``catalog`` module of an extension contains its messages (``migrate.model.message``), and its
``explanations.md`` explains the codes of its warnings.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

# The commands of each extension, by the name of its package in ``migrate.extensions``.
EXTENSIONS = {
    "keyed_state": ("state",),
    "savepoints": ("to-flink",),
    "fleet": ("scan",),
    "cutover": ("cut-over",),
    "stateful_query": ("prime", "copy-query", "verify-state"),
}
_PACKAGE = "migrate.extensions"

# The sections of ``migrate --help``.
READ = "Read"
WRITE = "Write new files without confirmation; never overwrite a file"
CHANGE = "Change a group or a job (only with --execute)"
RUN = "Run until Ctrl-C, and commit without confirmation"


class CommandText(NamedTuple):
    """The help texts of a command.

    Attributes:
        section: the section of ``migrate --help``.
        line: the line in this section, which is also the summary in the docstring of the command's
            function.
        examples: pairs of lines: a comment and a command.
    """

    section: str
    line: str
    examples: str


def declared(kind: str) -> dict[str, Any]:
    """Return the entries of a constant, such as ``COMMANDS``, from all installed extensions."""
    entries: dict[str, Any] = {}
    for package in _installed():
        entries |= getattr(package, kind, {})
    return entries


def declared_names(kind: str) -> dict[str, str]:
    """Return the module of each name that any extension lists in a constant such as ``CALLS``."""
    return {name: module for module, names in declared(kind).items() for name in names}


def service(extension: str, name: str) -> Any:
    """Return the function or class that an extension offers in ``SERVICES`` under a name.

    Raises:
        UsageError: the extension is not installed.
    """
    package = _package(extension)
    if package is None:
        raise _not_installed(extension, name)
    (module,) = (module for module, names in package.SERVICES.items() if name in names)
    return getattr(import_module(module), name)


def is_installed(extension: str) -> bool:
    """Return whether an extension is installed."""
    return _package(extension) is not None


def command_module(command: str) -> ModuleType:
    """Return the module that contains the function for an extension's command.

    Raises:
        UsageError: the extension is not installed.
    """
    extension = next(name for name, commands in EXTENSIONS.items() if command in commands)
    if _package(extension) is None:
        raise _not_installed(extension, f"migrate {command}")
    return import_module(f"{_PACKAGE}.{extension}.cli")


def extension_catalogs() -> Iterator[ModuleType]:
    """Yield the catalog of messages of each installed extension."""
    for package in extension_packages():
        yield import_module(f"{package}.catalog")


def extension_packages() -> Iterator[str]:
    """Yield the name of the package of each installed extension."""
    for package in _installed():
        yield package.__name__


def _not_installed(extension: str, user: str) -> Exception:
    # Imported here, because ``import migrate`` does not need the ``errors`` module.
    from migrate.model.errors import UsageError

    return UsageError(f"{user} requires the {extension} extension; it is not installed")


def _installed() -> Iterator[ModuleType]:
    for name in EXTENSIONS:
        if (package := _package(name)) is not None:
            yield package


def _package(extension: str) -> ModuleType | None:
    name = f"{_PACKAGE}.{extension}"
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in (_PACKAGE, name):
            raise
        return None
