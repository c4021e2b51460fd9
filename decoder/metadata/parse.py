"""The reader for ``_metadata``, from its magic number to its last byte.

``i32 magic, i32 version``; ``i64 checkpointId``; ``i32 n`` master states; ``i32 n`` operators;
from version 4 on, a Java object stream with the checkpoint's type. Bytes after that are refused.

Source: org.apache.flink.runtime.checkpoint.Checkpoints, MetadataV2V3SerializerBase,
MetadataV2Serializer, MetadataV3Serializer, MetadataV5Serializer @ Flink 2.2.0.
"""

from __future__ import annotations

from functools import lru_cache

from decoder.cursor import Cursor
from decoder.errors import ErrorKind
from decoder.metadata.handles import (
    read_operator_state,
    read_stream,
    skip_channel_states,
    skip_keyed_state,
)
from decoder.metadata.layout import LAYOUTS, MAGIC, MASTER_STATE_MAGIC, MetadataLayout
from decoder.metadata.model import (
    CheckpointKind,
    CheckpointType,
    InlineState,
    Metadata,
    Operator,
    StopKind,
    Subtask,
)
from decoder.metadata.properties import read_checkpoint_type

# The type bytes of channel-state handles in version 6: plain and merged.
_INPUT_CHANNEL = (1, 3)
_RESULT_SUBPARTITION = (2, 4)

# The bytes of several absent kinds of state, which are skipped in one step.
_ABSENT = bytes(4)  # no operator state
_NULL = bytes(1)  # a NULL handle
_NO_OPERATOR_STATE = _ABSENT + _ABSENT  # managed and raw
_NO_OTHER_STATE = _NULL + bytes(4 + 4)  # no raw keyed state, input channels, result subpartitions
_NO_STATE = _NO_OPERATOR_STATE + _NULL + _NO_OTHER_STATE  # also no managed keyed state

# The minimum size of an operator in bytes: ID, parallelism, max parallelism, a null coordinator
# handle, and number of subtasks.
_OPERATOR_BYTES = 16 + 4 + 4 + 1 + 4

# The highest max parallelism: KeyGroupRangeAssignment.UPPER_BOUND_MAX_PARALLELISM @ 2.2.0.
MAX_PARALLELISM = 1 << 15


def parse_metadata(data: bytes, file: str) -> Metadata:
    """Read a whole ``_metadata`` file.

    Raises:
        DecodeError: the file is truncated or corrupt, comes from another program, or has an unknown
            version.
    """
    return read_all(Cursor(data, file))


def read_all(cursor: Cursor) -> Metadata:
    """Read a whole ``_metadata`` file from a cursor at its first byte."""
    layout = read_header(cursor)
    checkpoint_id = cursor.i64("checkpoint id")
    if checkpoint_id < 0:
        cursor.fail(f"a checkpoint id cannot be negative: {checkpoint_id}", "checkpoint id", back=8)
    for _ in range(cursor.count("master states", 8)):
        _skip_master_state(cursor)
    operators = tuple(
        _read_operator(cursor, layout) for _ in range(cursor.count("operators", _OPERATOR_BYTES))
    )
    _check_distinct(cursor, operators)
    if layout.properties:
        checkpoint_type = read_checkpoint_type(cursor)
    else:
        checkpoint_type = CheckpointType(CheckpointKind.UNKNOWN, StopKind.UNKNOWN)
    cursor.finish("checkpoint metadata")
    return Metadata(layout.version, checkpoint_id, checkpoint_type, operators)


def read_header(cursor: Cursor) -> MetadataLayout:
    """Read ``i32 magic, i32 version``.

    Raises:
        DecodeError: the file is truncated, comes from another program, or has an unknown version.
    """
    field = "magic number"
    if cursor.remaining < 4:
        problem = "the file is too short" if cursor.remaining else "the file is empty"
        cursor.fail(problem, field, ErrorKind.TRUNCATED)
    if cursor.i32(field) != MAGIC:
        cursor.fail("not a Flink checkpoint, because its magic number is missing", field, back=4)
    version = cursor.i32("metadata version")
    layout = LAYOUTS.get(version)
    if layout is None:
        known = ", ".join(str(known) for known in LAYOUTS)
        cursor.fail(
            f"metadata version {version} is not supported (supported: {known}); "
            + (
                "a newer Flink release wrote it; check for a newer release of migrate"
                if version > max(LAYOUTS)
                else "restore it in Flink 1.3 to 1.10 and take a new savepoint"
            ),
            "metadata version",
            ErrorKind.UNSUPPORTED,
            back=4,
        )
    return layout


def _skip_master_state(cursor: Cursor) -> None:
    """Step over ``i32 magic, i32 n`` and n bytes: ``i32 version, UTF name, i32 m``, m bytes."""
    if cursor.i32("master state magic number") != MASTER_STATE_MAGIC:
        cursor.fail("a master state without its magic number", "master state", back=4)
    frame = cursor.frame(cursor.i32("master state length"), "master state")
    frame.i32("master state version")
    frame.skip_utf("master state name")
    frame.skip_blob("master state bytes")
    frame.finish("master state")


