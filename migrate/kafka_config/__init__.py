"""How to reach Kafka: librdkafka's properties and the Java client's, as librdkafka takes them.

A file and ``-X`` arguments (`properties`) hold either kind, or both. What is the Java client's own
is translated: `java`, with `jaas` for log-ins, `key_stores` for certificates, `aws_msk` for AWS.
What bears on nothing here is left out by name. Every other property is librdkafka's to judge.
"""

from migrate.kafka_config.config import check_servers, kafka_config, names_brokers
from migrate.kafka_config.key_stores import MAX_STORE_BYTES
from migrate.kafka_config.properties import (
    ConfigError,
    KafkaConfig,
    TokenCallback,
    without_secrets,
    without_values,
)

__all__ = [
    "MAX_STORE_BYTES",
    "ConfigError",
    "KafkaConfig",
    "TokenCallback",
    "check_servers",
    "kafka_config",
    "names_brokers",
    "without_secrets",
    "without_values",
]
