"""`make playground`: a broker, topics, and what a Flink job has left, for the tutorial."""

# The ids of its job: of the first run, and of the one that began at the first one's newest
# checkpoint.
JOBS = ("5f1d7a94c08e4b2fa6c3d9e0b1824a67", "c27b80d3f4914e6d8a05b7c1e9f3362d")
