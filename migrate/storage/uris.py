"""Paths and URIs from users."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

from decoder import ByteSource
from decoder.storage import LocalFiles
from decoder.urls import CREDENTIALS_REFUSED, redact_url
from migrate.model.catalog import CREDENTIALS_IN_URI, URI_NOT_SUPPORTED
from migrate.model.errors import InputError, MigrateError, UsageError
from migrate.model.option_names import option
from migrate.model.wording import why_mistyped

AnyPath: TypeAlias = str | os.PathLike[str]

# The schemes that messages list; `migrate.storage.files` reads these schemes and their synonyms.
SCHEMES = ("s3://", "gs://", "abfs://", "hdfs://", "webhdfs://")
# The directories at which Databricks mounts its own file system and Unity Catalog volumes.
DBFS = Path("/dbfs")
VOLUMES = Path("/Volumes")

# Schemes of stores to which Flink can write but which are not supported here. Each has a command
# that copies a directory to this machine.
_COPY_COMMANDS = {
    "cos": "coscli cp -r",
    "cosn": "hadoop fs -get",
    "obs": "obsutil cp -r",
    "oss": "ossutil cp -r",
}
_TILDE = re.compile(r"~[^/]*/|~$")
# The scheme of a store if the user omitted the colon, as in ``s3//bucket/query``.
_NO_COLON = re.compile(r"(s3[an]?|gs|abfss?|hdfs|webhdfs)//(.*)")
# The same, if the user omitted both slashes, as in ``s3:bucket/query``.
_NO_SLASHES = re.compile(r"(s3[an]?|gs|abfss?|hdfs|webhdfs):([^/].*)")
NO_TILDE = "migrate does not expand ~; write the full path"
# A path on a Windows drive, or a share on a host. This system would treat it as a file name.
_WINDOWS = re.compile(r"[A-Za-z]:[\\/]|\\\\")
NO_WINDOWS = (
    "this is a Windows path, but on this system it would be a file name; write the path of this "
    "system, such as /mnt/c/lake for C:\\lake in WSL, or mount the share"
)

# One slash is sufficient, because ``file:/data`` is a URI without a host.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
# A URI with a path and without a host, such as ``hdfs:/flink``.
_ONE_SLASH = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/([^/].*)")

# A ``file:`` URI without an absolute path, such as ``file://data/query`` or ``file:data``.
_RELATIVE_FILE = re.compile(r"file:(?://(?!localhost/))?([^/].*)")


def is_uri(name: str) -> bool:
    """Return whether a name is a URI with any scheme; if not, it is a local path."""
    return _URI.match(name) is not None


def scheme_of(uri: str) -> str:
    """Return the scheme of a URI in lowercase; an empty string for a local path."""
    match = _URI.match(uri)
    return match[1].lower() if match else ""


def dbfs_path(uri: str) -> Path:
    """Return the path of a ``dbfs:`` URI on the Databricks mounts; the path may not exist."""
    below = "/" + uri.partition(":")[2].lstrip("/")
    return Path(below) if Path(below).is_relative_to(VOLUMES) else Path(f"{DBFS}{below}")


def mount_of(path: Path) -> Path | None:
    """Return the Databricks mount that contains a path, or None."""
    return next((mount for mount in (DBFS, VOLUMES) if path.is_relative_to(mount)), None)


def why_not_read(uri: str) -> str:
    """Return advice about a URI that ``Files.from_uri`` does not support, or an empty string."""
    scheme = scheme_of(uri)
    if scheme == "dbfs":
        return (
            f"this machine has no {mount_of(dbfs_path(uri))}; run the command on Databricks, or "
            "copy the whole directory with `databricks fs cp -r` and pass the copy"
        )
    if scheme == "viewfs":
        return "pass the hdfs:// URI from the mount table of viewfs"
    if scheme in _COPY_COMMANDS:
        return (
            f"copy the whole directory with `{_COPY_COMMANDS[scheme]}` to this machine, and pass "
            "the copy"
        )
    if advice := complete_slashes(uri):
        return advice
    if scheme in ("", "file"):
        return why_no_path(uri)
    return (
        f"pass a local path or a URI with {', '.join(SCHEMES)}; or copy the whole directory to "
        "this machine"
    )


def complete_slashes(uri: str) -> str:
    """Return advice about a URI for an object store or HDFS in which a slash is missing.

    Such a URI has only one slash after the scheme. For other names, return "".
    """
    match, scheme = _ONE_SLASH.fullmatch(uri), scheme_of(uri)
    if match is None or not any(prefix.startswith(scheme) for prefix in SCHEMES):
        return ""
    if scheme == "webhdfs":
        return f"add the host, as in webhdfs://HOST:9870/{match[2]}"
    # In hdfs:///, the host can be missing, because Hadoop's configuration contains it.
    return f"did you mean {scheme}://{'/' if scheme == 'hdfs' else ''}{match[2]}?"


def path_of(name: str, files: ByteSource) -> str:
    """Return the path of a ``file:`` or ``dbfs:`` URI; return any other name unchanged.

    Raises:
        InputError: ``files`` does not support the URI's scheme, or the URI contains credentials.
        UsageError: the path is not valid on this system, as in ``why_no_path``.
    """
    check_no_credentials(name, InputError)
    if problem := why_no_path(name):
        raise UsageError(f"{name}: {problem}")
    if not is_uri(name):
        return name
    path = files.from_uri(name)
    if path is None:
        raise InputError(URI_NOT_SUPPORTED(uri=name, way_out=why_not_read(name)))
    return name if "://" in path else path


def has_tilde(path: str) -> bool:
    """Return whether shells expand a ``~`` at the start of a path (``~``, ``~/``, ``~USER/``)."""
    return _TILDE.match(path) is not None


def why_no_path(path: str) -> str:
    """Return the reason that a user's path is not valid on this system, or an empty string."""
    if has_tilde(path):
        return NO_TILDE
    if match := _NO_COLON.fullmatch(path):
        return f"the URI lacks a colon; did you mean {match[1]}://{match[2]}?"
    if match := _RELATIVE_FILE.fullmatch(path):
        return f"a file: URI requires an absolute path; did you mean file:///{match[1]}?"
    if match := _NO_SLASHES.fullmatch(path):
        return f"the URI lacks slashes; did you mean {match[1]}://{match[2]}?"
    # On Windows, such a name is a path (``migrate`` is not tested on Windows).
    if os.name != "nt" and _WINDOWS.match(path):
        return NO_WINDOWS
    # A store may have any name, and so may existing local files and directories.
    local = LocalFiles().from_uri(path) if is_uri(path) else path
    if local is None or os.path.lexists(local):
        return ""
    is_in_directory = Path(local).parent.is_dir() and "/" in local
    return why_mistyped(local.rpartition("/")[2] if is_in_directory else path, "path")


