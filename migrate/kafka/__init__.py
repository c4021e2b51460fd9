"""Kafka clients and their configuration; only this package imports confluent_kafka.

``snapshot`` reads a cluster and returns a ClusterSnapshot. ``groups`` reads and changes consumer
groups. It sends each change only once, and the caller decides whether to resend the change.
"""
