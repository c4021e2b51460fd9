"""Keyed state of a Flink job as the state of a Spark query: rows, priming, proof."""
