"""What lies where no checkpoint could be read: what the user may have meant."""

from __future__ import annotations

from decoder import DecodeError, ErrorKind, list_checkpoints
from decoder.checkpoint import read_metadata
from decoder.storage import METADATA_FILE, checkpoint_number, join
from decoder.urls import redact_url
from migrate.storage.files import Files

# Of a directory that is no checkpoint: how much of it is looked into, and how much is named.
_MOST_CHILDREN = 200
_NAMED = 5
_HEAD = 100
# What lies in the checkpoint location of a Spark query.
_SPARKS = {"metadata", "offsets", "sources"}
# What was there, or was not: of other errors nothing shows, and a store that did not answer is not
# asked again.
_TELLING = (ErrorKind.NOT_FOUND, ErrorKind.CORRUPT, ErrorKind.TRUNCATED)


def explain(pointer: str, error: DecodeError, files: Files) -> None:
    """Raise the error with what to name instead, where that shows.

    Raises:
        DecodeError: the same, and what lies there.
    """
    if redact_url(pointer) != pointer:
        return  # it holds credentials: nobody is asked about it
    try:
        instead = _instead(pointer, error.kind, files)
    except (DecodeError, OSError):  # what went wrong first is what counts
        return
    if instead:
        raise DecodeError(
            error.kind,
            f"{error.problem}; {instead}",
            file=error.file,
            field=error.field,
            byte_offset=error.byte_offset,
        ) from error


def _instead(pointer: str, kind: ErrorKind, files: Files) -> str:
    """What the user may have meant; empty where that does not show."""
    if kind not in _TELLING:
        return ""
    names = files.list_directory(pointer)
    if kind is ErrorKind.NOT_FOUND and names is not None:
        if len(_SPARKS.intersection(names)) > 1:
            return f"it is the checkpoint location of a Spark query: name it spark:{pointer}"
        return _children(pointer, names, files)
    if names is not None:
        return _newest_whole(pointer, files)
    if files.is_file(pointer) and (head := files.read_range(pointer, 0, _HEAD)).startswith(b"{"):
        if b'"kind"' not in head:  # what this tool saves begins with it
            return f"it is JSON: if it holds Spark's offsets, name it json:{pointer}"
        return (
            "it is JSON: a saved plan is applied with --plan FILE, a rollback file with `migrate "
            "rollback FILE`, and `migrate show FILE` shows both"
        )
    return ""


def _children(directory: str, names: list[str], files: Files) -> str:
    """The jobs' directories and the savepoints below it."""
    found = []
    for name in sorted(names)[:_MOST_CHILDREN]:
        inside = files.list_directory(join(directory, name)) or []
        if METADATA_FILE in inside or any(checkpoint_number(one) is not None for one in inside):
            found.append(join(directory, name))
    if not found:
        return ""
    more = ", …" if len(found) > _NAMED else ""
    return f"name one of those below it: {', '.join(found[:_NAMED])}{more}"


def _newest_whole(directory: str, files: Files) -> str:
    """The newest checkpoint of a job's directory whose metadata can be read."""
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
