"""Kafka clients and their configuration; only this package imports confluent_kafka.

``snapshot`` takes a ClusterSnapshot. ``groups`` reads and changes consumer groups. It sends each
change once; the caller decides whether to resend it.
"""
