"""Looks for checkpoints: walks directories from their roots, many at once.

A directory costs one listing, a ``chk-<n>`` one look at its ``_metadata``. The walk does not enter
a checkpoint's own directory, nor ``shared`` and ``taskowned`` beside it, which hold state alone.
It does not follow links below a root.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from decoder import ErrorKind
from decoder.storage import (
    METADATA_FILE,
    StorageUnavailable,
    checkpoint_number,
    join,
    normalise_path,
)
from decoder.urls import CREDENTIALS_REFUSED, redact_url
from migrate.fleet.candidates import Candidate, Failure, job_id_of, mark_newest
from migrate.storage.files import Files, Listed, is_uri

# A remote store takes tens of milliseconds for each answer.
_AT_ONCE = 16
_PIECES = 8
# CheckpointCoordinator: savepoint-<first characters of the job id>-<random> @ Flink 2.2.0.
_SAVEPOINT = re.compile(r"savepoint-[0-9a-f]{6}-[0-9a-f]{12}")
_BESIDE_CHECKPOINTS = frozenset({"shared", "taskowned"})
_MAGIC = re.compile(r"[*?[]")
# A local path's root, or a URL's host or bucket, which no glob can match.
_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*|/")


class _Kind(Enum):
    ROOT = auto()  # as the user named it: it must be there
    DIRECTORY = auto()
    CHECKPOINT = auto()  # chk-<n> or a savepoint, by its name
    NEWEST = auto()  # the newest complete chk-<n> of a job's directory


class _Place(NamedTuple):
    """What is to be looked at next; ``names`` are those of a job's ``chk-<n>``, newest first."""

    kind: _Kind
    path: str
    names: tuple[str, ...] = ()


_Found = tuple[Sequence[Candidate], Sequence[_Place]]


