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

from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.reader_state import SOURCE_READER_STATE
from decoder.kafka.source import DynamicKafkaSource, KafkaSource, UnknownSource, recognise
from decoder.metadata.model import (
    CheckpointType,
    DistributionMode,
    NamedState,
    Operator,
    StreamState,
)
from decoder.metadata.parse import parse_metadata
from decoder.operator_state.locate import read_stream
from decoder.operator_state.stream import byte_array_elements
from decoder.storage import ByteSource, LocalFiles, join

METADATA_FILE = "_metadata"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_CHECKPOINT_DIRECTORY = re.compile(r"chk-(\d+)")


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
        newer_siblings: the numbers of the job's complete checkpoints that are newer than this
            one, ascending: proof that the job ran on.
        written_at: when ``_metadata`` was written, in milliseconds of the epoch: the end of the
            checkpoint, or later where it was copied without its time; None where it is not kept.
    """

    pointer: str
    checkpoint_id: int
    metadata_version: int
    type: CheckpointType
    operators: tuple[Operator, ...]
    sources: dict[str, KafkaSource | DynamicKafkaSource | UnknownSource]
    newer_siblings: tuple[int, ...]
    written_at: int | None


def read_checkpoint(
    pointer: str | os.PathLike[str], source: ByteSource | None = None
) -> Checkpoint:
    """Read a checkpoint or savepoint.

    Args:
        pointer: what to read; see the module's docstring.
        source: where its files are; local files by default.

    Raises:
        DecodeError: nothing there, or what is there cannot be read whole.
    """
    files = source if source is not None else LocalFiles()
    path = _path(os.fspath(pointer), files)
    with _readable(path):
        return _read_checkpoint(path, files)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """What the operating system refuses comes out as a DecodeError."""
    try:
        yield
    except OSError as error:
        raise DecodeError(
            ErrorKind.UNREADABLE,
            f"cannot be read: {error.strerror or error}",
            file=error.filename or path,
        ) from error


def _path(pointer: str, files: ByteSource) -> str:
    """What a source calls the pointer, which may be a URI."""
    if not pointer or "\0" in pointer:
        raise DecodeError(ErrorKind.NOT_FOUND, f"not a path: {pointer!r}")
    if not _URI.match(pointer):
        return pointer
    path = files.from_uri(pointer)
    if path is None:
        raise DecodeError(
            ErrorKind.UNSUPPORTED, "checkpoints are read from local files only", file=pointer
        )
    return path


def _read_checkpoint(pointer: str, files: ByteSource) -> Checkpoint:
    metadata_path = _find_metadata(pointer, files)
    metadata = parse_metadata(files.read(metadata_path), metadata_path)
    directory = posixpath.dirname(files.absolute(metadata_path))
    sources = {
        operator.operator_id: source
        for operator in metadata.operators
        if (source := _read_source(operator, directory, files)) is not None
    }
    return Checkpoint(
        posixpath.dirname(metadata_path) or ".",
        metadata.checkpoint_id,
        metadata.version,
        metadata.type,
        metadata.operators,
        sources,
        _newer_siblings(directory, metadata.checkpoint_id, files),
        files.modified_at(metadata_path),
    )


def list_checkpoints(
    directory: str | os.PathLike[str], source: ByteSource | None = None
) -> list[tuple[int, str]]:
    """The complete checkpoints of a job's checkpoint directory: (number, path), the oldest first.

    Raises:
        DecodeError: ``directory`` is not a directory.
    """
    files = source if source is not None else LocalFiles()
    path = _path(os.fspath(directory), files)
    with _readable(path):
        names = files.list_directory(path)
        if names is None:
            raise DecodeError(ErrorKind.NOT_FOUND, "no such directory", file=path)
        return _complete_checkpoints(path, names, files)


def _complete_checkpoints(
    directory: str, names: list[str], files: ByteSource
) -> list[tuple[int, str]]:
    numbered = ((int(match[1]), match[0]) for match in map(_match_checkpoint, names) if match)
    return sorted(
        (number, join(directory, name))
        for number, name in numbered
        if files.is_file(join(directory, name, METADATA_FILE))
    )


def _match_checkpoint(name: str) -> re.Match[str] | None:
    return _CHECKPOINT_DIRECTORY.fullmatch(name)


def _find_metadata(pointer: str, files: ByteSource) -> str:
    if files.is_file(pointer):
        return pointer
    names = files.list_directory(pointer)
    if names is None:
        raise DecodeError(
            ErrorKind.NOT_FOUND,
            "no such file or directory; name a chk-<n> or savepoint directory, its _metadata, or "
            "a job's checkpoint directory",
            file=pointer,
        )
    if files.is_file(join(pointer, METADATA_FILE)):
        return join(pointer, METADATA_FILE)
    complete = _complete_checkpoints(pointer, names, files)
    if complete:
        return join(complete[-1][1], METADATA_FILE)
    raise DecodeError(
        ErrorKind.NOT_FOUND,
        "no _metadata in this directory, nor in a chk-<n> below it: not a complete checkpoint "
        "(Flink writes _metadata last); choose another chk-<n> or a savepoint",
        file=pointer,
    )


def _read_source(
    operator: Operator, directory: str, files: ByteSource
) -> KafkaSource | DynamicKafkaSource | UnknownSource | None:
    """What an operator's source state is recognised as; None where it has none.

    Readers that have all finished leave only the coordinator's state behind. Other operators have
    coordinators too, so that this alone makes a source only where it decodes as one.
    """
    what = f"operator {operator.operator_id}"
    coordinator = operator.coordinator_state
    reader_states = [
        (subtask.index, handle.stream, state)
        for subtask in operator.subtasks
        if (handle := subtask.managed_operator_state) is not None
        for state in handle.states
        if state.name == SOURCE_READER_STATE
    ]
    for _, _, state in reader_states:
        if state.mode is not DistributionMode.SPLIT_DISTRIBUTE:
            return UnknownSource(
                f"its {state.name} is spread as {state.mode.name}", partly_kafka=False
            )
    source = recognise(
        _elements(reader_states, directory, files, what),
        coordinator.data if coordinator is not None else None,
    )
    return None if isinstance(source, UnknownSource) and not reader_states else source


def _elements(
    reader_states: list[tuple[int, StreamState, NamedState]],
    directory: str,
    files: ByteSource,
    what: str,
) -> Iterator[tuple[int, bytes]]:
    """(subtask index, element) of an operator's SourceReaderState."""
    for subtask, handle, state in reader_states:
        if not state.byte_offsets:
            continue  # an empty reader: no need for its file
        place = f"{what} subtask {subtask} operator state"
        stream = read_stream(handle, directory, files, place)
        for element in byte_array_elements(stream, state.byte_offsets, place):
            yield subtask, element


def _newer_siblings(directory: str, checkpoint_id: int, files: ByteSource) -> tuple[int, ...]:
    if not _match_checkpoint(posixpath.basename(directory)):
        return ()
    parent = posixpath.dirname(directory)
    names = files.list_directory(parent) or []
    return tuple(
        number
        for number, _ in _complete_checkpoints(parent, names, files)
        if number > checkpoint_id
    )
