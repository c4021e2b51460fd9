"""Kafka clients and their configuration; only this package imports confluent_kafka.

``snapshot`` takes a ClusterSnapshot. ``groups`` reads and changes consumer groups. ``groups`` sends
each change only once, and the caller decides whether to resend it.
"""
