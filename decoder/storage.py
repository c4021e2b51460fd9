"""The source of a checkpoint's bytes: a protocol, local files, and paths.

The decoder itself opens only local files; for other files, the caller passes a ByteSource.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
from stat import S_ISDIR, S_ISREG
from typing import Protocol

METADATA_FILE = "_metadata"
_CHECKPOINT_DIRECTORY = re.compile(r"chk-(\d+)")
# The largest file that ``read`` accepts; a hostile sparse file may have any size. A saved plan for
# half a million partitions is smaller.
MAX_FILE_BYTES = 256 * 1024 * 1024
_PIECE = 1024 * 1024
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# The system errors for a path that does not exist.
_NO_SUCH = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})


class StorageUnavailable(OSError):
    """An error for an object store that did not answer or denied access."""


class ByteSource(Protocol):
    """Read-only files under slash-separated paths.

    ``read``, ``read_range``, and ``modified_at`` raise FileNotFoundError for a missing file.
    Methods raise StorageUnavailable if an object store fails or denies access, and a different
    OSError if a local file cannot be read. ``read_range`` must be thread-safe.
    """

    def read(self, path: str) -> bytes:
        """Read a whole file; raise OSError if it is larger than ``MAX_FILE_BYTES``."""

    def read_range(self, path: str, start: int, size: int) -> bytes:
        """Read ``size`` bytes from ``start``, or fewer only at the end of the file."""

    def is_file(self, path: str) -> bool: ...

    def modified_at(self, path: str) -> int | None:
        """Return the time when a file was written, in epoch milliseconds, or None if unknown."""

    def absolute(self, path: str) -> str:
        """Return the absolute path, with links and ``..`` resolved.

        A path is under a directory if its absolute path starts with the absolute path of the
        directory and a slash.
        """

    def list_directory(self, path: str) -> list[str] | None:
        """Return the sorted names in a directory, or None if ``path`` is not a directory."""

    def from_uri(self, uri: str) -> str | None:
        """Return the path of an absolute URI, or None if this source does not read such URIs."""


class LocalFiles:
    """The local file system.

    Paths are str instead of Path, because creating a Path takes as long as the stat call.
    """

    def read(self, path: str) -> bytes:
        return read_file(path)

    def read_range(self, path: str, start: int, size: int) -> bytes:
        # Open only regular files, because a pipe or a device could block the reader forever.
        if not self.is_file(path):
            raise FileNotFoundError(errno.ENOENT, "No such file", path)
        with open(path, "rb") as file:  # noqa: PTH123 - paths are text here
            # The file length bounds the read, because a corrupt state handle can contain any start
            # and size.
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
                raise OSError(errno.EINVAL, "not a file or a directory", path)
            return None
        return sorted(os.listdir(path))  # noqa: PTH208 - paths are text here

    def modified_at(self, path: str) -> int | None:
        return os.stat(path).st_mtime_ns // 1_000_000  # noqa: PTH116 - as above

    def absolute(self, path: str) -> str:
        # Do not use Path.resolve, because it raises RuntimeError for links that form a loop.
        return os.path.realpath(path)

    def from_uri(self, uri: str) -> str | None:
        # Flink escapes nothing in a path, so `#`, `?`, and `%` are ordinary characters.
        path = uri.removeprefix("file:")
        if path.startswith("//"):
            host, slash, rest = path.removeprefix("//").partition("/")
            if host not in ("", "localhost"):
                return None
            path = slash + rest
        return path if path.startswith("/") else None


def read_file(path: str | os.PathLike[str], max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a whole file; refuse a pipe, which may block, and a device, which may have no end.

    Raises:
        FileNotFoundError: the file does not exist.
        OSError: the file is not a regular file, is larger than ``max_bytes``, or cannot be read.
    """
    path = os.fspath(path)
    status = os.stat(path)  # noqa: PTH116 - paths are text here
    if S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "a pipe or a device, not a regular file", path)
    check_size(status.st_size, max_bytes, path)
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        data = file.read(status.st_size + 1)  # st_size may be wrong if the file grew or is in /proc
        while len(data) <= max_bytes and (more := file.read(_PIECE)):
            data += more
    check_size(len(data), max_bytes, path)
    return data


def check_size(size: int, max_bytes: int, path: str) -> None:
    """Raise OSError if a file is larger than ``max_bytes``."""
    if size > max_bytes:
        raise OSError(errno.EFBIG, f"larger than {max_bytes} bytes, the limit for this file", path)


def _mode(path: str) -> int:
    """Return a file's mode from stat, or 0 if the file does not exist."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - as above
    except OSError as error:
        if error.errno in _NO_SUCH:
            return 0
        raise
    except ValueError:  # no file has such a path: it has a null byte or cannot be encoded
        return 0


def join(directory: str, *names: str) -> str:
    """Join a directory and names for any ByteSource.

    An absolute name replaces all parts before it.
    """
    return posixpath.join(directory, *names)


def checkpoint_number(directory: str) -> int | None:
    """Return n for a path that ends in ``chk-<n>``, or None for any other path."""
    match = _CHECKPOINT_DIRECTORY.fullmatch(posixpath.basename(directory))
    return int(match[1]) if match else None


def normalise_path(path: str) -> str:
    """Resolve ``.``, ``..``, and doubled slashes in a path or URL, without opening any file."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return posixpath.normpath(path)
    authority, slash, below = path[scheme.end() :].partition("/")
    # Normalize it as an absolute path, so that `..` cannot lead out of the host or bucket.
    return scheme[0] + authority + (posixpath.normpath("/" + below.lstrip("/")) if slash else "")
