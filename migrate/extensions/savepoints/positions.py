"""The positions in a source's state, by cluster and partition."""

from __future__ import annotations

from collections.abc import Mapping

from decoder.kafka.enumerator import AssignmentStatus, EnumeratorState
from decoder.kafka.legacy import LegacyConsumer
from decoder.kafka.operator import Source
from decoder.kafka.source import split_fields
from decoder.kafka.split import Split
from migrate.inputs.flink.source import kafka_clusters
from migrate.model.positions import ClusterPartition

# In enumerator state of this version, each new entry needs a split. Entries of version 0 also have
# splits, but state of version 0 cannot be changed (see ``changed_coordinator``).
_VERSION_3 = 3


# The new next offset of each changed partition; None for a removed partition.
OffsetChanges = Mapping[ClusterPartition, int | None]

Entries = Mapping[ClusterPartition, tuple[AssignmentStatus, Split | None]]


def next_offsets(source: Source) -> dict[ClusterPartition, int]:
    """Return the starting offset of each partition in the readers' state.

    A negative number is a marker, such as "earliest". A FlinkKafkaConsumer stores the offset of the
    last record that it read, so this function adds 1 to each of its numbers. As a result, a marker
    of a FlinkKafkaConsumer is one higher than Flink's constant, but is still negative.
    """
    if isinstance(source, LegacyConsumer):
        return {
            ClusterPartition(None, offset.topic, offset.partition): offset.stored_offset + 1
            for offset in source.offsets
        }
    return {
        ClusterPartition(cluster, topic, partition): start
        for cluster, state in kafka_clusters(source).items()
        for _, topic, partition, start, _ in split_fields(state.reader_splits)
    }


def entries(source: Source) -> Entries:
    """Return the enumerator's entries; empty for a FlinkKafkaConsumer."""
    return {
        ClusterPartition(cluster, entry.topic, entry.partition): (entry.status, entry.split)
        for cluster, enumerator in _enumerators(source).items()
        for entry in enumerator.entries
    }


def entries_after(source: Source, changes: OffsetChanges) -> Entries:
    """Return the enumerator's entries after these changes.

    A removed partition loses its entry. A partition that the readers did not have yet gets an entry
    with the ASSIGNED status, if its cluster has an enumerator. If the partition already had an
    entry, the entry keeps its split.
    """
    known, enumerators = entries(source), _enumerators(source)
    read_already = next_offsets(source)
    after = {key: entry for key, entry in known.items() if changes.get(key, 0) is not None}
    for key, next_offset in changes.items():
        if next_offset is None or key in read_already or key.cluster not in enumerators:
            continue
        has_splits = enumerators[key.cluster].version == _VERSION_3
        split = Split(key.topic, key.partition, next_offset, None) if has_splits else None
        after[key] = AssignmentStatus.ASSIGNED, known[key][1] if key in known else split
    return after


def _enumerators(source: Source) -> dict[str | None, EnumeratorState]:
    """Return the enumerators by cluster."""
    return {
        cluster: state.enumerator
        for cluster, state in kafka_clusters(source).items()
        if state.enumerator is not None
    }
