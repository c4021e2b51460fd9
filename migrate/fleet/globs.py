"""Paths with ``*``, ``?`` and ``[…]`` in their parts, matched against what a store lists."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from decoder.storage import METADATA_FILE, join
from migrate.storage import Files

_MAGIC = re.compile(r"[*?[]")
# A local path's root, or a URL's host or bucket, which no glob can match.
_ROOT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*|/")


def is_glob(path: str) -> bool:
    root = _ROOT.match(path)  # the brackets of an IPv6 address are none
    return _MAGIC.search(path, root.end() if root is not None else 0) is not None


def matches(pattern: str, files: Files) -> list[str]:
    """What lies under an absolute path or a URL with a glob in it: directories, and ``_metadata``
    where the last part names it; sorted.

    Raises:
        OSError, MissingExtra: a directory on the way cannot be listed.
    """
    root = _ROOT.match(pattern)
    base = root[0] if root is not None else "/"
    parts = [part for part in pattern[len(base) :].split("/") if part]
    first = next(index for index, part in enumerate(parts) if is_glob(part))
    paths = [join(base, *parts[:first])]
    for index, part in enumerate(parts[first:], first):
        last = index == len(parts) - 1
        paths = [
            join(path, entry.name)
            for path in paths
            for entry in files.entries(path) or ()
            if fnmatchcase(entry.name, part)
            and (entry.is_directory or (last and entry.name == METADATA_FILE))
        ]
    return sorted(paths)
