"""Classify metadata of committed offsets. Strings of Kafka Streams are from real applications."""

from __future__ import annotations

import pytest

from migrate.model.cluster_snapshot import Committed
from migrate.model.offset_metadata import is_of_kafka_streams, with_client_metadata


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("AQAAAZ9tMvkA", True),  # kafka-streams 2.8.2
        ("AgAAAZ9tMvkAAAAAAA==", True),  # kafka-streams 4.1.1
        ("", False),
        ("a trace", False),
        ("AQAAAZ9tMv", False),  # truncated
        ("AQAAAZ9tMvkAAAAA", False),  # with magic byte 1, the time is the last field
        ("AwAAAZ9tMvkA", False),  # an unknown magic byte
        ("größe", False),
    ],
)
def test_metadata_of_kafka_streams_is_recognized(metadata: str, expected: bool) -> None:
    assert is_of_kafka_streams(metadata) is expected


def test_partitions_with_metadata_of_unknown_clients_are_listed_in_order() -> None:
    committed = {
        ("t", 2): Committed(5, "bmV4dA=="),
        ("t", 0): Committed(5),
        ("t", 1): Committed(5, "trace"),
        ("a", 0): Committed(5, "AQAAAZ9tMvkA"),
    }
    assert with_client_metadata(committed) == [("t", 1), ("t", 2)]
