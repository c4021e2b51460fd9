"""Suggestions of another path if the user's path could not be read."""

from __future__ import annotations

import re

from decoder import DecodeError, ErrorKind, list_checkpoints
from decoder.checkpoint import read_metadata
from decoder.storage import METADATA_FILE, checkpoint_number, join
from decoder.urls import redact_url
from migrate.storage.files import SCHEMES, Files

# The maximum number of a directory's entries that are searched.
_MOST_CHILDREN = 200
# The maximum number of paths that a message names.
_MAX_NAMED = 5
# The number of bytes that are read to recognise JSON.
_HEAD = 100
# Entries of a Spark query's checkpoint location.
_SPARK_NAMES = {"metadata", "offsets", "sources"}
_DAMAGED = (ErrorKind.CORRUPT, ErrorKind.TRUNCATED)
# The errors for which the store is searched for another path. It is not searched for other errors:
# a store that did not answer would not answer again.
_KINDS_WITH_SUGGESTION = (ErrorKind.NOT_FOUND, *_DAMAGED)
_OTHER_SCHEME = re.compile(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]*://")


def raise_with_suggestion(pointer: str, error: DecodeError, files: Files) -> None:
    """Search for another path to suggest.

    Raises:
        DecodeError: ``error`` with the suggestion, if there is one.
    """
    if redact_url(pointer) != pointer:
        return  # the path contains credentials
    try:
        problem = _with_suggestion(pointer, error, files)
    except (DecodeError, OSError):  # the caller reports the first error
        return
    if problem != error.problem:
        raise DecodeError(
            error.kind,
            problem,
            file=error.file,
            field=error.field,
            byte_offset=error.byte_offset,
        ) from error


def _with_suggestion(pointer: str, error: DecodeError, files: Files) -> str:
    """Return the error's text, with a suggestion if there is one."""
    if error.kind is ErrorKind.UNSUPPORTED and _OTHER_SCHEME.match(pointer):
        return f"{error.problem}; name a path or a URI of {', '.join(SCHEMES)}"
    if pointer.startswith("file://") and not pointer.startswith("file:///"):
        return f"{error.problem}; a file: URI has an absolute path, as file:///{pointer[7:]}"
    if error.kind is ErrorKind.NOT_FOUND and pointer.startswith("spark:"):
        return f"not a checkpoint of Flink; `migrate show {pointer}` shows a Spark query"
    suggestion = (
        _suggestion(pointer, error.kind, files) if error.kind in _KINDS_WITH_SUGGESTION else ""
    )
    if error.kind in _DAMAGED and not error.problem.startswith("not a Flink checkpoint"):
        return f"damaged: {error.problem}; {suggestion or 'take another checkpoint'}"
    return f"{error.problem}; {suggestion}" if suggestion else error.problem


def _suggestion(pointer: str, kind: ErrorKind, files: Files) -> str:
    """Return a text with the path to name instead, or an empty text."""
    names = files.list_directory(pointer)
    if kind is ErrorKind.NOT_FOUND and names is not None:
        if len(_SPARK_NAMES.intersection(names)) > 1:
            return f"it is the checkpoint location of a Spark query: name it spark:{pointer}"
        return _suggest_children(pointer, names, files)
    if names is not None:
        return _suggest_newest(pointer, files)
    if files.is_file(pointer) and (head := files.read_range(pointer, 0, _HEAD)).startswith(b"{"):
        if b'"kind"' not in head:  # the first key in every file of this tool
            return f"it is JSON: if it holds Spark's offsets, name it json:{pointer}"
        return (
            "it is JSON: name a saved plan with --plan FILE (for verify plan:FILE), and a rollback "
            "file with `migrate rollback FILE`; `migrate show FILE` shows both"
        )
    return ""


def _suggest_children(directory: str, names: list[str], files: Files) -> str:
    """Suggest the savepoints and the jobs' checkpoint directories in a directory."""
    paths = []
    for name in sorted(names)[:_MOST_CHILDREN]:
        inside = files.list_directory(join(directory, name)) or []
        if METADATA_FILE in inside or any(checkpoint_number(child) is not None for child in inside):
            paths.append(join(directory, name))
    if not paths:
        return "Flink writes _metadata last; name another chk-<n> or a savepoint"
    more = ", …" if len(paths) > _MAX_NAMED else ""
    if len(paths) == 1:
        return f"did you mean {paths[0]}?"
    return f"name one of those below it: {', '.join(paths[:_MAX_NAMED])}{more}"


def _suggest_newest(directory: str, files: Files) -> str:
    """Suggest the newest checkpoint in a job's directory whose metadata can be read."""
    for _, path in reversed(list_checkpoints(directory, files)):
        try:
            read_metadata(path, files)
        except DecodeError:
            continue
        return (
            f"the newest whole one is {path}: what Flink emitted after it would be emitted again "
            "by a move from there"
        )
    return ""
