"""``make_plan``: what stands in the way of the whole, then partition by partition: those of the
checkpoint, merged where several sources read one, and those that only the broker knows.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from migrate.inputs.flink.extract import Code, PlanInput, Source
from migrate.model.cluster_snapshot import ClusterSnapshot
from migrate.model.policies import MergeSources, Policies
from migrate.model.positions import SPARK, Target, TopicPartition
from migrate.planning.new_topics import about_found_topics, topics_that_match
from migrate.planning.obstacles import (
    blocked_by_findings,
    clusters_mixed_up,
    clusters_not_named,
    disagreements,
    groups_mixed_up,
    names_collide,
    other_brokers,
    relevant_findings,
    taken_as_one_cluster,
)
from migrate.planning.partition import flink_committed, new_partition, plan_position
from migrate.planning.plan import Plan, PlannedPartition, Refusal
from migrate.planning.refusals_and_warnings import (
    group_ran_on,
    nowhere,
    of_unknown_age,
    only_some_partitions,
    other_logs,
    refuse,
    warnings,
)
from migrate.planning.transactions import answered

REFUSED_BY_DEFAULT: Policies = Policies()

# How many partitions are named.
_NAMED = 20


def make_plan(
    found: PlanInput,
    chosen: Sequence[Source],
    snapshot: ClusterSnapshot | None,
    policies: Policies = REFUSED_BY_DEFAULT,
    *,
    target: Target = SPARK,
    named: bool = False,
    bootstrap_servers: str | None = None,
) -> Plan:
    """Plan the move of the chosen sources.

    Args:
        found: the whole checkpoint: what is in flight anywhere stands in the way.
        chosen: the sources to move, some or all of them.
        snapshot: what the broker said of their topics (``topics_to_ask``), or None without one.
        policies: what the user allows.
        named: whether the user chose them by name: then a source that is not read is left out
            knowingly.
        bootstrap_servers: the brokers that were asked, as they were named.
    """
    findings, refusals, notes = answered(
        relevant_findings(found, chosen, named), found, snapshot, policies
    )
    refusals += blocked_by_findings(findings, policies)
    moved = [_as_the_target_names_it(source, policies) for source in chosen]
    mixed_up = list(clusters_mixed_up(moved))
    refusals += mixed_up
    if policies.merge_sources is MergeSources.FAIL and not mixed_up:
        refusals += disagreements(moved, one_cluster=policies.one_cluster)
    if not mixed_up:
        refusals += clusters_not_named(moved, policies)
    refusals += groups_mixed_up(moved, snapshot)
    refusals += names_collide(chosen, policies)
    partitions: list[PlannedPartition] = []
    if not refusals:
        newer = any(finding.code is Code.RAN_ON for finding in findings)
        more = topics_that_match(snapshot, policies)
        partitions = _plan_partitions(moved, snapshot, policies, more, newer_checkpoint=newer)
        refusals += refuse(partitions)
        refusals += nowhere(chosen, partitions, policies)
        if not policies.allow_ran_on:
            refusals += group_ran_on(partitions)
    if not refusals and all(planned.next_offset is None for planned in partitions):
        empty_plan = "there is nothing to move: no partition is left that has an offset"
        if policies.partitions is not None:
            held = sorted({one.topic_partition for source in chosen for one in source.positions})
            those = ", ".join(f"{topic}-{partition}" for topic, partition in held[:_NAMED])
            empty_plan += f"; the checkpoint holds {those}{', …' if held[_NAMED:] else ''}"
        refusals.append(Refusal(empty_plan))
    source_group = snapshot.source_group if snapshot is not None else None
    return Plan(
        found.origin,
        target,
        tuple(partitions),
        tuple(refusals),
        (
            *warnings(findings, snapshot, partitions, policies),
            *of_unknown_age(found.origin, snapshot),
            *about_found_topics(found, chosen, snapshot, partitions, policies),
            *taken_as_one_cluster(moved, policies),
            *other_logs(moved, policies),
            *other_brokers(moved, bootstrap_servers),
            *(only_some_partitions(chosen, snapshot, policies) if target == SPARK else ()),
        ),
        cluster_id=snapshot.cluster_id if snapshot is not None else None,
        topic_ids=_topic_ids(partitions, snapshot) if snapshot is not None else {},
        source_group=source_group.name if source_group is not None else None,
        allow_ran_on=policies.allow_ran_on,
        only_some_partitions=policies.partitions is not None,
        topic_pattern=policies.topic_pattern.text if policies.topic_pattern is not None else None,
        operators=tuple(sorted({source.operator_id for source in chosen})),
        source_cluster=next(
            (name for s in chosen for name in s.clusters if name is not None), None
        ),
        topic_map=policies.topic_map,
        snapshot=snapshot,
        notes=tuple(notes),
    )


def _topic_ids(partitions: Iterable[PlannedPartition], snapshot: ClusterSnapshot) -> dict[str, str]:
    """Those of the topics that are planned; the snapshot may hold others that were only found."""
    planned = {one.topic for one in partitions}
    return {topic: one for topic, one in snapshot.topic_ids.items() if topic in planned}


def topics_to_ask(chosen: Iterable[Source], policies: Policies) -> set[str]:
    """The topics a snapshot must hold, as the target names them."""
    moved = (_as_the_target_names_it(source, policies) for source in chosen)
    return {topic for source in moved for topic in source.topics}


def _as_the_target_names_it(source: Source, policies: Policies) -> Source:
    """The source with the positions that are to move, its topics under their names of today."""
    kept = policies.partitions
    return replace(
        source,
        positions=tuple(
            position._replace(topic=policies.topic_map.get(position.topic, position.topic))
            for position in source.positions
            if kept is None or position.partition in kept.get(position.topic, frozenset())
        ),
    )


def _plan_partitions(
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
