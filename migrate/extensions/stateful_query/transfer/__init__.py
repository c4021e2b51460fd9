"""Transfer a Flink job's keyed state to a Spark query: rows, priming, and proof."""
