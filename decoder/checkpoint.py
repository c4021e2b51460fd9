"""The decoder's facade: a pointer in, a Checkpoint out.

A pointer is a ``chk-<n>`` or savepoint directory, its ``_metadata`` file, or a job's checkpoint
directory, which stands for its newest complete ``chk-<n>`` by number.
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

from decoder.checkpoint_order import completed_at, find_siblings, is_complete, numbered
from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.beam import BEAM_BUNDLE
from decoder.kafka.operator import Sink, Source, read_sink, read_source
from decoder.metadata.model import CheckpointType, Metadata, Operator
from decoder.metadata.original_location import is_other_directory, original_directory
from decoder.metadata.parse import parse_metadata, read_header
from decoder.state_files import StateFiles
from decoder.storage import (
    METADATA_FILE,
    ByteSource,
    LocalFiles,
    StorageUnavailable,
    checkpoint_number,
    join,
)
from decoder.urls import CREDENTIALS_REFUSED, redact_url

# Metadata is held in memory whole. Flink's own, a few KB to some MB, grows with every small state
# that it holds inline, but Flink's JobManager has to hold it too.
MAX_METADATA_BYTES = 1 << 30
# Most files of metadata are shorter, and read at once.
_HEAD_BYTES = 64 * 1024
# A job may complete checkpoints faster than a slow store gives one of them: then what was read is
# returned, and tells by its newer siblings that the job runs.
_MOST_OVERTAKEN = 3
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
# A job may retain hundreds of checkpoints, and a remote store is asked for each.
_PROBES_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint or savepoint, with the Kafka state of its sources decoded.

    Attributes:
        pointer: the directory that holds ``_metadata``.
        checkpoint_id: the number of the checkpoint.
        metadata_version: the version of ``_metadata``.
        type: checkpoint or savepoint, and whether the job stopped with it.
        operators: every operator of the job, as ``_metadata`` lists them.
        sources: the operators with source state, by operator id: what they were recognised as.
        sinks: the operators with a sink's state, by operator id: what of it is KafkaSink's.
        newer_siblings: the numbers of the job's complete checkpoints that are newer than this
            one, the last written at the end: proof that the job ran on.
        written_at: when ``_metadata`` was written, in milliseconds of the epoch: the end of the
            checkpoint, or later where it was copied without its time; None where it is not kept.
        earlier_run: the numbers of complete checkpoints beside it that are higher though they were
            written before it, ascending: the job began to count anew.
        contradicting: the numbers of complete checkpoints beside it whose times contradict their
            numbers, ascending; see ``decoder.checkpoint_order``.
        copied_from: the directory that Flink wrote it in, where it tells and lies elsewhere:
            ``written_at`` may then be the time of a copy. None where it lies there, or tells none.
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

    A running job completes a newer checkpoint, and deletes older ones, perhaps while one is read
    here: then a job's directory stands for the newer one, and a ``chk-<n>`` may be gone.

    Args:
        pointer: what to read; see the module's docstring.
        source: where its files are; local files by default.
        allow_external_files: whether state may be read from files outside of the checkpoint's own
            directories; see ``decoder.state_files``.

    Raises:
        DecodeError: nothing there, or what is there cannot be read whole.
    """
    files = source if source is not None else LocalFiles()
    path = _path(os.fspath(pointer), files)
    with translate_os_errors(path):
        metadata_path = _find_metadata(path, files)
        overtaken = 0
        while True:
            try:
                checkpoint = _read_checkpoint(metadata_path, files, allow_external_files)
            except (DecodeError, FileNotFoundError) as error:
                if isinstance(error, DecodeError) and error.kind is not ErrorKind.NOT_FOUND:
                    raise
                metadata_path = _after_subsumption(path, metadata_path, files, error)
                continue
            # One of a lower number is not what the directory stands for: it is told of instead.
            newest = max(checkpoint.newer_siblings, default=-1) <= checkpoint.checkpoint_id
            if newest or _is_named(path, metadata_path) or overtaken == _MOST_OVERTAKEN:
                return checkpoint
            overtaken += 1
            metadata_path = _find_metadata(path, files)


@contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """What the operating system or a store refuses comes out as a DecodeError."""
    try:
        yield
    except OSError as error:
        raise DecodeError(
            ErrorKind.UNAVAILABLE
            if isinstance(error, StorageUnavailable)
            else ErrorKind.UNREADABLE,
            f"cannot be read: {error.strerror or error}",
            file=error.filename or path,
        ) from error


def _path(pointer: str, files: ByteSource) -> str:
    """What a source calls the pointer, which may be a URI."""
    if not pointer or "\0" in pointer:
        raise DecodeError(ErrorKind.NOT_FOUND, f"not a path: {redact_url(pointer)!r}")
    if redact_url(pointer) != pointer:
        raise DecodeError(ErrorKind.UNSUPPORTED, CREDENTIALS_REFUSED, file=redact_url(pointer))
    if not _URI.match(pointer):
        return pointer
    path = files.from_uri(pointer)
    if path is None:
        raise DecodeError(
            ErrorKind.UNSUPPORTED,
            "checkpoints are not read from a URI of this kind" + _with_two_slashes(pointer),
            file=pointer,
        )
    return path


def _with_two_slashes(uri: str) -> str:
    scheme, _, rest = uri.partition(":")
    return f"; did you mean {scheme}:/{rest}?" if re.match("/[^/]", rest) else ""


class MetadataFile(NamedTuple):
    """A ``_metadata`` file: what is in it, its bytes, and where it and its checkpoint are."""

    metadata: Metadata
    data: bytes
    path: str
    directory: str
    source: ByteSource


def read_metadata(
    pointer: str | os.PathLike[str], source: ByteSource | None = None
) -> MetadataFile:
    """The ``_metadata`` that a pointer stands for, and nothing else of the checkpoint.

    Args:
        pointer, source: as for ``read_checkpoint``.

    Raises:
        DecodeError: nothing there, or what is there cannot be read whole.
    """
    files = source if source is not None else LocalFiles()
    path = _path(os.fspath(pointer), files)
    with translate_os_errors(path):
        metadata_path = _find_metadata(path, files)
        metadata, data = _read_metadata(metadata_path, files)
        directory = posixpath.dirname(files.absolute(metadata_path))
    return MetadataFile(metadata, data, metadata_path, directory, files)


def _read_checkpoint(
    metadata_path: str, files: ByteSource, allow_external_files: bool
) -> Checkpoint:
    metadata, _ = _read_metadata(metadata_path, files)
    written_at = files.modified_at(metadata_path)
    directory = posixpath.dirname(files.absolute(metadata_path))
    state_files = StateFiles(directory, files, allow_external_files)
    beam = any(BEAM_BUNDLE in operator.state_names for operator in metadata.operators)
    sources = {
        operator.operator_id: source
        for operator in metadata.operators
        if (source := read_source(operator, state_files, beam)) is not None
    }
    sinks = {
        operator.operator_id: sink
        for operator in metadata.operators
        if (sink := read_sink(operator, state_files)) is not None
    }
    written = original_directory(metadata.operators)
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
        written if written is not None and is_other_directory(directory, written) else None,
    )


def _read_metadata(path: str, files: ByteSource) -> tuple[Metadata, bytes]:
    """``_metadata`` and its bytes; what is another thing is told by its beginning, and not read
    whole."""
    data = files.read_range(path, 0, _HEAD_BYTES)
    if len(data) == _HEAD_BYTES:
        read_header(Cursor(data, path))
        data = files.read_range(path, 0, MAX_METADATA_BYTES + 1)
        if len(data) > MAX_METADATA_BYTES:
            raise DecodeError(
                ErrorKind.UNSUPPORTED,
                f"larger than {MAX_METADATA_BYTES} bytes, the most that is read of such a file",
                file=path,
            )
    return parse_metadata(data, path), data


