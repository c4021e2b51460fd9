"""All partitions of a plan: those of the checkpoint, merged where several sources read one, and
those that only the broker knows."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.cluster_snapshot import ClusterSnapshot
from migrate.flink.extract import Source
from migrate.planning.model import PlannedPartition
from migrate.planning.position import flink_committed, new_partition, plan_position
from migrate.policy_options import Policies
from migrate.positions import TopicPartition


def plan_partitions(
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies,
    found: Iterable[str] = (),
    *,
    newer_checkpoint: bool,
) -> list[PlannedPartition]:
    """Every topic-partition that moves, or that stands in the way, by topic and number.

    Args:
        found: topics that the checkpoint does not know and that move too.
        newer_checkpoint: whether a newer checkpoint proves that the job ran on.
    """
    readers = _readers_by_topic(chosen)
    views = _views(chosen, snapshot, policies)
    planned = [
        _merged(of_one, unknown_to_some=len(of_one) < len(readers[topic]))
        for (topic, _), of_one in views.items()
    ]
    if snapshot is not None:
        readers |= {topic: list(chosen) for topic in found}
        planned += _new_partitions(readers, views, snapshot, policies)
        planned = [_with_groups(partition, snapshot) for partition in planned]
    if newer_checkpoint and not any(partition.ran_on for partition in planned):
        # The job ran on, and nothing says how far.
        planned = [replace(partition, repeated=None) for partition in planned]
    return sorted(planned, key=lambda partition: (partition.topic, partition.partition))


def _readers_by_topic(chosen: Iterable[Source]) -> dict[str, list[Source]]:
    """The sources that read each topic."""
    readers: dict[str, list[Source]] = {}
    for source in chosen:
        for topic in source.topics:
            readers.setdefault(topic, []).append(source)
    return readers


def _views(
    chosen: Sequence[Source], snapshot: ClusterSnapshot | None, policies: Policies
) -> dict[TopicPartition, list[PlannedPartition]]:
    """Each topic-partition as each of its sources alone would have it."""
    views: dict[TopicPartition, list[PlannedPartition]] = {}
    for source in chosen:
        for position in source.positions:
            planned = plan_position(position, snapshot, policies)
            views.setdefault(position.topic_partition, []).append(
                replace(planned, operator_id=source.operator_id)
            )
    return views


def _merged(views: Sequence[PlannedPartition], *, unknown_to_some: bool) -> PlannedPartition:
    """The lowest of what the sources of one partition make of it, with what it costs the others."""
    for view in views:
        if view.next_offset is None:
            return view  # not covered up by one that can be told
    lowest = min(views, key=_next_offset)
    start = _next_offset(lowest)
    ahead = [_next_offset(view) - start for view in views]
    reached = [view.reached for view in views if view.reached is not None]
    lost: int | None = max(max(0, (v.lost or 0) - far) for v, far in zip(views, ahead, strict=True))
    if unknown_to_some:
        lost = start - lowest.log_start if lowest.log_start is not None else None
    return replace(
        lowest,
        # Where one is not known, Flink's group may be the group of that one.
        reached=max(reached) if len(reached) == len(views) else None,
        unknown_to_some=unknown_to_some,
        lost=lost,
        repeated=max((v.repeated or 0) + far for v, far in zip(views, ahead, strict=True)),
    )


def _next_offset(view: PlannedPartition) -> int:
    assert view.next_offset is not None  # looked at by _merged
    return view.next_offset


def _new_partitions(
    readers_by_topic: Mapping[str, Sequence[Source]],
    known: Container[TopicPartition],
    snapshot: ClusterSnapshot,
    policies: Policies,
) -> Iterator[PlannedPartition]:
    """Partitions on the broker that no chosen source knows."""
    wanted = _wanted_partitions(policies)
    for topic, readers in readers_by_topic.items():
        as_flink = all(source.absent_start_at_earliest for source in readers)
        listed = any(source.listed for source in readers)
        for partition, log in snapshot.topics.get(topic, {}).items():
            if (topic, partition) in known:
                continue
            if wanted is not None and partition not in wanted.get(topic, frozenset()):
                continue
            yield new_partition(topic, partition, log, as_flink, policies, listed=listed)


def _wanted_partitions(policies: Policies) -> dict[str, frozenset[int]] | None:
    """``Policies.partitions`` under the target's names."""
    if policies.partitions is None:
        return None
    return {
        policies.topic_map.get(topic, topic): partitions
        for topic, partitions in policies.partitions.items()
    }


def _with_groups(planned: PlannedPartition, snapshot: ClusterSnapshot) -> PlannedPartition:
    """With what the two groups hold, and what a job that ran on is seen to have emitted since."""
    target = snapshot.target_group
    planned = replace(
        planned,
        current=target.next_offset(planned.topic, planned.partition) if target else None,
        flink_committed=flink_committed(planned.topic, planned.partition, snapshot),
    )
    if not planned.ran_on:
        return planned
    # None of these is None where Flink's group lies beyond a position that goes on.
    assert planned.flink_committed is not None and planned.next_offset is not None
    assert planned.log_end is not None
    emitted = min(planned.flink_committed, planned.log_end) - planned.next_offset
    return replace(planned, repeated=max(planned.repeated or 0, emitted))
