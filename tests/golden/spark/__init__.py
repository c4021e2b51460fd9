"""Checkpoint locations that each Spark wrote, and where that Spark itself went on from them."""
