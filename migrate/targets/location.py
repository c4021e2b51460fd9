"""The directory of a checkpoint location: local, on a mount, or in an object store.

A local directory can be written under a temporary name and renamed once it is complete. On mounts
and in object stores, files are written one by one.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from decoder.urls import CREDENTIALS_REFUSED, redact_url
from migrate.model.errors import UsageError
from migrate.storage.files import Files
from migrate.storage.new_file import check_new_directory, write_pieces
from migrate.storage.uris import complete_slashes, dbfs_path, mount_of, why_no_path

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


@dataclass(frozen=True, slots=True)
class LocalDirectory:
    """A directory on this machine, by its absolute path.

    Attributes:
        mounted: True if the directory is on an object-store mount, which does not support renames.
    """

    name: str
    path: Path
    mounted: bool = False

    @property
    def for_spark(self) -> str:
        """The name to pass to Spark: an absolute path, because Spark may run in a different folder.

        On mounts, this is the name that the user passed.
        """
        return self.name if self.mounted else str(self.path)

    def names(self, path: str = "") -> set[str] | None:
        """Return the names in a directory; an empty set if the directory is missing.

        Return None if the path is a file or a link, or if one of its parents is a file.
        """
        directory = self.path / path
        existing = next(path for path in (directory, *directory.parents) if path.exists())
        if directory.is_symlink() or not existing.is_dir():
            return None
        return {entry.name for entry in directory.iterdir()} if directory.exists() else set()

    @property
    def to_read(self) -> tuple[str, Files]:
        """The path of the directory, and the ``Files`` object that reads from it."""
        return str(self.path), Files()

    def check_writable(self) -> None:
        """Check that this directory, which is missing or empty, can be written; change nothing.

        Raises:
            OSError: as in ``check_new_directory``.
        """
        check_new_directory(self.path, staged=not self.mounted)

    def write(self, path: str, content: bytes) -> None:
        """Write or replace a file."""
        write_pieces(self.path / path, [content])

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""
        (self.path / path).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class RemoteDirectory:
    """A directory or a key prefix in an object store or HDFS."""

    name: str
    url: str
    files: Files

    @property
    def for_spark(self) -> str:
        return self.name

    def names(self, path: str = "") -> set[str] | None:
        # If the path is a file, return an empty set. This is safe: an object store can have keys
        # under a key, and in HDFS, the later write fails.
        return set(self.files.list_directory(self._full(path)) or ())

    @property
    def to_read(self) -> tuple[str, Files]:
        return self.url, self.files

    def write(self, path: str, content: bytes) -> None:
        self.files.write(self._full(path), content)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.files.remove(self._full(path))

    def _full(self, path: str) -> str:
        return posixpath.join(self.url, path).rstrip("/")


# A directory and the user's name for it. The methods take a relative ``path`` with slashes.
Location = LocalDirectory | RemoteDirectory


def location(text: str) -> Location:
    """Return the directory for a local path or for an object-store, ``file:``, or ``dbfs:`` URL.

    Raises:
        UsageError: the string is empty, starts with ``~``, or contains control characters or
            credentials; it is a URL with an unsupported scheme; or the directory is on a missing
            mount.
    """
    if problem := why_no_path(text):
        raise UsageError(f"{text}: {problem}")
    if not text or any(unicodedata.category(character) == "Cc" for character in text):
        # A line break would make one printed option look like several options.
        raise UsageError(
            f"{redact_url(text)!r}: not a directory name; pass the path or URL of a directory"
        )
    if redact_url(text) != text:
        raise UsageError(f"{redact_url(text)}: {CREDENTIALS_REFUSED}")
    scheme = _SCHEME.match(text)
    if scheme is None:
        return _local(text, text)
    if scheme[1].lower() == "dbfs":
        return _local(text, str(dbfs_path(text)))
    files = Files()
    path = files.from_uri(text)
    if path is None:
        advice = complete_slashes(text) or "use a URL such as s3://BUCKET/…"
        raise UsageError(f"{text}: not a writable location; {advice}")
    if _SCHEME.match(path) is None:
        return _local(text, path)
    return RemoteDirectory(text, path, files)


def _local(text: str, path: str) -> LocalDirectory:
    """Return a local directory.

    Raises:
        UsageError: the directory is on a missing mount, so the files would be written to the local
            disk, where the query would not find them.
    """
    directory = Path(path).absolute()
    mount = mount_of(directory)
    if mount is not None and not mount.is_dir():
        raise UsageError(
            f"{text}: {mount} does not exist on this machine; write to a local directory, and "
            "copy the whole directory to this location before you start the query for the first "
            "time"
        )
    return LocalDirectory(text, directory, mounted=mount is not None)
