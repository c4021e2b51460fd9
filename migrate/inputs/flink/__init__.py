"""Flink checkpoints as inputs, their findings, and a JobManager's REST API."""
