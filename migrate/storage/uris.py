"""Paths and URIs that users give."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeAlias

from decoder import ByteSource
from decoder.storage import LocalFiles
from decoder.urls import CREDENTIALS_REFUSED, redact_url
from migrate.model.errors import InputError, MigrateError, UsageError

AnyPath: TypeAlias = str | os.PathLike[str]

_TILDE = re.compile(r"~[^/]*/|~$")
NO_TILDE = "~ is not expanded here; write the whole path"

# One slash is enough, because ``file:/data`` is a URI without a host.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")


def is_uri(name: str) -> bool:
    """Return whether a name is a URI of any scheme; if not, it is a local path."""
    return _URI.match(name) is not None


def path_of(name: str, files: ByteSource) -> str:
    """Return the path of a ``file:`` URI; return any other name unchanged.

    Raises:
        InputError: ``files`` does not support the URI's scheme, or the URI contains credentials.
    """
    check_no_credentials(name, InputError)
    if not is_uri(name):
        return name
    local = LocalFiles().from_uri(name)
    if local is not None:
        return local
    if files.from_uri(name) is None:
        raise InputError(f"{name}: not read from a URI of this kind")
    return name


def has_tilde(path: str) -> bool:
    """Return whether a path is ``~``, or begins with ``~/`` or ``~USER/``, which shells expand."""
    return _TILDE.match(path) is not None


def local_path(name: str) -> Path:
    """Return the path of a local file from its path or ``file:`` URI.

    Raises:
        UsageError: the name is a URI of another scheme, contains credentials, or begins with a
            ``~`` that shells expand.
    """
    check_no_credentials(name, UsageError)
    if has_tilde(name):
        raise UsageError(f"{name}: {NO_TILDE}")
    path = LocalFiles().from_uri(name) if is_uri(name) else name
    if path is None:
        raise UsageError(f"{name}: a local file is taken here, by its path or a file: URI")
    return Path(path)


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is equal to or below a directory.

    Each of the two is a local path, or the URL of a store in the form that ``from_uri`` returns.
    """
    if "://" in path or "://" in directory:
        return f"{path}/".startswith(f"{directory}/")
    return Path(path).resolve().is_relative_to(Path(directory).resolve())


def check_no_credentials(name: str, error: type[MigrateError], option: str = "") -> None:
    """Refuse a URL with a password, a key or a signature; the error shows the URL without them.

    Args:
        name: a name that may be or contain a URL.
        error: the type of the error.
        option: the option with the name, for the message.
    """
    shown = redact_url(name)
    if shown != name:
        raise error(f"{option} {shown}: {CREDENTIALS_REFUSED}".lstrip())
