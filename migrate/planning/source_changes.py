"""The changes that a plan makes to a savepoint's sources; no I/O here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from migrate.inputs.flink.source import Source, SourceKind
from migrate.model.catalog import (
    KEPT_PARTITIONS,
    NO_POSITION,
    NOT_ON_BROKER,
    READER_CLUSTER_UNKNOWN,
    READER_UNKNOWN,
    READERS_OVERLAP,
    TOPICS_LEFT_OUT,
)
from migrate.model.message import Message
from migrate.model.policies import Gone, NewPartitions, Policies
from migrate.model.positions import (
    ClusterPartition,
    Marker,
    Position,
    PositionState,
    TopicPartition,
)
from migrate.model.warning import WarningText
from migrate.model.warning_catalog import PARTITION_STAYS
from migrate.model.wording import join_some
from migrate.planning.plan import Plan, PlannedPartition, Verdict

# The maximum number of partitions that a message lists.
MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class SourceChange:
    """The changes to one source in a savepoint, in one cluster.

    Attributes:
        new_offsets: the next offset of each changed partition; None for a removed partition.
        partitions: the planned partitions that the source already has or will have; ``current`` is
            the offset of the first record that is missing from the savepoint's state.
        refusals: the reasons against the change.
    """

    operator_id: str
    new_offsets: Mapping[ClusterPartition, int | None]
    partitions: tuple[PlannedPartition, ...]
    refusals: tuple[Message, ...]


def source_change(
    source: Source, cluster: str | None, plan: Plan, side: str, policies: Policies
) -> SourceChange:
    """Return the changes that a plan makes to a source; no changes if the whole plan is refused.

    Args:
        source: the source in the savepoint, with only its positions in this cluster.
        cluster: the cluster; None if the savepoint does not identify the cluster.
        plan: the new positions.
        side: the name of these positions in messages.
        policies: the user's choices.
    """
    if plan.refusals and not plan.partitions:
        return SourceChange(source.operator_id, {}, (), ())
    own_positions = {position.topic_partition: position for position in source.positions}
    new_offsets: dict[ClusterPartition, int | None] = {}
    unknown: list[TopicPartition] = []
    gone: list[TopicPartition] = []
    partitions: list[PlannedPartition] = []
    for planned in plan.partitions:
        partition = planned.topic_partition
        position = own_positions.get(partition)
        if (
            planned.verdict is Verdict.NEW_PARTITION
            and policies.new_partitions is NewPartitions.AS_FLINK
        ):
            if position is not None:
                unknown.append(partition)
                continue
            # Flink discovers the partition and starts it at this offset. A Spark query does this
            # only if the offset is 0. Otherwise, the query fails.
            is_query = source.kind is SourceKind.POSITION_LIST
            if source.starts_absent_partitions_at_log_start and not (
                is_query and planned.next_offset
            ):
                continue
        if planned.problem or (position is None and planned.next_offset is None):
            continue
        partitions.append(replace(planned, current=_old_next_offset(position, planned)))
        if position is None or position.start != planned.next_offset:
            new_offsets[ClusterPartition(cluster, *partition)] = planned.next_offset
    known = {planned.topic_partition for planned in plan.partitions}
    for partition, position in own_positions.items():
        if partition in known or _keeps_position(position, policies):
            continue
        topic, number = partition
        if plan.snapshot is None or number in plan.snapshot.topics.get(topic, {}):
            unknown.append(partition)
        elif policies.gone is Gone.SKIP:
            new_offsets[ClusterPartition(cluster, *partition)] = None
        else:
            gone.append(partition)
    refusals = tuple(_refusals(source, side, unknown, gone))
    return SourceChange(source.operator_id, new_offsets, tuple(partitions), refusals)


def change_cluster(
    change: SourceChange, source: Source, cluster: str | None, plan: Plan
) -> SourceChange:
    """Return the changes to a source that will read from a different Kafka cluster.

    Each partition gets its topic name and its offset in the other cluster. A partition that would
    keep its old offset is refused, because a reader would apply this offset to the other cluster.

    Args:
        change: the change within the job's cluster.
        source: as in ``source_change``.
        cluster: as in ``source_change``.
        plan: the translated plan of the source.
    """
    by_own_partition = {
        (planned.translation.topic, planned.partition): planned
        for planned in plan.partitions
        if planned.translation is not None
    }
    new_offsets: dict[ClusterPartition, int | None] = {
        key: None for key, next_offset in change.new_offsets.items() if next_offset is None
    }
    partitions = []
    for old_planned in change.partitions:
        planned = by_own_partition.get(old_planned.topic_partition)
        if planned is None or planned.next_offset is None:
            continue
        if planned.topic != old_planned.topic:
            new_offsets[ClusterPartition(cluster, *old_planned.topic_partition)] = None
        new_offsets[ClusterPartition(cluster, *planned.topic_partition)] = planned.next_offset
        partitions.append(replace(planned, current=old_planned.current))
    kept = [
        position.topic_partition
        for position in source.positions
        if position.topic_partition not in by_own_partition
        and ClusterPartition(cluster, *position.topic_partition) not in new_offsets
    ]
    refusals: tuple[Message, ...] = ()
    if kept and not plan.refusals:
        refusals = (KEPT_PARTITIONS(operator=source.operator_id, partitions=_names(kept)),)
    return SourceChange(change.operator_id, new_offsets, tuple(partitions), refusals)


def _old_next_offset(position: Position | None, planned: PlannedPartition) -> int | None:
    """Return ``current`` for a partition of a ``SourceChange``, or None if it is unknown."""
    if position is None or position.start is Marker.EARLIEST:
        return 0 if planned.next_offset == 0 else planned.log_start
    return position.next_offset


def _keeps_position(position: Position, policies: Policies) -> bool:
    if position.state is PositionState.FINISHED:
        return True
    if policies.partitions is None:
        return False
    return not any(
        policies.topic_map.get(topic, topic) == position.topic and position.partition in numbers
        for topic, numbers in policies.partitions.items()
    )


def _refusals(
    source: Source, side: str, unknown: Sequence[TopicPartition], gone: Sequence[TopicPartition]
) -> Iterator[Message]:
    is_query = source.kind is SourceKind.POSITION_LIST
    reader = "the query" if is_query else f"operator {source.operator_id}"
    if unknown:
        yield NO_POSITION(reader=reader, partitions=_names(unknown), side=side)
    if gone:
        yield NOT_ON_BROKER(reader=reader, partitions=_names(gone))


def _names(partitions: Sequence[TopicPartition]) -> str:
    return join_some((f"{topic}-{number}" for topic, number in sorted(partitions)), MOST_NAMED)


def remove_partitions_of_others(
    change: SourceChange, source: Source, cluster: str | None, others: Iterable[Source]
) -> tuple[SourceChange, list[WarningText]]:
    """Remove from a change the new partitions that other sources read, and warn about each one.

    If several sources read a topic, the sets of partitions that they currently read determine the
    treatment of a new partition:

    * Equal sets: the source gets the partition.
    * Disjoint sets: each source was probably configured with a list of partitions. A partition of
      another source is removed from the change. Partitions that no source has are refused.
    * Overlapping sets: the partition is refused. All sources may subscribe to the topic, but one of
      them may not have discovered all partitions yet.
    * Different sets, and one of the sources does not identify its cluster: the partition is
      refused.

    Args:
        change: the change of the source.
        source: as in ``source_change``.
        cluster: as in ``source_change``.
        others: the other sources in the savepoint, in every cluster.
    """
    own = _numbers_by_topic(source)
    readers = [
        (other.operator_id, other_cluster, _numbers_by_topic(other.of_cluster(other_cluster)))
        for other in others
        for other_cluster in other.clusters
    ]
    added: dict[str, list[ClusterPartition]] = {}
    for key, next_offset in change.new_offsets.items():
        # A topic of which the source has no partitions can be here only because it matches the
        # user's pattern, so the source gets the topic's partitions.
        known = own.get(key.topic)
        if next_offset is not None and known is not None and key.partition not in known:
            added.setdefault(key.topic, []).append(key)
    removed: set[ClusterPartition] = set()
    notes: list[WarningText] = []
    refusals: list[Message] = []
    for topic, keys in added.items():
        numbers = own[topic]
        same_cluster: dict[str, frozenset[int]] = {}
        maybe_same: set[str] = set()
        for operator, other_cluster, by_topic in readers:
            if other_cluster == cluster and topic in by_topic:
                same_cluster[operator] = by_topic[topic]
            elif None in (other_cluster, cluster) and by_topic.get(topic, numbers) != numbers:
                maybe_same.add(operator)
        differing = {
            operator: other_numbers
            for operator, other_numbers in same_cluster.items()
            if other_numbers != numbers
        }
        sharing = [
            operator for operator, other_numbers in differing.items() if other_numbers & numbers
        ]
        names = _names([(key.topic, key.partition) for key in keys])
        if maybe_same:
            refusals.append(
                READER_CLUSTER_UNKNOWN(
                    operator=source.operator_id, partitions=names, others=sorted(maybe_same)
                )
            )
        elif sharing:
            refusals.append(
                READERS_OVERLAP(operator=source.operator_id, partitions=names, others=sharing)
            )
        elif differing:
            for key in keys:
                holders = [
                    operator
                    for operator, other_numbers in differing.items()
                    if key.partition in other_numbers
                ]
                if not holders:
                    refusals.append(READER_UNKNOWN(count=len(same_cluster) + 1, partition=key))
                    continue
                removed.add(key)
                notes.append(
                    WarningText(
                        PARTITION_STAYS(
                            partition=str(key), holders=holders, operator=source.operator_id
                        )
                    )
                )
    return replace(
        change,
        new_offsets={key: at for key, at in change.new_offsets.items() if key not in removed},
        partitions=tuple(
            planned
            for planned in change.partitions
            if ClusterPartition(cluster, *planned.topic_partition) not in removed
        ),
        refusals=(*change.refusals, *refusals),
    ), notes


def _numbers_by_topic(source: Source) -> dict[str, frozenset[int]]:
    numbers: dict[str, set[int]] = defaultdict(set)
    for position in source.positions:
        numbers[position.topic].add(position.partition)
    return {topic: frozenset(of_topic) for topic, of_topic in numbers.items()}


def left_out_refusal(
    side: str, topics: Iterable[str], reader: str = "no source in the savepoint"
) -> Message:
    """Return the refusal for a move that would drop the positions of some topics."""
    return TOPICS_LEFT_OUT(side=side, topics=sorted(topics), no_source=reader)
