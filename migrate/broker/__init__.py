"""The only room that talks to Kafka, and the only confluent_kafka import.

Takes a ClusterSnapshot (``reading``), and reads and writes consumer groups (``consumer_groups``,
``changing``), one request at a time over a ``connection``: what may be written, and when again, is
decided by those who ask.
"""

from migrate.broker.consumer_groups import CommitFailure, ConsumerGroups
from migrate.broker.reading import take_snapshot

__all__ = ["CommitFailure", "ConsumerGroups", "take_snapshot"]
