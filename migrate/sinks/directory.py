"""A sink's directory, and checks of the size and content of its files."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar

from decoder.storage import join
from migrate.model.wording import clipped
from migrate.storage.files import Files

# The maximum size of a file in bytes. A commit that lists thousands of data files takes a few
# megabytes.
LARGEST = 64 << 20
# The maximum number of files to read in a log. Most writers keep a few dozen files.
MOST_FILES = 1_000
_MAX_SHOWN = 60
_KIND_NAMES: dict[type, str] = {dict: "an object", list: "an array", str: "a string"}

_Kind = TypeVar("_Kind")


class UnreadableSink(Exception):
    """The sink or one of its logs cannot be read."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A sink's directory; paths are relative to it, with slashes."""

    path: str
    files: Files

    def names(self, below: str = "") -> list[str]:
        """Return the names in a directory, sorted; empty if the directory is missing.

        Raises:
            UnreadableSink: the path is a file.
            OSError: the directory cannot be read.
        """
        path = join(self.path, below) if below else self.path
        names = self.files.list_directory(path)
        if names is None and self.files.is_file(path):
            raise UnreadableSink(
                f"{below} is not a directory" if below else "it is a file, not a directory"
            )
        return sorted(names or ())

    def numbered(self, below: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
        """Return (number, name) for each matching name; the pattern's group 1 is the number."""
        matches = ((pattern.fullmatch(name), name) for name in self.names(below))
        return [(int(match[1]), name) for match, name in matches if match]

    def read(self, below: str, largest: int = LARGEST) -> bytes:
        """Read a whole file.

        Raises:
            UnreadableSink: the file is larger than ``largest``.
            OSError: the file cannot be read.
        """
        content = self.files.read_range(join(self.path, below), 0, largest + 1)
        if len(content) > largest:
            raise UnreadableSink(
                f"{below} was not read, because it is larger than {largest >> 20} MiB"
            )
        return content


def parse_object(content: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        UnreadableSink: the content is not a JSON object, or is nested too deeply.
    """
    try:
        return check_type(json.loads(content), dict, what)
    except (ValueError, RecursionError) as error:
        raise UnreadableSink(f"{what}: {shorten(str(error))}") from error


def to_integer(value: object, what: str) -> int:
    """Return a value as an integer; some logs store numbers as strings.

    Raises:
        UnreadableSink: the value is not an integer.
    """
    if type(value) is int:
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    raise UnreadableSink(f"{what}: {shorten(repr(value))} is not an integer")


def check_type(value: object, kind: type[_Kind], what: str) -> _Kind:
    """Return a JSON value after checking its type.

    Raises:
        UnreadableSink: the value does not have the type ``kind``.
    """
    if not isinstance(value, kind):
        shown, expected = shorten(repr(value)), _KIND_NAMES[kind]
        raise UnreadableSink(f"{what}: expected {expected}, found {shown}")
    return value


def shorten(text: str) -> str:
    """Return a string for a message, truncated if long."""
    return clipped(text, _MAX_SHOWN)
