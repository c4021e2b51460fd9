"""Conversion of librdkafka's answers. No broker is needed."""

from __future__ import annotations

import pytest
from confluent_kafka import Uuid

from migrate.kafka.snapshot import _topic_id


@pytest.mark.parametrize(
    ("most", "least", "topic_id"),
    [
        (0, 0, None),  # a broker before Kafka 2.8
        (1, 2, "AAAAAAAAAAEAAAAAAAAAAg"),
        (-1, -5, "____________________-w"),  # the alphabet of org.apache.kafka.common.Uuid
    ],
)
def test_topic_id_matches_format_of_kafka_tools(
    most: int, least: int, topic_id: str | None
) -> None:
    assert _topic_id(Uuid(most, least)) == topic_id
