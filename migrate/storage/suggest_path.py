"""Suggest a different path if the user's path could not be read."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import NamedTuple

from decoder import ByteSource, DecodeError, ErrorKind, list_checkpoints
from decoder.checkpoint import read_metadata
from decoder.state_files import MISSING_STATE_FILE
from decoder.storage import METADATA_FILE, checkpoint_number, join
from decoder.urls import CREDENTIALS_REFUSED
from migrate.model.positions import SPARK_PREFIX
from migrate.model.wording import counted, join_some, similar_names, with_known_prefix
from migrate.storage.files import Files
from migrate.storage.uris import is_uri, why_no_path, why_not_read

# The maximum number of directory entries to search.
_MOST_CHILDREN = 200
# The maximum number of paths in a message.
_MAX_NAMED = 5
# The number of parent directories to search: the depth of the deepest path in a checkpoint location
# (DIR/sources/0/0).
_MOST_PARENTS = 3
# Names shorter than this are compared less strictly, because one mistyped letter is a large part of
# a short name.
_SHORT = 5
# Folders in a job's checkpoint directory that contain no checkpoints.
_FOLDERS_OF_A_JOB = ("shared", "taskowned")
_DAMAGED = (ErrorKind.CORRUPT, ErrorKind.TRUNCATED)
# The patterns are strings, so ``re`` compiles them at their first use; few commands need them.

# A file name pattern that the shell left unchanged because it matches nothing.
_PATTERN = r"[*?\[]"
# The decoder's advice, which a suggestion replaces.
_ADVICE = r"(?s); (?:name|pass) .*"

# The prefixes of the sides for which other commands exist.
_SIDES_WITH_COMMANDS = ("spark", "plan", "group", "json", "csv", "hudi", "broker")

# The start of the decoder's text about a file without Flink's magic number, and the decoder's name
# for the magic number.
_NOT_A_CHECKPOINT = "not a Flink checkpoint"
_FOREIGN_METADATA = (
    f"{_NOT_A_CHECKPOINT}, because the file does not start as Flink's metadata does; the file is "
    "damaged, or a different program wrote it; pass a different checkpoint"
)
_MAGIC_FIELD = "magic number"
_PASS_A_CHECKPOINT = "pass a chk-<n> or savepoint directory, or its _metadata file"
_FLINK_DELETED = (
    "Flink deletes a job's checkpoints when the job finishes, as after a stop-with-savepoint"
)
_WHOLE_DIRECTORY = (
    "_metadata was copied without the state files, or they were deleted; copy the whole directory "
    "(for a checkpoint, also the job's folders shared and taskowned), or pass a different "
    "checkpoint"
)


@contextmanager
def suggesting_path(pointer: str, files: Files) -> Iterator[None]:
    """Add a suggestion for a different path, if any, to a DecodeError that the block raises."""
    try:
        yield
    except DecodeError as error:
        _raise_with_suggestion(pointer, error, files)
        raise


@contextmanager
def suggesting_group(name: str) -> Iterator[None]:
    """Suggest ``group:NAME`` in a DecodeError about a missing path that may be a group's name."""
    try:
        yield
    except DecodeError as error:
        if (
            error.kind is not ErrorKind.NOT_FOUND
            or not name
            or re.search(r"[/\\:*?]", name)
            or checkpoint_number(name) is not None
            or os.path.exists(name)
        ):
            raise
        separator = " For" if error.problem.endswith("?") else "; for"
        problem = f"{error.problem}{separator} a consumer group, pass group:{name}"
        raise DecodeError(error.kind, problem, file=error.file) from error


def _raise_with_suggestion(pointer: str, error: DecodeError, files: Files) -> None:
    if error.problem == CREDENTIALS_REFUSED:
        return
    try:
        problem = _with_suggestion(pointer, error, files)
    except (DecodeError, OSError):  # the caller reports ``error``
        return
    if problem == error.problem:
        return
    if error.field == _MAGIC_FIELD:  # omit the field: the file has no magic number
        raise DecodeError(error.kind, problem, file=error.file) from error
    raise DecodeError(
        error.kind, problem, file=error.file, field=error.field, byte_offset=error.byte_offset
    ) from error