def _after_subsumption(
    pointer: str, metadata_path: str, files: ByteSource, missing: DecodeError | FileNotFoundError
) -> str:
    """What to read instead of a checkpoint of which a file was missing: the newest of the job's
    directory, where that is a newer one.

    Raises:
        DecodeError, FileNotFoundError: ``missing`` itself, or that the whole checkpoint is gone.
    """
    directory = posixpath.dirname(files.absolute(metadata_path))
    number = checkpoint_number(directory)
    newer: list[tuple[int, str]] = []
    if number is not None:
        parent = posixpath.dirname(directory)
        beside = numbered(parent, files.list_directory(parent) or [])
        newer = [(n, path) for n, path in beside if n > number]
    if not _is_named(pointer, metadata_path):
        newest = _newest_complete(newer, files)
        if newest is not None:
            return join(newest, METADATA_FILE)
    if files.is_file(metadata_path):
        raise missing
    problem = "it was deleted while it was read"
    complete = [
        (completed_at(path, files) or 0, n, path) for n, path in newer if is_complete(path, files)
    ]
    if complete:
        # By the time first: a higher number may be of an earlier run.
        problem += (
            f": Flink subsumed it; its job's newest complete checkpoint is {max(complete)[2]}"
        )
    raise DecodeError(
        ErrorKind.NOT_FOUND, problem, file=posixpath.dirname(metadata_path)
    ) from missing


def _is_named(pointer: str, metadata_path: str) -> bool:
    """Whether a pointer is to this one checkpoint, not to its job's directory."""
    return metadata_path in (pointer, join(pointer, METADATA_FILE))


def list_checkpoints(
    directory: str | os.PathLike[str], source: ByteSource | None = None
) -> list[tuple[int, str]]:
    """The complete checkpoints of a job's checkpoint directory: (number, path), the oldest first.

    Raises:
        DecodeError: ``directory`` is not a directory.
    """
    files = source if source is not None else LocalFiles()
    path = _path(os.fspath(directory), files)
    with translate_os_errors(path):
        names = files.list_directory(path)
        if names is None:
            a_file = files.is_file(path)
            raise DecodeError(
                ErrorKind.NOT_FOUND,
                "a file: name a job's checkpoint directory" if a_file else "no such directory",
                file=path,
            )
        return _complete_checkpoints(path, names, files)


def _complete_checkpoints(
    directory: str, names: list[str], files: ByteSource
) -> list[tuple[int, str]]:
    """The complete ones of ``numbered``."""
    from concurrent.futures import ThreadPoolExecutor  # for this alone; it brings logging in

    found = numbered(directory, names)
    with ThreadPoolExecutor(_PROBES_AT_ONCE) as pool:
        complete = list(pool.map(lambda one: is_complete(one[1], files), found))
    return list(compress(found, complete))


def _newest_complete(found: list[tuple[int, str]], files: ByteSource) -> str | None:
    return next((path for _, path in reversed(found) if is_complete(path, files)), None)


def _find_metadata(pointer: str, files: ByteSource) -> str:
    # The likely one first: a store is asked twice for what is not there. And before the directory
    # is listed, which may hold a file of every subtask.
    below = join(pointer, METADATA_FILE)
    named = posixpath.basename(pointer) == METADATA_FILE
    for path in (pointer, below) if named else (below, pointer):
        if files.is_file(path):
            return path
    names = files.list_directory(pointer)
    if names is None:
        raise DecodeError(
            ErrorKind.NOT_FOUND,
            "no such file or directory; name a chk-<n> or savepoint directory, its _metadata, or "
            "a job's checkpoint directory",
            file=pointer,
        )
    newest = _newest_complete(numbered(pointer, names), files)
    if newest is not None:
        return join(newest, METADATA_FILE)
    raise DecodeError(
        ErrorKind.NOT_FOUND,
        "no _metadata in this directory, nor in a chk-<n> below it: not a complete checkpoint "
        "(Flink writes _metadata last); choose another chk-<n> or a savepoint",
        file=pointer,
    )
