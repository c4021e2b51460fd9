"""Search directory trees for checkpoints, many directories at a time.

The search lists each directory at most once. It does not list a directory that is named like a
checkpoint (``chk-<n>``) or a savepoint, but queries only the size of the ``_metadata`` file in this
directory. The search skips a job's ``shared`` and ``taskowned`` directories, because they contain
only state. It does not follow links under a root.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from migrate.extensions.fleet.candidates import Candidate, Failure, mark_newest
from migrate.inputs.flink.job_id import SAVEPOINT_NAME, job_id_of
from migrate.storage.files import DirectoryEntry, Files
from migrate.storage.uris import is_uri, path_problem, why_not_read

# Many threads are used, because a remote store takes tens of milliseconds to answer.
_THREADS = 16
_BATCHES_PER_THREAD = 8
_STATE_DIRECTORIES = frozenset({"shared", "taskowned"})
_MAGIC = re.compile(r"[*?[]")
# The root of a local path, or a URL up to its host or bucket. In this part, ``*``, ``?``, and ``[``
# are not wildcards.
_BASE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]*|/")


class _Visit(NamedTuple):
    """A directory to visit.

    Attributes:
        is_checkpoint: True if the directory is named like a checkpoint (``chk-<n>``) or a
            savepoint, or if a root is the ``_metadata`` file in this directory.
        choices: the names of all ``chk-<n>`` in the directory, newest first, from which the scan
            selects the newest complete one. Empty if the scan reads every ``chk-<n>``.
    """

    path: str
    is_checkpoint: bool = False
    choices: tuple[str, ...] = ()


_Step = tuple[Sequence[Candidate], Sequence[_Visit]]


def discover(roots: Iterable[str], files: Files, *, latest_only: bool = False) -> list[Candidate]:
    """Return every checkpoint and savepoint under the roots, sorted by pointer and number.

    A checkpoint without ``_metadata`` (incomplete, or still being written) is also returned, but
    reading it will fail. A root that cannot be searched or a directory that cannot be listed is
    returned as a candidate with a failure.

    Args:
        roots: directories, ``_metadata`` files, or globs with ``*``, ``?``, and ``[…]`` in the
            parts of a path; each is a local path, or a URL that ``files`` can read.
        files: the file systems to search.
        latest_only: True to return only the newest complete ``chk-<n>`` in each job's directory, or
            the newest one if none is complete. All savepoints are still returned.

    Raises:
        MissingExtra: the library for a root's kind of URL is not installed.
    """
    walk = _Walk(files, latest_only)
    by_pointer: dict[str, Candidate] = {}
    seen: set[_Visit] = set()
    roots = dict.fromkeys(roots)
    with ThreadPoolExecutor(_THREADS) as pool:
        steps: Iterable[_Step] = pool.map(walk.begin, roots)
        while True:
            visits: dict[_Visit, None] = {}
            for candidates, more in steps:
                for candidate in candidates:
                    by_pointer.setdefault(candidate.pointer, candidate)
                for visit in more:
                    place = visit
                    if len(roots) > 1:  # two roots may lead to one directory, through a link
                        place = visit._replace(path=files.absolute(visit.path))
                    if place not in seen:
                        seen.add(place)
                        visits[visit] = None
            if not visits:
                break
            # Local directories are visited in this thread, because other threads would take more
            # time than they save. Remote directories are visited in batches, because each task in
            # the pool costs time. Each thread gets several batches, because some batches take
            # longer.
            local = [visit for visit in visits if "://" not in visit.path]
            remote = [visit for visit in visits if "://" in visit.path]
            size = max(1, -(-len(remote) // (_THREADS * _BATCHES_PER_THREAD)))
            batches = [remote[start : start + size] for start in range(0, len(remote), size)]
            of_remote = pool.map(walk.visit_all, batches)
            steps = chain(walk.visit_all(local), chain.from_iterable(of_remote))
    unique: Iterable[Candidate] = by_pointer.values()
    if latest_only:  # a root such as chk-* may match several checkpoints of one job
        unique = (marked for marked in mark_newest(unique) if marked.chk_numbers is not None)
    return sorted(unique, key=_sort_key)


def _sort_key(candidate: Candidate) -> tuple[str, int, str]:
    number = candidate.number
    parent = posixpath.dirname(candidate.pointer)
    return (candidate.pointer, 0, "") if number is None else (parent, number, candidate.pointer)


class _Walk:
    def __init__(self, files: Files, latest_only: bool) -> None:
        self._files = files
        self._latest_only = latest_only

    def begin(self, root: str) -> _Step:
        """Return a root's first visits, or a candidate with the reason that there are none."""
        shown = redact_url(root)
        if shown != root:
            return _failed(shown, ErrorKind.UNSUPPORTED, f"{shown}: {CREDENTIALS_REFUSED}")
        if problem := path_problem(root):
            return _failed(root, ErrorKind.NOT_FOUND, f"{root}: {problem}".removeprefix(": "))
        # Absolute, because Spark's executors have a different working directory.
        path = self._files.from_uri(root) if is_uri(root) else str(Path(root).absolute())
        if path is None:
            advice = why_not_read(root)
            message = f"{root}: URIs of this kind are not supported"
            message += advice and f"; {advice}"
            return _failed(root, ErrorKind.UNSUPPORTED, message)
        path = normalise_path(path)
        if not is_glob(path):
            return (), [_visit_of(path)]
        try:
            matches = _matches(path, self._files)
        except OSError as error:
            return _unreadable(path, error)
        if not matches:
            return _failed(path, ErrorKind.NOT_FOUND, f"{path}: no directory matches")
        return (), list(map(_visit_of, matches))

    def visit_all(self, visits: Iterable[_Visit]) -> list[_Step]:
        return list(map(self._visit, visits))

    def _visit(self, visit: _Visit) -> _Step:
        try:
            if visit.is_checkpoint:
                return [self._checkpoint(visit.path)], ()
            if visit.choices:
                return [self._newest(visit)], ()
            return self._directory(visit.path)
        except OSError as error:
            return _unreadable(visit.path, error)

    def _checkpoint(self, path: str) -> Candidate:
        size = self._files.file_size(join(path, METADATA_FILE))
        return Candidate(path, _job_directory(path), size)

    def _newest(self, visit: _Visit) -> Candidate:
        paths = [join(visit.path, name) for name in visit.choices]
        for path in paths:
            size = self._files.file_size(join(path, METADATA_FILE))
            if size is not None:
                return Candidate(path, visit.path, size, read_newest=True)
        return Candidate(paths[0], visit.path, read_newest=True)

    def _directory(self, path: str) -> _Step:
        entries = self._files.entries(path)
        if entries is None:
            is_file = self._files.is_file(path)
            problem = "a file, not a directory" if is_file else "no such directory"
            return _failed(path, ErrorKind.NOT_FOUND, f"{path}: {problem}")
        for entry in entries:
            if entry.name == METADATA_FILE and not entry.is_directory:
                return [Candidate(path, _job_directory(path), entry.size)], ()
        return (), list(self._visits_below(path, entries))

    def _visits_below(self, path: str, entries: Iterable[DirectoryEntry]) -> Iterator[_Visit]:
        names = [entry.name for entry in entries if entry.is_directory]
        numbered = [(n, name) for name in names if (n := checkpoint_number(name)) is not None]
        checkpoints = tuple(name for _, name in sorted(numbered, reverse=True))
        skipped = {*checkpoints}
        if checkpoints or job_id_of(path) is not None or set(names) >= _STATE_DIRECTORIES:
            skipped |= _STATE_DIRECTORIES
        if self._latest_only and checkpoints:
            yield _Visit(path, choices=checkpoints)
        else:
            yield from (_Visit(join(path, name), is_checkpoint=True) for name in checkpoints)
        for name in names:
            if name not in skipped:
                yield _Visit(join(path, name), SAVEPOINT_NAME.fullmatch(name) is not None)


