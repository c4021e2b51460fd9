"""Find positions of one cluster in another, by the records around them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from migrate.model.log import log, timed
from migrate.model.positions import TopicPartition
from migrate.model.record import Surroundings
from migrate.model.wording import counted
from migrate.planning.match_compacted import match_compacted
from migrate.planning.match_records import Match, MatchOutcome, match_records

if TYPE_CHECKING:
    from migrate.kafka.config import KafkaConfig
    from migrate.kafka.log_pairs import LogPairs

# How many records are compared on each side of a position.
_COMPARED = 32
# How many are compared if the result is ambiguous, or if a log is compacted.
_COMPARED_AT_MOST = 1000
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
) -> dict[TopicPartition, Match]:
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
    from migrate.kafka.log_pairs import LogPairs
    from migrate.kafka.records import RecordReader

    deadline = time.monotonic() + wait
    with ExitStack() as stack:
        compared = counted(len(positions), "partition")
        stack.enter_context(timed(f"comparing the records of {compared}"))
        copies = stack.enter_context(RecordReader(new, is_committed=True))
        reader = stack.enter_context(RecordReader(old, is_committed=False))
        pairs = LogPairs(reader, copies, names, {topic for topic, _ in positions})
        results = _compare_all(pairs, positions)
        while lagging := _with_outcome(positions, results, MatchOutcome.LAGGING):
            if time.monotonic() > deadline:
                break
            log.info(f"waiting for the mirror: {counted(len(lagging), 'partition')} not complete")
            time.sleep(min(_PAUSE, max(0.0, deadline - time.monotonic())))
            results |= _compare_all(pairs, lagging)
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
            pairs = LogPairs(committed, copies, names, {topic for topic, _ in again})
            for partition, match in _compare_all(pairs, again).items():
                if match.outcome.is_proof:
                    results[partition] = match
    return results


def _with_outcome(
    positions: Mapping[TopicPartition, int],
    results: Mapping[TopicPartition, Match],
    outcome: MatchOutcome,
) -> dict[TopicPartition, int]:
    return {p: at for p, at in positions.items() if results[p].outcome is outcome}


def _compare_all(
    pairs: LogPairs, positions: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Match]:
    """Find the offset in the other cluster that corresponds to each position."""
    results: dict[TopicPartition, Match] = {}
    remaining = iter(positions.items())
    while batch := dict(islice(remaining, _PARTITIONS_AT_ONCE)):
        few = {p: at for p, at in batch.items() if p[0] not in pairs.compacted}
        results |= _compare(pairs, few, _COMPARED)
        many = _with_outcome(few, results, MatchOutcome.AMBIGUOUS)
        many |= {p: at for p, at in batch.items() if p[0] in pairs.compacted}
        results |= _compare(pairs, many, _COMPARED_AT_MOST)
    return results


def _compare(
    pairs: LogPairs, positions: Mapping[TopicPartition, int], most: int
) -> dict[TopicPartition, Match]:
    """Compare at most ``most`` records on each side of each position."""
    results: dict[TopicPartition, Match] = {}
    if not positions:
        return results
    for partition, (own, copies) in pairs.around(positions, most).items():
        find_position = match_compacted if partition[0] in pairs.compacted else match_records
        match = find_position(own, copies)
        if match.outcome is MatchOutcome.NOT_FOUND:
            for longer in pairs.longer_runs(partition, own, copies, most):
                copies, match = longer, find_position(own, longer)
                if match.outcome is not MatchOutcome.NOT_FOUND:
                    break
        if match.outcome is MatchOutcome.NOT_FOUND and own.records:
            match = _match_at_log_ends(pairs, partition, own, copies) or match
        results[partition] = replace(match, is_searched_to_end=copies.is_to_end)
    return results


def _match_at_log_ends(
    pairs: LogPairs, partition: TopicPartition, own: Surroundings, copies: Surroundings
) -> Match | None:
    """Compare the position with the ends of the new log.

    Return EXPIRED if the new log begins after the position, LAGGING if the new log ends before the
    position, or None.
    """
    if copies.is_from_start and copies.records:
        first = pairs.old_offset(partition, copies.records[0])
        if first is not None and first > own.position:
            missing = sum(record.offset < first for record in own.after)
            return Match(MatchOutcome.EXPIRED, records=max(1, missing))
    if copies.is_to_end and copies.records:
        last = pairs.old_offset(partition, copies.records[-1])
        if last is not None and last < own.position:
            missing = sum(record.offset > last for record in own.before)
            return Match(MatchOutcome.LAGGING, records=max(1, missing))
    return None
