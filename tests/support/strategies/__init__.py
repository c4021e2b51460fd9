"""Hypothesis strategies for checkpoints that Flink can write, or at least read.

metadata    `metadatas`: handles of every kind, without their files
kafka       `kafka_checkpoints`: checkpoints of jobs with Kafka sources, with their files and
            expected content
keyed       `keyed_checkpoints`: checkpoints with keyed state and expected rows
dialect     the formats that a release of Flink can read, as a limit for the other strategies
primitives  numbers, texts and paths for the other strategies
"""

from tests.support.strategies.dialect import (
    EVERYTHING,
    FLINK_1_15,
    FLINK_1_20,
    FLINK_2_2,
    Dialect,
)
from tests.support.strategies.kafka import (
    ExpectedKafkaSource,
    ExpectedLegacySource,
    KafkaCheckpoint,
    kafka_checkpoints,
    kafka_splits,
    topics,
)
from tests.support.strategies.metadata import (
    channel_handles,
    keyed_handles,
    metadatas,
    operator_handles,
    operators,
    stream_handles,
    subtasks,
)

__all__ = [
    "EVERYTHING",
    "FLINK_1_15",
    "FLINK_1_20",
    "FLINK_2_2",
    "Dialect",
    "ExpectedKafkaSource",
    "ExpectedLegacySource",
    "KafkaCheckpoint",
    "channel_handles",
    "kafka_checkpoints",
    "kafka_splits",
    "keyed_handles",
    "metadatas",
    "operator_handles",
    "operators",
    "stream_handles",
    "subtasks",
    "topics",
]
