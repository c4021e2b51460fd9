"""Files in object stores and HDFS, accessed through fsspec; the decoder reads local files.

A library is imported when its scheme is first used. The library itself finds credentials and
endpoints (``AWS_PROFILE`` and ``AWS_ENDPOINT_URL``, Google's application default credentials,
``AZURE_STORAGE_…``, and the Hadoop and fsspec configuration). Credentials are never taken from a
URI, because messages show URIs.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from decoder.storage import (
    MAX_FILE_BYTES,
    LocalFiles,
    StorageUnavailable,
    check_size,
    normalise_path,
)
from decoder.urls import redact_url
from migrate.model.errors import UsageError
from migrate.model.wording import install_command
from migrate.storage.uris import dbfs_path, is_uri, mount_of, scheme_of

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)")


class _Store(NamedTuple):
    """A kind of object store.

    Attributes:
        protocol: the fsspec name of the protocol.
        extra: the extra of this package that installs the library.
        options: the arguments of the fsspec file system.
        range_options: the arguments of ``cat_file`` for reading a range.
    """

    protocol: str
    extra: str
    options: Mapping[str, object] = {}
    range_options: Mapping[str, object] = {}


# The timeout is short, because botocore by default waits a minute for a connection and tries five
# times.
_S3 = _Store("s3", "s3", {"config_kwargs": {"connect_timeout": 10}})
_AZURE = _Store("abfs", "abfs")
# The patterns are strings, so ``re`` compiles them at their first use; few commands need them.

# The default port of HDFS: HdfsClientConfigKeys.DFS_NAMENODE_RPC_PORT_DEFAULT @ Hadoop 3.4.1.
_DEFAULT_PORT = r"^(hdfs://[^/:]+):8020(?=/|$)"
# An Azure storage account has two endpoints for the same files: one for blobs and one for Data Lake
# Storage.
_AZURE_ENDPOINT = r"^(?:abfss?|wasbs?)://([^/@]+@[^/.]+)\.(?:dfs|blob)\."
# The object store for each supported URI scheme.
_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n", "s3p"), _S3),
    "gs": _Store("gs", "gs"),
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), _AZURE),
    "hdfs": _Store("hdfs", "hdfs"),
    # Read exactly the range, because by default, fsspec reads 5 MiB more.
    "webhdfs": _Store("webhdfs", "hdfs", range_options={"block_size": 1}),
}
# Advice about library errors. Each key is a part of an error's text.
_ADVICE = {
    "Unable to locate credentials": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY",
    "Unable to load libjvm": "set JAVA_HOME, HADOOP_HOME, and CLASSPATH, or use webhdfs://",
    "Unable to load libhdfs": "install Hadoop's client, and set HADOOP_HOME and CLASSPATH, or use "
    "webhdfs://",
}

# The maximum number of bytes that ``Files.pieces`` reads at a time.
_PIECE_BYTES = 8 * 1024 * 1024
_MISSING_FILE_ERRORS = (FileNotFoundError, NotADirectoryError, IsADirectoryError)


class DirectoryEntry(NamedTuple):
    """An entry in a directory (a file with its size in bytes, or a directory)."""

    name: str
    is_directory: bool
    size: int


class MissingExtra(UsageError):
    """The library for a kind of object store is not installed."""


class Files:
    """A ByteSource for local paths and for URLs of the schemes in ``_STORES``.

    The methods raise MissingExtra if the library for a URL's scheme is not installed. Otherwise,
    they raise the errors of a ByteSource.
    """

    def __init__(self) -> None:
        self._local = LocalFiles()
        # Share the file systems between all threads, because fsspec would cache one for each
        # thread.
        self._systems: dict[tuple[str, str], AbstractFileSystem] = {}
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Files], tuple[()]]:
        return Files, ()  # connections cannot be pickled, so each process opens its own

    def read(self, path: str) -> bytes:
        if not _URL.match(path):
            return self._local.read(path)
        data = self.read_range(path, 0, MAX_FILE_BYTES + 1)
        check_size(len(data), MAX_FILE_BYTES, path)
        return data

    def read_range(self, path: str, start: int, size: int) -> bytes:
        if not _URL.match(path):
            return self._local.read_range(path, start, size)
        with self._file_system(path) as (system, name):
            if size == 0:
                return b""
            try:
                options = _STORES[_scheme(path)].range_options
                data: bytes = system.cat_file(name, start=start, end=start + size, **options)
            except _MISSING_FILE_ERRORS:
                raise
            # For a range beyond the end of a file, some libraries raise library-specific errors.
            except Exception:
                if system.size(name) > start:
                    raise
                return b""
            return data

    def pieces(self, path: str, start: int = 0, size: int | None = None) -> Iterator[bytes]:
        """Yield up to ``size`` bytes (by default, all) of a file from ``start`` on, in pieces."""
        done = 0
        while size is None or done < size:
            piece_size = _PIECE_BYTES if size is None else min(_PIECE_BYTES, size - done)
            piece = self.read_range(path, start + done, piece_size)
            if piece:
                yield piece
            done += len(piece)
            if len(piece) < piece_size:
                return

    def is_file(self, path: str) -> bool:
        if not _URL.match(path):
            return self._local.is_file(path)
        # Do not use isfile() in fsspec, because it returns False if the object store does not
        # answer.
        return self.file_size(path) is not None

    def modified_at(self, path: str) -> int | None:
        if not _URL.match(path):
            return self._local.modified_at(path)
        with self._file_system(path) as (system, name):
            try:
                return int(system.modified(name).timestamp() * 1000)
            except NotImplementedError:
                return None

    def absolute(self, path: str) -> str:
        return normalise_path(path) if _URL.match(path) else self._local.absolute(path)

    def list_directory(self, path: str) -> list[str] | None:
        if not _URL.match(path):
            return self._local.list_directory(path)
        entries = self.entries(path)
        return sorted(entry.name for entry in entries) if entries is not None else None

    def entries(self, path: str) -> list[DirectoryEntry] | None:
        """Return the entries of a directory, or None if the directory does not exist.

        A local symbolic link is listed as an entry that is not a directory, with size 0.
        """
        try:
            if not _URL.match(path):
                with os.scandir(path) as listed:
                    return [_entry(entry) for entry in listed]
            with self._file_system(path) as (system, name):
                below = system.ls(name, detail=True)
        except _MISSING_FILE_ERRORS:
            return None
        if [entry["name"] for entry in below] == [name]:
            return None  # ls() of a file lists the file itself
        # An empty object with the name of the directory is not an entry of the directory.
        return [
            DirectoryEntry(
                posixpath.basename(entry["name"].rstrip("/")),
                entry["type"] == "directory",
                entry["size"] or 0,
            )
            for entry in below
            if entry["name"].rstrip("/") != name.rstrip("/")
        ]

    def file_size(self, path: str) -> int | None:
        """Return a file's size in bytes; None if the file does not exist."""
        try:
            if not _URL.match(path):
                status = Path(path).stat()
                return status.st_size if stat.S_ISREG(status.st_mode) else None
            with self._file_system(path) as (system, name):
                info = system.info(name)
                return int(info["size"]) if info["type"] == "file" else None
        except _MISSING_FILE_ERRORS:
            return None

    def write(self, path: str, data: bytes) -> None:
        """Write a file to a URL, replacing any existing file; the bucket must exist."""
        with self._file_system(path) as (system, name):
            system.pipe_file(name, data)

    def write_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file of any size to a URL; after a failure, part of the file may remain."""
        with self._file_system(path) as (system, name):
            out = system.open(name, "wb")
        try:
            # ``pieces`` may raise the errors of a different store, so the loop is outside
            # _file_system.
            for piece in pieces:
                with self._file_system(path):
                    out.write(piece)
        finally:
            with self._file_system(path):
                out.close()

    def remove(self, path: str) -> None:
        """Remove a file at a URL."""
        with self._file_system(path) as (system, name):
            system.rm_file(name)

    def from_uri(self, uri: str) -> str | None:
        if scheme_of(uri) == "dbfs":
            path = dbfs_path(uri)
            mount = mount_of(path)
            return str(path) if mount is not None and mount.is_dir() else None
        url = _URL.match(uri)
        store = _STORES.get(url[1].lower()) if url else None
        if url is None or store is None:
            return self._local.from_uri(uri)
        if redact_url(uri) != uri:
            return None
        return normalise_path(f"{store.protocol}://{uri[url.start(2) :]}")

    @contextmanager
    def _file_system(self, path: str) -> Iterator[tuple[AbstractFileSystem, str]]:
        """Yield the file system of a URL, and the path in this file system.

        Errors are turned into StorageUnavailable, except for MissingExtra and errors about missing
        files.
        """
        try:
            system = self._system(path)
            yield system, system._strip_protocol(path)
        except (*_MISSING_FILE_ERRORS, MissingExtra):
            raise
        # Errors from botocore, aiohttp, and the Azure and Google libraries have no common base
        # class.
        except Exception as error:
            raise StorageUnavailable(errno.EIO, _reason(error), path) from error

    def _system(self, path: str) -> AbstractFileSystem:
        host = path.split("/", 3)[2]
        with self._lock:
            system = self._systems.get((_scheme(path), host))
            if system is None:
                system = _connect(path, _STORES[_scheme(path)])
                self._systems[_scheme(path), host] = system
            return system


def is_same_place(first: str, second: str) -> bool:
    """Return whether two paths or URLs refer to the same file or directory.

    Links and ``..`` in local paths are resolved, and the different schemes of an object store
    (``s3``, ``s3a``) count as equal. The file or directory may be missing.
    """
    return first == second or place_of(first) == place_of(second)


def place_of(name: str) -> str:
    """Return the canonical path or URL: an absolute path without links, or a normalized URL.

    For any other URI, only a trailing slash is removed.
    """
    files = Files()
    path = files.from_uri(name) if is_uri(name) else name
    place = files.absolute(path) if path is not None else name.rstrip("/")
    place = re.sub(_DEFAULT_PORT, r"\1", place)
    return re.sub(_AZURE_ENDPOINT, r"abfs://\1.dfs.", place)


def _entry(listed: os.DirEntry[str]) -> DirectoryEntry:
    is_file = listed.is_file(follow_symlinks=False)
    size = listed.stat(follow_symlinks=False).st_size if is_file else 0
    return DirectoryEntry(listed.name, listed.is_dir(follow_symlinks=False), size)


def _scheme(url: str) -> str:
    return url.partition(":")[0]


def _connect(path: str, store: _Store) -> AbstractFileSystem:
    try:
        from fsspec import get_filesystem_class

        kind = get_filesystem_class(store.protocol)
        # Do not use url_to_fs(), because it interprets `::` in a path as a chain of file systems.
        # Listings are not cached, because a running job writes and deletes files.
        from_url = kind._get_kwargs_from_urls(path)
        return kind(**from_url, **store.options, use_listings_cache=False, skip_instance_cache=True)
    except ImportError as error:
        raise MissingExtra(
            f"{path}: reading {store.protocol}:// requires an additional package: "
            f"{install_command(store.extra)}"
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of an error, with secrets redacted, and any advice about the error."""
    from migrate.model.secrets import redact_secrets  # imported late, because the import is slow

    lines = str(error).strip().splitlines()
    text = redact_secrets(lines[0]) if lines else type(error).__name__
    advice = next((f"; {advice}" for part, advice in _ADVICE.items() if part in text), "")
    return f"access denied: {text}" if isinstance(error, PermissionError) else text + advice
