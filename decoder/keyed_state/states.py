"""The keyed states in a checkpoint, and their entries.

The key groups of a state are distributed across the subtasks. Each subtask's part is in the
subtask's own stream or files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from decoder.checkpoint import MetadataFile, read_metadata, translate_os_errors
from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.entries import Entry, KeyGroupLayout, check_keys
from decoder.keyed_state.kryo import KRYO_2, KRYO_5, find_open_class
from decoder.keyed_state.parts import KeyGroupsSource, StateSource
from decoder.keyed_state.raw_timers import RawTimersSource
from decoder.keyed_state.rocksdb import RocksSource
from decoder.keyed_state.stream_head import StateInfo, read_head
from decoder.keyed_state.streams import KeyGroupsStream, Stream
from decoder.metadata.keyed import (
    ChangelogState,
    IncrementalState,
    KeyedHandle,
    KeyGroupsState,
    read_keyed_handle,
)
from decoder.metadata.model import Operator
from decoder.state_files import StateFiles
from decoder.storage import ByteSource

# The last metadata version that Flink 1.x writes; Flink 1.x uses Kryo 2.24.
_LAST_FLINK_1_VERSION = 4


@dataclass(frozen=True, slots=True)
class Part:
    """One subtask's part of a state.

    Attributes:
        state_source: the states in the handle that contains the part.
        number: the state's number in the source.
    """

    subtask: int
    state_source: StateSource
    number: int
    info: StateInfo

    @property
    def key_groups(self) -> range:
        return self.state_source.key_groups

    def key_group_ranges(self, max_bytes: int) -> list[tuple[range, int]]:
        """Return (range, size in bytes) for ranges of key groups that other processes can read.

        See ``StateSource.key_group_ranges``. The part can be pickled to send it to these processes.
        """
        with translate_os_errors(self.state_source.label):
            return self.state_source.key_group_ranges(max_bytes)

    @property
    def layout(self) -> KeyGroupLayout | None:
        """The layout of ``frames``; None if the part can only be read with ``batches``."""
        with translate_os_errors(self.state_source.label):
            return self.state_source.layout

    def frames(self, key_group: int) -> Iterator[bytes]:
        """Yield the decompressed bytes of a key group, in frames with the layout ``layout``.

        Raises:
            DecodeError: as in ``KeyedState.entries``.
        """
        with translate_os_errors(self.state_source.label):
            yield from self.state_source.frames(self.number, key_group)

    def batches(self, key_groups: Iterable[int] | None = None) -> Iterator[list[Entry]]:
        """Yield the entries of these key groups (by default, all), in lists of bounded length.

        At most one key group is in memory at a time.

        Raises:
            DecodeError: as in ``KeyedState.entries``.
        """
        for key_group in self.key_groups if key_groups is None else key_groups:
            with translate_os_errors(self.state_source.label):
                for batch in self.state_source.batches(self.number, key_group):
                    check_keys(self.info, batch, self.state_source.label)
                    yield batch


@dataclass(frozen=True, slots=True)
class KeyedState(StateInfo):
    """A keyed state of an operator.

    Attributes:
        operator_id, operator_name, uid: the operator, as in ``Operator``.
        max_parallelism: the operator's max parallelism, which is equal to the number of key groups.
        parts: the subtasks' parts.
    """

    operator_id: str
    operator_name: str | None
    uid: str | None
    max_parallelism: int
    parts: tuple[Part, ...]

    @property
    def readable(self) -> bool:
        return self.reason is None

    @property
    def caveat(self) -> str | None:
        """The reason that some entries might be unreadable, or None."""
        for type_ in (self.key, self.namespace, self.map_key, self.value):
            name = find_open_class(type_) if type_ is not None else None
            if name is not None:
                return (
                    f"{name}: Kryo stores each object's class in the values, so unreadable "
                    "values are found only when they are read"
                )
        return None

    def entries(self) -> Iterator[Entry]:
        """Yield every entry, key group by key group.

        Raises:
            DecodeError: the state cannot be read; a file is missing or outside the checkpoint;
                or the bytes are corrupt.
        """
        self.check_readable()
        for part in self.parts:
            for batch in part.batches():
                yield from batch

    def check_readable(self) -> None:
        """Raise DecodeError if the state cannot be read."""
        if self.reason is not None:
            raise DecodeError(ErrorKind.UNSUPPORTED, self.reason, field=f"state {self.name!r}")


@dataclass(frozen=True, slots=True)
class Unread:
    """Keyed state that could not be listed, with the operator and the error."""

    operator_id: str
    operator_name: str | None
    uid: str | None
    error: DecodeError


@dataclass(frozen=True, slots=True)
class KeyedStates:
    """The keyed states in a checkpoint.

    Attributes:
        states: the states, in the checkpoint's order of operators, then in the stream's order.
        unread: the operators' keyed state that could not be listed. A state is omitted from
            ``states`` if a part of it might be in a subtask's state that could not be listed.
    """

    states: tuple[KeyedState, ...]
    unread: tuple[Unread, ...]


def read_keyed_states(
    pointer: str | os.PathLike[str],
    source: ByteSource | None = None,
    *,
    allow_external_files: bool = False,
) -> KeyedStates:
    """Read the keyed states in a checkpoint and their types; entries are read on demand.

    The arguments are the same as in ``read_checkpoint``.

    Raises:
        DecodeError: the checkpoint does not exist, or its ``_metadata`` cannot be read. Other
            errors are returned in ``unread``.
    """
    file = read_metadata(pointer, source)
    files = StateFiles(file.directory, file.source, allow_external_files)
    states: list[KeyedState] = []
    unread: list[Unread] = []
    for operator in file.metadata.operators:
        by_name, errors = _read_operator(operator, file, files)
        states += by_name.values()
        unread += (
            Unread(operator.operator_id, operator.name, operator.uid, error)
            for error in errors.values()
        )
    return KeyedStates(tuple(states), tuple(unread))


def _read_operator(
    operator: Operator, file: MetadataFile, files: StateFiles
) -> tuple[dict[str, KeyedState], dict[str, DecodeError]]:
    """Return an operator's complete states by name, and one error for each distinct problem.

    Each stream has a list of its states. If a list cannot be read to its end, its stream may
    contain parts of any state. Therefore, a state counts as complete only if it appears in the
    readable start of every list that cannot be read to its end.
    """
    states: dict[str, KeyedState] = {}
    errors: dict[str, DecodeError] = {}
    kryo_version = KRYO_2 if file.metadata.version <= _LAST_FLINK_1_VERSION else KRYO_5
    for is_raw in (False, True):
        kind = "raw keyed state" if is_raw else "keyed state"
        found: dict[str, KeyedState] = {}
        broken_lists: list[set[str]] = []
        for subtask in operator.subtasks:
            byte_offset = subtask.raw_keyed_state_at if is_raw else subtask.managed_keyed_state_at
            if byte_offset is None:
                continue
            label = f"operator {operator.operator_id} subtask {subtask.index} {kind}"
            try:
                with translate_os_errors(label):
                    cursor = Cursor(file.data, file.path, byte_offset)
                    sources = [
                        _open_source(
                            handle, is_raw, operator.max_parallelism, kryo_version, files, label
                        )
                        for handle in _state_handles(read_keyed_handle(cursor, label))
                    ]
                    heads = [(source, source.head, source.blocked_reasons()) for source in sources]
            except DecodeError as error:
                errors.setdefault(error.problem, error)
                broken_lists.append(set())
                continue
            for source, head, blocked in heads:
                if head.error is not None:
                    errors.setdefault(head.error.problem, head.error)
                    broken_lists.append({info.name for info in head.states})
                for number, info in enumerate(head.states):
                    part = Part(subtask.index, source, number, info)
                    _add_part(found, operator, part, info.reason or blocked.get(number))
        states |= {
            name: state
            for name, state in found.items()
            if all(name in names for names in broken_lists)
        }
    return states, errors


def _state_handles(handle: KeyedHandle | None) -> tuple[KeyGroupsState | IncrementalState, ...]:
    """Return the handles that contain state; for the changelog backend, ``ChangelogState.base``.

    A changelog cannot be read because it does not contain the type of the keys. In addition, its
    changes include window merges, which call the job's functions (ChangelogBackendLogApplier @
    Flink 2.2.0).

    Raises:
        DecodeError: the changelog is not empty.
    """
    if not isinstance(handle, ChangelogState):
        return () if handle is None else (handle,)
    if handle.change_count:
        raise DecodeError(
            ErrorKind.UNSUPPORTED,
            "a log of the changelog state backend contains changes, which are not supported; take "
            "a savepoint in canonical format",
        )
    return handle.base


def _open_source(
    handle: KeyGroupsState | IncrementalState,
    is_raw: bool,
    max_parallelism: int,
    kryo_version: int,
    files: StateFiles,
    label: str,
) -> StateSource:
    """Return a source for managed keyed state, or for raw keyed state, which may contain timers.

    Raises:
        DecodeError: the head of the state cannot be read.
    """
    if isinstance(handle, KeyGroupsState):
        stream = Stream(handle.stream, files, label)
        if is_raw:  # a raw stream has no head, so a key group may start at offset 0
            key_groups = KeyGroupsStream(handle, stream, first_offset=0)
            return RawTimersSource(key_groups, kryo_version, max_parallelism, label)
        key_groups = KeyGroupsStream(handle, stream)
        return KeyGroupsSource(key_groups, key_groups.head(kryo_version), max_parallelism, label)
    if is_raw:
        raise DecodeError(ErrorKind.UNSUPPORTED, "raw keyed state of an unknown kind", file=label)
    head = read_head(Cursor(files.read(handle.meta, label), label), kryo_version)
    return RocksSource(handle, head, files, max_parallelism, label)


def _add_part(
    states: dict[str, KeyedState], operator: Operator, part: Part, reason: str | None
) -> None:
    info = part.info
    known = states.get(info.name)
    if known is not None:
        states[info.name] = replace(
            known, reason=known.reason or reason, parts=(*known.parts, part)
        )
        return
    states[info.name] = KeyedState(
        name=info.name,
        kind=info.kind,
        key=info.key,
        namespace=info.namespace,
        map_key=info.map_key,
        value=info.value,
        ttl=info.ttl,
        reason=reason,
        operator_id=operator.operator_id,
        operator_name=operator.name,
        uid=operator.uid,
        max_parallelism=operator.max_parallelism,
        parts=(part,),
    )
