"""Inputs with positions: Flink checkpoints, Spark queries, consumer groups, and files."""
