"""Checkpoint locations from each Spark, and the offsets at which the same Spark resumed them."""
