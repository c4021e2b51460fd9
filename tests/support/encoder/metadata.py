"""Encode the `_metadata` file: operators, their subtasks, and every kind of state handle.

Each kind of handle in a checkpoint has one class. In an older form of a handle, the fields that
Flink added later are None. The layouts follow `MetadataV2Serializer` to `MetadataV6Serializer`,
`MetadataV2V3SerializerBase` and `ChannelStateHandleSerializerV1` and `V2`
(flink-runtime 1.15.4, 1.20.3, 2.2.0).

`state_size` is the result of Flink's `getStateSize()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from tests.support.encoder.data_output import DataOutput

METADATA_VERSIONS = (2, 3, 4, 5, 6)

_MAGIC = 0x4960672D
_MASTER_STATE_MAGIC = 0xC96B1696 - (1 << 32)
_NULL_HANDLE = 0


class DistributionMode(IntEnum):
    """The way a restore distributes an operator state's elements (`OperatorStateHandle.Mode`)."""

    SPLIT_DISTRIBUTE = 0
    UNION = 1
    BROADCAST = 2


# ---- stream handles: the location of bytes -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class ByteStreamHandle:
    """Bytes that are in the metadata itself."""

    name: str
    data: bytes

    @property
    def state_size(self) -> int:
        return len(self.data)

    def write(self, out: DataOutput) -> None:
        out.i8(1)
        out.utf(self.name)
        out.sized(self.data)


@dataclass(frozen=True, slots=True)
class FileHandle:
    """A file with its URI; its size is -1 if Flink could not determine the size."""

    uri: str
    size: int

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i8(2)
        out.i64(self.size)
        out.utf(self.uri)


@dataclass(frozen=True, slots=True)
class RelativeFileHandle:
    """A file with its path under the metadata's directory."""

    path: str
    size: int

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i8(6)
        out.utf(self.path)
        out.i64(self.size)


@dataclass(frozen=True, slots=True)
class SegmentHandle:
    """A part of a file that several states share (file merging, since Flink 1.20)."""

    uri: str
    start: int
    size: int
    scope: int
    logical_file_id: str

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i8(15)
        out.i64(self.start)
        out.i64(self.size)
        out.i32(self.scope)
        out.utf(self.uri)
        out.utf(self.logical_file_id)


@dataclass(frozen=True, slots=True)
class EmptySegmentHandle:
    """A placeholder for a segment that was never written."""

    @property
    def state_size(self) -> int:
        return 0

    def write(self, out: DataOutput) -> None:
        out.i8(16)


@dataclass(frozen=True, slots=True)
class StreamKeyGroupsHandle:
    """Key groups as a stream handle, because `KeyGroupsStateHandle` is also a stream handle."""

    first_key_group: int
    offsets: tuple[int, ...]
    delegate: StreamHandle

    @property
    def state_size(self) -> int:
        return self.delegate.state_size

    def write(self, out: DataOutput) -> None:
        out.i8(3)
        _write_key_group_offsets(out, self.first_key_group, self.offsets)
        self.delegate.write(out)


StreamHandle: TypeAlias = (
    ByteStreamHandle
    | FileHandle
    | RelativeFileHandle
    | SegmentHandle
    | EmptySegmentHandle
    | StreamKeyGroupsHandle
)


# ---- operator-state handles --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StateOffsets:
    """The offsets of a named operator state in its stream (`OperatorStateHandle.StateMetaInfo`).

    A list state has one offset per element. A broadcast state has a single offset.
    """

    name: str
    mode: DistributionMode
    offsets: tuple[int, ...]

    def write(self, out: DataOutput) -> None:
        out.utf(self.name)
        out.i8(self.mode)
        out.counted(self.offsets, out.i64)


@dataclass(frozen=True, slots=True)
class PartitionableHandle:
    """Operator state: named states, and the stream that contains them."""

    states: tuple[StateOffsets, ...]
    delegate: StreamHandle

    @property
    def state_size(self) -> int:
        return self.delegate.state_size

    def write(self, out: DataOutput) -> None:
        out.i8(4)
        _write_state_offsets(out, self.states)
        self.delegate.write(out)


