"""Flink checkpoints and savepoints, read without a JVM.

The room in one line: bytes that Flink wrote in, typed values out; no network, no Kafka, no Spark.

``read_checkpoint`` and ``list_checkpoints`` are the way in; whatever is wrong with the bytes comes
out as ``DecodeError`` and nothing else (any other exception is a bug).
"""

from decoder.checkpoint import Checkpoint, list_checkpoints, read_checkpoint
from decoder.errors import DecodeError, ErrorKind

__all__ = ["Checkpoint", "DecodeError", "ErrorKind", "list_checkpoints", "read_checkpoint"]
