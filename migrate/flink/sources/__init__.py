"""The Kafka sources of a checkpoint, each with its positions.

``merged`` reads what FLIP-27 sources keep, ``legacy`` what a FlinkKafkaConsumer does.
"""

from migrate.flink.sources.source import KafkaState, Source, SourceKind, source_of

__all__ = ["KafkaState", "Source", "SourceKind", "source_of"]
