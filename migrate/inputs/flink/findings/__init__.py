"""Findings about a checkpoint as a whole, its Kafka sources, and its operators."""
