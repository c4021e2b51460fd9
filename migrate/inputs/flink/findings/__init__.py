"""Findings about a checkpoint, about its Kafka sources, and about its other operators."""
