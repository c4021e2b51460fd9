"""The Kafka sources of a checkpoint, each with its positions.

``merged`` reads what FLIP-27 sources keep, ``legacy`` what a FlinkKafkaConsumer does.
"""

from migrate.flink.sources.model import KafkaState, Source, SourceKind
from migrate.flink.sources.recognised import source_of

__all__ = ["KafkaState", "Source", "SourceKind", "source_of"]
