"""A ByteSource in memory, for checkpoints that tests change."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit


class MemoryFiles:
    """Files in memory, by absolute path."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    @classmethod
    def of(cls, directory: Path) -> MemoryFiles:
        """Read all files under a directory, and keep their paths."""
        paths = (path for path in directory.rglob("*") if path.is_file())
        return cls({str(path): path.read_bytes() for path in paths})

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def read_range(self, path: str, start: int, size: int) -> bytes:
        return self.read(path)[start : start + size]

    def is_file(self, path: str) -> bool:
        return path in self.files

    def list_directory(self, path: str) -> list[str] | None:
        prefix = path.rstrip("/") + "/"
        below = {name.removeprefix(prefix) for name in self.files if name.startswith(prefix)}
        return sorted({name.split("/")[0] for name in below}) or None

    def modified_at(self, path: str) -> int | None:
        return None

    def absolute(self, path: str) -> str:
        return posixpath.normpath(path)

    def from_uri(self, uri: str) -> str | None:
        return uri if uri.startswith("/") else urlsplit(uri).path or None
