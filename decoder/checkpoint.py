"""The decoder's entry point, which turns a pointer into a Checkpoint.

A pointer is the path or URI of a ``chk-<n>`` or savepoint directory, its ``_metadata``, or a job's
checkpoint directory. In a job's directory, the complete ``chk-<n>`` with the highest number is
read.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

from decoder.checkpoint_order import completed_at, find_siblings, is_complete, numbered_checkpoints
from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.operator import Sink, Source, read_sink, read_source
from decoder.metadata.model import CheckpointType, Metadata, Operator
from decoder.metadata.original_location import (
    is_other_directory,
    original_directory,
    original_files,
)
from decoder.metadata.parse import parse_metadata, read_header
from decoder.state_files import StateFiles, is_below_without_entropy
from decoder.storage import (
    METADATA_FILE,
    ByteSource,
    LocalFiles,
    StorageUnavailable,
    checkpoint_number,
    join,
)
from decoder.urls import CREDENTIALS_REFUSED, redact_url

# The largest ``_metadata`` to read. Most files are a few KB to a few MB in size; many small inline
# states make a file larger.
MAX_METADATA_BYTES = 1 << 30
# The size of the first read; most ``_metadata`` files are shorter and need no second read.
_FIRST_READ_BYTES = 64 * 1024
# A read restarts if the job completes a newer checkpoint in the meantime. This is the maximum
# number of such restarts, because a job may complete checkpoints faster than a slow object store
# delivers one. Restarts after a deleted file are not limited. Each of them reads a checkpoint with
# a higher number, so the loop ends.
_MAX_RESTARTS = 3
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# The number of requests to send at the same time. A job may retain hundreds of checkpoints, and
# each checkpoint takes a request to a remote store.
_PARALLEL_REQUESTS = 16


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint or savepoint, with the decoded Kafka state of its sources and sinks.

    Attributes:
        pointer: the directory of ``_metadata``.
        type: whether it is a checkpoint or a savepoint, and whether the job stopped with it.
        operators: the job's operators, in the order of ``_metadata``.
        sources: the state of each source, by operator ID; UnknownSource if not recognized.
        sinks: the state of each sink, by operator ID; UnknownSink if not recognized.
        newer_siblings: the numbers of the job's newer complete checkpoints, in the order of
            ``Siblings.newer``. They prove that the job kept running after this checkpoint.
        written_at: the time when ``_metadata`` was written, in epoch milliseconds; None if the
            storage does not store times.
        earlier_run: the numbers of siblings that have higher numbers but were written before this
            checkpoint, in ascending order. The job restarted its count at 1 after writing them.
        contradicting: the numbers of siblings whose times contradict their numbers, in ascending
            order; see ``decoder.checkpoint_order``.
        copied_from: the directory in which Flink wrote the checkpoint, if known and different from
            ``pointer``. In that case, ``written_at`` may be the time of the copy.
    """

    pointer: str
    checkpoint_id: int
    metadata_version: int
    type: CheckpointType
    operators: tuple[Operator, ...]
    sources: dict[str, Source]
    sinks: dict[str, Sink]
    newer_siblings: tuple[int, ...]
    written_at: int | None
    earlier_run: tuple[int, ...] = ()
    contradicting: tuple[int, ...] = ()
    copied_from: str | None = None


def read_checkpoint(
    pointer: str | os.PathLike[str],
    source: ByteSource | None = None,
    *,
    allow_external_files: bool = False,
) -> Checkpoint:
    """Read a checkpoint or savepoint.

    A running job may complete a newer checkpoint and delete older ones during the read. If this
    happens and the pointer is the job's directory, the read restarts with the newer checkpoint (see
    ``_MAX_RESTARTS``).

    Args:
        pointer: a checkpoint, savepoint, or job directory; see the module docstring.
        source: the source of the checkpoint's files; local files by default.
        allow_external_files: whether state may be read from files outside the checkpoint's own
            directories; see ``decoder.state_files``.

    Raises:
        DecodeError: the checkpoint does not exist, or a part of it cannot be read or was deleted.
    """
    files = source if source is not None else LocalFiles()
    path = _resolve_pointer(os.fspath(pointer), files)
    with translate_os_errors(path):
        metadata_path = _find_metadata(path, files)
        restarts = 0
        while True:
            try:
                checkpoint = _read_checkpoint(metadata_path, files, allow_external_files)
            except (DecodeError, FileNotFoundError) as error:
                if isinstance(error, DecodeError) and error.kind is not ErrorKind.NOT_FOUND:
                    raise
                metadata_path = _find_replacement(path, metadata_path, files, error)
                continue
            # In a job's directory, the highest number is read, so a newer sibling with a lower
            # number does not restart the read.
            is_newest = max(checkpoint.newer_siblings, default=-1) <= checkpoint.checkpoint_id
            if is_newest or _names_checkpoint(path, metadata_path) or restarts == _MAX_RESTARTS:
                return checkpoint
            restarts += 1
            metadata_path = _find_metadata(path, files)


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Turn an OSError from the operating system or an object store into a DecodeError."""
    try:
        yield
    except OSError as error:
        unavailable = isinstance(error, StorageUnavailable)
        kind = ErrorKind.UNAVAILABLE if unavailable else ErrorKind.UNREADABLE
        problem = f"cannot be read: {error.strerror or error}"
        raise DecodeError(kind, problem, file=error.filename or path) from error


def _resolve_pointer(pointer: str, files: ByteSource) -> str:
    """Return the path that ``files`` reads for a pointer, which may be a URI."""
    shown = redact_url(pointer)
    if shown != pointer:
        raise DecodeError(ErrorKind.UNSUPPORTED, CREDENTIALS_REFUSED, file=shown)
    if not pointer:
        raise DecodeError(ErrorKind.NOT_FOUND, "the path is empty; a variable may be unset")
    if "\0" in pointer:
        raise DecodeError(ErrorKind.NOT_FOUND, f"not a path: {pointer!r}")
    if not _URI.match(pointer):
        return pointer
    path = files.from_uri(pointer)
    if path is None:
        problem = "URIs of this kind are not supported"
        raise DecodeError(ErrorKind.UNSUPPORTED, problem, file=pointer)
    return path


class MetadataFile(NamedTuple):
    """A ``_metadata`` file that was read from ``source``, in the checkpoint's ``directory``."""

    metadata: Metadata
    data: bytes
    path: str
    directory: str
    source: ByteSource


