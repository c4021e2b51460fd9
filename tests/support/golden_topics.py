"""Create the topics of the golden jobs, under new names on a different broker."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from tests.support.kafka import Broker

GOLDEN = Path(__file__).parents[1] / "golden"
# Topic -> partition -> (log start offset, log end offset) at the end of the golden jobs.
WATERMARKS: dict[str, dict[str, list[int]]] = json.loads((GOLDEN / "manifest.json").read_text())[
    "watermarks"
]


def create_golden_topics(broker: Broker, *topics: str) -> dict[str, str]:
    """Create topics with the log bounds of the golden topics; return the new names by old name."""
    names = {topic: f"{topic}-{uuid.uuid4().hex[:8]}" for topic in topics}
    for topic, name in names.items():
        partitions = {int(n): bounds for n, bounds in WATERMARKS[topic].items()}
        broker.create_topic(name, len(partitions))
        for partition, (log_start, log_end) in partitions.items():
            broker.produce(name, partition, map(str, range(log_end)))
            if log_start:
                broker.delete_records(name, partition, log_start)
    return names


def topic_map(names: dict[str, str]) -> list[str]:
    """Return the ``--topic-map`` options for the new names."""
    return [word for old, new in names.items() for word in ("--topic-map", f"{old}={new}")]
