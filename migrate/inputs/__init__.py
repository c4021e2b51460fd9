"""Sources of positions: Flink checkpoints, Spark queries, consumer groups, files."""
