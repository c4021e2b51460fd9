"""The ``startingOffsets`` option of Spark's Kafka source.

``{"topic":{"partition":nextOffset}}``; every partition of the subscription must be listed.
Spark uses it only where the checkpoint location is new.

Source: org.apache.spark.sql.kafka010.JsonUtils @ Spark 4.0.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping


def starting_offsets(next_offsets: Mapping[tuple[str, int], int]) -> str:
    """The option's JSON: compact, topics sorted by name and partitions by number."""
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), next_offset in sorted(next_offsets.items()):
        topics.setdefault(topic, {})[str(partition)] = next_offset
    return json.dumps(topics, separators=(",", ":"))
