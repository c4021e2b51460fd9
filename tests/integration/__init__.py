"""Tests that need the real Kafka, Flink, and Spark, which `tests.support` starts."""
