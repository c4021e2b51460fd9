"""The one error that leaves the decoder, and its few kinds."""

from __future__ import annotations

from enum import Enum


class ErrorKind(Enum):
    """Why a checkpoint could not be read."""

    NOT_FOUND = "not found"  # no such path, no `_metadata`, a state file that is gone
    UNREADABLE = "unreadable"  # it exists, but the operating system will not give its bytes
    TRUNCATED = "truncated"  # the bytes end inside a field
    CORRUPT = "corrupt"  # a value that Flink never writes
    UNSUPPORTED = "unsupported"  # well-formed as far as read, but of a kind or version unknown here


class DecodeError(Exception):
    """A checkpoint could not be read.

    Attributes:
        kind: which of the few kinds of failure it is.
        problem: what is wrong, in one line.
        file: the file it was found in, or None where no file is concerned.
        field: the field being read, or None.
        byte_offset: where in the file the field starts, in bytes, or None. Inside a part of a
            file (an inline state, a decompressed element) it counts from the start of that part,
            and ``field`` names the part.
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
        super().__init__(problem)
        self.kind = kind
        self.problem = problem
        self.file = file
        self.field = field
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
