"""Tests that need the real systems: Kafka, Flink and Spark, started by `tests.support`."""
