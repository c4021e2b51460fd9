"""Compare a saved plan with the cluster and the job just before the plan is applied. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from migrate.model.catalog import PLAN_FOR_OTHER_CLUSTER
from migrate.model.cluster_snapshot import ClusterSnapshot, LogRange
from migrate.model.errors import Refused
from migrate.model.positions import format_position
from migrate.model.wording import counted
from migrate.planning.plan import Plan, PlannedPartition


def check_cluster(plan: Plan, snapshot: ClusterSnapshot) -> None:
    """Refuse a plan if it is for a different cluster than the snapshot's."""
    if plan.cluster_id == snapshot.cluster_id:
        return
    raise Refused(PLAN_FOR_OTHER_CLUSTER(cluster=snapshot.cluster_id, planned=plan.cluster_id))


def recreated_topics(plan: Plan, snapshot: ClusterSnapshot) -> list[str]:
    """Return the topics whose Kafka topic ID has changed since the plan was made."""
    return sorted(
        topic
        for topic, topic_id in plan.topic_ids.items()
        if snapshot.topic_ids.get(topic, topic_id) != topic_id
    )


def find_cluster_changes(plan: Plan, snapshot: ClusterSnapshot) -> Iterator[str]:
    """Yield the changes in the cluster since the plan was made, one line each.

    New records do not change the plan's effect, nor do deleted records below the planned offsets.
    ``suspect`` is not recomputed, because a topic that was recreated after the plan was made has a
    different topic ID.

    Raises:
        Refused: the plan is for a different cluster.
    """
    check_cluster(plan, snapshot)
    recreated = recreated_topics(plan, snapshot)
    for topic in recreated:
        yield f"topic {topic} was recreated after the plan was created"
    if recreated:
        return
    if _is_applied(plan, snapshot):
        yield "the plan was already applied, because the group has all offsets of the plan"
        return
    known = {planned.topic_partition: planned for planned in plan.partitions}
    now = {(topic, n): log for topic, logs in snapshot.topics.items() for n, log in logs.items()}
    if not plan.only_some_partitions:
        for topic, partition in sorted(now.keys() - known.keys()):
            yield f"{topic}-{partition} is new since the plan was created"
    for topic_partition, planned in known.items():
        log = now.get(topic_partition)
        yield from _find_log_changes(planned, log)
        if log is not None and snapshot.target_group is not None:
            current = snapshot.target_group.next_offset(*topic_partition)
            if current != planned.current:
                yield (
                    f"the group's offset for {planned.name} has changed from "
                    f"{format_position(planned.current)} to {format_position(current)}"
                )


def _is_applied(plan: Plan, snapshot: ClusterSnapshot) -> bool:
    """Return whether the group now has all offsets of the plan but did not have them before."""
    group = snapshot.target_group
    moving = [planned for planned in plan.partitions if planned.next_offset is not None]
    return (
        group is not None
        and any(planned.current != planned.next_offset for planned in moving)
        and all(
            group.next_offset(*planned.topic_partition) == planned.next_offset for planned in moving
        )
    )


def _find_log_changes(planned: PlannedPartition, log: LogRange | None) -> Iterator[str]:
    name = planned.name
    if log is None:
        if planned.log_end is not None:
            yield f"{name} no longer exists"
        return
    if planned.log_end is None:
        yield f"{name} did not exist when the plan was created, but exists now"
    if planned.next_offset is not None and not log.covers(planned.next_offset):
        yield (
            f"the log of {name} now ranges from offset {log.start} to {log.end}, so it no longer "
            f"contains the next offset {planned.next_offset}"
        )
    if planned.log_end is not None and log.end < planned.log_end:
        yield (
            f"the log end offset of {name} has decreased from {planned.log_end} to {log.end}; "
            "either records were lost, or the topic was recreated (before Kafka 2.8, topics have "
            "no IDs that would show this)"
        )


def signs_of_progress(plan: Plan, snapshot: ClusterSnapshot | None) -> Iterator[str]:
    """Yield signs, one line each, that the source group or the target group has new commits.

    Args:
        plan: the saved plan.
        snapshot: the current state of the cluster; None without a broker. Its ``source_group`` is
            the group that the plan's positions come from or, for a checkpoint, the Flink job's
            group.
    """
    group = snapshot.source_group if snapshot is not None else None
    if group is None:
        return
    of_the_group = plan.origin.kind == "positions"
    if of_the_group and group.members:
        yield f"it has {counted(len(group.members), 'member')}"
    old_names = {new: old for old, new in plan.topic_map.items()} if of_the_group else {}
    changed = []
    for planned in plan.partitions:
        then = planned.position if of_the_group else planned.flink_committed
        now = group.next_offset(old_names.get(planned.topic, planned.topic), planned.partition)
        if now != then:
            changed.append((planned.name, then, now))
    if changed:
        first, then, now = changed[0]
        whose = "it" if of_the_group else f"its group {group.name!r}"
        yield (
            f"{whose} has new offsets in {counted(len(changed), 'partition')} (the first is "
            f"{first}: from {format_position(then)} to {format_position(now)})"
        )
