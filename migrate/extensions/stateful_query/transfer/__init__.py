"""Transfer a Flink job's keyed state to a Spark query by rows, priming, and proof."""
