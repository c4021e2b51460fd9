"""Checkpoints of a KafkaSource, with operator or keyed state in separate files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support import checkpoints
from tests.support.checkpoints import OPERATOR_ID, write_checkpoint
from tests.support.encoder import (
    READER_STATE,
    DistributionMode,
    KeyGroupsHandle,
    ListState,
    Operator,
    PartitionableHandle,
    RelativeFileHandle,
    StreamHandle,
    Subtask,
    encode_operator_state_stream,
    encode_reader_element,
    encode_split,
)

SPLIT_DISTRIBUTE = DistributionMode.SPLIT_DISTRIBUTE


def split_stream(
    partition: int, others: Sequence[ListState] = (), compressed: bool = False
) -> tuple[bytes, PartitionableHandle]:
    """Return a state stream with a split of this partition, and a handle without a path."""
    element = encode_reader_element(encode_split("orders", partition, 100 + partition))
    reader = ListState(READER_STATE, SPLIT_DISTRIBUTE, (element,))
    stream, states = encode_operator_state_stream(6, compressed, [*others, reader])
    return stream, PartitionableHandle(tuple(states), RelativeFileHandle("", 0))


def source_operator(*handles: PartitionableHandle) -> Operator:
    subtasks = tuple(Subtask(i, managed_operator=handle) for i, handle in enumerate(handles))
    return Operator(OPERATOR_ID, len(subtasks), 128, subtasks=subtasks)


def write_in_files(directory: Path, subtasks: int = 1, checkpoint_id: int = 7) -> Path:
    """Write a checkpoint in which each subtask has its split in a file."""
    handles = []
    files = {}
    for index in range(subtasks):
        stream, handle = split_stream(index)
        files[f"state-{index}"] = stream
        place = RelativeFileHandle(f"state-{index}", len(stream))
        handles.append(PartitionableHandle(handle.states, place))
    write_checkpoint(directory, source_operator(*handles), checkpoint_id=checkpoint_id)
    for name, data in files.items():
        (directory / name).write_bytes(data)
    return directory


def write_big_checkpoint(directory: Path, size: int, compressed: bool = False) -> Path:
    """Write a source's state in a file, with ``size`` bytes of other data on each side."""
    stream, handle = split_stream(
        0, [ListState("before", SPLIT_DISTRIBUTE, (os.urandom(size),))], compressed
    )
    place = RelativeFileHandle("state", len(stream))
    write_checkpoint(directory, source_operator(PartitionableHandle(handle.states, place)))
    (directory / "state").write_bytes(stream + os.urandom(size))
    return directory


def write_with_handle(make_handle: Callable[[int], StreamHandle], directory: Path) -> Path:
    """Write a checkpoint with the handle ``make_handle(size)``.

    The state is in ``outside/state``, next to the parent of ``directory``.
    """
    stream, handle = split_stream(0)
    outside = directory.parents[1] / "outside" / "state"
    outside.parent.mkdir(exist_ok=True)
    outside.write_bytes(stream)
    return write_checkpoint(
        directory, source_operator(PartitionableHandle(handle.states, make_handle(len(stream))))
    )


def write_savepoint_with_files(directory: Path, sizes: Mapping[str, int]) -> Path:
    """Write a savepoint of a source at offset 3 of t-0, and of keyed state in files of zeros."""
    keyed = tuple(
        Subtask(
            index,
            managed_keyed=KeyGroupsHandle(index, (0,), RelativeFileHandle(name, size), None),
        )
        for index, (name, size) in enumerate(sizes.items())
    )
    operator = Operator(bytes(range(16, 32)), len(keyed), 1 << 15, subtasks=keyed)
    source = checkpoints.source_operator(checkpoints.SourceState({0: checkpoints.splits("t", [3])}))
    write_checkpoint(directory, source, operator)
    for name, size in sizes.items():
        with (directory / name).open("wb") as file:
            file.truncate(size)
    return directory
