"""The real systems that the tests run against: Kafka brokers, Flink jobs and Spark sessions.

The modules here start the real software from its published jars, on 127.0.0.1 and free ports. They
stop each process by its own process id.
"""
