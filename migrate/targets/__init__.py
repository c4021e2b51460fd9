"""Targets of a move: consumer groups, Spark checkpoint locations and queries, and savepoints."""
