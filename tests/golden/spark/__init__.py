"""Checkpoint locations from each Spark version, and the offsets at which this version resumed."""
