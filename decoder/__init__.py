"""A reader of Flink checkpoints and savepoints that needs no JVM, network, Kafka, or Spark.

Start at ``read_checkpoint`` and ``list_checkpoints``. Bytes that cannot be read raise
``DecodeError``; any other exception is a bug.
"""

from decoder.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from decoder.errors import DecodeError, ErrorKind
from decoder.kafka.legacy import LegacyConsumer
from decoder.kafka.sink import PendingTransaction, SinkState
from decoder.kafka.source import (
    BeamKafkaIO,
    DynamicKafkaSource,
    HybridSource,
    KafkaSource,
    ReaderSplit,
    UnknownSource,
)
from decoder.metadata.model import CheckpointKind, Operator, StopKind
from decoder.storage import ByteSource

__all__ = [
    "BeamKafkaIO",
    "ByteSource",
    "Checkpoint",
    "CheckpointKind",
    "DecodeError",
    "DynamicKafkaSource",
    "ErrorKind",
    "HybridSource",
    "KafkaSource",
    "LegacyConsumer",
    "Operator",
    "PendingTransaction",
    "ReaderSplit",
    "SinkState",
    "StopKind",
    "UnknownSource",
    "list_checkpoints",
    "read_checkpoint",
]
