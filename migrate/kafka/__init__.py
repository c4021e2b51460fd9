"""Kafka clients and their configuration: the only import of confluent_kafka.

``snapshot`` takes a ClusterSnapshot; ``groups`` reads and writes consumer groups, one request at a
time over a ``client``. What is written, and when again, is the caller's decision.
"""