def read_metadata(
    pointer: str | os.PathLike[str], source: ByteSource | None = None
) -> MetadataFile:
    """Read the ``_metadata`` that a pointer refers to, and no other part of the checkpoint.

    Args:
        pointer: as in ``read_checkpoint``.
        source: as in ``read_checkpoint``.

    Raises:
        DecodeError: the checkpoint does not exist, or its ``_metadata`` cannot be read.
    """
    files = source if source is not None else LocalFiles()
    path = _resolve_pointer(os.fspath(pointer), files)
    with translate_os_errors(path):
        metadata_path = _find_metadata(path, files)
        metadata, data = _read_metadata(metadata_path, files)
        directory = posixpath.dirname(files.absolute(metadata_path))
    return MetadataFile(metadata, data, metadata_path, directory, files)


def _read_checkpoint(
    metadata_path: str, files: ByteSource, allow_external_files: bool
) -> Checkpoint:
    metadata = _read_metadata(metadata_path, files)[0]  # do not keep the bytes in memory
    written_at = files.modified_at(metadata_path)
    directory = posixpath.dirname(files.absolute(metadata_path))
    state_files = StateFiles(directory, files, allow_external_files)
    sources = {
        operator.operator_id: source
        for operator in metadata.operators
        if (source := read_source(operator, state_files, metadata.operators)) is not None
    }
    sinks = {
        operator.operator_id: sink
        for operator in metadata.operators
        if (sink := read_sink(operator, state_files)) is not None
    }
    original = original_directory(metadata.operators)
    copied = _is_copy(directory, original, files)
    if copied and _has_entropy(directory, original_files(metadata.operators), files):
        copied = False
    siblings = find_siblings(directory, metadata.checkpoint_id, written_at, files)
    return Checkpoint(
        posixpath.dirname(metadata_path) or ".",
        metadata.checkpoint_id,
        metadata.version,
        metadata.type,
        metadata.operators,
        sources,
        sinks,
        siblings.newer,
        written_at,
        siblings.earlier_run,
        siblings.contradicting,
        original if copied else None,
    )


def _is_copy(directory: str, original: str | None, files: ByteSource) -> bool:
    """Return whether Flink originally wrote a checkpoint to a different directory.

    Flink may have written the checkpoint to a path with a symbolic link. Therefore, ``original`` is
    also compared after its links are resolved. ``directory`` contains no links.
    """
    if original is None or not is_other_directory(directory, original):
        return False
    path = files.from_uri(original) if _URI.match(original) else original
    return path is None or is_other_directory(directory, files.absolute(path))


def _has_entropy(directory: str, named: list[str], files: ByteSource) -> bool:
    """Return whether Flink wrote ``_metadata`` to ``directory``, but the ``named`` files elsewhere.

    Under entropy injection, the path of each state file contains different random characters, and
    the path of ``_metadata`` contains none. In a copy, the state files are next to ``_metadata``.
    """
    root = posixpath.dirname(directory)
    if checkpoint_number(directory) is not None:
        root = posixpath.dirname(root)
    places = {posixpath.dirname(files.from_uri(file) or file) for file in named}
    if not all(is_below_without_entropy(f"{place}/", f"{directory}/", root) for place in places):
        return False
    return len(places) > 1 or not files.is_file(join(directory, posixpath.basename(named[0])))


