"""A sink's directory: files of it are read whole, up to a size. Nothing in it is trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from decoder.storage import join
from migrate.model.wording import clipped
from migrate.storage.files import Files

# In bytes. A commit lists its files: thousands of them make some megabytes.
LARGEST = 64 << 20
# How many files of a log are read: their writers keep some tens of them.
MOST_FILES = 1_000
# How much of what a writer wrote is shown.
_SHOWN = 60


class UnreadableSink(Exception):
    """A sink, or a log of one, that cannot be read."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A sink; paths are below it, with slashes."""

    path: str
    files: Files

    def names(self, below: str = "") -> list[str]:
        """The names in a directory, sorted; none where it is not there.

        Raises:
            UnreadableSink: it is a file.
            OSError: it cannot be looked at.
        """
        path = join(self.path, below) if below else self.path
        names = self.files.list_directory(path)
        if names is None and self.files.is_file(path):
            raise UnreadableSink(f"{below} in it is no directory" if below else "no directory")
        return sorted(names or ())

    def read(self, below: str, largest: int = LARGEST) -> bytes:
        """A whole file.

        Raises:
            UnreadableSink: it is larger than that.
            OSError: it cannot be read.
        """
        content = self.files.read_range(join(self.path, below), 0, largest + 1)
        if len(content) > largest:
            raise UnreadableSink(f"{below}: larger than {largest >> 20} MiB, and not read")
        return content


def parse(content: bytes, what: str) -> Any:
    """A JSON value.

    Raises:
        UnreadableSink: it is none, or nested too deeply.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableSink(f"{what}: {short(str(error))}") from error


def number(value: object, what: str) -> int:
    """A number as these logs have it, which some write as text.

    Raises:
        UnreadableSink: it is none.
    """
    if type(value) is int:
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    raise UnreadableSink(f"{what}: {short(repr(value))} is no number")


def table(value: object, what: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        UnreadableSink: it is none.
    """
    if not isinstance(value, dict):
        raise UnreadableSink(f"{what}: {short(repr(value))} where an object should be")
    return value


def items(value: object, what: str) -> list[Any]:
    """A JSON array.

    Raises:
        UnreadableSink: it is none.
    """
    if not isinstance(value, list):
        raise UnreadableSink(f"{what}: {short(repr(value))} where an array should be")
    return value


def short(text: str) -> str:
    """As much of a text of unknown length as a message bears."""
    return clipped(text, _SHOWN)
