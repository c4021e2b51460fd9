"""The state that operators and coordinators of Flink's Kafka sources and sinks store."""