def _read_metadata(path: str, files: ByteSource) -> tuple[Metadata, bytes]:
    """Return the parsed ``_metadata`` and its bytes.

    A large file is read to its end only if it starts with a ``_metadata`` header.
    """
    data = files.read_range(path, 0, _FIRST_READ_BYTES)
    if len(data) == _FIRST_READ_BYTES:
        read_header(Cursor(data, path))
        data = files.read_range(path, 0, MAX_METADATA_BYTES + 1)
        if len(data) > MAX_METADATA_BYTES:
            raise DecodeError(
                ErrorKind.UNSUPPORTED,
                f"larger than {MAX_METADATA_BYTES} bytes, the limit for such a file",
                file=path,
            )
    return parse_metadata(data, path), data


def _find_replacement(
    pointer: str, metadata_path: str, files: ByteSource, missing: DecodeError | FileNotFoundError
) -> str:
    """Return the ``_metadata`` to read next if a file of a checkpoint is missing.

    Raises:
        DecodeError: ``_metadata`` was deleted, and there is no replacement: the pointer refers to
            this checkpoint itself, or no newer checkpoint is complete.
        DecodeError, FileNotFoundError: there is no replacement, and ``_metadata`` still exists. In
            this case, ``missing`` is raised.
    """
    directory = posixpath.dirname(files.absolute(metadata_path))
    number = checkpoint_number(directory)
    newer: list[tuple[int, str]] = []
    if number is not None:
        parent = posixpath.dirname(directory)
        beside = numbered_checkpoints(parent, files.list_directory(parent) or [])
        newer = [(n, path) for n, path in beside if n > number]
    if not _names_checkpoint(pointer, metadata_path) and (newest := _newest_complete(newer, files)):
        return join(newest, METADATA_FILE)
    if files.is_file(metadata_path):
        raise missing
    problem = "it was deleted during the read"
    complete = [
        (completed_at(path, files) or 0, n, path) for n, path in newer if is_complete(path, files)
    ]
    if complete:
        # Compare the times first, because a higher number may belong to an earlier run.
        problem += (
            f"; Flink subsumed it; the job's newest complete checkpoint is {max(complete)[2]}"
        )
    raise DecodeError(
        ErrorKind.NOT_FOUND, problem, file=posixpath.dirname(metadata_path)
    ) from missing


def _names_checkpoint(pointer: str, metadata_path: str) -> bool:
    """Return whether a pointer refers to this checkpoint itself, and not to its job's directory."""
    return metadata_path in (pointer, join(pointer, METADATA_FILE))


def list_checkpoints(
    directory: str | os.PathLike[str], source: ByteSource | None = None
) -> list[tuple[int, str]]:
    """Return (number, path) for each complete checkpoint in a job's directory, lowest number first.

    Raises:
        DecodeError: ``directory`` is not a directory, or it cannot be read.
    """
    files = source if source is not None else LocalFiles()
    path = _resolve_pointer(os.fspath(directory), files)
    with translate_os_errors(path):
        names = files.list_directory(path)
        if names is None:
            is_file = files.is_file(path)
            raise DecodeError(
                ErrorKind.NOT_FOUND,
                "this is a file; pass a job's checkpoint directory"
                if is_file
                else "no such directory",
                file=path,
            )
        checkpoints = numbered_checkpoints(path, names)
        if len(checkpoints) < 2:
            return [found for found in checkpoints if is_complete(found[1], files)]
        from concurrent.futures import ThreadPoolExecutor  # slow to import

        with ThreadPoolExecutor(_PARALLEL_REQUESTS) as pool:
            complete = pool.map(lambda checkpoint: is_complete(checkpoint[1], files), checkpoints)
            return list(compress(checkpoints, complete))


def _newest_complete(checkpoints: list[tuple[int, str]], files: ByteSource) -> str | None:
    return next((path for _, path in reversed(checkpoints) if is_complete(path, files)), None)


def _find_metadata(pointer: str, files: ByteSource) -> str:
    # Try the likely path first, because a missing file takes two requests to an object store. List
    # the directory last, because it may contain a file for each subtask.
    below = join(pointer, METADATA_FILE)
    named = posixpath.basename(pointer) == METADATA_FILE
    for path in (pointer, below) if named else (below, pointer):
        if files.is_file(path):
            return path
    names = files.list_directory(pointer)
    if names is None:
        raise DecodeError(
            ErrorKind.NOT_FOUND,
            "no such file or directory; pass a chk-<n> or savepoint directory, its "
            "_metadata, or a job's checkpoint directory",
            file=pointer,
        )
    newest = _newest_complete(numbered_checkpoints(pointer, names), files)
    if newest is not None:
        return join(newest, METADATA_FILE)
    raise DecodeError(
        ErrorKind.NOT_FOUND,
        "not a complete checkpoint; neither this directory nor a chk-<n> under it contains "
        "_metadata",
        file=pointer,
    )
