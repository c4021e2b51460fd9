"""The state of Flink's Kafka sources and sinks: what operators and coordinators store."""
