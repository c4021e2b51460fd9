"""Where the bytes of a checkpoint come from: a protocol, and local files.

The decoder itself opens local files only; whoever has others gives it a ByteSource of their own.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Protocol

METADATA_FILE = "_metadata"
_CHECKPOINT_DIRECTORY = re.compile(r"chk-(\d+)")
# The most that is read of a file that is read whole: a plan of half a million partitions is
# smaller. A file may be sparse, and claim any size.
MAX_FILE_BYTES = 256 * 1024 * 1024
_PIECE = 1024 * 1024
# Only the scheme: a path after it may hold anything.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# What the system says of a path that leads nowhere.
_NO_SUCH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class StorageUnavailable(OSError):
    """A store that did not answer, or denied access."""


class ByteSource(Protocol):
    """Read-only files under slash-separated paths.

    A path is what the source itself understands (a local path, a URL); every method raises
    FileNotFoundError for what is not there, StorageUnavailable for a service that fails, and
    OSError for what may not be read. ``read_range`` is called from several threads at once.
    """

    def read(self, path: str) -> bytes:
        """The whole of a file; OSError for one of more than ``MAX_FILE_BYTES``."""

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """``size`` bytes from ``start``; fewer only where the file ends."""

    def is_file(self, path: str) -> bool: ...

    def modified_at(self, path: str) -> int | None:
        """When a file was written, in milliseconds of the epoch; None where that is not kept."""

    def absolute(self, path: str) -> str:
        """The same path with every directory above it, links followed and ``..`` resolved, so
        that two such paths tell by their text whether one lies below the other."""

    def list_directory(self, path: str) -> list[str] | None:
        """The names in a directory, sorted, or None where ``path`` is not a directory."""

    def from_uri(self, uri: str) -> str | None:
        """The path of an absolute URI as Flink wrote it, or None where this source has no such."""


class LocalFiles:
    """The local file system.

    Its paths are text, as callers have them: a fleet's checkpoints are small, and to make a Path of
    each path costs as much as to ask for the file.
    """

    def read(self, path: str) -> bytes:
        return read_file(path)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        with _open(path) as file:
            # The file's own length bounds the read: a handle may claim any place and any size.
            length = os.fstat(file.fileno()).st_size
            if start >= length:
                return b""
            file.seek(start)
            return file.read(min(size, length - start))

    def is_file(self, path: str) -> bool:
        return S_ISREG(_mode(path))

    def list_directory(self, path: str) -> list[str] | None:
        mode = _mode(path)
        if not S_ISDIR(mode):
            if mode and not S_ISREG(mode):
                raise OSError(errno.EINVAL, "neither a file nor a directory", path)
            return None
        return sorted(os.listdir(path))  # noqa: PTH208 - paths are text here

    def modified_at(self, path: str) -> int | None:
        return os.stat(path).st_mtime_ns // 1_000_000  # noqa: PTH116 - as above

    def absolute(self, path: str) -> str:
        # Not Path.resolve: it raises RuntimeError over links that go round in a ring.
        return os.path.realpath(path)

    def from_uri(self, uri: str) -> str | None:
        # Flink writes a path as it is, nothing escaped: `#`, `?` and `%` stand for themselves.
        path = uri.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path.removeprefix("//").partition("/")
            if host not in ("", "localhost"):
                return None
            path = slash + rest
        return path if path.startswith("/") else None


def read_file(path: str | os.PathLike[str], most: int = MAX_FILE_BYTES) -> bytes:
    """The whole of a regular file. A pipe would be waited for, and a device have no end.

    Args:
        path: what a user named, or what is in a directory of theirs; links are followed.
        most: how many bytes it may have.

    Raises:
        FileNotFoundError: it is not there.
        OSError: it is something else, may not be read, or has more bytes.
    """
    path = os.fspath(path)
    status = os.stat(path)  # noqa: PTH116 - paths are text here
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "a pipe or a device, and no regular file", path)
    check_size(status.st_size, most, path)
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        data = file.read(status.st_size + 1)  # it may have grown, or its size be made up
        while len(data) <= most and (more := file.read(_PIECE)):
            data += more
    check_size(len(data), most, path)
    return data


def check_size(size: int, most: int, path: str) -> None:
    """Raise OSError where a file has more bytes than are read of it."""
    if size > most:
        raise OSError(errno.EFBIG, f"larger than {most} bytes, the most that is read of it", path)


def _open(path: str) -> BinaryIO:
    # A pipe or a device would hold the reader up for ever.
    if not S_ISREG(_mode(path)):
        raise FileNotFoundError(errno.ENOENT, "No such file", path)
    return open(path, "rb")  # noqa: PTH123 - paths are text here


def _mode(path: str) -> int:
    """What kind of file there is, as stat tells it; 0 where there is none."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - as above
    except OSError as error:
        if error.errno in _NO_SUCH:
            return 0
        raise
    except ValueError:  # not a path at all
        return 0


def join(directory: str, *names: str) -> str:
    """A path below a directory, for any ByteSource; an absolute name stays as it is."""
    return posixpath.join(directory, *names)


def checkpoint_number(directory: str) -> int | None:
    """The number of a path that ends in ``chk-<n>``; None of any other."""
    match = _CHECKPOINT_DIRECTORY.fullmatch(posixpath.basename(directory))
    return int(match[1]) if match else None


def normalise_path(path: str) -> str:
    """The path without ``.``, ``..`` and doubled slashes, for any ByteSource."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return posixpath.normpath(path)
    authority, slash, below = path[scheme.end() :].partition("/")
    # As an absolute path, so that no `..` climbs out of the host or the bucket.
    return scheme[0] + authority + (posixpath.normpath("/" + below.lstrip("/")) if slash else "")
