"""Logs of one cluster, read beside their copies in another cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from migrate.kafka.offset_syncs import OffsetSync, read_offset_syncs
from migrate.kafka.records import Partition, RecordReader
from migrate.model.cluster_snapshot import BrokerError
from migrate.model.record import Record, Surroundings

# How many records of the new log are read. The reading begins at the first record that is at least
# as new as the record next to the position.
_SEARCHED = 2000
# How many records a longer search reads. Longer searches read one partition at a time.
_SEARCHED_AT_MOST = 100_000
# The maximum number of partitions with a longer search.
_MOST_LONG_SEARCHES = 100


class LogPairs:
    """The logs of the job's cluster (old), each with its copy in another cluster (new).

    Args:
        names: the topics' names in the new cluster, by their names in the old one.
        topics: the topics of the old cluster that are compared.

    Attributes:
        compacted: those of ``topics`` that either cluster compacts.

    Raises:
        BrokerError: a cluster does not answer, or denies access. The methods raise it, too.
    """

    def __init__(
        self, old: RecordReader, new: RecordReader, names: Mapping[str, str], topics: set[str]
    ) -> None:
        self._old, self._new, self._names = old, new, names
        self._searches_left = _MOST_LONG_SEARCHES
        copies = {topic: names.get(topic, topic) for topic in topics}
        compacted_there = new.compacted_topics(set(copies.values()))
        self.compacted = old.compacted_topics(topics) | {
            topic for topic, copy in copies.items() if copy in compacted_there
        }

    def _copy_of(self, partition: Partition) -> Partition:
        topic, number = partition
        return self._names.get(topic, topic), number

    def around(
        self, positions: Mapping[Partition, int], most: int
    ) -> dict[Partition, tuple[Surroundings, Surroundings]]:
        """Return at most ``most`` records on each side of each position, and those of its copy.

        The records of the copy are those before and after the first one that is at least as new as
        the record next to the position.
        """
        around = self._old.around(positions, most, most)
        times = {self._copy_of(partition): _nearest_time(own) for partition, own in around.items()}
        runs = self._new.around_times(times, most, _SEARCHED)
        return {
            partition: (own, runs[self._copy_of(partition)]) for partition, own in around.items()
        }

    def longer_runs(
        self, partition: Partition, own: Surroundings, copies: Surroundings, most_before: int
    ) -> Iterator[Surroundings]:
        """Yield longer runs of the new log than ``copies``.

        Yield none if ``copies`` reach the log end, or after ``_MOST_LONG_SEARCHES`` partitions. If
        producers set the timestamps, the copy of the position might lie far after the start of
        ``copies``. So the first run is from the newest offset sync at or below the position, if
        there is one.
        """
        if copies.is_to_end or not self._searches_left:
            return
        self._searches_left -= 1
        syncs = self._offset_syncs.get(partition, ())
        hints = [copy for offset, copy in syncs if offset <= own.position]
        name = self._copy_of(partition)
        for start in (*([max(hints)] if hints else ()), copies.position):
            yield self._new.around({name: start}, most_before, _SEARCHED_AT_MOST)[name]

    @cached_property
    def _offset_syncs(self) -> Mapping[Partition, Sequence[OffsetSync]]:
        try:
            return read_offset_syncs(self._old) or read_offset_syncs(self._new)
        except BrokerError:  # not fatal: offset syncs only show where to look
            return {}

    def old_offset(self, partition: Partition, copy: Record) -> int | None:
        """Return the offset that a record of the new log has in the old log, or None."""
        run = self._old.around_times({partition: copy.timestamp}, 0, _SEARCHED)[partition]
        return next((record.offset for record in run.records if record.is_copied_as(copy)), None)


def _nearest_time(around: Surroundings) -> int:
    """Return the time of the first record after a position, or else of the last one before it.

    Return 0 if there is no record.
    """
    nearest = [*around.after[:1], *around.before[-1:]]
    return nearest[0].timestamp if nearest else 0
