"""Find positions of one cluster in another, by the records around them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from migrate.model.cluster_snapshot import BrokerError
from migrate.model.log import log, timed
from migrate.model.positions import TopicPartition
from migrate.model.record import Record, Surroundings
from migrate.model.wording import counted
from migrate.planning.match_compacted import match_compacted
from migrate.planning.match_records import Match, MatchOutcome, match_records
from migrate.planning.translation import Translated

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig
    from migrate.kafka.records import RecordReader

# How many records are compared on each side of a position.
_COMPARED = 32
# How many are compared if the result is ambiguous, or if a log is compacted.
_COMPARED_AT_MOST = 1000
# How many records of the new log are searched. The search begins at the first record that is at
# least as new as the record next to the position.
_SEARCHED = 2000
# How many records are searched if the position is not found among the first ``_SEARCHED``. These
# long searches read one partition at a time.
_SEARCHED_AT_MOST = 100_000
# The maximum number of partitions with a long search; the others are not searched further.
_MOST_LONG_SEARCHES = 100
# The number of partitions whose records are in memory at once.
_PARTITIONS_AT_ONCE = 64
# Seconds between two looks at a mirror that lags.
_PAUSE = 2.0


def translate_positions(
    positions: Mapping[TopicPartition, int],
    old: KafkaConfig,
    new: KafkaConfig,
    names: Mapping[str, str],
    *,
    wait: float = 0,
    were_proved: bool = False,
) -> dict[TopicPartition, Translated]:
    """Find the offset in another cluster that corresponds to each position.

    Records of aborted and open transactions are compared, too: a mirror copies them unless it reads
    committed records only. A position that is not found is compared again without these records.

    Args:
        positions: the next offset of each partition in the old cluster.
        old: librdkafka's properties for the old cluster.
        new: librdkafka's properties for the new cluster.
        names: the topics' names in the new cluster, by their names in the old one.
        wait: seconds to wait for a mirror that lags.
        were_proved: whether an earlier run has already found these positions in the new cluster. If
            the mirror seems to lag at a position, the position is then compared again without
            aborted records, even if ``wait`` is 0.
    """
    from migrate.kafka.records import RecordReader

    deadline = time.monotonic() + wait
    with ExitStack() as stack:
        compared = counted(len(positions), "partition")
        stack.enter_context(timed(f"comparing the records of {compared}"))
        copies = stack.enter_context(RecordReader(new, is_committed=True))
        reader = stack.enter_context(RecordReader(old, is_committed=False))
        search = _CopySearch(reader, copies, names, positions)
        results = search.translate(positions)
        while lagging := _with_outcome(positions, results, MatchOutcome.LAGGING):
            if time.monotonic() > deadline:
                break
            log.info(f"waiting for the mirror: {counted(len(lagging), 'partition')} not complete")
            time.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))
            results |= search.translate(lagging)
        # A mirror that reads committed records only never copies an aborted record, which looks
        # like a record that is not copied yet. So positions at which the mirror still seems to lag
        # are compared again without aborted records, if the mirror had time to copy (``wait``) or
        # had copied the records before (``were_proved``).
        again = _with_outcome(positions, results, MatchOutcome.NOT_FOUND)
        again |= lagging if wait or were_proved else {}
        if again:
            committed = stack.enter_context(RecordReader(old, is_committed=True))
            # Beyond the last stable offset, records of an open transaction were consumed. If the
            # transaction is committed, the mirror still copies them.
            stable = committed.log_ends(again)
            again = {partition: at for partition, at in again.items() if at <= stable[partition]}
            search = _CopySearch(committed, copies, names, again)
            for partition, result in search.translate(again).items():
                if result.match.outcome.is_proof:
                    results[partition] = result
    return results


def _with_outcome(
    positions: Mapping[TopicPartition, int],
    results: Mapping[TopicPartition, Translated],
    outcome: MatchOutcome,
) -> dict[TopicPartition, int]:
    return {p: at for p, at in positions.items() if results[p].match.outcome is outcome}


class _CopySearch:
    """The search for positions of one cluster in another.

    Args:
        old: the reader of the job's cluster.
        new: the reader of the other cluster.
        names: the topics' names in the other cluster.
        positions: the positions to translate. Both clusters are asked whether the topics of these
            positions are compacted.
    """

    def __init__(
        self,
        old: RecordReader,
        new: RecordReader,
        names: Mapping[str, str],
        positions: Mapping[TopicPartition, int],
    ) -> None:
        self._old, self._new, self._names = old, new, names
        self._searches_left = _MOST_LONG_SEARCHES
        topics = {topic for topic, _ in positions}
        compacted_there = new.compacted_topics({names.get(topic, topic) for topic in topics})
        self._compacted = old.compacted_topics(topics) | {
            topic for topic in topics if names.get(topic, topic) in compacted_there
        }

    def translate(
        self, positions: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, Translated]:
        """Find the offset in the other cluster that corresponds to each position."""
        results: dict[TopicPartition, Translated] = {}
        remaining = iter(positions.items())
        while batch := dict(islice(remaining, _PARTITIONS_AT_ONCE)):
            compacted = {p: at for p, at in batch.items() if p[0] in self._compacted}
            others = {p: at for p, at in batch.items() if p not in compacted}
            results |= self._compare(others, _COMPARED, match_records)
            equal = _with_outcome(others, results, MatchOutcome.AMBIGUOUS)
            results |= self._compare(equal, _COMPARED_AT_MOST, match_records)
            results |= self._compare(compacted, _COMPARED_AT_MOST, match_compacted)
        return results

    def _compare(
        self,
        positions: Mapping[TopicPartition, int],
        most: int,
        find_position: Callable[[Surroundings, Surroundings], Match],
    ) -> dict[TopicPartition, Translated]:
        """Compare at most ``most`` records on each side of each position."""
        if not positions:
            return {}
        copy_of = {(topic, n): (self._names.get(topic, topic), n) for topic, n in positions}
        around = self._old.around(positions, most, most)
        times = {copy_of[partition]: _nearest_time(around[partition]) for partition in positions}
        firsts = self._new.offsets_at(times)
        runs = self._new.around(firsts, most, _SEARCHED)
        results = {}
        for partition, position in positions.items():
            copy, own = copy_of[partition], around[partition]
            copies = runs[copy]
            match = find_position(own, copies)
            if match.outcome is MatchOutcome.NOT_FOUND:
                for start in self._further_starts(partition, position, firsts[copy], copies):
                    copies = self._new.around({copy: start}, most, _SEARCHED_AT_MOST)[copy]
                    match = find_position(own, copies)
                    if match.outcome is not MatchOutcome.NOT_FOUND:
                        break
            if match.outcome is MatchOutcome.NOT_FOUND and own.records:
                match = self._match_at_log_ends(partition, position, own, copies) or match
            results[partition] = Translated(match, copies.is_to_end)
        return results

    def _further_starts(
        self, partition: TopicPartition, position: int, first: int, copies: Surroundings
    ) -> Iterator[int]:
        """Yield the offsets of the new log from which longer searches start.

        Yield none if the log was read to its end, or after ``_MOST_LONG_SEARCHES`` partitions.
        ``first`` is the offset of the first record that is at least as new as the record next to
        the position. If producers set the timestamps, the copy might lie far after ``first``. So
        the newest offset sync at or below the position, if any, is yielded before ``first``.
        """
        if copies.is_to_end or not self._searches_left:
            return
        self._searches_left -= 1
        hints = [copy for own, copy in self._offset_syncs.get(partition, ()) if own <= position]
        if hints:
            yield max(hints)
        yield first

    @cached_property
    def _offset_syncs(self) -> Mapping[TopicPartition, Sequence[tuple[int, int]]]:
        from migrate.kafka.offset_syncs import read_offset_syncs

        try:
            return read_offset_syncs(self._old) or read_offset_syncs(self._new)
        except BrokerError:  # not fatal: offset syncs only show where to look
            return {}

    def _match_at_log_ends(
        self, partition: TopicPartition, position: int, around: Surroundings, copies: Surroundings
    ) -> Match | None:
        """Compare the position with the ends of the new log.

        Return EXPIRED if the new log begins after the position, LAGGING if the new log ends before
        the position, or None.
        """
        if copies.is_from_start and copies.records:
            own = self._offset_of(copies.records[0], partition)
            if own is not None and own > position:
                missing = sum(record.offset < own for record in around.after)
                return Match(MatchOutcome.EXPIRED, records=max(1, missing))
        if copies.is_to_end and copies.records:
            own = self._offset_of(copies.records[-1], partition)
            if own is not None and own < position:
                missing = sum(record.offset > own for record in around.before)
                return Match(MatchOutcome.LAGGING, records=max(1, missing))
        return None

    def _offset_of(self, copy: Record, partition: TopicPartition) -> int | None:
        """Return the offset that a record of the new log has in the old log, or None."""
        first = self._old.offsets_at({partition: copy.timestamp})
        records = self._old.around(first, 0, _SEARCHED)[partition].records
        return next((record.offset for record in records if record.is_copied_as(copy)), None)


def _nearest_time(around: Surroundings) -> int:
    """Return the time of the first record after a position, or else of the last one before it.

    Return 0 if there is no record.
    """
    nearest = [*around.after[:1], *around.before[-1:]]
    return nearest[0].timestamp if nearest else 0
