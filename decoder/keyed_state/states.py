"""The facade: the keyed states of a checkpoint, and what is in them.

A state is told by its operator and its name. Each subtask holds a part of it: some key groups, in a
stream or in files of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from decoder.checkpoint import MetadataFile, read_metadata, translate_os_errors
from decoder.cursor import Cursor
from decoder.errors import DecodeError, ErrorKind
from decoder.keyed_state.entries import Entry, KeyGroupLayout, check_keys
from decoder.keyed_state.kryo import KRYO_2, KRYO_5, open_class
from decoder.keyed_state.parts import KeyGroupsSource, StateSource
from decoder.keyed_state.raw_timers import RawTimersSource
from decoder.keyed_state.rocksdb import RocksSource
from decoder.keyed_state.stream_head import StateInfo, StateKind, read_head
from decoder.keyed_state.streams import KeyGroupsStream, Stream
from decoder.keyed_state.types import Type
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

# Metadata of Flink 1.x, which is built with Kryo 2.24.
_LAST_VERSION_OF_1_X = 4


@dataclass(frozen=True, slots=True)
class Part:
    """What one subtask holds of a state.

    Attributes:
        subtask: its index.
        source: what it is read from.
        number: the state's number there.
        info: the state as that subtask's serializers have it.
    """

    subtask: int
    source: StateSource
    number: int
    info: StateInfo

    @property
    def key_groups(self) -> range:
        return self.source.key_groups

    def shares(self, most_bytes: int) -> list[tuple[range, int]]:
        """Ranges of key groups that can be read apart, in other processes, to which the part can be
        sent: each of ``most_bytes`` at most, where it can be cut, and how many those are."""
        with translate_os_errors(self.source.what):
            return self.source.shares(most_bytes)

    @property
    def layout(self) -> KeyGroupLayout | None:
        """How ``frames`` are laid out; None: there are none, and ``batches`` alone reads it."""
        with translate_os_errors(self.source.what):
            return self.source.layout

    def frames(self, key_group: int) -> Iterator[bytes]:
        """The bytes of a key group that ``batches`` reads, as ``layout`` has them.

        Raises:
            DecodeError: as for ``KeyedState.entries``.
        """
        with translate_os_errors(self.source.what):
            yield from self.source.frames(self.number, key_group)

    def batches(self, key_groups: Iterable[int] | None = None) -> Iterator[list[Entry]]:
        """The entries of these key groups, or of all that the subtask has, in lists of a bounded
        length: no more than one key group is held at a time.

        Raises:
            DecodeError: as for ``KeyedState.entries``.
        """
        for key_group in self.key_groups if key_groups is None else key_groups:
            with translate_os_errors(self.source.what):
                for batch in self.source.batches(self.number, key_group):
                    check_keys(self.info, batch, self.source.what)
                    yield batch


@dataclass(frozen=True, slots=True)
class KeyedState:
    """One keyed state of an operator.

    Attributes:
        operator_id, operator_name, uid: the operator, as in ``Operator``.
        name: the state's.
        kind: what it holds for each key and namespace.
        key, namespace, map_key, value: the types, as in ``StateInfo``.
        ttl: whether times of last access are kept.
        reason: why it cannot be read; None: it can.
        max_parallelism: of the operator: the number of key groups.
        parts: what each subtask holds.
    """

    operator_id: str
    operator_name: str | None
    uid: str | None
    name: str
    kind: StateKind
    key: Type
    namespace: Type
    map_key: Type | None
    value: Type
    ttl: bool
    reason: str | None
    max_parallelism: int
    parts: tuple[Part, ...]

    @property
    def readable(self) -> bool:
        return self.reason is None

    @property
    def caveat(self) -> str | None:
        """Why it is not known whether all of its values can be read, though its types can."""
        for type_ in (self.key, self.namespace, self.map_key, self.value):
            name = open_class(type_) if type_ is not None else None
            if name is not None:
                return (
                    f"{name}: Kryo keeps each object's class in the values, so whether all of them "
                    "can be read is not known before they are"
                )
        return None

    def entries(self) -> Iterator[Entry]:
        """Every entry, key group by key group.

        Raises:
            DecodeError: the state cannot be read; a file is not there, or not the checkpoint's; or
                its bytes are not what Flink writes.
        """
        self.check_readable()
        for part in self.parts:
            for batch in part.batches():
                yield from batch

    def check_readable(self) -> None:
        """Raise DecodeError where it cannot be read."""
        if self.reason is not None:
            raise DecodeError(ErrorKind.UNSUPPORTED, self.reason, field=f"state {self.name!r}")


@dataclass(frozen=True, slots=True)
class Unread:
    """Keyed state that nothing is known of: an operator's, or a part of it, and why."""

    operator_id: str
    operator_name: str | None
    uid: str | None
    error: DecodeError


@dataclass(frozen=True, slots=True)
class KeyedStates:
    """Attributes:
    states: by operator as in the checkpoint, and by their place in its stream.
    unread: what could not even be listed.
    """

    states: tuple[KeyedState, ...]
    unread: tuple[Unread, ...]


