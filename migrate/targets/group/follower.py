"""A consumer group that follows the commits of a Spark query, so that tools can show its lag.

Spark itself does not commit to a consumer group. The follower commits the positions of the newest
batch in the commit log (``commits/N``), in one request. It does not commit the positions of a batch
that is only planned (``offsets/N``). If the follower is killed, the group is left at a committed
batch, possibly an older one. Deleted topics and partitions are omitted, with a warning.

Each round first reads the group, then the query's commit log, and then the end offsets of the Kafka
partitions. With this order, neither a new batch nor another follower can make the group seem to be
beyond the query. Just before a commit, the follower rereads the group. If the group has changed,
the follower commits nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrate.inputs.spark_log import newest_committed_batch, positions_after, query_id
from migrate.kafka.config import KafkaConfig
from migrate.kafka.groups import ConsumerGroups
from migrate.model.catalog import (
    GROUP_AHEAD_OF_QUERY,
    GROUP_BECAME_ACTIVE,
    GROUP_OVERWRITTEN,
    OFFSETS_NOT_COMMITTED,
    QUERY_BEYOND_END,
    QUERY_METADATA_MISSING,
    QUERY_PARTITIONS_MISSING,
)
from migrate.model.cluster_snapshot import BrokerError, Committed, GroupView
from migrate.model.errors import InputError, Refused
from migrate.model.message import Message
from migrate.model.positions import Logs, TopicPartition, log_of
from migrate.model.warning import warn
from migrate.model.warning_catalog import MISSING_PARTITIONS
from migrate.storage.files import Files
from migrate.storage.uris import path_of
from migrate.targets.group.commit import (
    Result,
    change_refusals,
    commit_refusals,
    partition_outcome,
    write,
)
from migrate.targets.group.discarded_metadata import warn_of_discarded_metadata

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class Followed:
    """The result of one round.

    Attributes:
        batch: the newest batch that the query has committed; None before the first batch.
        next_offsets: the offsets at which that batch ended, which are now the group's offsets;
            deleted partitions are omitted.
        written: the number of offsets that were committed in this round.
        lag: for each partition, the number of offsets from its next offset to the log end offset.
    """

    batch: int | None
    next_offsets: Mapping[TopicPartition, int]
    written: int
    lag: Mapping[TopicPartition, int]


class GroupFollower:
    """A follower, which commits the positions of one query for one group.

    Args:
        config: the librdkafka properties.
        group: the consumer group; it must be empty.
        directory: the query's checkpoint location, as a local path or a URL.
    """

    def __init__(self, config: KafkaConfig, group: str, directory: str) -> None:
        self.group = group
        self._files = Files()
        self.directory = self._files.absolute(path_of(directory, self._files))
        self._groups = ConsumerGroups(config)
        self._missing: frozenset[TopicPartition] = frozenset()

    @property
    def query(self) -> str | None:
        """The query's ID; None if it does not have an ID yet. For the errors, see ``query_id``."""
        return query_id(self.directory, self._files)

    def commit_progress(self, *, allow_moved_on: bool = False) -> Followed:
        """Commit the positions of the query's newest committed batch.

        Args:
            allow_moved_on: True to commit even if this rewinds the group's offsets.

        Raises:
            Refused: the group is active or is ahead of the query, the query is beyond the log end
                offsets, or none of the query's partitions exist on the brokers. Nothing was
                committed.
            InputError, Refused: as in ``newest_committed_batch`` and ``positions_after``; or the
                query's ``metadata`` file is missing.
            BrokerError: the broker did not answer, the group changed during this round, or the
                group does not have all offsets after the commit.
        """
        group = self._groups.view(self.group)
        query = self.query
        batch = newest_committed_batch(self.directory, self._files)
        if batch is None:
            return Followed(None, {}, 0, {})
        if query is None:
            raise InputError(QUERY_METADATA_MISSING(directory=self.directory))
        next_offsets = positions_after(
            self.directory, self.directory, batch, self._files
        ).next_offsets
        logs = self._groups.snapshot({topic for topic, _ in next_offsets}).topics
        lag = _lag(next_offsets, logs)
        self._warn_missing(frozenset(next_offsets.keys() - lag.keys()))
        next_offsets = {partition: next_offsets[partition] for partition in lag}
        pending = {
            partition: Committed(next_offset)
            for partition, next_offset in next_offsets.items()
            if group.next_offset(*partition) != next_offset
        }
        if pending:
            refusals = commit_refusals(group)
            if not allow_moved_on:
                refusals += _backward_refusals(group, next_offsets)
            if refusals:
                raise Refused(refusals)
            self._commit(pending, group)
        return Followed(batch, next_offsets, len(pending), lag)

    def _warn_missing(self, missing: frozenset[TopicPartition]) -> None:
        """Warn about missing partitions that were not already missing in the previous round."""
        if new := sorted(missing - self._missing):
            names = [f"{topic}-{partition}" for topic, partition in new]
            warn(MISSING_PARTITIONS(partitions=names), repeated=True)
        self._missing = missing

    def _commit(self, target: Mapping[TopicPartition, Committed], before: GroupView) -> None:
        # Another client may commit while the log and the end offsets are being read.
        if changes := change_refusals(before, self._groups.view(self.group)):
            raise BrokerError(changes[0])
        warn_of_discarded_metadata(before, target)
        attempt = write(self._groups, self.group, target, before.committed)
        outcomes = [
            partition_outcome(partition, offset, before.committed.get(partition), attempt)
            for partition, offset in target.items()
        ]
        bad = [outcome for outcome in outcomes if outcome.result is not Result.COMMITTED]
        if not bad:
            return
        failure = next((outcome.failure for outcome in bad if outcome.failure is not None), None)
        if failure is not None and failure.code == "UNKNOWN_MEMBER_ID":
            raise Refused(GROUP_BECAME_ACTIVE(group=self.group, reason=failure.reason))
        facts = {
            "group": self.group,
            "failed": len(bad),
            "count": len(outcomes),
            "partition": bad[0].name,
        }
        if failure is None:
            raise BrokerError(GROUP_OVERWRITTEN(**facts))
        raise BrokerError(OFFSETS_NOT_COMMITTED(**facts, reason=failure.reason))


