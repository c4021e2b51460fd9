"""Provide `make playground`: Kafka, a Flink with a running job, and checkpoints of an ended job."""

# The ids of the job playground. The first one is from its first run, and the second one from the
# run that was restored from the first run's newest checkpoint.
JOBS = ("5f1d7a94c08e4b2fa6c3d9e0b1824a67", "c27b80d3f4914e6d8a05b7c1e9f3362d")
# The id of the running job.
CLICKS = "9a4e61c7d20b4f38b5e17c86f0a3d259"