def read_keyed_states(
    pointer: str | os.PathLike[str],
    source: ByteSource | None = None,
    *,
    allow_external_files: bool = False,
) -> KeyedStates:
    """The keyed states of a checkpoint: which there are and of what types. Their entries are read
    when they are asked for.

    Args:
        as for ``read_checkpoint``.

    Raises:
        DecodeError: nothing there, or its ``_metadata`` cannot be read. What cannot be read of one
            operator's state stands in ``unread``.
    """
    file = read_metadata(pointer, source)
    files = StateFiles(file.directory, file.source, allow_external_files)
    states: list[KeyedState] = []
    unread: list[Unread] = []
    for operator in file.metadata.operators:
        found, missing = _read_operator(operator, file, files)
        states += found
        unread += missing
    return KeyedStates(tuple(states), tuple(unread))


def _read_operator(
    operator: Operator, file: MetadataFile, files: StateFiles
) -> tuple[list[KeyedState], list[Unread]]:
    by_name: dict[str, KeyedState] = {}
    unread: dict[str, DecodeError] = {}
    for subtask in operator.subtasks:
        for place, make, kind in (
            (subtask.managed_keyed_state_at, _source, "keyed state"),
            (subtask.raw_keyed_state_at, _raw_source, "raw keyed state"),
        ):
            if place is None:
                continue
            what = f"operator {operator.operator_id} subtask {subtask.index} {kind}"
            try:
                with translate_os_errors(what):
                    handle = read_keyed_handle(Cursor(file.data, file.path, place), what)
                    sources = [make(one, operator, file, files, what) for one in _handles(handle)]
                    told = [(source, source.head, source.blocked()) for source in sources]
            except DecodeError as error:
                unread.setdefault(error.problem, error)
                continue
            for source, head, blocked in told:
                if head.unread is not None:
                    unread.setdefault(head.unread.problem, head.unread)
                for number, info in enumerate(head.states):
                    part = Part(subtask.index, source, number, info)
                    _add(by_name, operator, part, info.reason or blocked.get(number))
    return (
        list(by_name.values()),
        [
            Unread(operator.operator_id, operator.name, operator.uid, error)
            for error in unread.values()
        ],
    )


def _handles(handle: KeyedHandle | None) -> tuple[KeyGroupsState | IncrementalState, ...]:
    """The handles of states' bytes: of the changelog backend those of its base, where nothing
    changed since.

    A log by itself cannot be read: it names no type of keys, and to merge windows it calls the
    job's functions (ChangelogBackendLogApplier @ Flink 2.2.0).

    Raises:
        DecodeError: there are changes.
    """
    if handle is None:
        return ()
    if not isinstance(handle, ChangelogState):
        return (handle,)
    if handle.changes:
        raise DecodeError(
            ErrorKind.UNSUPPORTED,
            "changes in a log of the changelog backend are not read here: take a savepoint in "
            "canonical format",
        )
    return handle.base


def _source(
    handle: KeyGroupsState | IncrementalState,
    operator: Operator,
    file: MetadataFile,
    files: StateFiles,
    what: str,
) -> StateSource:
    """What reads a handle.

    Raises:
        DecodeError: no head that can be read.
    """
    kryo_version = _kryo_version(file)
    if isinstance(handle, KeyGroupsState):
        stream = KeyGroupsStream(handle, Stream(handle.stream, files, what))
        return KeyGroupsSource(stream, stream.head(kryo_version), operator.max_parallelism, what)
    head = read_head(Cursor(files.read(handle.meta, what), what), kryo_version)
    return RocksSource(handle, head, files, operator.max_parallelism, what)


def _raw_source(
    handle: KeyGroupsState | IncrementalState,
    operator: Operator,
    file: MetadataFile,
    files: StateFiles,
    what: str,
) -> StateSource:
    """As ``_source``, of what the operator wrote itself: only timers are known."""
    if not isinstance(handle, KeyGroupsState):
        raise DecodeError(ErrorKind.UNSUPPORTED, "raw keyed state of an unknown kind", file=what)
    stream = Stream(handle.stream, files, what)
    return RawTimersSource(handle, stream, _kryo_version(file), operator.max_parallelism, what)


def _kryo_version(file: MetadataFile) -> int:
    return KRYO_2 if file.metadata.version <= _LAST_VERSION_OF_1_X else KRYO_5


def _add(
    by_name: dict[str, KeyedState], operator: Operator, part: Part, reason: str | None
) -> None:
    info = part.info
    known = by_name.get(info.name)
    if known is not None:
        by_name[info.name] = replace(
            known, reason=known.reason or reason, parts=(*known.parts, part)
        )
        return
    by_name[info.name] = KeyedState(
        operator.operator_id,
        operator.name,
        operator.uid,
        info.name,
        info.kind,
        info.key,
        info.namespace,
        info.map_key,
        info.value,
        info.ttl,
        reason,
        operator.max_parallelism,
        (part,),
    )