@dataclass(frozen=True, slots=True)
class FileMergingOperatorHandle:
    """Operator state in a segment of a merged file, and the directories of the merged files.

    For a subtask without operator state, `empty` is true and the segment is empty.
    """

    states: tuple[StateOffsets, ...]
    task_owned_directory: str
    shared_directory: str
    empty: bool
    delegate: SegmentHandle | EmptySegmentHandle

    @property
    def state_size(self) -> int:
        return self.delegate.state_size

    def write(self, out: DataOutput) -> None:
        out.i8(17)
        _write_state_offsets(out, self.states)
        out.utf(self.task_owned_directory)
        out.utf(self.shared_directory)
        out.boolean(self.empty)
        self.delegate.write(out)


OperatorHandle: TypeAlias = PartitionableHandle | FileMergingOperatorHandle


# ---- keyed-state handles -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyGroupsHandle:
    """Key groups in one stream, of a full snapshot, a savepoint, or raw keyed state.

    Flink added the id later, but not for savepoints.
    """

    first_key_group: int
    offsets: tuple[int, ...]
    delegate: StreamHandle
    handle_id: str | None
    savepoint: bool = False

    @property
    def state_size(self) -> int:
        return self.delegate.state_size

    def write(self, out: DataOutput) -> None:
        if self.savepoint and self.handle_id is not None:
            raise ValueError("a savepoint's key groups have no handle id")
        out.i8(7 if self.savepoint else 3 if self.handle_id is None else 12)
        _write_key_group_offsets(out, self.first_key_group, self.offsets)
        self.delegate.write(out)
        if self.handle_id is not None:
            out.utf(self.handle_id)


@dataclass(frozen=True, slots=True)
class IncrementalHandle:
    """The files of RocksDB: its metadata, the files shared with other checkpoints, private files.

    Shared and private files are pairs of the local path and the handle. The older form has neither
    `checkpointed_size` nor `handle_id`.
    """

    checkpoint_id: int
    backend_id: str
    first_key_group: int
    key_groups: int
    checkpointed_size: int | None
    meta: StreamHandle
    shared: tuple[tuple[str, StreamHandle], ...]
    private: tuple[tuple[str, StreamHandle], ...]
    handle_id: str | None

    @property
    def state_size(self) -> int:
        files = (*self.shared, *self.private)
        return self.meta.state_size + sum(handle.state_size for _, handle in files)

    def write(self, out: DataOutput) -> None:
        if (self.checkpointed_size is None) != (self.handle_id is None):
            raise ValueError("checkpointed_size and handle_id are written both or neither")
        out.i8(5 if self.handle_id is None else 11)
        out.i64(self.checkpoint_id)
        out.utf(self.backend_id)
        out.i32(self.first_key_group)
        out.i32(self.key_groups)
        if self.checkpointed_size is not None:
            out.i64(self.checkpointed_size)
        self.meta.write(out)
        for files in (self.shared, self.private):
            out.i32(len(files))
            for local_path, handle in files:
                out.utf(local_path)
                handle.write(out)
        if self.handle_id is not None:
            out.utf(self.handle_id)


@dataclass(frozen=True, slots=True)
class ChangelogHandle:
    """The state of the changelog backend: materialized handles, and the changes after them."""

    first_key_group: int
    key_groups: int
    checkpointed_size: int
    materialized: tuple[KeyedHandle, ...]
    non_materialized: tuple[ChangelogBytesHandle | ChangelogFilesHandle, ...]
    materialization_id: int
    checkpoint_id: int | None
    handle_id: str

    @property
    def state_size(self) -> int:
        return sum(handle.state_size for handle in (*self.materialized, *self.non_materialized))

    def write(self, out: DataOutput) -> None:
        out.i8(8 if self.checkpoint_id is None else 14)
        out.i32(self.first_key_group)
        out.i32(self.key_groups)
        out.i64(self.checkpointed_size)
        out.counted(self.materialized, lambda handle: handle.write(out))
        out.counted(self.non_materialized, lambda handle: handle.write(out))
        out.i64(self.materialization_id)
        if self.checkpoint_id is not None:
            out.i64(self.checkpoint_id)
        out.utf(self.handle_id)


