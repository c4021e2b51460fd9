"""Logs in one cluster, read together with their copies in another cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from migrate.kafka.offset_syncs import OffsetSync, read_offset_syncs
from migrate.kafka.records import Partition, RecordReader
from migrate.model.cluster_snapshot import BrokerError
from migrate.model.record import Read, Side, Surroundings

# The maximum number of partitions from which a long run of records may be read.
_MOST_LONG_SEARCHES = 100


class LogPairs:
    """The logs in the job's cluster (old), each with its copy in a different cluster (new).

    Args:
        names: each topic's name in the new cluster, by its name in the old cluster.
        topics: the topics in the old cluster to compare.
        all_old, all_new: readers of all records, for use if ``old`` or ``new`` reads only committed
            records.

    Attributes:
        compacted: the topics among ``topics`` that are compacted in at least one of the clusters.

    Raises:
        BrokerError: a cluster does not answer, or it denies access. The methods also raise this
            error.
    """

    def __init__(
        self,
        old: RecordReader,
        new: RecordReader,
        names: Mapping[str, str],
        topics: set[str],
        all_old: RecordReader | None = None,
        all_new: RecordReader | None = None,
    ) -> None:
        self._old, self._new, self._names = old, new, names
        self._readers = {
            Side.OLD: old,
            Side.ALL_OLD: all_old or old,
            Side.NEW: new,
            Side.ALL_NEW: all_new or new,
        }
        self._partitions: dict[str, Sequence[int]] = {}
        self._searches_left = _MOST_LONG_SEARCHES
        copies = {topic: names.get(topic, topic) for topic in topics}
        compacted_there = new.compacted_topics(set(copies.values()))
        self.compacted = old.compacted_topics(topics) | {
            topic for topic, copy in copies.items() if copy in compacted_there
        }

    def copy_of(self, partition: Partition) -> Partition:
        """Return the partition in the new cluster that contains the copies."""
        topic, number = partition
        return self._names.get(topic, topic), number

    def read(self, reads: Mapping[Partition, Read]) -> dict[Partition, Surroundings]:
        """Read from each pair of logs; the keys are the partitions in the old cluster.

        Reads with the same parameters share one request.
        """
        # A read may specify a different partition from which to read. Such reads are sent one by
        # one, because several of them may read from the same partition.
        alike: dict[tuple[object, ...], dict[Partition, Read]] = defaultdict(dict)
        for partition, read in reads.items():
            kind = (read.side, read.is_time, read.before, read.after)
            other = None if read.partition is None else partition
            alike[kind, other][partition] = read
        results: dict[Partition, Surroundings] = {}
        for group in alike.values():
            read = next(iter(group.values()))
            reader = self._readers[read.side]
            around = reader.around_times if read.is_time else reader.around
            names = {p: self._read_partition(p, asked) for p, asked in group.items()}
            places = {names[p]: asked.at for p, asked in group.items()}
            found = around(places, read.before, read.after)
            results |= {p: found[name] for p, name in names.items()}
        return results

    def _read_partition(self, partition: Partition, read: Read) -> Partition:
        if read.partition is not None:
            partition = partition[0], read.partition
        return self.copy_of(partition) if read.side in (Side.NEW, Side.ALL_NEW) else partition

    def partitions(self, topic: str) -> Sequence[int]:
        """Return a topic's partition numbers in the old cluster."""
        if topic not in self._partitions:
            self._partitions[topic] = self._old.partitions(topic)
        return self._partitions[topic]

    def take_snapshot(self, partitions: Collection[Partition], *, is_new: bool = True) -> None:
        """Take a snapshot of the log ranges in the new cluster, and then in the old cluster.

        Because of this order, the old log ranges contain every record that was already copied to
        the new logs. If ``is_new`` is false, only the snapshot in the old cluster is taken.
        """
        if is_new:
            self._new.take_snapshot([self.copy_of(partition) for partition in partitions])
        self._old.take_snapshot(partitions)

    def old_log_ends(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Return the log end offsets in the old cluster; see ``RecordReader.log_ends``."""
        return self._old.log_ends(partitions)

    def may_search_long(self) -> bool:
        """Count one more partition, and return whether a long run of its records may be read."""
        self._searches_left -= 1
        return self._searches_left >= 0

    def syncs(self, partition: Partition) -> Sequence[Sequence[OffsetSync]]:
        """Return each mirror's offset syncs for a partition; the first call reads all syncs."""
        return self._offset_syncs.get(partition, ())

    @cached_property
    def _offset_syncs(self) -> Mapping[Partition, Sequence[Sequence[OffsetSync]]]:
        try:
            return read_offset_syncs(self._old) or read_offset_syncs(self._new)
        except BrokerError:  # not fatal, but more positions are refused without offset syncs
            return {}
