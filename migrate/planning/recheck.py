"""Compare a saved plan with the cluster and the job just before the plan is applied. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from migrate.model.catalog import (
    GROUP_CHANGED_SINCE_PLAN,
    LOG_END_DECREASED,
    PARTITION_CREATED_SINCE_PLAN,
    PARTITION_DELETED_SINCE_PLAN,
    PARTITION_NEW_SINCE_PLAN,
    PLAN_ALREADY_APPLIED,
    PLAN_FOR_OTHER_CLUSTER,
    PLAN_FOR_OTHER_TARGET_CLUSTER,
    PLANNED_OFFSET_OUTSIDE_LOG,
    TOPIC_RECREATED_SINCE_PLAN,
)
from migrate.model.cluster_snapshot import ClusterSnapshot, GroupView, LogRange
from migrate.model.errors import Refused
from migrate.model.message import Message, MessageTemplate
from migrate.model.positions import format_position
from migrate.model.warning_catalog import NEW_GROUP
from migrate.model.wording import counted
from migrate.planning.plan import Plan, PlannedPartition
from migrate.planning.refusals_and_warnings import new_group_warning


def check_cluster(plan: Plan, snapshot: ClusterSnapshot) -> None:
    """Refuse a plan that was made for a different cluster than the cluster in the snapshot.

    A plan for two clusters must be from ``in_job_cluster`` or ``in_target_cluster``.
    """
    if plan.cluster_id == snapshot.cluster_id:
        return
    other = PLAN_FOR_OTHER_TARGET_CLUSTER if plan.is_translated else PLAN_FOR_OTHER_CLUSTER
    raise Refused(other(cluster=snapshot.cluster_id, planned=plan.cluster_id))


def recreated_topics(plan: Plan, snapshot: ClusterSnapshot) -> list[str]:
    """Return the topics whose Kafka topic ID has changed since the plan was made."""
    return sorted(
        topic
        for topic, topic_id in plan.topic_ids.items()
        if snapshot.topic_ids.get(topic, topic_id) != topic_id
    )


def find_cluster_changes(plan: Plan, snapshot: ClusterSnapshot) -> Iterator[Message]:
    """Yield a refusal for each kind of change in the cluster since the plan was made.

    New records, and deleted records below the planned offsets, are ignored, because they do not
    change the plan's effect. ``suspect`` is not recomputed, because a topic that was recreated
    after the plan was made has a different topic ID.

    Raises:
        Refused: the plan is for a different cluster.
    """
    check_cluster(plan, snapshot)
    recreated = recreated_topics(plan, snapshot)
    for topic in recreated:
        yield TOPIC_RECREATED_SINCE_PLAN(topic=topic)
    if recreated:
        return
    if _is_applied(plan, snapshot):
        yield PLAN_ALREADY_APPLIED()
        return
    known = {planned.topic_partition for planned in plan.partitions}
    now = {(topic, n): log for topic, logs in snapshot.topics.items() for n, log in logs.items()}
    changes = dict[MessageTemplate, list[str]]()
    if not plan.only_some_partitions and (new := sorted(now.keys() - known)):
        changes[PARTITION_NEW_SINCE_PLAN] = [f"{topic}-{partition}" for topic, partition in new]
    for planned in plan.partitions:
        log = now.get(planned.topic_partition)
        for template, text in _partition_changes(planned, log, snapshot.target_group):
            changes.setdefault(template, []).append(text)
    for template, texts in changes.items():
        yield template(partitions=texts)


def current_warnings(plan: Plan, snapshot: ClusterSnapshot | None) -> tuple[str, ...]:
    """Return the warnings of a saved plan that still apply.

    The group may have been created or deleted since the plan was made, so the warning about a new
    group depends on the snapshot.
    """
    group = snapshot.target_group if snapshot is not None else None
    if group is None:
        return plan.warnings
    others = (line for line in plan.warnings if not line.endswith(f"[{NEW_GROUP.code}]"))
    return (*others, *(() if group.exists else (new_group_warning(group),)))


def current_partitions(
    plan: Plan, snapshot: ClusterSnapshot | None
) -> tuple[PlannedPartition, ...]:
    """Return the partitions of a saved plan, with the log ranges in the snapshot.

    For a plan for two clusters, the snapshot is of the target's cluster. Without a snapshot, return
    the plan's partitions unchanged.
    """
    if snapshot is None:
        return plan.partitions
    return tuple(
        replace(planned, log_start=log.start, log_end=log.end)
        if (log := snapshot.topics.get(planned.topic, {}).get(planned.partition)) is not None
        else planned
        for planned in plan.partitions
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


def _partition_changes(
    planned: PlannedPartition, log: LogRange | None, group: GroupView | None
) -> Iterator[tuple[MessageTemplate, str]]:
    """Yield each change of the partition since the plan was made, as a refusal and a part of it."""
    name = planned.name
    if log is None:
        if planned.log_end is not None:
            yield PARTITION_DELETED_SINCE_PLAN, name
        return
    if planned.log_end is None:
        yield PARTITION_CREATED_SINCE_PLAN, name
    if planned.next_offset is not None and not log.covers(planned.next_offset):
        now = f"the log now ranges from {log.start} to {log.end}"
        yield PLANNED_OFFSET_OUTSIDE_LOG, f"{name} at {planned.next_offset} ({now})"
    if planned.log_end is not None and log.end < planned.log_end:
        yield LOG_END_DECREASED, f"{name} from {planned.log_end} to {log.end}"
    if group is not None:
        current = group.next_offset(*planned.topic_partition)
        if current != planned.current:
            change = f"from {format_position(planned.current)} to {format_position(current)}"
            yield GROUP_CHANGED_SINCE_PLAN, f"{name} {change}"


def signs_of_progress(plan: Plan, snapshot: ClusterSnapshot | None) -> Iterator[str]:
    """Yield one line for each sign that the source group has new commits or is active.

    Args:
        plan: the saved plan.
        snapshot: the current state of the cluster; None if no broker was queried. Its
            ``source_group`` is the group that the plan's positions come from or, for a checkpoint,
            the Flink job's group.
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
