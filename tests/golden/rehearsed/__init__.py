"""Two savepoints of one job that kept running, and the records of its topic.

The job is tests/support/java/stateful/RehearsedJob.java, run by Flink 2.2. Its expected counts
follow from the records, without Flink and the decoder.
"""
