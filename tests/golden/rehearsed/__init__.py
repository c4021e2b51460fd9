"""Two savepoints of one job that ran on, and the records of its topic.

The job is tests/support/java/stateful/RehearsedJob.java, run by Flink 2.2. What it should have
counted follows from the records, without Flink and the decoder.
"""
