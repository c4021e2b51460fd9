"""Flink's Kafka sources and sinks in operator and coordinator state."""