def _with_suggestion(pointer: str, error: DecodeError, files: Files) -> str:
    """Return the error's text; a suggestion, if any, is added to the text or replaces it."""
    if problem := why_no_path(pointer):
        return problem
    path = files.from_uri(pointer) if is_uri(pointer) else pointer
    if path is None and (advice := why_not_read(pointer)):
        return f"{error.problem}; {advice}"
    if error.kind is ErrorKind.NOT_FOUND and re.search(_PATTERN, pointer):
        return "no path matches this pattern; pass the path of a checkpoint or savepoint"
    if error.kind is ErrorKind.NOT_FOUND and (way_out := _command_for_side(pointer)):
        return f"not a Flink checkpoint; {way_out}"
    if error.kind is ErrorKind.NOT_FOUND and error.problem.startswith(MISSING_STATE_FILE):
        return f"{error.problem}; {_WHOLE_DIRECTORY}"
    # Do not search an object store that did not answer, because a second request would also fail.
    is_readable = error.kind in (ErrorKind.NOT_FOUND, *_DAMAGED)
    # For a file: or dbfs: URI, the suggestion contains the path. For an object store, it contains
    # the user's URI.
    where = pointer if path is None or "://" in path else path
    suggestion = _suggestion(where, error.kind, files) if is_readable else ""
    if error.problem.startswith(_NOT_A_CHECKPOINT):
        if not suggestion and posixpath.basename(error.file or "") == METADATA_FILE:
            return _FOREIGN_METADATA
        return f"{_NOT_A_CHECKPOINT}; {suggestion or _PASS_A_CHECKPOINT}"
    if error.kind in _DAMAGED:
        return f"damaged: {error.problem}; {suggestion or 'pass a different checkpoint'}"
    if not suggestion:
        return error.problem
    return f"{re.sub(_ADVICE, '', error.problem)}; {suggestion}"


def _suggestion(pointer: str, kind: ErrorKind, files: Files) -> str:
    """Return advice, such as a different path or a side, or an empty string if there is none."""
    names, is_damaged = files.list_directory(pointer), kind is not ErrorKind.NOT_FOUND
    if names is None:
        return _recognize(pointer, files) if is_damaged else _suggest_similar(pointer, files)
    if is_damaged:
        return _recognize(join(pointer, METADATA_FILE), files) or _suggest_newest(pointer, files)
    if location := _location_around(pointer, names, files):
        from migrate.storage.recognize_file import location_advice  # only errors need it

        advice = location_advice(location)
        return f"the directory is a Spark query's checkpoint location; {advice}"
    parent, name = posixpath.split(pointer.rstrip("/"))
    if name in _FOLDERS_OF_A_JOB and (newest := _suggest_newest(parent or ".", files)):
        return f"Flink stores only state files in {name}; {newest}"
    return _suggest_children(pointer, names, files)


def _command_for_side(pointer: str) -> str:
    """Return advice with a command for a name such as ``spark:DIR``; "" for any other name.

    A mistyped prefix is corrected.
    """
    side = with_known_prefix(pointer, _SIDES_WITH_COMMANDS) or pointer
    prefix, _, name = side.partition(":")
    match prefix:
        case "spark":
            return f"to show a Spark query, run `migrate show {side}`"
        case "plan":
            return f"to show a plan, run `migrate show {name}`"
        case "group" | "json" | "csv" | "hudi" | "broker":
            brokers = " -b HOST:PORT" if prefix in ("group", "broker") else ""
            return f"to compare a checkpoint with it, run `migrate diff CHK {side}{brokers}`"
    return ""


def _suggest_similar(pointer: str, files: Files) -> str:
    """Suggest an existing path to replace a missing path.

    For ``chk-<n>``, the suggestion is the newest checkpoint in the same directory. For other paths,
    the suggestion is a path with a similar name. Without a suggestion, report that a parent is
    missing or is a file. In an object store, only the parent directory is searched.
    """
    missing = _find_missing(pointer, files)
    if missing is None:
        return ""
    parent, name, below, names = missing
    is_checkpoint = not below and checkpoint_number(name) is not None
    if is_checkpoint and (newest := _suggest_newest(parent, files)):
        return newest
    for path in missing.similar_paths():
        if files.list_directory(path) is not None or files.is_file(path):
            return f"did you mean {path}?"
    state = "a file" if name in names else "missing"
    return f"{posixpath.join(parent, name)} is {state}" if below else ""


class _Missing(NamedTuple):
    """The first missing part of a path.

    Attributes:
        parent: the nearest existing directory; an empty string for the current directory.
        name: the name that is missing, or that is a file, in ``parent``.
        below: the rest of the path, or an empty string.
        names: the names in ``parent``.
    """

    parent: str
    name: str
    below: str
    names: list[str]

    def similar_paths(self) -> Iterator[str]:
        """Yield the paths with a name similar to the missing name; they may be missing too."""
        cutoff = 0.6 if len(self.name) < _SHORT else 0.75
        for similar in similar_names(self.name, self.names, cutoff):
            yield posixpath.join(self.parent, similar, self.below).rstrip("/")


def _find_missing(pointer: str, files: ByteSource) -> _Missing | None:
    """Return the first missing part of a path.

    Return None if no parent exists, or if the parent directory in an object store is missing.
    """
    path, below = pointer.rstrip("/"), ""
    parent, name = posixpath.split(path)
    while (names := files.list_directory(parent or ".")) is None:
        if "://" in pointer or parent in ("", "/"):
            return None
        path, below = parent, posixpath.join(name, below)
        parent, name = posixpath.split(path)
    return _Missing(parent, name, below, names)


