"""Writes what Flink writes into a checkpoint: an encoder to hold the decoder against.

It is a second, independent reading of Flink's and the Kafka connector's sources: it shares no code
with `decoder`, and `tests/integration/test_encoder.py` has Flink's own classes read its bytes back.

    metadata        the `_metadata` file: operators, subtasks and every kind of state handle
    operator_state  the stream that a partitionable operator-state handle points at
    kafka           what KafkaSource keeps in its readers and in its enumerator
    data_output     Java's `DataOutput`, on which all of them are written
"""

from tests.support.encoder.data_output import DataOutput, modified_utf8
from tests.support.encoder.kafka import (
    ASSIGNED,
    COMMITTED,
    EARLIEST,
    LATEST,
    MIGRATED,
    NO_STOPPING_OFFSET,
    READER_STATE,
    UNASSIGNED,
    EnumeratorSplit,
    KafkaSplit,
    encode_coordinator,
    encode_enumerator,
    encode_reader_element,
    encode_split,
)
from tests.support.encoder.metadata import (
    METADATA_VERSIONS,
    ByteStreamHandle,
    ChangelogBytesHandle,
    ChangelogFilesHandle,
    ChangelogHandle,
    ChannelHandle,
    DistributionMode,
    EmptySegmentHandle,
    FileHandle,
    FileMergingOperatorHandle,
    IncrementalHandle,
    KeyedHandle,
    KeyGroupsHandle,
    MasterState,
    MergedChannelHandle,
    Metadata,
    Operator,
    OperatorHandle,
    PartitionableHandle,
    RelativeFileHandle,
    SegmentHandle,
    StateOffsets,
    StreamHandle,
    StreamKeyGroupsHandle,
    Subtask,
    encode_metadata,
)
from tests.support.encoder.operator_state import (
    BroadcastState,
    ListState,
    encode_operator_state_stream,
)

__all__ = [
    "ASSIGNED",
    "COMMITTED",
    "EARLIEST",
    "LATEST",
    "METADATA_VERSIONS",
    "MIGRATED",
    "NO_STOPPING_OFFSET",
    "READER_STATE",
    "UNASSIGNED",
    "BroadcastState",
    "ByteStreamHandle",
    "ChangelogBytesHandle",
    "ChangelogFilesHandle",
    "ChangelogHandle",
    "ChannelHandle",
    "DataOutput",
    "DistributionMode",
    "EmptySegmentHandle",
    "EnumeratorSplit",
    "FileHandle",
    "FileMergingOperatorHandle",
    "IncrementalHandle",
    "KafkaSplit",
    "KeyGroupsHandle",
    "KeyedHandle",
    "ListState",
    "MasterState",
    "MergedChannelHandle",
    "Metadata",
    "Operator",
    "OperatorHandle",
    "PartitionableHandle",
    "RelativeFileHandle",
    "SegmentHandle",
    "StateOffsets",
    "StreamHandle",
    "StreamKeyGroupsHandle",
    "Subtask",
    "encode_coordinator",
    "encode_enumerator",
    "encode_metadata",
    "encode_operator_state_stream",
    "encode_reader_element",
    "encode_split",
    "modified_utf8",
]
