"""Small checkpoints of KafkaSource jobs, with exactly the content that a test needs.

The encoder writes the checkpoints; test_encoder.py shows that Flink's own classes can read its
bytes. The metadata has version 3 by default. Metadata of newer versions ends with properties that a
real Flink wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.encoder import (
    LEGACY_STATE,
    READER_STATE,
    ByteStreamHandle,
    ChannelHandle,
    DistributionMode,
    EnumeratorSplit,
    KafkaSplit,
    ListState,
    Metadata,
    Operator,
    PartitionableHandle,
    Subtask,
    encode_coordinator,
    encode_enumerator,
    encode_metadata,
    encode_operator_state_stream,
    encode_reader_element,
    encode_split,
)

OPERATOR_ID = bytes(range(16))
RETAINED = "checkpoint RETAIN_ON_CANCELLATION"

_PROPERTIES = json.loads(
    (Path(__file__).parents[1] / "golden/synthetic/properties.json").read_text()
)


@dataclass(frozen=True, slots=True)
class SourceState:
    """The state of a KafkaSource operator: splits by subtask, and the enumerator's state."""

    readers: Mapping[int, Sequence[KafkaSplit]]
    entries: Sequence[EnumeratorSplit] | None = None  # None: the splits of the readers
    enumerator_version: int = 3
    initial_discovery_finished: bool = True
    operator_id: bytes = OPERATOR_ID
    uid: str | None = None


def splits(topic: str, starts: Sequence[int]) -> list[KafkaSplit]:
    """Return splits of partitions 0, 1, … of a topic, each with its starting offset."""
    return [KafkaSplit(topic, partition, start) for partition, start in enumerate(starts)]


def source_operator(state: SourceState) -> Operator:
    """Return the operator of a KafkaSource, with inline reader state."""
    entries = state.entries
    if entries is None:
        entries = [EnumeratorSplit(split) for splits in state.readers.values() for split in splits]
    enumerator = encode_enumerator(
        state.enumerator_version, entries, state.initial_discovery_finished
    )
    coordinator = encode_coordinator(1, state.enumerator_version, enumerator)
    return operator_with_elements(
        {
            subtask: [
                encode_reader_element(
                    encode_split(s.topic, s.partition, s.starting_offset, s.stopping_offset)
                )
                for s in splits
            ]
            for subtask, splits in state.readers.items()
        },
        coordinator,
        state.operator_id,
        state.uid,
    )


def operator_with_elements(
    elements: Mapping[int, Sequence[bytes]],
    coordinator: bytes | None,
    operator_id: bytes = OPERATOR_ID,
    uid: str | None = None,
) -> Operator:
    """Return a source operator with these elements of SourceReaderState by subtask."""
    subtasks = tuple(
        _subtask(index, {READER_STATE: splits}, DistributionMode.SPLIT_DISTRIBUTE)
        for index, splits in elements.items()
    )
    return Operator(
        operator_id,
        max(len(subtasks), 1),
        128,
        uid=uid,
        coordinator=ByteStreamHandle("coordinator", coordinator) if coordinator else None,
        subtasks=subtasks,
    )


def operator_with_states(
    states: Mapping[str, Sequence[bytes]],
    mode: DistributionMode = DistributionMode.SPLIT_DISTRIBUTE,
    operator_id: bytes = OPERATOR_ID,
    sized: bool = True,
) -> Operator:
    """Return an operator of one subtask with list states by name; ``sized``: see ListState."""
    return Operator(operator_id, 1, 128, subtasks=(_subtask(0, states, mode, sized),))


def _subtask(
    index: int, states: Mapping[str, Sequence[bytes]], mode: DistributionMode, sized: bool = True
) -> Subtask:
    lists = [ListState(name, mode, tuple(elements), sized) for name, elements in states.items()]
    stream, offsets = encode_operator_state_stream(6, False, lists)
    handle = PartitionableHandle(offsets, ByteStreamHandle("state", stream))
    return Subtask(index, managed_operator=handle)


def legacy_operator(
    readers: Mapping[int, Sequence[bytes]],
    operator_id: bytes = OPERATOR_ID,
    mode: DistributionMode = DistributionMode.UNION,
    compressed: bool = False,
    header_per_state: bool = False,
) -> Operator:
    """Return a FlinkKafkaConsumer with these elements by subtask, and with two other states."""
    others = (
        ListState("_default_", DistributionMode.SPLIT_DISTRIBUTE, (b"x",)),
        ListState("zebra", DistributionMode.UNION, (b"after",)),
    )
    subtasks = []
    for index, elements in readers.items():
        legacy = ListState(LEGACY_STATE, mode, tuple(elements), sized=False)
        stream, offsets = encode_operator_state_stream(
            6, compressed, (others[0], legacy, others[1]), header_per_state=header_per_state
        )
        handle = PartitionableHandle(offsets, ByteStreamHandle("state", stream))
        subtasks.append(Subtask(index, managed_operator=handle))
    return Operator(operator_id, max(len(subtasks), 1), 128, subtasks=tuple(subtasks))


def in_flight_operator(size: int) -> Operator:
    """Return an operator with ``size`` bytes of records in its input channel."""
    channel = ChannelHandle(0, (0, 0), (0,), size, ByteStreamHandle("channel", bytes(size)))
    return Operator(
        bytes(reversed(OPERATOR_ID)), 1, 128, subtasks=(Subtask(0, input_channels=(channel,)),)
    )


def write_checkpoint(
    directory: Path,
    *operators: Operator,
    checkpoint_id: int = 7,
    version: int = 3,
    kind: str = RETAINED,
) -> Path:
    """Write a checkpoint directory with these operators; `kind` is a name in properties.json."""
    directory.mkdir(parents=True)
    model = Metadata(checkpoint_id, tuple(operators))
    metadata = encode_metadata(model, version, trailing_properties(version, kind))
    (directory / "_metadata").write_bytes(metadata)
    return directory


def trailing_properties(version: int, kind: str = RETAINED) -> bytes:
    """Return the properties at the end of the metadata; they are empty up to version 3."""
    if version <= 3:
        return b""
    written = next(entry for entry in _PROPERTIES if version in entry["metadata_versions"])
    return bytes.fromhex(written["kinds"][kind]["hex"])


def write_source(directory: Path, readers: Mapping[int, Sequence[KafkaSplit]]) -> Path:
    """Write a checkpoint of one KafkaSource whose enumerator lists the splits of its readers."""
    return write_checkpoint(directory, source_operator(SourceState(readers)))
