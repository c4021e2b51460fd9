"""The values in ``_metadata``.

Most docstrings start with the name of the corresponding Flink class in
org.apache.flink.runtime.state or org.apache.flink.runtime.checkpoint @ 2.2.0.

The classes here and most classes in ``kafka`` are named tuples. Defining a frozen dataclass
takes nearly a millisecond at each program start, and creating an instance takes three times as long
as for a named tuple.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class InlineState(NamedTuple):
    """ByteStreamStateHandle: the state itself, inside ``_metadata``."""

    name: str
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


class FileState(NamedTuple):
    """FileStateHandle: a whole file, with the absolute URI to which Flink wrote it.

    ``stored_size`` is None if the size was unknown to Flink (-1 in the handle).
    """

    uri: str
    stored_size: int | None

    @property
    def size(self) -> int:
        return self.stored_size or 0


class RelativeFileState(NamedTuple):
    """RelativeFileStateHandle: a whole file, with its path in the directory of ``_metadata``."""

    path: str
    stored_size: int | None

    @property
    def size(self) -> int:
        return self.stored_size or 0


class SegmentState(NamedTuple):
    """SegmentFileStateHandle: ``size`` bytes of a merged file, from byte ``start`` on."""

    uri: str
    start: int
    size: int


class EmptySegment(NamedTuple):
    """EmptySegmentFileStateHandle: a placeholder for file merging, without bytes."""

    size: int = 0


StreamState = InlineState | FileState | RelativeFileState | SegmentState | EmptySegment


class DistributionMode(Enum):
    """OperatorStateHandle.Mode: how list state is distributed across the subtasks on restore."""

    SPLIT_DISTRIBUTE = 0
    UNION = 1
    BROADCAST = 2


class NamedState(NamedTuple):
    """A named state in an OperatorStateHandle.

    ``byte_offsets`` are absolute positions in the handle's stream, one per element of list state.
    """

    name: str
    mode: DistributionMode
    byte_offsets: tuple[int, ...]


class OperatorStateHandle(NamedTuple):
    """OperatorStreamStateHandle: named states, and the stream with their elements.

    ``of_file_merging`` is True if the handle is a FileMergingOperatorStreamStateHandle.
    """

    states: tuple[NamedState, ...]
    stream: StreamState
    of_file_merging: bool = False

    @property
    def size(self) -> int:
        return self.stream.size


class Subtask(NamedTuple):
    """OperatorSubtaskState: the state of one parallel instance of an operator.

    A finished subtask has no state. Sizes are in bytes, as counted by Flink's ``getStateSize()``.
    ``managed_keyed_state_at`` and ``raw_keyed_state_at`` are the byte offsets of the handles in
    ``_metadata``, for ``keyed.read_keyed_handle``; None if the subtask has no such state.
    """

    index: int  # type: ignore[assignment]  # hides tuple.index()
    finished: bool
    managed_operator_state: OperatorStateHandle | None
    raw_operator_state: OperatorStateHandle | None
    managed_keyed_state_bytes: int
    raw_keyed_state_bytes: int
    in_flight_bytes: int
    managed_keyed_state_at: int | None = None
    raw_keyed_state_at: int | None = None

    @property
    def raw_state_bytes(self) -> int:
        """The bytes of raw state: custom operators' raw state and, with RocksDB, heap timers."""
        raw = self.raw_operator_state
        return self.raw_keyed_state_bytes + (raw.size if raw is not None else 0)


class Operator(NamedTuple):
    """OperatorState: an operator of the job.

    ``operator_id`` is 32 hex digits, as printed by Flink. ``name`` and ``uid`` are None if the
    job did not set them or if the metadata version (2 to 4) does not store them.
    """

    operator_id: str
    name: str | None
    uid: str | None
    parallelism: int
    max_parallelism: int
    finished: bool
    coordinator_state: InlineState | None
    subtasks: tuple[Subtask, ...]

    @property
    def operator_state_handles(self) -> list[OperatorStateHandle]:
        """The managed and raw operator state of all subtasks."""
        return [
            handle
            for subtask in self.subtasks
            for handle in (subtask.managed_operator_state, subtask.raw_operator_state)
            if handle is not None
        ]

    @property
    def state_names(self) -> tuple[str, ...]:
        """The names of the operator's managed and raw operator states, sorted."""
        names = {state.name for handle in self.operator_state_handles for state in handle.states}
        return tuple(sorted(names))

    @property
    def keyed_state_bytes(self) -> int:
        return sum(
            subtask.managed_keyed_state_bytes + subtask.raw_keyed_state_bytes
            for subtask in self.subtasks
        )

    @property
    def operator_state_bytes(self) -> int:
        return sum(handle.size for handle in self.operator_state_handles)

    @property
    def raw_state_bytes(self) -> int:
        """The size of the raw keyed state and raw operator state, in bytes."""
        return sum(subtask.raw_state_bytes for subtask in self.subtasks)

    @property
    def in_flight_bytes(self) -> int:
        return sum(subtask.in_flight_bytes for subtask in self.subtasks)

    @property
    def finished_subtasks(self) -> tuple[int, ...]:
        """The indexes of the subtasks that had finished, in ascending order."""
        return tuple(sorted(subtask.index for subtask in self.subtasks if subtask.finished))


class CheckpointKind(Enum):
    CHECKPOINT = "checkpoint"
    SAVEPOINT = "savepoint"
    UNKNOWN = "unknown"


class StopKind(Enum):
    """How the job stopped with this checkpoint or savepoint, if it stopped."""

    SUSPEND = "suspend"
    TERMINATE = "terminate"
    NONE = "none"
    UNKNOWN = "unknown"


class CheckpointType(NamedTuple):
    """CheckpointProperties.checkpointType; metadata versions 2 and 3 do not store it."""

    kind: CheckpointKind
    stop: StopKind


class Metadata(NamedTuple):
    """A whole ``_metadata`` file."""

    version: int
    checkpoint_id: int
    type: CheckpointType
    operators: tuple[Operator, ...]