def _visit_of(path: str) -> _Visit:
    """Return the first visit for a root that is not a glob, or for a match of a glob."""
    name = posixpath.basename(path)
    if name == METADATA_FILE:
        return _Visit(posixpath.dirname(path), is_checkpoint=True)
    named = checkpoint_number(name) is not None or SAVEPOINT_NAME.fullmatch(name) is not None
    return _Visit(path, is_checkpoint=named)


def _job_directory(path: str) -> str | None:
    return posixpath.dirname(path) if checkpoint_number(path) is not None else None


def _unreadable(path: str, error: OSError) -> _Step:
    unavailable = isinstance(error, StorageUnavailable)
    kind = ErrorKind.UNAVAILABLE if unavailable else ErrorKind.UNREADABLE
    message = f"{error.filename or path}: cannot be read: {error.strerror or error}"
    return _failed(path, kind, message, _job_directory(path))


def _failed(path: str, kind: ErrorKind, message: str, job_directory: str | None = None) -> _Step:
    return [Candidate(path, job_directory, failure=Failure(kind.value, message))], ()


def is_glob(path: str) -> bool:
    """Return whether a path or a URL has ``*``, ``?``, or ``[`` after its root."""
    root = _BASE.match(path)  # the root may contain the brackets of an IPv6 address
    return _MAGIC.search(path, root.end() if root is not None else 0) is not None


def _matches(pattern: str, files: Files) -> list[str]:
    """Return the directories that match a glob, sorted; the glob is an absolute path or a URL.

    ``_metadata`` files that match the glob are also returned.

    Raises:
        OSError, MissingExtra: a directory to search cannot be listed.
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