def discover(roots: Iterable[str], files: Files, *, latest_only: bool = False) -> list[Candidate]:
    """Every checkpoint and savepoint below the roots, sorted by pointer.

    One without ``_metadata`` (half-written, or being written) is among them: reading it says so.
    What could not be listed is a candidate with a failure, a root that is not there as well.

    Args:
        roots: directories, ``_metadata`` files, or globs with ``*``, ``?`` and ``[…]`` in the
            parts of a path; local, or of any URL that ``files`` knows.
        latest_only: of each job's directory the newest complete ``chk-<n>`` alone (where none is
            complete, the newest); savepoints lie in no job's directory and all stay.

    Raises:
        MissingExtra: the library for a root's kind of URL is not installed.
    """
    walk = _Walk(files, latest_only)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found, level = _gathered(pool.map(walk.begin, dict.fromkeys(roots)))
        seen: set[_Place] = set()
        while level:
            new = [place for place in dict.fromkeys(level) if place not in seen]
            seen.update(new)
            # A piece costs a thread some time; a few for each leave none waiting for a slow one.
            size = -(-len(new) // (_AT_ONCE * _PIECES))
            pieces = [new[start : start + size] for start in range(0, len(new), size)]
            more, level = _gathered(
                chain.from_iterable(pool.map(lambda piece: list(map(walk.look, piece)), pieces))
            )
            found += more
    by_pointer: dict[str, Candidate] = {}
    for candidate in found:
        by_pointer.setdefault(candidate.pointer, candidate)
    candidates = list(by_pointer.values())
    if latest_only:  # of what was named one by one (chk-*); a walk leaves one of each already
        candidates = [one.candidate for one in mark_newest(candidates) if one.newest]
    return sorted(candidates, key=_order)


def _gathered(steps: Iterable[_Found]) -> tuple[list[Candidate], list[_Place]]:
    found: list[Candidate] = []
    places: list[_Place] = []
    for candidates, more in steps:
        found += candidates
        places += more
    return found, places


def _order(candidate: Candidate) -> tuple[str, int, str]:
    number = candidate.number
    parent = posixpath.dirname(candidate.pointer)
    return (candidate.pointer, 0, "") if number is None else (parent, number, candidate.pointer)


class _Walk:
    def __init__(self, files: Files, latest_only: bool) -> None:
        self._files = files
        self._latest_only = latest_only

    def begin(self, root: str) -> _Found:
        """What a root stands for."""
        if redact_url(root) != root:
            shown = redact_url(root)
            message = f"{shown}: {CREDENTIALS_REFUSED}"
            return [_not_one(shown, ErrorKind.UNSUPPORTED, message)], ()
        path = self._path(root)
        if path is None:
            message = f"{root}: checkpoints are not read from a URI of this kind"
            return [_not_one(root, ErrorKind.UNSUPPORTED, message)], ()
        if not is_glob(path):
            return (), [self._root(path)]
        try:
            found = _matches(path, self._files)
        except OSError as error:
            return [_failed(path, error)], ()
        if not found:
            return [_not_one(path, ErrorKind.NOT_FOUND, f"{path}: no directory matches")], ()
        return (), [self._root(match) for match in found]

    def _path(self, root: str) -> str | None:
        # Executors have a working directory of their own.
        path = self._files.from_uri(root) if is_uri(root) else str(Path(root).absolute())
        return normalise_path(path) if path is not None else None

    def _root(self, path: str) -> _Place:
        if posixpath.basename(path) == METADATA_FILE:
            return _Place(_Kind.CHECKPOINT, posixpath.dirname(path))
        kind = _Kind.CHECKPOINT if _is_named_as_one(posixpath.basename(path)) else _Kind.ROOT
        return _Place(kind, path)

    def look(self, place: _Place) -> _Found:
        """What is there: checkpoints, and places to look at next."""
        try:
            if place.kind is _Kind.NEWEST:
                return [self._newest(place)], ()
            if place.kind is _Kind.CHECKPOINT:
                return [self._checkpoint(place.path)], ()
            return self._directory(place)
        except OSError as error:
            return [_failed(place.path, error)], ()

    def _checkpoint(self, path: str) -> Candidate:
        size = self._files.file_size(join(path, METADATA_FILE))
        return Candidate(path, _job_directory(path), size)

    def _newest(self, place: _Place) -> Candidate:
        for name in place.names:
            path = join(place.path, name)
            size = self._files.file_size(join(path, METADATA_FILE))
            if size is not None:
                return Candidate(path, place.path, size, newest=True)
        return Candidate(join(place.path, place.names[0]), place.path, newest=True)

    def _directory(self, place: _Place) -> _Found:
        entries = self._files.entries(place.path)
        if entries is None:
            message = f"{place.path}: no such directory"
            return [_not_one(place.path, ErrorKind.NOT_FOUND, message)], ()
        for entry in entries:
            if entry.name == METADATA_FILE and not entry.is_directory:
                return [Candidate(place.path, _job_directory(place.path), entry.size)], ()
        return (), list(self._below(place.path, entries))

    def _below(self, path: str, entries: Iterable[Listed]) -> Iterator[_Place]:
        names = [entry.name for entry in entries if entry.is_directory]
        numbered = [(n, name) for name in names if (n := checkpoint_number(name)) is not None]
        checkpoints = tuple(name for _, name in sorted(numbered, reverse=True))
        skipped = {*checkpoints}
        if checkpoints or job_id_of(path) is not None or set(names) >= _BESIDE_CHECKPOINTS:
            skipped |= _BESIDE_CHECKPOINTS
        if self._latest_only and checkpoints:
            yield _Place(_Kind.NEWEST, path, checkpoints)
        else:
            for name in checkpoints:
                yield _Place(_Kind.CHECKPOINT, join(path, name))
        for name in names:
            if name not in skipped:
                kind = _Kind.CHECKPOINT if _SAVEPOINT.fullmatch(name) else _Kind.DIRECTORY
                yield _Place(kind, join(path, name))


def _is_named_as_one(name: str) -> bool:
    return checkpoint_number(name) is not None or _SAVEPOINT.fullmatch(name) is not None


def _job_directory(path: str) -> str | None:
    return posixpath.dirname(path) if checkpoint_number(path) is not None else None


def _failed(path: str, error: OSError) -> Candidate:
    unavailable = isinstance(error, StorageUnavailable)
    kind = ErrorKind.UNAVAILABLE if unavailable else ErrorKind.UNREADABLE
    message = f"{error.filename or path}: cannot be read: {error.strerror or error}"
    return Candidate(path, _job_directory(path), failure=Failure(kind.value, message))


def _not_one(root: str, kind: ErrorKind, message: str) -> Candidate:
    return Candidate(root, failure=Failure(kind.value, message))


def is_glob(path: str) -> bool:
    """Whether a path or a URL has ``*``, ``?`` or ``[…]`` behind its root."""
    root = _BASE.match(path)  # the brackets of an IPv6 address are none
    return _MAGIC.search(path, root.end() if root is not None else 0) is not None


def _matches(pattern: str, files: Files) -> list[str]:
    """What lies under an absolute path or a URL with a glob in it: directories, and ``_metadata``
    where the last part names it; sorted.

    Raises:
        OSError, MissingExtra: a directory on the way cannot be listed.
    """
    root = _BASE.match(pattern)
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
