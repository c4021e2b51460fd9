"""The formats that a release of Flink and its connector can read."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.encoder import METADATA_VERSIONS


@dataclass(frozen=True, slots=True)
class Dialect:
    """The formats that a version of Flink can read.

    Attributes:
        newest_handle: the highest type code of a state handle.
        proxy_versions: the versions of the header of operator state.
        migrated_splits: True to allow a split without its starting offset
            (`KafkaPartitionSplit.MIGRATED`).
        other_sources: True to include Kafka sources of other classes than KafkaSource.
    """

    metadata_versions: tuple[int, ...] = METADATA_VERSIONS
    newest_handle: int = 17
    proxy_versions: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    enumerator_versions: tuple[int, ...] = (0, 1, 2, 3)
    migrated_splits: bool = True
    other_sources: bool = False


EVERYTHING = Dialect(other_sources=True)
FLINK_1_15 = Dialect((2, 3), 12, (1, 2, 3, 4, 5), (0, 1), migrated_splits=False)
FLINK_1_20 = Dialect((2, 3, 4), 17, (5, 6), (0, 1, 2), migrated_splits=False)
FLINK_2_2 = Dialect((2, 3, 4, 5, 6), 17, (5, 6), (0, 1, 2, 3))
