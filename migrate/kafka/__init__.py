"""Kafka clients and their configuration; only this package imports confluent_kafka.

``snapshot`` takes a ClusterSnapshot. ``groups`` reads and changes consumer groups, and sends each
request once, over a connection of ``client``. The caller decides what to write, and whether to try
again.
"""