def _lag(next_offsets: Mapping[TopicPartition, int], logs: Logs) -> dict[TopicPartition, int]:
    """Return each partition's lag, from its next offset to its log end offset.

    Partitions without a log are omitted.

    Raises:
        Refused: a position is beyond the log end offset, or no partition has a log.
    """
    refusals, lag = [], {}
    for partition, next_offset in next_offsets.items():
        log_range = log_of(logs, *partition)
        if log_range is not None and next_offset > log_range.end:
            refusals.append(
                QUERY_BEYOND_END(
                    partition=f"{partition[0]}-{partition[1]}",
                    next_offset=next_offset,
                    log_end=log_range.end,
                )
            )
        elif log_range is not None:
            lag[partition] = log_range.end - next_offset
    if next_offsets and not lag and not refusals:
        topic, number = min(next_offsets)
        refusals = [QUERY_PARTITIONS_MISSING(partition=f"{topic}-{number}")]
    if refusals:
        raise Refused(refusals)
    return lag


def _backward_refusals(
    group: GroupView, next_offsets: Mapping[TopicPartition, int]
) -> Iterator[Message]:
    """Yield a refusal if a commit would rewind the group."""
    back = {
        partition: current
        for partition, next_offset in next_offsets.items()
        if (current := group.next_offset(*partition)) is not None and current > next_offset
    }
    if back:
        topic, partition = first = min(back)
        yield GROUP_AHEAD_OF_QUERY(
            group=group.name,
            count=len(back),
            partition=f"{topic}-{partition}",
            current=back[first],
            next_offset=next_offsets[first],
        )
