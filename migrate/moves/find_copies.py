"""Find one cluster's positions in a different cluster by comparing the records of both."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from migrate.model.log import log, timed
from migrate.model.positions import TopicPartition
from migrate.model.progress import INTERVAL
from migrate.model.record import Read
from migrate.model.wording import counted
from migrate.planning.find_copy import Depth, Reading, find_copy
from migrate.planning.match_records import (
    EQUAL_RECORDS,
    NO_COPY,
    Bound,
    Match,
    not_found_match,
)
from migrate.planning.plan import MatchOutcome

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig
    from migrate.kafka.log_pairs import LogPairs

ABORTED_LEFT = (
    "the records without a copy may belong to aborted transactions, which may never be copied"
)
# The number of partitions whose records are in memory at the same time. The second number applies
# if all records are compared.
_PARTITIONS_AT_ONCE = 64
_WHOLE_PARTITIONS_AT_ONCE = 8
# A read of more than this number of records covers only one partition at a time.
_LONG_READ = 4000
# The number of records to compare in each cluster, in total for all partitions. It does not apply
# if all records are compared.
_MOST_RECORDS = 10_000_000
# The number of seconds between polls of a lagging mirror.
_PAUSE = 2.0


def translate_positions(
    positions: Mapping[TopicPartition, int],
    old: KafkaConfig,
    new: KafkaConfig,
    names: Mapping[str, str],
    *,
    wait: float = 0,
    is_whole: bool = False,
) -> dict[TopicPartition, Match]:
    """Find the offset in another cluster that corresponds to each position.

    Args:
        positions: the next offset of each partition in the old cluster.
        old: the librdkafka properties for the old cluster.
        new: the librdkafka properties for the new cluster.
        names: each topic's name in the new cluster, by its name in the old cluster.
        wait: the number of seconds to wait for a lagging mirror.
        is_whole: True to compare every record, starting at the log start offsets.
    """
    from migrate.kafka.log_pairs import LogPairs
    from migrate.kafka.records import RecordReader

    deadline = time.monotonic() + wait
    topics = {topic for topic, _ in positions}
    depth = Depth(is_whole=is_whole)
    if not is_whole:
        most = _MOST_RECORDS // max(1, len(positions))
        depth = replace(depth, counted=min(depth.counted, most))
    with ExitStack() as stack:
        compared = counted(len(positions), "partition")
        stack.enter_context(timed(f"comparing the records of {compared}"))
        copies = stack.enter_context(RecordReader(new, is_committed=True))
        all_copies = stack.enter_context(RecordReader(new, is_committed=False))
        all_records = stack.enter_context(RecordReader(old, is_committed=False))
        committed = stack.enter_context(RecordReader(old, is_committed=True))
        pairs = LogPairs(all_records, copies, names, topics, all_new=all_copies)
        committed_pairs = LogPairs(committed, copies, names, topics, all_records, all_copies)
        results: dict[TopicPartition, Match] = {}
        remaining = dict(positions)
        while True:
            results |= compare_logs(pairs, committed_pairs, remaining, depth)
            remaining = {p: at for p, at in positions.items() if _may_settle(results[p])}
            if not remaining or time.monotonic() > deadline:
                return results
            log.info(f"waiting for the mirror to complete {counted(len(remaining), 'partition')}")
            time.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))


def _may_settle(match: Match) -> bool:
    """Return whether a match may change after the mirror has copied more records."""
    is_open = match.outcome.is_lossless and match.bound is not Bound.EXACT
    return match.outcome is MatchOutcome.LAGGING or is_open


def compare_logs(
    pairs: LogPairs,
    committed_pairs: LogPairs,
    positions: Mapping[TopicPartition, int],
    depth: Depth,
) -> dict[TopicPartition, Match]:
    """Find the offset in the other cluster that corresponds to each position.

    A mirror copies the records of aborted and open transactions, unless it reads only committed
    records. If a position is not found, the comparison is therefore repeated without these records.

    Args:
        pairs: the logs, with all records of the old cluster.
        committed_pairs: the same logs, without records of aborted and open transactions.
        positions: the next offset of each partition in the old cluster.
        depth: how many records to read.
    """
    pairs.take_snapshot(list(positions))
    committed_pairs.take_snapshot(list(positions), is_new=False)
    results = _compare(pairs, positions, depth)
    again = {p: at for p, at in positions.items() if _may_lack_aborted(results[p])}
    if again:
        # Do not repeat the comparison for positions beyond the last stable offset. There, the job
        # has consumed records of an open transaction, and the mirror will copy them if the
        # transaction is committed.
        stable = committed_pairs.old_log_ends(list(again))
        again = {p: at for p, at in again.items() if at <= stable[p]}
        for p, match in _compare(committed_pairs, again, depth).items():
            results[p] = _choose(results[p], match)
    return results


def _may_lack_aborted(match: Match) -> bool:
    """Return whether the match may be different if the mirror copies no aborted transactions."""
    if match.is_doubtful:
        return True
    if match.outcome is MatchOutcome.NOT_FOUND:
        return match.reason == NO_COPY
    return match.outcome in (
        MatchOutcome.FILTERED,
        MatchOutcome.OTHER_PARTITIONING,
        MatchOutcome.LAGGING,
        MatchOutcome.EXPIRED,
    )


def _choose(match: Match, committed: Match) -> Match:
    """Return the match to use, from the matches with and without aborted records.

    If only records of aborted transactions have no copies, the mirror may lag, or it may never copy
    such records. The logs might not show which is true. In that case, if the target starts at the
    log end offset and the mirror then copies these records, they are duplicated.
    """
    if match.next_offset is not None:
        if committed.next_offset is None:
            is_open = match.is_doubtful and committed.outcome is MatchOutcome.NOT_FOUND
            return not_found_match(EQUAL_RECORDS) if is_open else match
        if committed.next_offset != match.next_offset:
            return not_found_match(EQUAL_RECORDS)
        return _combine(match, committed)
    if match.outcome is MatchOutcome.LAGGING:
        return _choose_lag(match, committed)
    is_place = committed.outcome.is_match or committed.outcome.is_lossless
    if match.outcome is MatchOutcome.EXPIRED:
        if committed.outcome is MatchOutcome.EXPIRED:
            is_same = match.records == committed.records and match.bound is committed.bound
            return match if is_same else replace(committed, bound=Bound.AT_LEAST)
        is_open = is_place or committed.outcome in (MatchOutcome.LAGGING, MatchOutcome.NOT_FOUND)
        return not_found_match(EQUAL_RECORDS) if is_open else match
    if committed.outcome is MatchOutcome.LAGGING:
        is_least = committed.bound is not Bound.AT_MOST
        return replace(committed, bound=Bound.AT_LEAST) if is_least else match
    if not is_place:
        return _choose_violation(match, committed)
    if match.is_doubtful or (committed.is_doubtful and committed.outcome.is_lossless):
        return not_found_match(EQUAL_RECORDS)
    return committed


def _choose_violation(match: Match, committed: Match) -> Match:
    """Return the match to use if neither match has an offset, and the mirror does not lag.

    A record without a copy usually shows that the new log is not a complete copy. The exception is
    a record of an aborted transaction, if the mirror does not copy such records.
    """
    if match.outcome is not MatchOutcome.FILTERED:
        return match
    if committed.outcome is MatchOutcome.FILTERED:
        return min(match, committed, key=lambda one: one.records)
    is_open = committed.outcome is MatchOutcome.NOT_FOUND and committed.reason != NO_COPY
    return committed if is_open else match


def _choose_lag(match: Match, committed: Match) -> Match:
    """Return the match to use if a comparison of all records suggests that the mirror lags.

    The mirror may lag, or it may copy no records of aborted transactions.
    """
    if committed.outcome is MatchOutcome.LAGGING:
        return _combine_lags(match, committed)
    if committed.outcome is MatchOutcome.FILTERED:
        return not_found_match(EQUAL_RECORDS)
    if match.bound is Bound.AT_LEAST:
        return not_found_match(ABORTED_LEFT)
    if committed.outcome is MatchOutcome.AT_END:
        return replace(
            committed,
            outcome=MatchOutcome.AMBIGUOUS,
            records=match.records,
            bound=Bound.AT_MOST,
        )
    return replace(match, bound=Bound.AT_MOST)


def _combine_lags(match: Match, committed: Match) -> Match:
    """Return a lag that is correct whether or not the mirror copies aborted transactions."""
    bounds = {match.bound, committed.bound}
    if match.records == committed.records and len(bounds) == 1:
        return match
    if match.bound is not Bound.AT_LEAST:
        return replace(match, bound=Bound.AT_MOST)
    if committed.bound is not Bound.AT_MOST:
        return replace(committed, bound=Bound.AT_LEAST)
    return not_found_match(EQUAL_RECORDS)


def _combine(match: Match, committed: Match) -> Match:
    """Combine two matches with the same offset into one match.

    Some records of aborted transactions equal other records, so the logs do not show whether the
    mirror copies aborted transactions. Therefore, either match may be the correct one.
    """
    both = (match, committed)
    if match.outcome.is_match and committed.outcome.is_match:
        return match
    if any(one.outcome.is_lossless and one.bound is Bound.AT_LEAST for one in both):
        return not_found_match(EQUAL_RECORDS)
    records = max(one.records for one in both)
    return replace(match, outcome=MatchOutcome.AMBIGUOUS, records=records, bound=Bound.AT_MOST)


def _compare(
    pairs: LogPairs, positions: Mapping[TopicPartition, int], depth: Depth
) -> dict[TopicPartition, Match]:
    results: dict[TopicPartition, Match] = {}
    progress = _Progress()
    at_once = _WHOLE_PARTITIONS_AT_ONCE if depth.is_whole else _PARTITIONS_AT_ONCE
    remaining = iter(positions.items())
    while batch := dict(islice(remaining, at_once)):
        readings = {
            partition: find_copy(
                at,
                depth,
                is_compacted=partition[0] in pairs.compacted,
                others=[n for n in pairs.partitions(partition[0]) if n != partition[1]],
                syncs=partial(pairs.syncs, partition),
                may_search_long=pairs.may_search_long,
            )
            for partition, at in batch.items()
        }
        results |= _run(pairs, readings, progress)
    return results


def _run(
    pairs: LogPairs, readings: Mapping[TopicPartition, Reading], progress: _Progress
) -> dict[TopicPartition, Match]:
    """Run the searches; long reads are performed for one partition at a time."""
    results: dict[TopicPartition, Match] = {}
    reads = {partition: next(reading) for partition, reading in readings.items()}
    while reads:
        short = {p: read for p, read in reads.items() if read.before + read.after <= _LONG_READ}
        # The records of a partition stay in memory until its search ends. Therefore, finish this
        # search before the next long read.
        now = short or dict(islice(reads.items(), 1))
        if not short:
            (only,) = now
            results[only] = _finish(pairs, only, readings[only], reads.pop(only), progress)
            continue
        for partition, records in pairs.read(now).items():
            progress.add(len(records.records))
            try:
                reads[partition] = readings[partition].send(records)
            except StopIteration as end:
                del reads[partition]
                results[partition] = end.value
    return results


def _finish(
    pairs: LogPairs,
    partition: TopicPartition,
    reading: Reading,
    read: Read,
    progress: _Progress,
) -> Match:
    while True:
        records = pairs.read({partition: read})[partition]
        progress.add(len(records.records))
        try:
            read = reading.send(records)
        except StopIteration as end:
            match: Match = end.value
            return match


class _Progress:
    """Periodically logs the number of compared records."""

    def __init__(self) -> None:
        self._records, self._logged_at = 0, time.monotonic()

    def add(self, records: int) -> None:
        self._records += records
        if time.monotonic() - self._logged_at > INTERVAL:
            self._logged_at = time.monotonic()
            log.info(f"comparing: {self._records:,} records read from both clusters so far")
