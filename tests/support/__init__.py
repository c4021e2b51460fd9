"""The real parts the tests run against: Kafka brokers, Flink jobs and Spark sessions.

Everything here starts the genuine software from its published jars, on 127.0.0.1 and free ports,
and stops it again by its own process id.
"""