@dataclass(frozen=True, slots=True)
class ChangelogBytesHandle:
    """Changes in the metadata itself: pairs of a key group (-1 for meta data) and bytes."""

    first_key_group: int
    key_groups: int
    sequence_from: int
    sequence_to: int
    changes: tuple[tuple[int, bytes], ...]
    handle_id: str

    @property
    def state_size(self) -> int:
        return sum(len(change) for _, change in self.changes)

    def write(self, out: DataOutput) -> None:
        out.i8(9)
        out.i32(self.first_key_group)
        out.i32(self.key_groups)
        out.i64(self.sequence_from)
        out.i64(self.sequence_to)
        out.i32(len(self.changes))
        for key_group, change in self.changes:
            out.i32(key_group)
            out.sized(change)
        out.utf(self.handle_id)


@dataclass(frozen=True, slots=True)
class ChangelogFilesHandle:
    """Changes in files: pairs of the offset in the stream and the stream's handle.

    `size` is not the sum of the files' sizes, because several handles may share a file.
    """

    first_key_group: int
    key_groups: int
    streams: tuple[tuple[int, StreamHandle], ...]
    size: int
    checkpointed_size: int
    handle_id: str
    storage_id: str | None

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i8(10 if self.storage_id is None else 13)
        out.i32(self.first_key_group)
        out.i32(self.key_groups)
        out.i32(len(self.streams))
        for offset, handle in self.streams:
            out.i64(offset)
            handle.write(out)
        out.i64(self.size)
        out.i64(self.checkpointed_size)
        out.utf(self.handle_id)
        if self.storage_id is not None:
            out.utf(self.storage_id)


KeyedHandle: TypeAlias = (
    KeyGroupsHandle
    | IncrementalHandle
    | ChangelogHandle
    | ChangelogBytesHandle
    | ChangelogFilesHandle
)


# ---- channel handles: records in flight --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChannelHandle:
    """The records of one channel: (gate, channel) for input, (partition, subpartition) for output.

    Several channels may share a file. `size` counts the bytes of this channel.
    """

    subtask: int
    channel: tuple[int, int]
    offsets: tuple[int, ...]
    size: int
    delegate: StreamHandle

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i32(self.subtask)
        for index in self.channel:
            out.i32(index)
        out.counted(self.offsets, out.i64)
        out.i64(self.size)
        self.delegate.write(out)


@dataclass(frozen=True, slots=True)
class MergedChannelHandle:
    """All channels of a subtask that share one file (metadata version 6)."""

    subtask: int
    size: int
    delegate: StreamHandle
    serialized_channel_offsets: bytes

    @property
    def state_size(self) -> int:
        return self.size

    def write(self, out: DataOutput) -> None:
        out.i32(self.subtask)
        out.i64(self.size)
        self.delegate.write(out)
        out.sized(self.serialized_channel_offsets)


