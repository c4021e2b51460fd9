"""Where the bytes of a checkpoint come from: a protocol, and local files.

The decoder itself opens local files only; whoever has others gives it a ByteSource of their own.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import Protocol


class ByteSource(Protocol):
    """Read-only files under slash-separated paths.

    A path is what the source itself understands (a local path, a URL); every method raises
    FileNotFoundError for what is not there, and OSError for what may not be read.
    """

    def read(self, path: str) -> bytes:
        """The whole file."""

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """``size`` bytes from ``start``; fewer only where the file ends."""

    def is_file(self, path: str) -> bool: ...

    def modified_at(self, path: str) -> int | None:
        """When a file was written, in milliseconds of the epoch; None where that is not kept."""

    def absolute(self, path: str) -> str:
        """The same path with every directory above it, links followed."""

    def list_directory(self, path: str) -> list[str] | None:
        """The names in a directory, or None where ``path`` is not a directory."""

    def from_uri(self, uri: str) -> str | None:
        """The path of an absolute URI as Flink wrote it, or None where this source has no such."""


class LocalFiles:
    """The local file system."""

    def read(self, path: str) -> bytes:
        return Path(path).read_bytes()

    def read_range(self, path: str, start: int, size: int) -> bytes:
        with Path(path).open("rb") as file:
            file.seek(start)
            # The file's own length bounds the read: a handle may claim any size.
            return file.read(min(size, max(0, os.fstat(file.fileno()).st_size - start)))

    def is_file(self, path: str) -> bool:
        return Path(path).is_file()

    def list_directory(self, path: str) -> list[str] | None:
        directory = Path(path)
        if not directory.is_dir():
            return None
        return sorted(entry.name for entry in directory.iterdir())

    def modified_at(self, path: str) -> int | None:
        return Path(path).stat().st_mtime_ns // 1_000_000

    def absolute(self, path: str) -> str:
        return str(Path(path).resolve())

    def from_uri(self, uri: str) -> str | None:
        # Flink writes a path as it is, nothing escaped: `#`, `?` and `%` stand for themselves.
        path = uri.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path.removeprefix("//").partition("/")
            if host not in ("", "localhost"):
                return None
            path = slash + rest
        return path if path.startswith("/") else None


def join(directory: str, *names: str) -> str:
    """A path below a directory, for any ByteSource."""
    return posixpath.join(directory, *names)
