"""Rehearse a Spark query over the records between two checkpoints of a Flink job."""
