"""An encoder that writes checkpoints as Flink does, to test the decoder.

The encoder was written independently from the sources of Flink and the Kafka connector, and it
shares no code with `decoder`. In `tests/integration/test_encoder.py` Flink's own classes read its
bytes back.

    metadata        the `_metadata` file: operators, subtasks and every kind of state handle
    operator_state  the stream that a partitionable operator-state handle refers to
    kafka           the state of KafkaSource: its readers and its enumerator
    hybrid, legacy  the state of HybridSource and FlinkKafkaConsumer
    sink            the state of KafkaSink
    keyed_values    serializers of keys, namespaces and values, and their snapshots
    keyed_state     streams of keyed state: canonical, and of the heap backend
    data_output     Java's `DataOutput`, which all of them use
"""

from tests.support.encoder.data_output import DataOutput, modified_utf8
from tests.support.encoder.hybrid import encode_hybrid_enumerator, encode_hybrid_split
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
    StreamCluster,
    encode_coordinator,
    encode_dynamic_enumerator,
    encode_dynamic_reader_element,
    encode_dynamic_split,
    encode_enumerator,
    encode_reader_element,
    encode_split,
)
from tests.support.encoder.legacy import (
    LEGACY_EARLIEST,
    LEGACY_GROUP,
    LEGACY_LATEST,
    LEGACY_NOT_SET,
    LEGACY_STATE,
    encode_legacy_element,
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
from tests.support.encoder.sink import (
    COMMITTED_REQUEST,
    COMMITTER_STATE,
    FAILED,
    RETRY,
    WRITER_STATE,
    Committable,
    encode_committer_element,
    encode_file_writer_element,
    encode_writer_element,
)

__all__ = [
    "ASSIGNED",
    "COMMITTED",
    "COMMITTED_REQUEST",
    "COMMITTER_STATE",
    "EARLIEST",
    "FAILED",
    "LATEST",
    "LEGACY_EARLIEST",
    "LEGACY_GROUP",
    "LEGACY_LATEST",
    "LEGACY_NOT_SET",
    "LEGACY_STATE",
    "METADATA_VERSIONS",
    "MIGRATED",
    "NO_STOPPING_OFFSET",
    "READER_STATE",
    "RETRY",
    "UNASSIGNED",
    "WRITER_STATE",
    "BroadcastState",
    "ByteStreamHandle",
    "ChangelogBytesHandle",
    "ChangelogFilesHandle",
    "ChangelogHandle",
    "ChannelHandle",
    "Committable",
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
    "StreamCluster",
    "StreamHandle",
    "StreamKeyGroupsHandle",
    "Subtask",
    "encode_committer_element",
    "encode_coordinator",
    "encode_dynamic_enumerator",
    "encode_dynamic_reader_element",
    "encode_dynamic_split",
    "encode_enumerator",
    "encode_file_writer_element",
    "encode_hybrid_enumerator",
    "encode_hybrid_split",
    "encode_legacy_element",
    "encode_metadata",
    "encode_operator_state_stream",
    "encode_reader_element",
    "encode_split",
    "encode_writer_element",
    "modified_utf8",
]
