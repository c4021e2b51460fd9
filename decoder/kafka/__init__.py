"""Flink's Kafka sources in operator and coordinator state: splits, enumerators, recognition."""