# ---- the metadata ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subtask:
    """The state of one subtask; a finished subtask has no state."""

    index: int
    finished: bool = False
    managed_operator: OperatorHandle | None = None
    raw_operator: OperatorHandle | None = None
    managed_keyed: KeyedHandle | None = None
    raw_keyed: KeyedHandle | None = None
    input_channels: tuple[ChannelHandle | MergedChannelHandle, ...] = ()
    result_subpartitions: tuple[ChannelHandle | MergedChannelHandle, ...] = ()

    @property
    def operator_state_size(self) -> int:
        handles = (self.managed_operator, self.raw_operator)
        return sum(handle.state_size for handle in handles if handle)

    @property
    def keyed_state_size(self) -> int:
        handles = (self.managed_keyed, self.raw_keyed)
        return sum(handle.state_size for handle in handles if handle)

    @property
    def in_flight_size(self) -> int:
        channels = (*self.input_channels, *self.result_subpartitions)
        return sum(handle.state_size for handle in channels)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator; its id is 16 bytes, in the order of the hexadecimal form."""

    operator_id: bytes
    parallelism: int
    max_parallelism: int
    name: str | None = None
    uid: str | None = None
    coordinator: ByteStreamHandle | None = None
    finished: bool = False
    subtasks: tuple[Subtask, ...] = ()


@dataclass(frozen=True, slots=True)
class MasterState:
    """The state of a hook of the checkpoint coordinator."""

    version: int
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Metadata:
    """The metadata of a checkpoint."""

    checkpoint_id: int
    operators: tuple[Operator, ...] = ()
    master_states: tuple[MasterState, ...] = ()


def encode_metadata(metadata: Metadata, version: int, properties: bytes = b"") -> bytes:
    """Encode a `_metadata` file.

    `properties` are the Java-serialized CheckpointProperties, which end the file since version 4.
    `tests/golden/synthetic/properties.json` contains properties that Flink wrote.
    """
    if version not in METADATA_VERSIONS:
        raise ValueError(f"no metadata of version {version}")
    if (version >= 4) != bool(properties):
        raise ValueError(f"version {version} and {len(properties)} bytes of properties")
    out = DataOutput()
    out.i32(_MAGIC)
    out.i32(version)
    out.i64(metadata.checkpoint_id)
    out.counted(metadata.master_states, lambda state: _write_master_state(out, state))
    out.counted(metadata.operators, lambda operator: _write_operator(out, operator, version))
    out.raw(properties)
    return out.to_bytes()


def _write_master_state(out: DataOutput, state: MasterState) -> None:
    payload = DataOutput()
    payload.i32(state.version)
    payload.utf(state.name)
    payload.sized(state.data)
    out.i32(_MASTER_STATE_MAGIC)
    out.sized(payload.to_bytes())


def _write_operator(out: DataOutput, operator: Operator, version: int) -> None:
    if version >= 5:
        out.utf(operator.name or "")
        out.utf(operator.uid or "")
    elif operator.name is not None or operator.uid is not None:
        raise ValueError(f"version {version} has no operator names")
    if len(operator.operator_id) != 16:
        raise ValueError("an operator id has 16 bytes")
    out.raw(operator.operator_id)
    out.i32(operator.parallelism)
    out.i32(operator.max_parallelism)
    if version >= 3:
        _write_optional(out, operator.coordinator)
    elif operator.coordinator or operator.finished:
        raise ValueError("version 2 has no coordinator state and no finished operators")
    else:
        out.i32(1)  # formerly the length of the operator chain
    if operator.finished:
        if operator.subtasks or operator.coordinator:
            raise ValueError("a finished operator has no state")
        out.i32(-1)
    else:
        out.counted(operator.subtasks, lambda subtask: _write_subtask(out, subtask, version))


def _write_subtask(out: DataOutput, subtask: Subtask, version: int) -> None:
    channels = (*subtask.input_channels, *subtask.result_subpartitions)
    if version == 2 and (subtask.finished or channels):
        raise ValueError("version 2 has no finished subtasks and no channel state")
    if version < 6 and any(isinstance(channel, MergedChannelHandle) for channel in channels):
        raise ValueError(f"version {version} has no merged channels")
    if subtask.finished:
        if subtask != Subtask(subtask.index, finished=True):
            raise ValueError("a finished subtask has no state")
        out.i32(-(subtask.index + 1))
        return
    out.i32(subtask.index)
    if version == 2:
        out.i64(-1)  # formerly the duration
        out.i32(0)  # formerly the number of legacy states
    for operator_handle in (subtask.managed_operator, subtask.raw_operator):
        out.i32(0 if operator_handle is None else 1)
        if operator_handle is not None:
            operator_handle.write(out)
    for keyed_handle in (subtask.managed_keyed, subtask.raw_keyed):
        _write_optional(out, keyed_handle)
    if version >= 3:
        _write_channels(out, subtask.input_channels, version, plain=1, merged=3)
        _write_channels(out, subtask.result_subpartitions, version, plain=2, merged=4)


def _write_channels(
    out: DataOutput,
    channels: Sequence[ChannelHandle | MergedChannelHandle],
    version: int,
    *,
    plain: int,
    merged: int,
) -> None:
    out.i32(len(channels))
    for channel in channels:
        if version >= 6:
            out.i8(merged if isinstance(channel, MergedChannelHandle) else plain)
        channel.write(out)


def _write_optional(out: DataOutput, handle: ByteStreamHandle | KeyedHandle | None) -> None:
    if handle is None:
        out.i8(_NULL_HANDLE)
    else:
        handle.write(out)


def _write_state_offsets(out: DataOutput, states: Sequence[StateOffsets]) -> None:
    out.counted(states, lambda state: state.write(out))


def _write_key_group_offsets(out: DataOutput, first: int, offsets: Sequence[int]) -> None:
    out.i32(first)
    out.counted(offsets, out.i64)