def path_problem(path: str) -> str:
    """Return the reason that a user's path is empty or not valid, or an empty string."""
    return why_no_path(path) if path else "the path is empty; a variable may be unset"


def local_path(name: str) -> Path:
    """Return the path of a local file from a path or a ``file:`` URI.

    Raises:
        UsageError: the name is empty, is a URI with a different scheme, contains credentials, or
            starts with a ``~`` that shells expand.
    """
    if not name:
        raise UsageError("the path of a file is empty; a variable may be unset")
    check_no_credentials(name, UsageError)
    if problem := why_no_path(name):
        raise UsageError(f"{name}: {problem}")
    path = LocalFiles().from_uri(name) if is_uri(name) else name
    if path is None:
        raise UsageError(f"{name} is not a local file; pass a path or a file: URI")
    return Path(path)


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is a directory's own path, or a path under this directory.

    The path and the directory are each a local path, or an object store URL in the format that
    ``from_uri`` returns.
    """
    if "://" in path or "://" in directory:
        return f"{path}/".startswith(f"{directory}/")
    return Path(path).resolve().is_relative_to(Path(directory).resolve())


def check_no_credentials(text: str, error: type[MigrateError], name: str = "") -> None:
    """Refuse a URL with a password, a key, or a signature; the error shows the URL without them.

    Args:
        text: a URL, or any other string, with or without a URL in it.
        error: the type of the error.
        name: the name of the option that contains the string, for the message.
    """
    shown = redact_url(text)
    if shown != text:
        before = f"{option(name)} " if name else ""
        if error is InputError:
            raise error(CREDENTIALS_IN_URI(uri=f"{before}{shown}"))
        raise error(f"{before}{shown}: {CREDENTIALS_REFUSED}")
