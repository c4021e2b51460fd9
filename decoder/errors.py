"""The one error that the decoder raises, and its kinds."""

from __future__ import annotations

from enum import Enum


class ErrorKind(Enum):
    """The reason that a checkpoint could not be read."""

    NOT_FOUND = "not found"  # no such path, no `_metadata`, or a missing state file
    UNREADABLE = "unreadable"  # a file or directory that cannot be read (no permission, I/O error)
    UNAVAILABLE = "unavailable"  # the object store did not answer, or denied access
    TRUNCATED = "truncated"  # the bytes end inside a field
    CORRUPT = "corrupt"  # a value that Flink never writes
    EXTERNAL = "external"  # a file outside the checkpoint; the file was not opened
    TOO_LARGE = "too large"  # larger than one of the decoder's limits
    UNSUPPORTED = "unsupported"  # a kind, version, or URL that the decoder does not support


# The maximum length in characters of a ``problem`` or ``field``; both can quote a name, and a name
# in a hostile file can be 64 KB long.
_LONGEST_TEXT = 4000


class DecodeError(Exception):
    """A checkpoint could not be read.

    Attributes:
        problem: the problem, in one line.
        file: the file, or the name of the part that was read (such as a subtask's state), or None.
        field: the field being read, or None.
        byte_offset: the location of the problem, in bytes from the start of ``file``, or None.
    """

    def __init__(
        self,
        kind: ErrorKind,
        problem: str,
        *,
        file: str | None = None,
        field: str | None = None,
        byte_offset: int | None = None,
    ) -> None:
        problem = _shorten(problem)
        super().__init__(kind, problem)  # pickle recreates the error from these
        self.kind = kind
        self.problem = problem
        self.file = file
        self.field = _shorten(field) if field is not None else None
        self.byte_offset = byte_offset

    def __str__(self) -> str:
        where = []
        if self.field is not None:
            where.append(self.field)
        if self.byte_offset is not None:
            where.append(f"at byte {self.byte_offset}")
        text = self.problem
        if where:
            text += f" ({', '.join(where)})"
        return f"{self.file}: {text}" if self.file is not None else text


def _shorten(text: str) -> str:
    if len(text) <= _LONGEST_TEXT:
        return text
    half = _LONGEST_TEXT // 2
    return f"{text[:half]}[{len(text) - 2 * half} more characters]{text[-half:]}"
