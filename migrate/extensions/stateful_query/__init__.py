"""Start a Spark query with Flink's keyed state, rehearse it, and verify its state."""
