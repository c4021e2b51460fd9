"""Inputs with positions: Flink checkpoints, Spark queries, consumer groups, files."""
