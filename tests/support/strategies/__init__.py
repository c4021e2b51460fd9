"""Hypothesis strategies: checkpoints that Flink could have written, and some it only could read.

metadata    `metadatas`: handles of every kind, which point at nothing
kafka       `kafka_checkpoints`: whole checkpoints of jobs with KafkaSources, with the files
            they need and the facts they hold
dialect     what a release of Flink can read, to keep either within it
primitives  the numbers, texts and paths that both are made of
"""

from tests.support.strategies.dialect import (
    EVERYTHING,
    FLINK_1_15,
    FLINK_1_20,
    FLINK_2_2,
    Dialect,
)
from tests.support.strategies.kafka import (
    KafkaCheckpoint,
    KafkaSourceFacts,
    LegacyFacts,
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
    "KafkaCheckpoint",
    "KafkaSourceFacts",
    "LegacyFacts",
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