def _read_operator(cursor: Cursor, layout: MetadataLayout) -> Operator:
    """Read an operator.

    From version 5 on, ``UTF name, UTF uid``; then the operator ID as ``i64 lower, i64 upper``;
    ``i32 parallelism, i32 maxParallelism``, coordinator handle, ``i32 n`` subtasks (negative: the
    operator is fully finished). In place of the coordinator handle, version 2 has an unused
    ``i32``. In older releases, this ``i32`` was the length of an operator chain.
    """
    name = (cursor.utf("operator name") or None) if layout.names else None
    uid = (cursor.utf("operator uid") or None) if layout.names else None
    operator_id = cursor.raw(16, "operator id").hex()
    label = f"operator {operator_id}"
    parallelism = cursor.i32(f"{label} parallelism")
    max_parallelism = cursor.i32(f"{label} max parallelism")
    if not 1 <= parallelism <= max_parallelism <= MAX_PARALLELISM:
        cursor.fail(
            f"parallelism {parallelism} and max parallelism {max_parallelism} do not satisfy "
            f"1 <= parallelism <= max parallelism <= {MAX_PARALLELISM}",
            label,
            back=8,
        )
    coordinator_state = None
    if layout.since_1_11:
        state = read_stream(cursor, f"{label} coordinator state")
        # Flink also refuses kinds other than NULL and BYTE_STREAM.
        if state is not None and not isinstance(state, InlineState):
            cursor.fail("coordinator state is not in the metadata", label)
        coordinator_state = state
    else:
        cursor.i32(f"{label} chain length")
    count = cursor.i32(f"{label} subtasks")
    finished = count < 0
    if finished and not layout.since_1_11:
        cursor.fail(f"a count cannot be negative: {count}", label, back=4)
    if finished and coordinator_state is not None:
        cursor.fail("a fully finished operator has no coordinator state", label, back=4)
    if count > parallelism:
        cursor.fail(f"{count} subtasks at a parallelism of {parallelism}", label, back=4)
    subtasks = _read_subtasks(cursor, layout, label, max(0, count), parallelism)
    return Operator(
        operator_id, name, uid, parallelism, max_parallelism, finished, coordinator_state, subtasks
    )


def _read_subtasks(
    cursor: Cursor, layout: MetadataLayout, label: str, count: int, parallelism: int
) -> tuple[Subtask, ...]:
    index_field = f"{label} subtask index"
    subtasks = tuple(_read_subtask(cursor, layout, label, index_field) for _ in range(count))
    indices = {subtask.index for subtask in subtasks}
    if len(indices) != count or max(indices, default=0) >= parallelism:
        cursor.fail("its subtasks are not distinct, or exceed its parallelism", label)
    return subtasks


def _read_subtask(cursor: Cursor, layout: MetadataLayout, label: str, index_field: str) -> Subtask:
    """Read a subtask.

    ``i32 index``; managed and raw operator state; managed and raw keyed state; input and output
    channel state. A finished subtask is just ``i32 -(index + 1)``. In version 2, ``i64, i32``
    follow the index: a duration, and the number of states from Flink 1.1 (a positive number is
    refused). Version 2 lacks channel state and finished subtasks.
    """
    index = cursor.i32(index_field)
    if index < 0 and layout.since_1_11:
        return _stateless_subtask(-(index + 1), True)
    if index < 0:
        cursor.fail(f"an index cannot be negative: {index}", label, back=4)
    if layout.since_1_11 and cursor.skip_if(_NO_STATE):
        return _stateless_subtask(index, False)
    if not layout.since_1_11:
        _skip_unused_fields(cursor, f"{label} subtask {index}")
    managed = raw = None
    if not cursor.skip_if(_NO_OPERATOR_STATE):
        managed = read_operator_state(cursor, f"{label} subtask {index} managed operator state")
        if not cursor.skip_if(_ABSENT):
            raw = read_operator_state(cursor, f"{label} subtask {index} raw operator state")
    keyed = raw_keyed = in_flight = 0
    keyed_at = raw_keyed_at = None
    if not cursor.skip_if(_NULL):
        keyed_at = cursor.byte_offset
        keyed = skip_keyed_state(cursor, f"{label} subtask {index} managed keyed state")
    if layout.since_1_11 and cursor.skip_if(_NO_OTHER_STATE):
        return Subtask(index, False, managed, raw, keyed, 0, 0, keyed_at)
    label = f"{label} subtask {index}"
    if not cursor.skip_if(_NULL):
        raw_keyed_at = cursor.byte_offset
        raw_keyed = skip_keyed_state(cursor, f"{label} raw keyed state")
    if layout.since_1_11:
        typed = layout.typed_channel_handles
        in_flight = skip_channel_states(
            cursor, f"{label} input channel state", typed, _INPUT_CHANNEL
        ) + skip_channel_states(
            cursor, f"{label} result subpartition state", typed, _RESULT_SUBPARTITION
        )
    return Subtask(index, False, managed, raw, keyed, raw_keyed, in_flight, keyed_at, raw_keyed_at)


@lru_cache(MAX_PARALLELISM)
def _stateless_subtask(index: int, finished: bool) -> Subtask:
    """Return a subtask without state.

    The result is cached. Otherwise, a hostile file with many finished subtasks, each of only four
    bytes, could exhaust the memory.
    """
    return Subtask(index, finished, None, None, 0, 0, 0)


def _skip_unused_fields(cursor: Cursor, label: str) -> None:
    cursor.i64(f"{label} duration")
    if cursor.i32(f"{label} legacy states") > 0:
        cursor.fail(
            "state of Flink 1.1 or older (the Checkpointed interface) that no later Flink reads",
            label,
            ErrorKind.UNSUPPORTED,
            back=4,
        )


def _check_distinct(cursor: Cursor, operators: tuple[Operator, ...]) -> None:
    seen: set[str] = set()
    for operator in operators:
        if operator.operator_id in seen:
            cursor.fail(f"operator {operator.operator_id} is listed twice", "operators")
        seen.add(operator.operator_id)