def locations_to_suggest(path: str, files: ByteSource) -> list[str]:
    """Return the Spark checkpoint locations that the user may have meant, as ``spark:DIR``.

    For a file or a directory, this is the location above it. For a missing path, this is the
    location with the most similar name.
    """
    from migrate.storage.recognize_file import looks_like_location  # only errors need it

    try:
        if files.is_file(path) or files.list_directory(path) is not None:
            candidates = _parents(path)
        else:
            missing = _find_missing(path, files)
            candidates = missing.similar_paths() if missing is not None else iter(())
        found = (
            place for place in candidates if looks_like_location(files.list_directory(place) or ())
        )
        return [f"{SPARK_PREFIX}{place}" for place in islice(found, 1)]
    except OSError:  # the caller reports its own error
        return []


def _parents(path: str) -> Iterator[str]:
    """Yield the nearest parent directories of a path."""
    for _ in range(_MOST_PARENTS):
        path = posixpath.dirname(path) or "."
        yield path


def _recognize(path: str, files: Files) -> str:
    """Return what kind of file was mistaken for ``_metadata``, and what to do about it.

    Return an empty string if the path is not a file, or if the kind is unknown.
    """
    # Imported here, because only an error needs it.
    from migrate.storage.recognize_file import HEAD_BYTES, recognize

    if not files.is_file(path):
        return ""
    head = files.read_range(path, 0, HEAD_BYTES)
    if not head and posixpath.basename(path.rstrip("/")) != METADATA_FILE:
        return (
            "the file or object is empty (some tools create such objects for directories); the "
            "checkpoint's files were not copied, or have a different prefix"
        )
    return recognize(head, path)


def _location_around(directory: str, names: list[str], files: Files) -> str:
    """Return the Spark checkpoint location at or directly above a directory, or ""."""
    # Imported here, because only an error needs it.
    from migrate.storage.recognize_file import LOCATION_NAMES, looks_like_location

    if looks_like_location(names):
        return directory
    parent, name = posixpath.split(directory.rstrip("/"))
    is_below = name in LOCATION_NAMES and bool(names)
    if is_below and looks_like_location(files.list_directory(parent or ".") or ()):
        return parent or "."
    return ""


def _suggest_children(directory: str, names: list[str], files: Files) -> str:
    """Suggest savepoints and job checkpoint directories that are in a directory.

    A single path is not suggested if the directory also contains a job without checkpoints, because
    the user may have meant this job.
    """
    paths, without, has_folders = [], [], False
    for name in sorted(names)[:_MOST_CHILDREN]:
        inside = files.list_directory(join(directory, name)) or []
        has_folders = has_folders or (bool(inside) and name not in _FOLDERS_OF_A_JOB)
        if METADATA_FILE in inside or any(checkpoint_number(child) is not None for child in inside):
            paths.append(join(directory, name))
        elif not set(inside).isdisjoint(_FOLDERS_OF_A_JOB):
            without.append(name)
    if without:
        return (
            f"it contains {_counted_jobs(paths, without)}; {_FLINK_DELETED}; to move a job without "
            f"checkpoints, pass its savepoint; to list all, run `migrate scan {directory}`"
        )
    if len(paths) == 1:
        return f"did you mean {paths[0]}?"
    if paths:
        return f"pass one of the paths under it: {join_some(paths, _MAX_NAMED)}"
    if has_folders:
        return f"to find the jobs and savepoints under it, run `migrate scan {directory}`"
    if not set(names).isdisjoint(_FOLDERS_OF_A_JOB):
        return f"{_FLINK_DELETED}; pass the savepoint"
    return "Flink writes _metadata last; pass a different chk-<n> or a savepoint"


def _counted_jobs(paths: list[str], without: list[str]) -> str:
    """Return the counts and names of the directories with and without checkpoints."""
    groups = (
        (paths, "directory with a checkpoint", "directories with checkpoints"),
        (without, "job directory without checkpoints", "job directories without checkpoints"),
    )
    return " and ".join(
        f"{counted(len(names), one, several)} ({join_some(names, _MAX_NAMED)})"
        for names, one, several in groups
        if names
    )


def _suggest_newest(directory: str, files: Files) -> str:
    """Suggest the newest checkpoint with readable metadata in a job's directory."""
    for _, path in reversed(list_checkpoints(directory, files)):
        try:
            read_metadata(path, files)
        except DecodeError:
            continue
        return (
            f"the newest complete checkpoint is {path}; a move from it duplicates Flink's later "
            "output"
        )
    return ""
