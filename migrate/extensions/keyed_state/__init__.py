"""Show keyed state as a list of states, as JSON, as Arrow batches, and as tables for Spark."""
