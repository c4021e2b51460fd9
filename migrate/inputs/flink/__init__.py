"""Flink checkpoints as inputs, findings about them, and a client of the JobManager's REST API."""
